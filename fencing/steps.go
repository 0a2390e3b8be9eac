package fencing

import (
	"fmt"
	"strings"
	"time"
)

// recovered tells whether the node is back: Ready, with a Lease that was renewed
// since the case was opened and is renewed still.
func (d *decider) recovered() bool {
	l := d.o.Lease
	return d.o.Node.Ready == ReadyTrue && l.Exists && !l.RenewedAt.Equal(d.c.LeaseRenewedAt) && l.Age(d.o.Now) < d.p.SuspectAfter
}

func (d *decider) closeRecovered() {
	message := "the node is Ready again"
	if b := d.o.Node.BootID; b != "" && d.c.BootID != "" {
		if b == d.c.BootID {
			message += ", the same boot as before: it never restarted"
		} else {
			message += " after a restart"
		}
	}
	d.close(ReasonClosedRecovered, message)
}

// blocked holds the case for what forbids every action, whatever the verdict.
func (d *decider) blocked() bool {
	switch n := d.o.Node; {
	case n.Taint.Present && n.Taint.Case != d.c.Name:
		d.hold(ReasonForeignTaint, "the node carries an out-of-service taint that this case did not set")
	case n.Paused != "":
		d.hold(ReasonPaused, n.Paused)
	case !d.o.Lease.Exists:
		d.hold(ReasonLeaseMissing, "there is no Lease "+n.Name+" in kube-node-lease")
	default:
		return false
	}
	return true
}

// stepSuspected gathers evidence until it permits something.
func (d *decider) stepSuspected() {
	switch {
	case d.o.Node.Taint.Present && d.o.Node.Taint.Case == d.c.Name:
		d.seeTaint() // before all else: a case never closes with its taint on the node
		return
	case d.recovered():
		d.closeRecovered()
		return
	case !d.o.Node.NotReady():
		return // late, but the control plane still believes in it: only read
	case d.blocked():
		return
	}
	switch d.c.Verdict.Kind {
	case VerdictOff:
		d.considerTaint()
	case Running, Rebooting:
		d.considerPowerOff()
	default:
		d.holdWhileUnproved()
	}
}

// holdWhileUnproved holds the case for a doubt. An Off that is being proved is
// progress, and gets the time that the proof takes.
func (d *decider) holdWhileUnproved() {
	if d.c.Verdict.Reason == ReasonOffNotProved {
		if d.c.Hold.Reason != ReasonOffNotProved {
			d.release()
		}
		d.holdForVerdict(d.p.HoldAfter + 2*d.c.holdNeeded(d.p))
		return
	}
	settle := d.p.HoldAfter
	if d.c.Verdict.Kind == Misidentified || d.c.Verdict.Kind == VerdictSuspended {
		settle = 0 // a clear answer, not a fault that may pass
	}
	d.holdForVerdict(settle)
}

// considerTaint intends the taint of a machine that is proved off (S9), where
// mode and budget allow it.
func (d *decider) considerTaint() {
	if d.p.Mode == Observe {
		d.hold(ReasonObserveOnly, "would taint the node now: "+d.c.Verdict.Message)
		return
	}
	if r, why := d.overBudget(); r != "" {
		d.hold(r, why)
		return
	}
	d.intendTaint()
}

func (d *decider) intendTaint() {
	d.release()
	d.c.State = Tainting
	d.c.Taint = TaintRecord{OffSince: d.c.Streak.First, LastReset: d.c.Streak.LastReset, IntendedAt: d.o.Now}
	d.note(Info, ReasonTaintIntended, d.c.Verdict.Message)
	d.actions = append(d.actions, Action{Kind: ActionTaint})
	d.wake(d.o.Now.Add(retryAction))
}

// retryAction is when an action that did not show its effect is decided anew.
const retryAction = time.Second

// considerPowerOff powers off a machine that runs although its node is silent,
// in mode Fence, after its time of grace (S5).
func (d *decider) considerPowerOff() {
	grace := d.c.NotReadySince.Add(d.p.PowerOffAfter)
	if d.c.Verdict.Kind == Rebooting {
		// A restart has its own time of grace, from when it was noticed.
		grace = latest(d.c.NotReadySince, d.c.Verdict.Since).Add(d.p.PowerOffAfter)
	}
	if d.p.Mode != Fence {
		if d.c.Verdict.Kind == Rebooting {
			d.holdForVerdict(d.p.PowerOffAfter)
		} else {
			d.holdForVerdict(d.p.HoldAfter)
		}
		return
	}
	if d.o.Now.Before(grace) || !d.fresh() {
		d.wake(grace)
		return
	}
	if r, why := d.powerOffForbidden(); r != "" {
		d.hold(r, why)
		return
	}
	d.intendPowerOff()
}

// powerOffForbidden says what stands against a power-off (S5, S6, S7), or
// nothing.
func (d *decider) powerOffForbidden() (Reason, string) {
	if d.o.Node.ControlPlane {
		return ReasonQuorum, "the machine runs the control plane and is on; nodefence does not power it off"
	}
	if e, _ := d.c.Newest(); e.Match != IdentityProved && !d.p.AllowUnproved {
		return ReasonIdentityUnproved, e.MatchReason
	}
	return d.overBudget()
}

// fresh tells whether the newest reading is young enough to act on.
func (d *decider) fresh() bool {
	e, ok := d.c.Newest()
	return ok && d.o.Now.Sub(e.AskedAt) <= d.p.Freshness
}

func (d *decider) intendPowerOff() {
	d.release()
	d.c.State = PoweringOffMachine
	d.c.Streak = Streak{}
	d.c.PowerOff.Attempts++
	d.c.PowerOff.IntendedAt, d.c.PowerOff.EndedAt, d.c.PowerOff.Failure = d.o.Now, time.Time{}, Failure{}
	d.note(Warning, ReasonPowerOffIntended, fmt.Sprintf("attempt %d of %d: %s, and the node has not been Ready since %s",
		d.c.PowerOff.Attempts, d.p.PowerOffAttempts, d.c.Verdict.Message, d.c.NotReadySince.UTC().Format("15:04:05")))
	d.actions = append(d.actions, Action{Kind: ActionPowerOff})
	d.wake(d.o.Now.Add(d.p.PowerOffTimeout + retryAction))
}

// absorbPowerOff takes in how the intended power-off ended.
func (d *decider) absorbPowerOff() {
	r, po := d.o.PowerOff, &d.c.PowerOff
	if r == nil || r.Attempt != po.Attempts || !po.EndedAt.IsZero() {
		return
	}
	po.EndedAt, po.Failure = r.EndedAt, r.Failure
	if r.Failure.Kind == NoFailure {
		d.note(Info, ReasonPowerOffAccepted, fmt.Sprintf("attempt %d was accepted; only readings from now on count", r.Attempt))
		return
	}
	d.note(Warning, ReasonPowerOffRefused, fmt.Sprintf("attempt %d: %s: %s", r.Attempt, r.Failure.Kind, r.Failure.Message))
}

// stepPoweringOff waits for the proof that the power-off worked.
func (d *decider) stepPoweringOff() {
	po := &d.c.PowerOff
	switch {
	case d.recovered():
		d.closeRecovered()
		return
	case !d.o.Node.NotReady():
		return
	case d.blocked():
		return
	case po.EndedAt.IsZero():
		due := po.IntendedAt.Add(d.p.PowerOffTimeout + retryAction)
		if d.o.Now.Before(due) {
			d.wake(due)
			return
		}
		po.EndedAt = d.o.Now
		po.Failure = Failure{Kind: TimedOut, Message: "the controller that sent it stopped before it knew"}
		d.note(Warning, ReasonPowerOffLost, fmt.Sprintf("attempt %d may or may not have been sent", po.Attempts))
	}
	switch d.c.Verdict.Kind {
	case VerdictOff:
		d.intendTaint()
	case Running, Rebooting:
		d.retryPowerOff()
	default:
		d.holdWhileUnproved()
	}
}

// retryPowerOff tries again a machine that a power-off has not stopped.
func (d *decider) retryPowerOff() {
	po := d.c.PowerOff
	e, _ := d.c.Newest()
	due := po.EndedAt.Add(d.p.PowerOffRetry)
	if d.o.Now.Before(due) || !e.AskedAt.After(po.EndedAt) || !d.fresh() {
		d.wake(due)
		return
	}
	if po.Attempts >= d.p.PowerOffAttempts {
		message := fmt.Sprintf("%d attempts, and %s", po.Attempts, d.c.Verdict.Message)
		if po.Failure.Kind != NoFailure {
			message += "; the last attempt: " + po.Failure.Message
		}
		d.hold(ReasonPowerOffFailed, message)
		return
	}
	if r, why := d.powerOffForbidden(); r != "" {
		d.hold(r, why)
		return
	}
	d.intendPowerOff()
}

// stepTainting sees the intended taint through, or withdraws the intent.
func (d *decider) stepTainting() {
	n := d.o.Node
	switch {
	case n.Taint.Present && n.Taint.Case == d.c.Name:
		d.seeTaint()
	case n.Taint.Present || !n.NotReady() || n.Paused != "" || !d.o.Lease.Exists || d.p.Mode == Observe:
		d.withdrawTaint("the node's own state has changed")
	case d.c.Verdict.Kind == VerdictOff:
		d.actions = append(d.actions, Action{Kind: ActionTaint})
		d.wake(d.o.Now.Add(retryAction))
	case d.c.Verdict.Reason == ReasonOffNotProved && d.c.Streak.Count >= d.p.Readings:
		// The proof has only grown old, as after a change of leader: the next
		// reading renews it or ends it.
	default:
		d.withdrawTaint(d.c.Verdict.Message)
	}
}

func (d *decider) withdrawTaint(why string) {
	d.c.State = Suspected
	d.c.Taint = TaintRecord{}
	d.note(Warning, ReasonTaintWithdrawn, why)
	d.wake(d.o.Now.Add(retryAction))
}

// seeTaint records that our taint is on the Node.
func (d *decider) seeTaint() {
	d.release()
	d.c.State = Tainted
	d.c.Taint.AppliedAt = d.o.Now
	d.note(Info, ReasonTaintApplied, "the out-of-service taint is on the node: "+listing("pods to leave", d.o.Workloads.Leaving)+
		"; "+listing("volumes to detach", d.o.Workloads.Attachments)+"; "+listing("pods that tolerate it and stay", d.o.Workloads.Staying))
	d.wake(d.o.Now.Add(retryAction))
}

// listing names at most five of the names.
func listing(what string, names []string) string {
	const most = 5
	if len(names) == 0 {
		return "no " + what
	}
	shown := strings.Join(names[:min(most, len(names))], ", ")
	if more := len(names) - most; more > 0 {
		shown += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Sprintf("%d %s: %s", len(names), what, shown)
}
