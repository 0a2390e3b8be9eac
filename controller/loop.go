package controller

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"go.uber.org/zap"

	"github.com/nodefence/nodefence/fencing"
)

// reconcile is one turn of the loop for one node: observe, decide, store, act.
// It returns when the node is to be looked at again.
func (c *Controller) reconcile(ctx context.Context, node string) (time.Time, error) {
	if c.cases.isBlocked(node) {
		return time.Time{}, nil
	}
	kase, stored := c.cases.get(node)
	o, a := c.observe(ctx, node, kase)
	if !a.Managed && !kase.Open() && o.Node.Taint.Case == "" {
		// Nothing to wait for: a change of the Node or of the configuration wakes it.
		c.planned.set(node, true)
		return time.Time{}, nil
	}
	dec := c.cases.decide(node, func(inAction int) fencing.Decision {
		o.Cluster.InAction = inAction
		return fencing.Decide(a.Policy, kase, o)
	})
	if !reflect.DeepEqual(dec.Case, kase) {
		newly, err := c.store(ctx, stored, dec.Case)
		if err != nil {
			c.cases.unreserve(node)
			c.cases.doubt(node, dec)
			return time.Time{}, fmt.Errorf("nothing is done about node %s until its case is stored: %w", node, err)
		}
		c.cases.put(dec.Case, newly)
		c.tell(dec, newly)
	}
	c.mail.take(node, o.Reading, o.PowerOff)
	err := c.act(ctx, a, dec)
	c.planned.set(node, !dec.NextAt.IsZero())
	return dec.NextAt, err
}

// worker takes nodes from the queue until it is shut down.
func (c *Controller) worker(ctx context.Context) {
	for {
		node, shutdown := c.queue.Get()
		if shutdown {
			return
		}
		c.turn(ctx, node)
		c.queue.Done(node)
	}
}

func (c *Controller) turn(ctx context.Context, node string) {
	if ctx.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, turnTimeout)
	defer cancel()
	next, err := c.reconcile(ctx, node)
	if err != nil {
		c.metrics.turnErrors.Inc()
		c.log.Warn("turn failed; it is tried again", zap.String("node", node), zap.Error(err))
		c.queue.AddRateLimited(node)
		return
	}
	c.queue.Forget(node)
	if !next.IsZero() {
		c.queue.AddAfter(node, max(0, next.Sub(c.now())))
	}
}

// turnTimeout bounds one turn: a few calls to the API server. Machines are asked
// beside it.
const turnTimeout = 20 * time.Second
