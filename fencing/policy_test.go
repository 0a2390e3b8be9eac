package fencing_test

import (
	"strings"
	"testing"
	"time"

	"github.com/nodefence/nodefence/fencing"
)

func TestDefaultPolicyIsValid(t *testing.T) {
	if errs := fencing.DefaultPolicy().Validate(); len(errs) != 0 {
		t.Errorf("%v", errs)
	}
	if m := fencing.DefaultPolicy().Mode; m != fencing.Confirm {
		t.Errorf("mode %s", m)
	}
}

// TestPolicyBounds tries the last value that is allowed and the first that is not.
func TestPolicyBounds(t *testing.T) {
	type policy = fencing.Policy
	durations := func(field string, set func(*policy, time.Duration), least, most time.Duration) (cases []bound) {
		return []bound{
			{field, func(p *policy) { set(p, least) }, true}, {field, func(p *policy) { set(p, least-1) }, false},
			{field, func(p *policy) { set(p, most) }, true}, {field, func(p *policy) { set(p, most+1) }, false},
		}
	}
	var cases []bound
	add := func(b ...bound) { cases = append(cases, b...) }
	add(durations("SuspectAfter", func(p *policy, d time.Duration) { p.SuspectAfter = d }, time.Second, time.Hour)...)
	add(durations("Hold", func(p *policy, d time.Duration) { p.Hold = d }, time.Second, time.Hour)...)
	add(durations("HoldAfterPowerOff", func(p *policy, d time.Duration) { p.HoldAfterPowerOff = d }, time.Second, time.Hour)...)
	add(durations("Freshness", func(p *policy, d time.Duration) {
		p.Freshness, p.ReadInterval, p.ReadTimeout = d, 500*time.Millisecond, time.Second/2
	}, time.Second, time.Minute)...)
	add(durations("ReadInterval", func(p *policy, d time.Duration) { p.ReadInterval = d }, 100*time.Millisecond, 10*time.Second-1)...)
	add(durations("ReadTimeout", func(p *policy, d time.Duration) { p.ReadTimeout = d }, 100*time.Millisecond, 10*time.Second)...)
	add(durations("HoldAfter", func(p *policy, d time.Duration) { p.HoldAfter = d }, 0, time.Hour)...)
	add(durations("AlertEvery", func(p *policy, d time.Duration) { p.AlertEvery = d }, time.Second, 24*time.Hour)...)
	add(durations("PowerOffAfter", func(p *policy, d time.Duration) { p.PowerOffAfter = d }, 0, time.Hour)...)
	add(durations("PowerOffTimeout", func(p *policy, d time.Duration) { p.PowerOffTimeout = d }, 100*time.Millisecond, 5*time.Minute)...)
	add(durations("PowerOffRetry", func(p *policy, d time.Duration) { p.PowerOffRetry = d }, time.Second, time.Hour)...)
	add(durations("StableFor", func(p *policy, d time.Duration) { p.StableFor, p.MaxWait = d, 2*time.Hour }, 0, time.Hour)...)
	add(durations("MaxWait", func(p *policy, d time.Duration) { p.StableFor, p.MaxWait = 0, d }, time.Second, 24*time.Hour)...)
	number := func(field string, v int, ok bool, set func(*policy, int)) {
		add(bound{field, func(p *policy) { set(p, v) }, ok})
	}
	for v, ok := range map[int]bool{-1: false, 1: false, 2: true, fencing.MaxReadings: true, fencing.MaxReadings + 1: false} {
		number("Readings", v, ok, func(p *policy, v int) { p.Readings = v })
	}
	for v, ok := range map[int]bool{-1: false, 0: false, 1: true} {
		number("PowerOffAttempts", v, ok, func(p *policy, v int) { p.PowerOffAttempts = v })
		number("Budget.MaxConcurrent", v, ok, func(p *policy, v int) { p.Budget.MaxConcurrent = v })
		number("Budget.MaxUnhealthy", v, ok, func(p *policy, v int) { p.Budget.MaxUnhealthy = v })
	}
	add(
		bound{"Mode", func(p *policy) { p.Mode = fencing.Fence }, true},
		bound{"Mode", func(p *policy) { p.Mode = 3 }, false},
		bound{"ReadInterval", func(p *policy) { p.ReadInterval = p.Freshness }, false},
		bound{"ReadTimeout", func(p *policy) { p.ReadTimeout = p.Freshness + 1 }, false},
		bound{"StableFor", func(p *policy) { p.StableFor = p.MaxWait }, true},
		bound{"StableFor", func(p *policy) { p.StableFor = p.MaxWait + 1 }, false},
		bound{"Budget.MaxUnhealthy", func(p *policy) { p.Budget.MaxUnhealthy = 100 }, true},
		bound{"Budget.MaxUnhealthy", func(p *policy) { p.Budget.MaxUnhealthy = 101 }, false},
		bound{"Budget.MaxUnhealthy", func(p *policy) { p.Budget.MaxUnhealthy, p.Budget.MaxUnhealthyPercent = 101, false }, true},
	)
	for i, c := range cases {
		c.try(t, i)
	}
}

// bound is a value at the edge of what a field allows.
type bound struct {
	field string
	set   func(*fencing.Policy)
	ok    bool
}

func (c bound) try(t *testing.T, i int) {
	t.Helper()
	p := fencing.DefaultPolicy()
	c.set(&p)
	errs := p.Validate()
	if c.ok {
		if len(errs) > 0 {
			t.Errorf("case %d: %v", i, errs)
		}
		return
	}
	for _, e := range errs {
		if e.Field == c.field && strings.HasPrefix(e.Error(), c.field+": ") && e.Problem != "" {
			return
		}
	}
	t.Errorf("case %d: %s is not refused, but %v", i, c.field, errs)
}

func TestBudgetLimit(t *testing.T) {
	percent := func(n int) fencing.Budget { return fencing.Budget{MaxUnhealthy: n, MaxUnhealthyPercent: true} }
	for _, c := range []struct {
		budget      fencing.Budget
		total, want int
	}{
		{fencing.Budget{MaxUnhealthy: 3}, 100, 3}, {fencing.Budget{MaxUnhealthy: 3}, 0, 3},
		{percent(40), 10, 4}, {percent(40), 9, 3}, {percent(40), 1, 1}, {percent(1), 5, 1}, {percent(100), 7, 7}, {percent(40), 0, 1},
	} {
		if got := c.budget.Limit(c.total); got != c.want {
			t.Errorf("%+v of %d: %d, want %d", c.budget, c.total, got, c.want)
		}
	}
}
