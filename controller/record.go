package controller

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/nodefence/nodefence/config/v1alpha1"
	"github.com/nodefence/nodefence/fencing"
)

// NodeLabel on a FencingCase names its node, for kubectl -l. A name too long for
// a label's value is left out.
const NodeLabel = "nodefence.io/node"

// storeDeadline bounds the storing of a case.
const storeDeadline = 10 * time.Second

// store writes the case before anything is done (S9) and gives the object as
// stored. A conflict is an error: somebody else has written, and the decision was
// made without knowing what.
func (c *Controller) store(ctx context.Context, stored *v1alpha1.FencingCase, kase fencing.Case) (*v1alpha1.FencingCase, error) {
	ctx, cancel := context.WithTimeout(ctx, storeDeadline)
	defer cancel()
	begin := time.Now()
	defer func() { c.metrics.storeSeconds.Observe(time.Since(begin).Seconds()) }()
	spec, status := v1alpha1.FromCase(kase)
	created := stored == nil
	if created {
		var err error
		if stored, err = c.createCase(ctx, kase, spec); err != nil {
			return nil, err
		}
	}
	next := stored.DeepCopy()
	status.Conditions = stored.Status.Conditions
	setConditions(&status, kase)
	next.Status = status
	out, err := c.caseClient.updateStatus(ctx, next)
	if err != nil && created {
		// It is there now, and has to come to an end like any other.
		if begun, readErr := readCase(stored); readErr == nil {
			c.cases.put(begun, stored)
		}
	}
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		c.reload(ctx, kase.Node, kase.Name)
	}
	if err != nil {
		return nil, fmt.Errorf("store case %s: %w", kase.Name, err)
	}
	return out, nil
}

// createCase makes the object. One of that name that is there already is the
// same incident, left by a controller that stopped between the two calls, or
// closed before its taint was found again.
func (c *Controller) createCase(ctx context.Context, kase fencing.Case, spec v1alpha1.FencingCaseSpec) (*v1alpha1.FencingCase, error) {
	fc := &v1alpha1.FencingCase{ObjectMeta: metav1.ObjectMeta{Name: kase.Name}, Spec: spec}
	if len(kase.Node) <= 63 {
		fc.Labels = map[string]string{NodeLabel: kase.Node}
	}
	out, err := c.caseClient.create(ctx, fc)
	if apierrors.IsAlreadyExists(err) {
		out, err = c.caseClient.get(ctx, kase.Name)
		if err == nil && (out.Spec.NodeName != spec.NodeName || out.Spec.NodeUID != spec.NodeUID) {
			return nil, fmt.Errorf("case %s exists and is about node %s (UID %s), not %s (UID %s): delete it", kase.Name, out.Spec.NodeName, out.Spec.NodeUID, spec.NodeName, spec.NodeUID)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("create case %s: %w", kase.Name, err)
	}
	return out, nil
}

// reload takes the case from the API server after somebody else has written it.
func (c *Controller) reload(ctx context.Context, node, name string) {
	fc, err := c.caseClient.get(ctx, name)
	switch {
	case apierrors.IsNotFound(err):
		_, stored := c.cases.get(node)
		if stored != nil && stored.Name == name {
			c.cases.forget(node, string(stored.UID))
		}
	case err != nil:
		c.log.Warn("case not read again", zap.String("case", name), zap.Error(err))
	default:
		kase, err := readCase(fc)
		if err != nil {
			c.block(fc, err)
			return
		}
		dec := c.cases.doubted(node)
		c.cases.put(kase, fc)
		if reflect.DeepEqual(kase, dec.Case) {
			c.tellLate(dec, fc)
		}
	}
}

// tellLate tells what a decision said that was stored after all: only the answer
// had been lost. Its alerts count as given in the case, and would not be given
// before they are due again (S14). Its other actions are decided anew.
func (c *Controller) tellLate(dec fencing.Decision, fc *v1alpha1.FencingCase) {
	c.tell(dec, fc)
	for _, action := range dec.Actions {
		if action.Kind == fencing.ActionAlert {
			c.alert(dec.Case, action.Alert)
		}
	}
}

// setConditions derives the conditions that kubectl wait and dashboards use.
func setConditions(s *v1alpha1.FencingCaseStatus, kase fencing.Case) {
	set := func(kind string, on bool, reason, message string) {
		status := metav1.ConditionFalse
		if on {
			status = metav1.ConditionTrue
		}
		if reason == "" {
			reason = "None"
		}
		apimeta.SetStatusCondition(&s.Conditions, metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message})
	}
	set("Proved", kase.Verdict.Kind == fencing.VerdictOff, string(kase.Verdict.Reason), kase.Verdict.Message)
	set("Held", kase.Held(), string(kase.Hold.Reason), kase.Hold.Message)
	tainted := !kase.Taint.AppliedAt.IsZero() && kase.Taint.RemovedAt.IsZero()
	set("Tainted", tainted, kase.State.String(), "")
	set("Evacuated", !kase.Taint.EvacuatedAt.IsZero(), kase.State.String(), "")
}

// tell writes what a stored decision added to the timeline to the log, to Events
// and to the metrics: one line a decision's entry.
func (c *Controller) tell(dec fencing.Decision, fc *v1alpha1.FencingCase) {
	kase := dec.Case
	for _, e := range dec.Entries {
		c.log.Log(level(e.Severity), e.Message,
			zap.String("node", kase.Node), zap.String("case", kase.Name), zap.String("reason", string(e.Reason)),
			zap.Stringer("state", kase.State), zap.Stringer("verdict", kase.Verdict.Kind), zap.String("hold", string(kase.Hold.Reason)),
			zap.String("group", kase.Group), zap.Duration("sinceOpened", e.At.Sub(kase.OpenedAt)))
		c.metrics.decisions.WithLabelValues(string(e.Reason)).Inc()
		c.event(kase, fc, e)
	}
	c.metrics.cases.update(kase)
}

func level(s fencing.Severity) zapcore.Level {
	switch s {
	case fencing.Warning:
		return zapcore.WarnLevel
	case fencing.Critical:
		return zapcore.ErrorLevel
	}
	return zapcore.InfoLevel
}

// alert tells people of a held case, with what they can do (S14).
func (c *Controller) alert(kase fencing.Case, e fencing.Entry) {
	e.Message += ". " + e.Reason.Remedy()
	c.log.Log(level(e.Severity), "ALERT: "+e.Message, zap.String("node", kase.Node), zap.String("case", kase.Name),
		zap.String("reason", string(e.Reason)), zap.Stringer("severity", e.Severity))
	c.metrics.alerts.WithLabelValues(string(e.Reason), e.Severity.String()).Inc()
	_, fc := c.cases.get(kase.Node)
	c.event(kase, fc, e)
}

// event records an Event on the Node and one on the case.
func (c *Controller) event(kase fencing.Case, fc *v1alpha1.FencingCase, e fencing.Entry) {
	kind := corev1.EventTypeNormal
	if e.Severity != fencing.Info {
		kind = corev1.EventTypeWarning
	}
	node := &corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: kase.Node, UID: types.UID(kase.NodeUID)}
	c.events.Event(node, kind, string(e.Reason), cut(e.Message))
	ref := &corev1.ObjectReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: "FencingCase", Name: kase.Name}
	if fc != nil {
		ref.UID = fc.UID
	}
	c.events.Event(ref, kind, string(e.Reason), cut(e.Message))
}

// cut keeps an Event's message within the API's 1024 bytes.
func cut(s string) string {
	const most = 1000
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
