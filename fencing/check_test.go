package fencing_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nodefence/nodefence/fencing"
)

// violation breaks one thing in what Check lets pass.
type violation struct {
	name  string
	rule  string
	words string
	brk   func(*fencing.Policy, *fencing.Case, *fencing.Observation)
}

func (v violation) try(t *testing.T, p fencing.Policy, c fencing.Case, o fencing.Observation, a fencing.ActionKind) {
	t.Helper()
	t.Run(v.name, func(t *testing.T) {
		c.Readings = append([]fencing.Evidence(nil), c.Readings...)
		v.brk(&p, &c, &o)
		got := fencing.Check(p, c, o, a)
		for _, g := range got {
			if g.Rule == v.rule && strings.Contains(g.Error(), v.words) {
				return
			}
		}
		t.Errorf("%s is not refused for %s (%q), but: %v", a, v.rule, v.words, got)
	})
}

// violationsOfAll are what forbids each of the irrevocable actions.
var violationsOfAll = []violation{
	{"no Node", "S4", "does not exist", func(_ *fencing.Policy, _ *fencing.Case, o *fencing.Observation) { o.Node.Exists = false }},
	{"another Node", "S4", "UID", func(_ *fencing.Policy, _ *fencing.Case, o *fencing.Observation) { o.Node.UID = "uid-2" }},
	{"a case without UID", "S4", "UID", func(_ *fencing.Policy, c *fencing.Case, o *fencing.Observation) { c.NodeUID, o.Node.UID = "", "" }},
}

func TestCheckTaint(t *testing.T) {
	p, c, o := tainting(t)
	if got := fencing.Check(p, c, o, fencing.ActionTaint); len(got) != 0 {
		t.Fatalf("refused as it is: %v", got)
	}
	last := len(c.Readings) - 1
	vs := append(slices.Clone(violationsOfAll),
		violation{"mode Observe", "S5", "Observe", func(p *fencing.Policy, _ *fencing.Case, _ *fencing.Observation) { p.Mode = fencing.Observe }},
		violation{"a mode that there is not", "S5", "Mode(9)", func(p *fencing.Policy, _ *fencing.Case, _ *fencing.Observation) { p.Mode = 9 }},
		violation{"state Suspected", "S9", "Suspected", func(_ *fencing.Policy, c *fencing.Case, _ *fencing.Observation) { c.State = fencing.Suspected }},
		violation{"state Distrusted", "S9", "Distrusted", func(_ *fencing.Policy, c *fencing.Case, _ *fencing.Observation) { c.State = fencing.Distrusted }},
		violation{"no intent", "S9", "not stored", func(_ *fencing.Policy, c *fencing.Case, _ *fencing.Observation) { c.Taint.IntendedAt = time.Time{} }},
		violation{"Ready", "S4", "True", func(_ *fencing.Policy, _ *fencing.Case, o *fencing.Observation) { o.Node.Ready = fencing.ReadyTrue }},
		violation{"no Ready condition", "S4", "missing", func(_ *fencing.Policy, _ *fencing.Case, o *fencing.Observation) { o.Node.Ready = fencing.ReadyMissing }},
		violation{"paused", "S5", "by me", func(_ *fencing.Policy, _ *fencing.Case, o *fencing.Observation) { o.Node.Paused = "by me" }},
		violation{"no Lease", "S4", "does not exist", func(_ *fencing.Policy, _ *fencing.Case, o *fencing.Observation) { o.Lease.Exists = false }},
		violation{"a Lease that was never renewed", "S4", "never renewed", func(_ *fencing.Policy, c *fencing.Case, o *fencing.Observation) {
			o.Lease.RenewedAt, c.Streak.LeaseRenewedAt = time.Time{}, time.Time{}
		}},
		violation{"the Lease renewed", "S4", "was renewed", func(_ *fencing.Policy, _ *fencing.Case, o *fencing.Observation) { o.Lease.RenewedAt = at(50) }},
		violation{"tainted already", "S10", "already", func(_ *fencing.Policy, _ *fencing.Case, o *fencing.Observation) { o.Node.Taint.Present = true }},
		violation{"another boot", "S11", "boot-2", func(_ *fencing.Policy, _ *fencing.Case, o *fencing.Observation) { o.Node.BootID = "boot-2" }},
		violation{"a storm", "S6", "5 of 10", func(_ *fencing.Policy, _ *fencing.Case, o *fencing.Observation) { o.Cluster.NotReady = 5 }},
		violation{"an unknown cluster", "S6", "of 0", func(_ *fencing.Policy, _ *fencing.Case, o *fencing.Observation) { o.Cluster = fencing.ClusterFacts{} }},
		violation{"no reading", "S1", "no clean Off", func(_ *fencing.Policy, c *fencing.Case, _ *fencing.Observation) { c.Readings = nil }},
		violation{"no streak", "S1", "no clean Off", func(_ *fencing.Policy, c *fencing.Case, _ *fencing.Observation) { c.Streak = fencing.Streak{} }},
		violation{"too few readings", "S1", "8 consecutive", func(p *fencing.Policy, _ *fencing.Case, _ *fencing.Observation) { p.Readings = 9 }},
		violation{"too short a span", "S1", "span", func(p *fencing.Policy, _ *fencing.Case, _ *fencing.Observation) { p.Hold = 35 * time.Second }},
		violation{"readings older than the streak", "S1", "span", func(_ *fencing.Policy, c *fencing.Case, _ *fencing.Observation) {
			c.Streak.First = c.Readings[3].AnsweredAt
		}},
		violation{"stale", "S1", "old", func(_ *fencing.Policy, _ *fencing.Case, o *fencing.Observation) { o.Now = at(60.1) }},
		violation{"from the future", "S1", "old", func(_ *fencing.Policy, _ *fencing.Case, o *fencing.Observation) { o.Now = at(49.9) }},
		violation{"the identity not the expected one", "S1", "no clean Off", func(_ *fencing.Policy, _ *fencing.Case, o *fencing.Observation) { o.Expected.UUID = otherUUID }},
		violation{"the UUID shared by now", "S1", "no clean Off", func(_ *fencing.Policy, _ *fencing.Case, o *fencing.Observation) { o.Expected.SharedUUID = true }},
	)
	edit := func(name string, i int, words string, e func(*fencing.Evidence)) {
		vs = append(vs, violation{name, "S1", words, func(_ *fencing.Policy, c *fencing.Case, _ *fencing.Observation) { e(&c.Readings[i]) }})
	}
	for _, power := range []fencing.PowerState{fencing.Unknown, fencing.On, fencing.PoweringOn, fencing.PoweringOff, fencing.Suspended} {
		edit(power.String()+" in between", 4, "span", func(e *fencing.Evidence) { e.Power = power })
		edit(power.String()+" at last", last, "no clean Off", func(e *fencing.Evidence) { e.Power = power })
	}
	edit("a failure in between", 4, "span", func(e *fencing.Evidence) { e.Failure.Kind = fencing.TimedOut })
	edit("a conflict in between", 4, "span", func(e *fencing.Evidence) { e.Hints.Conflict = "the chassis is On" })
	edit("another machine in between", 4, "span", func(e *fencing.Evidence) { e.Identity.UUID = otherUUID })
	edit("no identity in between", 4, "span", func(e *fencing.Evidence) { e.Identity = fencing.Identity{} })
	edit("another provider in between", 4, "span", func(e *fencing.Evidence) { e.Provider = "pdu" })
	edit("another address in between", 4, "span", func(e *fencing.Evidence) { e.Address = "https://bmc-2" })
	edit("a reset in between", 4, "span", func(e *fencing.Evidence) { e.Hints.LastReset = at(30) })
	edit("a gap", 4, "span", func(e *fencing.Evidence) { e.AskedAt, e.AnsweredAt = at(24.9), at(24.9) })
	edit("readings out of order", 4, "span", func(e *fencing.Evidence) { e.AskedAt, e.AnsweredAt = at(20), at(36) })
	edit("a time before its question", 0, "span", func(e *fencing.Evidence) { e.AnsweredAt = time.Time{} })
	for _, v := range vs {
		v.try(t, p, c, o, fencing.ActionTaint)
	}
}

func TestCheckTaintPasses(t *testing.T) {
	for _, ch := range []violation{
		{name: "mode Fence", brk: func(p *fencing.Policy, _ *fencing.Case, _ *fencing.Observation) { p.Mode = fencing.Fence }},
		{name: "Ready False", brk: func(_ *fencing.Policy, _ *fencing.Case, o *fencing.Observation) { o.Node.Ready = fencing.ReadyFalse }},
		{name: "the identity in another order", brk: func(_ *fencing.Policy, _ *fencing.Case, o *fencing.Observation) {
			o.Expected.UUID = "44454C4C-3500-1034-8050-C6C04F314733"
		}},
		{name: "unproved but allowed", brk: func(p *fencing.Policy, _ *fencing.Case, o *fencing.Observation) {
			p.AllowUnproved, o.Expected = true, fencing.Expectation{}
		}},
		{name: "just fresh", brk: func(_ *fencing.Policy, _ *fencing.Case, o *fencing.Observation) { o.Now = at(60) }},
	} {
		t.Run(ch.name, func(t *testing.T) {
			p, c, o := tainting(t)
			ch.brk(&p, &c, &o)
			if got := fencing.Check(p, c, o, fencing.ActionTaint); len(got) != 0 {
				t.Errorf("%v", got)
			}
		})
	}
}

// TestCheckLongProof: a proof of more readings than are kept is still a proof, by
// its first reading and the newest ones; without the first it is none.
func TestCheckLongProof(t *testing.T) {
	p := policy()
	p.Hold = 4 * time.Minute
	c := feed(p, fencing.Case{}, offReadings(15, 260)...)
	wantState(t, c, fencing.Tainting)
	if len(c.Readings) != fencing.MaxReadings || !c.Readings[0].AskedAt.Equal(at(15)) {
		t.Fatalf("%d readings, the first of %s", len(c.Readings), c.Readings[0].AskedAt)
	}
	o := silent(260.2)
	if got := fencing.Check(p, c, o, fencing.ActionTaint); len(got) != 0 {
		t.Errorf("%v", got)
	}
	violation{"a gap later on", "S1", "span", func(_ *fencing.Policy, c *fencing.Case, _ *fencing.Observation) {
		c.Readings[5].AskedAt, c.Readings[5].AnsweredAt = at(179), at(179)
	}}.try(t, p, c, o, fencing.ActionTaint)
	violation{"a reading less", "S1", "span", func(_ *fencing.Policy, c *fencing.Case, _ *fencing.Observation) {
		c.Readings = append(c.Readings[:1], c.Readings[2:]...)
	}}.try(t, p, c, o, fencing.ActionTaint)
	violation{"without the first", "S1", "span", func(_ *fencing.Policy, c *fencing.Case, _ *fencing.Observation) { c.Readings = c.Readings[1:] }}.
		try(t, p, c, o, fencing.ActionTaint)
}

func TestCheckKnowsItsActions(t *testing.T) {
	p, c, o := tainting(t)
	for _, a := range []fencing.ActionKind{fencing.ActionRead, fencing.ActionAlert} {
		if got := fencing.Check(p, c, o, a); len(got) != 0 {
			t.Errorf("%s: %v", a, got)
		}
	}
	for _, a := range []fencing.ActionKind{0, fencing.ActionAlert + 1, 255} {
		if got := fencing.Check(p, c, o, a); len(got) == 0 {
			t.Errorf("action %d passes", a)
		}
	}
}
