package controller

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/nodefence/nodefence/fencing"
)

// nodeFacts reads from a Node what decisions need.
func nodeFacts(n *corev1.Node) fencing.NodeFacts {
	_, controlPlane := n.Labels[ControlPlaneLabel]
	return fencing.NodeFacts{
		Name: n.Name, Exists: true, UID: string(n.UID),
		Ready:  readyStatus(n),
		BootID: n.Status.NodeInfo.BootID, SystemUUID: n.Status.NodeInfo.SystemUUID,
		ControlPlane: controlPlane,
		Taint:        taintFacts(n),
		Paused:       pausedBy(n),
	}
}

func readyStatus(n *corev1.Node) fencing.ReadyStatus {
	for i := range n.Status.Conditions {
		if c := &n.Status.Conditions[i]; c.Type == corev1.NodeReady {
			switch c.Status {
			case corev1.ConditionTrue:
				return fencing.ReadyTrue
			case corev1.ConditionFalse:
				return fencing.ReadyFalse
			case corev1.ConditionUnknown:
				return fencing.ReadyUnknown
			}
		}
	}
	return fencing.ReadyMissing
}

// taintFacts finds the out-of-service taint, whatever its effect: podgc and the
// attach-detach controller look at the key alone.
func taintFacts(n *corev1.Node) (f fencing.TaintFacts) {
	for i := range n.Spec.Taints {
		t := &n.Spec.Taints[i]
		if t.Key != OutOfServiceTaint {
			continue
		}
		f.Present = true
		if ours(n, t) {
			f.Case, f.BootID = n.Annotations[CaseAnnotation], n.Annotations[BootIDAnnotation]
		}
	}
	return f
}

// ours tells whether an out-of-service taint is the one that the Node's marks are
// about (S10). A person who sets one gives no time.
func ours(n *corev1.Node, t *corev1.Taint) bool {
	return t.TimeAdded != nil && t.TimeAdded.UTC().Format(time.RFC3339) == n.Annotations[SinceAnnotation]
}

func pausedBy(n *corev1.Node) string {
	value, paused := n.Annotations[PausedAnnotation]
	if !paused {
		return ""
	}
	return "the Node carries the annotation " + PausedAnnotation + ": " + value
}

// leaseFacts reads from a Lease what decisions need; SeenAt is the caller's.
func leaseFacts(l *coordinationv1.Lease) fencing.LeaseFacts {
	if l == nil || l.Spec.RenewTime == nil {
		return fencing.LeaseFacts{}
	}
	return fencing.LeaseFacts{Exists: true, RenewedAt: l.Spec.RenewTime.UTC()}
}
