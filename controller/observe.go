package controller

import (
	"context"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/nodefence/nodefence/fencing"
)

// observe gathers what is known of a node from the caches, and how it is to be
// handled. Machines are not asked here: their newest answers lie in the mailbox.
func (c *Controller) observe(ctx context.Context, node string, kase fencing.Case) (fencing.Observation, Assignment) {
	o := fencing.Observation{Now: c.now(), Node: fencing.NodeFacts{Name: node}}
	a := Assignment{Policy: c.lastPolicy(kase)}
	n, ok := lookup[*corev1.Node](c.nodes.GetStore(), node)
	if ok {
		o.Node = nodeFacts(n)
		a = c.assign(n, kase)
	}
	o.Unaddressed, o.Expected = a.Problem, a.Expected
	o.Lease = c.cachedLease(node, o.Now)
	if kase.Open() {
		o.Workloads = c.cachedWorkloads(ctx, node)
	}
	o.Cluster.Nodes, o.Cluster.NotReady = c.health.counts()
	o.Reading, o.PowerOff = c.mail.peek(node)
	return o, a
}

// assign asks the fleet, and adds what only the controller sees: whether the
// node's UUID belongs to another node too (S3).
func (c *Controller) assign(n *corev1.Node, kase fencing.Case) Assignment {
	a := c.fleet.Assign(n)
	if !a.Managed && kase.Open() {
		// The group went away while its case was open. Nothing more is begun, but
		// what was begun is finished.
		a.Policy, a.Problem = c.lastPolicy(kase), "no group of the configuration selects the node any more"
	}
	a.Expected.SharedUUID = c.health.shared(a.Expected.UUID)
	return a
}

// lastPolicy is in force for a case whose node no group selects.
func (c *Controller) lastPolicy(kase fencing.Case) fencing.Policy {
	p := fencing.DefaultPolicy()
	p.Group, p.Mode = kase.Group, fencing.Observe
	return p
}

func (c *Controller) cachedLease(node string, now time.Time) fencing.LeaseFacts {
	l, _ := lookup[*coordinationv1.Lease](c.leases.GetStore(), corev1.NamespaceNodeLease+"/"+node)
	f := leaseFacts(l)
	if f.Exists {
		f.SeenAt = c.renewals.observe(node, f.RenewedAt, now)
	}
	return f
}

func lookup[T any](store interface {
	GetByKey(string) (any, bool, error)
}, key string) (t T, ok bool) {
	o, exists, err := store.GetByKey(key)
	if err != nil || !exists {
		return t, false
	}
	t, ok = o.(T)
	return t, ok
}
