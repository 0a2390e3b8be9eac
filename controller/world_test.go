package controller_test

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"

	"github.com/nodefence/nodefence/config/v1alpha1"
	"github.com/nodefence/nodefence/controller"
	"github.com/nodefence/nodefence/fencing"
)

const (
	password     = "correct-horse-battery-staple"
	poolLabel    = "pool"
	bmcKey       = "example.com/bmc"
	foreignTaint = "example.com/reserved"
	// kubernetes' own times.
	leasePeriod = 10 * time.Second
	gracePeriod = 50 * time.Second
)

const baseConfig = `apiVersion: nodefence.io/v1alpha1
kind: Configuration
providers:
- name: bmcs
  driver: scripted
  credentials:
    secret: {namespace: nodefence, name: bmc}
groups:
- name: workers
  selector: {matchLabels: {pool: workers}}
  provider: bmcs
  mode: Confirm
  machine: {annotation: example.com/bmc}
  survey: {every: 0s}
`

// fenceConfig lets nodefence power machines off.
var fenceConfig = strings.Replace(baseConfig, "mode: Confirm", "mode: Fence", 1)

// world is a cluster in virtual time: an API server, three nodes with their
// machines, and what of Kubernetes matters here (kubelets that renew Leases, the
// control plane that marks silent nodes, eviction and detaching). Only the test's
// own goroutine moves it on, one second at a time, and looks at the invariants.
type world struct {
	t           *testing.T
	ctx         context.Context
	api         *apiServer
	config      string
	workers     int
	maxReadings int
	election    controller.ElectionSettings
	processes   []*process
	started     int
	nodes       []string
	kubelets    map[string]*kubelet
	machines    map[string]*machine // by address
	evicting    map[string]time.Time
	// keepPods: workloads do not leave.
	keepPods bool
	// rejoins: a kubelet whose Node was deleted makes another.
	rejoins bool
	// ends, when set, says for each process, counted from 1, at which of its calls
	// it ends, and how.
	ends func(process int) (int, ending)
	// restarts: a controller that has died is started anew, as its platform does.
	restarts bool
	// credulous: the control plane marks no silent node.
	credulous bool
	// everySecond, when set, is called each second, before the control plane acts;
	// due are things to be done at a time.
	everySecond func()
	due         []dueAt

	mu     sync.Mutex
	events []event
	// onCall, when set, is asked before each call, and an error is its answer.
	// onAnswer is asked after it was carried out: an error is an answer lost.
	onCall, onAnswer func(call) error
	calls            []call
	taints, untaints int
	violations       []string
	asking, atOnce   int
}

// dueAt is something to be done at a time, by the test's own goroutine.
type dueAt struct {
	at time.Time
	do func()
}

// kubelet is what runs on a machine.
type kubelet struct {
	running bool
	renewed time.Time
	boots   int
}

// TestMain takes client-go's errors out of the way. Its handlers slow repeated
// errors down by the time of the last one, which they keep for the whole process:
// in a bubble whose clock is behind they would wait for hours.
func TestMain(m *testing.M) {
	utilruntime.ErrorHandlers = nil
	klog.SetLogger(logr.Discard())
	debug.SetGCPercent(400) // worlds are made and thrown away by the hundred
	os.Exit(m.Run())
}

// inWorld runs a story in a bubble of virtual time.
func inWorld(t *testing.T, story func(*world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		// Bubbles begin in 2000; some dates are plausible only later.
		time.Sleep(time.Until(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)))
		ctx, cancel := context.WithCancel(t.Context())
		w := &world{t: t, ctx: ctx, api: newAPIServer(), config: baseConfig, workers: 2, maxReadings: 8, election: controller.DefaultElection(),
			kubelets: map[string]*kubelet{}, machines: map[string]*machine{}, evicting: map[string]time.Time{}}
		defer func() {
			cancel()
			for _, p := range w.processes {
				<-p.done
			}
			time.Sleep(time.Minute) // what takes no context ends by itself
			for _, v := range w.violations {
				t.Error(v)
			}
			if t.Failed() {
				w.explain()
			}
		}()
		w.createSecret()
		for i := 1; i <= 3; i++ {
			w.addNode(fmt.Sprintf("node-%d", i))
		}
		story(w)
	})
}

// explain logs how the world came to what a test did not expect.
func (w *world) explain() {
	for _, p := range w.processes {
		for _, e := range p.logs.All() {
			w.t.Logf("%s %s %s %s %v", e.Time.UTC().Format("15:04:05.000"), p.name, e.Level, e.Message, e.ContextMap())
		}
	}
}

func (w *world) machineAt(address string) *machine { return w.machines[address] }

// machine gives the machine of a node.
func (w *world) machine(node string) *machine { return w.machines[addressOf(node)] }

func addressOf(node string) string { return strings.Replace(node, "node-", "192.0.2.", 1) }

func uuidOf(node string) string {
	n, _ := strconv.Atoi(strings.TrimPrefix(node, "node-")) // the names are the world's own
	return fmt.Sprintf("4c4c4544-0039-5910-804a-b9c04f4c3%03d", 630+n)
}

// crash takes the power from a node's machine.
func (w *world) crash(node string) {
	w.machine(node).set(func(m *machine) { m.power = fencing.Off })
	w.kubelets[node].running = false
}

// hang stops a node's kubelet and leaves its machine on.
func (w *world) hang(node string) { w.kubelets[node].running = false }

// boot switches a node's machine on; its kubelet speaks at once, from a new boot.
func (w *world) boot(node string) {
	w.machine(node).set(func(m *machine) { m.power = fencing.On })
	k := w.kubelets[node]
	k.running, k.renewed = true, time.Time{}
	k.boots++
}

// run lets time pass.
func (w *world) run(d time.Duration) {
	w.t.Helper()
	w.until(d, func() bool { return false })
}

// until lets at most d pass, until what is waited for is so.
func (w *world) until(d time.Duration, done func() bool) bool {
	for end := time.Now().Add(d); time.Now().Before(end); {
		synctest.Wait()
		w.handOver()
		w.kubernetes()
		synctest.Wait()
		if done() {
			return true
		}
		w.handOver()
		time.Sleep(time.Second)
	}
	synctest.Wait()
	return done()
}

// handOver tells the race detector that what the test has read and written so far
// comes before what the controller does next: each of its calls takes this lock.
func (w *world) handOver() {
	w.mu.Lock()
	defer w.mu.Unlock()
}

// await fails the test when what is waited for does not come.
func (w *world) await(d time.Duration, what string, done func() bool) {
	w.t.Helper()
	if !w.until(d, done) {
		w.t.Fatalf("after %s: not %s; %s", d, what, w.describe())
	}
}

func (w *world) describe() string {
	var b strings.Builder
	for _, fc := range w.cases() {
		fmt.Fprintf(&b, "case %s is %s", fc.Name, fc.Status.State)
		if h := fc.Status.Hold; h != nil {
			fmt.Fprintf(&b, ", held for %s: %s", h.Reason, h.Message)
		}
		for _, e := range fc.Status.Timeline {
			fmt.Fprintf(&b, "\n\t%s %s %s", e.At.Format("15:04:05"), e.Reason, e.Message)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// before asks the test whether a call is to fail, and keeps it.
func (w *world) before(c call) error {
	w.mu.Lock()
	w.calls = append(w.calls, c)
	onCall := w.onCall
	w.mu.Unlock()
	if onCall != nil {
		return onCall(c)
	}
	return nil
}

func (w *world) after(c call) error {
	w.mu.Lock()
	onAnswer := w.onAnswer
	w.mu.Unlock()
	if onAnswer != nil {
		return onAnswer(c)
	}
	return nil
}

// intercept sets what is asked before each call.
func (w *world) intercept(f func(call) error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.onCall = f
}

// loseAnswers sets what is asked after each call.
func (w *world) loseAnswers(f func(call) error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.onAnswer = f
}

func (w *world) beginAsking() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asking++
	w.atOnce = max(w.atOnce, w.asking)
}

func (w *world) endAsking() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asking--
}

// eventsOf lists the Events about an object with a reason.
func (w *world) eventsOf(kind, name, reason string) []event {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []event
	for _, e := range w.events {
		if e.kind == kind && e.name == name && e.reason == reason {
			out = append(out, e)
		}
	}
	return out
}

// tainted tells whether the node carries our taint.
func (w *world) tainted(node string) bool {
	n := w.node(node)
	return n != nil && hasTaint(n, controller.OutOfServiceTaint) && n.Annotations[controller.CaseAnnotation] != ""
}

// state gives the state of the node's newest case, or nothing.
func (w *world) state(node string) string {
	if fc := w.newestCase(node); fc != nil {
		return fc.Status.State
	}
	return ""
}

// heldFor gives why the node's newest case is held, or nothing.
func (w *world) heldFor(node string) string {
	if fc := w.newestCase(node); fc != nil && fc.Status.Hold != nil {
		return fc.Status.Hold.Reason
	}
	return ""
}

func (w *world) newestCase(node string) *v1alpha1.FencingCase {
	var newest *v1alpha1.FencingCase
	for _, fc := range w.casesOf(node) {
		if newest == nil || newest.Status.OpenedAt.Before(fc.Status.OpenedAt) {
			newest = fc
		}
	}
	return newest
}

func ready(n *corev1.Node) corev1.ConditionStatus {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status
		}
	}
	return ""
}

func setReady(n *corev1.Node, s corev1.ConditionStatus) {
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: s}}
}

func hasTaint(n *corev1.Node, key string) bool {
	return slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == key })
}

func attachmentOn(va *storagev1.VolumeAttachment, node string) bool { return va.Spec.NodeName == node }
