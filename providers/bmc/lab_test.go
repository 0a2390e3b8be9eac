package bmc_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/nodefence/nodefence/fencing"
	"github.com/nodefence/nodefence/providers"
	"github.com/nodefence/nodefence/providers/bmc"
	"github.com/nodefence/nodefence/providers/providertest"
	"github.com/nodefence/nodefence/providers/providertest/labend"
	"github.com/nodefence/nodefence/test/lab"
	rf "github.com/nodefence/nodefence/test/lab/redfishbmc"
)

const gofish = `{"drivers":["gofish"]}`

var testSpec = providertest.Spec{
	UUID: "4c4c4544-0035-3410-8050-c6c04f314733", Serial: "5A41GS3",
	Operator: providers.Credentials{Username: "fencer", Password: `cAnArY-s3cret/&+"x`}, // escapes differently in URL and JSON
	Reader:   providers.Credentials{Username: "watcher", Password: "cAnArY-reader"},
}

// bench is a machine, its controller, and a driver that speaks to it.
type bench struct {
	*rf.BMC
	t       testing.TB
	end     *providertest.Endpoint
	driver  providers.Driver
	m       providers.Machine
	timeout time.Duration
}

func newBench(t testing.TB, options string) *bench {
	t.Helper()
	b, end := labend.Redfish(t, testSpec, false)
	return &bench{
		BMC: b, t: t, end: end, driver: newDriver(t, options), timeout: 5 * time.Second,
		m: providers.Machine{
			Node: "node-1", Address: b.Addr(), Fingerprint: b.Fingerprint(), Credentials: testSpec.Operator,
			Expected: fencing.Expectation{Identity: fencing.Identity{Serial: testSpec.Serial}},
		},
	}
}

func (s *bench) read() fencing.Reading {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), s.timeout)
	defer cancel()
	began := time.Now()
	r := s.driver.Read(ctx, s.m)
	if took := time.Since(began); took > s.timeout+200*time.Millisecond {
		s.t.Errorf("it took %v, and the deadline was %v", took, s.timeout)
	}
	inJSON, _ := json.Marshal(r)
	if text := fmt.Sprintf("%v %+v %#v %s", r, r, r, inJSON); strings.Contains(text, "cAnArY") {
		s.t.Errorf("a secret is shown: %s", text)
	}
	return r
}

func (s *bench) powerOff() error {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), s.timeout)
	defer cancel()
	err := s.driver.PowerOff(ctx, s.m)
	if err != nil && strings.Contains(fmt.Sprintf("%v %+v", err, err), "cAnArY") {
		s.t.Errorf("a secret is shown: %v", err)
	}
	return err
}

func kindOf(err error) fencing.FailureKind {
	var e *providers.Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return fencing.NoFailure
}

// faults are what may stand between the driver and the state.
var faults = []struct {
	name  string
	quirk rf.Quirk
	kind  fencing.FailureKind
	says  string // a part of the message
}{
	{"web page", rf.HTMLBody, fencing.Malformed, "web page"},
	{"web page for the log-in", rf.HTMLBody.At(rf.AreaSessions), fencing.Unauthorized, "not authenticated"},
	{"web page for the root", rf.HTMLBody.At(rf.AreaRoot), fencing.Malformed, "web page"},
	{"null", rf.NullBody, fencing.Malformed, "no JSON object"},
	{"null for the root", rf.NullBody.At(rf.AreaRoot), fencing.Malformed, "no JSON object"},
	{"null for the collection", rf.NullBody.At(rf.AreaCollection), fencing.Malformed, "no JSON object"},
	{"nothing", rf.EmptyBody, fencing.Malformed, "no JSON object"},
	{"empty object", rf.EmptyObject, fencing.Malformed, `""`},
	{"half", rf.TruncatedJSON, fencing.Malformed, "nothing is concluded"},
	{"cut half-way", rf.CutHalfway, fencing.Failed, "closed the connection"},
	{"endless", rf.EndlessBody, fencing.Malformed, "too long"},
	{"one megabyte", rf.Megabyte, fencing.Malformed, "too long"},
	{"cut at once", rf.CutAtOnce, fencing.Failed, "closed the connection"},
	{"never", rf.HangForever, fencing.TimedOut, "no complete answer"},
	{"never, after the log-in", rf.HangForever.At(rf.AreaSystem), fencing.TimedOut, "no complete answer"},
	{"slow", rf.Slow(3 * time.Second), fencing.TimedOut, "no complete answer"},
	{"401", rf.Unauthorized, fencing.Unauthorized, "name and password"},
	{"401 in the session", rf.Unauthorized.At(rf.AreaSystem), fencing.Unauthorized, "name and password"},
	{"403", rf.Forbidden, fencing.Forbidden, "privilege"},
	{"404", rf.NotFound, fencing.NotFound, "inventory"},
	{"500", rf.InternalError, fencing.Failed, "HTTP 500"},
	{"503", rf.Unavailable(30 * time.Second), fencing.Busy, "later"},
	{"iLO not ready", rf.HPENotReady, fencing.Busy, "ResourceNotReadyRetry"},
	{"iDRAC not ready", rf.IDRACNotReady, fencing.Busy, "SWC0700"},
	{"no session to be had", rf.SessionLimit, fencing.Busy, "RAC0218"},
	{"redirect to another host", rf.Redirect(302, "https://other.invalid"), fencing.Failed, "HTTP 302"},
	{"log-in redirected by 301", rf.SessionRedirect(301, "https://other.invalid"), fencing.Failed, "HTTP 301"},
	{"state null", rf.PowerStateNull, fencing.Malformed, `""`},
	{"state missing", rf.PowerStateMissing, fencing.Malformed, `""`},
	{"state Reset", rf.PowerStateText("Reset"), fencing.Malformed, `"Reset"`},
	{"state off", rf.PowerStateText("off"), fencing.Malformed, `"off"`},
	{"state a number", rf.PowerStateValue(0), fencing.Malformed, "nothing is concluded"},
	{"N/A for a number", rf.NotANumber, fencing.Malformed, "nothing is concluded"},
	{"root without systems", rf.RootWithoutSystems, fencing.Failed, "no matching redfish system"},
	{"no system", rf.EmptyCollection, fencing.Failed, "no matching redfish system"},
	{"member null", rf.MemberNull, fencing.Malformed, ""},
	{"member {}", rf.MemberEmpty, fencing.Malformed, ""},
	{"member without id", rf.MemberEmptyID, fencing.Malformed, ""},
	{"member is the root", rf.MemberIsRoot, fencing.Malformed, ""},
}

// TestFaults: each fault, with the machine on and off, is Unknown with a message
// that says what it was; and it is forgotten when it is over.
func TestFaults(t *testing.T) {
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			s := newBench(t, gofish)
			for _, truth := range []fencing.PowerState{fencing.On, fencing.Off} {
				s.end.Set(truth)
				s.Set(f.quirk)
				s.timeout = time.Second
				r := s.read()
				if r.Power != fencing.Unknown || r.SaysOff() || r.Failure.Kind != f.kind || !strings.Contains(r.Failure.Message, f.says) {
					t.Errorf("%v: %v, failure %v (wanted %v, %q): %s", truth, r.Power, r.Failure.Kind, f.kind, f.says, r.Failure.Message)
				}
				s.Clear()
				s.timeout = 5 * time.Second
				if r := s.read(); r.Failed() || r.Power != truth {
					t.Errorf("healed: %v, failure %v: %s", r.Power, r.Failure.Kind, r.Failure.Message)
				}
			}
		})
	}
}

// TestTheAnsweringDriverIsNamed, and one that does not fit hands over to the next.
func TestTheAnsweringDriverIsNamed(t *testing.T) {
	for drivers, want := range map[string]string{`["gofish"]`: "bmc/gofish", `["dell","gofish"]`: "bmc/gofish", `["openbmc","dell","gofish"]`: "bmc/gofish"} {
		s := newBench(t, `{"drivers":`+drivers+`}`)
		if r := s.read(); r.Failed() || r.Driver != want || r.Identity.Serial != testSpec.Serial {
			t.Errorf("%s: %s, serial %q, failure %v: %s", drivers, r.Driver, r.Identity.Serial, r.Failure.Kind, r.Failure.Message)
		}
	}
	s := newBench(t, `{"drivers":["openbmc","dell"]}`)
	if r := s.read(); r.Power != fencing.Unknown || !strings.Contains(r.Failure.Message, "none of the drivers fits") {
		t.Errorf("%v: %s", r.Power, r.Failure.Message)
	}
}

// TestAWrongPasswordEndsTheList: the next driver would only bring the account
// nearer to its lock.
func TestAWrongPasswordEndsTheList(t *testing.T) {
	s := newBench(t, `{"drivers":["dell","gofish"]}`)
	s.m.Credentials.Password = "cAnArY-wrong"
	if r := s.read(); r.Failure.Kind != fencing.Unauthorized {
		t.Errorf("%v: %s", r.Failure.Kind, r.Failure.Message)
	}
	if n := labend.Count(s.BMC, func(r rf.Request) bool { return r.Method == http.MethodPost }); n != 1 {
		t.Errorf("%d attempts", n)
	}
}

// TestOnlyThePinnedDriverLogsIn: bmclib left to itself tries all at once.
func TestOnlyThePinnedDriverLogsIn(t *testing.T) {
	s := newBench(t, gofish)
	s.read()
	if n := labend.Count(s.BMC, func(r rf.Request) bool { return r.Method == http.MethodPost }); n != 1 {
		t.Errorf("%d POSTs: %+v", n, s.Requests())
	}
	if n := labend.Count(s.BMC, func(r rf.Request) bool { return !strings.HasPrefix(r.Path, "/redfish/") }); n != 0 {
		t.Errorf("%d requests outside of Redfish", n)
	}
}

// TestTrust: the certificate is verified, although the library would not.
func TestTrust(t *testing.T) {
	for name, c := range map[string]struct {
		tls  func(*rf.BMC) providers.TLS
		cert rf.Certificate
		kind fencing.FailureKind
	}{
		"CA":                  {func(b *rf.BMC) providers.TLS { return providers.TLS{CA: b.CAPEM()} }, rf.CertGood, fencing.NoFailure},
		"system's roots":      {func(*rf.BMC) providers.TLS { return providers.TLS{} }, rf.CertGood, fencing.Untrusted},
		"CA, self-signed":     {func(b *rf.BMC) providers.TLS { return providers.TLS{CA: b.CAPEM()} }, rf.CertSelfSigned, fencing.Untrusted},
		"CA, other name":      {func(b *rf.BMC) providers.TLS { return providers.TLS{CA: b.CAPEM()} }, rf.CertOtherName, fencing.Untrusted},
		"CA, expired":         {func(b *rf.BMC) providers.TLS { return providers.TLS{CA: b.CAPEM()} }, rf.CertExpired, fencing.Untrusted},
		"pin":                 {func(b *rf.BMC) providers.TLS { return providers.TLS{Fingerprint: b.Fingerprint()} }, rf.CertGood, fencing.NoFailure},
		"pin, another now":    {func(b *rf.BMC) providers.TLS { return providers.TLS{Fingerprint: b.Fingerprint()} }, rf.CertSelfSigned, fencing.Untrusted},
		"explicitly insecure": {func(*rf.BMC) providers.TLS { return providers.TLS{Insecure: true} }, rf.CertSelfSigned, fencing.NoFailure},
	} {
		t.Run(name, func(t *testing.T) {
			s := newBench(t, gofish)
			d, err := bmc.New(providers.Settings{Name: "x", TLS: c.tls(s.BMC), Options: []byte(gofish), Now: time.Now})
			if err != nil {
				t.Fatal(err)
			}
			s.driver, s.m.Fingerprint = d, ""
			if err := s.SetCertificate(c.cert); err != nil {
				t.Fatal(err)
			}
			r := s.read()
			if r.Failure.Kind != c.kind || (r.Power == fencing.On) != (c.kind == fencing.NoFailure) {
				t.Errorf("%v, failure %v: %s", r.Power, r.Failure.Kind, r.Failure.Message)
			}
			if c.kind != fencing.NoFailure && len(s.Requests()) != 0 {
				t.Errorf("%d requests were sent to an endpoint without trust", len(s.Requests()))
			}
		})
	}
}

// TestSeveralSystems: bmclib takes the first of a name, and gives serial number
// and power state of whichever that is: nothing is concluded, nothing is sent.
func TestSeveralSystems(t *testing.T) {
	var systems []rf.System
	for _, serial := range []string{testSpec.Serial, "OTHER-1"} {
		m := lab.New(lab.Config{Name: "m", UUID: lab.NewUUID(), Serial: serial, Running: serial == testSpec.Serial})
		t.Cleanup(m.Close)
		systems = append(systems, rf.System{Machine: m})
	}
	b, err := rf.Start(rf.Config{Systems: systems, Accounts: []rf.Account{{Name: "fencer", Password: testSpec.Operator.Password, Role: rf.Operator}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	s := newBench(t, gofish)
	s.BMC, s.m.Address, s.m.Fingerprint = b, b.Addr(), b.Fingerprint()
	for system, kind := range map[string]fencing.FailureKind{"": fencing.Failed, "System": fencing.Misconfigured} {
		s.m.System, s.m.AllowUnproved = system, true
		if r := s.read(); r.Power != fencing.Unknown || r.Failure.Kind != kind {
			t.Errorf("system %q: %v, failure %v: %s", system, r.Power, r.Failure.Kind, r.Failure.Message)
		}
		if err := s.powerOff(); kindOf(err) != kind {
			t.Errorf("system %q: %v", system, err)
		}
	}
	if n := labend.Count(b, labend.IsCommand); n != 0 {
		t.Errorf("%d commands were sent", n)
	}
}

// TestPowerOffIsJudgedByTheState, not by what the library returns.
func TestPowerOffIsJudgedByTheState(t *testing.T) {
	for name, c := range map[string]struct {
		quirk rf.Quirk
		kind  fencing.FailureKind
		power fencing.PowerState
	}{
		"412 with If-Match":         {rf.PreconditionFailed, fencing.NoFailure, fencing.Off},
		"carried out, answer lost":  {rf.ResetDoneAnswerLost, fencing.NoFailure, fencing.Off},
		"accepted and not done":     {rf.IgnoresReset, fencing.NoFailure, fencing.On},
		"refused":                   {rf.Forbidden.At(rf.AreaAction), fencing.Forbidden, fencing.On},
		"not among what is offered": {rf.WithoutForceOff, fencing.Failed, fencing.On},
	} {
		t.Run(name, func(t *testing.T) {
			s := newBench(t, gofish)
			if name == "412 with If-Match" {
				s.driver = newDriver(t, `{"drivers":["gofish"],"disableEtagMatch":true}`)
			}
			s.Set(c.quirk)
			if err := s.powerOff(); kindOf(err) != c.kind {
				t.Errorf("%v where %v is expected: %v", kindOf(err), c.kind, err)
			}
			if got := s.end.Get(); got != c.power {
				t.Errorf("the machine is %v", got)
			}
			s.Clear()
			if r := s.read(); r.Power != c.power {
				t.Errorf("it reads %v", r.Power)
			}
		})
	}
}

// TestOptions: what cannot work is said before anything is sent.
func TestOptions(t *testing.T) {
	for options, says := range map[string]string{
		``: "name at least one", `{}`: "name at least one", `{"drivers":[]}`: "name at least one", `{"drivers":["Gofish"]}`: "is none of",
		`{"drivers":["gofish","gofish"]}`: "twice", `{"drivers":["ipmitool"]}`: "use the driver ipmi", `{"drivers":["IntelAMT"]}`: "hibernation",
		`{"drivers":["asrockrack"]}`: "without a power state", `{"drivers":["supermicro"]}`: "any certificate",
		`{"drivers":["gofish"],"port":0}`: "no port", `{"drivers":["gofish"],"inventory":"sometimes"}`: "inventory",
		`{"drivers":["gofish"],"password":"x"}`: "password", `{"drivers":["gofish"]} {}`: "more than one", `{"drivers":"gofish"}`: "options",
	} {
		if _, err := bmc.New(providers.Settings{Options: []byte(options), Now: time.Now}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", options, err)
		}
	}
	if _, err := bmc.New(providers.Settings{Options: []byte(gofish), TLS: providers.TLS{CA: []byte("x")}, Now: time.Now}); err == nil {
		t.Error("a CA bundle without a certificate is taken")
	}
	t.Setenv("DEBUG_BMCLIB", "true")
	if _, err := bmc.New(providers.Settings{Options: []byte(gofish), Now: time.Now}); err == nil || !strings.Contains(err.Error(), "DEBUG_BMCLIB") {
		t.Errorf("with a variable that makes bmclib print passwords: %v", err)
	}
}

func TestMisconfiguredMachines(t *testing.T) {
	s := newBench(t, gofish)
	for name, spoil := range map[string]func(*providers.Machine){
		"no address":  func(m *providers.Machine) { m.Address = "" },
		"a path":      func(m *providers.Machine) { m.Address += "/redfish/v1" },
		"http":        func(m *providers.Machine) { m.Address = "http://" + m.Address },
		"a user":      func(m *providers.Machine) { m.Address = "user@" + m.Address },
		"port 0":      func(m *providers.Machine) { m.Address = "127.0.0.1:0" },
		"no password": func(m *providers.Machine) { m.Credentials.Password = "" },
		"no user":     func(m *providers.Machine) { m.Credentials.Username = "" },
		"bad pin":     func(m *providers.Machine) { m.Fingerprint = "00:11" },
	} {
		good := s.m
		spoil(&s.m)
		if r := s.read(); r.Power != fencing.Unknown || r.Failure.Kind != fencing.Misconfigured {
			t.Errorf("%s: %v, failure %v: %s", name, r.Power, r.Failure.Kind, r.Failure.Message)
		}
		if err := s.powerOff(); kindOf(err) != fencing.Misconfigured {
			t.Errorf("%s: %v", name, err)
		}
		s.m = good
	}
	if n := len(s.Requests()); n != 0 {
		t.Errorf("%d requests", n)
	}
}
