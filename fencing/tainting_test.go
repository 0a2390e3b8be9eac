package fencing_test

import (
	"testing"

	"github.com/nodefence/nodefence/fencing"
)

// TestIntentIsWithdrawn: each single thing that speaks against the taint takes the
// stored intent back (S4, S5, S6, S10).
func TestIntentIsWithdrawn(t *testing.T) {
	for name, change := range map[string]func(*fencing.Policy, *fencing.Observation){
		"a foreign taint":        func(_ *fencing.Policy, o *fencing.Observation) { o.Node.Taint = fencing.TaintFacts{Present: true} },
		"Ready again":            func(_ *fencing.Policy, o *fencing.Observation) { o.Node.Ready = fencing.ReadyTrue },
		"no Ready condition":     func(_ *fencing.Policy, o *fencing.Observation) { o.Node.Ready = fencing.ReadyMissing },
		"paused":                 func(_ *fencing.Policy, o *fencing.Observation) { o.Node.Paused = "by me" },
		"no Lease":               func(_ *fencing.Policy, o *fencing.Observation) { o.Lease.Exists = false },
		"mode Observe":           func(p *fencing.Policy, _ *fencing.Observation) { p.Mode = fencing.Observe },
		"a storm":                func(_ *fencing.Policy, o *fencing.Observation) { o.Cluster.NotReady = 9 },
		"the machine on":         func(_ *fencing.Policy, o *fencing.Observation) { r := reading(51, fencing.On); o.Reading = &r },
		"no answer":              func(_ *fencing.Policy, o *fencing.Observation) { r := reading(51, fencing.Unknown); o.Reading = &r },
		"another machine":        func(_ *fencing.Policy, o *fencing.Observation) { o.Expected.UUID = otherUUID },
		"the UUID shared by now": func(_ *fencing.Policy, o *fencing.Observation) { o.Expected.SharedUUID = true },
		"no address any more":    func(_ *fencing.Policy, o *fencing.Observation) { o.Unaddressed = "no group" },
	} {
		t.Run(name, func(t *testing.T) {
			p, c, o := tainting(t)
			o.Now = at(51.2)
			change(&p, &o)
			d := fencing.Decide(p, c, o)
			if has(d, fencing.ActionTaint) || d.Case.State == fencing.Tainting || d.Case.Taint != (fencing.TaintRecord{}) {
				t.Errorf("state %s, taint asked for: %t, record %+v", d.Case.State, has(d, fencing.ActionTaint), d.Case.Taint)
			}
		})
	}
}

// TestOldProofIsRenewed: a proof that has only grown old, as after a change of
// leader, is neither used nor given up before the next reading.
func TestOldProofIsRenewed(t *testing.T) {
	p, c, _ := tainting(t)
	d := decide(p, c, 61, nil)
	wantState(t, d.Case, fencing.Tainting)
	if has(d, fencing.ActionTaint) || !has(d, fencing.ActionRead) {
		t.Errorf("taint %t, read %t", has(d, fencing.ActionTaint), has(d, fencing.ActionRead))
	}
	exact := p
	exact.Readings = c.Streak.Count
	wantState(t, decide(exact, c, 61, nil).Case, fencing.Tainting)
	short := feed(p, d.Case, reading(62, fencing.Off)) // after a gap: a streak of one
	wantState(t, short, fencing.Suspected)
}

// TestLeaseOfTheDead: a renewal between two Off readings of a tainted machine is a
// contradiction when both are of one provider and not too far apart (S11).
func TestLeaseOfTheDead(t *testing.T) {
	for _, k := range []struct {
		name   string
		second float64
		change func(*fencing.Reading)
		want   bool
	}{
		{"at the next reading", 85, func(*fencing.Reading) {}, true},
		{"as late as a calm reading may be", 115, func(*fencing.Reading) {}, true},
		{"later than that", 115.2, func(*fencing.Reading) {}, false},
		{"by another provider", 85, func(r *fencing.Reading) { r.Provider = "pdu" }, false},
		{"at another address", 85, func(r *fencing.Reading) { r.Address = "https://bmc-2" }, false},
		{"after a reset", 85, func(r *fencing.Reading) { r.Hints.LastReset = at(70) }, false},
	} {
		t.Run(k.name, func(t *testing.T) {
			p, c, see := tainted(t)
			first := reading(55, fencing.Off)
			o := see(55.1)
			o.Reading = &first
			c = fencing.Decide(p, c, o).Case
			r := reading(k.second, fencing.Off)
			k.change(&r)
			o = see(k.second + 0.1)
			o.Reading = &r
			o.Lease.RenewedAt, o.Lease.SeenAt = at(60), at(60)
			d := fencing.Decide(p, c, o)
			if got := d.Case.State == fencing.Distrusted; got != k.want {
				t.Errorf("state %s", d.Case.State)
			}
		})
	}
}
