package fencing

import (
	"fmt"
	"strings"
	"time"
)

// Streak is an unbroken run of Off readings of one provider (S1). It is kept
// apart from the readings, which are bounded.
type Streak struct {
	Provider string
	Count    int
	// First is when the first answer was complete, Last when the newest was
	// asked for: the machine was off at some moment before First and some moment
	// after Last, so that Last - First never overstates the span.
	First, Last time.Time
	// LastAnswered is when the newest answer was complete.
	LastAnswered time.Time
	// LeaseRenewedAt is the Lease's renewal time when the streak began. A later
	// one breaks the streak (S4).
	LeaseRenewedAt time.Time
	// LastReset is the provider's last reset time when the streak began. Another
	// one breaks the streak: the machine did not stay off.
	LastReset time.Time
}

// leaseLag is how long after the first Off reading a renewal may still come to
// our eyes that was made before it: watch latency, with room.
const leaseLag = 5 * time.Second

// missing says what the streak lacks as a proof at now, or nothing.
func (s Streak) missing(p Policy, hold time.Duration, now time.Time) string {
	switch span := s.Last.Sub(s.First); {
	case s.Count < p.Readings:
		return fmt.Sprintf("%d of %d readings", s.Count, p.Readings)
	case span < hold:
		return fmt.Sprintf("%d readings over %s of %s", s.Count, span.Round(time.Second), hold)
	case now.Sub(s.Last) > p.Freshness:
		return fmt.Sprintf("the newest reading is %s old, older than %s", now.Sub(s.Last).Round(time.Second), p.Freshness)
	case now.Before(s.Last):
		return "the newest reading lies in the future"
	}
	return ""
}

// lacking says what the case's streak lacks as a proof of Off now (S1), or
// nothing. A Lease that was renewed since the streak began is not a detail (S4).
func (c Case) lacking(p Policy, o Observation) string {
	if m := c.Streak.missing(p, c.holdNeeded(p), o.Now); m != "" {
		return m
	}
	if !o.Lease.RenewedAt.Equal(c.Streak.LeaseRenewedAt) {
		return "the Lease was renewed after the first Off reading"
	}
	return ""
}

// holdNeeded is the hold of S1: shorter after a power-off of our own, because
// then the Off is not the first half of somebody's power cycle. That is so for
// the first Off that shows while the command may still take effect; a later one
// is somebody else's doing, and may be a power cycle again.
func (c Case) holdNeeded(p Policy) time.Duration {
	po := c.PowerOff
	if po.Attempts == 0 || po.EndedAt.IsZero() || po.Failure.Kind != NoFailure ||
		!c.Streak.First.Equal(po.FirstOffAt) || c.Streak.First.Sub(po.EndedAt) > p.PowerOffRetry {
		return p.Hold
	}
	return p.HoldAfterPowerOff
}

// absorbReading adds a reading to the case and carries the streak on, or breaks
// it (S1, S2, S3). It tells whether the reading contradicts the Lease (S11).
func (c *Case) absorbReading(p Policy, o Observation) (contradiction string) {
	r := bounded(*o.Reading)
	last, ok := c.Newest()
	if ok && !r.AskedAt.After(last.AskedAt) {
		return "" // seen already, or older than what is known
	}
	e := Evidence{Reading: r}
	e.compare(o.Expected)
	c.Readings = append(c.Readings, e)
	if r.Failure.Kind == Unauthorized {
		c.Refusals++
	} else {
		c.Refusals = 0
	}
	if po := &c.PowerOff; r.Power == Off && !po.EndedAt.IsZero() && po.FirstOffAt.IsZero() && r.AskedAt.After(po.EndedAt) {
		po.FirstOffAt = r.AnsweredAt
	}
	if !e.countsAsOff(p) || !c.countsAfterPowerOff(r) {
		c.Streak = Streak{}
		c.boundReadings()
		return ""
	}
	same := c.Streak.Count > 0 && c.Streak.Provider == r.Provider && last.Address == r.Address &&
		(e.Match == IdentityProved || last.Identity == r.Identity) && r.Hints.LastReset.Equal(c.Streak.LastReset)
	gap := r.AskedAt.Sub(c.Streak.LastAnswered)
	unbroken := same && gap <= p.Freshness
	renewed := c.Streak.Count > 0 && !o.Lease.RenewedAt.Equal(c.Streak.LeaseRenewedAt)
	// While the taint is on, readings are further apart.
	watched := unbroken || same && c.Taint.on() && gap <= 2*calmInterval
	// A renewal that was on its way before the first Off reading is none after it;
	// before the taint the last look has seen the newest.
	late := c.Taint.on() || o.Lease.SeenAt.Sub(c.Streak.First) > leaseLag
	if watched && renewed && late && !o.Lease.SeenAt.After(r.AskedAt) {
		contradiction = fmt.Sprintf("%s says that the machine has been off since %s, but its kubelet renewed the Lease, seen at %s",
			r.Provider, c.Streak.First.UTC().Format("15:04:05"), o.Lease.SeenAt.UTC().Format("15:04:05"))
	}
	if !unbroken || renewed {
		c.Streak = Streak{}
		if o.Lease.SeenAt.After(r.AnsweredAt) {
			// This renewal may be younger than the reading: the next one begins
			// the streak (S4).
			c.boundReadings()
			return contradiction
		}
		c.Streak = Streak{Provider: r.Provider, First: r.AnsweredAt, LeaseRenewedAt: o.Lease.RenewedAt, LastReset: r.Hints.LastReset}
	}
	c.Streak.Count++
	c.Streak.Last, c.Streak.LastAnswered = r.AskedAt, r.AnsweredAt
	c.boundReadings()
	return contradiction
}

// compare sets how the reading's identity compares with what is expected now.
func (e *Evidence) compare(x Expectation) {
	e.Match, e.MatchReason = x.Match(e.Identity)
	if e.Failed() {
		// A machine that did not answer was not compared with anything.
		e.Match, e.MatchReason = IdentityUnproved, "no identity was read"
	}
}

// countsAsOff tells whether the reading may be part of a proof: a clean Off of
// the right machine (S2, S3), with both its times.
func (e Evidence) countsAsOff(p Policy) bool {
	right := e.Match == IdentityProved || e.Match == IdentityUnproved && p.AllowUnproved
	return e.SaysOff() && right && !e.AskedAt.IsZero() && !e.AnsweredAt.Before(e.AskedAt)
}

// compareAgain holds the stored readings against what is expected now: another
// Node may have turned up with the same UUID, or the configuration has changed.
// A streak whose readings do not count any more is none (S3).
func (c *Case) compareAgain(p Policy, x Expectation) {
	for i := range c.Readings {
		e := &c.Readings[i]
		e.compare(x)
		if !e.AnsweredAt.Before(c.Streak.First) && !e.countsAsOff(p) {
			c.Streak = Streak{}
		}
	}
}

// bounded cuts what a device may make as long as it likes.
func bounded(r Reading) Reading {
	r.Raw, r.Failure.Message, r.Hints.Conflict = cut(r.Raw), cut(r.Failure.Message), cut(r.Hints.Conflict)
	return r
}

func cut(s string) string {
	if len(s) <= MaxRawLength {
		return s
	}
	return strings.ToValidUTF8(s[:MaxRawLength], "")
}

// boundReadings drops old readings, but keeps the one that began the streak, so
// that the span of a proof can be seen, and checked, from the readings alone.
func (c *Case) boundReadings() {
	for len(c.Readings) > MaxReadings {
		oldest := 0
		if c.Streak.Count > 0 && c.Readings[0].AnsweredAt.Equal(c.Streak.First) {
			oldest = 1
		}
		c.Readings = append(c.Readings[:oldest], c.Readings[oldest+1:]...)
	}
}

// countsAfterPowerOff tells whether a reading may count although the case has
// sent a power-off: only one that was begun after the command ended, because an
// older one may show either side of it (S5).
func (c *Case) countsAfterPowerOff(r Reading) bool {
	if c.PowerOff.Attempts == 0 || c.State != PoweringOffMachine {
		return true
	}
	return !c.PowerOff.EndedAt.IsZero() && r.AskedAt.After(c.PowerOff.EndedAt)
}
