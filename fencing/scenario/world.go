package scenario

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nodefence/nodefence/fencing"
)

// The control plane's and the kubelet's times, as Kubernetes has them by default.
const (
	renewEvery  = 10 * time.Second
	gracePeriod = 50 * time.Second
)

// start is the beginning of every scenario's time.
var start = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// World is one node, its machine, and a controller that looks after it.
type World struct {
	now    time.Time
	events []event
	seq    int
	out    strings.Builder

	policy  fencing.Policy
	node    fencing.NodeFacts
	lease   fencing.LeaseFacts
	work    fencing.Workloads
	cluster fencing.ClusterFacts
	expect  fencing.Expectation

	unaddressed string
	stuck       bool
	refuses     bool // the API server refuses to patch the Node
	quiet       bool // changes of the verdict are not shown

	machine machine
	bmc     bmc
	ctl     controller
}

// event is something that will happen.
type event struct {
	at  time.Time
	seq int
	do  func()
}

// machine is the truth about the computer.
type machine struct {
	power    fencing.PowerState
	identity fencing.Identity
	reset    time.Time
	boots    int
	// life ends with each loss of power or reset; what was started in an earlier
	// life does not happen any more.
	life int
	// kubelet ends with each stop of the kubelet.
	kubelet int
	alive   bool
	ready   fencing.ReadyStatus
}

// bmc is how the machine's provider behaves.
type bmc struct {
	latency   time.Duration
	failure   fencing.Failure
	says      []fencing.PowerState
	turn      int
	identity  *fencing.Identity
	conflict  string
	lastReset bool
	fixed     time.Time
	restore   fencing.RestorePolicy
	address   string
	provider  string
	// flap makes every second reading fail.
	flap bool

	powerOff      fencing.Failure
	powerOffTakes time.Duration
	ignores       bool
}

const (
	defaultUUID   = "4c4c4544-0035-3410-8050-c6c04f314733"
	defaultSerial = "5P1GS13"
)

// New makes a world with a healthy node n1 under the default policy.
func New() *World {
	w := &World{}
	w.begin()
	return w
}

func (w *World) begin() {
	*w = World{
		now:    start,
		policy: fencing.DefaultPolicy(),
		node:   fencing.NodeFacts{Name: "n1", Exists: true, UID: "uid-1", Ready: fencing.ReadyTrue, BootID: "boot-1", SystemUUID: defaultUUID},
		work:   fencing.Workloads{Known: true, Leaving: []string{"db-0"}, Staying: []string{"logger"}, Attachments: []string{"vol-1"}},
		expect: fencing.Expectation{Identity: fencing.Identity{UUID: defaultUUID}},
		cluster: fencing.ClusterFacts{
			Nodes: 5,
		},
		machine: machine{power: fencing.On, identity: fencing.Identity{UUID: defaultUUID}, boots: 1, reset: start.Add(-24 * time.Hour)},
		bmc:     bmc{latency: 100 * time.Millisecond, address: "https://bmc-1", provider: "bmc", powerOffTakes: 3 * time.Second},
	}
	w.policy.Group = "workers"
	w.ctl.reset()
	w.startKubelet(fencing.ReadyTrue)
	w.wake(w.now)
	w.run(w.now, func() bool { return false })
}

func (w *World) at(t time.Time, do func()) {
	w.seq++
	w.events = append(w.events, event{t, w.seq, do})
	slices.SortFunc(w.events, func(a, b event) int {
		if c := a.at.Compare(b.at); c != 0 {
			return c
		}
		return a.seq - b.seq
	})
}

// run lets time pass until the given moment, or until done says so.
func (w *World) run(until time.Time, done func() bool) {
	for len(w.events) > 0 && !w.events[0].at.After(until) {
		e := w.events[0]
		w.events = w.events[1:]
		w.now = e.at
		e.do()
		if done() {
			return
		}
	}
	w.now = until
}

func (w *World) printf(format string, args ...any) {
	d := w.now.Sub(start)
	stamp := fmt.Sprintf("%d:%02d", int(d.Minutes()), int(d.Seconds())%60)
	fmt.Fprintf(&w.out, "%6s  %s\n", stamp, fmt.Sprintf(format, args...))
}

// startKubelet starts the kubelet: it reports its status and renews its Lease.
func (w *World) startKubelet(ready fencing.ReadyStatus) {
	w.machine.kubelet++
	w.machine.alive, w.machine.ready = true, ready
	k := w.machine.kubelet
	var renew func()
	renew = func() {
		if w.machine.kubelet != k || !w.machine.alive {
			return
		}
		w.heartbeat()
		w.at(w.now.Add(renewEvery), renew)
		w.turn()
	}
	w.at(w.now, renew)
}

// heartbeat is what the API server sees of a living kubelet.
func (w *World) heartbeat() {
	if !w.node.Exists {
		return
	}
	if w.lease.Exists || w.lease.RenewedAt.IsZero() {
		w.lease.Exists, w.lease.RenewedAt = true, w.now
	}
	boot := fmt.Sprintf("boot-%d", w.machine.boots)
	if w.node.Ready != w.machine.ready || w.node.BootID != boot {
		w.node.BootID = boot
		w.setReady(w.machine.ready)
	}
	w.watchSilence()
}

// watchSilence is the node lifecycle controller: a node whose Lease is not renewed
// for the grace period is Unknown.
func (w *World) watchSilence() {
	renewed := w.now
	w.at(w.now.Add(gracePeriod), func() {
		if w.node.Exists && !w.lease.RenewedAt.After(renewed) && w.node.Ready != fencing.ReadyUnknown {
			w.setReady(fencing.ReadyUnknown)
			w.turn()
		}
	})
}

func (w *World) setReady(r fencing.ReadyStatus) {
	if w.node.Ready != r {
		w.node.Ready = r
		w.printf("node    Ready is %s", r)
	}
}

func (w *World) stopKubelet() {
	w.machine.kubelet++
	w.machine.alive = false
}

// setPower sets the truth; a machine without power has no kubelet.
func (w *World) setPower(p fencing.PowerState) {
	w.machine.power = p
	if p != fencing.On {
		w.stopKubelet()
	}
}

// boot starts the machine anew; its kubelet reports after the given time.
func (w *World) boot(takes time.Duration, ready fencing.ReadyStatus) {
	w.stopKubelet()
	w.machine.life++
	w.machine.boots++
	w.machine.reset = w.now
	w.setPower(fencing.On)
	life := w.machine.life
	if takes <= 0 {
		return
	}
	w.at(w.now.Add(takes), func() {
		if w.machine.life == life && w.machine.power == fencing.On {
			w.startKubelet(ready)
		}
	})
}

// lose takes the machine's power away.
func (w *World) lose() {
	w.machine.life++
	w.setPower(fencing.Off)
}

// evacuate is what Kubernetes does about a taint: the pods go, then the volumes.
func (w *World) evacuate() {
	if w.stuck {
		return
	}
	w.at(w.now.Add(4*time.Second), func() {
		if w.node.Taint.Present && !w.stuck {
			w.work.Leaving = nil
			w.turn()
		}
	})
	w.at(w.now.Add(7*time.Second), func() {
		if w.node.Taint.Present && !w.stuck {
			w.work.Attachments = nil
			w.turn()
		}
	})
}

// answer is what the BMC says now; what it says of the power is settled when it
// was asked.
func (w *World) answer() fencing.Reading {
	r := fencing.Reading{
		Provider: w.bmc.provider, Driver: "lab", Address: w.bmc.address, AskedAt: w.now,
		Power: w.machine.power, Identity: w.machine.identity, Failure: w.bmc.failure,
		Hints: fencing.Hints{Conflict: w.bmc.conflict, RestorePolicy: w.bmc.restore},
	}
	w.bmc.turn++
	if n := len(w.bmc.says); n > 0 {
		r.Power = w.bmc.says[(w.bmc.turn-1)%n]
	}
	if w.bmc.flap && w.bmc.turn%2 == 0 {
		r.Failure = fencing.Failure{Kind: fencing.TimedOut, Message: "no answer in time"}
	}
	if w.bmc.identity != nil {
		r.Identity = *w.bmc.identity
	}
	if w.bmc.lastReset {
		r.Hints.LastReset = w.machine.reset
	}
	if !w.bmc.fixed.IsZero() {
		r.Hints.LastReset = w.bmc.fixed
	}
	if r.Failed() {
		r.Power, r.Identity, r.Hints = fencing.Unknown, fencing.Identity{}, fencing.Hints{}
	}
	return r
}
