package scenario

import (
	"fmt"
	"strings"
	"time"

	"github.com/nodefence/nodefence/fencing"
)

func (w *World) cmdBMC(a *args) {
	b := &w.bmc
	if a.text("fails", &b.failure.Kind) {
		b.failure.Message = "the lab says so"
	}
	a.duration("latency", &b.latency)
	a.duration("retry-after", &b.failure.RetryAfter)
	if v, ok := a.take("says"); ok {
		b.says, b.turn = nil, 0
		for name := range strings.SplitSeq(v, ",") {
			var p fencing.PowerState
			a.fail(p.UnmarshalText([]byte(name)))
			b.says = append(b.says, p)
		}
	}
	a.truth("flap", &b.flap)
	a.truth("last-reset", &b.lastReset)
	if v, ok := a.take("last-reset-is"); ok {
		t, err := time.Parse("2006-01-02", v)
		a.fail(err)
		b.fixed = t
	}
	a.string("conflict", &b.conflict)
	a.string("address", &b.address)
	a.text("restore", &b.restore)
	id := w.machine.identity
	if b.identity != nil {
		id = *b.identity
	}
	if u, s := a.string("uuid", &id.UUID), a.string("serial", &id.Serial); u || s {
		b.identity = &id
	}
	switch what := a.word(); what {
	case "":
	case "ok":
		b.failure, b.says, b.conflict, b.identity, b.flap = fencing.Failure{}, nil, "", nil, false
		b.latency = 100 * time.Millisecond
	default:
		a.fail(fmt.Errorf("the BMC cannot %q", what))
	}
}

// cmdPowerOff sets how the BMC takes power-off commands.
func (w *World) cmdPowerOff(a *args) {
	a.duration("takes", &w.bmc.powerOffTakes)
	if a.text("fails", &w.bmc.powerOff.Kind) {
		w.bmc.powerOff.Message = "the lab says so"
	}
	a.truth("ignored", &w.bmc.ignores)
}

func (w *World) cmdNode(a *args) {
	a.truth("control-plane", &w.node.ControlPlane)
	paused := a.string("paused", &w.node.Paused)
	switch what := a.word(); what {
	case "":
	case "deleted":
		w.node.Exists, w.node.Taint = false, fencing.TaintFacts{}
	case "replaced":
		w.node.UID, w.node.Taint = w.node.UID+"-new", fencing.TaintFacts{}
	case "resumed":
		if paused {
			a.fail(fmt.Errorf("paused and resumed at once"))
		}
		w.node.Paused = ""
	case "ready-missing":
		w.setReady(fencing.ReadyMissing)
	default:
		a.fail(fmt.Errorf("the node cannot be %q", what))
	}
	w.turn()
}

func (w *World) cmdLease(a *args) {
	switch what := a.word(); what {
	case "deleted":
		w.lease.Exists = false
	case "renewed": // by a kubelet that lives although the machine is called off
		w.lease.RenewedAt = w.now
		w.watchSilence()
	default:
		a.fail(fmt.Errorf("the Lease cannot be %q", what))
	}
	w.turn()
}

func (w *World) cmdTaint(a *args) {
	switch what := a.word(); what {
	case "foreign":
		w.node.Taint = fencing.TaintFacts{Present: true}
	case "removed":
		w.node.Taint = fencing.TaintFacts{}
	default:
		a.fail(fmt.Errorf("the taint cannot be %q", what))
	}
	w.turn()
}

func (w *World) cmdWorkloads(a *args) {
	switch what := a.word(); what {
	case "stuck":
		w.stuck = true
	case "leave":
		w.stuck, w.work.Leaving, w.work.Attachments = false, nil, nil
	case "unknown":
		w.work.Known = false
	default:
		a.fail(fmt.Errorf("workloads cannot be %q", what))
	}
	w.turn()
}

// cmdCase is a person who deletes the case.
func (w *World) cmdCase(a *args) {
	if what := a.word(); what != "deleted" {
		a.fail(fmt.Errorf("a case cannot be %q", what))
		return
	}
	w.ctl.stored = fencing.Case{}
	w.turn()
}

// cmdCrash crashes the controller now, or at a point of the loop of the next
// decision that asks for an action.
func (w *World) cmdCrash(a *args) {
	back := 15 * time.Second
	a.duration("back", &back)
	point := a.word()
	if point == "" {
		w.crash(back)
		return
	}
	on := a.word()
	for k := fencing.ActionRead; k <= fencing.ActionAlert; k++ {
		if k.String() == on {
			w.ctl.crashAt, w.ctl.crashOn, w.ctl.back = point, k, back
		}
	}
	switch {
	case point != "before-store" && point != "after-store" && point != "after-action":
		a.fail(fmt.Errorf("the loop has no point %q", point))
	case w.ctl.crashAt != point:
		a.fail(fmt.Errorf("there is no action %q", on))
	}
}

// cmdRun lets time pass: for a duration, or until the case is in a state.
func (w *World) cmdRun(a *args) {
	most := time.Hour
	var until fencing.CaseState
	waits := a.text("until", &until)
	if d := a.word(); d != "" {
		var err error
		most, err = time.ParseDuration(d)
		a.fail(err)
	} else if !waits {
		a.fail(fmt.Errorf("run for how long?"))
	}
	if a.err != nil {
		return
	}
	w.run(w.now.Add(most), func() bool {
		return waits && (w.ctl.stored.State == until || until == fencing.Closed && !w.ctl.stored.Open())
	})
	if waits && w.ctl.stored.State != until && !(until == fencing.Closed && !w.ctl.stored.Open()) {
		a.fail(fmt.Errorf("the case is %q after %s", w.ctl.stored.State, most))
	}
}

func (w *World) cmdShow(*args) { w.show() }

// cmdAPI sets whether the API server lets the Node be patched.
func (w *World) cmdAPI(a *args) { a.truth("refuses", &w.refuses) }

// cmdAnew begins another story in a world as new.
func (w *World) cmdAnew(*args) {
	so := w.out.String()
	w.begin()
	w.out.WriteString(so)
}

// cmdTranscript leaves out the changes of the verdict where they are too many.
func (w *World) cmdTranscript(a *args) {
	verdicts := !w.quiet
	a.truth("verdicts", &verdicts)
	w.quiet = !verdicts
}
