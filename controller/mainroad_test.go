package controller_test

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/nodefence/nodefence/controller"
)

// mainRoad is a whole life: a node whose machine loses power and comes back.
func (w *world) mainRoad(node string) {
	w.t.Helper()
	w.run(30 * time.Second)
	w.crash(node)
	w.await(4*time.Minute, "tainted", func() bool { return w.tainted(node) && w.state(node) == "Tainted" })
	w.await(time.Minute, "evacuated", func() bool { return w.newestCase(node).Status.Taint.EvacuatedAt != nil })
	w.boot(node)
	w.await(4*time.Minute, "closed", func() bool { return w.state(node) == "Closed" })
}

func TestMainRoad(t *testing.T) {
	inWorld(t, func(w *world) {
		w.start()
		w.run(30 * time.Second)
		if cases := w.cases(); len(cases) != 0 {
			t.Fatalf("healthy nodes have cases: %s", w.describe())
		}
		w.crash("node-1")
		w.await(20*time.Second, "suspected", func() bool { return w.state("node-1") == "Suspected" })
		w.await(time.Minute, "tainted", func() bool { return w.tainted("node-1") })
		w.checkMarks("node-1")
		w.await(10*time.Second, "evacuated", func() bool { return w.newestCase("node-1").Status.Taint.EvacuatedAt != nil })
		w.run(time.Minute)
		if !w.tainted("node-1") {
			t.Error("the taint went while the machine was off")
		}
		w.boot("node-1")
		w.run(25 * time.Second)
		if !w.tainted("node-1") {
			t.Error("the taint went before the node had been Ready for 30 s")
		}
		w.await(30*time.Second, "closed", func() bool { return w.state("node-1") == "Closed" })
		if err := w.clean("node-1"); err != nil {
			t.Error(err)
		}
		w.checkStory("node-1")
	})
}

// checkMarks looks at what the taint looks like.
func (w *world) checkMarks(node string) {
	n := w.node(node)
	want := corev1.Taint{Key: "node.kubernetes.io/out-of-service", Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute}
	same := func(t corev1.Taint) bool {
		return t.Key == want.Key && t.Value == want.Value && t.Effect == want.Effect
	}
	if !slices.ContainsFunc(n.Spec.Taints, same) || !hasTaint(n, foreignTaint) || len(n.Spec.Taints) != 2 {
		w.t.Errorf("taints are %v", n.Spec.Taints)
	}
	if got, want := n.Annotations[controller.CaseAnnotation], w.newestCase(node).Name; got != want {
		w.t.Errorf("the mark is %q, the case is %q", got, want)
	}
	if got := n.Annotations[controller.BootIDAnnotation]; got != bootID(node, 1) {
		w.t.Errorf("the boot ID kept is %q", got)
	}
	if n.Annotations[bmcKey] == "" {
		w.t.Error("the annotation of others is lost")
	}
}

// checkStory looks at what a whole life left behind.
func (w *world) checkStory(node string) {
	fc := w.newestCase(node)
	var reasons []string
	for _, e := range fc.Status.Timeline {
		reasons = append(reasons, e.Reason)
	}
	at := -1
	for _, want := range []string{"CaseOpened", "NodeNotReady", "TaintIntended", "TaintApplied", "WorkloadsGone", "NodeReady", "UntaintIntended", "TaintGone", "NodeRecovered"} {
		next := slices.Index(reasons, want)
		if next <= at {
			w.t.Errorf("%s does not follow in the timeline %v", want, reasons)
		}
		at = next
		if len(w.eventsOf("Node", node, want)) != 1 || len(w.eventsOf("FencingCase", fc.Name, want)) != 1 {
			w.t.Errorf("there is not one Event %s on node and case", want)
		}
	}
	if len(fc.Status.Readings) < 3 {
		w.t.Errorf("%d readings are kept", len(fc.Status.Readings))
	}
	if e := w.eventsOf("FencingCase", fc.Name, "TaintApplied"); e[0].uid != string(fc.UID) {
		w.t.Errorf("the Event is about UID %q, the case has %q", e[0].uid, fc.UID)
	}
	if w.taints != 1 || w.untaints != 1 {
		w.t.Errorf("%d taints and %d removals were sent", w.taints, w.untaints)
	}
	if n := len(w.cases()); n != 1 {
		w.t.Errorf("%d cases: %s", n, w.describe())
	}
}

// A second incident of the same node is a case of its own.
func TestTwoIncidentsAreTwoCases(t *testing.T) {
	inWorld(t, func(w *world) {
		w.start()
		w.mainRoad("node-2")
		w.mainRoad("node-2")
		if n := len(w.cases()); n != 2 {
			t.Errorf("%d cases: %s", n, w.describe())
		}
		if err := w.clean("node-2"); err != nil {
			t.Error(err)
		}
	})
}
