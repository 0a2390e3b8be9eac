package fencing

import (
	"fmt"
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
func (d *decider) holdForVerdict(settle time.Duration) {
	v := d.c.Verdict
	due := latest(v.Since, d.c.NotReadySince).Add(settle)
	if d.o.Now.Before(due) {
		d.wake(due)
		return
	}
	d.hold(v.Reason, v.Message)
}

// release lets a held case go on.
func (d *decider) release() {
	if d.c.Held() {
		d.note(Info, ReasonReleased, fmt.Sprintf("no longer held for %s", d.c.Hold.Reason))
		d.c.Hold = Hold{}
	}
}

// announce tells people of a held case, at once and again while it lasts (S14).
func (d *decider) announce() {
	h := &d.c.Hold
	if h.Reason == "" {
		return
	}
	if due := h.AlertedAt.Add(d.p.AlertEvery); !h.AlertedAt.IsZero() && d.o.Now.Before(due) {
		d.wake(due)
		return
	}
	e := Entry{At: d.o.Now, Severity: Warning, Reason: h.Reason, Message: h.Message}
	switch {
	case h.Reason == ReasonContradiction:
		e.Severity = Critical
	case h.Reason == ReasonObserveOnly:
		e.Severity = Info
	}
	if h.AlertedAt.IsZero() {
		d.note(e.Severity, h.Reason, "held: "+h.Message)
	}
	h.AlertedAt = d.o.Now
	d.actions = append(d.actions, Action{Kind: ActionAlert, Alert: e})
	d.wake(d.o.Now.Add(d.p.AlertEvery))
}

// overBudget says why the budget does not allow another case in action (S6), or
// nothing.
func (d *decider) overBudget() (Reason, string) {
	b, cl := d.p.Budget, d.o.Cluster
	switch limit := b.Limit(cl.Nodes); {
	case cl.Nodes == 0:
		return ReasonStorm, "it is not known how many nodes there are"
	case cl.NotReady > limit:
		return ReasonStorm, fmt.Sprintf("%d of %d nodes are not Ready, more than the budget's %d", cl.NotReady, cl.Nodes, limit)
	case cl.InAction >= b.MaxConcurrent:
		return ReasonBudget, fmt.Sprintf("%d other cases are in action, as many as the budget allows (%d)", cl.InAction, b.MaxConcurrent)
	}
	return "", ""
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
