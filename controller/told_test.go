package controller_test

import (
	"errors"
	"testing"
	"time"
)

// loseEvery loses the answer of every nth write of a case's status, which is
// carried out.
func (w *world) loseEvery(n int) *int {
	writes, lost := 0, new(int)
	w.loseAnswers(func(c call) error {
		if c.resource != "fencingcases" || c.subresource != "status" {
			return nil
		}
		writes++
		if writes%n != 0 {
			return nil
		}
		*lost++
		return errors.New("connection reset by peer")
	})
	return lost
}

// People are told of each step once, although the answers of some writes are lost.
func TestEachStepIsToldOnce(t *testing.T) {
	for n := 2; n <= 5; n++ {
		inWorld(t, func(w *world) {
			lost := w.loseEvery(n)
			w.start()
			w.mainRoad("node-1")
			w.checkStory("node-1")
			if *lost < 3 {
				t.Errorf("%d answers were lost", *lost)
			}
		})
	}
}

// An alert is given at once although the answer of the write that says so is lost
// (S14).
func TestAlertAfterALostAnswer(t *testing.T) {
	inWorld(t, func(w *world) {
		w.start()
		w.run(30 * time.Second)
		w.hang("node-1")
		w.await(time.Minute, "suspected", func() bool { return w.state("node-1") == "Suspected" })
		w.loseEvery(2)
		w.await(2*time.Minute, "held", func() bool { return w.heldFor("node-1") == "PoweredOn" })
		w.run(5 * time.Second)
		if n := len(w.eventsOf("Node", "node-1", "PoweredOn")); n != 2 {
			t.Errorf("%d Events tell of the hold and what to do", n)
		}
		if n := w.processes[0].metric("nodefence_alerts_total", "reason", "PoweredOn"); n != 1 {
			t.Errorf("%v alerts", n)
		}
	})
}

// A patch that fails is sent again only after another look; one of which only the
// answer was lost is not sent again.
func TestPatchFails(t *testing.T) {
	for name, failure := range writeFailures {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(w *world) {
				failed := w.once(patchOf("node-1"), func() error { return failure })
				w.start()
				w.mainRoad("node-1")
				w.expectLookBeforeEachPatch("node-1")
				if *failed != 1 || w.taints != 1 || w.untaints != 1 {
					t.Errorf("%d patches failed, %d taints and %d removals were sent", *failed, w.taints, w.untaints)
				}
			})
		})
	}
	t.Run("answer lost", func(t *testing.T) {
		t.Parallel()
		inWorld(t, func(w *world) {
			lost := 0
			w.loseAnswers(func(c call) error {
				if !patchOf("node-1")(c) {
					return nil
				}
				lost++
				return errors.New("connection reset by peer")
			})
			w.start()
			w.mainRoad("node-1")
			if lost != 2 || w.taints != 1 || w.untaints != 1 {
				t.Errorf("%d answers were lost, %d taints and %d removals were sent", lost, w.taints, w.untaints)
			}
		})
	})
}
