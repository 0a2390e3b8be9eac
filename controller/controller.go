package controller

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"

	"github.com/nodefence/nodefence/config/v1alpha1"
	"github.com/nodefence/nodefence/fencing"
)

// Settings are what a controller is made from.
type Settings struct {
	Client  API
	Dynamic dynamic.Interface
	// Fleet says how each node is to be handled.
	Fleet Fleet
	// Events records Events.
	Events record.EventRecorder
	// Metrics takes the counts; never nil.
	Metrics *Metrics
	Log     *zap.Logger
	// Workers is how many nodes are decided at once. At least 1.
	Workers int
	// MaxReadings bounds how many machines are asked at once. At least 1.
	MaxReadings int
	Election    ElectionSettings
	// Now is the clock; nil for the real one.
	Now func() time.Time
}

// Controller watches nodes and carries decisions out.
type Controller struct {
	client      API
	dynamic     dynamic.Interface
	caseClient  caseClient
	fleet       Fleet
	events      record.EventRecorder
	metrics     *Metrics
	log         *zap.Logger
	now         func() time.Time
	leader      Leadership
	election    *election
	workers     int
	slots       chan struct{}
	running     sync.WaitGroup
	queue       workqueue.TypedRateLimitingInterface[string]
	cases       *casebook
	mail        *mailbox
	planned     *planner
	health      *nodeHealth
	renewals    *leaseWatch
	nodes       cache.SharedIndexInformer
	leases      cache.SharedIndexInformer
	pods        cache.SharedIndexInformer
	attachments cache.SharedIndexInformer
	caseWatch   cache.SharedIndexInformer

	// term ends with the leader's lease: nothing that was begun under it goes on
	// (S8).
	term  context.Context //nolint:containedctx // it is the term's, not a call's
	ready readiness
}

// New makes a controller that has not begun.
func New(s Settings) (*Controller, error) {
	if s.Now == nil {
		s.Now = time.Now
	}
	c := &Controller{
		client: s.Client, dynamic: s.Dynamic, caseClient: newCaseClient(s.Dynamic), fleet: s.Fleet, events: s.Events,
		metrics: s.Metrics, log: s.Log, workers: max(1, s.Workers),
		slots: make(chan struct{}, max(1, s.MaxReadings)),
		cases: newCasebook(), mail: newMailbox(), planned: newPlanner(), health: newNodeHealth(), renewals: newLeaseWatch(),
		// Cases keep times to the microsecond.
		now: func() time.Time { return s.Now().UTC().Truncate(time.Microsecond) },
	}
	c.queue = workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.NewTypedItemExponentialFailureRateLimiter[string](200*time.Millisecond, 10*time.Second),
		workqueue.TypedRateLimitingQueueConfig[string]{Name: "nodes", MetricsProvider: s.Metrics.queue})
	if err := c.buildInformers(); err != nil {
		return nil, err
	}
	var err error
	if c.election, err = newElection(s.Client, s.Election, s.Now); err != nil {
		return nil, err
	}
	c.leader = c.election
	return c, nil
}

// ErrNotSynced is the cause when the caches could not be filled.
var ErrNotSynced = errors.New("the caches were not filled")

// Run watches at once and acts while it leads, until ctx ends (then nil) or the
// leader's lease is lost (then an error: the process is to start anew).
func (c *Controller) Run(ctx context.Context) error {
	defer c.queue.ShutDown()
	if err := c.checkAPI(ctx); err != nil {
		return err
	}
	stop := make(chan struct{})
	stopOnce := sync.OnceFunc(func() { close(stop) })
	wait := c.startInformers(stop)
	defer func() { stopOnce(); wait() }()
	if !cache.WaitForCacheSync(ctx.Done(), c.nodes.HasSynced, c.leases.HasSynced, c.pods.HasSynced, c.attachments.HasSynced) {
		return fmt.Errorf("watch the cluster: %w: %w", ErrNotSynced, context.Cause(ctx))
	}
	c.ready.synced.Store(true)
	if err := c.election.run(ctx, c.log, c.lead); err != nil {
		return err
	}
	if ctx.Err() == nil {
		return errors.New("the leader's lease was lost; nothing more is done by this process")
	}
	return nil
}

// checkAPI makes sure that the custom resource is there, and says how to mend it.
func (c *Controller) checkAPI(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	_, err := c.dynamic.Resource(v1alpha1.FencingCases).List(ctx, metav1.ListOptions{Limit: 1})
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("the API server has no fencingcases.nodefence.io: apply config/crd first: %w", err)
	}
	if err != nil {
		return fmt.Errorf("read fencing cases: %w", err)
	}
	return nil
}

// lead loads the open cases, so that what another controller has begun goes on
// (S9), and works until ctx ends.
func (c *Controller) lead(ctx context.Context) {
	c.term = ctx
	if err := c.loadCases(ctx); err != nil {
		c.log.Error("cases not loaded; giving the lead up", zap.Error(err))
		return
	}
	stopWatching, err := c.watchCases(ctx)
	if err != nil {
		c.log.Error("cases not watched; giving the lead up", zap.Error(err))
		return
	}
	defer stopWatching()
	for _, o := range c.nodes.GetStore().List() {
		if n, ok := o.(*corev1.Node); ok {
			c.queue.Add(n.Name)
		}
	}
	c.ready.leading.Store(true)
	defer c.ready.leading.Store(false)
	var workers sync.WaitGroup
	for range c.workers {
		workers.Go(func() { c.worker(ctx) })
	}
	workers.Go(func() { newSurvey(c).run(ctx) })
	<-ctx.Done()
	c.queue.ShutDown()
	workers.Wait()
	c.running.Wait()
}

// loadCases reads all cases from the API server itself.
func (c *Controller) loadCases(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	all, err := c.caseClient.list(ctx)
	if err != nil {
		return err
	}
	pages := map[string]*page{}
	for _, fc := range all {
		kase, err := readCase(fc)
		if err != nil {
			// One that cannot be read blocks its node, not the others.
			c.block(fc, err)
			continue
		}
		if !kase.Open() || c.cases.isBlocked(kase.Node) {
			continue
		}
		if other := pages[kase.Node]; other != nil && other.kase.OpenedAt.After(kase.OpenedAt) {
			continue
		}
		pages[kase.Node] = &page{stored: fc, kase: kase}
		c.queue.Add(kase.Node)
	}
	c.cases.reset(pages)
	for _, kase := range c.cases.open() {
		c.metrics.cases.update(kase)
		c.log.Info("case resumed", zap.String("node", kase.Node), zap.String("case", kase.Name), zap.Stringer("state", kase.State))
		if kase.Held() {
			// The last leader may have ended between storing the hold and telling
			// people of it (S14). Twice is better than never.
			c.alert(kase, kase.Hold.Alert(c.now()))
		}
	}
	return nil
}

// readCase reads a case. One without any status was created by a controller that
// ended before it could say more: it has just begun, and goes on, so that it is
// also closed.
func readCase(fc *v1alpha1.FencingCase) (fencing.Case, error) {
	kase, err := fc.ToCase()
	if err != nil || kase.State != fencing.NoCase {
		return kase, err
	}
	if !reflect.DeepEqual(fc.Status, v1alpha1.FencingCaseStatus{}) {
		return fencing.Case{}, fmt.Errorf("fencing case %s: status.state is empty, and the rest of the status is not", fc.Name)
	}
	kase.State, kase.OpenedAt = fencing.Suspected, fc.CreationTimestamp.UTC()
	return kase, nil
}

// block leaves a node alone whose case cannot be read: what was begun is not
// known, so that nothing may be begun.
func (c *Controller) block(fc *v1alpha1.FencingCase, err error) {
	c.metrics.unusable.Inc()
	c.cases.block(fc.Spec.NodeName, string(fc.UID))
	c.log.Error("case cannot be used; nothing is done about its node until it is deleted",
		zap.String("node", fc.Spec.NodeName), zap.String("case", fc.Name), zap.Error(err))
	ref := &corev1.ObjectReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: "FencingCase", Name: fc.Name, UID: fc.UID}
	c.events.Event(ref, corev1.EventTypeWarning, "CaseUnusable", cut("nothing is done about node "+fc.Spec.NodeName+" until this case is deleted: "+err.Error()))
}

// watchCases learns of cases that a person deletes.
func (c *Controller) watchCases(ctx context.Context) (stop func(), err error) {
	c.caseWatch = dynamicinformer.NewFilteredDynamicInformer(c.dynamic, v1alpha1.FencingCases, metav1.NamespaceAll, 0, cache.Indexers{}, nil).Informer()
	if err := c.caseWatch.SetTransform(trimCase); err != nil {
		return nil, fmt.Errorf("watch cases: %w", err)
	}
	if err := on(c.caseWatch, func(*caseStub) {}, c.caseDeleted); err != nil {
		return nil, fmt.Errorf("watch cases: %w", err)
	}
	var done sync.WaitGroup
	done.Go(func() { c.caseWatch.RunWithContext(ctx) })
	return done.Wait, nil
}

// background runs what asks a machine beside the loop, until the term ends; lead
// waits for all of it. The turn's own deadline is not the question's.
func (c *Controller) background(ask func(context.Context)) {
	c.running.Go(func() { ask(c.term) })
}

// slot waits until fewer machines are asked than may be at once, or the term ends,
// and gives what gives the place back.
func (c *Controller) slot(ctx context.Context) (free func()) {
	select {
	case c.slots <- struct{}{}:
		return func() { <-c.slots }
	case <-ctx.Done():
		return func() {}
	}
}

// Requeue decides anew about every node, after a change of the configuration.
func (c *Controller) Requeue() {
	for _, o := range c.nodes.GetStore().List() {
		if n, ok := o.(*corev1.Node); ok {
			c.queue.Add(n.Name)
		}
	}
}
