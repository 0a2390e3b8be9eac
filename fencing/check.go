package fencing

import (
	"fmt"
	"time"
)

// Violation is a rule of safety that an action would break.
type Violation struct {
	// Rule is the rule's number in docs/safety.md.
	Rule string
	// Message says what is not as it must be.
	Message string
}

// Error names the rule and what breaks it.
func (v Violation) Error() string { return v.Rule + ": " + v.Message }

// Check looks at an irrevocable action once more, just before it is carried out
// (S4). It takes the case as it was stored and an observation whose Node, Lease
// and, for ActionUntaint, Workloads were read from the API server itself, not
// from a cache. Any violation forbids the action.
//
// It is written apart from Decide, and proves Off from the readings and not from
// the streak that Decide kept, so that one mistake does not pass both.
//
//nolint:gocritic // by value on purpose, as Decide
func Check(p Policy, c Case, o Observation, action ActionKind) []Violation {
	k := &checker{p: p, c: c, o: o}
	k.require(o.Node.Exists, "S4", "the Node does not exist")
	k.require(c.NodeUID != "" && o.Node.UID == c.NodeUID, "S4", "the Node's UID is %q, the case is about %q", o.Node.UID, c.NodeUID)
	switch action {
	case ActionTaint:
		k.checkTaint()
	case ActionPowerOff:
		k.checkPowerOff()
	case ActionUntaint:
		k.checkUntaint()
	case ActionRead, ActionAlert:
	default:
		k.require(false, "S9", "no such action: %s", action)
	}
	return k.violations
}

type checker struct {
	p          Policy
	c          Case
	o          Observation
	violations []Violation
}

func (k *checker) require(ok bool, rule, format string, args ...any) {
	if !ok {
		k.violations = append(k.violations, Violation{rule, fmt.Sprintf(format, args...)})
	}
}

func (k *checker) checkTaint() {
	k.require(k.p.Mode == Confirm || k.p.Mode == Fence, "S5", "mode %s does not permit to taint", k.p.Mode)
	k.require(k.c.State == Tainting && !k.c.Taint.IntendedAt.IsZero(), "S9", "the intent to taint is not stored (state %s)", k.c.State)
	k.requireSilent()
	k.requireCalm()
	k.require(!k.o.Node.Taint.Present, "S10", "the node carries an out-of-service taint already")
	k.require(k.o.Node.BootID == k.c.BootID, "S11", "the node's boot ID is %q, the case is about %q", k.o.Node.BootID, k.c.BootID)
	k.requireProof()
}

// requireSilent: the node is not Ready and asks for nothing.
func (k *checker) requireSilent() {
	k.require(k.o.Node.NotReady(), "S4", "the node's Ready condition is %s", k.o.Node.Ready)
	k.require(k.o.Node.Paused == "", "S5", "paused: %s", k.o.Node.Paused)
	k.require(k.o.Lease.Exists && !k.o.Lease.RenewedAt.IsZero(), "S4", "the node's Lease does not exist, or was never renewed")
}

// requireCalm: not so many nodes are silent that the network is to be suspected.
func (k *checker) requireCalm() {
	cl := k.o.Cluster
	k.require(cl.Nodes > 0 && cl.NotReady <= k.p.Budget.Limit(cl.Nodes), "S6", "%d of %d nodes are not Ready", cl.NotReady, cl.Nodes)
}

// requireProof proves Off from the readings (S1, S2, S3, S4).
func (k *checker) requireProof() {
	run := k.offRun()
	if len(run) == 0 {
		k.require(false, "S1", "the newest reading is no clean Off of the right machine")
		return
	}
	oldest, newest := run[0], run[len(run)-1]
	k.require(len(run) >= k.p.Readings, "S1", "%d consecutive Off readings, %d are needed", len(run), k.p.Readings)
	hold := k.holdNeeded(oldest)
	span := newest.AskedAt.Sub(oldest.AnsweredAt)
	k.require(span >= hold, "S1", "the Off readings span %s, %s are needed", span, hold)
	age := k.o.Now.Sub(newest.AskedAt)
	k.require(age >= 0 && age <= k.p.Freshness, "S1", "the newest reading is %s old, at most %s are allowed", age, k.p.Freshness)
	k.require(k.o.Lease.RenewedAt.Equal(k.c.Streak.LeaseRenewedAt), "S4", "the Lease was renewed at %s, after the first Off reading", k.o.Lease.RenewedAt.UTC().Format(time.RFC3339))
}

// holdNeeded is the hold of S1 for a run that begins with oldest: the short one
// only for the first Off soon after our own power-off.
func (k *checker) holdNeeded(oldest Evidence) time.Duration {
	po := k.c.PowerOff
	after := oldest.AnsweredAt.Sub(po.EndedAt)
	if po.Attempts == 0 || po.EndedAt.IsZero() || po.Failure.Kind != NoFailure || !oldest.AskedAt.After(po.EndedAt) ||
		after > k.p.PowerOffRetry || !oldest.AnsweredAt.Equal(po.FirstOffAt) {
		return k.p.Hold
	}
	for _, e := range k.c.Readings {
		if e.Power == Off && e.AskedAt.After(po.EndedAt) && e.AskedAt.Before(oldest.AskedAt) {
			return k.p.Hold
		}
	}
	return k.p.HoldAfterPowerOff
}

// offRun gives the readings at the end of the record that are clean answers of
// Off, by one provider, of the right machine, with the same last reset, without a
// gap, and none older than the Lease's renewal that the case knows.
func (k *checker) offRun() []Evidence {
	all := k.c.Readings
	start := len(all)
	for start > 0 && k.c.Streak.Count > 0 {
		e := all[start-1]
		if !k.cleanOff(e) || e.AnsweredAt.Before(k.c.Streak.First) || start < len(all) && !k.follows(e, all[start]) {
			break
		}
		start--
	}
	return all[start:]
}

// cleanOff: the right machine, and nothing but Off.
func (k *checker) cleanOff(e Evidence) bool {
	match, _ := k.o.Expected.Match(e.Identity)
	right := match == IdentityProved || match == IdentityUnproved && k.p.AllowUnproved
	timed := !e.AskedAt.IsZero() && !e.AnsweredAt.Before(e.AskedAt)
	return e.Power == Off && e.Failure.Kind == NoFailure && e.Hints.Conflict == "" && right && timed
}

// follows tells whether b continues the run that a is part of.
func (k *checker) follows(a, b Evidence) bool {
	// Only after the streak's first reading may others have been dropped.
	dropped := len(k.c.Readings) == MaxReadings && a.AnsweredAt.Equal(k.c.Streak.First)
	return a.Provider == b.Provider && a.Address == b.Address && a.Hints.LastReset.Equal(b.Hints.LastReset) &&
		b.AskedAt.After(a.AskedAt) && (b.AskedAt.Sub(a.AnsweredAt) <= k.p.Freshness || dropped)
}

func (k *checker) checkPowerOff() {
	k.require(k.p.Mode == Fence, "S5", "mode %s does not permit to power off", k.p.Mode)
	k.require(k.c.State == PoweringOffMachine && !k.c.PowerOff.IntendedAt.IsZero() && k.c.PowerOff.EndedAt.IsZero(), "S9", "the intent to power off is not stored (state %s)", k.c.State)
	k.require(k.c.PowerOff.Attempts <= k.p.PowerOffAttempts, "S5", "attempt %d of %d", k.c.PowerOff.Attempts, k.p.PowerOffAttempts)
	k.require(!k.o.Node.ControlPlane, "S7", "the machine runs the control plane")
	k.require(!k.o.Node.Taint.Present, "S10", "the node carries an out-of-service taint already")
	k.requireSilent()
	k.requireCalm()
	silent := k.o.Now.Sub(k.c.NotReadySince)
	k.require(!k.c.NotReadySince.IsZero() && silent >= k.p.PowerOffAfter, "S5", "the node has been not Ready for %s, %s are needed", silent, k.p.PowerOffAfter)
	k.require(k.o.Lease.Age(k.o.Now) >= k.p.SuspectAfter, "S5", "the Lease was renewed %s ago", k.o.Lease.Age(k.o.Now))
	if len(k.c.Readings) == 0 {
		k.require(false, "S5", "the machine was never read")
		return
	}
	e := k.c.Readings[len(k.c.Readings)-1]
	match, why := k.o.Expected.Match(e.Identity)
	k.require(match == IdentityProved || match == IdentityUnproved && k.p.AllowUnproved, "S3", "%s", why)
	k.require(!e.Failed(), "S5", "the newest reading failed: %s", e.Failure.Kind)
	k.require(e.Power == On || e.Power.Transitional(), "S5", "the machine reads %s", e.Power)
	age := k.o.Now.Sub(e.AskedAt)
	k.require(age >= 0 && age <= k.p.Freshness+k.p.PowerOffTimeout, "S5", "the newest reading is %s old", age)
}

func (k *checker) checkUntaint() {
	n := k.o.Node
	k.require(!n.Taint.Present || n.Taint.Case == k.c.Name, "S10", "the taint is not this case's (mark %q)", n.Taint.Case)
	if k.c.State == Distrusted {
		return // S11: withdrawn at once, whatever else holds
	}
	k.require(k.c.State == Untainting && !k.c.Taint.UntaintIntendedAt.IsZero(), "S9", "the intent to untaint is not stored (state %s)", k.c.State)
	k.require(n.Ready == ReadyTrue && !k.c.ReadySince.IsZero(), "S10", "the node's Ready condition is %s", n.Ready)
	ready := k.o.Now.Sub(k.c.ReadySince)
	if ready >= k.p.MaxWait {
		return // overdue: a taint on a live node is itself dangerous
	}
	k.require(ready >= k.p.StableFor, "S10", "the node has been Ready for %s, %s are needed", ready, k.p.StableFor)
	k.require(k.c.BootID != "" && n.BootID != "" && n.BootID != k.c.BootID, "S10", "the node's boot ID is %q, before it was %q", n.BootID, k.c.BootID)
	k.require(k.o.Workloads.Gone(), "S10", "not everything has left: %d pods, %d volumes", len(k.o.Workloads.Leaving), len(k.o.Workloads.Attachments))
}
