package controller_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// roads are whole lives with one incident of node-1.
var roads = map[string]struct {
	config    string
	fail      func(*world)
	powerOffs int // at most, with one crash on the way
}{
	"Confirm": {baseConfig, func(w *world) { w.crash("node-1") }, 0},
	// One may be lost with its controller.
	"Fence": {fenceConfig, func(w *world) { w.hang("node-1") }, 2},
}

// wholeLife is an incident that ends well, however often the controller starts.
func (w *world) wholeLife(fail func(*world)) {
	w.t.Helper()
	w.run(10 * time.Second)
	fail(w)
	w.await(8*time.Minute, "evacuated", func() bool {
		fc := w.newestCase("node-1")
		return fc != nil && fc.Status.Taint != nil && fc.Status.Taint.EvacuatedAt != nil
	})
	w.boot("node-1")
	w.await(5*time.Minute, "closed", func() bool { return w.state("node-1") == "Closed" })
	w.run(30 * time.Second)
}

// A controller that ends at any call leaves what the next one needs: the taint is
// set and removed once, the machine is not powered off more often than the policy
// and the loss allow, and the case is closed.
func TestEndAtEveryCall(t *testing.T) {
	for name, road := range roads {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			calls := callsOfLife(t, road.config, road.fail)
			t.Logf("%d calls", len(calls))
			step := 1
			if testing.Short() || raceDetector {
				step = 7
			}
			for i := 0; i < len(calls); i += step {
				for how, title := range map[ending]string{killedBefore: "killed before", killedAfter: "killed after", stopped: "stopped at"} {
					if how == killedAfter && !calls[i].writes() {
						continue // the same as killed before the next one
					}
					t.Run(fmt.Sprintf("%s call %d, %s %s", title, i+1, calls[i].verb, calls[i].resource), func(t *testing.T) {
						inWorld(t, func(w *world) {
							w.config, w.restarts = road.config, true
							w.ends = func(process int) (int, ending) {
								if process > 1 {
									return 0, 0
								}
								return i + 1, how
							}
							w.start()
							w.wholeLife(road.fail)
							w.checkLife(road.powerOffs)
							// The number of calls differs a little from run to run.
							if len(w.processes) != 2 && i < len(calls)-5 {
								t.Errorf("%d processes ran", len(w.processes))
							}
						})
					})
				}
			}
		})
	}
}

// callsOfLife lists the calls of a life without a crash.
func callsOfLife(t *testing.T, config string, fail func(*world)) []call {
	t.Helper()
	var calls []call
	inWorld(t, func(w *world) {
		w.config = config
		p := w.start()
		w.wholeLife(fail)
		calls = w.callsOf(p)
	})
	return calls
}

func (w *world) checkLife(mostPowerOffs int) {
	w.t.Helper()
	if err := w.clean("node-1"); err != nil {
		w.t.Error(err)
	}
	if w.taints != 1 || w.untaints != 1 {
		w.t.Errorf("%d taints and %d removals were sent", w.taints, w.untaints)
	}
	n := w.machine("node-1").timesPoweredOff()
	if n > mostPowerOffs {
		w.t.Errorf("%d power-offs were sent", n)
	}
	for _, fc := range w.cases() {
		if fc.Status.State != "Closed" || !strings.HasPrefix(fc.Name, "node-1-") {
			w.t.Errorf("left over: case %s is %q", fc.Name, fc.Status.State)
		}
	}
	if n := len(w.cases()); n != 1 {
		w.t.Errorf("%d cases", n)
	}
}

// The same when one controller after the other ends, each at a random call.
func TestEndAgainAndAgain(t *testing.T) {
	seeds := uint64(20)
	if testing.Short() || raceDetector {
		seeds = 4
	}
	for seed := range seeds {
		for name, road := range roads {
			t.Run(fmt.Sprintf("%s seed %d", name, seed), func(t *testing.T) {
				t.Parallel()
				random := rand.New(rand.NewPCG(seed, 1))
				inWorld(t, func(w *world) {
					w.config, w.restarts = road.config, true
					w.ends = func(process int) (int, ending) {
						if process > 6 {
							return 0, 0
						}
						return 5 + random.IntN(25), ending(random.IntN(3))
					}
					w.start()
					w.wholeLife(road.fail)
					w.checkLife(3) // the policy's attempts
				})
			})
		}
	}
}
