package redfish_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/nodefence/nodefence/fencing"
	"github.com/nodefence/nodefence/providers"
	"github.com/nodefence/nodefence/providers/providertest/labend"
	"github.com/nodefence/nodefence/test/lab"
	rf "github.com/nodefence/nodefence/test/lab/redfishbmc"
)

const (
	password = "cAnArY-s3cret/&+\"x" // with what escapes differently in URL and JSON
	uuid     = "4c4c4544-0035-3410-8050-c6c04f314733"
	serial   = "5A41GS3"
)

// bench is a service with machines, and a driver that speaks to it.
type bench struct {
	*rf.BMC
	t        testing.TB
	machines []*lab.Machine
	driver   providers.Driver
	m        providers.Machine
	timeout  time.Duration
}

// newBench has one machine for each identity; the first is the Node's. Names are
// alike, as on real devices.
func newBench(t testing.TB, options string, ids ...fencing.Identity) *bench {
	t.Helper()
	if len(ids) == 0 {
		ids = []fencing.Identity{{UUID: uuid, Serial: serial}}
	}
	s := &bench{t: t, timeout: 5 * time.Second}
	var systems []rf.System
	for _, id := range ids {
		m := lab.New(lab.Config{Name: "m", UUID: lab.MustUUID(id.UUID), Serial: id.Serial, Running: true, ShutdownTime: time.Hour})
		t.Cleanup(m.Close)
		s.machines = append(s.machines, m)
		systems = append(systems, rf.System{Machine: m})
	}
	var err error
	s.BMC, err = rf.Start(rf.Config{
		Systems:  systems,
		Accounts: []rf.Account{{Name: "fencer", Password: password, Role: rf.Operator}, {Name: "watcher", Password: password, Role: rf.ReadOnly}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.BMC.Close() })
	s.driver = newDriver(t, s.BMC, options)
	s.m = providers.Machine{
		Node: "node-1", Address: s.URL(),
		Expected:    fencing.Expectation{Identity: ids[0]},
		Credentials: providers.Credentials{Username: "fencer", Password: password},
	}
	return s
}

func (s *bench) read() fencing.Reading {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), s.timeout)
	defer cancel()
	began := time.Now()
	r := s.driver.Read(ctx, s.m)
	s.inTime(began)
	noSecret(s.t, r)
	if r.Failed() && (r.Power != fencing.Unknown || len(r.Failure.Message) < 20) {
		s.t.Errorf("%v with failure %v: %q", r.Power, r.Failure.Kind, r.Failure.Message)
	}
	return r
}

func (s *bench) powerOff() error {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), s.timeout)
	defer cancel()
	began := time.Now()
	err := s.driver.PowerOff(ctx, s.m)
	s.inTime(began)
	noSecret(s.t, err)
	return err
}

func (s *bench) inTime(began time.Time) {
	s.t.Helper()
	if took := time.Since(began); took > s.timeout+200*time.Millisecond {
		s.t.Errorf("it took %v, and the deadline was %v", took, s.timeout)
	}
}

// commands counts the requests that would change power.
func (s *bench) commands() (n int) {
	for _, r := range s.Requests() {
		if strings.Contains(r.Path, "/Actions/") {
			n++
		}
	}
	return n
}

// noSessions: what was opened is closed, at once or soon.
func (s *bench) noSessions() {
	s.t.Helper()
	for range 100 {
		if s.OpenSessions() == 0 {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	s.t.Errorf("%d sessions are left open", s.OpenSessions())
}

// noSecret looks for the password in every form in which v can be printed.
func noSecret(t testing.TB, v any) {
	t.Helper()
	inJSON, _ := json.Marshal(v)
	texts := []string{fmt.Sprintf("%v %+v %#v %s", v, v, v, inJSON)}
	for err, _ := v.(error); err != nil; err = errors.Unwrap(err) {
		texts = append(texts, fmt.Sprintf("%v %+v %#v", err, err, err))
	}
	for _, text := range texts {
		if strings.Contains(text, "cAnArY") {
			t.Errorf("a secret is shown: %s", text)
		}
	}
}

// kindOf is the kind of a driver's error.
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
	{"web page for the log-in", rf.HTMLBody.At(rf.AreaSessions), fencing.Malformed, "X-Auth-Token"},
	{"web page for the root", rf.HTMLBody.At(rf.AreaRoot), fencing.Malformed, "web page"},
	{"web page for the collection", rf.HTMLBody.At(rf.AreaCollection), fencing.Malformed, "web page"},
	{"null", rf.NullBody, fencing.Malformed, "no object"},
	{"nothing", rf.EmptyBody, fencing.Malformed, "is empty"},
	{"empty object", rf.EmptyObject, fencing.Malformed, "@odata.id"},
	{"half", rf.TruncatedJSON, fencing.Malformed, "half-way"},
	{"cut half-way", rf.CutHalfway, fencing.Failed, "closed the connection"},
	{"cut at once", rf.CutAtOnce, fencing.Failed, "closed the connection"},
	{"dies after the log-in", rf.CutAtOnce.At(rf.AreaCollection | rf.AreaSystem), fencing.Failed, "closed the connection"},
	{"one megabyte", rf.Megabyte, fencing.Malformed, "too long"},
	{"endless", rf.EndlessBody, fencing.Malformed, "too long"},
	{"endless root", rf.EndlessBody.At(rf.AreaRoot), fencing.Malformed, "too long"},
	{"never", rf.HangForever, fencing.TimedOut, "within the deadline"},
	{"never, after the log-in", rf.HangForever.At(rf.AreaSystem), fencing.TimedOut, "within the deadline"},
	{"never to the log-in", rf.HangForever.At(rf.AreaSessions), fencing.TimedOut, "log-in"},
	{"slow", rf.Slow(3 * time.Second), fencing.TimedOut, "within the deadline"},
	{"401", rf.Unauthorized, fencing.Unauthorized, "name and password"},
	{"401 in the session", rf.Unauthorized.At(rf.AreaSystem), fencing.Unauthorized, "HTTP 401"},
	{"403", rf.Forbidden, fencing.Forbidden, "privilege"},
	{"404", rf.NotFound, fencing.NotFound, "inventory"},
	{"404 for the log-in", rf.NotFound.At(rf.AreaSessions), fencing.NotFound, "log-in"},
	{"500", rf.InternalError, fencing.Failed, "HTTP 500"},
	{"503", rf.Unavailable(30 * time.Second), fencing.Busy, "later"},
	{"iLO not ready", rf.HPENotReady, fencing.Busy, "ResourceNotReadyRetry"},
	{"iDRAC not ready", rf.IDRACNotReady, fencing.Busy, "SWC0700"},
	{"no session to be had", rf.SessionLimit, fencing.Busy, "RAC0218"},
	{"redirect to another host", rf.Redirect(302, "https://other.invalid"), fencing.Failed, "other.invalid"},
	{"permanent redirect", rf.Redirect(308, "https://other.invalid"), fencing.Failed, "not followed"},
	{"log-in redirected by 301", rf.SessionRedirect(301, "https://other.invalid"), fencing.Failed, "other.invalid"},
	{"log-in redirected by 307", rf.SessionRedirect(307, "https://other.invalid"), fencing.Failed, "other.invalid"},
	{"state null", rf.PowerStateNull, fencing.Malformed, "null"},
	{"state missing", rf.PowerStateMissing, fencing.Malformed, "no PowerState"},
	{"state Reset", rf.PowerStateText("Reset"), fencing.Malformed, `"Reset"`},
	{"state off", rf.PowerStateText("off"), fencing.Malformed, `"off"`},
	{"state a number", rf.PowerStateValue(0), fencing.Malformed, "no text"},
	{"state an object", rf.PowerStateValue(map[string]any{"PowerState": "Off"}), fencing.Malformed, "no text"},
	{"root without systems", rf.RootWithoutSystems, fencing.NotFound, "names no Systems"},
	{"no members", rf.NoMembers, fencing.Malformed, "no Members"},
	{"no system", rf.EmptyCollection, fencing.NotFound, "no system"},
	{"member null", rf.MemberNull, fencing.Malformed, "no link"},
	{"member {}", rf.MemberEmpty, fencing.Malformed, "no link"},
	{"member without id", rf.MemberEmptyID, fencing.Malformed, "no link"},
	{"member is the root", rf.MemberIsRoot, fencing.Malformed, "no link"},
	{"another type", rf.WrongODataType, fencing.Malformed, "#Chassis"},
	{"another path", rf.WrongODataID, fencing.Malformed, "another"},
}

// TestFaults: each fault, with the machine on and off, is Unknown with a message
// that says what it was; no session is left; and it is forgotten when it is over.
func TestFaults(t *testing.T) {
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			s := newBench(t, "")
			for _, truth := range []fencing.PowerState{fencing.On, fencing.Off} {
				s.driver = newDriver(t, s.BMC, "") // one that remembers no root
				labend.SetPower(s.machines[0], truth)
				s.Set(f.quirk)
				s.timeout = 600 * time.Millisecond
				r := s.read()
				if r.Power != fencing.Unknown || r.Failure.Kind != f.kind || !strings.Contains(r.Failure.Message, f.says) {
					t.Errorf("%v: %v, failure %v (wanted %v, %q): %s", truth, r.Power, r.Failure.Kind, f.kind, f.says, r.Failure.Message)
				}
				if r.SaysOff() {
					t.Error("it counts as Off")
				}
				s.Clear()
				s.timeout = 5 * time.Second
				s.noSessions()
				if r := s.read(); r.Failed() || r.Power != truth {
					t.Errorf("healed: %v, failure %v: %s", r.Power, r.Failure.Kind, r.Failure.Message)
				}
			}
		})
	}
}

// TestBusyAsksToWait: what it asks for is handed on, within bounds.
func TestBusyAsksToWait(t *testing.T) {
	s := newBench(t, "")
	for asked, want := range map[time.Duration]time.Duration{30 * time.Second: 30 * time.Second, 24 * time.Hour: 5 * time.Minute} {
		s.Set(rf.Unavailable(asked))
		if r := s.read(); r.Failure.Kind != fencing.Busy || r.Failure.RetryAfter != want {
			t.Errorf("asked for %v: %v, retry after %v", asked, r.Failure.Kind, r.Failure.RetryAfter)
		}
	}
}

// TestEndlessTakesLittleMemory: whatever is sent, it is cut at the limit.
func TestEndlessTakesLittleMemory(t *testing.T) {
	s := newBench(t, "")
	s.Set(rf.EndlessBody)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	s.read()
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 32<<20 {
		t.Errorf("%d MiB were allocated for an endless answer", got>>20)
	}
}

// TestForgottenSession: the endpoint restarts between log-in and question. There
// is no second log-in: it would look the same with a locked account.
func TestForgottenSession(t *testing.T) {
	s := newBench(t, "")
	s.read()
	opened := s.SessionsOpened()
	s.Set(rf.UnauthorizedNowAndThen(2))
	if r := s.read(); r.Failure.Kind != fencing.Unauthorized || s.SessionsOpened() != opened+1 {
		t.Errorf("%v, %d log-ins: %s", r.Failure.Kind, s.SessionsOpened()-opened, r.Failure.Message)
	}
}

// TestSlowLogInIsClosed: a session that comes to be after nobody waits for it
// any more is closed all the same, or a slow endpoint would fill with them.
func TestSlowLogInIsClosed(t *testing.T) {
	s := newBench(t, "")
	s.Set(rf.Slow(500 * time.Millisecond).At(rf.AreaSessions))
	s.timeout = 300 * time.Millisecond
	if r := s.read(); r.Failure.Kind != fencing.TimedOut {
		t.Errorf("%v: %s", r.Failure.Kind, r.Failure.Message)
	}
	for range 200 {
		if s.SessionsOpened() == 1 && s.OpenSessions() == 0 {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("%d sessions opened, %d left", s.SessionsOpened(), s.OpenSessions())
}

// TestSessionDeleteFails: a DELETE that answers 500 does not spoil the reading.
func TestSessionDeleteFails(t *testing.T) {
	s := newBench(t, "")
	s.Set(rf.SessionDeleteFails)
	if r := s.read(); r.Failed() || r.Power != fencing.On {
		t.Errorf("%v, failure %v: %s", r.Power, r.Failure.Kind, r.Failure.Message)
	}
}
