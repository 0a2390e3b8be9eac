package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/nodefence/nodefence/fencing"
	"github.com/nodefence/nodefence/providers"
)

const (
	// patchDeadline bounds the look at the Node and the patch that follows.
	patchDeadline = 5 * time.Second
	// leaseMargin is how much of the leader's lease must be left beyond an
	// action's deadline (S8): for clocks that run at different speeds and for the
	// action's last packet.
	leaseMargin = 2 * time.Second
)

// act carries out what was decided and stored. Alerts go first: people learn of
// a doubt even when what follows fails.
func (c *Controller) act(ctx context.Context, a Assignment, dec fencing.Decision) error {
	var errs []error
	for _, action := range dec.Actions {
		c.metrics.actions.WithLabelValues(action.Kind.String()).Inc()
		switch action.Kind {
		case fencing.ActionAlert:
			c.alert(dec.Case, action.Alert)
		case fencing.ActionRead:
			c.read(dec.Case.Node, a)
		case fencing.ActionPowerOff:
			c.powerOff(dec.Case, a)
		case fencing.ActionTaint, fencing.ActionUntaint:
			errs = append(errs, c.mark(ctx, dec.Case, action.Kind))
		}
	}
	return errors.Join(errs...)
}

// mark taints or untaints the Node after a last look (S4, S8, S10).
func (c *Controller) mark(ctx context.Context, kase fencing.Case, action fencing.ActionKind) error {
	if err := c.mayAct(patchDeadline); err != nil {
		return fmt.Errorf("%s of node %s: %w", action, kase.Node, err)
	}
	ctx, cancel := context.WithTimeout(ctx, patchDeadline)
	defer cancel()
	n, err := c.lastLook(ctx, kase, action)
	if errors.Is(err, errForbidden) {
		// Often only a change that the caches have not seen yet: the case is
		// decided anew from what is so now.
		c.log.Warn("not done", zap.String("node", kase.Node), zap.String("case", kase.Name), zap.Stringer("action", action), zap.Error(err))
		return nil
	}
	if err != nil {
		return err
	}
	ops, ok := taintPatch(n, kase), true
	if action == fencing.ActionUntaint {
		ops, ok = untaintPatch(n)
	}
	if !ok {
		return nil
	}
	err = c.patchNode(ctx, kase.Node, ops)
	if apierrors.IsConflict(err) || apierrors.IsInvalid(err) {
		c.log.Info("the node changed under the patch; it is looked at again", zap.String("node", kase.Node), zap.Stringer("action", action), zap.Error(err))
		c.queue.AddRateLimited(kase.Node)
		return nil
	}
	if err != nil {
		return err
	}
	c.log.Info("node patched", zap.String("node", kase.Node), zap.String("case", kase.Name), zap.Stringer("action", action))
	return nil
}

// errNotLeader is the cause when the leader's lease does not last (S8).
var errNotLeader = errors.New("the leader's lease does not last until the action's deadline")

// mayAct tells whether an irrevocable action may begin: only while the leader's
// lease outlasts its deadline (S8).
func (c *Controller) mayAct(deadline time.Duration) error {
	if left := c.leader.Remaining(); left < deadline+leaseMargin {
		return fmt.Errorf("%w: %s are left, %s are needed", errNotLeader, left.Round(time.Millisecond), deadline+leaseMargin)
	}
	return nil
}

// read asks the machine beside the loop; the answer wakes the node's next turn.
func (c *Controller) read(node string, a Assignment) {
	if a.Machine == nil || a.Driver == nil || !c.mail.beginReading(node) {
		return
	}
	c.background(func(ctx context.Context) {
		defer c.slot(ctx)()
		ctx, cancel := context.WithTimeout(ctx, a.Policy.ReadTimeout)
		defer cancel()
		begin := c.now()
		r := c.ask(ctx, a)
		c.metrics.observeReading(r, c.now().Sub(begin))
		c.mail.endReading(node, r)
		c.queue.Add(node)
	})
}

// ask makes one reading. A panic in a driver, which parses what devices send, is
// a failed reading and not the end of the controller.
func (c *Controller) ask(ctx context.Context, a Assignment) (r fencing.Reading) {
	asked := c.now()
	defer func() {
		if p := recover(); p != nil {
			c.log.Error("driver panicked", zap.String("provider", a.Provider), zap.Any("panic", p), zap.Stack("stack"))
			r = fencing.Reading{Failure: fencing.Failure{Kind: fencing.Failed, Message: "the driver failed on the answer; this is an error in nodefence"}}
		}
		r.Provider = a.Provider
		if r.AskedAt.IsZero() {
			r.AskedAt = asked
		}
		if r.AnsweredAt.IsZero() {
			r.AnsweredAt = c.now()
		}
		r.AskedAt, r.AnsweredAt = r.AskedAt.UTC().Truncate(time.Microsecond), r.AnsweredAt.UTC().Truncate(time.Microsecond)
		r.Hints.LastReset = r.Hints.LastReset.UTC().Truncate(time.Microsecond)
	}()
	m, err := a.Machine(ctx)
	if err != nil {
		return fencing.Reading{Failure: fencing.Failure{Kind: fencing.Misconfigured, Message: providers.CleanRaw(err.Error())}}
	}
	return a.Driver.Read(ctx, m)
}

// powerOff forces the machine off beside the loop, after a last look (S4, S5,
// S8); how it ended wakes the node's next turn. It waits for no slot: the budget
// bounds how many there are, and one that waited behind readings of BMCs that hang
// would be called lost before it was sent.
func (c *Controller) powerOff(kase fencing.Case, a Assignment) {
	if a.Machine == nil || a.Driver == nil || !c.mail.beginPowerOff(kase.Node) {
		return
	}
	c.background(func(ctx context.Context) {
		result := fencing.PowerOffResult{Attempt: kase.PowerOff.Attempts, StartedAt: c.now()}
		if err := c.tryPowerOff(ctx, kase, a); err != nil {
			result.Failure = providers.FailureOf(err)
			c.log.Warn("power-off not accepted", zap.String("node", kase.Node), zap.String("case", kase.Name), zap.Error(err))
		}
		result.EndedAt = c.now()
		c.metrics.observePowerOff(a.Provider, result)
		c.mail.endPowerOff(kase.Node, result)
		c.queue.Add(kase.Node)
	})
}

func (c *Controller) tryPowerOff(ctx context.Context, kase fencing.Case, a Assignment) (err error) {
	defer func() {
		if p := recover(); p != nil {
			c.log.Error("driver panicked", zap.String("provider", a.Provider), zap.Any("panic", p), zap.Stack("stack"))
			err = fmt.Errorf("node %s: the driver failed during the power-off; this is an error in nodefence", kase.Node)
		}
	}()
	deadline := a.Policy.PowerOffTimeout
	if err := c.mayAct(deadline); err != nil {
		return fmt.Errorf("power-off of node %s: %w", kase.Node, err)
	}
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	m, err := a.Machine(ctx)
	if err != nil {
		return err
	}
	if _, err := c.lastLook(ctx, kase, fencing.ActionPowerOff); err != nil {
		return err
	}
	return a.Driver.PowerOff(ctx, m)
}
