package controller

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nodefence/nodefence/fencing"
)

// errForbidden is the cause when the last look forbids an action.
var errForbidden = errors.New("the last look forbids it")

// lastLook reads Node and Lease from the API server itself and lets fencing.Check
// judge the action (S4). It returns the Node as it was read: its resource version
// is the precondition of what follows.
func (c *Controller) lastLook(ctx context.Context, kase fencing.Case, action fencing.ActionKind) (*corev1.Node, error) {
	n, err := c.client.CoreV1().Nodes().Get(ctx, kase.Node, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("last look before %s: read node %s: %w", action, kase.Node, err)
	}
	o := fencing.Observation{Node: nodeFacts(n)}
	if o.Lease, err = c.liveLease(ctx, kase.Node); err != nil {
		return nil, fmt.Errorf("last look before %s: %w", action, err)
	}
	if action == fencing.ActionUntaint {
		if o.Workloads, err = c.liveWorkloads(ctx, kase.Node); err != nil {
			return nil, fmt.Errorf("last look before %s: %w", action, err)
		}
	}
	a := c.assign(n, kase)
	o.Expected, o.Unaddressed = a.Expected, a.Problem
	o.Cluster.Nodes, o.Cluster.NotReady = c.health.counts()
	o.Now = c.now()
	violations := fencing.Check(a.Policy, kase, o, action)
	if len(violations) == 0 {
		return n, nil
	}
	errs := make([]error, 0, len(violations)+1)
	errs = append(errs, fmt.Errorf("%s of node %s: %w", action, kase.Node, errForbidden))
	for _, v := range violations {
		c.metrics.refused.WithLabelValues(action.String(), v.Rule).Inc()
		errs = append(errs, v)
	}
	return nil, errors.Join(errs...)
}

func (c *Controller) liveLease(ctx context.Context, node string) (fencing.LeaseFacts, error) {
	l, err := c.client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(ctx, node, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return fencing.LeaseFacts{}, nil
	}
	if err != nil {
		return fencing.LeaseFacts{}, fmt.Errorf("read the Lease of node %s: %w", node, err)
	}
	f := leaseFacts(l)
	if f.Exists {
		f.SeenAt = c.renewals.observe(node, f.RenewedAt, c.now())
	}
	return f, nil
}
