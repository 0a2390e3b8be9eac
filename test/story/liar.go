package story

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nodefence/nodefence/config/v1alpha1"
	"github.com/nodefence/nodefence/test/lab/ipmibmc"
)

// Liar: a BMC says Off, again and again, of the right machine, which only hangs.
// Nobody can know, so the node is tainted. When the kubelet speaks again the
// taint is withdrawn, and that BMC is believed no more until a person says so,
// also by a controller that starts anew.
func Liar(ctx context.Context, w *World, n *Node) error {
	w.Timeline.Title("A BMC that lies: "+n.Name+" ("+string(n.BMC.Kind())+")", "It says Off of a machine that hangs. Found out, the taint is withdrawn, and it is believed no more.")
	bmc, ok := n.BMC.(*ipmiBMC)
	if !ok {
		return wrong("the story needs an in-process IPMI BMC on %s", n.Name)
	}
	w.setLies(n, true)
	bmc.SetFaults(ipmibmc.Faults{ReadsOff: true})
	since := w.fail(n, "%s hangs, and its BMC says that it is off", n.Machine.Hang)
	if _, err := w.WaitCase(ctx, n, since, "tainted", inState("Tainted")); err != nil {
		return err
	}
	w.Timeline.Add("machine", "%s runs on", n.Name)
	if err := n.Machine.Unhang("the story"); err != nil {
		return err
	}
	fc, err := w.WaitCase(ctx, n, since, "distrusted", inState("Distrusted"))
	if err != nil {
		return err
	}
	if err := w.waitUntainted(ctx, n); err != nil {
		return err
	}
	if err := w.alerted(ctx, n, "Contradiction"); err != nil {
		return err
	}
	w.KillNodefence()
	if err := w.StartNodefence(ctx); err != nil {
		return err
	}
	w.Timeline.Add("machine", "%s hangs again", n.Name)
	if err := n.Machine.Hang("the story"); err != nil {
		return err
	}
	// Longer than it took to believe the BMC the first time.
	if err := pause(ctx, w.Timing.GracePeriod+w.Timing.Hold+2*w.Timing.Interval); err != nil {
		return err
	}
	again, err := w.WaitCase(ctx, n, since, "distrusted still", inState("Distrusted"))
	if err != nil {
		return err
	}
	if node, err := w.node(ctx, n.Name); err != nil || outOfService(node) || again.Name != fc.Name {
		return wrong("node %s was tainted again, or has another case: %s, before %s (%v)", n.Name, again.Name, fc.Name, err)
	}
	w.Timeline.Add("story", "it is not believed any more, not even by a controller that has started anew")
	return w.trustAgain(ctx, n, bmc, again)
}

// trustAgain mends the BMC and deletes the case, as a person does.
func (w *World) trustAgain(ctx context.Context, n *Node, bmc *ipmiBMC, fc *v1alpha1.FencingCase) error {
	bmc.SetFaults(ipmibmc.Faults{})
	if err := n.Machine.Unhang("the story"); err != nil {
		return err
	}
	if err := w.WaitReady(ctx, n); err != nil {
		return err
	}
	w.Timeline.Add("operator", "the BMC of %s is mended; deletes the case %s", n.Name, fc.Name)
	deleted := time.Now()
	if err := w.cases().Delete(ctx, fc.Name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	w.setLies(n, false)
	since := w.fail(n, "%s loses its power", n.Machine.PowerLoss)
	if _, err := w.WaitCase(ctx, n, deleted, "tainted", inState("Tainted")); err != nil {
		return err
	}
	w.Timeline.Add("story", "its BMC is believed again")
	return w.comesBack(ctx, n, since, n.Machine.PowerRestore)
}

func (w *World) setLies(n *Node, lies bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.liars[n.Name] = lies
}

func (w *World) waitUntainted(ctx context.Context, n *Node) error {
	for deadline := time.Now().Add(w.patience()); ; {
		node, err := w.node(ctx, n.Name)
		if err == nil && !outOfService(node) {
			return nil
		}
		if time.Now().After(deadline) {
			return wrong("the taint of node %s is not withdrawn (%v)", n.Name, err)
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

// pause waits, unless the context ends.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
