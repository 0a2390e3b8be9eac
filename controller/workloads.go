package controller

import (
	"context"
	"fmt"
	"sort"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/nodefence/nodefence/fencing"
)

// ourTaint is the taint that nodefence sets.
func ourTaint() corev1.Taint {
	return corev1.Taint{Key: OutOfServiceTaint, Value: OutOfServiceValue, Effect: corev1.TaintEffectNoExecute}
}

// stays tells whether a pod tolerates the taint for good. A toleration for a
// time only means that the pod is to leave later.
func stays(pod *corev1.Pod) bool {
	taint := ourTaint()
	for i := range pod.Spec.Tolerations {
		t := &pod.Spec.Tolerations[i]
		if t.TolerationSeconds == nil && t.ToleratesTaint(klog.Background(), &taint, false) {
			return true
		}
	}
	return false
}

// workloadsOf sorts a node's pods and attachments into those that must leave and
// those that stay (S10). claimOf gives the claim, as namespace/name, that a
// PersistentVolume is bound to.
func workloadsOf(pods []*corev1.Pod, attachments []*storagev1.VolumeAttachment, claimOf func(pv string) (string, error)) fencing.Workloads {
	w := fencing.Workloads{Known: true}
	kept := map[string]bool{}
	for _, pod := range pods {
		name := pod.Namespace + "/" + pod.Name
		if !stays(pod) {
			w.Leaving = append(w.Leaving, name)
			continue
		}
		w.Staying = append(w.Staying, name)
		for _, claim := range claims(pod) {
			kept[claim] = true
		}
	}
	for _, va := range attachments {
		pv := va.Spec.Source.PersistentVolumeName
		if len(kept) > 0 && pv != nil {
			if claim, err := claimOf(*pv); err == nil && kept[claim] {
				continue // a volume whose claim cannot be found counts as one that must go
			}
		}
		w.Attachments = append(w.Attachments, volumeName(va))
	}
	sort.Strings(w.Leaving)
	sort.Strings(w.Staying)
	sort.Strings(w.Attachments)
	return w
}

// volumeName is what people call an attachment: its volume, where it has a name.
func volumeName(va *storagev1.VolumeAttachment) string {
	if pv := va.Spec.Source.PersistentVolumeName; pv != nil {
		return *pv
	}
	return va.Name
}

// claims lists the claims of a pod, as namespace/name.
func claims(pod *corev1.Pod) []string {
	var names []string
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		switch {
		case v.PersistentVolumeClaim != nil:
			names = append(names, pod.Namespace+"/"+v.PersistentVolumeClaim.ClaimName)
		case v.Ephemeral != nil:
			names = append(names, pod.Namespace+"/"+pod.Name+"-"+v.Name)
		}
	}
	return names
}

// cachedWorkloads are those of the informers: good for watching, not for acting.
func (c *Controller) cachedWorkloads(ctx context.Context, node string) fencing.Workloads {
	pods, err := byIndex[*corev1.Pod](c.pods.GetIndexer(), node)
	if err != nil {
		return fencing.Workloads{}
	}
	attachments, err := byIndex[*storagev1.VolumeAttachment](c.attachments.GetIndexer(), node)
	if err != nil {
		return fencing.Workloads{}
	}
	return workloadsOf(pods, attachments, func(pv string) (string, error) { return c.claimOf(ctx, pv) })
}

// liveWorkloads are those of the API server itself.
func (c *Controller) liveWorkloads(ctx context.Context, node string) (fencing.Workloads, error) {
	list, err := c.client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
	if err != nil {
		return fencing.Workloads{}, fmt.Errorf("list the pods of node %s: %w", node, err)
	}
	pods := make([]*corev1.Pod, 0, len(list.Items))
	for i := range list.Items {
		pods = append(pods, &list.Items[i])
	}
	// The API offers no selector for attachments by node.
	all, err := c.client.StorageV1().VolumeAttachments().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fencing.Workloads{}, fmt.Errorf("list the volume attachments of node %s: %w", node, err)
	}
	var attachments []*storagev1.VolumeAttachment
	for i := range all.Items {
		if all.Items[i].Spec.NodeName == node {
			attachments = append(attachments, &all.Items[i])
		}
	}
	return workloadsOf(pods, attachments, func(pv string) (string, error) { return c.claimOf(ctx, pv) }), nil
}

// claimOf reads a PersistentVolume's claim. It is asked only for volumes of
// nodes that keep a pod with a claim, which are few.
func (c *Controller) claimOf(ctx context.Context, pv string) (string, error) {
	v, err := c.client.CoreV1().PersistentVolumes().Get(ctx, pv, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("read persistent volume %s: %w", pv, err)
	}
	if v.Spec.ClaimRef == nil {
		return "", nil
	}
	return v.Spec.ClaimRef.Namespace + "/" + v.Spec.ClaimRef.Name, nil
}
