package providertest

import (
	"testing"
	"time"

	"github.com/nodefence/nodefence/fencing"
)

// testPowerOff: the machine goes off, and then reads off.
func testPowerOff(t *testing.T, h Harness) {
	s := start(t, h)
	if err := s.powerOff(t); err != nil {
		t.Fatalf("power off: %v", err)
	}
	s.awaitOff(t)
}

// testPowerOffWhenOff: off is off; a refusal for that reason is no error.
func testPowerOffWhenOff(t *testing.T, h Harness) {
	s := start(t, h)
	s.end.Set(fencing.Off)
	for range 2 {
		if err := s.powerOff(t); err != nil {
			t.Errorf("power off of a machine that is off: %v", err)
		}
		if got := s.end.Get(); got != fencing.Off {
			t.Fatalf("it was brought to %v", got)
		}
	}
	if reason := h.Lacks[RefusesWhenOff]; reason != "" {
		t.Logf("NOT RUN: refusal when off: %s", reason)
		return
	}
	s.end.Play(RefusesWhenOff)
	if err := s.powerOff(t); err != nil {
		t.Errorf("the refusal of a machine that is off: %v", err)
	}
}

// testPowerOffFaults: what stands in the way is an error of a fitting kind, by
// the deadline.
func testPowerOffFaults(t *testing.T, h Harness) {
	for _, f := range faults {
		t.Run(string(f.name), func(t *testing.T) {
			h.needs(t, f.name)
			s := start(t, h)
			s.end.Play(f.name)
			s.timeout = s.h.Impatient
			s.allowMute = true
			err := s.powerOff(t)
			if f.name == NoState && err == nil {
				return // the state is not needed to power off
			}
			s.wantError(t, err, f.kinds...)
		})
	}
}

// awaitOff: only readings prove that a machine is off.
func (s *subject) awaitOff(t *testing.T) {
	t.Helper()
	end := time.Now().Add(s.h.Timeout)
	for {
		r := s.read(t)
		if r.SaysOff() {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("after power off the reading says %v, failure %v: %s", r.Power, r.Failure.Kind, r.Failure.Message)
		}
		time.Sleep(20 * time.Millisecond)
	}
	if got := s.end.Get(); got != fencing.Off {
		t.Errorf("the reading says Off and the machine is %v", got)
	}
}
