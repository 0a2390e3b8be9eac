package scenario

import (
	"fmt"
	"strings"

	"github.com/nodefence/nodefence/fencing"
)

// report prints what a decision changed, in one line; readings are not shown.
func (w *World) report(old fencing.Case, d fencing.Decision) {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	c := d.Case
	if c.State != old.State {
		add("%s", c.State)
	}
	if !w.quiet && c.Verdict.Kind != old.Verdict.Kind || !w.quiet && c.Verdict.Reason != old.Verdict.Reason {
		add("verdict %s (%s)", c.Verdict.Kind, c.Verdict.Reason)
	}
	switch {
	case c.State == fencing.Closed && len(d.Entries) > 0:
		add("%s", d.Entries[len(d.Entries)-1].Message)
	case c.Hold.Reason != old.Hold.Reason && c.Held():
		add("held for %s", c.Hold.Reason)
	case c.Hold.Reason != old.Hold.Reason:
		add("no longer held for %s", old.Hold.Reason)
	}
	for _, e := range d.Entries {
		if told[e.Reason] {
			add("%s", e.Reason)
		}
	}
	for _, a := range d.Actions {
		if a.Kind != fencing.ActionRead && a.Kind != fencing.ActionAlert && (a.Kind != fencing.ActionTaint && a.Kind != fencing.ActionUntaint || c.State != old.State) {
			add("→ %s", a.Kind)
		}
	}
	if len(parts) > 0 {
		w.printf("case    %s", strings.Join(parts, "; "))
	}
}

// cut keeps a line short.
func cut(s string) string {
	const most = 100
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// told are the entries of the timeline that say more than the state does.
var told = map[fencing.Reason]bool{
	fencing.ReasonTaintAdopted: true, fencing.ReasonPowerOffAccepted: true, fencing.ReasonPowerOffRefused: true,
	fencing.ReasonPowerOffLost: true, fencing.ReasonTaintWithdrawn: true, fencing.ReasonEvacuated: true,
	fencing.ReasonRelapsed: true, fencing.ReasonUntaintOverdue: true, fencing.ReasonUntaintWithdrawn: true,
	fencing.ReasonTaintGone: true, fencing.ReasonMachineOn: true,
}

// show prints the case in full.
func (w *World) show() {
	c := w.ctl.stored
	if !c.Open() {
		w.printf("show    no open case; taint %t, machine %s", w.node.Taint.Present, w.machine.power)
		return
	}
	w.printf("show    %s; %s: %s", c.State, c.Verdict.Kind, cut(c.Verdict.Message))
	if c.Held() {
		w.printf("show    held for %s: %s", c.Hold.Reason, cut(c.Hold.Message))
	}
	w.printf("show    %d readings, streak %d, power-offs %d, taint %t, machine %s", len(c.Readings), c.Streak.Count, c.PowerOff.Attempts, w.node.Taint.Present, w.machine.power)
}
