package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/nodefence/nodefence/fencing"
)

// patchOp is one operation of a JSON patch (RFC 6902).
type patchOp struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// taintPatch puts our taint and its mark on the Node in one step, provided that
// the Node is still the one that was looked at (S4, S10): the API server refuses
// the patch when UID or resource version differ. It never touches other taints.
func taintPatch(n *corev1.Node, kase fencing.Case) []patchOp {
	ops, taint := preconditions(n), ourTaint()
	since := metav1.NewTime(kase.Taint.IntendedAt.UTC())
	taint.TimeAdded = &since
	if len(n.Spec.Taints) == 0 {
		ops = append(ops, patchOp{"add", "/spec/taints", []corev1.Taint{taint}})
	} else {
		ops = append(ops, patchOp{"add", "/spec/taints/-", taint})
	}
	if n.Annotations == nil {
		ops = append(ops, patchOp{"add", "/metadata/annotations", map[string]string{}})
	}
	return append(ops,
		patchOp{"add", annotationPath(CaseAnnotation), kase.Name},
		patchOp{"add", annotationPath(BootIDAnnotation), kase.BootID},
		patchOp{"add", annotationPath(SinceAnnotation), since.Format(time.RFC3339)})
}

// untaintPatch removes our taint and its mark, and tests that what it removes is
// what was looked at. ok is false when there is nothing to remove.
func untaintPatch(n *corev1.Node) (ops []patchOp, ok bool) {
	ops = preconditions(n)
	for i := len(n.Spec.Taints) - 1; i >= 0; i-- { // from the end, so that indexes hold
		// One of another effect is not the one that we set.
		if t := n.Spec.Taints[i]; t.Key == OutOfServiceTaint && t.Effect == corev1.TaintEffectNoExecute && ours(n, &t) {
			path := fmt.Sprintf("/spec/taints/%d", i)
			ops = append(ops, patchOp{"test", path + "/key", t.Key}, patchOp{Op: "remove", Path: path})
			ok = true
		}
	}
	for _, a := range []string{CaseAnnotation, BootIDAnnotation, SinceAnnotation} {
		if _, there := n.Annotations[a]; there {
			ops = append(ops, patchOp{Op: "remove", Path: annotationPath(a)})
		}
	}
	return ops, ok
}

func preconditions(n *corev1.Node) []patchOp {
	return []patchOp{
		{"test", "/metadata/uid", n.UID},
		{"test", "/metadata/resourceVersion", n.ResourceVersion},
	}
}

func annotationPath(key string) string {
	return "/metadata/annotations/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
}

func (c *Controller) patchNode(ctx context.Context, node string, ops []patchOp) error {
	body, err := json.Marshal(ops)
	if err != nil {
		return fmt.Errorf("encode the patch of node %s: %w", node, err)
	}
	if _, err := c.client.CoreV1().Nodes().Patch(ctx, node, types.JSONPatchType, body, metav1.PatchOptions{FieldManager: "nodefence"}); err != nil {
		return fmt.Errorf("patch node %s: %w", node, err)
	}
	return nil
}
