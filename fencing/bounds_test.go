package fencing_test

import (
	"testing"
	"time"

	"github.com/nodefence/nodefence/fencing"
)

// TestStormBound: as many nodes not Ready as the budget allows are no storm; one
// more is (S6).
func TestStormBound(t *testing.T) {
	for _, over := range []int{0, 1} {
		p := policy()
		c := proven(t, p)
		d := decide(p, c, 50.1, func(o *fencing.Observation) {
			r := reading(50, fencing.Off)
			o.Reading = &r
			o.Cluster.NotReady = p.Budget.Limit(o.Cluster.Nodes) + over
		})
		if storm := d.Case.Hold.Reason == fencing.ReasonStorm; storm != (over > 0) || has(d, fencing.ActionTaint) == storm {
			t.Errorf("%d over the limit: held for %q, taint %t", over, d.Case.Hold.Reason, has(d, fencing.ActionTaint))
		}
	}
}

// TestRefusedCredentialsSlowDown: an account is not locked by our own asking.
func TestRefusedCredentialsSlowDown(t *testing.T) {
	p := policy()
	c := feed(p, fencing.Case{}, reading(15, fencing.On))
	now := 20.0
	for refusals, want := range []time.Duration{p.ReadInterval, p.ReadInterval, p.ReadInterval, time.Minute, time.Minute, time.Minute, 5 * time.Minute, 5 * time.Minute} {
		if refusals > 0 {
			r := reading(now, fencing.Unknown)
			r.Failure = fencing.Failure{Kind: fencing.Unauthorized, Message: "401"}
			c = feed(p, c, r)
		}
		e, _ := c.Newest()
		for _, early := range []time.Duration{time.Millisecond, 0} {
			d := decide(p, c, e.AskedAt.Add(want-early).Sub(t0).Seconds(), nil)
			if got := has(d, fencing.ActionRead); got != (early == 0) {
				t.Errorf("after %d refusals, %s before %s: read %t", refusals, early, want, got)
			}
		}
		now = e.AskedAt.Add(want).Sub(t0).Seconds()
	}
}

// TestTimelineIsBounded: the first entry and the newest ones are kept, and not
// fewer than there is room for.
func TestTimelineIsBounded(t *testing.T) {
	p := policy()
	c := feed(p, fencing.Case{}, reading(15, fencing.On))
	first := c.Timeline[0]
	for i := range 200 {
		power := []fencing.PowerState{fencing.On, fencing.Suspended}[i%2]
		c = feed(p, c, reading(20+5*float64(i), power))
		if want := len(c.Timeline); want > fencing.MaxTimeline {
			t.Fatalf("%d entries", want)
		}
	}
	if len(c.Timeline) != fencing.MaxTimeline || c.Timeline[0] != first {
		t.Errorf("%d entries, the first is %+v", len(c.Timeline), c.Timeline[0])
	}
	if last := c.Timeline[len(c.Timeline)-1]; last.At.Before(at(1000)) {
		t.Errorf("the last entry is of %s", last.At)
	}
}

// TestUntaintWithoutBootID: a boot ID that is not known is no new boot. The taint
// stays until it must go in any case, and then people are told (S10).
func TestUntaintWithoutBootID(t *testing.T) {
	for _, k := range []struct{ name, before, after string }{
		{"none before", "", "boot-2"}, {"none now", "boot-1", ""}, {"none at all", "", ""},
	} {
		t.Run(k.name, func(t *testing.T) {
			p, c, see := tainted(t)
			c.BootID = k.before
			back := func(now float64) fencing.Observation {
				o := ready(see(now))
				o.Node.BootID = k.after
				return o
			}
			c = fencing.Decide(p, c, back(100)).Case
			wantState(t, c, fencing.Recovering)
			late := 100 + p.MaxWait.Seconds()
			for _, now := range []float64{100 + p.StableFor.Seconds(), late - 0.1} {
				d := fencing.Decide(p, c, back(now))
				if has(d, fencing.ActionUntaint) {
					t.Fatalf("untainted at %v", now)
				}
				c = d.Case
			}
			d := fencing.Decide(p, c, back(late))
			if !has(d, fencing.ActionUntaint) || !has(d, fencing.ActionAlert) {
				t.Errorf("after %s: untaint %t, alert %t", p.MaxWait, has(d, fencing.ActionUntaint), has(d, fencing.ActionAlert))
			}
		})
	}
}

// TestTaintGoneWhileNotReady: a taint that goes while the node is silent again is
// the end of the case only if it was ours to remove.
func TestTaintGoneWhileNotReady(t *testing.T) {
	for _, k := range []struct {
		from, want fencing.CaseState
		hold       fencing.Reason
	}{
		{fencing.Untainting, fencing.Closed, ""},
		{fencing.Recovering, fencing.Recovering, fencing.ReasonTaintRemoved},
		{fencing.Tainted, fencing.Tainted, fencing.ReasonTaintRemoved},
	} {
		t.Run(k.from.String(), func(t *testing.T) {
			p, c, see := tainted(t)
			c.State = k.from
			o := see(60)
			o.Node.Taint = fencing.TaintFacts{}
			d := fencing.Decide(p, c, o)
			wantState(t, d.Case, k.want)
			if d.Case.Hold.Reason != k.hold {
				t.Errorf("held for %q, want %q", d.Case.Hold.Reason, k.hold)
			}
		})
	}
}

// TestLateButReady: while the control plane still calls the node Ready, a case
// that waits waits no more, and one that is held stays so until it is clear why.
func TestLateButReady(t *testing.T) {
	p := policy()
	c := feed(p, fencing.Case{}, reading(15, fencing.On))
	back := func(o *fencing.Observation) { o.Node.Ready = fencing.ReadyTrue }
	waiting := c
	waiting.Hold = fencing.Hold{Since: at(10)}
	if got := decide(p, waiting, 20, back).Case.Hold; got != (fencing.Hold{}) {
		t.Errorf("it waits still: %+v", got)
	}
	held := c
	held.Hold = fencing.Hold{Reason: fencing.ReasonPoweredOn, Since: at(10), AlertedAt: at(19)}
	if got := decide(p, held, 20, back).Case.Hold; got != held.Hold {
		t.Errorf("the hold became %+v", got)
	}
}
