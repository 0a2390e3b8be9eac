package controller

import (
	"context"
	"fmt"
	"sync"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// nodeIndex is the index of pods and attachments by the node that they are on.
const nodeIndex = "node"

// buildInformers makes the informers and their handlers. Each keeps only what is
// used: the memory of a controller is that of its caches.
func (c *Controller) buildInformers() error {
	c.nodes = newInformer(c.client, c.client.CoreV1().Nodes(), &corev1.Node{}, nil)
	c.pods = newInformer(c.client, c.client.CoreV1().Pods(metav1.NamespaceAll), &corev1.Pod{}, cache.Indexers{nodeIndex: podNode})
	c.attachments = newInformer(c.client, c.client.StorageV1().VolumeAttachments(), &storagev1.VolumeAttachment{}, cache.Indexers{nodeIndex: attachmentNode})
	c.leases = newInformer(c.client, c.client.CoordinationV1().Leases(corev1.NamespaceNodeLease), &coordinationv1.Lease{}, nil)

	for _, step := range []func() error{
		func() error { return c.nodes.SetTransform(trimNode) },
		func() error { return c.pods.SetTransform(trimPod) },
		func() error { return c.attachments.SetTransform(trimAttachment) },
		func() error { return c.leases.SetTransform(trimLease) },
		func() error { return on(c.nodes, c.nodeChanged, c.nodeDeleted) },
		func() error { return on(c.leases, c.leaseChanged, c.leaseDeleted) },
		func() error { return on(c.pods, c.podChanged, c.podChanged) },
		func() error { return on(c.attachments, c.attachmentChanged, c.attachmentChanged) },
	} {
		if err := step(); err != nil {
			return fmt.Errorf("set up informers: %w", err)
		}
	}
	return nil
}

// collection is a kind of object that can be listed and watched.
type collection[L runtime.Object] interface {
	List(ctx context.Context, opts metav1.ListOptions) (L, error)
	Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error)
}

func newInformer[L runtime.Object](client API, of collection[L], example runtime.Object, indexers cache.Indexers) cache.SharedIndexInformer {
	lw := &cache.ListWatch{
		ListWithContextFunc:  func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) { return of.List(ctx, opts) },
		WatchFuncWithContext: of.Watch,
	}
	if indexers == nil {
		indexers = cache.Indexers{}
	}
	return cache.NewSharedIndexInformer(cache.ToListWatcherWithWatchListSemantics(lw, client), example, 0, indexers)
}

// startInformers runs the informers until stop is closed, and returns what waits for
// their end.
func (c *Controller) startInformers(stop <-chan struct{}) (wait func()) {
	var running sync.WaitGroup
	for _, i := range []cache.SharedIndexInformer{c.nodes, c.leases, c.pods, c.attachments} {
		running.Go(func() { i.Run(stop) })
	}
	return running.Wait
}

func on[T any](informer cache.SharedIndexInformer, changed, deleted func(T)) error {
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) {
			if t, ok := o.(T); ok {
				changed(t)
			}
		},
		UpdateFunc: func(_, o any) {
			if t, ok := o.(T); ok {
				changed(t)
			}
		},
		DeleteFunc: func(o any) {
			if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = gone.Obj
			}
			if t, ok := o.(T); ok {
				deleted(t)
			}
		},
	})
	return err
}

func byIndex[T any](indexer cache.Indexer, node string) ([]T, error) {
	objs, err := indexer.ByIndex(nodeIndex, node)
	if err != nil {
		return nil, fmt.Errorf("look up by node %s: %w", node, err)
	}
	out := make([]T, 0, len(objs))
	for _, o := range objs {
		if t, ok := o.(T); ok {
			out = append(out, t)
		}
	}
	return out, nil
}

func podNode(o any) ([]string, error) {
	if p, ok := o.(*corev1.Pod); ok && p.Spec.NodeName != "" {
		return []string{p.Spec.NodeName}, nil
	}
	return nil, nil
}

func attachmentNode(o any) ([]string, error) {
	if va, ok := o.(*storagev1.VolumeAttachment); ok {
		return []string{va.Spec.NodeName}, nil
	}
	return nil, nil
}

func trimMeta(m metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: m.Name, Namespace: m.Namespace, UID: m.UID, ResourceVersion: m.ResourceVersion, DeletionTimestamp: m.DeletionTimestamp}
}

func trimNode(o any) (any, error) {
	if n, ok := o.(*corev1.Node); ok {
		n.ManagedFields = nil
		n.Status.Images, n.Status.VolumesInUse, n.Status.VolumesAttached = nil, nil, nil
		n.Status.Capacity, n.Status.Allocatable = nil, nil
	}
	return o, nil
}

func trimPod(o any) (any, error) {
	p, ok := o.(*corev1.Pod)
	if !ok {
		return o, nil
	}
	slim := &corev1.Pod{ObjectMeta: trimMeta(p.ObjectMeta), Spec: corev1.PodSpec{NodeName: p.Spec.NodeName, Tolerations: p.Spec.Tolerations}}
	for i := range p.Spec.Volumes {
		if v := p.Spec.Volumes[i]; v.PersistentVolumeClaim != nil || v.Ephemeral != nil {
			v.Ephemeral = trimEphemeral(v.Ephemeral)
			slim.Spec.Volumes = append(slim.Spec.Volumes, v)
		}
	}
	return slim, nil
}

func trimEphemeral(e *corev1.EphemeralVolumeSource) *corev1.EphemeralVolumeSource {
	if e == nil {
		return nil
	}
	return &corev1.EphemeralVolumeSource{}
}

func trimAttachment(o any) (any, error) {
	va, ok := o.(*storagev1.VolumeAttachment)
	if !ok {
		return o, nil
	}
	return &storagev1.VolumeAttachment{ObjectMeta: trimMeta(va.ObjectMeta), Spec: va.Spec}, nil
}

func trimLease(o any) (any, error) {
	l, ok := o.(*coordinationv1.Lease)
	if !ok {
		return o, nil
	}
	return &coordinationv1.Lease{ObjectMeta: trimMeta(l.ObjectMeta), Spec: coordinationv1.LeaseSpec{RenewTime: l.Spec.RenewTime}}, nil
}

func (c *Controller) nodeChanged(n *corev1.Node) {
	c.health.set(nodeFacts(n))
	c.queue.Add(n.Name)
}

func (c *Controller) nodeDeleted(n *corev1.Node) {
	c.health.remove(n.Name)
	c.renewals.forget(n.Name)
	c.queue.Add(n.Name)
}

// leaseChanged notes the renewal. It wakes the node's decision only when a case
// is open or none was ever considered: a healthy node's next look is already
// planned, and comes to nothing when the Lease was renewed in time.
func (c *Controller) leaseChanged(l *coordinationv1.Lease) {
	if f := leaseFacts(l); f.Exists {
		c.renewals.observe(l.Name, f.RenewedAt, c.now())
	}
	if kase, _ := c.cases.get(l.Name); kase.Open() || !c.planned.has(l.Name) {
		c.queue.Add(l.Name)
	}
}

func (c *Controller) leaseDeleted(l *coordinationv1.Lease) { c.queue.Add(l.Name) }

func (c *Controller) podChanged(p *corev1.Pod) { c.wakeOpen(p.Spec.NodeName) }

func (c *Controller) attachmentChanged(va *storagev1.VolumeAttachment) { c.wakeOpen(va.Spec.NodeName) }

// wakeOpen decides anew about a node that has an open case; pods and volumes of
// other nodes change all the time and mean nothing here.
func (c *Controller) wakeOpen(node string) {
	if kase, _ := c.cases.get(node); kase.Open() {
		c.queue.Add(node)
	}
}
