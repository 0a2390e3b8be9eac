package fencing_test

import (
	"strings"
	"testing"
	"time"

	"github.com/nodefence/nodefence/fencing"
)

// TestProof starts from a stream of readings and observations that proves Off, and
// changes one thing: each must keep the machine from being called off (S1 to S4).
func TestProof(t *testing.T) {
	type stream struct {
		p    fencing.Policy
		rs   []fencing.Reading
		seen func(i int, o *fencing.Observation)
	}
	for _, c := range []struct {
		name   string
		change func(*stream)
		proof  bool
	}{
		{"as it is", func(*stream) {}, true},
		{"S1: a reading too few", func(s *stream) { s.p.Readings = 9 }, false},
		{"S1: just enough readings", func(s *stream) { s.p.Readings = 8 }, true},
		{"S1: a hold longer than the span", func(s *stream) { s.p.Hold = 35 * time.Second }, false},
		{"S1: a hold as long as the span", func(s *stream) { s.p.Hold = 35*time.Second - 100*time.Millisecond }, true},
		{"S1: the span counts from the first answer to the last question", func(s *stream) {
			s.p.Hold = 35*time.Second - 100*time.Millisecond
			s.rs[0].AnsweredAt = s.rs[0].AnsweredAt.Add(time.Millisecond)
		}, false},
		{"S1: the newest reading is stale when its answer comes", func(s *stream) {
			s.rs[7].AnsweredAt = s.rs[7].AskedAt.Add(s.p.Freshness + 1)
		}, false},
		{"S1: the newest reading is as old as allowed", func(s *stream) { s.rs[7].AnsweredAt = s.rs[7].AskedAt.Add(s.p.Freshness) }, true},
		{"S1: a gap", func(s *stream) { s.rs = append(s.rs[:3], s.rs[6:]...); s.p.Hold = 20 * time.Second }, false},
		{"S1: a gap as long as allowed", func(s *stream) {
			s.rs[3].AskedAt = s.rs[2].AnsweredAt.Add(s.p.Freshness)
			s.rs[3].AnsweredAt = s.rs[3].AskedAt
			s.rs = append(s.rs[:4], s.rs[5:]...)
		}, true},
		{"S1: a gap longer than allowed", func(s *stream) {
			s.rs[3].AskedAt = s.rs[2].AnsweredAt.Add(s.p.Freshness + 1)
			s.rs[3].AnsweredAt = s.rs[3].AskedAt
			s.rs = append(s.rs[:4], s.rs[5:]...)
		}, false},
		{"S1: one On in between", func(s *stream) { s.rs[4].Power = fencing.On }, false},
		{"S1: the newest is On", func(s *stream) { s.rs[7].Power = fencing.On }, false},
		{"S1: another provider in between", func(s *stream) { s.rs[4].Provider = "pdu" }, false},
		{"S1: the first by another provider", func(s *stream) { s.rs[0].Provider, s.p.Hold = "pdu", 32*time.Second }, false},
		{"S1: another address in between", func(s *stream) { s.rs[4].Address = "https://bmc-2" }, false},
		{"S2: unknown in between", func(s *stream) { s.rs[4].Power = fencing.Unknown }, false},
		{"S2: PoweringOff in between", func(s *stream) { s.rs[4].Power = fencing.PoweringOff }, false},
		{"S2: PoweringOn in between", func(s *stream) { s.rs[4].Power = fencing.PoweringOn }, false},
		{"S12: suspended in between", func(s *stream) { s.rs[4].Power = fencing.Suspended }, false},
		{"S2: a failure in between", func(s *stream) { s.rs[4].Failure = fencing.Failure{Kind: fencing.TimedOut} }, false},
		{"S2: a failure that says Off all the same", func(s *stream) { s.rs[7].Failure = fencing.Failure{Kind: fencing.Busy} }, false},
		{"S2: a conflict in between", func(s *stream) { s.rs[4].Hints.Conflict = "the chassis is On" }, false},
		{"S2: reset in between", func(s *stream) { s.rs[4].Hints.LastReset = at(30) }, false},
		{"S2: reset once, seen by all later ones", func(s *stream) {
			for i := 4; i < 8; i++ {
				s.rs[i].Hints.LastReset = at(30)
			}
		}, false},
		{"the same last reset all the time", func(s *stream) {
			for i := range s.rs {
				s.rs[i].Hints.LastReset = at(-5000)
			}
		}, true},
		{"S3: another machine in between", func(s *stream) { s.rs[4].Identity.UUID = otherUUID }, false},
		{"S3: no identity in between", func(s *stream) { s.rs[4].Identity = fencing.Identity{} }, false},
		{"S3: no identity at all", func(s *stream) {
			for i := range s.rs {
				s.rs[i].Identity = fencing.Identity{}
			}
		}, false},
		{"S3: no identity at all, which the policy allows", func(s *stream) {
			s.p.AllowUnproved = true
			for i := range s.rs {
				s.rs[i].Identity = fencing.Identity{}
			}
		}, true},
		{"S3: unproved, and not even the same", func(s *stream) {
			s.p.AllowUnproved = true
			for i := range s.rs {
				s.rs[i].Identity = fencing.Identity{Serial: "S" + string(rune('0'+i/4))}
			}
		}, false},
		{"S3: another machine, although the policy allows unproved ones", func(s *stream) {
			s.p.AllowUnproved = true
			s.rs[4].Identity.UUID = otherUUID
		}, false},
		{"S3: the UUID turns out to be shared", func(s *stream) {
			s.seen = func(i int, o *fencing.Observation) { o.Expected.SharedUUID = i == 7 }
		}, false},
		{"S3: the UUID was shared until the last reading", func(s *stream) {
			s.seen = func(i int, o *fencing.Observation) { o.Expected.SharedUUID = i < 7 }
		}, false},
		{"S4: the Lease is renewed in between", func(s *stream) {
			s.seen = func(i int, o *fencing.Observation) {
				if i >= 1 {
					o.Lease.RenewedAt, o.Lease.SeenAt = at(19), at(19)
				}
			}
		}, false},
		{"S4: the Lease is renewed at last", func(s *stream) {
			s.seen = func(i int, o *fencing.Observation) {
				if i == 7 {
					o.Lease.RenewedAt, o.Lease.SeenAt = at(50.05), at(50.05)
				}
			}
		}, false},
		{"S4: the first renewal seen may be younger than the first reading", func(s *stream) {
			s.p.Hold = 32 * time.Second
			s.seen = func(_ int, o *fencing.Observation) { o.Lease.SeenAt = at(15.2) }
		}, false},
		{"a time that lies before its question", func(s *stream) { s.rs[0].AnsweredAt, s.p.Hold = time.Time{}, 32*time.Second }, false},
		{"no time of asking", func(s *stream) {
			s.p.Readings = 2
			s.rs = s.rs[:2]
			s.rs[0].AskedAt, s.rs[0].AnsweredAt = time.Time{}, time.Time{}
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := stream{p: policy(), rs: offReadings(15, 50), seen: func(int, *fencing.Observation) {}}
			c.change(&s)
			kase, d := fencing.Case{}, fencing.Decision{}
			for i := range s.rs {
				o := silent(0)
				o.Now, o.Reading = s.rs[i].AnsweredAt, &s.rs[i]
				if o.Now.IsZero() {
					o.Now = at(15)
				}
				s.seen(i, &o)
				d = fencing.Decide(s.p, kase, o)
				if i < len(s.rs)-1 && kase.State > fencing.Suspected {
					t.Fatalf("proved early, at reading %d", i)
				}
				kase = d.Case
			}
			if got := kase.Verdict.Kind == fencing.VerdictOff; got != c.proof || has(d, fencing.ActionTaint) != c.proof {
				t.Errorf("proof %t: %s: %s; state %s", got, kase.Verdict.Reason, kase.Verdict.Message, kase.State)
			}
		})
	}
}

// TestOldReadings: what comes twice, or late, is not taken in.
func TestOldReadings(t *testing.T) {
	p := policy()
	c := feed(p, fencing.Case{}, offReadings(15, 25)...)
	again := c
	for _, r := range []fencing.Reading{reading(25, fencing.Off), reading(20, fencing.Off), reading(19, fencing.On)} {
		again = decide(p, again, 26, func(o *fencing.Observation) { o.Reading = &r }).Case
	}
	if len(again.Readings) != 3 || again.Streak.Count != 3 {
		t.Errorf("%d readings, streak %d", len(again.Readings), again.Streak.Count)
	}
}

// TestHoldAfterPowerOff: the short hold is for the Off that our own power-off
// brought about, and for no other (S1, S5).
func TestHoldAfterPowerOff(t *testing.T) {
	off := offReadings
	for _, c := range []struct {
		name    string
		failure fencing.FailureKind
		rs      []fencing.Reading
		proof   bool
	}{
		{"Off at once", fencing.NoFailure, off(116, 131), true},
		{"Off, too short even for that", fencing.NoFailure, off(116, 121), false},
		{"Off as late as a power-off may show", fencing.NoFailure, off(140, 155), true},
		{"Off later than a power-off may show", fencing.NoFailure, off(142, 157), false},
		{"Off later, with the full hold", fencing.NoFailure, off(142, 177), true},
		{"refused, and Off all the same", fencing.Forbidden, off(116, 131), false},
		{"begun before the command ended", fencing.NoFailure, append([]fencing.Reading{reading(110.5, fencing.Off)}, off(115, 120)...), false},
		{"Off, and after a gap Off again", fencing.NoFailure, append([]fencing.Reading{reading(116, fencing.Off)}, off(127, 140)...), false},
		{"Off of an unknown machine, and then Off", fencing.NoFailure, append([]fencing.Reading{nameless(116, fencing.Off)}, off(121, 136)...), false},
		{"Off, On, and Off again", fencing.NoFailure, append([]fencing.Reading{reading(116, fencing.Off), reading(121, fencing.On)}, off(126, 139)...), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := policy()
			p.Mode = fencing.Fence
			k := feed(p, fencing.Case{}, reading(15, fencing.On))
			k = decide(p, k, 50, nil).Case
			d := decide(p, k, 110.2, func(o *fencing.Observation) { r := reading(110, fencing.On); o.Reading = &r })
			if !has(d, fencing.ActionPowerOff) {
				t.Fatalf("no power-off: %s, %s", d.Case.State, d.Case.Verdict.Message)
			}
			k = decide(p, d.Case, 111, func(o *fencing.Observation) {
				o.PowerOff = &fencing.PowerOffResult{Attempt: 1, StartedAt: at(110.3), EndedAt: at(111), Failure: fencing.Failure{Kind: c.failure}}
			}).Case
			k = feed(p, k, c.rs...)
			if got := k.State == fencing.Tainting; got != c.proof {
				t.Errorf("proof %t: %s, %s", got, k.State, k.Verdict.Message)
			}
		})
	}
}

// nameless is a reading without an identity.
func nameless(second float64, power fencing.PowerState) fencing.Reading {
	r := reading(second, power)
	r.Identity = fencing.Identity{}
	return r
}

// TestClockSetBack: a controller whose clock is behind the last one's neither
// believes what lies in its future nor waits for it.
func TestClockSetBack(t *testing.T) {
	p := policy()
	c := feed(p, fencing.Case{}, reading(3600, fencing.On), reading(3605, fencing.On))
	c.Hold = fencing.Hold{Reason: fencing.ReasonPoweredOn, Since: at(3600), AlertedAt: at(3600)}
	d := decide(p, c, 60, nil)
	if !has(d, fencing.ActionRead) {
		t.Error("the machine is not read before the old clock's time comes")
	}
	if d.Case.Verdict.Kind != fencing.Unverifiable || len(d.Case.Readings) != 0 {
		t.Errorf("%s from %d readings", d.Case.Verdict.Kind, len(d.Case.Readings))
	}
	if d.NextAt.After(at(60).Add(p.AlertEvery)) {
		t.Errorf("next look at %s", d.NextAt)
	}
	c = feed(p, d.Case, offReadings(65, 100)...)
	wantState(t, c, fencing.Tainting)

	_, stored, o := tainting(t)
	o.Now = at(40) // in the midst of the proof
	d = fencing.Decide(p, stored, o)
	if has(d, fencing.ActionTaint) || d.Case.Streak.Count != 0 {
		t.Errorf("a proof from the future is used: %s", d.Case.Verdict.Message)
	}
}

// TestReadingIsBounded: whatever a device sends, a case stays small.
func TestReadingIsBounded(t *testing.T) {
	r := reading(15, fencing.Off)
	long := strings.Repeat("é", 100_000)
	r.Raw, r.Failure, r.Hints.Conflict = long, fencing.Failure{Kind: fencing.Malformed, Message: long}, long
	c := feed(policy(), fencing.Case{}, r)
	e, _ := c.Newest()
	for _, s := range []string{e.Raw, e.Failure.Message, e.Hints.Conflict} {
		if len(s) > fencing.MaxRawLength || len(s) < fencing.MaxRawLength-4 || strings.ContainsRune(s, '\uFFFD') {
			t.Errorf("%d bytes are kept", len(s))
		}
	}
}
