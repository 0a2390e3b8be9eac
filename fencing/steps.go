package fencing

import (
	"fmt"
	"strings"
	"time"
)

// recovered tells whether the kubelet is back: it has renewed the Lease since the
// case was opened and renews it still, and says that the node is Ready, or that
// it is not, which is then no matter of power. While its machine reads Off that
// is a contradiction and no recovery: the next reading tells (S11).
func (d *decider) recovered() bool {
	speaks := d.o.Node.Ready == ReadyTrue || d.o.Node.Ready == ReadyFalse
	return speaks && d.c.Streak.Count == 0 && !d.o.Lease.RenewedAt.Equal(d.c.LeaseRenewedAt) && d.leaseFresh()
}

// leaseFresh tells whether the Lease is being renewed, as far as can be seen.
func (d *decider) leaseFresh() bool {
	return d.o.Lease.Exists && d.o.Lease.Age(d.o.Now) < d.p.SuspectAfter
}

// leaseLate is when the newest renewal will have been seen for so long that the
// Lease is late. A controller that has just started has seen it only now.
func (d *decider) leaseLate() time.Time { return d.o.Lease.SeenAt.Add(d.p.SuspectAfter) }

// kubeletSpeaks tells whether the Lease is renewed although the node is not Ready:
// such a machine is not powered off.
func (d *decider) kubeletSpeaks() bool {
	return d.leaseFresh() && !d.o.Lease.RenewedAt.Equal(d.c.LeaseRenewedAt)
}

func (d *decider) closeRecovered() {
	message := "the node is Ready again"
	if d.o.Node.Ready == ReadyFalse {
		message = "the kubelet reports again, though the node is not Ready"
	}
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
	case !d.o.Lease.Exists || d.o.Lease.RenewedAt.IsZero():
		d.hold(ReasonLeaseMissing, "there is no Lease "+n.Name+" in kube-node-lease that was ever renewed")
	default:
		return false
	}
	return true
}

// stepSuspected gathers evidence until it permits something.
func (d *decider) stepSuspected() {
	switch {
	case d.ourTaint():
		d.seeTaint() // before all else: a case never closes with its taint on the node
		return
	case d.recovered():
		d.closeRecovered()
		return
	case !d.o.Node.NotReady():
		if !d.c.Held() {
			d.c.Hold = Hold{}
		}
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
		switch d.c.Hold.Reason {
		case "", ReasonOffNotProved:
		case ReasonBudget, ReasonStorm, ReasonObserveOnly:
			return // held although it was proved: that the proof has to be renewed is no news
		default:
			if d.c.Streak.Count >= d.p.Readings { // not at each Off of a flapping machine
				d.release()
			}
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
// mode and budget allow it. A machine that we powered off has its place in the
// budget, but a storm holds it too.
func (d *decider) considerTaint() {
	if d.p.Mode == Observe {
		d.hold(ReasonObserveOnly, "would taint the node now: "+d.c.Verdict.Message)
		return
	}
	r, why := d.storm()
	if r == "" && d.c.State != PoweringOffMachine {
		r, why = d.overBudget()
	}
	if r != "" {
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
	grace := latest(d.c.NotReadySince.Add(d.p.PowerOffAfter), d.leaseLate())
	if d.c.Verdict.Kind == Rebooting {
		// A restart has its own time of grace, from when it was noticed.
		grace = latest(grace, d.c.Verdict.Since.Add(d.p.PowerOffAfter))
	}
	if d.p.Mode != Fence || d.kubeletSpeaks() {
		d.holdWhileAlive()
		return
	}
	if d.o.Now.Before(grace) || !d.fresh() {
		d.wake(grace)
		return
	}
	if d.c.PowerOff.Attempts >= d.p.PowerOffAttempts {
		d.hold(ReasonPowerOffFailed, d.powerOffFailed())
		return
	}
	if r, why := d.powerOffForbidden(); r != "" {
		d.hold(r, why)
		return
	}
	d.intendPowerOff()
}

// holdWhileAlive holds the case of a machine that is on where it is not to be
// powered off: at once when it runs, later when it restarts.
func (d *decider) holdWhileAlive() {
	if d.c.Verdict.Kind == Rebooting {
		d.holdForVerdict(d.p.PowerOffAfter)
	} else {
		d.holdForVerdict(d.p.HoldAfter)
	}
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
	d.c.PowerOff = PowerOffRecord{Attempts: d.c.PowerOff.Attempts, IntendedAt: d.o.Now}
	d.note(Warning, ReasonPowerOffIntended, fmt.Sprintf("attempt %d of %d: %s, and the node has not been Ready since %s",
		d.c.PowerOff.Attempts, d.p.PowerOffAttempts, d.c.Verdict.Message, d.c.NotReadySince.UTC().Format("15:04:05")))
	d.actions = append(d.actions, Action{Kind: ActionPowerOff})
	d.wake(d.o.Now.Add(d.p.PowerOffTimeout + retryAction))
}

// absorbPowerOff takes in how the intended power-off ended.
func (d *decider) absorbPowerOff() {
	r, po := d.o.PowerOff, &d.c.PowerOff
	if r == nil || r.Attempt != po.Attempts || !po.EndedAt.IsZero() || r.StartedAt.Before(po.IntendedAt) {
		return // of another attempt, or of an earlier case
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
		d.considerTaint()
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
	due := latest(po.EndedAt.Add(d.p.PowerOffRetry), d.leaseLate())
	if d.o.Now.Before(due) || !e.AskedAt.After(po.EndedAt) || !d.fresh() {
		d.wake(due)
		return
	}
	if d.p.Mode != Fence || d.kubeletSpeaks() {
		d.holdWhileAlive() // the mode was changed meanwhile, or the kubelet speaks
		return
	}
	if po.Attempts >= d.p.PowerOffAttempts {
		d.hold(ReasonPowerOffFailed, d.powerOffFailed())
		return
	}
	if r, why := d.powerOffForbidden(); r != "" {
		d.hold(r, why)
		return
	}
	d.intendPowerOff()
}

func (d *decider) powerOffFailed() string {
	po := d.c.PowerOff
	message := fmt.Sprintf("%d attempts, and %s", po.Attempts, d.c.Verdict.Message)
	if po.Failure.Kind != NoFailure {
		message += "; the last attempt: " + po.Failure.Message
	}
	return message
}

// stepTainting sees the intended taint through, or withdraws the intent.
func (d *decider) stepTainting() {
	n := d.o.Node
	storm, stormy := d.storm()
	switch {
	case d.ourTaint():
		d.seeTaint()
	case storm != "":
		d.withdrawTaint(stormy)
	case n.Taint.Present || !n.NotReady() || n.Paused != "" || !d.o.Lease.Exists || d.p.Mode == Observe:
		d.withdrawTaint("the node's own state has changed")
	case d.c.Verdict.Kind == VerdictOff:
		d.actions = append(d.actions, Action{Kind: ActionTaint})
		d.wake(d.o.Now.Add(retryAction))
		d.holdIfStuck(d.c.Taint.IntendedAt, "the taint")
	case d.c.Verdict.Reason == ReasonOffNotProved && d.c.Streak.Count >= d.p.Readings:
		// The proof has only grown old, as after a change of leader: the next
		// reading renews it or ends it.
		d.holdIfStuck(d.c.Taint.IntendedAt, "the taint")
	default:
		d.withdrawTaint(d.c.Verdict.Message)
	}
}

func (d *decider) withdrawTaint(why string) {
	d.release()
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
		"; "+listing("volumes to detach", d.o.Workloads.Attachments)+"; "+listing("pods that stay", d.o.Workloads.Staying))
	d.wake(d.o.Now.Add(retryAction))
}

// listing names at most five of the names.
func listing(what string, names []string) string {
	const most = 5
	switch n := len(names); {
	case n == 0:
		return what + ": none"
	case n > most:
		return fmt.Sprintf("%s: %s and %d more", what, strings.Join(names[:most], ", "), n-most)
	}
	return what + ": " + strings.Join(names, ", ")
}
