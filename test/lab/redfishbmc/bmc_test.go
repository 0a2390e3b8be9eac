package redfishbmc_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/nodefence/nodefence/test/lab"
	rf "github.com/nodefence/nodefence/test/lab/redfishbmc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench is a machine, its controller, and a client that trusts the lab's CA.
type bench struct {
	*rf.BMC
	m      *lab.Machine
	client *http.Client
	token  string
}

func start(t *testing.T) *bench {
	t.Helper()
	m := lab.New(lab.Config{
		Name: "m1", UUID: lab.MustUUID("00112233-4455-6677-8899-aabbccddeeff"),
		Running: true, ShutdownTime: 80 * time.Millisecond,
	})
	t.Cleanup(m.Close)
	return serve(t, m, rf.Config{Systems: []rf.System{{Machine: m}}, CycleOff: 50 * time.Millisecond, MaxSessions: 2})
}

func serve(t *testing.T, m *lab.Machine, cfg rf.Config) *bench {
	t.Helper()
	b, err := rf.Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: b.CAPool(), MinVersion: tls.VersionTLS12}}
	t.Cleanup(func() {
		tr.CloseIdleConnections()
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return &bench{BMC: b, m: m, client: &http.Client{
		Transport: tr, Timeout: 5 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

type answer struct {
	status int
	header http.Header
	body   []byte
	doc    map[string]any
	err    error
}

func (b *bench) ask(method, path, user string, body any, header ...string) answer {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	data, _ := json.Marshal(body)
	r, err := http.NewRequestWithContext(ctx, method, b.URL()+path, bytes.NewReader(data))
	if err != nil {
		return answer{err: err}
	}
	if user != "" {
		r.SetBasicAuth(user, user+"pass")
	} else if b.token != "" {
		r.Header.Set("X-Auth-Token", b.token)
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := b.client.Do(r)
	if err != nil {
		return answer{err: err}
	}
	defer func() { _ = resp.Body.Close() }()
	a := answer{status: resp.StatusCode, header: resp.Header}
	a.body, a.err = io.ReadAll(io.LimitReader(resp.Body, 8<<20))
	_ = json.Unmarshal(a.body, &a.doc)
	return a
}

func (b *bench) system() answer { return b.ask("GET", b.SystemURI("1"), "admin", nil) }

func (b *bench) power() any { return b.system().doc["PowerState"] }

func (b *bench) reset(user, kind string, header ...string) answer {
	return b.ask("POST", b.SystemURI("1")+"/Actions/ComputerSystem.Reset", user, map[string]any{"ResetType": kind}, header...)
}

func TestSystemTellsTheMachine(t *testing.T) {
	b := start(t)
	a := b.system()
	if a.err != nil || a.status != 200 {
		t.Fatalf("%d %v %s", a.status, a.err, a.body)
	}
	for property, want := range map[string]any{
		"@odata.id": "/redfish/v1/Systems/1", "UUID": b.m.UUID().String(), "SerialNumber": "SN-m1",
		"PowerState": "On", "PowerRestorePolicy": "AlwaysOff",
		"LastResetTime": b.m.State().LastReset.UTC().Format(time.RFC3339),
	} {
		if got := a.doc[property]; got != want {
			t.Errorf("%s is %v, want %v", property, got, want)
		}
	}
	if a.header.Get("ETag") != a.doc["@odata.etag"] {
		t.Error("the ETag header differs from the property")
	}
	for _, path := range []string{"/redfish", "/redfish/v1", "/redfish/v1/", "/redfish/v1/odata"} {
		if a := b.ask("GET", path, "", nil); a.status != 200 {
			t.Errorf("%s without authentication: %d", path, a.status)
		}
	}
	for _, path := range []string{"/redfish/v1/Systems", "/redfish/v1/Chassis/1", "/redfish/v1/Managers/1", "/redfish/v1/SessionService"} {
		if a := b.ask("GET", path, "reader", nil); a.status != 200 || a.doc["@odata.id"] != path {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
		if a := b.ask("GET", path, "", nil); a.status != 401 {
			t.Errorf("%s without authentication: %d", path, a.status)
		}
	}
	if a := b.ask("GET", b.SystemURI("2"), "admin", nil); a.status != 404 {
		t.Errorf("a system that is not there: %d", a.status)
	}
	_ = b.m.PowerLoss("test")
	if got := b.power(); got != "Off" {
		t.Errorf("PowerState %v after the loss of power", got)
	}
}

func TestSessions(t *testing.T) {
	b := start(t)
	login := func(user, pass string) answer {
		return b.ask("POST", "/redfish/v1/SessionService/Sessions", "", map[string]any{"UserName": user, "Password": pass})
	}
	if a := login("admin", "wrong"); a.status != 401 || b.OpenSessions() != 0 {
		t.Errorf("a wrong password: %d", a.status)
	}
	first := login("admin", "adminpass")
	if first.status != 201 || b.OpenSessions() != 1 {
		t.Fatalf("login: %d %s", first.status, first.body)
	}
	b.token = first.header.Get("X-Auth-Token")
	if a := b.ask("GET", b.SystemURI("1"), "", nil); a.status != 200 {
		t.Errorf("by the session: %d", a.status)
	}
	last := b.Requests()[len(b.Requests())-1]
	if last.Session != "1" || last.User != "admin" || last.Status != 200 || last.Method != "GET" {
		t.Errorf("the log says %+v", last)
	}
	login("reader", "readerpass")
	if a := login("admin", "adminpass"); a.status != 503 || !strings.Contains(string(a.body), "RAC0218") {
		t.Errorf("one session too many: %d %s", a.status, a.body)
	}
	location := first.header.Get("Location")
	b.Set(rf.SessionDeleteFails)
	if a := b.ask("DELETE", location, "", nil); a.status != 500 || b.OpenSessions() != 2 {
		t.Errorf("a DELETE that fails: %d", a.status)
	}
	b.Clear()
	if a := b.ask("DELETE", location, "", nil); a.status != 204 || b.OpenSessions() != 1 {
		t.Errorf("DELETE: %d, %d sessions", a.status, b.OpenSessions())
	}
	if a := b.ask("GET", b.SystemURI("1"), "", nil); a.status != 401 {
		t.Errorf("by a closed session: %d", a.status)
	}
}

func TestResetAndRoles(t *testing.T) {
	b := start(t)
	if a := b.reset("reader", "ForceOff"); a.status != 403 || b.m.Power() != lab.On {
		t.Errorf("a reader's ForceOff: %d", a.status)
	}
	if a := b.reset("operator", "ForceOff"); a.status != 204 || b.m.Power() != lab.Off {
		t.Errorf("ForceOff: %d, the machine is %s", a.status, b.m.Power())
	}
	if by := b.m.State().LastOffBy; by != "redfish:operator" {
		t.Errorf("switched off by %q", by)
	}
	for kind, want := range map[string]int{"ForceOff": 204, "ForceRestart": 409, "GracefulShutdown": 409, "Nonsense": 400} {
		if a := b.reset("admin", kind); a.status != want {
			t.Errorf("%s of a machine that is off: %d, want %d", kind, a.status, want)
		}
	}
	if a := b.reset("admin", "On"); a.status != 204 || b.m.Power() != lab.On {
		t.Errorf("On: %d", a.status)
	}
	if a := b.reset("admin", "ForceRestart", "If-Match", `"old"`); a.status != 412 {
		t.Errorf("an old ETag: %d", a.status)
	}
	if a := b.reset("admin", "ForceRestart", "If-Match", b.system().header.Get("ETag")); a.status != 204 {
		t.Errorf("the right ETag: %d %s", a.status, a.body)
	}
	if a := b.reset("admin", "GracefulShutdown"); a.status != 204 || b.power() != "PoweringOff" {
		t.Errorf("GracefulShutdown: %d", a.status)
	}
	eventually(t, "off", func() bool { return b.power() == "Off" })
	_ = b.m.PowerOn("test")
	if a := b.reset("admin", "PowerCycle"); a.status != 204 || b.power() != "Off" {
		t.Errorf("PowerCycle: %d", a.status)
	}
	eventually(t, "on again", func() bool { return b.power() == "On" })
	n := 0
	for _, r := range b.Requests() {
		if r.ResetType != "" {
			n++
		}
	}
	if n != 9 { // the reader's and the old ETag's were refused before they were read
		t.Errorf("%d commands in the log", n)
	}
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(3 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never %s", what)
		}
	}
}

func TestCertificates(t *testing.T) {
	b := start(t)
	good := b.Fingerprint()
	for kind, text := range map[rf.Certificate]string{
		rf.CertExpired: "expired", rf.CertSelfSigned: "unknown authority", rf.CertOtherName: "doesn't contain any IP SANs",
	} {
		if err := b.SetCertificate(kind); err != nil {
			t.Fatal(err)
		}
		b.client.CloseIdleConnections()
		a := b.system()
		if a.err == nil || !(strings.Contains(a.err.Error(), text) || kind == rf.CertSelfSigned) {
			t.Errorf("kind %d: %v", kind, a.err)
		}
		if b.Fingerprint() == good {
			t.Errorf("kind %d has the good one's fingerprint", kind)
		}
	}
	if err := b.SetCertificate(rf.CertGood); err != nil {
		t.Fatal(err)
	}
	if a := b.system(); a.err != nil || b.Fingerprint() != good {
		t.Errorf("the good one again: %v", a.err)
	}
}

func TestSeveralSystemsInOneChassis(t *testing.T) {
	host := lab.New(lab.Config{Name: "dgx", Running: true})
	board := lab.New(lab.Config{Name: "board", Running: true})
	t.Cleanup(host.Close)
	t.Cleanup(board.Close)
	b := serve(t, host, rf.Config{Systems: []rf.System{
		{ID: "DGX", Machine: host}, {ID: "HGX_Baseboard_0", Machine: board},
	}})
	b.Set(rf.MembersRotate())
	first := func() any {
		a := b.ask("GET", "/redfish/v1/Systems", "admin", nil)
		return a.doc["Members"].([]any)[0].(map[string]any)["@odata.id"]
	}
	if one, two := first(), first(); one == two {
		t.Errorf("the order does not change: %v", one)
	}
	_ = host.ForceOff("test")
	for id, want := range map[string]string{"DGX": "Off", "HGX_Baseboard_0": "On"} {
		a := b.ask("GET", b.SystemURI(id), "admin", nil)
		if a.doc["PowerState"] != want || a.doc["Name"] != "System" {
			t.Errorf("%s: %s", id, a.body)
		}
	}
	if a := b.ask("GET", "/redfish/v1/Chassis/1", "admin", nil); a.doc["PowerState"] != "On" {
		t.Errorf("chassis: %s", a.body)
	}
}

func TestConfigIsChecked(t *testing.T) {
	for name, cfg := range map[string]rf.Config{"no system": {}, "no machine": {Systems: []rf.System{{}}}} {
		if b, err := rf.Start(cfg); err == nil {
			_ = b.Close()
			t.Errorf("%s: no error", name)
		}
	}
}
