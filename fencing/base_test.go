package fencing_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nodefence/nodefence/fencing"
)

var t0 = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// at is a moment of a test, in seconds from its beginning.
func at(seconds float64) time.Time { return t0.Add(time.Duration(seconds * float64(time.Second))) }

const (
	ourUUID   = "4c4c4544-0035-3410-8050-c6c04f314733"
	otherUUID = "11111111-2222-3333-4444-555555555555"
)

func policy() fencing.Policy {
	p := fencing.DefaultPolicy()
	p.Group = "workers"
	return p
}

// silent is an observation of a node that is Unknown, at the given second; its
// Lease was renewed at 0.
func silent(now float64) fencing.Observation {
	return fencing.Observation{
		Now:       at(now),
		Node:      fencing.NodeFacts{Name: "n1", Exists: true, UID: "uid-1", Ready: fencing.ReadyUnknown, BootID: "boot-1", SystemUUID: ourUUID},
		Lease:     fencing.LeaseFacts{Exists: true, RenewedAt: at(0), SeenAt: at(0)},
		Workloads: fencing.Workloads{Known: true, Leaving: []string{"db-0"}, Attachments: []string{"vol-1"}},
		Cluster:   fencing.ClusterFacts{Nodes: 10, NotReady: 1},
		Expected:  fencing.Expectation{Identity: fencing.Identity{UUID: ourUUID}},
	}
}

// reading is a reading that was asked at the given second and answered at once.
func reading(asked float64, p fencing.PowerState) fencing.Reading {
	return fencing.Reading{
		Provider: "bmc", Driver: "lab", Address: "https://bmc-1", AskedAt: at(asked), AnsweredAt: at(asked + 0.1),
		Power: p, Identity: fencing.Identity{UUID: ourUUID},
	}
}

// feed lets the case take in readings, one a decision, each when it was answered.
func feed(p fencing.Policy, c fencing.Case, readings ...fencing.Reading) fencing.Case {
	for i := range readings {
		r := readings[i]
		o := silent(0)
		o.Now, o.Reading = r.AnsweredAt, &r
		c = fencing.Decide(p, c, o).Case
	}
	return c
}

// offReadings are clean Off readings every 5 s.
func offReadings(from, to float64) []fencing.Reading {
	var rs []fencing.Reading
	for s := from; s <= to; s += 5 {
		rs = append(rs, reading(s, fencing.Off))
	}
	return rs
}

// decide decides about the case at the given second, with a change to what is seen.
func decide(p fencing.Policy, c fencing.Case, now float64, change func(*fencing.Observation)) fencing.Decision {
	o := silent(now)
	if change != nil {
		change(&o)
	}
	return fencing.Decide(p, c, o)
}

func has(d fencing.Decision, kind fencing.ActionKind) bool {
	for _, a := range d.Actions {
		if a.Kind == kind {
			return true
		}
	}
	return false
}

// proven is a case whose next reading, at second 50, completes the proof.
func proven(t *testing.T, p fencing.Policy) fencing.Case {
	t.Helper()
	c := feed(p, fencing.Case{}, offReadings(15, 45)...)
	if c.State != fencing.Suspected {
		t.Fatalf("state %s before the proof", c.State)
	}
	return c
}

// tainting is a case with a stored intent to taint at second 50, and what the last
// look sees: Check lets it pass.
func tainting(t *testing.T) (fencing.Policy, fencing.Case, fencing.Observation) {
	t.Helper()
	p := policy()
	c := feed(p, proven(t, p), reading(50, fencing.Off))
	if c.State != fencing.Tainting {
		t.Fatalf("state %s, verdict %+v", c.State, c.Verdict)
	}
	return p, c, silent(50.2)
}

// tainted is a case whose taint is on the Node since second 51, with nothing left
// on it, and a function that gives what is seen later.
func tainted(t *testing.T) (fencing.Policy, fencing.Case, func(float64) fencing.Observation) {
	t.Helper()
	p, c, _ := tainting(t)
	name := c.Name
	see := func(now float64) fencing.Observation {
		o := silent(now)
		o.Node.Taint = fencing.TaintFacts{Present: true, Case: name, BootID: "boot-1"}
		o.Workloads = fencing.Workloads{Known: true}
		return o
	}
	for _, s := range []float64{51, 52} {
		c = fencing.Decide(p, c, see(s)).Case
	}
	if c.State != fencing.Tainted || c.Taint.EvacuatedAt.IsZero() {
		t.Fatalf("state %s", c.State)
	}
	return p, c, see
}

// ready turns an observation into one of a node that is back with a new boot.
func ready(o fencing.Observation) fencing.Observation {
	o.Node.Ready, o.Node.BootID = fencing.ReadyTrue, "boot-2"
	o.Lease.RenewedAt, o.Lease.SeenAt = o.Now, o.Now
	return o
}

func wantState(t *testing.T, c fencing.Case, s fencing.CaseState) {
	t.Helper()
	if c.State != s {
		t.Errorf("state %s, want %s; verdict %s (%s), hold %s", c.State, s, c.Verdict.Kind, c.Verdict.Message, c.Hold.Reason)
	}
}

func wantEqual(t *testing.T, got, want any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
