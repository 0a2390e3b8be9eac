package fencing

import (
	"fmt"
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
// then the Off is not the first half of somebody's power cycle.
func (c Case) holdNeeded(p Policy) time.Duration {
	if c.PowerOff.Attempts > 0 && !c.PowerOff.EndedAt.IsZero() && c.PowerOff.Failure.Kind == NoFailure && c.Streak.First.After(c.PowerOff.EndedAt) {
		return p.HoldAfterPowerOff
	}
	return p.Hold
}

// absorbReading adds a reading to the case and carries the streak on, or breaks
// it (S1, S2, S3). It tells whether the reading contradicts the Lease (S11).
func (c *Case) absorbReading(p Policy, o Observation) (contradiction string) {
	r := *o.Reading
	match, why := o.Expected.Match(r.Identity)
	if r.Failed() {
		// A machine that did not answer was not compared with anything.
		match, why = IdentityUnproved, "no identity was read"
	}
	if last, ok := c.Newest(); ok && !r.AskedAt.After(last.AskedAt) {
		return "" // seen already, or older than what is known
	}
	c.Readings = append(c.Readings, Evidence{Reading: r, Match: match, MatchReason: why})
	if r.Failure.Kind == Unauthorized {
		c.Refusals++
	} else {
		c.Refusals = 0
	}
	counts := r.SaysOff() && (match == IdentityProved || match == IdentityUnproved && p.AllowUnproved)
	if !counts || !c.countsAfterPowerOff(r) {
		c.Streak = Streak{}
		c.boundReadings()
		return ""
	}
	unbroken := c.Streak.Count > 0 && c.Streak.Provider == r.Provider &&
		r.AskedAt.Sub(c.Streak.LastAnswered) <= p.Freshness &&
		r.Hints.LastReset.Equal(c.Streak.LastReset)
	renewed := c.Streak.Count > 0 && !o.Lease.RenewedAt.Equal(c.Streak.LeaseRenewedAt)
	if unbroken && renewed && o.Lease.SeenAt.Before(r.AskedAt) && o.Lease.SeenAt.Sub(c.Streak.First) > leaseLag {
		contradiction = fmt.Sprintf("%s says that the machine has been off since %s, but its kubelet renewed the Lease, seen at %s",
			r.Provider, c.Streak.First.UTC().Format("15:04:05"), o.Lease.SeenAt.UTC().Format("15:04:05"))
	}
	if !unbroken || renewed {
		c.Streak = Streak{Provider: r.Provider, First: r.AnsweredAt, LeaseRenewedAt: o.Lease.RenewedAt, LastReset: r.Hints.LastReset}
	}
	c.Streak.Count++
	c.Streak.Last, c.Streak.LastAnswered = r.AskedAt, r.AnsweredAt
	c.boundReadings()
	return contradiction
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
