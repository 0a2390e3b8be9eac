package fencing_test

import (
	"testing"
	"time"

	"github.com/nodefence/nodefence/fencing"
)

type (
	pol  = *fencing.Policy
	cas  = *fencing.Case
	obse = *fencing.Observation
)

// poweringOff is a case with a stored intent to power off, and what the last look
// sees: Check lets it pass.
func poweringOff(t *testing.T) (fencing.Policy, fencing.Case, fencing.Observation) {
	t.Helper()
	p := policy()
	p.Mode = fencing.Fence
	c := feed(p, fencing.Case{}, reading(15, fencing.On))
	c = decide(p, c, 50, nil).Case
	r := reading(110, fencing.On)
	d := decide(p, c, 110.2, func(o *fencing.Observation) { o.Reading = &r })
	if !has(d, fencing.ActionPowerOff) {
		t.Fatalf("state %s", d.Case.State)
	}
	return p, d.Case, silent(110.5)
}

func TestCheckPowerOff(t *testing.T) {
	p, c, o := poweringOff(t)
	if got := fencing.Check(p, c, o, fencing.ActionPowerOff); len(got) != 0 {
		t.Fatalf("refused as it is: %v", got)
	}
	last := len(c.Readings) - 1
	for _, v := range append(violationsOfAll,
		violation{"mode Confirm", "S5", "Confirm", func(p pol, _ cas, _ obse) { p.Mode = fencing.Confirm }},
		violation{"mode Observe", "S5", "Observe", func(p pol, _ cas, _ obse) { p.Mode = fencing.Observe }},
		violation{"state Suspected", "S9", "Suspected", func(_ pol, c cas, _ obse) { c.State = fencing.Suspected }},
		violation{"no intent", "S9", "not stored", func(_ pol, c cas, _ obse) { c.PowerOff.IntendedAt = time.Time{} }},
		violation{"ended already", "S9", "not stored", func(_ pol, c cas, _ obse) { c.PowerOff.EndedAt = at(110) }},
		violation{"an attempt too many", "S5", "attempt 4 of 3", func(_ pol, c cas, _ obse) { c.PowerOff.Attempts = 4 }},
		violation{"a control plane", "S7", "control plane", func(_ pol, _ cas, o obse) { o.Node.ControlPlane = true }},
		violation{"a storm", "S6", "5 of 10", func(_ pol, _ cas, o obse) { o.Cluster.NotReady = 5 }},
		violation{"an unknown cluster", "S6", "of 0", func(_ pol, _ cas, o obse) { o.Cluster.Nodes = 0 }},
		violation{"tainted", "S10", "already", func(_ pol, _ cas, o obse) { o.Node.Taint.Present = true }},
		violation{"Ready", "S4", "True", func(_ pol, _ cas, o obse) { o.Node.Ready = fencing.ReadyTrue }},
		violation{"paused", "S5", "by me", func(_ pol, _ cas, o obse) { o.Node.Paused = "by me" }},
		violation{"no Lease", "S4", "does not exist", func(_ pol, _ cas, o obse) { o.Lease.Exists = false }},
		violation{"within the grace period", "S5", "not Ready for", func(p pol, _ cas, _ obse) { p.PowerOffAfter = 96 * time.Second }},
		violation{"no clock of not Ready", "S5", "not Ready for", func(_ pol, c cas, _ obse) { c.NotReadySince = time.Time{} }},
		violation{"a Lease that is renewed", "S5", "renewed", func(_ pol, _ cas, o obse) { o.Lease.SeenAt = at(100) }},
		violation{"never read", "S5", "never read", func(_ pol, c cas, _ obse) { c.Readings = nil }},
		violation{"another machine", "S3", "another machine", func(_ pol, _ cas, o obse) { o.Expected.UUID = otherUUID }},
		violation{"another machine, although unproved ones are allowed", "S3", "another machine", func(p pol, _ cas, o obse) {
			p.AllowUnproved, o.Expected.UUID = true, otherUUID
		}},
		violation{"unproved", "S3", "no system UUID", func(_ pol, _ cas, o obse) { o.Expected.UUID = "" }},
		violation{"a failed reading", "S5", "TimedOut", func(_ pol, c cas, _ obse) { c.Readings[last].Failure.Kind = fencing.TimedOut }},
		violation{"Off", "S5", "reads Off", func(_ pol, c cas, _ obse) { c.Readings[last].Power = fencing.Off }},
		violation{"Suspended", "S5", "reads Suspended", func(_ pol, c cas, _ obse) { c.Readings[last].Power = fencing.Suspended }},
		violation{"Unknown", "S5", "reads Unknown", func(_ pol, c cas, _ obse) { c.Readings[last].Power = fencing.Unknown }},
		violation{"stale", "S5", "old", func(_ pol, _ cas, o obse) { o.Now = at(136) }},
		violation{"from the future", "S5", "old", func(_ pol, _ cas, o obse) { o.Now = at(109) }},
	) {
		v.try(t, p, c, o, fencing.ActionPowerOff)
	}
	p.AllowUnproved, o.Expected.UUID = true, ""
	if got := fencing.Check(p, c, o, fencing.ActionPowerOff); len(got) != 0 {
		t.Errorf("unproved but allowed: %v", got)
	}
}

func TestCheckUntaint(t *testing.T) {
	p, c, see := tainted(t)
	c = fencing.Decide(p, c, ready(see(100))).Case
	c = fencing.Decide(p, c, ready(see(101))).Case
	c = fencing.Decide(p, c, ready(see(131))).Case
	wantState(t, c, fencing.Untainting)
	o := ready(see(131))
	if got := fencing.Check(p, c, o, fencing.ActionUntaint); len(got) != 0 {
		t.Fatalf("refused as it is: %v", got)
	}
	for _, v := range append(violationsOfAll,
		violation{"somebody else's taint", "S10", "not this case's", func(_ pol, _ cas, o obse) { o.Node.Taint.Case = "" }},
		violation{"another case's taint", "S10", "not this case's", func(_ pol, _ cas, o obse) { o.Node.Taint.Case = "n1-other" }},
		violation{"state Recovering", "S9", "Recovering", func(_ pol, c cas, _ obse) { c.State = fencing.Recovering }},
		violation{"state Tainted", "S9", "Tainted", func(_ pol, c cas, _ obse) { c.State = fencing.Tainted }},
		violation{"no intent", "S9", "not stored", func(_ pol, c cas, _ obse) { c.Taint.UntaintIntendedAt = time.Time{} }},
		violation{"not Ready", "S10", "Unknown", func(_ pol, _ cas, o obse) { o.Node.Ready = fencing.ReadyUnknown }},
		violation{"no clock of Ready", "S10", "Ready condition", func(_ pol, c cas, _ obse) { c.ReadySince = time.Time{} }},
		violation{"not stable yet", "S10", "are needed", func(_ pol, _ cas, o obse) { o.Now = at(129.9) }},
		violation{"the same boot", "S10", "boot ID", func(_ pol, _ cas, o obse) { o.Node.BootID = "boot-1" }},
		violation{"no boot ID", "S10", "boot ID", func(_ pol, _ cas, o obse) { o.Node.BootID = "" }},
		violation{"no boot ID before", "S10", "boot ID", func(_ pol, c cas, _ obse) { c.BootID = "" }},
		violation{"a pod left", "S10", "1 pods", func(_ pol, _ cas, o obse) { o.Workloads.Leaving = []string{"db-0"} }},
		violation{"a volume left", "S10", "1 volumes", func(_ pol, _ cas, o obse) { o.Workloads.Attachments = []string{"vol-1"} }},
		violation{"workloads unknown", "S10", "not everything", func(_ pol, _ cas, o obse) { o.Workloads.Known = false }},
	) {
		v.try(t, p, c, o, fencing.ActionUntaint)
	}
}

// TestCheckUntaintPasses: what must not keep a taint on a live node.
func TestCheckUntaintPasses(t *testing.T) {
	p, c, see := tainted(t)
	untainting := fencing.Decide(p, c, ready(see(100))).Case
	untainting.State, untainting.Taint.UntaintIntendedAt = fencing.Untainting, at(400)
	overdue := ready(see(400))
	overdue.Node.BootID, overdue.Workloads = "", fencing.Workloads{}
	distrusted := c
	distrusted.State = fencing.Distrusted
	at60 := see(60)
	at60.Workloads = fencing.Workloads{}
	for _, k := range []struct {
		name string
		c    fencing.Case
		o    fencing.Observation
	}{{"overdue", untainting, overdue}, {"distrusted", distrusted, at60}} {
		if got := fencing.Check(p, k.c, k.o, fencing.ActionUntaint); len(got) != 0 {
			t.Errorf("%s: %v", k.name, got)
		}
		k.o.Node.Taint.Case = "n1-other"
		if got := fencing.Check(p, k.c, k.o, fencing.ActionUntaint); len(got) == 0 {
			t.Errorf("%s: another case's taint may be removed", k.name)
		}
	}
	overdue.Node.Ready = fencing.ReadyFalse
	if got := fencing.Check(p, untainting, overdue, fencing.ActionUntaint); len(got) == 0 {
		t.Error("overdue, but not Ready: may be removed")
	}
}
