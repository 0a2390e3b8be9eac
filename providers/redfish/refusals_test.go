package redfish_test

import (
	"strings"
	"testing"

	"github.com/nodefence/nodefence/fencing"
	"github.com/nodefence/nodefence/providers"
	rf "github.com/nodefence/nodefence/test/lab/redfishbmc"
)

// Trust is verified before anything is sent, and a refusal says what to do.
func TestTrust(t *testing.T) {
	for name, c := range map[string]struct {
		cert     rf.Certificate
		settings func(*rf.BMC) providers.TLS
		says     string // empty: it is trusted
	}{
		"CA":              {rf.CertGood, func(b *rf.BMC) providers.TLS { return providers.TLS{CA: b.CAPEM()} }, ""},
		"system's roots":  {rf.CertGood, func(*rf.BMC) providers.TLS { return providers.TLS{} }, "authority"},
		"self-signed":     {rf.CertSelfSigned, func(b *rf.BMC) providers.TLS { return providers.TLS{CA: b.CAPEM()} }, "pin"},
		"expired":         {rf.CertExpired, func(b *rf.BMC) providers.TLS { return providers.TLS{CA: b.CAPEM()} }, "expired"},
		"other name":      {rf.CertOtherName, func(b *rf.BMC) providers.TLS { return providers.TLS{CA: b.CAPEM()} }, "another name"},
		"pinned":          {rf.CertGood, func(b *rf.BMC) providers.TLS { return providers.TLS{Fingerprint: b.Fingerprint()} }, ""},
		"pinned, renewed": {rf.CertSelfSigned, func(b *rf.BMC) providers.TLS { return providers.TLS{Fingerprint: b.Fingerprint()} }, "renewed"},
		"insecure":        {rf.CertSelfSigned, func(*rf.BMC) providers.TLS { return providers.TLS{Insecure: true} }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newBench(t, "")
			d, err := newWith(c.settings(s.BMC))
			if err != nil {
				t.Fatal(err)
			}
			s.driver = d
			if err := s.SetCertificate(c.cert); err != nil {
				t.Fatal(err)
			}
			r := s.read()
			if c.says == "" {
				wantPower(t, r, fencing.On)
				return
			}
			wantPower(t, r, fencing.Unknown)
			if r.Failure.Kind != fencing.Untrusted || !strings.Contains(r.Failure.Message, c.says) || len(s.Requests()) != 0 {
				t.Errorf("failure %v, %d requests: %s", r.Failure.Kind, len(s.Requests()), r.Failure.Message)
			}
		})
	}
}

// Options and machines that cannot work are refused before anything is sent.
func TestMisconfigured(t *testing.T) {
	for options, says := range map[string]string{
		`{"System":"/redfish/v1/Systems/1"}`: "options.System: no such option", `{"basicauth":true}`: "options.basicauth",
		`{"basicAuth":"yes"}`: "options.basicAuth", `{"basicAuth":null}`: "options.basicAuth", `{"system":"Systems/1"}`: "options.system",
		`{"maxBodyBytes":1}`: "options.maxBodyBytes", `[]`: "options", `{"basicAuth":true,"basicAuth":false}`: "twice", `{} {}`: "more",
	} {
		if _, err := newWithOptions(options); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", options, err)
		}
	}
	s := newBench(t, "")
	for name, spoil := range map[string]func(*providers.Machine){
		"no address": func(m *providers.Machine) { m.Address = "" }, "http": func(m *providers.Machine) { m.Address = "http://" + s.Addr() },
		"a path":      func(m *providers.Machine) { m.Address += "/redfish/v1" },
		"credentials": func(m *providers.Machine) { m.Address = "https://fencer:" + password + "@host" },
		"port":        func(m *providers.Machine) { m.Address = "host:0" }, "system": func(m *providers.Machine) { m.System = "/etc/passwd" },
		"root as system": func(m *providers.Machine) { m.System = "/redfish/v1/" }, "no password": func(m *providers.Machine) { m.Credentials.Password = "" },
		"pin": func(m *providers.Machine) { m.Fingerprint = "zz" },
	} {
		good := s.m
		spoil(&s.m)
		if r := s.read(); r.Failure.Kind != fencing.Misconfigured {
			t.Errorf("%s: %v, failure %v: %s", name, r.Power, r.Failure.Kind, r.Failure.Message)
		}
		s.m = good
	}
	if s.commands() != 0 {
		t.Error("a command was sent")
	}
}
