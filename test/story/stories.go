package story

import (
	"context"
	"time"
)

// PowerLoss: a machine with a stateful workload loses power. It is proved off,
// tainted, its pod and its disk move; it comes back and the taint goes.
func PowerLoss(ctx context.Context, w *World, n *Node, app string) error {
	w.Timeline.Title("Power loss on "+n.Name+" ("+string(n.BMC.Kind())+")", "Proof, taint, the pod and its disk move; the machine comes back, the taint goes.")
	if err := w.place(ctx, app, n); err != nil {
		return err
	}
	since := w.fail(n, "%s loses its power", n.Machine.PowerLoss)
	if err := w.moves(ctx, n, app, since); err != nil {
		return err
	}
	return w.comesBack(ctx, n, since, n.Machine.PowerRestore)
}

// place runs a StatefulSet with a disk on the node.
func (w *World) place(ctx context.Context, app string, n *Node) error {
	if err := w.Cluster.CreateStatefulSet(ctx, "default", app, n.Name); err != nil {
		return err
	}
	on, err := w.Cluster.WaitRunning(ctx, "default", app+"-0", "")
	if err != nil {
		return err
	}
	if on != n.Name {
		return wrong("pod %s-0 runs on %s, not on %s", app, on, n.Name)
	}
	return nil
}

// fail does something to a machine and starts the story's clock.
func (w *World) fail(n *Node, what string, do func(by string) error) time.Time {
	w.Timeline.Zero()
	since := time.Now()
	w.Timeline.Add("machine", what, n.Name)
	if err := do("the story"); err != nil {
		w.Timeline.Add("machine", "%s: %v", n.Name, err)
	}
	return since
}

// moves waits until the node is tainted with proof and its workload is elsewhere.
func (w *World) moves(ctx context.Context, n *Node, app string, since time.Time) error {
	fc, err := w.WaitCase(ctx, n, since, "evacuated", evacuated)
	if err != nil {
		return err
	}
	on, err := w.Cluster.WaitRunning(ctx, "default", app+"-0", n.Name)
	if err != nil {
		return err
	}
	attachments, err := w.Cluster.Attachments(ctx, n.Name)
	if err != nil {
		return err
	}
	if len(attachments) != 0 {
		return wrong("%d disks are still attached to %s", len(attachments), n.Name)
	}
	w.Timeline.Add("story", "the workload runs on %s, %.1f s after the failure", on, time.Since(since).Seconds())
	if took, ok := w.taintLatency(fc, since); ok {
		w.TaintLatencies = append(w.TaintLatencies, took)
		w.Timeline.Add("story", "from the complete proof and not Ready to the taint: %.3f s", took.Seconds())
	}
	return w.GroundTruth()
}

// comesBack powers the machine on and waits until the case is closed.
func (w *World) comesBack(ctx context.Context, n *Node, since time.Time, powerOn func(by string) error) error {
	before := n.Machine.BootID()
	w.Timeline.Add("machine", "%s gets its power back", n.Name)
	if err := powerOn("the story"); err != nil {
		return err
	}
	if n.Machine.Power().String() != "On" {
		if err := n.Machine.PowerOn("the story"); err != nil {
			return err
		}
	}
	if _, err := w.WaitCase(ctx, n, since, "closed", inState("Closed")); err != nil {
		return err
	}
	if n.Machine.BootID() == before {
		return wrong("machine %s has not booted anew", n.Name)
	}
	if err := w.WaitReady(ctx, n); err != nil {
		return err
	}
	if node, err := w.node(ctx, n.Name); err != nil || outOfService(node) {
		return wrong("node %s still carries the taint (%v)", n.Name, err)
	}
	w.Timeline.Add("story", "%s is back, the taint is gone, the case is closed", n.Name)
	return nil
}

// Reset: a warm reset. The power never goes; the node is silent while it boots.
func Reset(ctx context.Context, w *World, n *Node) error {
	w.Timeline.Title("Reset of "+n.Name+" ("+string(n.BMC.Kind())+")", "The node is silent while its machine boots. It is never tainted.")
	since := w.fail(n, "%s is reset", n.Machine.Reset)
	return w.neverTainted(ctx, n, since)
}

// PowerCycle: the machine reads Off for a while and starts again.
func PowerCycle(ctx context.Context, w *World, n *Node) error {
	w.Timeline.Title("Power cycle of "+n.Name+" ("+string(n.BMC.Kind())+")", "It reads Off for "+w.Timing.CycleOff.String()+" and starts again. It is never tainted.")
	since := w.fail(n, "%s is power cycled", func(string) error { return n.BMC.PowerCycle(w.Timing.CycleOff) })
	return w.neverTainted(ctx, n, since)
}

// neverTainted waits until the case of a reboot is closed.
func (w *World) neverTainted(ctx context.Context, n *Node, since time.Time) error {
	fc, err := w.WaitCase(ctx, n, since, "closed", inState("Closed"))
	if err != nil {
		return err
	}
	if err := w.WaitReady(ctx, n); err != nil {
		return err
	}
	if seen := w.watch.tainted(n.Name, since); len(seen) > 0 || fc.Status.Taint != nil {
		return wrong("node %s was tainted during a reboot", n.Name)
	}
	w.Timeline.Add("story", "%s is back after its reboot; it was never tainted", n.Name)
	return nil
}

// Hang: the kubelet is silent and the power is on. In mode Confirm the case is
// held and announced; in mode Fence the machine is powered off, and then all goes
// as after a power loss.
func Hang(ctx context.Context, w *World, n *Node, app string) error {
	w.Timeline.Title("A hung machine: "+n.Name+" ("+string(n.BMC.Kind())+")", "Mode Confirm holds the case and alerts; mode Fence powers the machine off, proves it, and goes on.")
	if err := w.place(ctx, app, n); err != nil {
		return err
	}
	since := w.fail(n, "%s hangs: its kubelet is silent, its power is on", n.Machine.Hang)
	if _, err := w.WaitCase(ctx, n, since, "held because it is powered on", heldFor("PoweredOn")); err != nil {
		return err
	}
	if err := w.alerted(ctx, n, "PoweredOn"); err != nil {
		return err
	}
	if seen := w.watch.tainted(n.Name, since); len(seen) > 0 {
		return wrong("node %s was tainted in mode Confirm while its machine was on", n.Name)
	}
	w.Timeline.Add("story", "held and announced; nothing was done")
	if err := w.SetMode("Fence"); err != nil {
		return err
	}
	if err := w.moves(ctx, n, app, since); err != nil {
		return err
	}
	if by := n.Machine.State().LastOffBy; by == "the story" {
		return wrong("machine %s was switched off by %s", n.Name, by)
	}
	if err := w.SetMode("Confirm"); err != nil {
		return err
	}
	return w.comesBack(ctx, n, since, n.Machine.PowerOn)
}

// Unreachable: the machine is off and its BMC does not answer. Nothing is done.
func Unreachable(ctx context.Context, w *World, n *Node) error {
	w.Timeline.Title("A BMC that cannot be reached: "+n.Name+" ("+string(n.BMC.Kind())+")", "The machine may be off; nobody can say. Held and announced, nothing done.")
	n.BMC.Unreachable(true)
	since := w.fail(n, "%s loses its power, and its BMC does not answer", n.Machine.PowerLoss)
	return w.heldUntilMended(ctx, n, since, "Unreachable", func() error { n.BMC.Unreachable(false); return nil })
}

// WrongMachine: the address leads to another machine, which is off. Nothing is done.
func WrongMachine(ctx context.Context, w *World, n *Node) error {
	w.Timeline.Title("The wrong machine behind the address of "+n.Name+" ("+string(n.BMC.Kind())+")", "Another machine answers, and it is off. Held and announced, nothing done.")
	if err := n.BMC.AnswersForAnother(true); err != nil {
		return err
	}
	since := w.fail(n, "%s loses its power, and another machine answers at its address", n.Machine.PowerLoss)
	return w.heldUntilMended(ctx, n, since, "WrongMachine", func() error { return n.BMC.AnswersForAnother(false) })
}

// heldUntilMended waits for the hold, sees that nothing is done for longer than a
// proof would take, and lets everything come back.
func (w *World) heldUntilMended(ctx context.Context, n *Node, since time.Time, reason string, mend func() error) error {
	if _, err := w.WaitCase(ctx, n, since, "held for "+reason, heldFor(reason)); err != nil {
		return err
	}
	if err := w.alerted(ctx, n, reason); err != nil {
		return err
	}
	if err := pause(ctx, w.Timing.Hold+2*w.Timing.Interval); err != nil {
		return err
	}
	if seen := w.watch.tainted(n.Name, since); len(seen) > 0 {
		return wrong("node %s was tainted without proof", n.Name)
	}
	w.Timeline.Add("story", "held and announced; nothing was done for longer than a proof takes")
	// The machine first: the node is back before the BMC could prove anything.
	if err := n.Machine.PowerRestore("the story"); err != nil {
		return err
	}
	if err := n.Machine.PowerOn("the story"); err != nil {
		return err
	}
	w.Timeline.Add("machine", "%s gets its power back, and its BMC is mended", n.Name)
	if err := mend(); err != nil {
		return err
	}
	if _, err := w.WaitCase(ctx, n, since, "closed", inState("Closed")); err != nil {
		return err
	}
	return w.WaitReady(ctx, n)
}
