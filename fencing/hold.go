package fencing

import (
	"fmt"
	"strings"
	"time"
)

// hold stops the case for a reason that is no doubt about the evidence, and so
// needs no time to settle.
func (d *decider) hold(r Reason, message string) {
	if d.c.Hold.Reason == r {
		d.c.Hold.Message = message
		return
	}
	d.c.Hold = Hold{Reason: r, Message: message, Since: d.o.Now}
}

// holdForVerdict stops the case for what the evidence says, once it has said so
// for settle on a node that is not Ready: a single failed reading is no news.
//
// A verdict that never lasts, as when a BMC answers every second time, is no
// reason for silence: the case is held at the latest when a proof would have been
// complete (S14).
func (d *decider) holdForVerdict(settle time.Duration) {
	v := d.c.Verdict
	due := latest(v.Since, d.c.NotReadySince).Add(settle)
	if !d.c.Held() {
		if d.c.Hold.Since.IsZero() {
			d.c.Hold.Since = d.o.Now
		}
		due = earliest(due, d.c.Hold.Since.Add(max(settle, d.p.HoldAfter+3*d.p.Hold)))
	}
	if d.o.Now.Before(due) {
		d.wake(due)
		return
	}
	d.hold(v.Reason, v.Message)
}

// holdIfStuck tells people of an action that was intended long ago and shows no
// effect: the API server refuses the patch, or Check forbids it every time (S14).
func (d *decider) holdIfStuck(intended time.Time, what string) {
	due := intended.Add(stuckAfter)
	if d.o.Now.Before(due) {
		d.wake(due)
		return
	}
	d.hold(ReasonActionStuck, fmt.Sprintf("%s was intended at %s and shows no effect", what, intended.UTC().Format("15:04:05")))
}

// stuckAfter is how long an intended change of the Node may take.
const stuckAfter = 30 * time.Second

// release lets a held case go on.
func (d *decider) release() {
	if d.c.Held() {
		d.note(Info, ReasonReleased, fmt.Sprintf("no longer held for %s", d.c.Hold.Reason))
	}
	d.c.Hold = Hold{}
}

// toldLately gives when people were first told of the current hold's reason, if
// that is not yet time to repeat: a hold that comes and goes is one alert.
func (d *decider) toldLately() (at time.Time) {
	for _, e := range d.c.Timeline {
		if e.Reason == d.c.Hold.Reason && strings.HasPrefix(e.Message, heldPrefix) && d.o.Now.Before(e.At.Add(d.p.AlertEvery)) {
			at = e.At
		}
	}
	return at
}

// heldPrefix begins the timeline's entries of holds.
const heldPrefix = "held: "

// announce tells people of a held case, at once and again while it lasts (S14).
func (d *decider) announce() {
	h := &d.c.Hold
	if h.Reason == "" {
		return
	}
	if h.AlertedAt.IsZero() {
		h.AlertedAt = d.toldLately()
	}
	if due := h.AlertedAt.Add(d.p.AlertEvery); !h.AlertedAt.IsZero() && d.o.Now.Before(due) {
		d.wake(due)
		return
	}
	e := h.Alert(d.o.Now)
	if h.AlertedAt.IsZero() {
		d.note(e.Severity, h.Reason, heldPrefix+h.Message)
	}
	h.AlertedAt = d.o.Now
	d.actions = append(d.actions, Action{Kind: ActionAlert, Alert: e})
	d.wake(d.o.Now.Add(d.p.AlertEvery))
}

// Alert is what people are told of the hold.
func (h Hold) Alert(now time.Time) Entry {
	e := Entry{At: now, Severity: Warning, Reason: h.Reason, Message: h.Message}
	switch h.Reason {
	case ReasonContradiction:
		e.Severity = Critical
	case ReasonObserveOnly:
		e.Severity = Info
	}
	return e
}

// overBudget says why the budget does not allow another case in action (S6), or
// nothing.
func (d *decider) overBudget() (Reason, string) {
	if r, why := d.storm(); r != "" {
		return r, why
	}
	if n, most := d.o.Cluster.InAction, d.p.Budget.MaxConcurrent; n >= most {
		return ReasonBudget, fmt.Sprintf("%d other cases are in action, as many as the budget allows (%d)", n, most)
	}
	return "", ""
}

// storm says why so many nodes are not Ready that the network or the control
// plane is to be suspected (S6), or nothing.
func (d *decider) storm() (Reason, string) {
	cl := d.o.Cluster
	switch limit := d.p.Budget.Limit(cl.Nodes); {
	case cl.Nodes == 0:
		return ReasonStorm, "it is not known how many nodes there are"
	case cl.NotReady > limit:
		return ReasonStorm, fmt.Sprintf("%d of %d nodes are not Ready, more than the budget's %d", cl.NotReady, cl.Nodes, limit)
	}
	return "", ""
}

func earliest(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
