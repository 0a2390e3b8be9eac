package providertest

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/nodefence/nodefence/fencing"
)

// Run puts a driver through the suite.
func Run(t *testing.T, h Harness) {
	h = h.checked(t)
	before := goleak.IgnoreCurrent()
	for _, test := range []struct {
		name string
		run  func(*testing.T, Harness)
	}{
		{"power", testPower},
		{"cycle", testCycle},
		{"transitional", testTransitional},
		{"suspended", testSuspended},
		{"identity in every byte order", testIdentityOrders},
		{"no identity", testNoIdentity},
		{"wrong machine", testWrongMachine},
		{"wrong password", testWrongPassword},
		{"reader", testReader},
		{"power off", testPowerOff},
		{"power off when off", testPowerOffWhenOff},
		{"power off under faults", testPowerOffFaults},
		{"faults", testFaults},
		{"slow", testSlow},
		{"old answers", testOldAnswers},
		{"cancelled", testCancelled},
		{"concurrent", testConcurrent},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, h) })
	}
	// After the endpoints are closed, what still runs belongs to the driver.
	if err := goleak.Find(before); err != nil {
		t.Errorf("the driver leaves goroutines behind: %v", err)
	}
}

// testPower: the state is read as it is, and as it changes.
func testPower(t *testing.T, h Harness) {
	s := start(t, h)
	for _, want := range []fencing.PowerState{fencing.On, fencing.Off, fencing.On} {
		s.end.Set(want)
		r := s.read(t)
		if r.Failed() || r.Power != want {
			t.Errorf("the machine is %v, the reading says %v, failure %v: %s", want, r.Power, r.Failure.Kind, r.Failure.Message)
		}
		if r.Hints.Conflict != "" {
			t.Errorf("a conflict on a healthy machine: %s", r.Hints.Conflict)
		}
		if r.Driver == "" {
			t.Error("the reading does not name its driver")
		}
		if r.Raw == "" {
			t.Error("the reading carries no raw answer")
		}
	}
}

// testCycle: within a power cycle a machine is off, and that is what a driver
// says. Whether it stays off is for others to judge.
func testCycle(t *testing.T, h Harness) {
	s := start(t, h)
	for range 2 {
		s.end.Set(fencing.Off)
		if r := s.read(t); r.Power != fencing.Off {
			t.Errorf("within a cycle the reading says %v, failure %v: %s", r.Power, r.Failure.Kind, r.Failure.Message)
		}
		s.end.Set(fencing.On)
		if r := s.read(t); r.Power != fencing.On {
			t.Errorf("after a cycle the reading says %v, failure %v: %s", r.Power, r.Failure.Kind, r.Failure.Message)
		}
	}
}

// testTransitional: a machine that shuts down still writes.
func testTransitional(t *testing.T, h Harness) {
	h.needs(t, PoweringOff)
	s := start(t, h)
	s.end.Set(fencing.PoweringOff)
	if r := s.read(t); r.Power == fencing.Off || r.Failed() {
		t.Errorf("a machine that is powering off reads %v, failure %v: %s", r.Power, r.Failure.Kind, r.Failure.Message)
	}
}

// testSuspended: a suspended machine resumes with its old memory (S12).
func testSuspended(t *testing.T, h Harness) {
	h.needs(t, Suspended)
	s := start(t, h)
	s.end.Set(fencing.Suspended)
	if r := s.read(t); r.Power == fencing.Off || r.Failed() {
		t.Errorf("a suspended machine reads %v, failure %v: %s", r.Power, r.Failure.Kind, r.Failure.Message)
	}
}

// testReader: reading needs no more than a read-only account, and such an
// account cannot power off.
func testReader(t *testing.T, h Harness) {
	h.needs(t, Accounts, Privileges)
	s := start(t, h)
	s.m.Credentials = s.spec.Reader
	r := s.read(t)
	if r.Failed() || r.Power != fencing.On {
		t.Errorf("with a read-only account: %v, failure %v: %s", r.Power, r.Failure.Kind, r.Failure.Message)
	}
	if match, why := s.m.Expected.Match(r.Identity); h.Lacks[Identity] == "" && match != fencing.IdentityProved {
		t.Errorf("a read-only account gets no identity: %v: %s", match, why)
	}
	s.wantError(t, s.powerOff(t), fencing.Forbidden)
	if got := s.end.Get(); got != fencing.On {
		t.Errorf("a read-only account brought the machine to %v", got)
	}
}

// testWrongPassword: refused is said to be refused, and one call costs one
// attempt, because controllers lock accounts out.
func testWrongPassword(t *testing.T, h Harness) {
	h.needs(t, Accounts)
	s := start(t, h)
	s.m.Credentials.Password = canary("wrong")
	attempts := func() int {
		if h.Lacks[CountsLogIns] != "" {
			return 0
		}
		return s.end.LogIns()
	}
	before := attempts()
	r := s.read(t)
	if r.Power != fencing.Unknown || r.Failure.Kind != fencing.Unauthorized {
		t.Errorf("with a wrong password: %v, failure %v: %s", r.Power, r.Failure.Kind, r.Failure.Message)
	}
	s.wantError(t, s.powerOff(t), fencing.Unauthorized)
	if h.Lacks[CountsLogIns] == "" {
		if got := attempts() - before; got != 2 {
			t.Errorf("two calls with a wrong password made %d attempts to log in", got)
		}
	} else {
		t.Logf("NOT RUN: attempts are not counted: %s", h.Lacks[CountsLogIns])
	}
	s.m.Credentials.Username = "nobody"
	if r := s.read(t); r.Power != fencing.Unknown || r.Failure.Kind != fencing.Unauthorized {
		t.Errorf("with an unknown user: %v, failure %v: %s", r.Power, r.Failure.Kind, r.Failure.Message)
	}
	if got := s.end.Get(); got != fencing.On {
		t.Errorf("a wrong password brought the machine to %v", got)
	}
}
