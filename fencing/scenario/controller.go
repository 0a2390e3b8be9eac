package scenario

import (
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/nodefence/nodefence/fencing"
)

// controller is the loop around Decide. Only stored survives a crash.
type controller struct {
	stored fencing.Case

	life     int // ends with each crash
	down     bool
	reading  *fencing.Reading
	asking   bool
	powerOff *fencing.PowerOffResult
	fencing  bool
	seen     time.Time // of the Lease's newest renewal
	renewal  time.Time
	wake     time.Time

	// crashAt is the point of the loop at which to crash, crashOn the action
	// that must be part of the decision.
	crashAt string
	crashOn fencing.ActionKind
	back    time.Duration // how long until another controller takes over

	alerts  []fencing.Entry
	refused string
}

// reset forgets everything but the stored case.
func (c *controller) reset() {
	*c = controller{stored: copyCase(c.stored), life: c.life + 1, alerts: c.alerts}
}

func copyCase(c fencing.Case) fencing.Case {
	c.Readings, c.Timeline = slices.Clone(c.Readings), slices.Clone(c.Timeline)
	return c
}

// crash stops the controller; another one takes over after back.
func (w *World) crash(back time.Duration) {
	w.printf("crash   now; another controller takes over in %s", back)
	w.ctl.reset()
	w.ctl.down = true
	life := w.ctl.life
	w.at(w.now.Add(back), func() {
		if w.ctl.life == life {
			w.ctl.down = false
			w.turn()
		}
	})
}

// wake plans a turn.
func (w *World) wake(t time.Time) {
	w.ctl.wake = t
	life := w.ctl.life
	w.at(t, func() {
		if w.ctl.life == life && w.ctl.wake.Equal(t) {
			w.turn()
		}
	})
}

// observe gathers what the controller can see.
func (w *World) observe() fencing.Observation {
	o := fencing.Observation{
		Now: w.now, Node: w.node, Lease: w.lease, Workloads: w.work, Cluster: w.cluster,
		Expected: w.expect, Unaddressed: w.unaddressed, Reading: w.ctl.reading, PowerOff: w.ctl.powerOff,
	}
	if w.lease.Exists {
		if w.ctl.seen.IsZero() || !w.ctl.renewal.Equal(w.lease.RenewedAt) {
			w.ctl.seen, w.ctl.renewal = w.now, w.lease.RenewedAt
		}
		o.Lease.SeenAt = w.ctl.seen
	}
	if w.node.NotReady() {
		o.Cluster.NotReady++
	}
	return o
}

// turn is one turn of the loop: observe, decide, store, act.
func (w *World) turn() {
	if w.ctl.down {
		return
	}
	old := w.ctl.stored
	o := w.observe()
	d := fencing.Decide(w.policy, copyCase(old), o)
	if w.crashes("before-store", d) {
		return
	}
	if !reflect.DeepEqual(d.Case, old) {
		w.ctl.stored = copyCase(d.Case)
	}
	w.report(old, d)
	if d.Case.State == fencing.Closed {
		w.ctl.stored = fencing.Case{}
	}
	w.ctl.reading, w.ctl.powerOff = nil, nil
	if !d.NextAt.IsZero() {
		w.wake(d.NextAt)
	}
	if w.crashes("after-store", d) {
		return
	}
	life := w.ctl.life
	for _, a := range d.Actions {
		w.act(d.Case, a)
	}
	if w.ctl.life == life {
		w.crashes("after-action", d)
	}
}

// crashes tells whether the controller was told to crash here.
func (w *World) crashes(point string, d fencing.Decision) bool {
	if w.ctl.crashAt != point || !slices.ContainsFunc(d.Actions, func(a fencing.Action) bool { return a.Kind == w.ctl.crashOn }) {
		return false
	}
	w.printf("crash   %s %s", point, w.ctl.crashOn)
	w.crash(w.ctl.back)
	return true
}

// act carries out one action.
func (w *World) act(c fencing.Case, a fencing.Action) {
	switch a.Kind {
	case fencing.ActionRead:
		w.read()
	case fencing.ActionAlert:
		w.ctl.alerts = append(w.ctl.alerts, a.Alert)
		w.printf("alert   %s %s: %s", a.Alert.Severity, a.Alert.Reason, cut(a.Alert.Message))
	case fencing.ActionPowerOff:
		w.sendPowerOff(c)
	case fencing.ActionTaint:
		if w.allowed(c, a.Kind) && !w.refuses {
			w.node.Taint = fencing.TaintFacts{Present: true, Case: c.Name, BootID: c.BootID}
			w.printf("node    tainted")
			w.evacuate()
			w.soon()
		}
	case fencing.ActionUntaint:
		if w.allowed(c, a.Kind) && !w.refuses {
			w.node.Taint = fencing.TaintFacts{}
			w.printf("node    untainted")
			w.soon()
		}
	}
}

// soon is the watch that tells the controller of a change.
func (w *World) soon() { w.at(w.now.Add(100*time.Millisecond), w.turn) }

// allowed is the last look.
func (w *World) allowed(c fencing.Case, a fencing.ActionKind) bool {
	violations := fencing.Check(w.policy, c, w.observe(), a)
	words := make([]string, 0, len(violations))
	for _, v := range violations {
		words = append(words, v.Error())
	}
	why := strings.Join(words, "; ")
	if why != "" && why != w.ctl.refused {
		w.printf("refused %s: %s", a, why)
	}
	w.ctl.refused = why
	return why == ""
}

func (w *World) read() {
	if w.ctl.asking || w.ctl.fencing {
		return
	}
	w.ctl.asking = true
	life, r := w.ctl.life, w.answer()
	takes := min(w.bmc.latency, w.policy.ReadTimeout)
	if w.bmc.latency > w.policy.ReadTimeout {
		r = fencing.Reading{Provider: r.Provider, Driver: r.Driver, Address: r.Address, AskedAt: r.AskedAt,
			Failure: fencing.Failure{Kind: fencing.TimedOut, Message: "no answer within " + takes.String()}}
	}
	w.at(w.now.Add(takes), func() {
		if w.ctl.life != life {
			return
		}
		r.AnsweredAt = w.now
		w.ctl.asking, w.ctl.reading = false, &r
		w.turn()
	})
}

// sendPowerOff asks the BMC to force the machine off.
func (w *World) sendPowerOff(c fencing.Case) {
	if w.ctl.fencing {
		return
	}
	w.ctl.fencing = true
	result := fencing.PowerOffResult{Attempt: c.PowerOff.Attempts, StartedAt: w.now, Failure: w.bmc.powerOff}
	switch {
	case !w.allowed(c, fencing.ActionPowerOff):
		result.Failure = fencing.Failure{Kind: fencing.Failed, Message: "the last look forbids it"}
	case w.bmc.failure.Kind != fencing.NoFailure:
		result.Failure = w.bmc.failure
	}
	if result.Failure.Kind == fencing.NoFailure && !w.bmc.ignores {
		boots := w.machine.boots
		w.at(w.now.Add(w.bmc.powerOffTakes), func() {
			if w.machine.boots == boots && w.machine.power != fencing.Off {
				w.printf("machine is off")
				w.lose()
			}
		})
	}
	life := w.ctl.life
	w.at(w.now.Add(time.Second), func() {
		if w.ctl.life != life {
			return
		}
		result.EndedAt = w.now
		w.ctl.fencing, w.ctl.powerOff = false, &result
		w.turn()
	})
}
