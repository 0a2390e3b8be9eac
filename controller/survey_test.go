package controller_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nodefence/nodefence/fencing"
)

// surveying is what each test of this file begins with.
func surveying(every string) string {
	return strings.Replace(baseConfig, "survey: {every: 0s}", "survey: {every: "+every+"}", 1)
}

// readBetween counts a machine's readings while time passes.
func (w *world) readBetween(node string, d time.Duration) int {
	before := w.machine(node).timesRead()
	w.run(d)
	return w.machine(node).timesRead() - before
}

// TestSurvey: the machine of each healthy node is read all the time, gently, and
// nothing is said while all is well.
func TestSurvey(t *testing.T) {
	inWorld(t, func(w *world) {
		w.config = surveying("15m")
		p := w.start()
		w.run(15 * time.Minute)
		for _, node := range w.nodes {
			if n := w.readBetween(node, 2*time.Hour); n < 6 || n > 11 {
				t.Errorf("%s was read %d times in two hours", node, n)
			}
		}
		if got := p.metric("nodefence_fenceable_machines"); got != 3 {
			t.Errorf("%v machines are fenceable", got)
		}
		if n := len(w.eventsOf("Node", "node-1", "NotFenceable")); n != 0 || len(w.cases()) != 0 {
			t.Errorf("%d Events, %d cases", n, len(w.cases()))
		}
	})
}

func TestSurveyOff(t *testing.T) {
	inWorld(t, func(w *world) {
		p := w.start()
		if n := w.readBetween("node-1", 3*time.Hour); n != 0 {
			t.Errorf("read %d times", n)
		}
		p.reload(surveying("15m"))
		if n := w.readBetween("node-1", time.Hour); n == 0 {
			t.Error("never read after it was switched on")
		}
	})
}

// TestNotFenceable: what stands in the way is told before the node fails, once, by
// Event, metric and log; and that it is gone.
func TestNotFenceable(t *testing.T) {
	for reason, spoil := range map[fencing.Reason]func(*machine){
		fencing.ReasonUnreachable: func(m *machine) { m.hangs = true },
		fencing.ReasonRefused: func(m *machine) {
			m.failure = fencing.Failure{Kind: fencing.Unauthorized, Message: "401"}
		},
		fencing.ReasonWrongMachine:     func(m *machine) { m.uuid = uuidOf("node-9") },
		fencing.ReasonIdentityUnproved: func(m *machine) { m.uuid = "" },
		fencing.ReasonOffWhileReady:    func(m *machine) { m.says = fencing.Off },
	} {
		t.Run(string(reason), func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.config = surveying("15m")
				p := w.start()
				w.run(time.Minute)
				w.machine("node-2").set(spoil)
				w.run(22 * time.Minute)
				events := w.eventsOf("Node", "node-2", "NotFenceable")
				if len(events) != 1 || !strings.Contains(events[0].message, string(reason)) || !strings.Contains(events[0].message, reason.Remedy()) || events[0].severity != "Warning" {
					t.Errorf("Events: %+v", events)
				}
				if got := p.metric("nodefence_unfenceable_machines", "reason", string(reason)); got != 1 {
					t.Errorf("the metric is %v", got)
				}
				w.run(12 * time.Hour)
				if n := len(w.eventsOf("Node", "node-2", "NotFenceable")); n != 1 {
					t.Errorf("told %d times", n)
				}
				w.machine("node-2").set(func(m *machine) {
					m.hangs, m.failure, m.uuid, m.says = false, fencing.Failure{}, uuidOf("node-2"), fencing.Unknown
				})
				w.run(20 * time.Minute)
				if n := len(w.eventsOf("Node", "node-2", "Fenceable")); n != 1 {
					t.Errorf("told %d times that it is well", n)
				}
				if got := p.metric("nodefence_unfenceable_machines", "reason", string(reason)); got != 0 {
					t.Errorf("the metric is %v still", got)
				}
				if w.taints != 0 || len(w.cases()) != 0 {
					t.Error("something was done about a healthy node")
				}
			})
		})
	}
}

// TestOneBadReadingIsNotTold: one that the next contradicts is not worth waking
// anybody.
func TestOneBadReadingIsNotTold(t *testing.T) {
	inWorld(t, func(w *world) {
		w.config = surveying("15m")
		w.start()
		w.machine("node-1").set(func(m *machine) { m.failure = fencing.Failure{Kind: fencing.Busy, Message: "503"} })
		w.await(20*time.Minute, "read once", func() bool { return w.machine("node-1").timesRead() == 1 })
		w.machine("node-1").set(func(m *machine) { m.failure = fencing.Failure{} })
		w.run(time.Hour)
		if n := len(w.eventsOf("Node", "node-1", "NotFenceable")) + len(w.eventsOf("Node", "node-1", "Fenceable")); n != 0 {
			t.Errorf("%d Events", n)
		}
	})
}

// TestSurveyIsNotInTheWay: while it waits for BMCs that hang, it asks few at once,
// and a case is not delayed by more than the reading under way.
func TestSurveyIsNotInTheWay(t *testing.T) {
	inWorld(t, func(w *world) {
		w.config = surveying("1m")
		for n := 4; n <= 20; n++ {
			w.addNode(fmt.Sprintf("node-%d", n))
		}
		w.start()
		for _, n := range w.nodes {
			w.machine(n).set(func(m *machine) { m.hangs = true })
		}
		w.run(10 * time.Minute)
		if w.atOnce > 4 || w.atOnce < 2 {
			t.Errorf("%d machines were asked at once", w.atOnce)
		}
		w.machine("node-1").set(func(m *machine) { m.hangs = false })
		w.crash("node-1")
		w.await(75*time.Second, "tainted", func() bool { return w.tainted("node-1") })
	})
}

// TestOnlyTheLeaderSurveys: two controllers ask no more than one.
func TestOnlyTheLeaderSurveys(t *testing.T) {
	inWorld(t, func(w *world) {
		w.config = surveying("15m")
		w.start()
		w.start()
		w.run(15 * time.Minute)
		if n := w.readBetween("node-1", 2*time.Hour); n > 11 {
			t.Errorf("read %d times in two hours", n)
		}
	})
}
