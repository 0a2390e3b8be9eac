package controller_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/nodefence/nodefence/fencing"
)

// holder gives who holds the leader's lease.
func (w *world) holder() string {
	o, err := w.api.typed.Get(leasesResource, electionNamespace, w.election.Name)
	if err != nil {
		return ""
	}
	l, ok := o.(*coordinationv1.Lease)
	if !ok || l.Spec.HolderIdentity == nil {
		return ""
	}
	return *l.Spec.HolderIdentity
}

// momentOf gives when, after the start, a road first makes a call.
func momentOf(t *testing.T, config string, fail func(*world), match func(call) bool) time.Duration {
	t.Helper()
	var moment time.Duration
	inWorld(t, func(w *world) {
		w.config = config
		begin := time.Now()
		w.once(match, func() error { moment = time.Since(begin); return nil })
		w.start()
		w.run(30 * time.Second)
		fail(w)
		w.await(5*time.Minute, "done", func() bool { return moment > 0 })
	})
	return moment
}

func powerOffOf(node string) func(call) bool {
	return func(c call) bool { return c.verb == "poweroff" && c.name == addressOf(node) }
}

// A leader whose lease does not outlast the action does not begin it, although it
// leads still (S8).
func TestLeaseTooShortForTheAction(t *testing.T) {
	for name, tt := range map[string]struct {
		config string
		fail   func(*world)
		match  func(call) bool
		// left is how much of the lease is left at most at the moment of the action.
		left time.Duration
		sent func(*world) int
	}{
		"taint":     {baseConfig, func(w *world) { w.crash("node-1") }, patchOf("node-1"), 6900 * time.Millisecond, func(w *world) int { return w.taints }},
		"power-off": {fenceConfig, func(w *world) { w.hang("node-1") }, powerOffOf("node-1"), 15 * time.Second, func(w *world) int { return w.machine("node-1").timesPoweredOff() }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			moment := momentOf(t, tt.config, tt.fail, tt.match)
			inWorld(t, func(w *world) {
				w.config = tt.config
				// The leader tries to renew until just before the lease ends.
				w.election.RenewDeadline = w.election.LeaseDuration - time.Second
				begin := time.Now()
				cut := moment + tt.left - w.election.LeaseDuration
				heal := moment + 2*time.Second
				w.intercept(func(c call) error {
					if since := time.Since(begin); c.election() && since > cut && since < heal {
						return errors.New("connection refused")
					}
					return nil
				})
				p := w.start()
				w.run(30 * time.Second)
				tt.fail(w)
				w.until(moment-time.Since(begin)+time.Second, func() bool { return false })
				if n := tt.sent(w); n != 0 {
					t.Errorf("%d actions were sent", n)
				}
				if p.ended() || w.logged("the leader's lease does not last") == 0 {
					t.Errorf("the refusal is not logged, or the leader has ended: %v", p.ended())
				}
				w.await(2*time.Minute, "done once the lease is renewed", func() bool { return tt.sent(w) == 1 })
			})
		})
	}
}

// A leader that cannot renew ends; the next one finishes what it began.
func TestLeadIsLost(t *testing.T) {
	inWorld(t, func(w *world) {
		first := w.start()
		w.run(30 * time.Second)
		w.crash("node-1")
		w.await(time.Minute, "suspected", func() bool { return w.state("node-1") == "Suspected" })
		w.intercept(func(c call) error {
			if c.election() && c.process == first.name {
				return errors.New("connection refused")
			}
			return nil
		})
		w.await(time.Minute, "ended", first.ended)
		if first.err == nil {
			t.Error("the process that lost its lead ended without an error")
		}
		w.mu.Lock()
		callsAtEnd := len(w.calls)
		w.mu.Unlock()
		w.run(time.Minute)
		w.mu.Lock()
		if n := len(w.calls); n != callsAtEnd {
			t.Errorf("%d calls were made after the end: %v", n-callsAtEnd, w.calls[callsAtEnd:])
		}
		w.mu.Unlock()
		w.start()
		w.await(2*time.Minute, "tainted by the next leader", func() bool { return w.tainted("node-1") })
		if w.taints != 1 || len(w.cases()) != 1 {
			t.Errorf("%d taints and %d cases", w.taints, len(w.cases()))
		}
	})
}

// Of two controllers one acts; the other takes over at once when the first stops.
func TestOneOfTwoActs(t *testing.T) {
	inWorld(t, func(w *world) {
		first := w.start()
		w.run(3 * time.Second)
		second := w.start()
		w.mainRoad("node-1")
		for _, c := range w.callsOf(second) {
			if c.writes() || c.resource == "machine" {
				t.Errorf("the one that waits made the call %s", c)
			}
		}
		if err := first.stop(); err != nil {
			t.Errorf("stopped: %v", err)
		}
		w.await(10*time.Second, "taken over", func() bool { return w.holder() == second.name })
		w.mainRoad("node-2")
		if w.taints != 2 || w.untaints != 2 {
			t.Errorf("%d taints and %d removals", w.taints, w.untaints)
		}
	})
}

func (w *world) callsOf(p *process) []call {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []call
	for _, c := range w.calls {
		if c.process == p.name && !c.election() && c.verb != "watch" {
			out = append(out, c)
		}
	}
	return out
}

// A process that stops while its power-off goes on, because the driver's library
// does not end with the context, does not give the lead away: the next leader
// waits until the lease ends (S8).
func TestLeadIsKeptWhileAPowerOffGoesOn(t *testing.T) {
	inWorld(t, func(w *world) {
		w.config = fenceConfig
		w.machine("node-1").set(func(m *machine) { m.latency, m.ignoresContext = 6*time.Second, true })
		first := w.start()
		w.run(30 * time.Second)
		w.hang("node-1")
		w.await(5*time.Minute, "powered off", func() bool { return w.machine("node-1").timesPoweredOff() == 1 })
		second := w.start()
		w.run(time.Second)
		if w.machine("node-1").state() != fencing.On {
			t.Fatal("the power-off is over too soon for this test")
		}
		first.cancel()
		for w.machine("node-1").state() == fencing.On {
			if h := w.holder(); h != first.name {
				t.Fatalf("%q holds the lead while the power-off goes on", h)
			}
			time.Sleep(100 * time.Millisecond)
			synctest.Wait()
		}
		w.await(time.Minute, "taken over", func() bool { return w.holder() == second.name })
	})
}
