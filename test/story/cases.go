package story

import (
	"context"
	"fmt"
	"sort"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"

	"github.com/nodefence/nodefence/config/v1alpha1"
)

func (w *World) cases() dynamic.ResourceInterface { return w.dynamic.Resource(v1alpha1.FencingCases) }

// newest gives the node's newest case that was opened after since, or nil.
func (w *World) newest(ctx context.Context, node string, since time.Time) (*v1alpha1.FencingCase, error) {
	list, err := w.cases().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var of []*v1alpha1.FencingCase
	for i := range list.Items {
		var fc v1alpha1.FencingCase
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, &fc); err != nil {
			return nil, err
		}
		if fc.Spec.NodeName == node && fc.Status.OpenedAt != nil && !fc.Status.OpenedAt.Time.Before(since) {
			of = append(of, &fc)
		}
	}
	if len(of) == 0 {
		return nil, nil
	}
	sort.Slice(of, func(i, j int) bool { return of[i].Status.OpenedAt.Before(of[j].Status.OpenedAt) })
	return of[len(of)-1], nil
}

// WaitCase waits until the node's case of this story is as it should be.
func (w *World) WaitCase(ctx context.Context, n *Node, since time.Time, what string, ok func(*v1alpha1.FencingCase) bool) (*v1alpha1.FencingCase, error) {
	ctx, cancel := context.WithTimeout(ctx, w.patience())
	defer cancel()
	last := "it has none"
	for {
		fc, err := w.newest(ctx, n.Name, since)
		switch {
		case err != nil && ctx.Err() == nil:
			last = err.Error() // an API server that is away comes back
		case fc != nil && ok(fc):
			return fc, nil
		case fc != nil:
			last = describe(fc)
		}
		if w.nodefence != nil && w.nodefence.Exited() {
			return nil, wrong("while waiting for the case of %s to be %s: %v", n.Name, what, w.nodefence.Failure())
		}
		select {
		case <-ctx.Done():
			return nil, wrong("waiting for the case of %s to be %s: %s", n.Name, what, last)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// patience is how long any step of a story may take.
func (w *World) patience() time.Duration {
	t := w.Timing
	return 30*time.Second + 3*(t.GracePeriod+t.Boot+t.Hold+t.PowerOffAfter+t.StableFor)
}

func describe(fc *v1alpha1.FencingCase) string {
	s := fc.Status
	out := fmt.Sprintf("case %s is %s", fc.Name, s.State)
	if s.Verdict != nil {
		out += fmt.Sprintf(", verdict %s (%s): %s", s.Verdict.Kind, s.Verdict.Reason, s.Verdict.Message)
	}
	if s.Hold != nil {
		out += fmt.Sprintf(", held: %s: %s", s.Hold.Reason, s.Hold.Message)
	}
	return out
}

// heldFor tells whether the case is held for one of the reasons and people were
// told.
func heldFor(reasons ...string) func(*v1alpha1.FencingCase) bool {
	return func(fc *v1alpha1.FencingCase) bool {
		if fc.Status.Hold == nil || fc.Status.Hold.AlertedAt == nil {
			return false
		}
		for _, r := range reasons {
			if fc.Status.Hold.Reason == r {
				return true
			}
		}
		return false
	}
}

func inState(state string) func(*v1alpha1.FencingCase) bool {
	return func(fc *v1alpha1.FencingCase) bool { return fc.Status.State == state }
}

func evacuated(fc *v1alpha1.FencingCase) bool {
	return fc.Status.Taint != nil && fc.Status.Taint.EvacuatedAt != nil
}

// alerted tells whether an Event on the Node tells people of the reason.
func (w *World) alerted(ctx context.Context, n *Node, reason string) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for {
		events, err := w.Cluster.Admin.CoreV1().Events(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.kind=Node,involvedObject.name=" + n.Name + ",reason=" + reason})
		if err == nil {
			for i := range events.Items {
				if events.Items[i].Type == "Warning" {
					return nil
				}
			}
		}
		select {
		case <-ctx.Done():
			return wrong("no Warning event %s on node %s", reason, n.Name)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (w *World) node(ctx context.Context, name string) (*corev1.Node, error) {
	return w.Cluster.Admin.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
}
