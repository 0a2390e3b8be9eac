package fencing_test

import (
	"flag"
	"os"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/nodefence/nodefence/fencing"
)

// stream is a random life of a node, and everything that was decided about it.
type stream struct {
	t     *rapid.T
	noise int // of 100
	p     fencing.Policy
	c     fencing.Case
	o     fencing.Observation
	h     history
	power fencing.PowerState
	reset time.Time
	alert map[fencing.Reason]time.Time
	sent  *fencing.PowerOffResult

	taints, powerOffs, untaints, distrusts, held int
}

func newStream(t *rapid.T) *stream {
	s := &stream{t: t, p: policy(), o: silent(0), power: fencing.Off, alert: map[fencing.Reason]time.Time{}}
	s.noise = rapid.SampledFrom([]int{0, 5, 10, 20, 50}).Draw(t, "noise")
	s.p.Mode = rapid.SampledFrom([]fencing.Mode{fencing.Observe, fencing.Confirm, fencing.Fence, fencing.Fence}).Draw(t, "mode")
	s.p.AllowUnproved = rapid.IntRange(0, 9).Draw(t, "unproved") == 0
	s.p.Hold = rapid.SampledFrom([]time.Duration{11 * time.Second, 30 * time.Second, 2 * time.Minute}).Draw(t, "hold")
	s.p.PowerOffAfter = rapid.SampledFrom([]time.Duration{0, 20 * time.Second}).Draw(t, "grace")
	if rapid.IntRange(0, 2).Draw(t, "on") == 0 {
		s.power = fencing.On
	}
	return s
}

// seldom is true as often as the stream is noisy. The least value means that
// nothing happens, so that a failure shrinks to what matters.
func (s *stream) seldom(what string) bool {
	return s.noise > 0 && rapid.IntRange(0, 99).Draw(s.t, what) >= 100-s.noise
}

func pick[T any](s *stream, what string, from ...T) T {
	return rapid.SampledFrom(from).Draw(s.t, what)
}

// step lets time pass, changes the world, and decides.
func (s *stream) step() {
	o := &s.o
	o.Now = o.Now.Add(pick(s, "dt", time.Second, 2*time.Second, 5*time.Second, 5*time.Second, 5*time.Second, 5*time.Second))
	if s.seldom("pause") {
		o.Now = o.Now.Add(pick(s, "long", 4*time.Second, 11*time.Second, 40*time.Second, 6*time.Minute))
	}
	if s.seldom("back") {
		o.Now = o.Now.Add(-3 * time.Second)
	}
	o.Reading, o.PowerOff = nil, nil
	s.changeWorld()
	if rapid.IntRange(0, 9).Draw(s.t, "reads") > 0 {
		o.Reading = s.read()
	}
	if s.sent != nil && rapid.Bool().Draw(s.t, "ends") {
		s.sent.EndedAt = o.Now
		o.PowerOff, s.sent = s.sent, nil
	}
	s.decide()
}

func (s *stream) changeWorld() {
	o := &s.o
	if s.seldom("renew") {
		o.Lease.RenewedAt, o.Lease.SeenAt = o.Now, o.Now.Add(pick(s, "seen", 0, -2*time.Second))
	}
	if s.seldom("lease") {
		o.Lease.Exists = !o.Lease.Exists
	}
	if s.seldom("ready") {
		o.Node.Ready = pick(s, "status", fencing.ReadyMissing, fencing.ReadyTrue, fencing.ReadyFalse, fencing.ReadyUnknown, fencing.ReadyUnknown)
	}
	if s.seldom("boot") {
		o.Node.BootID = pick(s, "boot ID", "boot-1", "boot-2", "boot-3", "")
	}
	if s.seldom("object") {
		o.Node.Exists = !o.Node.Exists
	}
	if s.seldom("uid") {
		o.Node.UID = pick(s, "UID", "uid-1", "uid-2")
	}
	if s.seldom("paused") {
		o.Node.Paused = pick(s, "why", "", "", "by me")
	}
	if s.seldom("taint") {
		o.Node.Taint = pick(s, "whose", fencing.TaintFacts{}, fencing.TaintFacts{Present: true}, fencing.TaintFacts{Present: true, Case: "n1-other"})
	}
	if s.seldom("mode") {
		s.p.Mode = pick(s, "new mode", fencing.Observe, fencing.Confirm, fencing.Fence)
	}
	if s.seldom("cluster") {
		o.Cluster.NotReady, o.Cluster.InAction = pick(s, "not Ready", 1, 1, 9), pick(s, "in action", 0, 0, 1)
	}
	if s.seldom("expected") {
		o.Expected.SharedUUID = pick(s, "shared", false, false, true)
		o.Expected.UUID = pick(s, "UUID", ourUUID, ourUUID, otherUUID, "")
	}
	if s.seldom("unaddressed") {
		o.Unaddressed = pick(s, "address", "", "", "no group")
	}
	if s.seldom("workloads") {
		o.Workloads = pick(s, "work", fencing.Workloads{}, fencing.Workloads{Known: true}, fencing.Workloads{Known: true, Leaving: []string{"db-0"}})
	}
	if s.seldom("power") {
		s.power = pick(s, "state", fencing.Off, fencing.Off, fencing.On, fencing.On, fencing.PoweringOff, fencing.Suspended, fencing.Unknown)
		s.reset = pick(s, "reset", time.Time{}, o.Now, at(-9999))
	}
}

func (s *stream) read() *fencing.Reading {
	r := reading(0, s.power)
	r.AnsweredAt = s.o.Now
	r.AskedAt = s.o.Now.Add(-pick(s, "latency", 0, 100*time.Millisecond, 100*time.Millisecond, 2*time.Second, 9*time.Second))
	r.Hints.LastReset = s.reset
	if s.seldom("failure") {
		r.Failure = fencing.Failure{Kind: pick(s, "kind", fencing.TimedOut, fencing.Unauthorized, fencing.WrongMachine), Message: "because"}
	}
	if s.seldom("conflict") {
		r.Hints.Conflict = "the chassis is On"
	}
	if s.seldom("identity") {
		r.Identity.UUID = pick(s, "answers", "", otherUUID)
	}
	if s.seldom("provider") {
		r.Provider = "pdu"
	}
	if s.seldom("address") {
		r.Address = "https://bmc-2"
	}
	return &r
}

// decide decides, and holds the decision against everything that must be so.
func (s *stream) decide() {
	t, o := s.t, s.o
	before := deepCopy(s.c)
	d := fencing.Decide(s.p, s.c, o)
	again := fencing.Decide(s.p, deepCopy(before), o)
	if !reflect.DeepEqual(d, again) {
		t.Fatalf("(i) the same input gives another decision:\n%+v\n%+v", d, again)
	}
	if !reflect.DeepEqual(s.c, before) {
		t.Fatalf("(i) the argument was changed:\n%+v\n%+v", before, s.c)
	}
	if before.State == fencing.NoCase && d.Case.State != fencing.NoCase {
		s.h.begin(d.Case.NodeUID, o)
		clear(s.alert)
	} else {
		s.h.take(o)
	}
	s.h.record(d, o)
	s.checkActions(before, d)
	s.checkHolds(d)
	s.checkLastLook(d)
	if len(d.Case.Readings) > fencing.MaxReadings || len(d.Case.Timeline) > fencing.MaxTimeline {
		t.Fatalf("%d readings, %d entries", len(d.Case.Readings), len(d.Case.Timeline))
	}
	s.c = d.Case
	s.carryOut(d)
	if s.c.State == fencing.Closed {
		s.c = fencing.Case{}
	}
}

func deepCopy(c fencing.Case) fencing.Case {
	c.Readings, c.Timeline = slices.Clone(c.Readings), slices.Clone(c.Timeline)
	return c
}

func (s *stream) checkActions(before fencing.Case, d fencing.Decision) {
	t, o, n := s.t, s.o, s.o.Node
	for _, a := range d.Actions {
		switch a.Kind {
		case fencing.ActionTaint:
			s.taints++
			if !s.h.mayTaint(s.p, o) {
				t.Fatalf("(ii) the oracle refuses this taint: %s\nfrom %+v", d.Case.Verdict.Message, s.h.readings)
			}
		case fencing.ActionPowerOff:
			s.powerOffs++
			if s.p.Mode != fencing.Fence || n.ControlPlane || n.Paused != "" || !n.NotReady() {
				t.Fatalf("(iv) power-off in mode %s, node %+v", s.p.Mode, n)
			}
			if d.Case.PowerOff.Attempts > s.p.PowerOffAttempts {
				t.Fatalf("(iv) attempt %d", d.Case.PowerOff.Attempts)
			}
		case fencing.ActionUntaint:
			s.untaints++
			if !n.Taint.Present || n.Taint.Case != d.Case.Name {
				t.Fatalf("(vi) untaint of %+v by case %s", n.Taint, d.Case.Name)
			}
		}
		if d.Case.State == fencing.Distrusted && a.Kind != fencing.ActionUntaint && a.Kind != fencing.ActionAlert {
			t.Fatalf("(v) %s when distrusted", a.Kind)
		}
	}
	if before.State == fencing.Distrusted && d.Case.State != fencing.Distrusted && d.Case.State != fencing.Closed {
		t.Fatalf("(v) from Distrusted to %s", d.Case.State)
	}
	if d.Case.State == fencing.Distrusted && before.State != fencing.Distrusted {
		s.distrusts++
	}
	if !d.NextAt.IsZero() && !d.NextAt.After(o.Now) {
		t.Fatalf("(viii) NextAt %s is not after %s", d.NextAt, o.Now)
	}
	if d.Case.Open() && d.NextAt.IsZero() {
		t.Fatalf("(viii) an open case (%s) without NextAt", d.Case.State)
	}
}

// checkHolds: whoever is held, people know it.
func (s *stream) checkHolds(d fencing.Decision) {
	told := map[fencing.Reason]bool{}
	for _, a := range d.Actions {
		if a.Kind == fencing.ActionAlert {
			if told[a.Alert.Reason] {
				s.t.Fatalf("(vii) told twice at once of %s", a.Alert.Reason)
			}
			told[a.Alert.Reason] = true
			s.alert[a.Alert.Reason] = s.o.Now
		}
	}
	if !d.Case.Held() {
		return
	}
	s.held++
	last, ok := s.alert[d.Case.Hold.Reason]
	if !ok || s.o.Now.Sub(last) >= s.p.AlertEvery {
		s.t.Fatalf("(vii) held for %s since %s, told %v at %s, now %s", d.Case.Hold.Reason, d.Case.Hold.Since, ok, last, s.o.Now)
	}
}

// checkLastLook asks Check as if the taint were intended, of a world that may have
// changed since the decision.
func (s *stream) checkLastLook(d fencing.Decision) {
	c, o := deepCopy(d.Case), s.o
	if c.State == fencing.NoCase || c.State == fencing.Closed {
		return
	}
	c.State, c.Taint.IntendedAt = fencing.Tainting, o.Now
	o.Now = o.Now.Add(pick(s, "look after", 0, 0, time.Second, 20*time.Second))
	if s.seldom("renewed") {
		o.Lease.RenewedAt, o.Lease.SeenAt = o.Now, o.Now
	}
	if s.seldom("back meanwhile") {
		o.Node.Ready = fencing.ReadyTrue
	}
	if got := fencing.Check(s.p, c, o, fencing.ActionTaint); len(got) == 0 && !s.h.mayTaint(s.p, o) {
		s.t.Fatalf("(iii) Check passes a taint that the oracle refuses; from %+v", s.h.readings)
	}
}

// carryOut does what was decided, as far as the last look lets it.
func (s *stream) carryOut(d fencing.Decision) {
	for _, a := range d.Actions {
		if a.Kind == fencing.ActionRead || a.Kind == fencing.ActionAlert || len(fencing.Check(s.p, d.Case, s.o, a.Kind)) > 0 || s.seldom("lost") {
			continue
		}
		switch a.Kind {
		case fencing.ActionTaint:
			s.o.Node.Taint = fencing.TaintFacts{Present: true, Case: d.Case.Name, BootID: d.Case.BootID}
			s.o.Workloads = fencing.Workloads{Known: true}
		case fencing.ActionUntaint:
			s.o.Node.Taint = fencing.TaintFacts{}
		case fencing.ActionPowerOff:
			s.sent = &fencing.PowerOffResult{Attempt: d.Case.PowerOff.Attempts, StartedAt: s.o.Now}
			if s.seldom("refused") {
				s.sent.Failure = fencing.Failure{Kind: fencing.Forbidden, Message: "because"}
			} else {
				s.power = fencing.Off
			}
		}
	}
}

// TestMain lets rapid try more than its 100 where nobody says how much, and print
// the seed instead of leaving files in the tree.
func TestMain(m *testing.M) {
	flag.Parse()
	defaults := map[string]string{"rapid.checks": "1000", "rapid.nofailfile": "true"}
	if testing.Short() {
		defaults["rapid.checks"] = "1500" // rapid itself divides by five
	}
	flag.Visit(func(f *flag.Flag) { delete(defaults, f.Name) })
	for name, value := range defaults {
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// TestRandomLives holds Decide and Check to what must always be so.
func TestRandomLives(t *testing.T) {
	var sum stream
	rapid.Check(t, func(t *rapid.T) {
		s := newStream(t)
		for range rapid.IntRange(10, 80).Draw(t, "steps") {
			s.step()
		}
		sum.taints += s.taints
		sum.powerOffs += s.powerOffs
		sum.untaints += s.untaints
		sum.distrusts += s.distrusts
		sum.held += s.held
	})
	t.Logf("%d taints, %d power-offs, %d untaints, %d times distrusted, %d times held", sum.taints, sum.powerOffs, sum.untaints, sum.distrusts, sum.held)
	if sum.taints == 0 || sum.powerOffs == 0 || sum.untaints == 0 || sum.held == 0 {
		t.Error("the lives are too dull to show anything")
	}
}
