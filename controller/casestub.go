package controller

import (
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// caseStub is what the watch of cases keeps of each: enough to see that one was
// deleted, however many are kept as a record.
type caseStub struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	node string
}

// DeepCopyObject copies the stub.
func (s *caseStub) DeepCopyObject() runtime.Object {
	out := *s
	s.DeepCopyInto(&out.ObjectMeta)
	return &out
}

func trimCase(o any) (any, error) {
	u, ok := o.(*unstructured.Unstructured)
	if !ok {
		return o, nil
	}
	node, _, _ := unstructured.NestedString(u.Object, "spec", "nodeName")
	return &caseStub{ObjectMeta: metav1.ObjectMeta{Name: u.GetName(), UID: u.GetUID(), ResourceVersion: u.GetResourceVersion()}, node: node}, nil
}

// caseDeleted forgets a case that somebody deleted: how a person says that a
// provider may be believed again (S11).
func (c *Controller) caseDeleted(s *caseStub) {
	if c.cases.forget(s.node, string(s.UID)) {
		c.log.Warn("an open case was deleted by somebody; the node is looked at anew", zap.String("node", s.node), zap.String("case", s.Name))
		c.metrics.cases.remove(s.node)
		c.queue.Add(s.node)
	}
}
