package fencing_test

import (
	"testing"
	"time"

	"github.com/nodefence/nodefence/fencing"
)

// fenced is a case whose proof, from second 116 to 131, needs the short hold: the
// machine was powered off by second 111.
func fenced(t *testing.T) (fencing.Policy, fencing.Case, fencing.Observation) {
	t.Helper()
	p := policy()
	p.Mode = fencing.Fence
	c := feed(p, fencing.Case{}, reading(15, fencing.On))
	c = decide(p, c, 50, nil).Case
	c = feed(p, c, reading(110, fencing.On))
	c = decide(p, c, 111, func(o *fencing.Observation) {
		o.PowerOff = &fencing.PowerOffResult{Attempt: 1, StartedAt: at(110.3), EndedAt: at(111)}
	}).Case
	c = feed(p, c, offReadings(116, 131)...)
	wantState(t, c, fencing.Tainting)
	return p, c, silent(131.2)
}

// TestCheckHoldAfterPowerOff: Check finds by itself whether the short hold may be
// used, whatever Decide thought (S1, S5).
func TestCheckHoldAfterPowerOff(t *testing.T) {
	p, c, o := fenced(t)
	if got := fencing.Check(p, c, o, fencing.ActionTaint); len(got) != 0 {
		t.Fatalf("refused as it is: %v", got)
	}
	edit := func(name string, e func(*fencing.Case)) violation {
		return violation{name, "S1", "span", func(_ *fencing.Policy, c *fencing.Case, _ *fencing.Observation) { e(c) }}
	}
	for _, v := range []violation{
		edit("no power-off", func(c *fencing.Case) { c.PowerOff.Attempts = 0 }),
		edit("under way", func(c *fencing.Case) { c.PowerOff.EndedAt = time.Time{} }),
		edit("refused", func(c *fencing.Case) { c.PowerOff.Failure.Kind = fencing.Forbidden }),
		edit("ended after the first Off was asked for", func(c *fencing.Case) { c.PowerOff.EndedAt = at(116) }),
		edit("another Off before", func(c *fencing.Case) { c.PowerOff.FirstOffAt = at(112) }),
		edit("no first Off", func(c *fencing.Case) { c.PowerOff.FirstOffAt = time.Time{} }),
		edit("another Off before, among the readings", func(c *fencing.Case) {
			c.Readings = append([]fencing.Evidence{{Reading: reading(112, fencing.Off)}}, c.Readings...)
		}),
		{"too long after", "S1", "span", func(p *fencing.Policy, _ *fencing.Case, _ *fencing.Observation) { p.PowerOffRetry = 5 * time.Second }},
		{"too short even for that", "S1", "span", func(p *fencing.Policy, _ *fencing.Case, _ *fencing.Observation) {
			p.HoldAfterPowerOff = 15 * time.Second
		}},
	} {
		v.try(t, p, c, o, fencing.ActionTaint)
	}
}

// TestCheckBounds: what is just enough is enough, so that a limit in the
// configuration means what it says.
func TestCheckBounds(t *testing.T) {
	for _, b := range []struct {
		name  string
		exact func(*fencing.Policy, *fencing.Case, *fencing.Observation)
	}{
		{"just as many readings", func(p *fencing.Policy, c *fencing.Case, _ *fencing.Observation) { p.Readings = len(c.Readings) }},
		{"just as long a span", func(p *fencing.Policy, c *fencing.Case, _ *fencing.Observation) {
			p.Hold = c.Readings[len(c.Readings)-1].AskedAt.Sub(c.Readings[0].AnsweredAt)
		}},
		{"asked for at this moment", func(_ *fencing.Policy, c *fencing.Case, o *fencing.Observation) {
			o.Now = c.Readings[len(c.Readings)-1].AskedAt
		}},
		{"just as many nodes not Ready", func(p *fencing.Policy, _ *fencing.Case, o *fencing.Observation) {
			o.Cluster.NotReady = p.Budget.Limit(o.Cluster.Nodes)
		}},
		{"gaps just as long as freshness", func(p *fencing.Policy, c *fencing.Case, o *fencing.Observation) {
			p.Freshness = c.Readings[1].AskedAt.Sub(c.Readings[0].AnsweredAt)
			o.Now = c.Readings[len(c.Readings)-1].AnsweredAt
		}},
	} {
		t.Run(b.name, func(t *testing.T) {
			p, c, o := tainting(t)
			b.exact(&p, &c, &o)
			if got := fencing.Check(p, c, o, fencing.ActionTaint); len(got) != 0 {
				t.Errorf("%v", got)
			}
		})
	}
	p, c, o := fenced(t)
	p.PowerOffRetry = c.Readings[len(c.Readings)-4].AnsweredAt.Sub(c.PowerOff.EndedAt)
	if got := fencing.Check(p, c, o, fencing.ActionTaint); len(got) != 0 {
		t.Errorf("the first Off just as late as a power-off may show: %v", got)
	}
}
