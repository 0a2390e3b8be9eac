package controller_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"github.com/nodefence/nodefence/config/v1alpha1"
	"github.com/nodefence/nodefence/fencing"
)

// storesState tells whether the call writes a case in the given state.
func storesState(c call, state string) bool {
	if c.resource != "fencingcases" || c.subresource != "status" {
		return false
	}
	a, ok := c.action.(clienttesting.UpdateActionImpl)
	if !ok {
		return false
	}
	u, ok := a.Object.(*unstructured.Unstructured)
	if !ok {
		return false
	}
	got, _, _ := unstructured.NestedString(u.Object, "status", "state")
	return got == state
}

// writeFailures are the ways in which storing a case fails.
var writeFailures = map[string]error{
	"conflict":    apierrors.NewConflict(v1alpha1.FencingCases.GroupResource(), "case", errors.New("somebody else has written")),
	"error":       apierrors.NewInternalError(errors.New("etcd has no leader")),
	"timeout":     apierrors.NewTimeoutError("the request took too long", 1),
	"deadline":    context.DeadlineExceeded,
	"forbidden":   apierrors.NewForbidden(v1alpha1.FencingCases.GroupResource(), "case", errors.New("not allowed")),
	"unprocessed": apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "put", schema.GroupResource{}, "case", "schema", 0, false),
}

// intents are the states that announce an action, with the number of actions sent
// so far and the road that leads there.
var intents = map[string]struct {
	config string
	fail   func(*world)
	sent   func(*world) int
}{
	"Tainting":    {baseConfig, func(w *world) { w.crash("node-1") }, func(w *world) int { return w.taints }},
	"PoweringOff": {fenceConfig, func(w *world) { w.hang("node-1") }, func(w *world) int { return w.machine("node-1").timesPoweredOff() }},
	"Untainting":  {baseConfig, crashAndReturn, func(w *world) int { return w.untaints }},
}

func crashAndReturn(w *world) {
	w.crash("node-1")
	w.await(4*time.Minute, "evacuated", func() bool {
		fc := w.newestCase("node-1")
		return fc != nil && fc.Status.Taint != nil && fc.Status.Taint.EvacuatedAt != nil
	})
	w.boot("node-1")
}

// While the intent cannot be stored nothing is done, however long it lasts, and
// once it can, the action follows (S9).
func TestNothingIsDoneBeforeItsIntentIsStored(t *testing.T) {
	for state, intent := range intents {
		for kind, failure := range writeFailures {
			t.Run(state+"/"+kind, func(t *testing.T) {
				t.Parallel()
				inWorld(t, func(w *world) {
					w.config = intent.config
					refused := 0
					w.intercept(func(c call) error {
						if storesState(c, state) {
							refused++
							return failure
						}
						return nil
					})
					w.start()
					w.run(30 * time.Second)
					intent.fail(w)
					w.run(150 * time.Second)
					if refused == 0 || intent.sent(w) != 0 {
						t.Fatalf("%d writes were refused, and %d actions sent", refused, intent.sent(w))
					}
					w.intercept(nil)
					w.await(2*time.Minute, "done in the end", func() bool { return intent.sent(w) > 0 })
				})
			})
		}
	}
}

// A write whose answer is lost was stored. The action waits until that is known.
func TestAnswerOfTheWriteIsLost(t *testing.T) {
	for state, intent := range intents {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(w *world) {
				w.config = intent.config
				lost := 0
				w.loseAnswers(func(c call) error {
					if storesState(c, state) && lost < 3 {
						lost++
						return errors.New("connection reset by peer")
					}
					return nil
				})
				w.start()
				w.run(30 * time.Second)
				intent.fail(w)
				w.await(4*time.Minute, "done in the end", func() bool { return intent.sent(w) > 0 })
				if lost == 0 {
					t.Error("no answer was lost")
				}
				w.run(time.Minute)
				if n := intent.sent(w); n > 1 {
					t.Errorf("%d actions were sent", n)
				}
			})
		})
	}
}

// Without a case the machine is not even asked.
func TestNoCaseNoReading(t *testing.T) {
	inWorld(t, func(w *world) {
		w.intercept(func(c call) error {
			if c.verb == "create" && c.resource == "fencingcases" {
				return apierrors.NewInternalError(errors.New("etcd has no leader"))
			}
			return nil
		})
		w.start()
		w.run(30 * time.Second)
		w.crash("node-1")
		w.run(3 * time.Minute)
		if n := w.machine("node-1").timesRead(); n != 0 || w.taints != 0 {
			t.Errorf("%d readings and %d taints without a case", n, w.taints)
		}
		w.intercept(nil)
		w.await(2*time.Minute, "tainted", func() bool { return w.tainted("node-1") })
	})
}

// In mode Fence a machine that hangs is powered off once, proved off, tainted, and
// its node comes back.
func TestFenceRoad(t *testing.T) {
	inWorld(t, func(w *world) {
		w.config = fenceConfig
		w.start()
		w.run(30 * time.Second)
		w.hang("node-3")
		w.await(5*time.Minute, "evacuated", func() bool {
			fc := w.newestCase("node-3")
			return fc != nil && fc.Status.Taint != nil && fc.Status.Taint.EvacuatedAt != nil
		})
		if n := w.machine("node-3").timesPoweredOff(); n != 1 || w.machine("node-3").state() != fencing.Off {
			t.Errorf("%d power-offs, and the machine is %s", n, w.machine("node-3").state())
		}
		w.boot("node-3")
		w.await(2*time.Minute, "closed", func() bool { return w.state("node-3") == "Closed" })
		if err := w.clean("node-3"); err != nil {
			t.Error(err)
		}
	})
}
