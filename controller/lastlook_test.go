package controller_test

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nodefence/nodefence/controller"
)

// changes are what may happen between a decision and the last look.
var changes = map[string]struct {
	rule   string
	change func(*world)
}{
	"Lease renewed": {"S4", func(w *world) { w.renewLease("node-1", time.Now()) }},
	"Lease deleted": {"S4", func(w *world) { w.remove(leasesResource, corev1.NamespaceNodeLease, "node-1") }},
	"node Ready": {"S4", func(w *world) {
		w.credulous = true
		w.changeNode("node-1", func(n *corev1.Node) { setReady(n, corev1.ConditionTrue) })
	}},
	"another UID": {"S4", func(w *world) { w.replaceNode("node-1") }},
	"another taint": {"S10", func(w *world) {
		w.changeNode("node-1", func(n *corev1.Node) {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: controller.OutOfServiceTaint, Effect: corev1.TaintEffectNoSchedule})
		})
	}},
	"paused": {"S5", func(w *world) {
		w.changeNode("node-1", func(n *corev1.Node) { n.Annotations[controller.PausedAnnotation] = "Ada: I am at the machine" })
	}},
}

// once makes a change at the first call that matches, before it is carried out.
func (w *world) once(match func(call) bool, change func() error) *int {
	times := new(int)
	w.intercept(func(c call) error {
		if !match(c) || *times > 0 {
			return nil
		}
		*times++
		return change()
	})
	return times
}

func lastLookAt(node string) func(call) bool {
	return func(c call) bool { return c.verb == "get" && c.resource == "nodes" && c.name == node }
}

func patchOf(node string) func(call) bool {
	return func(c call) bool { return c.verb == "patch" && c.resource == "nodes" && c.name == node }
}

// What has changed since the decision forbids the taint (S4).
func TestLastLookBeforeTheTaint(t *testing.T) {
	for name, ch := range changes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(w *world) {
				looked := w.once(lastLookAt("node-1"), func() error { ch.change(w); return nil })
				p := w.start()
				w.run(30 * time.Second)
				w.crash("node-1")
				w.await(2*time.Minute, "looked at", func() bool { return *looked > 0 })
				w.run(5 * time.Second)
				if w.taints != 0 || w.tainted("node-1") {
					t.Errorf("%d taints were sent", w.taints)
				}
				if n := p.metric("nodefence_last_look_refusals_total", "action", "Taint", "rule", ch.rule); n < 1 {
					t.Errorf("%v refusals are counted", n)
				}
			})
		})
	}
}

// The same for the power-off.
func TestLastLookBeforeThePowerOff(t *testing.T) {
	for name, ch := range changes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(w *world) {
				w.config = fenceConfig
				looked := w.once(lastLookAt("node-1"), func() error { ch.change(w); return nil })
				p := w.start()
				w.run(30 * time.Second)
				w.hang("node-1")
				w.await(3*time.Minute, "looked at", func() bool { return *looked > 0 })
				w.run(5 * time.Second)
				if n := w.machine("node-1").timesPoweredOff(); n != 0 {
					t.Errorf("%d power-offs were sent", n)
				}
				if n := p.metric("nodefence_last_look_refusals_total", "action", "PowerOff"); n < 1 {
					t.Errorf("%v refusals are counted", n)
				}
			})
		})
	}
}

// A look that fails is no look.
func TestLastLookFails(t *testing.T) {
	for name, match := range map[string]func(call) bool{
		"Node":  lastLookAt("node-1"),
		"Lease": func(c call) bool { return c.verb == "get" && c.resource == "leases" && c.name == "node-1" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(w *world) {
				failing := true
				w.intercept(func(c call) error {
					if failing && match(c) {
						return apierrors.NewInternalError(errors.New("etcd has no leader"))
					}
					return nil
				})
				w.start()
				w.run(30 * time.Second)
				w.crash("node-1")
				w.run(3 * time.Minute)
				if w.taints != 0 {
					t.Errorf("%d taints were sent without a look", w.taints)
				}
				if got := w.heldFor("node-1"); got != "ActionStuck" {
					t.Errorf("held for %q", got)
				}
				w.intercept(nil)
				w.await(time.Minute, "tainted", func() bool { return w.tainted("node-1") })
			})
		})
	}
}

// The taint stays when the node falls silent again, or gets a pod, just before it
// would be removed (S10).
func TestLastLookBeforeTheRemoval(t *testing.T) {
	for name, change := range map[string]func(*world){
		"not Ready": func(w *world) {
			w.changeNode("node-1", func(n *corev1.Node) { setReady(n, corev1.ConditionFalse) })
		},
		"a pod": func(w *world) {
			w.create(podsResource, "default", &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "late", Namespace: "default"}, Spec: corev1.PodSpec{NodeName: "node-1"}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(w *world) {
				w.start()
				w.run(30 * time.Second)
				crashAndReturn(w)
				w.keepPods = true
				looked := w.once(lastLookAt("node-1"), func() error { change(w); return nil })
				w.await(2*time.Minute, "looked at", func() bool { return *looked > 0 })
				if w.untaints != 0 || !w.tainted("node-1") {
					t.Errorf("%d removals were sent", w.untaints)
				}
			})
		})
	}
}

// A node that changes between the look and the patch is looked at again, and
// nothing of the change is lost.
func TestNodeChangesUnderThePatch(t *testing.T) {
	inWorld(t, func(w *world) {
		w.once(patchOf("node-1"), func() error {
			w.changeNode("node-1", func(n *corev1.Node) {
				n.Spec.Taints = append([]corev1.Taint{{Key: "example.com/new", Effect: corev1.TaintEffectNoSchedule}}, n.Spec.Taints...)
			})
			return nil
		})
		w.start()
		w.run(30 * time.Second)
		w.crash("node-1")
		w.await(2*time.Minute, "tainted", func() bool { return w.tainted("node-1") })
		if n := w.node("node-1"); !hasTaint(n, "example.com/new") || !hasTaint(n, foreignTaint) || len(n.Spec.Taints) != 3 {
			t.Errorf("taints are %v", n.Spec.Taints)
		}
		if w.taints != 2 {
			t.Errorf("%d patches were sent, the first of which was refused", w.taints)
		}
		w.expectLookBeforeEachPatch("node-1")
	})
}

func (w *world) expectLookBeforeEachPatch(node string) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	looked := false
	for _, c := range w.calls {
		switch {
		case lastLookAt(node)(c):
			looked = true
		case patchOf(node)(c):
			if !looked {
				w.t.Error("a patch was sent without a new look")
			}
			looked = false
		}
	}
}

// What the patch must not hit: a node that has come back, and another Node of the
// same name, between the look and the patch.
func TestPatchIsRefusedByWhatChanged(t *testing.T) {
	for name, change := range map[string]func(*world){
		"node Ready":  changes["node Ready"].change,
		"another UID": changes["another UID"].change,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(w *world) {
				patched := w.once(patchOf("node-1"), func() error { change(w); return nil })
				w.start()
				w.run(30 * time.Second)
				w.crash("node-1")
				w.await(2*time.Minute, "patched", func() bool { return *patched > 0 })
				if w.tainted("node-1") {
					t.Error("the taint was set")
				}
				w.run(5 * time.Second)
				if w.taints != 1 || w.tainted("node-1") {
					t.Errorf("%d patches were sent", w.taints)
				}
			})
		})
	}
}
