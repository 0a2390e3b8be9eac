package controller_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/nodefence/nodefence/config"
	"github.com/nodefence/nodefence/config/v1alpha1"
	"github.com/nodefence/nodefence/controller"
	"github.com/nodefence/nodefence/providers"
)

// call is one thing that a process asks of the outside: of the API server or of a
// machine.
type call struct {
	process, verb, resource, subresource, namespace, name string
	action                                                clienttesting.Action
}

func (c call) String() string {
	s := c.verb + " " + c.resource
	if c.subresource != "" {
		s += "/" + c.subresource
	}
	return s + " " + c.name
}

// election tells whether the call is about the leader's lease.
func (c call) election() bool { return c.resource == "leases" && c.namespace == electionNamespace }

// writes tells whether the call changes something.
func (c call) writes() bool {
	switch c.verb {
	case "create", "update", "patch", "delete", "poweroff":
		return true
	}
	return false
}

func callOf(process string, a clienttesting.Action) call {
	c := call{process: process, verb: a.GetVerb(), resource: a.GetResource().Resource, subresource: a.GetSubresource(), namespace: a.GetNamespace(), action: a}
	switch a := a.(type) {
	case clienttesting.GetActionImpl:
		c.name = a.Name
	case clienttesting.PatchActionImpl:
		c.name = a.Name
	case clienttesting.CreateActionImpl:
		c.name = nameOf(a.Object)
	case clienttesting.UpdateActionImpl:
		c.name = nameOf(a.Object)
	}
	return c
}

var errDead = errors.New("the process is dead")

// process is one controller with its own connection to the world's API server.
type process struct {
	w        *world
	name     string
	ctl      *controller.Controller
	config   *config.Store
	registry *prometheus.Registry
	logs     *observer.ObservedLogs
	cancel   context.CancelFunc
	done     chan struct{}
	err      error // of Run; read it after done

	mu    sync.Mutex
	calls int
	dead  bool
	// endAt is the call at which the process ends, as ending says; zero for never.
	endAt  int
	ending ending
}

// ending is how a process ends at a call.
type ending uint8

const (
	// killedBefore: the call is not carried out.
	killedBefore ending = iota
	// killedAfter: it is carried out, and the answer is lost.
	killedAfter
	// stopped: a SIGTERM comes with the call, which is carried out.
	stopped
)

const (
	electionNamespace = "nodefence"
	driverName        = "scripted"
)

// start makes a controller and runs it.
func (w *world) start() *process {
	w.t.Helper()
	w.started++
	p := &process{w: w, name: fmt.Sprintf("controller-%d", w.started), registry: prometheus.NewRegistry(), done: make(chan struct{})}
	if w.ends != nil {
		p.endAt, p.ending = w.ends(w.started)
	}
	client := &fake.Clientset{}
	client.AddReactor("*", "*", p.react)
	client.AddWatchReactor("*", p.watch)
	dyn := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{v1alpha1.FencingCases: "FencingCaseList"})
	dyn.PrependReactor("*", "*", p.react)
	dyn.PrependWatchReactor("*", p.watch)

	metrics, err := controller.NewMetrics(p.registry)
	if err != nil {
		w.t.Fatal(err)
	}
	core, logs := observer.New(zapcore.DebugLevel)
	p.logs = logs
	p.config = config.NewStore(p.parse(w.config))
	election := w.election
	election.Namespace, election.Identity = electionNamespace, p.name
	p.ctl, err = controller.New(controller.Settings{
		Client: client, Dynamic: dyn, Events: &recorder{w: w}, Metrics: metrics, Log: zap.New(core),
		Fleet:   controller.ConfiguredFleet{Store: p.config, Secrets: controller.SecretReader{Client: client}},
		Workers: w.workers, MaxReadings: w.maxReadings, Election: election,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(w.ctx)
	p.cancel = cancel
	go func() {
		defer close(p.done)
		p.err = p.ctl.Run(ctx)
	}()
	w.processes = append(w.processes, p)
	return p
}

func (p *process) parse(text string) *config.Configuration {
	p.w.t.Helper()
	c, err := config.Parse([]byte(text), providers.Registry{driverName: func(providers.Settings) (providers.Driver, error) { return scriptedDriver{p}, nil }})
	if err != nil {
		p.w.t.Fatal(err)
	}
	return c
}

// stop ends the process as SIGTERM does, and waits for it.
func (p *process) stop() error {
	p.cancel()
	<-p.done
	return p.err
}

// kill ends the process as SIGKILL does: nothing that it still tries takes effect.
func (p *process) kill() {
	p.mu.Lock()
	p.dead = true
	p.mu.Unlock()
	p.cancel()
}

func (p *process) isDead() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dead
}

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// enter counts a call, and refuses it when the process is dead, dies now, or when
// the test wants the call to fail.
func (p *process) enter(c call) error {
	c.process = p.name
	p.mu.Lock()
	if p.dead {
		p.mu.Unlock()
		return errDead
	}
	if !c.election() && c.verb != "watch" {
		p.calls++
		if p.calls == p.endAt {
			switch p.ending {
			case killedBefore:
				p.die()
				return errDead
			case stopped:
				p.cancel()
			}
		}
	}
	p.mu.Unlock()
	return p.w.before(c)
}

// leave is called after the call was carried out.
func (p *process) leave(c call) error {
	c.process = p.name
	p.mu.Lock()
	if p.dead {
		p.mu.Unlock()
		return errDead
	}
	if p.ending == killedAfter && p.calls == p.endAt && c.writes() && !c.election() {
		p.die()
		return errDead
	}
	p.mu.Unlock()
	return p.w.after(c)
}

// die is called with the lock held and gives it back.
func (p *process) die() {
	p.dead = true
	p.mu.Unlock()
	p.cancel()
}

func (p *process) react(action clienttesting.Action) (bool, runtime.Object, error) {
	c := callOf(p.name, action)
	if err := p.enter(c); err != nil {
		return true, nil, err
	}
	p.w.checkCall(c)
	obj, err := p.w.api.serve(action)
	if err != nil {
		return true, nil, err
	}
	if err := p.leave(c); err != nil {
		return true, nil, err
	}
	return true, obj, nil
}

func (p *process) watch(action clienttesting.Action) (bool, watch.Interface, error) {
	if err := p.enter(callOf(p.name, action)); err != nil {
		return true, nil, err
	}
	w, err := p.w.api.watch(action)
	return true, w, err
}

// event is an Event as people see it.
type event struct {
	kind, name, uid, severity, reason, message string
	at                                         time.Time
}

// recorder keeps Events.
type recorder struct{ w *world }

// Event records one.
func (r *recorder) Event(o runtime.Object, severity, reason, message string) {
	e := event{severity: severity, reason: reason, message: message, at: time.Now()}
	if ref, ok := o.(*corev1.ObjectReference); ok {
		e.kind, e.name, e.uid = ref.Kind, ref.Name, string(ref.UID)
	}
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	r.w.events = append(r.w.events, e)
}

// Eventf records one.
func (r *recorder) Eventf(o runtime.Object, severity, reason, format string, args ...any) {
	r.Event(o, severity, reason, fmt.Sprintf(format, args...))
}

// AnnotatedEventf records one.
func (r *recorder) AnnotatedEventf(o runtime.Object, _ map[string]string, severity, reason, format string, args ...any) {
	r.Event(o, severity, reason, fmt.Sprintf(format, args...))
}

func nameOf(o runtime.Object) string {
	m, err := meta.Accessor(o)
	if err != nil {
		return ""
	}
	return m.GetName()
}
