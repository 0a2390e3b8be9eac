package controller

import (
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// nodeIndex is the index of pods and attachments by the node that they are on.
const nodeIndex = "node"

// buildInformers makes the informers and their handlers. Each keeps only what is
// used: the memory of a controller is that of its caches.
func (c *Controller) buildInformers() error {
	cluster := informers.NewSharedInformerFactory(c.client, 0)
	leases := informers.NewSharedInformerFactoryWithOptions(c.client, 0, informers.WithNamespace(corev1.NamespaceNodeLease))
	c.nodes = cluster.Core().V1().Nodes().Informer()
	c.pods = cluster.Core().V1().Pods().Informer()
	c.attachments = cluster.Storage().V1().VolumeAttachments().Informer()
	c.leases = leases.Coordination().V1().Leases().Informer()
	c.start = func(stop <-chan struct{}) { cluster.Start(stop); leases.Start(stop) }
	c.stopInformers = func() { cluster.Shutdown(); leases.Shutdown() }

	for _, step := range []func() error{
		func() error { return c.nodes.SetTransform(trimNode) },
		func() error { return c.pods.SetTransform(trimPod) },
		func() error { return c.attachments.SetTransform(trimAttachment) },
		func() error { return c.leases.SetTransform(trimLease) },
		func() error { return c.pods.AddIndexers(cache.Indexers{nodeIndex: podNode}) },
		func() error { return c.attachments.AddIndexers(cache.Indexers{nodeIndex: attachmentNode}) },
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
