package controller_test

import (
	"testing"
	"time"
)

// A case that was created, and then could not be written, comes to an end like any
// other when the node is back: by the controller that created it, and by the next.
func TestBegunCaseIsClosed(t *testing.T) {
	for name, ends := range map[string]func(*world){
		"the same controller": func(*world) {},
		"the next controller": func(w *world) { w.processes[0].kill() },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.restarts = true
				refused := 0
				w.intercept(func(c call) error {
					if c.resource == "fencingcases" && c.subresource == "status" {
						refused++
						return errTooBusy
					}
					return nil
				})
				w.start()
				w.run(5 * time.Second)
				w.hang("node-1")
				w.await(time.Minute, "created", func() bool { return len(w.cases()) == 1 && refused > 0 })
				w.kubelets["node-1"].running = true
				w.run(15 * time.Second)
				ends(w)
				w.intercept(nil)
				w.await(2*time.Minute, "closed", func() bool { return w.state("node-1") == "Closed" })
				if n := len(w.cases()); n != 1 {
					t.Errorf("%d cases", n)
				}
			})
		})
	}
}

// An object whose state alone somebody emptied has not just begun: it blocks.
func TestEmptiedStateBlocks(t *testing.T) {
	inWorld(t, func(w *world) {
		w.config = fenceConfig
		p := w.start()
		w.run(5 * time.Second)
		w.hang("node-1")
		w.await(time.Minute, "opened", func() bool { return w.state("node-1") == "Suspected" })
		if err := p.stop(); err != nil {
			t.Fatal(err)
		}
		w.editCase(w.newestCase("node-1").Name, func(o map[string]any) { delete(o["status"].(map[string]any), "state") })
		w.start()
		w.run(5 * time.Minute)
		if w.machine("node-1").timesPoweredOff() != 0 || w.taints != 0 {
			t.Error("something was done about the node")
		}
		if len(w.eventsOf("FencingCase", w.cases()[0].Name, "CaseUnusable")) == 0 {
			t.Error("nobody was told")
		}
	})
}

// A hold that was stored by a controller that died before it told anybody is told by
// the next one (S14).
func TestHoldIsToldAfterACrash(t *testing.T) {
	inWorld(t, func(w *world) {
		w.restarts = true
		w.start()
		w.run(5 * time.Second)
		killed := false
		w.loseAnswers(func(c call) error {
			if c.resource == "fencingcases" && c.subresource == "status" && !killed && w.heldFor("node-1") != "" {
				killed = true
				w.processes[0].kill()
				return errDead
			}
			return nil
		})
		w.hang("node-1")
		w.await(3*time.Minute, "killed as it stores the hold", func() bool { return killed })
		if n := len(w.eventsOf("Node", "node-1", "PoweredOn")); n != 0 {
			t.Fatalf("%d Events before the crash: the test is about nothing", n)
		}
		w.await(time.Minute, "told", func() bool { return len(w.eventsOf("Node", "node-1", "PoweredOn")) > 0 })
	})
}
