package controller_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/nodefence/nodefence/config/v1alpha1"
	"github.com/nodefence/nodefence/controller"
)

// reload puts another configuration into force, as the watcher of the file does.
func (p *process) reload(text string) {
	p.config.Set(p.parse(text))
	p.ctl.Requeue()
}

// A change to mode Fence takes effect on a case that is open.
func TestModeFenceTakesEffectOnAnOpenCase(t *testing.T) {
	inWorld(t, func(w *world) {
		p := w.start()
		w.run(30 * time.Second)
		w.hang("node-1")
		w.run(4 * time.Minute)
		if n := w.machine("node-1").timesPoweredOff(); n != 0 || w.heldFor("node-1") != "PoweredOn" {
			t.Fatalf("%d power-offs in mode Confirm, held for %q", n, w.heldFor("node-1"))
		}
		p.reload(fenceConfig)
		w.await(10*time.Second, "powered off", func() bool { return w.machine("node-1").timesPoweredOff() == 1 })
		w.await(time.Minute, "tainted", func() bool { return w.tainted("node-1") })
		if n := len(w.cases()); n != 1 {
			t.Errorf("%d cases", n)
		}
	})
}

// A change to mode Observe between the decision and the action forbids it.
func TestModeObserveForbidsWhatIsIntended(t *testing.T) {
	for name, tt := range map[string]struct {
		config, mode string
		fail         func(*world)
		match        func(call) bool
	}{
		"taint":     {baseConfig, "mode: Confirm", func(w *world) { w.crash("node-1") }, lastLookAt("node-1")},
		"power-off": {fenceConfig, "mode: Fence", func(w *world) { w.hang("node-1") }, lastLookAt("node-1")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(w *world) {
				w.config = tt.config
				var p *process
				looked := w.once(tt.match, func() error {
					p.config.Set(p.parse(strings.Replace(tt.config, tt.mode, "mode: Observe", 1)))
					return nil
				})
				p = w.start()
				w.run(30 * time.Second)
				tt.fail(w)
				w.await(3*time.Minute, "looked at", func() bool { return *looked > 0 })
				w.run(3 * time.Minute)
				if n := w.machine("node-1").timesPoweredOff(); w.taints != 0 || n != 0 {
					t.Errorf("%d taints and %d power-offs were sent", w.taints, n)
				}
			})
		})
	}
}

// A taint does not stay for good because its group went away.
func TestGroupGoesAwayWhileTainted(t *testing.T) {
	inWorld(t, func(w *world) {
		p := w.start()
		w.run(30 * time.Second)
		w.crash("node-1")
		w.await(2*time.Minute, "tainted", func() bool { return w.tainted("node-1") })
		p.reload(strings.Replace(baseConfig, "pool: workers", "pool: others", 1))
		w.run(time.Minute)
		if !w.tainted("node-1") {
			t.Error("the taint went with the group, while the machine is off")
		}
		w.boot("node-1")
		w.run(25 * time.Second)
		if !w.tainted("node-1") {
			t.Error("the taint went before the node had been Ready for 30 s")
		}
		w.await(2*time.Minute, "closed", func() bool { return w.state("node-1") == "Closed" })
		if err := w.clean("node-1"); err != nil {
			t.Error(err)
		}
	})
}

// A person deletes the case of a node that carries the taint: the taint is taken
// care of all the same, whether a controller watches or not.
func TestCaseIsDeletedWhileTainted(t *testing.T) {
	for name, watched := range map[string]bool{"watched": true, "while no controller runs": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(w *world) {
				p := w.start()
				w.run(30 * time.Second)
				w.crash("node-1")
				w.await(2*time.Minute, "tainted", func() bool { return w.tainted("node-1") && w.state("node-1") == "Tainted" })
				old := w.newestCase("node-1")
				if !watched {
					if err := p.stop(); err != nil {
						t.Fatal(err)
					}
				}
				w.remove(v1alpha1.FencingCases, "", old.Name)
				if !watched {
					w.run(10 * time.Second)
					w.start()
				}
				w.await(20*time.Second, "adopted", func() bool { return w.state("node-1") == "Tainted" })
				if fc := w.newestCase("node-1"); fc.UID == old.UID || len(w.eventsOf("Node", "node-1", "TaintAdopted")) != 1 {
					t.Errorf("nobody is told that the case is another one: %s", w.describe())
				}
				w.boot("node-1")
				w.await(2*time.Minute, "closed", func() bool { return w.state("node-1") == "Closed" })
				if err := w.clean("node-1"); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A person deletes an open case: the node is looked at anew, from the beginning.
func TestOpenCaseIsDeleted(t *testing.T) {
	inWorld(t, func(w *world) {
		w.start()
		w.run(30 * time.Second)
		w.hang("node-1")
		w.await(3*time.Minute, "held", func() bool { return w.heldFor("node-1") == "PoweredOn" })
		old := w.newestCase("node-1")
		w.remove(v1alpha1.FencingCases, "", old.Name)
		w.await(20*time.Second, "opened anew", func() bool { fc := w.newestCase("node-1"); return fc != nil && fc.UID != old.UID })
	})
}

// edits make a case into what nodefence never writes.
var edits = map[string]func(map[string]any){
	"state": func(o map[string]any) { _ = unstructured.SetNestedField(o, "Exploded", "status", "state") },
	"verdict": func(o map[string]any) {
		_ = unstructured.SetNestedField(o, "Probably off", "status", "verdict", "kind")
	},
	// As a newer nodefence may have written it, before it was rolled back.
	"reason": func(o map[string]any) { _ = unstructured.SetNestedField(o, "TooHot", "status", "verdict", "reason") },
}

// A case that was edited into nonsense blocks its node, loudly, until it is
// deleted; other nodes are looked after.
func TestCaseEditedIntoNonsense(t *testing.T) {
	for name, edit := range edits {
		for when, restart := range map[string]bool{"while it runs": false, "before it starts": true} {
			t.Run(name+" "+when, func(t *testing.T) {
				t.Parallel()
				inWorld(t, func(w *world) {
					w.config = roomyBudget
					p := w.start()
					w.run(30 * time.Second)
					w.crash("node-1")
					w.await(time.Minute, "suspected", func() bool { return w.state("node-1") == "Suspected" })
					name := w.newestCase("node-1").Name
					if restart {
						if err := p.stop(); err != nil {
							t.Fatal(err)
						}
					}
					w.editCase(name, edit)
					if restart {
						p = w.start()
					}
					w.nonsense(p, name)
				})
			})
		}
	}
}

func (w *world) nonsense(p *process, name string) {
	w.t.Helper()
	w.run(30 * time.Second)
	w.crash("node-2")
	w.await(2*time.Minute, "another node tainted", func() bool { return w.tainted("node-2") })
	w.run(2 * time.Minute)
	if w.tainted("node-1") || w.taints != 1 {
		w.t.Errorf("%d taints were sent", w.taints)
	}
	read := w.machine("node-1").timesRead()
	w.run(time.Minute)
	if n := w.machine("node-1").timesRead(); n != read {
		w.t.Errorf("the machine was read %d times more", n-read)
	}
	if len(w.eventsOf("FencingCase", name, "CaseUnusable")) == 0 {
		w.t.Error("no Event tells that the case is unusable")
	}
	if p.metric("nodefence_unusable_cases_total") < 1 || w.logged("case cannot be used") == 0 {
		w.t.Error("neither metrics nor log tell that the case is unusable")
	}
	w.remove(v1alpha1.FencingCases, "", name)
	w.await(2*time.Minute, "tainted once the case is deleted", func() bool { return w.tainted("node-1") })
}

// A taint that a person removes is not set again behind his back, and a taint
// that a person sets later is not ours (S10).
func TestTaintsOfPersons(t *testing.T) {
	inWorld(t, func(w *world) {
		w.start()
		w.run(30 * time.Second)
		w.crash("node-1")
		w.await(2*time.Minute, "tainted", func() bool { return w.tainted("node-1") })
		w.changeNode("node-1", func(n *corev1.Node) { n.Spec.Taints = n.Spec.Taints[:1] })
		w.run(2 * time.Minute)
		if n := w.node("node-1"); hasTaint(n, controller.OutOfServiceTaint) || w.heldFor("node-1") != "TaintRemoved" {
			t.Errorf("taints are %v, held for %q", n.Spec.Taints, w.heldFor("node-1"))
		}
		w.boot("node-1")
		w.await(2*time.Minute, "closed", func() bool { return w.state("node-1") == "Closed" })
		w.changeNode("node-1", func(n *corev1.Node) {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: controller.OutOfServiceTaint, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute})
		})
		w.run(10 * time.Minute)
		if n := w.node("node-1"); !hasTaint(n, controller.OutOfServiceTaint) || w.untaints != 0 {
			t.Errorf("a person's taint was removed: %s", w.describe())
		}
	})
}

// The node comes back with the boot that it had: its machine was never off. The
// taint goes at once, and nothing more is done until a person deletes the case
// (S11).
func TestContradiction(t *testing.T) {
	inWorld(t, func(w *world) {
		w.start()
		w.run(30 * time.Second)
		w.crash("node-1")
		w.await(2*time.Minute, "tainted", func() bool { return w.tainted("node-1") })
		k := w.kubelets["node-1"]
		w.boot("node-1")
		k.boots = 1
		w.await(5*time.Second, "untainted", func() bool { return !w.tainted("node-1") })
		w.await(5*time.Second, "distrusted", func() bool { return w.state("node-1") == "Distrusted" })
		w.crash("node-1")
		w.run(5 * time.Minute)
		if w.taints != 1 || w.state("node-1") != "Distrusted" {
			t.Errorf("%d taints, and the case is %s", w.taints, w.state("node-1"))
		}
		w.remove(v1alpha1.FencingCases, "", w.newestCase("node-1").Name)
		w.await(2*time.Minute, "tainted once the case is deleted", func() bool { return w.tainted("node-1") })
	})
}

// A pod that is bound to the node after it is back keeps the taint until maxWait;
// then it goes with an alert (S10).
func TestUntaintOverdue(t *testing.T) {
	inWorld(t, func(w *world) {
		w.start()
		w.run(30 * time.Second)
		crashAndReturn(w)
		w.keepPods = true
		w.create(podsResource, "default", &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "stuck", Namespace: "default"}, Spec: corev1.PodSpec{NodeName: "node-1"}})
		w.run(4*time.Minute + 50*time.Second)
		if !w.tainted("node-1") {
			t.Error("the taint went while a pod was left")
		}
		w.await(time.Minute, "untainted", func() bool { return !w.tainted("node-1") })
		if len(w.eventsOf("Node", "node-1", "UntaintOverdue")) == 0 {
			t.Error("nobody was told")
		}
		if err := w.clean("node-1"); err != nil {
			t.Error(err)
		}
	})
}
