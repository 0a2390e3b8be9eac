package controller

import (
	"context"
	"fmt"
	"hash/fnv"
	"sync"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"

	"github.com/nodefence/nodefence/fencing"
)

const (
	// surveyAtOnce is how many machines a survey asks at once: it has time, and
	// must not be in the way of a case.
	surveyAtOnce = 4
	// surveyAgain is when a machine that could not be fenced is asked again;
	// people are told when it cannot be the second time.
	surveyAgain = time.Minute
	// surveyAlertEvery is how often people are told of the same machine.
	surveyAlertEvery = 24 * time.Hour
	// surveyTick is how often it is looked for machines that are due.
	surveyTick = time.Second
	// surveyAside is when it is asked again whether a node is to be surveyed that is
	// not.
	surveyAside = 5 * time.Minute
)

// survey reads the machines of healthy nodes, gently and all the time, so that one
// that could not be fenced is known before it has to be (S14). It decides nothing
// and touches nothing; what it learns is told, and forgotten with the leader's term.
type survey struct {
	c     *Controller
	mu    sync.Mutex
	nodes map[string]*surveyed
}

// surveyed is what is known of one node's machine.
type surveyed struct {
	due     time.Time
	asking  bool
	result  fencing.Readiness
	doubts  int // in a row
	alerted time.Time
}

func newSurvey(c *Controller) *survey { return &survey{c: c, nodes: map[string]*surveyed{}} }

// run asks until ctx ends, and waits for the answers.
func (s *survey) run(ctx context.Context) {
	defer s.c.metrics.survey.reset()
	slots := make(chan struct{}, surveyAtOnce)
	var asking sync.WaitGroup
	defer asking.Wait()
	tick := time.NewTicker(surveyTick)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, node := range s.dueNodes() {
			select {
			case slots <- struct{}{}:
			default:
				s.postpone(node)
				continue
			}
			asking.Go(func() {
				defer func() { <-slots }()
				s.ask(ctx, node)
			})
		}
	}
}

// dueNodes marks the nodes whose machine is to be asked now, and forgets those
// that are gone. New ones are spread over the period, so that a new leader does not
// ask all at once.
func (s *survey) dueNodes() []*corev1.Node {
	now := s.c.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := make(map[string]bool, len(s.nodes))
	var due []*corev1.Node
	for _, o := range s.c.nodes.GetStore().List() {
		n, ok := o.(*corev1.Node)
		if !ok {
			continue
		}
		if readyStatus(n) != fencing.ReadyTrue {
			continue // of a node that is not well its case tells
		}
		seen[n.Name] = true
		k := s.nodes[n.Name]
		if k == nil {
			k = &surveyed{due: now.Add(spread(n.Name, now, period(s.c.fleet.Assign(n).Policy)))}
			s.nodes[n.Name] = k
		}
		if !k.asking && !k.due.After(now) {
			k.asking = true
			due = append(due, n)
		}
	}
	for name := range s.nodes {
		if !seen[name] {
			delete(s.nodes, name)
			s.c.metrics.survey.forget(name)
		}
	}
	return due
}

func (s *survey) postpone(n *corev1.Node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.nodes[n.Name]; k != nil {
		k.asking = false
	}
}

// ask reads one machine, unless a case reads it already: then that is what counts.
func (s *survey) ask(ctx context.Context, n *corev1.Node) {
	a := s.c.assign(n, fencing.Case{})
	kase, _ := s.c.cases.get(n.Name)
	if kase.Open() || a.Policy.SurveyEvery == 0 {
		s.next(n.Name, a.Policy)
		return
	}
	var reading fencing.Reading
	if a.Problem == "" {
		if !s.c.mail.beginReading(n.Name) {
			s.next(n.Name, a.Policy)
			return
		}
		ctx, cancel := context.WithTimeout(ctx, a.Policy.ReadTimeout)
		defer cancel()
		begin := s.c.now()
		reading = s.c.ask(ctx, a)
		s.c.metrics.observeReading(reading, s.c.now().Sub(begin))
		// A case that was opened meanwhile has its first reading in this one.
		s.c.mail.endSurvey(n.Name, reading, func() bool { kase, _ := s.c.cases.get(n.Name); return kase.Open() })
		s.c.queue.Add(n.Name)
	}
	if ctx.Err() == nil || reading.Failure.Kind == fencing.TimedOut {
		s.record(n, a.Policy, fencing.JudgeReadiness(a.Policy, a.Expected, a.Problem, reading))
	}
}

// next puts off what is not to be asked now.
func (s *survey) next(node string, p fencing.Policy) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.nodes[node]; k != nil {
		now := s.c.now()
		k.asking, k.due = false, now.Add(jitter(node, now, period(p)))
	}
}

// period is the time between two looks at a machine.
func period(p fencing.Policy) time.Duration {
	if p.SurveyEvery == 0 {
		return surveyAside
	}
	return p.SurveyEvery
}

// jitter spreads a period by a fifth to either side.
func jitter(node string, now time.Time, every time.Duration) time.Duration {
	return every*4/5 + spread(node, now, every*2/5)
}

// spread gives a part of a span that differs from node to node and from time to
// time. It is no chance, so that what happens can be played again.
func spread(node string, now time.Time, span time.Duration) time.Duration {
	h := fnv.New64a()
	fmt.Fprint(h, node, now.UnixNano())
	return time.Duration(h.Sum64() % uint64(span+1)) //nolint:gosec // spans are not negative
}

// record keeps what was learned, and tells people of a change that lasts.
func (s *survey) record(n *corev1.Node, p fencing.Policy, result fencing.Readiness) {
	s.mu.Lock()
	k := s.nodes[n.Name]
	if k == nil {
		s.mu.Unlock()
		return // gone, or not well any more
	}
	now := s.c.now()
	before := k.result
	k.asking, k.due, k.result = false, now.Add(jitter(n.Name, now, period(p))), result
	tell := false
	if result.Ready() {
		k.doubts = 0
		tell = !k.alerted.IsZero()
		k.alerted = time.Time{}
	} else {
		k.doubts++
		if k.doubts == 1 {
			k.due = now.Add(min(surveyAgain, p.SurveyEvery))
		}
		changed := !k.alerted.IsZero() && before.Reason != result.Reason
		if k.doubts > 1 && (k.alerted.IsZero() || changed || now.Sub(k.alerted) >= surveyAlertEvery) {
			tell, k.alerted = true, now
		}
	}
	s.mu.Unlock()
	s.c.metrics.survey.set(n.Name, result)
	if tell {
		s.tell(n, result)
	}
}

// tell writes to the log and as an Event of the Node that its machine could not be
// fenced, or could be again.
func (s *survey) tell(n *corev1.Node, result fencing.Readiness) {
	ref := &corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: n.Name, UID: n.UID}
	log := s.c.log.With(zap.String("node", n.Name))
	if result.Ready() {
		log.Info("the machine can be fenced again")
		s.c.events.Event(ref, corev1.EventTypeNormal, "Fenceable", "the machine can be fenced again")
		return
	}
	message := "the machine could not be fenced if the node failed now: " + string(result.Reason) + ": " + result.Message + ". " + result.Reason.Remedy()
	log.Warn("ALERT: "+message, zap.String("reason", string(result.Reason)))
	s.c.metrics.alerts.WithLabelValues(string(result.Reason), fencing.Warning.String()).Inc()
	s.c.events.Event(ref, corev1.EventTypeWarning, "NotFenceable", cut(message))
}
