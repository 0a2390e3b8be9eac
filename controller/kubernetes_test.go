package controller_test

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/nodefence/nodefence/controller"
	"github.com/nodefence/nodefence/fencing"
)

// kubernetes does what the cluster does by itself in one second.
func (w *world) kubernetes() {
	now := time.Now()
	for len(w.due) > 0 && !w.due[0].at.After(now) {
		do := w.due[0].do
		w.due = w.due[1:]
		do()
	}
	if w.everySecond != nil {
		w.everySecond()
	}
	if last := len(w.processes) - 1; w.restarts && last >= 0 && w.processes[last].ended() {
		w.start()
	}
	for _, name := range w.nodes {
		k := w.kubelets[name]
		if k.running && w.machine(name).state() == fencing.Off {
			k.running = false
		}
		n := w.node(name)
		switch {
		case n == nil && k.running && w.rejoins:
			w.register(name)
		case n == nil:
		case k.running && now.Sub(k.renewed) >= leasePeriod:
			k.renewed = now
			w.renewLease(name, now)
			w.report(name, k.boots)
		case !k.running && !w.credulous && now.Sub(k.renewed) >= gracePeriod && ready(n) != corev1.ConditionUnknown:
			w.changeNode(name, func(n *corev1.Node) { setReady(n, corev1.ConditionUnknown) })
		}
		w.evict(name)
	}
}

// evict makes workloads leave a node with the taint: pods after two seconds,
// volumes after four.
func (w *world) evict(node string) {
	n := w.node(node)
	if n == nil || !hasTaint(n, controller.OutOfServiceTaint) {
		delete(w.evicting, node)
		return
	}
	if w.evicting[node].IsZero() {
		w.evicting[node] = time.Now()
	}
	since := time.Since(w.evicting[node])
	if w.keepPods {
		return
	}
	if since >= 2*time.Second {
		w.deletePods(node)
	}
	if since >= 4*time.Second {
		w.deleteAttachments(node)
	}
}
