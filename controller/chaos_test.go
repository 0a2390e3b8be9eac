package controller_test

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/nodefence/nodefence/config/v1alpha1"
	"github.com/nodefence/nodefence/controller"
	"github.com/nodefence/nodefence/fencing"
)

// chaos lets everything go wrong that goes wrong in a machine room, drawn from a
// seed, and remembers what it did. The truth about the machines is its own.
type chaos struct {
	*world
	seed   uint64
	random *rand.Rand
	// booting is when each machine's kubelet starts, for those under way.
	booting map[string]time.Time
	// silenced: machines whose kubelet was stopped while they ran on.
	hung map[string]bool
	// cut is until when each process has no API server.
	cut map[*process]time.Time
	// apiFails is until when a part of the calls fails.
	apiFails time.Time
	// peace: nothing goes wrong any more, and persons switch on what is off.
	peace bool
	off   map[string]time.Time
	story []string
	// looked is the version of the cases that was held against the rules last.
	looked int64
}

// bootTime is how long a machine boots until its kubelet speaks.
const bootTime = 45 * time.Second

func newChaos(w *world, seed uint64) *chaos {
	c := &chaos{world: w, seed: seed, random: rand.New(rand.NewPCG(seed, 7)), booting: map[string]time.Time{}, hung: map[string]bool{}, cut: map[*process]time.Time{}, off: map[string]time.Time{}}
	w.intercept(c.mayCall)
	w.loseAnswers(c.mayAnswer)
	w.everySecond, w.rejoins = c.machinesRun, true
	return c
}

func (c *chaos) tell(format string, args ...any) {
	c.story = append(c.story, time.Now().Format("15:04:05 ")+fmt.Sprintf(format, args...))
}

func (c *chaos) chance(percent int) bool { return c.random.IntN(100) < percent }

func (c *chaos) between(least, most time.Duration) time.Duration {
	return least + time.Duration(c.random.Int64N(int64(most-least)/int64(time.Second)+1))*time.Second
}

// fate draws a percentage for a call. It hangs on the call and the time alone: the
// order in which goroutines ask is not the seed's to say.
func (c *chaos) fate(k call, what string) uint64 {
	h := fnv.New64a()
	fmt.Fprint(h, c.seed, what, k.process, k.String(), time.Now().UnixNano())
	return h.Sum64() % 100
}

var (
	errCut      = fmt.Errorf("dial tcp: connect: network is unreachable")
	errTooBusy  = apierrors.NewInternalError(fmt.Errorf("etcdserver: request timed out"))
	errConflict = apierrors.NewConflict(schema.GroupResource{Resource: "anything"}, "name", fmt.Errorf("please apply your changes to the latest version"))
)

// mayCall fails calls of processes without an API server, and some of all calls
// while the API server is ill. Machines are reached by another way.
func (c *chaos) mayCall(k call) error {
	if k.resource == "machine" {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	for p, until := range c.cut {
		if p.name == k.process && now.Before(until) {
			return errCut
		}
	}
	if now.Before(c.apiFails) && c.fate(k, "before") < 30 {
		if k.writes() && c.fate(k, "conflict") < 30 {
			return errConflict
		}
		return errTooBusy
	}
	return nil
}

// mayAnswer loses the answers of some calls that were carried out.
func (c *chaos) mayAnswer(k call) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k.resource != "machine" && time.Now().Before(c.apiFails) && c.fate(k, "after") < 15 {
		return errTooBusy
	}
	return nil
}

// machinesRun lets boots come to their end. In peace a person finds within a minute
// that a machine is off, as one is that nodefence has powered off.
func (c *chaos) machinesRun() {
	for _, node := range c.nodes {
		c.schedule(node)
		switch {
		case c.machine(node).state() != fencing.Off:
			delete(c.off, node)
		case c.off[node].IsZero():
			c.off[node] = time.Now()
		case c.peace && time.Since(c.off[node]) > time.Minute:
			c.tell("a person switches %s on", node)
			c.powerOn(node)
		}
		at, ok := c.booting[node]
		if !ok || time.Now().Before(at) {
			continue
		}
		delete(c.booting, node)
		if c.machine(node).state() == fencing.On {
			k := c.kubelets[node]
			k.running, k.renewed = true, time.Time{}
		}
	}
}

// schedule puts the workload back on a node that is well.
func (c *chaos) schedule(node string) {
	n := c.node(node)
	if n == nil || !c.kubelets[node].running || ready(n) != corev1.ConditionTrue || hasTaint(n, controller.OutOfServiceTaint) || c.leftOn(node) > 0 || !c.chance(10) {
		return
	}
	c.place(node)
}

// endImage ends what runs on a machine: its image is gone.
func (c *chaos) endImage(node string) {
	c.kubelets[node].running = false
	delete(c.booting, node)
	delete(c.hung, node)
}

func (c *chaos) powerOff(node string) {
	c.endImage(node)
	c.machine(node).set(func(m *machine) { m.power = fencing.Off })
}

// powerOn starts a new image on a machine that is off, or resets one that is on.
func (c *chaos) powerOn(node string) {
	c.endImage(node)
	c.kubelets[node].boots++
	c.machine(node).set(func(m *machine) { m.power = fencing.On })
	c.booting[node] = time.Now().Add(bootTime)
}

// deed is one thing that chaos may do to a node, and how often.
type deed struct {
	name   string
	weight int
	do     func(c *chaos, node string)
}

var deeds = []deed{
	{"loses its power", 8, func(c *chaos, n string) { c.powerOff(n) }},
	{"is switched on, or reset", 12, func(c *chaos, n string) { c.powerOn(n) }},
	{"is power cycled", 6, func(c *chaos, n string) {
		c.powerOff(n)
		off := c.between(2*time.Second, 28*time.Second)
		c.later(off, func() {
			if c.machine(n).state() == fencing.Off {
				c.powerOn(n)
			}
		})
	}},
	{"hangs", 8, func(c *chaos, n string) {
		if k := c.kubelets[n]; k.running {
			k.running, c.hung[n] = false, true
		}
	}},
	{"runs on after a hang", 10, func(c *chaos, n string) { c.wake(n) }},
	{"falls asleep", 3, func(c *chaos, n string) {
		if c.kubelets[n].running {
			c.kubelets[n].running, c.hung[n] = false, true
			c.machine(n).set(func(m *machine) { m.power = fencing.Suspended })
		}
	}},
	{"BMC is unreachable", 4, func(c *chaos, n string) {
		c.bmc(n, func(m *machine) { m.failure = fencing.Failure{Kind: fencing.Unreachable, Message: "no route to host"} })
	}},
	{"BMC hangs", 4, func(c *chaos, n string) { c.bmc(n, func(m *machine) { m.hangs = true }) }},
	{"BMC is slow", 5, func(c *chaos, n string) {
		latency := c.between(time.Second, 12*time.Second)
		c.bmc(n, func(m *machine) { m.latency = latency })
	}},
	{"BMC ignores commands", 3, func(c *chaos, n string) { c.bmc(n, func(m *machine) { m.deaf = true }) }},
	{"BMC refuses the password", 2, func(c *chaos, n string) {
		c.bmc(n, func(m *machine) { m.failure = fencing.Failure{Kind: fencing.Unauthorized, Message: "401"} })
	}},
	{"address leads to another machine", 3, func(c *chaos, n string) {
		c.bmc(n, func(m *machine) { m.uuid, m.says = uuidOf("node-99"), fencing.Off })
	}},
	{"BMC says Off for less than the hold", 6, func(c *chaos, n string) {
		c.machine(n).set(func(m *machine) {
			m.says, m.saysUntil = fencing.Off, time.Now().Add(c.between(5*time.Second, 25*time.Second))
		})
	}},
	{"BMC says PoweringOff", 2, func(c *chaos, n string) {
		c.machine(n).set(func(m *machine) { m.says, m.saysUntil = fencing.PoweringOff, time.Now().Add(20*time.Second) })
	}},
	{"BMC is well again", 12, func(c *chaos, n string) { c.mendBMC(n) }},
	{"is paused by a person", 2, func(c *chaos, n string) { c.annotate(n, controller.PausedAnnotation, "a person") }},
	{"is paused no more", 4, func(c *chaos, n string) { c.annotate(n, controller.PausedAnnotation, "") }},
	{"is tainted by a person", 1, func(c *chaos, n string) { c.foreignTaint(n, true) }},
	{"has a person's taint removed", 3, func(c *chaos, n string) { c.foreignTaint(n, false) }},
	{"is deleted by a person", 1, func(c *chaos, n string) {
		if c.node(n) != nil {
			c.remove(nodesResource, "", n)
			c.remove(leasesResource, corev1.NamespaceNodeLease, n)
		}
	}},
	{"has its case deleted by a person", 2, func(c *chaos, n string) {
		if fc := c.newestCase(n); fc != nil {
			c.remove(v1alpha1.FencingCases, "", fc.Name)
		}
	}},
	{"(workloads are stuck)", 2, func(c *chaos, _ string) { c.keepPods = true }},
	{"(workloads are stuck no more)", 4, func(c *chaos, _ string) { c.keepPods = false }},
	{"(the mode is Observe)", 1, func(c *chaos, _ string) { c.setMode("Observe") }},
	{"(the mode is Confirm)", 2, func(c *chaos, _ string) { c.setMode("Confirm") }},
	{"(the mode is Fence)", 4, func(c *chaos, _ string) { c.setMode("Fence") }},
	{"(the API server is ill)", 4, func(c *chaos, _ string) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.apiFails = time.Now().Add(c.between(3*time.Second, 40*time.Second))
	}},
	{"(a controller loses the API server)", 4, func(c *chaos, _ string) {
		p := c.processes[c.random.IntN(len(c.processes))]
		c.mu.Lock()
		defer c.mu.Unlock()
		c.cut[p] = time.Now().Add(c.between(5*time.Second, 90*time.Second))
	}},
	{"(a controller is killed)", 4, func(c *chaos, _ string) { c.alive().kill() }},
	{"(a controller is stopped)", 2, func(c *chaos, _ string) { c.alive().cancel() }},
	{"(nothing)", 20, func(*chaos, string) {}},
}

func (c *chaos) bmc(node string, change func(*machine)) {
	c.mendBMC(node)
	c.machine(node).set(change)
}

func (c *chaos) mendBMC(node string) {
	c.machine(node).set(func(m *machine) {
		m.failure, m.hangs, m.deaf, m.uuid, m.latency = fencing.Failure{}, false, false, uuidOf(node), 50*time.Millisecond
		m.says, m.saysUntil = fencing.Unknown, time.Time{}
	})
}

// wake lets a hung or sleeping machine go on with the image that it has.
func (c *chaos) wake(node string) {
	m := c.machine(node)
	if !c.hung[node] || m.state() == fencing.Off {
		return
	}
	delete(c.hung, node)
	m.set(func(m *machine) { m.power = fencing.On })
	c.kubelets[node].running = true
}

var modeLine = regexp.MustCompile(`mode: \w+`)

// setMode changes the configuration of all controllers, and of those to come.
func (c *chaos) setMode(mode string) {
	c.config = modeLine.ReplaceAllString(c.config, "mode: "+mode)
	for _, p := range c.processes {
		if !p.ended() && !p.isDead() {
			p.reload(c.config)
		}
	}
}

func (c *chaos) annotate(node, key, value string) {
	if c.node(node) == nil {
		return
	}
	c.changeNode(node, func(n *corev1.Node) {
		if value == "" {
			delete(n.Annotations, key)
		} else {
			n.Annotations[key] = value
		}
	})
}

func (c *chaos) foreignTaint(node string, on bool) {
	n := c.node(node)
	if n == nil {
		return
	}
	has := hasTaint(n, controller.OutOfServiceTaint)
	switch {
	case on && !has:
		c.changeNode(node, func(n *corev1.Node) {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: controller.OutOfServiceTaint, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute})
		})
	case !on && has && n.Annotations[controller.CaseAnnotation] == "":
		c.changeNode(node, func(n *corev1.Node) {
			n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == controller.OutOfServiceTaint })
		})
	}
}

// alive gives a process that has not ended.
func (c *chaos) alive() *process {
	for _, p := range c.processes {
		if !p.ended() && !p.isDead() {
			return p
		}
	}
	return c.processes[len(c.processes)-1]
}

// later does something after a time, between two seconds of the world.
func (c *chaos) later(d time.Duration, do func()) {
	c.due = append(c.due, dueAt{time.Now().Add(d), do})
	slices.SortStableFunc(c.due, func(a, b dueAt) int { return a.at.Compare(b.at) })
}

// wreak does one thing, drawn by weight.
func (c *chaos) wreak() {
	total := 0
	for _, d := range deeds {
		total += d.weight
	}
	draw := c.random.IntN(total)
	for _, d := range deeds {
		if draw -= d.weight; draw >= 0 {
			continue
		}
		node := c.nodes[c.random.IntN(len(c.nodes))]
		if !strings.HasPrefix(d.name, "(nothing") {
			c.tell("%s %s", node, d.name)
		}
		d.do(c, node)
		return
	}
}

// heal makes everything well: machines on and awake, BMCs and API server sound,
// nobody's taint or pause left.
func (c *chaos) heal() {
	c.tell("all is made well")
	c.peace = true
	c.mu.Lock()
	c.apiFails = time.Time{}
	clear(c.cut)
	c.mu.Unlock()
	c.due, c.keepPods = nil, false
	if strings.Contains(c.config, "mode: Observe") {
		c.setMode("Confirm") // a taint that is due is to be set, and what was set to go
	}
	for _, n := range c.nodes {
		c.mendBMC(n)
		c.annotate(n, controller.PausedAnnotation, "")
		c.foreignTaint(n, false)
		c.wake(n)
		if _, boots := c.booting[n]; !boots && !c.kubelets[n].running {
			c.powerOn(n)
		}
	}
}
