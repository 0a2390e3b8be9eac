package story

import (
	"context"
	"errors"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/nodefence/nodefence/test/controlplane"
)

// watcher sees what Kubernetes does, for the timeline and for the ground truth.
type watcher struct {
	w      *World
	mu     sync.Mutex
	taints []taintSeen
	silent map[string]time.Time // when each node was last seen to become not Ready
}

// taintSeen is the appearance of the out-of-service taint on a node.
type taintSeen struct {
	node string
	at   time.Time
	// off tells whether the node's machine was off at that moment.
	off bool
}

func (w *World) startWatching(ctx context.Context) (*watcher, error) {
	s := &watcher{w: w, silent: map[string]time.Time{}}
	f := informers.NewSharedInformerFactory(w.Cluster.Admin, 0)
	for _, err := range []error{
		handle(f.Core().V1().Nodes().Informer(), s.node),
		handle(f.Core().V1().Pods().Informer(), s.pod),
		handle(f.Storage().V1().VolumeAttachments().Informer(), s.attachment),
	} {
		if err != nil {
			return nil, err
		}
	}
	f.Start(ctx.Done())
	for kind, ok := range f.WaitForCacheSync(ctx.Done()) {
		if !ok {
			return nil, errors.New("watch " + kind.String())
		}
	}
	w.followers.Go(func() { <-ctx.Done(); f.Shutdown() })
	w.followers.Go(func() { w.followLog(ctx) })
	return s, nil
}

func handle[T any](i cache.SharedIndexInformer, f func(before, after *T)) error {
	_, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) { f(nil, o.(*T)) },
		UpdateFunc: func(a, b any) {
			f(a.(*T), b.(*T))
		},
		DeleteFunc: func(o any) {
			if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = gone.Obj
			}
			f(o.(*T), nil)
		},
	})
	return err
}

func (s *watcher) node(before, after *corev1.Node) {
	if before == nil || after == nil {
		return
	}
	t := s.w.Timeline
	if a, b := controlplane.Ready(before), controlplane.Ready(after); a != b {
		t.Add("kubernetes", "node %s: Ready is %s (boot ID %.8s)", after.Name, b, after.Status.NodeInfo.BootID)
		if b != corev1.ConditionTrue {
			s.mu.Lock()
			s.silent[after.Name] = time.Now()
			s.mu.Unlock()
		}
	}
	switch a, b := outOfService(before), outOfService(after); {
	case !a && b:
		t.Add("kubernetes", "node %s: tainted out-of-service", after.Name)
		seen := taintSeen{node: after.Name, at: time.Now()}
		s.w.mu.Lock()
		n := s.w.Nodes[after.Name]
		s.w.mu.Unlock()
		if n != nil {
			seen.off = n.Machine.History().OffAt(seen.at) || s.w.lies(n)
		}
		s.mu.Lock()
		s.taints = append(s.taints, seen)
		s.mu.Unlock()
	case a && !b:
		t.Add("kubernetes", "node %s: taint removed", after.Name)
	}
}

func (w *World) lies(n *Node) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.liars[n.Name]
}

func outOfService(n *corev1.Node) bool {
	for i := range n.Spec.Taints {
		if n.Spec.Taints[i].Key == corev1.TaintNodeOutOfService {
			return true
		}
	}
	return false
}

func (s *watcher) pod(before, after *corev1.Pod) {
	t := s.w.Timeline
	switch {
	case after == nil:
		t.Add("kubernetes", "pod %s is gone from %s", before.Name, before.Spec.NodeName)
	case before != nil && before.DeletionTimestamp == nil && after.DeletionTimestamp != nil:
		t.Add("kubernetes", "pod %s on %s is being deleted", after.Name, after.Spec.NodeName)
	case before != nil && before.Status.Phase != after.Status.Phase && after.Status.Phase == corev1.PodRunning:
		t.Add("kubernetes", "pod %s runs on %s", after.Name, after.Spec.NodeName)
	}
}

func (s *watcher) attachment(before, after *storagev1.VolumeAttachment) {
	t := s.w.Timeline
	switch {
	case after == nil:
		t.Add("kubernetes", "disk %s is detached from %s", disk(before), before.Spec.NodeName)
	case after.Status.Attached && (before == nil || !before.Status.Attached):
		t.Add("kubernetes", "disk %s is attached to %s", disk(after), after.Spec.NodeName)
	}
}

func disk(va *storagev1.VolumeAttachment) string {
	if va.Spec.Source.PersistentVolumeName != nil {
		return *va.Spec.Source.PersistentVolumeName
	}
	return va.Name
}

// tainted gives the appearances of the taint on a node since a moment.
func (s *watcher) tainted(node string, since time.Time) []taintSeen {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []taintSeen
	for _, t := range s.taints {
		if t.node == node && !t.at.Before(since) {
			out = append(out, t)
		}
	}
	return out
}

// notReady gives when a node was last seen to become not Ready, if that was after
// a moment.
func (s *watcher) notReady(node string, since time.Time) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := s.silent[node]; at.After(since) {
		return at
	}
	return time.Time{}
}

// GroundTruth holds everything that has happened against the machine room: no
// taint ever on a machine that was not off.
func (w *World) GroundTruth() error {
	w.watch.mu.Lock()
	defer w.watch.mu.Unlock()
	for _, t := range w.watch.taints {
		if !t.off {
			return wrong("node %s was tainted at %s while its machine was not off:\n%s", t.node, t.at.Format("15:04:05.000"), w.Nodes[t.node].Machine.History())
		}
	}
	return nil
}
