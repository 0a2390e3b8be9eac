package controller

import (
	"sync"
	"time"
)

// leaseWatch remembers when each node's Lease renewal was first seen, by the
// controller's own clock: kubelets' clocks differ and are not to be compared
// with it.
type leaseWatch struct {
	mu   sync.Mutex
	seen map[string]renewal
}

type renewal struct{ at, seenAt time.Time }

func newLeaseWatch() *leaseWatch { return &leaseWatch{seen: map[string]renewal{}} }

// observe notes a renewal and gives when it was first seen.
func (w *leaseWatch) observe(node string, renewedAt, now time.Time) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	r, ok := w.seen[node]
	if !ok || !r.at.Equal(renewedAt) {
		r = renewal{at: renewedAt, seenAt: now}
		w.seen[node] = r
	}
	return r.seenAt
}

func (w *leaseWatch) forget(node string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.seen, node)
}
