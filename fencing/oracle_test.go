package fencing_test

import (
	"slices"
	"time"

	"github.com/nodefence/nodefence/fencing"
)

// seen is a reading, and what was known when it was taken in.
type seen struct {
	fencing.Reading
	lease fencing.LeaseFacts
}

// history is everything that happened to a case, kept apart from the case.
type history struct {
	uid      string
	readings []seen
	// ended and accepted are of the newest power-off; lost ones count as refused.
	poweredOff, accepted bool
	intended, ended      time.Time
}

// mayTaint is the oracle: the text of S1 to S5 over the raw history, written
// without regard for speed, and without a look at how fencing does it.
func (h *history) mayTaint(p fencing.Policy, o fencing.Observation) bool {
	n := o.Node
	switch {
	case p.Mode == fencing.Observe:
		return false
	case !n.Exists, n.UID != h.uid, n.Ready != fencing.ReadyFalse && n.Ready != fencing.ReadyUnknown:
		return false // S4: same UID, still not Ready
	case n.Paused != "", n.Taint.Present:
		return false
	case !o.Lease.Exists, o.Lease.RenewedAt.IsZero():
		return false // S4: cannot be seen not to have been renewed
	}
	// S1: is there a run of readings, up to the newest, that proves Off?
	for first := range h.readings {
		if h.proves(p, o, h.readings[first:]) {
			return true
		}
	}
	return false
}

func (h *history) proves(p fencing.Policy, o fencing.Observation, run []seen) bool {
	newest := run[len(run)-1]
	if len(run) < p.Readings {
		return false
	}
	if age := o.Now.Sub(newest.AskedAt); age < 0 || age > p.Freshness {
		return false
	}
	if newest.AskedAt.Sub(run[0].AnsweredAt) < h.hold(p, run[0]) {
		return false
	}
	if run[0].lease.SeenAt.After(run[0].AnsweredAt) {
		return false // S4: that renewal may have come after the first reading
	}
	for i, r := range run {
		if r.Power != fencing.Off || r.Failure.Kind != fencing.NoFailure || r.Hints.Conflict != "" {
			return false // S2
		}
		match, _ := o.Expected.Match(r.Identity)
		if match == fencing.IdentityMismatch || match == fencing.IdentityUnproved && !p.AllowUnproved {
			return false // S3
		}
		if !r.lease.RenewedAt.Equal(o.Lease.RenewedAt) {
			return false // S4
		}
		if h.poweredOff && (h.ended.IsZero() || !r.AskedAt.After(h.ended)) {
			return false // S5: only what was asked after the command counts
		}
		if i == 0 {
			continue
		}
		before := run[i-1]
		if before.Provider != r.Provider || before.Address != r.Address || !before.Hints.LastReset.Equal(r.Hints.LastReset) {
			return false // S1: of one provider, and nothing in between
		}
		if r.AskedAt.Sub(before.AnsweredAt) > p.Freshness {
			return false // S1: who knows what was in between
		}
	}
	return true
}

// hold is the time that the run must span: the short one only for the first Off
// that our own, accepted power-off has brought about.
func (h *history) hold(p fencing.Policy, first seen) time.Duration {
	if !h.poweredOff || !h.accepted || first.AnsweredAt.Sub(h.ended) > p.PowerOffRetry {
		return p.Hold
	}
	for _, r := range h.readings {
		if r.Power == fencing.Off && r.AskedAt.After(h.ended) && r.AskedAt.Before(first.AskedAt) {
			return p.Hold
		}
	}
	return p.HoldAfterPowerOff
}

// take adds what an observation brings, before it is decided about.
func (h *history) take(o fencing.Observation) {
	if r := o.PowerOff; r != nil && h.poweredOff && h.ended.IsZero() && !r.StartedAt.Before(h.intended) {
		h.ended, h.accepted = r.EndedAt, r.Failure.Kind == fencing.NoFailure
	}
	// A clock that was set back leaves readings that nobody can compare with new ones.
	h.readings = slices.DeleteFunc(h.readings, func(r seen) bool { return r.AskedAt.After(o.Now) })
	if o.Reading == nil {
		return
	}
	if k := len(h.readings); k > 0 && !o.Reading.AskedAt.After(h.readings[k-1].AskedAt) {
		return
	}
	h.readings = append(h.readings, seen{*o.Reading, o.Lease})
}

// begin forgets the evidence when a case begins.
func (h *history) begin(uid string, o fencing.Observation) {
	*h = history{uid: uid}
	h.take(o)
}

// record takes in what was decided.
func (h *history) record(d fencing.Decision, o fencing.Observation) {
	for _, a := range d.Actions {
		if a.Kind == fencing.ActionPowerOff {
			h.poweredOff, h.accepted, h.intended, h.ended = true, false, o.Now, time.Time{}
		}
	}
	if h.poweredOff && h.ended.IsZero() && !d.Case.PowerOff.EndedAt.IsZero() {
		h.ended = d.Case.PowerOff.EndedAt // given up for lost
	}
}
