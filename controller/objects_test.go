package controller_test

import (
	"encoding/json"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"github.com/nodefence/nodefence/config/v1alpha1"
	"github.com/nodefence/nodefence/controller"
	"github.com/nodefence/nodefence/fencing"
	"github.com/nodefence/nodefence/providers"
)

// The resources of the world.
var (
	nodesResource       = corev1.SchemeGroupVersion.WithResource("nodes")
	podsResource        = corev1.SchemeGroupVersion.WithResource("pods")
	secretsResource     = corev1.SchemeGroupVersion.WithResource("secrets")
	leasesResource      = coordinationv1.SchemeGroupVersion.WithResource("leases")
	attachmentsResource = storagev1.SchemeGroupVersion.WithResource("volumeattachments")
)

func (w *world) create(r schema.GroupVersionResource, ns string, o runtime.Object) {
	w.t.Helper()
	if err := w.api.tracker(r).Create(r, o, ns); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) update(r schema.GroupVersionResource, ns string, o runtime.Object) {
	w.t.Helper()
	if err := w.api.tracker(r).Update(r, o, ns); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) remove(r schema.GroupVersionResource, ns, name string) {
	w.t.Helper()
	if err := w.api.tracker(r).Delete(r, ns, name); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) createSecret() {
	w.create(secretsResource, electionNamespace, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "bmc", Namespace: electionNamespace},
		Data:       map[string][]byte{"username": []byte("operator"), "password": []byte(password)},
	})
}

// addNode adds a Ready node of the group with a machine that is on, a pod, a pod
// that tolerates every taint, and a volume.
func (w *world) addNode(name string) {
	w.nodes = append(w.nodes, name)
	w.machines[addressOf(name)] = &machine{power: fencing.On, uuid: uuidOf(name), latency: 50 * time.Millisecond}
	w.kubelets[name] = &kubelet{running: true, boots: 1, renewed: time.Now()}
	w.register(name)
	w.place(name)
	w.create(podsResource, "kube-system", &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "agent-" + name, Namespace: "kube-system"},
		Spec:       corev1.PodSpec{NodeName: name, Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}}},
	})
}

// register makes the Node and its Lease, as a kubelet does that has none.
func (w *world) register(name string) {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{poolLabel: "workers"}, Annotations: map[string]string{bmcKey: addressOf(name)}},
		Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: foreignTaint, Value: "database", Effect: corev1.TaintEffectNoSchedule}}},
	}
	n.Status.NodeInfo.BootID, n.Status.NodeInfo.SystemUUID = bootID(name, w.kubelets[name].boots), uuidOf(name)
	setReady(n, corev1.ConditionTrue)
	w.create(nodesResource, "", n)
	w.create(leasesResource, corev1.NamespaceNodeLease, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: corev1.NamespaceNodeLease},
		Spec:       coordinationv1.LeaseSpec{RenewTime: &metav1.MicroTime{Time: time.Now()}},
	})
}

// place puts a pod with a volume on the node.
func (w *world) place(name string) {
	w.create(podsResource, "default", &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "db-" + name, Namespace: "default"}, Spec: corev1.PodSpec{NodeName: name}})
	volume := "pv-" + name
	w.create(attachmentsResource, "", &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: "attachment-" + name},
		Spec:       storagev1.VolumeAttachmentSpec{NodeName: name, Attacher: "csi.example.com", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume}},
	})
}

func bootID(node string, boot int) string { return fmt.Sprintf("boot-%d-of-%s", boot, node) }

// node gives the Node as stored, or nil.
func (w *world) node(name string) *corev1.Node {
	o, err := w.api.typed.Get(nodesResource, "", name)
	if err != nil {
		return nil
	}
	n, ok := o.(*corev1.Node)
	if !ok {
		w.t.Fatalf("stored is a %T", o)
	}
	return n
}

func (w *world) changeNode(name string, change func(*corev1.Node)) {
	n := w.node(name)
	change(n)
	w.update(nodesResource, "", n)
}

// replaceNode deletes a Node and makes another of the same name, which has the
// same resource version: only its UID tells them apart.
func (w *world) replaceNode(name string) {
	n := w.node(name)
	w.remove(nodesResource, "", name)
	w.api.typed.mu.Lock()
	defer w.api.typed.mu.Unlock()
	n.UID = "uid-of-another-" + n.UID
	if err := w.api.typed.ObjectTracker.Create(nodesResource, n, ""); err != nil {
		w.t.Fatal(err)
	}
	w.api.typed.version[nodesResource] = w.api.typed.next(nodesResource)
}

func (w *world) renewLease(name string, at time.Time) {
	o, err := w.api.typed.Get(leasesResource, corev1.NamespaceNodeLease, name)
	if err != nil {
		w.t.Fatal(err)
	}
	l, ok := o.(*coordinationv1.Lease)
	if !ok {
		w.t.Fatalf("stored is a %T", o)
	}
	l.Spec.RenewTime = &metav1.MicroTime{Time: at}
	w.update(leasesResource, corev1.NamespaceNodeLease, l)
}

// report is what a kubelet says of its node.
func (w *world) report(name string, boot int) {
	n := w.node(name)
	if ready(n) == corev1.ConditionTrue && n.Status.NodeInfo.BootID == bootID(name, boot) {
		return
	}
	w.changeNode(name, func(n *corev1.Node) {
		setReady(n, corev1.ConditionTrue)
		n.Status.NodeInfo.BootID = bootID(name, boot)
	})
}

func (w *world) pods(node string) []corev1.Pod {
	o, err := w.api.typed.List(podsResource, corev1.SchemeGroupVersion.WithKind("Pod"), "")
	if err != nil {
		w.t.Fatal(err)
	}
	selectPods(o, "spec.nodeName="+node)
	list, ok := o.(*corev1.PodList)
	if !ok {
		w.t.Fatalf("listed is a %T", o)
	}
	return list.Items
}

// leftOn counts what has to leave a tainted node.
func (w *world) leftOn(node string) int {
	left := len(w.attachments(node))
	for _, pod := range w.pods(node) {
		if len(pod.Spec.Tolerations) == 0 {
			left++
		}
	}
	return left
}

func (w *world) deletePods(node string) {
	for _, pod := range w.pods(node) {
		if len(pod.Spec.Tolerations) == 0 {
			w.remove(podsResource, pod.Namespace, pod.Name)
		}
	}
}

func (w *world) attachments(node string) []string {
	o, err := w.api.typed.List(attachmentsResource, storagev1.SchemeGroupVersion.WithKind("VolumeAttachment"), "")
	if err != nil {
		w.t.Fatal(err)
	}
	list, ok := o.(*storagev1.VolumeAttachmentList)
	if !ok {
		w.t.Fatalf("listed is a %T", o)
	}
	var names []string
	for i := range list.Items {
		if attachmentOn(&list.Items[i], node) {
			names = append(names, list.Items[i].Name)
		}
	}
	return names
}

func (w *world) deleteAttachments(node string) {
	for _, name := range w.attachments(node) {
		w.remove(attachmentsResource, "", name)
	}
}

// rawCases lists the cases as stored.
func (w *world) rawCases() []unstructured.Unstructured {
	o, err := w.api.cases.List(v1alpha1.FencingCases, v1alpha1.GroupVersion.WithKind("FencingCase"), "")
	if err != nil {
		w.t.Fatal(err)
	}
	list, ok := o.(*unstructured.UnstructuredList)
	if !ok {
		w.t.Fatalf("listed is a %T", o)
	}
	return list.Items
}

// cases lists the cases.
func (w *world) cases() []*v1alpha1.FencingCase { return w.casesOf("") }

// casesOf lists the cases of a node, or of all.
func (w *world) casesOf(node string) []*v1alpha1.FencingCase {
	var all []*v1alpha1.FencingCase
	for _, u := range w.rawCases() {
		if of, _, _ := unstructured.NestedString(u.Object, "spec", "nodeName"); node != "" && of != node {
			continue
		}
		fc := &v1alpha1.FencingCase{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, fc); err != nil {
			w.t.Fatal(err)
		}
		all = append(all, fc)
	}
	return all
}

// editCase changes a stored case as a person does who has the rights.
func (w *world) editCase(name string, edit func(map[string]any)) {
	o, err := w.api.cases.Get(v1alpha1.FencingCases, "", name)
	if err != nil {
		w.t.Fatal(err)
	}
	u, ok := o.(*unstructured.Unstructured)
	if !ok {
		w.t.Fatalf("stored is a %T", o)
	}
	edit(u.Object)
	w.update(v1alpha1.FencingCases, "", u)
}

// checkCall holds a change of a Node, just before it is carried out, against the
// stored case (S9) and against the machine itself.
func (w *world) checkCall(c call) {
	patch, ok := c.action.(clienttesting.PatchActionImpl)
	if !ok || c.resource != "nodes" {
		return
	}
	var ops []struct {
		Op, Path string
	}
	if err := json.Unmarshal(patch.Patch, &ops); err != nil {
		w.violate("the patch of %s is no JSON patch: %v", c.name, err)
		return
	}
	for _, op := range ops {
		if op.Op == "remove" && op.Path == "/metadata/annotations/nodefence.io~1out-of-service-case" {
			w.checkUntaint(c.name)
			return
		}
	}
	w.checkTaint(c.name)
}

func (w *world) checkTaint(node string) {
	w.mu.Lock()
	w.taints++
	w.mu.Unlock()
	fc := w.newestCase(node)
	if fc == nil || fc.Status.State != "Tainting" || fc.Status.Taint == nil || fc.Status.Taint.IntendedAt == nil {
		w.violate("S9: a taint of %s is sent, and no stored case intends it: %s", node, w.describe())
	}
	// A machine that was switched on anew this very moment is no harm: what ran
	// when the node was last heard of does not run any more.
	p, n := w.machine(node).state(), w.node(node)
	if p != fencing.Off && (n == nil || n.Status.NodeInfo.BootID == bootID(node, w.kubelets[node].boots)) {
		w.violate("S1: a taint of %s is sent while its machine is %s and runs %s", node, p, bootID(node, w.kubelets[node].boots))
	}
}

func (w *world) checkUntaint(node string) {
	w.mu.Lock()
	w.untaints++
	w.mu.Unlock()
	fc := w.newestCase(node)
	if fc == nil || fc.Status.State != "Untainting" && fc.Status.State != "Distrusted" || fc.Status.Taint == nil || fc.Status.Taint.UntaintIntendedAt == nil {
		w.violate("S9: the removal of the taint of %s is sent, and no stored case intends it: %s", node, w.describe())
		return
	}
	if fc.Status.State == "Distrusted" {
		return // S11: withdrawn, whatever is left
	}
	overdue := false
	for _, e := range fc.Status.Timeline {
		if e.Reason == "UntaintOverdue" || e.Reason == "UntaintIntended" {
			overdue = e.Reason == "UntaintOverdue"
		}
	}
	if left := w.leftOn(node); left > 0 && !overdue {
		w.violate("S10: the removal of the taint of %s is sent, and %d pods and volumes are left", node, left)
	}
}

// checkPowerOff holds a power-off against the stored case.
func (w *world) checkPowerOff(pm providers.Machine) {
	fc := w.newestCase(pm.Node)
	done := 0 // for this case
	for _, at := range w.machine(pm.Node).poweredOffAt() {
		if fc != nil && fc.Status.OpenedAt != nil && at.After(fc.Status.OpenedAt.Time) {
			done++
		}
	}
	if fc == nil || fc.Status.State != "PoweringOff" || fc.Status.PowerOff == nil || int(fc.Status.PowerOff.Attempts) <= done || fc.Status.PowerOff.EndedAt != nil {
		w.violate("S9: power-off number %d of %s is sent, and no stored case intends it: %s", done+1, pm.Node, w.describe())
	}
}

func (w *world) violate(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.violations = append(w.violations, time.Now().Format("15:04:05 ")+fmt.Sprintf(format, args...))
}

// clean tells whether nothing of ours is on the node, and everything of others.
func (w *world) clean(node string) error {
	n := w.node(node)
	switch {
	case n == nil:
		return fmt.Errorf("node %s is gone", node)
	case hasTaint(n, controller.OutOfServiceTaint):
		return fmt.Errorf("node %s carries the taint: %v", node, n.Spec.Taints)
	case !hasTaint(n, foreignTaint):
		return fmt.Errorf("node %s has lost the taint of others: %v", node, n.Spec.Taints)
	case n.Annotations[bmcKey] == "":
		return fmt.Errorf("node %s has lost the annotation of others: %v", node, n.Annotations)
	case n.Annotations[controller.CaseAnnotation]+n.Annotations[controller.BootIDAnnotation]+n.Annotations[controller.SinceAnnotation] != "":
		return fmt.Errorf("node %s carries our annotations still: %v", node, n.Annotations)
	}
	return nil
}
