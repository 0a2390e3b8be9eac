package story

import (
	"context"
	"fmt"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nodefence/nodefence/config/v1alpha1"
	"github.com/nodefence/nodefence/test/lab/redfishbmc"
)

// Crashes: the controller is killed in every state of one case and started again
// each time; the case goes on where it was. States that pass in a moment are held
// open by what holds them open in the field: a BMC that ignores the command, a
// permission that is missing.
func Crashes(ctx context.Context, w *World, n *Node, app string) error {
	w.Timeline.Title("Killed in every state", "nodefence is killed in each state of a case on "+n.Name+" and goes on where it was.")
	bmc, ok := n.BMC.(*redfishBMC)
	if !ok {
		return wrong("the story needs a Redfish BMC on %s", n.Name)
	}
	if err := w.place(ctx, app, n); err != nil {
		return err
	}
	if err := w.SetMode("Fence"); err != nil {
		return err
	}
	bmc.Set(redfishbmc.IgnoresReset)
	since := w.fail(n, "%s hangs, and its BMC ignores commands", n.Machine.Hang)
	steps := []struct {
		state  string
		before func() error // lets the case reach the state
		after  func() error // lets it go on from there
	}{
		{state: "Suspected"},
		{state: "PoweringOff", after: func() error { bmc.Clear(); return w.mayPatchNodes(ctx, false) }},
		{state: "Tainting", after: func() error { return w.mayPatchNodes(ctx, true) }},
		{state: "Tainted"},
		{state: "Recovering", before: func() error {
			if err := w.moves(ctx, n, app, since); err != nil {
				return err
			}
			w.Timeline.Add("machine", "%s is switched on", n.Name)
			return n.Machine.PowerOn("the story")
		}, after: func() error { return w.mayPatchNodes(ctx, false) }},
		{state: "Untainting", after: func() error { return w.mayPatchNodes(ctx, true) }},
	}
	for _, s := range steps {
		if s.before != nil {
			if err := s.before(); err != nil {
				return err
			}
		}
		fc, err := w.WaitCase(ctx, n, since, s.state, inState(s.state))
		if err != nil {
			return err
		}
		w.KillNodefence()
		w.Timeline.Add("story", "killed in state %s (%s)", s.state, fc.Name)
		if s.after != nil {
			if err := s.after(); err != nil {
				return err
			}
		}
		if err := w.StartNodefence(ctx); err != nil {
			return err
		}
		again, err := w.WaitCase(ctx, n, since, "known still", func(*v1alpha1.FencingCase) bool { return true })
		if err != nil {
			return err
		}
		if again.Name != fc.Name {
			return wrong("after a crash in state %s there is another case: %s, not %s", s.state, again.Name, fc.Name)
		}
	}
	closed, err := w.WaitCase(ctx, n, since, "closed", inState("Closed"))
	if err != nil {
		return err
	}
	if err := w.onceEach(closed, "TaintApplied", "WorkloadsGone", "TaintGone", "NodeRecovered"); err != nil {
		return err
	}
	if err := w.SetMode("Confirm"); err != nil {
		return err
	}
	if err := w.WaitReady(ctx, n); err != nil {
		return err
	}
	return w.GroundTruth()
}

// onceEach holds the timeline against what must have happened exactly once.
func (w *World) onceEach(fc *v1alpha1.FencingCase, reasons ...string) error {
	for _, r := range reasons {
		count := 0
		for _, e := range fc.Status.Timeline {
			if e.Reason == r {
				count++
			}
		}
		if count != 1 {
			return wrong("%s is %d times in the timeline of %s", r, count, fc.Name)
		}
	}
	return nil
}

// mayPatchNodes gives nodefence the permission to patch nodes, or takes it away.
func (w *World) mayPatchNodes(ctx context.Context, may bool) error {
	roles := w.Cluster.Admin.RbacV1().ClusterRoles()
	role, err := roles.Get(ctx, namespace, metav1.GetOptions{})
	if err != nil {
		return err
	}
	verbs := []string{"get", "list", "watch"}
	if may {
		verbs = append(verbs, "patch")
	}
	for i := range role.Rules {
		if isNodes(role.Rules[i]) {
			role.Rules[i].Verbs = verbs
		}
	}
	if _, err := roles.Update(ctx, role, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("permission to patch nodes: %w", err)
	}
	w.Timeline.Add("operator", "permission to patch nodes: %t", may)
	// The authorizer's own watch has to see it.
	return pause(ctx, 500*time.Millisecond)
}

func isNodes(r rbacv1.PolicyRule) bool { return len(r.Resources) == 1 && r.Resources[0] == "nodes" }
