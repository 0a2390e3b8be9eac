package controller_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/nodefence/nodefence/controller"
	"github.com/nodefence/nodefence/fencing"
)

// twoGroups has a second group that claims the same nodes.
const twoGroups = baseConfig + `- name: more-workers
  selector: {matchLabels: {pool: workers}}
  provider: bmcs
  machine: {annotation: example.com/bmc}
`

// heldStories are nodes that fall silent and must not be touched, by the reason
// that people are told.
var heldStories = []struct {
	reason fencing.Reason
	name   string
	config string
	fail   func(*world)
}{
	{fencing.ReasonUnreachable, "the BMC cannot be reached", baseConfig, func(w *world) {
		w.crash("node-1")
		w.machine("node-1").set(func(m *machine) { m.failure = fencing.Failure{Kind: fencing.Unreachable, Message: "no route to host"} })
	}},
	{fencing.ReasonUnreachable, "the BMC hangs", baseConfig, func(w *world) {
		w.crash("node-1")
		w.machine("node-1").set(func(m *machine) { m.hangs = true })
	}},
	{fencing.ReasonWrongMachine, "another machine answers", baseConfig, func(w *world) {
		w.crash("node-1")
		w.machine("node-1").set(func(m *machine) { m.uuid = uuidOf("node-9") })
	}},
	{fencing.ReasonIdentityUnproved, "the machine has no identity", fenceConfig, func(w *world) {
		w.crash("node-1")
		w.machine("node-1").set(func(m *machine) { m.uuid = "" })
	}},
	{fencing.ReasonUnaddressed, "no address", fenceConfig, func(w *world) {
		w.crash("node-1")
		w.changeNode("node-1", func(n *corev1.Node) { n.Annotations[bmcKey] = "" })
	}},
	{fencing.ReasonUnaddressed, "two groups", twoGroups, func(w *world) { w.crash("node-1") }},
	{fencing.ReasonMisconfigured, "no Secret", fenceConfig, func(w *world) {
		w.crash("node-1")
		w.remove(secretsResource, electionNamespace, "bmc")
	}},
	{fencing.ReasonForeignTaint, "a person's taint", fenceConfig, func(w *world) {
		w.crash("node-1")
		w.changeNode("node-1", func(n *corev1.Node) {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: controller.OutOfServiceTaint, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute})
		})
	}},
	{fencing.ReasonPaused, "paused", fenceConfig, func(w *world) {
		w.crash("node-1")
		w.changeNode("node-1", func(n *corev1.Node) { n.Annotations[controller.PausedAnnotation] = "Ada: firmware" })
	}},
	{fencing.ReasonPoweredOn, "it runs, and mode is Confirm", baseConfig, func(w *world) { w.hang("node-1") }},
	{fencing.ReasonSuspended, "asleep", fenceConfig, func(w *world) {
		w.hang("node-1")
		w.machine("node-1").set(func(m *machine) { m.power = fencing.Suspended })
	}},
	{fencing.ReasonObserveOnly, "mode Observe", strings.Replace(baseConfig, "Confirm", "Observe", 1), func(w *world) { w.crash("node-1") }},
	{fencing.ReasonStorm, "the whole cluster falls silent", fenceConfig, func(w *world) {
		for _, n := range w.nodes {
			w.crash(n)
		}
	}},
	{fencing.ReasonPowerOffFailed, "the power-off changes nothing", fenceConfig, func(w *world) {
		w.hang("node-1")
		w.machine("node-1").set(func(m *machine) { m.deaf = true })
	}},
}

// A case that may not go on touches nothing, and says so at once and again (S14).
func TestHeldCases(t *testing.T) {
	for _, story := range heldStories {
		t.Run(story.name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(w *world) {
				w.config = story.config
				p := w.start()
				w.run(30 * time.Second)
				story.fail(w)
				w.await(6*time.Minute, "held", func() bool { return w.heldFor("node-1") == string(story.reason) })
				w.run(11 * time.Minute)
				if w.taints+w.untaints != 0 || w.tainted("node-1") {
					t.Errorf("%d taints and %d removals were sent", w.taints, w.untaints)
				}
				if n := w.machine("node-1").timesPoweredOff(); n != 0 && story.reason != fencing.ReasonPowerOffFailed || n > 3 {
					t.Errorf("%d power-offs were sent", n)
				}
				w.checkTold(p, "node-1", story.reason)
			})
		})
	}
}

// checkTold looks at what people were told of a case that has been held for more
// than two periods of alerts.
func (w *world) checkTold(p *process, node string, reason fencing.Reason) {
	w.t.Helper()
	if got := w.heldFor(node); got != string(reason) {
		w.t.Errorf("held for %q: %s", got, w.describe())
	}
	fc := w.newestCase(node)
	if fc.Status.Hold == nil || fc.Status.Hold.Remedy == "" || fc.Status.Hold.Message == "" {
		w.t.Errorf("the case does not say what to do: %+v", fc.Status.Hold)
	}
	for kind, name := range map[string]string{"Node": node, "FencingCase": fc.Name} {
		var told []event
		for _, e := range w.eventsOf(kind, name, string(reason)) {
			if strings.Contains(e.message, reason.Remedy()) {
				told = append(told, e)
			}
		}
		if len(told) < 3 || len(told) > 4 {
			w.t.Errorf("%d Events on %s %s say what can be done", len(told), kind, name)
			continue
		}
		for i := range told[1:] {
			if apart := told[i+1].at.Sub(told[i].at); apart < 5*time.Minute || apart > 5*time.Minute+10*time.Second {
				w.t.Errorf("told again after %s", apart)
			}
		}
	}
	if n := p.metric("nodefence_held_cases", "reason", string(reason)); n < 1 {
		w.t.Errorf("%v held cases are counted", n)
	}
	if n := p.metric("nodefence_alerts_total", "reason", string(reason)); n < 3 {
		w.t.Errorf("%v alerts are counted", n)
	}
	if w.logged("ALERT: ") < 3 {
		w.t.Errorf("the log has %d alerts", w.logged("ALERT: "))
	}
}

// A node that no group selects is left alone altogether.
func TestNodeOfNoGroup(t *testing.T) {
	inWorld(t, func(w *world) {
		w.config = fenceConfig
		w.changeNode("node-1", func(n *corev1.Node) { n.Labels[poolLabel] = "laptops" })
		w.start()
		w.run(30 * time.Second)
		w.crash("node-1")
		w.run(10 * time.Minute)
		if len(w.cases()) != 0 || w.machine("node-1").timesRead() != 0 {
			t.Errorf("%d readings; %s", w.machine("node-1").timesRead(), w.describe())
		}
		w.changeNode("node-1", func(n *corev1.Node) { n.Labels[poolLabel] = "workers" })
		w.await(2*time.Minute, "tainted once it is in a group", func() bool { return w.tainted("node-1") })
	})
}

// A held case goes on by itself when the reason is gone.
func TestHeldCaseGoesOn(t *testing.T) {
	inWorld(t, func(w *world) {
		w.start()
		w.run(30 * time.Second)
		w.crash("node-1")
		w.machine("node-1").set(func(m *machine) { m.failure = fencing.Failure{Kind: fencing.Unreachable, Message: "no route to host"} })
		w.await(3*time.Minute, "held", func() bool { return w.heldFor("node-1") == "Unreachable" })
		w.machine("node-1").set(func(m *machine) { m.failure = fencing.Failure{} })
		w.await(time.Minute, "tainted", func() bool { return w.tainted("node-1") })
		if w.heldFor("node-1") != "" {
			t.Errorf("held for %s", w.heldFor("node-1"))
		}
	})
}

// roomyBudget lets several nodes fail at once.
const roomyBudget = baseConfig + "budget: {maxConcurrent: 9, maxUnhealthy: 9}\n"

// BMCs that hang do not delay the proof of another machine.
func TestHangingBMCsDelayNobody(t *testing.T) {
	moment := momentOf(t, roomyBudget, func(w *world) { w.crash("node-1") }, patchOf("node-1"))
	inWorld(t, func(w *world) {
		w.config = roomyBudget
		for i := 4; i <= 8; i++ {
			w.addNode(fmt.Sprintf("node-%d", i))
		}
		begin := time.Now()
		var late time.Duration
		w.once(patchOf("node-1"), func() error { late = time.Since(begin) - moment; return nil })
		w.start()
		w.run(30 * time.Second)
		for _, n := range w.nodes[1:] {
			w.crash(n)
			w.machine(n).set(func(m *machine) { m.hangs = true })
		}
		w.crash("node-1")
		w.await(5*time.Minute, "tainted", func() bool { return w.tainted("node-1") })
		if late > time.Second {
			t.Errorf("the taint came %s later", late)
		}
		if w.taints != 1 {
			t.Errorf("%d taints were sent", w.taints)
		}
	})
}

// No more machines are asked at once than is allowed.
func TestReadingsAtOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		w.config, w.maxReadings = roomyBudget, 2
		w.start()
		w.run(30 * time.Second)
		for _, n := range w.nodes {
			w.crash(n)
			w.machine(n).set(func(m *machine) { m.hangs = true })
		}
		w.run(5 * time.Minute)
		if w.atOnce != 2 {
			t.Errorf("%d machines were asked at once", w.atOnce)
		}
		for _, n := range w.nodes {
			if w.machine(n).timesRead() < 10 {
				t.Errorf("%s was asked %d times in 5 minutes", n, w.machine(n).timesRead())
			}
			w.machine(n).set(func(m *machine) { m.hangs = false })
		}
		w.await(2*time.Minute, "all tainted", func() bool { return w.tainted("node-1") && w.tainted("node-2") && w.tainted("node-3") })
	})
}

// One node at a time: the second case waits for the first one's workloads (S6).
func TestBudgetOfOne(t *testing.T) {
	inWorld(t, func(w *world) {
		w.config = baseConfig + "budget: {maxConcurrent: 1, maxUnhealthy: 3}\n"
		w.keepPods = true
		w.start()
		w.run(30 * time.Second)
		w.crash("node-1")
		w.crash("node-2")
		w.run(4 * time.Minute)
		if w.taints != 1 {
			t.Fatalf("%d taints were sent: %s", w.taints, w.describe())
		}
		waiting := "node-1"
		if w.tainted(waiting) {
			waiting = "node-2"
		}
		if got := w.heldFor(waiting); got != "Budget" {
			t.Errorf("%s is held for %q", waiting, got)
		}
		w.keepPods = false
		w.await(time.Minute, "tainted when the first is empty", func() bool { return w.tainted(waiting) })
	})
}

// A power-off does not wait behind BMCs that hang: what the case has called lost
// must not be sent later.
func TestPowerOffDoesNotWaitForReadings(t *testing.T) {
	inWorld(t, func(w *world) {
		w.config, w.maxReadings = fenceConfig+"budget: {maxConcurrent: 9, maxUnhealthy: 9}\n", 1
		for i := 4; i <= 6; i++ {
			w.addNode(fmt.Sprintf("node-%d", i))
		}
		w.start()
		w.run(30 * time.Second)
		for _, n := range w.nodes[1:] {
			w.crash(n)
			w.machine(n).set(func(m *machine) { m.hangs = true })
		}
		w.hang("node-1")
		w.await(10*time.Minute, "powered off", func() bool { return w.machine("node-1").timesPoweredOff() > 0 })
		intended := w.newestCase("node-1").Status.PowerOff.IntendedAt.Time
		if sent := w.machine("node-1").powerOffs[0]; sent.Sub(intended) > time.Second {
			t.Errorf("sent %s after the intent", sent.Sub(intended))
		}
	})
}
