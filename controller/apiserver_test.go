package controller_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"

	"github.com/nodefence/nodefence/config/v1alpha1"
)

// apiServer is the store behind all fake clients: one for the whole world, so that
// a controller that starts anew finds what the last one has left. It adds what
// client-go's fake lacks: resource versions and conflicts, UIDs, the status
// subresource, field selectors, and the answer 422 to a patch whose test fails.
type apiServer struct {
	typed, cases *versionedTracker
}

func newAPIServer() *apiServer {
	s := runtime.NewScheme()
	gv := v1alpha1.FencingCases.GroupVersion()
	s.AddKnownTypeWithName(gv.WithKind("FencingCase"), &unstructured.Unstructured{})
	s.AddKnownTypeWithName(gv.WithKind("FencingCaseList"), &unstructured.UnstructuredList{})
	return &apiServer{
		typed: newVersionedTracker(clienttesting.NewObjectTracker(scheme.Scheme, scheme.Codecs.UniversalDecoder())),
		cases: newVersionedTracker(clienttesting.NewObjectTracker(s, serializer.NewCodecFactory(s).UniversalDecoder())),
	}
}

func (s *apiServer) tracker(r schema.GroupVersionResource) *versionedTracker {
	if r == v1alpha1.FencingCases {
		return s.cases
	}
	return s.typed
}

// serve carries one call out.
func (s *apiServer) serve(action clienttesting.Action) (runtime.Object, error) {
	t := s.tracker(action.GetResource())
	switch a := action.(type) {
	case clienttesting.CreateActionImpl:
		if u, ok := a.Object.(*unstructured.Unstructured); ok {
			// The resource has a status subresource: a create does not write it.
			u = u.DeepCopy()
			unstructured.RemoveNestedField(u.Object, "status")
			a.Object = u
			action = a
		}
	case clienttesting.UpdateActionImpl:
		if u, ok := a.Object.(*unstructured.Unstructured); ok {
			merged, err := t.mergeStatus(a.GetResource(), u, a.GetSubresource())
			if err != nil {
				return nil, err
			}
			a.Object = merged
			action = a
		}
	}
	_, obj, err := clienttesting.ObjectReaction(t)(action)
	if _, patch := action.(clienttesting.PatchActionImpl); patch && err != nil && apierrors.ReasonForError(err) == metav1.StatusReasonUnknown {
		err = apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", err.Error(), 0, false)
	}
	if err != nil {
		return nil, err
	}
	if list, ok := action.(clienttesting.ListActionImpl); ok {
		selectPods(obj, list.ListOptions.FieldSelector)
	}
	return obj, nil
}

func (s *apiServer) watch(action clienttesting.Action) (watch.Interface, error) {
	var opts metav1.ListOptions
	if a, ok := action.(clienttesting.WatchActionImpl); ok {
		opts = a.ListOptions
	}
	return s.tracker(action.GetResource()).Watch(action.GetResource(), action.GetNamespace(), opts)
}

// selectPods keeps the pods that a field selector by node name selects.
func selectPods(obj runtime.Object, selector string) {
	node, byNode := strings.CutPrefix(selector, "spec.nodeName=")
	pods, ok := obj.(*corev1.PodList)
	if !ok || !byNode {
		return
	}
	var kept []corev1.Pod
	for i := range pods.Items {
		if pods.Items[i].Spec.NodeName == node {
			kept = append(kept, pods.Items[i])
		}
	}
	pods.Items = kept
}

// versionedTracker numbers what it stores, and refuses a write that was made from
// an older version or is about another object of the same name.
type versionedTracker struct {
	clienttesting.ObjectTracker
	mu sync.Mutex
	// version is the newest version by resource: counted as the tracker below
	// counts, so that a watch may begin at any of them.
	version map[schema.GroupVersionResource]int64
	uids    int
}

func newVersionedTracker(t clienttesting.ObjectTracker) *versionedTracker {
	return &versionedTracker{ObjectTracker: t, version: map[schema.GroupVersionResource]int64{}}
}

func (t *versionedTracker) next(gvr schema.GroupVersionResource) int64 {
	if t.version[gvr] == 0 {
		return 2
	}
	return t.version[gvr] + 1
}

// newest is the version of the last change of a kind of object.
func (t *versionedTracker) newest(gvr schema.GroupVersionResource) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.version[gvr]
}

// Create stores a new object.
func (t *versionedTracker) Create(gvr schema.GroupVersionResource, obj runtime.Object, ns string, opts ...metav1.CreateOptions) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	obj = obj.DeepCopyObject()
	m, err := meta.Accessor(obj)
	if err != nil {
		return err
	}
	version := t.next(gvr)
	m.SetResourceVersion(fmt.Sprint(version))
	m.SetCreationTimestamp(metav1.Now().Rfc3339Copy())
	if m.GetUID() == "" {
		t.uids++
		m.SetUID(types.UID(fmt.Sprintf("uid-of-%s-%d", m.GetName(), t.uids)))
	}
	if err := t.ObjectTracker.Create(gvr, obj, ns, opts...); err != nil {
		return err
	}
	t.version[gvr] = version
	return nil
}

// Update replaces an object.
func (t *versionedTracker) Update(gvr schema.GroupVersionResource, obj runtime.Object, ns string, opts ...metav1.UpdateOptions) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.replace(gvr, obj, ns, func(o runtime.Object) error { return t.ObjectTracker.Update(gvr, o, ns, opts...) })
}

// Patch replaces an object by what a patch has made of it.
func (t *versionedTracker) Patch(gvr schema.GroupVersionResource, obj runtime.Object, ns string, opts ...metav1.PatchOptions) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.replace(gvr, obj, ns, func(o runtime.Object) error { return t.ObjectTracker.Patch(gvr, o, ns, opts...) })
}

func (t *versionedTracker) replace(gvr schema.GroupVersionResource, obj runtime.Object, ns string, write func(runtime.Object) error) error {
	obj = obj.DeepCopyObject()
	m, err := meta.Accessor(obj)
	if err != nil {
		return err
	}
	old, err := t.ObjectTracker.Get(gvr, ns, m.GetName())
	if err != nil {
		return err
	}
	before, err := meta.Accessor(old)
	if err != nil {
		return err
	}
	if v := m.GetResourceVersion(); v != "" && v != before.GetResourceVersion() {
		return apierrors.NewConflict(gvr.GroupResource(), m.GetName(), fmt.Errorf("version %s was read, %s is stored", v, before.GetResourceVersion()))
	}
	if uid := m.GetUID(); uid != "" && uid != before.GetUID() {
		return apierrors.NewConflict(gvr.GroupResource(), m.GetName(), fmt.Errorf("UID %s was read, %s is stored", uid, before.GetUID()))
	}
	version := t.next(gvr)
	m.SetUID(before.GetUID())
	m.SetResourceVersion(fmt.Sprint(version))
	if err := write(obj); err != nil {
		return err
	}
	t.version[gvr] = version
	return nil
}

// mergeStatus gives the object as an update leaves it: one of the status changes
// nothing else, and one of the rest does not change the status.
func (t *versionedTracker) mergeStatus(gvr schema.GroupVersionResource, u *unstructured.Unstructured, subresource string) (*unstructured.Unstructured, error) {
	old, err := t.Get(gvr, "", u.GetName())
	if err != nil {
		return nil, err
	}
	stored, ok := old.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("stored is a %T", old)
	}
	merged, statusOf := u.DeepCopy(), stored
	if subresource == "status" {
		merged, statusOf = stored.DeepCopy(), u
		merged.SetResourceVersion(u.GetResourceVersion())
		merged.SetUID(u.GetUID())
	}
	delete(merged.Object, "status")
	if v, there := statusOf.Object["status"]; there {
		merged.Object["status"] = runtime.DeepCopyJSONValue(v)
	}
	return merged, nil
}
