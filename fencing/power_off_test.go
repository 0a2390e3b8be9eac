package fencing_test

import (
	"testing"
	"time"

	"github.com/nodefence/nodefence/fencing"
)

// hung is a case of a machine that is on while its node is Unknown since second
// 15.1, in mode Fence: the power-off is due at second 75.1.
func hung() (fencing.Policy, fencing.Case) {
	p := policy()
	p.Mode = fencing.Fence
	return p, feed(p, fencing.Case{}, reading(15, fencing.On))
}

// nowOn lets the machine be read On at a moment, and decides about that.
func nowOn(p fencing.Policy, c fencing.Case, second float64, change func(*fencing.Observation)) fencing.Decision {
	return decide(p, c, second+0.1, func(o *fencing.Observation) {
		r := reading(second, fencing.On)
		o.Reading = &r
		if change != nil {
			change(o)
		}
	})
}

// TestPowerOffGrace: a machine that runs has its grace from when the node was not
// Ready, however late it answered; one that restarts has it from the restart.
func TestPowerOffGrace(t *testing.T) {
	p, c := hung()
	failed := reading(60, fencing.Unknown)
	failed.Failure = fencing.Failure{Kind: fencing.TimedOut}
	late := feed(p, c, failed)
	if has(nowOn(p, late, 74.9, nil), fencing.ActionPowerOff) {
		t.Error("powered off within the grace")
	}
	if d := nowOn(p, late, 75, nil); !has(d, fencing.ActionPowerOff) {
		t.Errorf("not powered off after the grace: %s, %s", d.Case.Verdict.Message, d.Case.Hold.Reason)
	}
	restarted := func(o *fencing.Observation) { o.Reading.Hints.LastReset = at(69) }
	k := nowOn(p, c, 70, restarted).Case
	if k.Verdict.Kind != fencing.Rebooting {
		t.Fatalf("verdict %s", k.Verdict.Kind)
	}
	for second, want := range map[float64]bool{80: false, 129.9: false, 130: true} {
		if got := has(nowOn(p, k, second, restarted), fencing.ActionPowerOff); got != want {
			t.Errorf("restarted at 70, power-off at %v: %t", second, got)
		}
	}
}

// TestPowerOffAttempts: not one more than the policy allows, in whatever state.
func TestPowerOffAttempts(t *testing.T) {
	p, c := hung()
	for attempts, want := range []bool{0: true, 1: true, 2: true, 3: false, 4: false} {
		c.PowerOff.Attempts = attempts
		d := nowOn(p, c, 120, nil)
		if has(d, fencing.ActionPowerOff) != want || (d.Case.Hold.Reason == fencing.ReasonPowerOffFailed) == want {
			t.Errorf("after %d of %d attempts: power-off %t, held for %q", attempts, p.PowerOffAttempts, !want, d.Case.Hold.Reason)
		}
	}
}

// TestPowerOffOfTheUnproved: an unproved identity forbids it, unless the group
// allows that.
func TestPowerOffOfTheUnproved(t *testing.T) {
	for _, allowed := range []bool{false, true} {
		p, c := hung()
		p.AllowUnproved = allowed
		d := nowOn(p, c, 120, func(o *fencing.Observation) {
			o.Reading.Identity, o.Expected = fencing.Identity{}, fencing.Expectation{}
		})
		if got := has(d, fencing.ActionPowerOff); got != allowed {
			t.Errorf("allowed %t: power-off %t", allowed, got)
		}
	}
}

// TestPowerOffNeedsFreshReading: the newest reading of On is young when it is used.
func TestPowerOffNeedsFreshReading(t *testing.T) {
	p, c := hung()
	c = feed(p, c, reading(70, fencing.On))
	for now, want := range map[float64]bool{80: true, 80.1: false} {
		if got := has(decide(p, c, now, nil), fencing.ActionPowerOff); got != want {
			t.Errorf("a reading of second 70 at %v: power-off %t", now, got)
		}
	}
}

// TestPowerOffResults: only the outcome of the attempt under way counts, once.
func TestPowerOffResults(t *testing.T) {
	p, c := hung()
	c = nowOn(p, c, 110, nil).Case
	wantState(t, c, fencing.PoweringOffMachine)
	second := c
	second.PowerOff.Attempts = 2
	ended := c
	ended.PowerOff.EndedAt = at(111)
	ok := fencing.PowerOffResult{Attempt: 1, StartedAt: at(110.2), EndedAt: at(112)}
	for _, k := range []struct {
		name string
		c    fencing.Case
		edit func(*fencing.PowerOffResult)
		want time.Time
	}{
		{"of this attempt", c, func(*fencing.PowerOffResult) {}, at(112)},
		{"of an earlier attempt", second, func(*fencing.PowerOffResult) {}, time.Time{}},
		{"of a later attempt", c, func(r *fencing.PowerOffResult) { r.Attempt = 2 }, time.Time{}},
		{"begun before it was intended", c, func(r *fencing.PowerOffResult) { r.StartedAt = at(109) }, time.Time{}},
		{"a second time", ended, func(*fencing.PowerOffResult) {}, at(111)},
	} {
		t.Run(k.name, func(t *testing.T) {
			r := ok
			k.edit(&r)
			d := decide(p, k.c, 112, func(o *fencing.Observation) { o.PowerOff = &r })
			if !d.Case.PowerOff.EndedAt.Equal(k.want) {
				t.Errorf("ended at %s, want %s", d.Case.PowerOff.EndedAt, k.want)
			}
		})
	}
}

// TestBudgetAfterPowerOff: a case that has powered a machine off has its place in
// the budget already; others in action do not hold its taint.
func TestBudgetAfterPowerOff(t *testing.T) {
	p, c := hung()
	c = nowOn(p, c, 110, nil).Case
	c = decide(p, c, 111, func(o *fencing.Observation) {
		o.PowerOff = &fencing.PowerOffResult{Attempt: 1, StartedAt: at(110.3), EndedAt: at(111)}
	}).Case
	c = feed(p, c, offReadings(116, 126)...)
	d := decide(p, c, 131.1, func(o *fencing.Observation) {
		r := reading(131, fencing.Off)
		o.Reading, o.Cluster.InAction = &r, p.Budget.MaxConcurrent
	})
	if !has(d, fencing.ActionTaint) {
		t.Errorf("held for %q", d.Case.Hold.Reason)
	}
	d = decide(p, proven(t, p), 50.1, func(o *fencing.Observation) {
		r := reading(50, fencing.Off)
		o.Reading, o.Cluster.InAction = &r, p.Budget.MaxConcurrent
	})
	if has(d, fencing.ActionTaint) || d.Case.Hold.Reason != fencing.ReasonBudget {
		t.Errorf("without a power-off: taint %t, held for %q", has(d, fencing.ActionTaint), d.Case.Hold.Reason)
	}
}
