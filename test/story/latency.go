package story

import (
	"time"

	"github.com/nodefence/nodefence/config/v1alpha1"
)

// taintLatency is the time from "proof complete and node not Ready" to the taint,
// as a watcher of the API server sees it: what nodefence itself takes. The proof
// is complete with the answer of the newest reading before the taint was decided.
func (w *World) taintLatency(fc *v1alpha1.FencingCase, since time.Time) (time.Duration, bool) {
	taints, silent := w.watch.tainted(fc.Spec.NodeName, since), w.watch.notReady(fc.Spec.NodeName, since)
	if len(taints) == 0 || silent.IsZero() || fc.Status.Taint == nil || fc.Status.Taint.IntendedAt == nil {
		return 0, false
	}
	due := silent
	for i := range fc.Status.Readings {
		r := &fc.Status.Readings[i]
		if r.AnsweredAt != nil && !r.AnsweredAt.After(fc.Status.Taint.IntendedAt.Time) && r.AnsweredAt.After(due) {
			due = r.AnsweredAt.Time
		}
	}
	return taints[0].at.Sub(due), true
}
