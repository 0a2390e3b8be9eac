package controlplane

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
)

// DiskDriver is the lab's CSI driver.
const DiskDriver = "disk.lab.nodefence.io"

// LedgerEvent is one attach or detach as the disks saw it.
type LedgerEvent struct {
	At     time.Time `json:"at"`
	Op     string    `json:"op"`
	Volume string    `json:"volume"`
	Node   string    `json:"node"`
	Error  string    `json:"error,omitempty"`
}

func (c *Cluster) ledgerFile() string { return filepath.Join(c.Dir, "ledger.jsonl") }

// Ledger gives what the disks saw so far.
func (c *Cluster) Ledger() ([]LedgerEvent, error) {
	f, err := os.Open(c.ledgerFile())
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var events []LedgerEvent
	s := bufio.NewScanner(f)
	for s.Scan() {
		var e LedgerEvent
		if err := json.Unmarshal(s.Bytes(), &e); err != nil {
			return nil, fmt.Errorf("ledger: %w", err)
		}
		events = append(events, e)
	}
	return events, s.Err()
}

// CreateStatefulSet makes a StatefulSet of one replica with a disk of its own,
// which runs on the node prefer while it can.
func (c *Cluster) CreateStatefulSet(ctx context.Context, namespace, name, prefer string) error {
	claim := "data-" + name + "-0"
	_, err := c.Admin.CoreV1().PersistentVolumes().Create(ctx, &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "disk-" + name},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			AccessModes:                   []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			PersistentVolumeSource:        corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: DiskDriver, VolumeHandle: "disk-" + name}},
			ClaimRef:                      &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: namespace, Name: claim},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create the disk of %s: %w", name, err)
	}
	labels := map[string]string{"app": name}
	_, err = c.Admin.AppsV1().StatefulSets(namespace).Create(ctx, &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.StatefulSetSpec{
			Replicas: ptr.To[int32](1), ServiceName: name, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					Affinity:                     preferNode(prefer),
					AutomountServiceAccountToken: ptr.To(false),
					// The hollow node's volume manager takes its time; the grace period
					// of a pod is not what is shown here.
					TerminationGracePeriodSeconds: ptr.To[int64](1),
					Containers:                    []corev1.Container{{Name: "db", Image: "lab/db", VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}}},
				},
			},
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{
				ObjectMeta: metav1.ObjectMeta{Name: "data"},
				Spec: corev1.PersistentVolumeClaimSpec{
					AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: ptr.To(""),
					Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
				},
			}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create StatefulSet %s: %w", name, err)
	}
	return nil
}

func preferNode(name string) *corev1.Affinity {
	if name == "" {
		return nil
	}
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{
		Weight: 100, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{
			Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{name},
		}}},
	}}}}
}

// WaitRunning waits until the pod runs, on another node than not, with its disk
// attached there, and gives the node.
func (c *Cluster) WaitRunning(ctx context.Context, namespace, pod, not string) (node string, err error) {
	err = poll(ctx, "pod "+namespace+"/"+pod+" to run", func(ctx context.Context) error {
		p, err := c.Admin.CoreV1().Pods(namespace).Get(ctx, pod, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if p.Status.Phase != corev1.PodRunning || p.DeletionTimestamp != nil || p.Spec.NodeName == not {
			return fmt.Errorf("it is %s on node %q", p.Status.Phase, p.Spec.NodeName)
		}
		node = p.Spec.NodeName
		return nil
	})
	return node, err
}

// WaitNode waits until the node satisfies ok.
func (c *Cluster) WaitNode(ctx context.Context, name, what string, ok func(*corev1.Node) bool) error {
	return poll(ctx, "node "+name+" to be "+what, func(ctx context.Context) error {
		n, err := c.Admin.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if !ok(n) {
			return fmt.Errorf("it is not %s yet (Ready %s, boot ID %q, taints %v)", what, Ready(n), n.Status.NodeInfo.BootID, n.Spec.Taints)
		}
		return nil
	})
}

// Ready is the status of the node's Ready condition.
func Ready(n *corev1.Node) corev1.ConditionStatus {
	for i := range n.Status.Conditions {
		if n.Status.Conditions[i].Type == corev1.NodeReady {
			return n.Status.Conditions[i].Status
		}
	}
	return ""
}

// Attachments lists the VolumeAttachments of a node.
func (c *Cluster) Attachments(ctx context.Context, node string) ([]storagev1.VolumeAttachment, error) {
	all, err := c.Admin.StorageV1().VolumeAttachments().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var of []storagev1.VolumeAttachment
	for i := range all.Items {
		if all.Items[i].Spec.NodeName == node {
			of = append(of, all.Items[i])
		}
	}
	return of, nil
}

// ServiceAccountConfig gives a client configuration for a service account, with
// a token as a pod of it would have.
func (c *Cluster) ServiceAccountConfig(ctx context.Context, namespace, name string) (*rest.Config, error) {
	token, err := c.Admin.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](4 * 3600)},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("token of service account %s/%s: %w", namespace, name, err)
	}
	cfg := c.RESTConfig()
	cfg.BearerToken = token.Status.Token
	return cfg, nil
}
