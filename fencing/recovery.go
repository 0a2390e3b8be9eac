package fencing

import (
	"fmt"
	"time"
)

// stepTainted watches the workloads leave and the machine stay off.
func (d *decider) stepTainted() {
	n := d.o.Node
	if !d.ourTaint() {
		d.taintVanished()
		return
	}
	d.noteEvacuation()
	e, ok := d.c.Newest()
	switch {
	case n.Ready == ReadyTrue:
		d.recover(ReasonNodeReady, "the node is Ready again")
	case ok && e.AskedAt.After(d.c.Taint.AppliedAt) && d.c.Verdict.Kind.alive():
		d.recover(ReasonMachineOn, d.c.Verdict.Message)
	case d.c.Taint.EvacuatedAt.IsZero():
		d.holdWhileStuck()
	default:
		d.release()
	}
}

// alive tells whether the verdict is that the right machine has power.
func (k VerdictKind) alive() bool { return k == Running || k == Rebooting || k == VerdictSuspended }

// noteEvacuation records once that everything that had to leave has left.
func (d *decider) noteEvacuation() {
	if d.c.Taint.EvacuatedAt.IsZero() && d.o.Workloads.Gone() {
		d.c.Taint.EvacuatedAt = d.o.Now
		d.note(Info, ReasonEvacuated, fmt.Sprintf("no pod that had to leave and no volume is left, %s after the taint; %s",
			d.o.Now.Sub(d.c.Taint.AppliedAt).Round(100*time.Millisecond), listing("pods that stay", d.o.Workloads.Staying)))
	}
}

// holdWhileStuck tells people when workloads cannot leave.
func (d *decider) holdWhileStuck() {
	due := d.c.Taint.AppliedAt.Add(d.p.MaxWait)
	if d.o.Now.Before(due) {
		d.wake(due)
		return
	}
	d.hold(ReasonWorkloadsStuck, d.leftovers())
}

func (d *decider) leftovers() string {
	w := d.o.Workloads
	if !w.Known {
		return "it could not be listed what is left on the node"
	}
	return listing("pods that have not left", w.Leaving) + "; " + listing("volumes that are not detached", w.Attachments)
}

// taintVanished deals with a taint that somebody else removed.
func (d *decider) taintVanished() {
	if d.o.Node.Ready == ReadyTrue {
		d.recover(ReasonNodeReady, "the node is Ready again, and somebody has removed the taint")
		return
	}
	d.holdTaintRemoved()
}

// holdTaintRemoved holds the case for what somebody else did to our taint.
func (d *decider) holdTaintRemoved() {
	if d.o.Node.Taint.Present {
		d.hold(ReasonForeignTaint, "the out-of-service taint does not bear this case's mark any more")
		return
	}
	d.hold(ReasonTaintRemoved, "the taint was removed by somebody else while the node was not Ready")
}

func (d *decider) recover(r Reason, message string) {
	d.release()
	d.c.State = Recovering
	d.note(Info, r, message)
	d.wake(d.o.Now.Add(retryAction))
}

// stepRecovering keeps the taint until nothing needs it any more (S10).
func (d *decider) stepRecovering() {
	n := d.o.Node
	d.noteEvacuation()
	switch {
	case !d.ourTaint():
		d.afterTaint()
		return
	case n.Ready != ReadyTrue && d.c.Verdict.Kind == VerdictOff:
		d.release()
		d.c.State = Tainted
		d.note(Warning, ReasonRelapsed, d.c.Verdict.Message)
		return
	case n.Ready != ReadyTrue:
		d.holdForVerdict(d.p.MaxWait) // it is on, or was, and does not come back
		return
	}
	d.release()
	stable := d.c.ReadySince.Add(d.p.StableFor)
	overdue := d.c.ReadySince.Add(d.p.MaxWait)
	d.wake(stable)
	d.wake(overdue)
	switch {
	case !d.o.Now.Before(stable) && d.newBoot() && d.o.Workloads.Gone():
		d.intendUntaint(Info, ReasonUntaintIntended, fmt.Sprintf("the node has been Ready for %s with a new boot, and nothing is left that needs the taint", d.p.StableFor))
	case !d.o.Now.Before(overdue):
		why := d.leftovers()
		if !d.newBoot() {
			why = fmt.Sprintf("it cannot be seen that the node has booted anew (boot ID before %q, now %q); ", d.c.BootID, n.BootID) + why
		}
		d.intendUntaint(Warning, ReasonUntaintOverdue, fmt.Sprintf("the node has been Ready for %s: %s", d.p.MaxWait, why))
		d.actions = append(d.actions, Action{Kind: ActionAlert, Alert: d.entries[len(d.entries)-1]})
	}
}

// newBoot tells whether the node runs another boot than the one that fell silent.
func (d *decider) newBoot() bool {
	return d.c.BootID != "" && d.o.Node.BootID != "" && d.c.BootID != d.o.Node.BootID
}

func (d *decider) intendUntaint(s Severity, r Reason, message string) {
	d.release()
	d.c.State = Untainting
	d.c.Taint.UntaintIntendedAt = d.o.Now
	d.note(s, r, message)
	d.actions = append(d.actions, Action{Kind: ActionUntaint})
	d.wake(d.o.Now.Add(retryAction))
}

// stepUntainting sees the removal through, or withdraws the intent.
func (d *decider) stepUntainting() {
	switch {
	case !d.ourTaint():
		d.afterTaint()
	case d.o.Node.Ready != ReadyTrue:
		d.c.State, d.c.Taint.UntaintIntendedAt = Recovering, time.Time{}
		d.note(Warning, ReasonUntaintWithdrawn, "the node's Ready condition is "+d.o.Node.Ready.String())
		d.wake(d.o.Now.Add(retryAction))
	default:
		d.actions = append(d.actions, Action{Kind: ActionUntaint})
		d.wake(d.o.Now.Add(retryAction))
		d.holdIfStuck(d.c.Taint.UntaintIntendedAt, "the removal of the taint")
	}
}

// afterTaint closes the case once its taint is gone and the node is well, or is
// silent anew after we have removed the taint: that is another incident.
func (d *decider) afterTaint() {
	if d.c.Taint.RemovedAt.IsZero() && !d.o.Node.Taint.Present {
		d.c.Taint.RemovedAt = d.o.Now
		d.note(Info, ReasonTaintGone, "the out-of-service taint is gone")
	}
	switch {
	case d.o.Node.Taint.Present:
		d.holdTaintRemoved()
	case d.o.Node.Ready == ReadyTrue:
		d.closeRecovered()
	case d.c.State == Untainting:
		d.close(ReasonClosedRecovered, "the taint was removed from a stable node, which is not Ready again: that is a new case")
	default:
		d.holdTaintRemoved()
	}
}

// contradiction says what in the evidence cannot be true together once the
// machine was called off (S11), or nothing.
func (d *decider) contradiction() string {
	if d.c.State != Tainted && d.c.State != Recovering && d.c.State != Untainting {
		return ""
	}
	n := d.o.Node
	if n.Ready == ReadyTrue && n.BootID != "" && n.BootID == d.c.BootID {
		return fmt.Sprintf("the node is Ready again with the boot ID that it had before (%s): its machine was never off", n.BootID)
	}
	e, ok := d.c.Newest()
	// A last reset that differs from the one before the taint is a restart,
	// whatever the BMC's clock says of it; an unchanged one that lies before our
	// Off readings means that the machine ran on through them.
	if ok && e.Power == On && e.Match == IdentityProved && e.AskedAt.After(d.c.Taint.AppliedAt) && !e.Hints.LastReset.Before(plausible) &&
		e.Hints.LastReset.Equal(d.c.Taint.LastReset) && e.Hints.LastReset.Before(d.c.Taint.OffSince) {
		return fmt.Sprintf("%s says that the machine is on and was last reset at %s, before it read Off", e.Driver, e.Hints.LastReset.UTC().Format(time.RFC3339))
	}
	return ""
}

// plausible is the earliest last reset that is believed to be one: BMCs without a
// clock give 1970 or their firmware's year, and never change it.
var plausible = time.Date(2015, 1, 1, 0, 0, 0, 0, time.UTC)

// distrust ends all belief in the provider for this node (S11).
func (d *decider) distrust(why string) {
	d.c.State = Distrusted
	d.c.Streak = Streak{}
	d.c.Verdict = Verdict{Kind: Contradicted, Reason: ReasonContradiction, Message: why, Since: d.o.Now}
	d.note(Critical, ReasonContradiction, why)
	d.hold(ReasonContradiction, why)
}

// stepDistrusted withdraws our taint and waits for a person.
func (d *decider) stepDistrusted() {
	if d.ourTaint() {
		if d.c.Taint.UntaintIntendedAt.IsZero() {
			d.c.Taint.UntaintIntendedAt = d.o.Now
		}
		d.actions = append(d.actions, Action{Kind: ActionUntaint})
		d.wake(d.o.Now.Add(retryAction))
		return
	}
	if d.c.Taint.RemovedAt.IsZero() && !d.c.Taint.AppliedAt.IsZero() {
		d.c.Taint.RemovedAt = d.o.Now
		d.note(Info, ReasonTaintGone, "the out-of-service taint is gone")
	}
}
