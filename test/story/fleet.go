package story

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// fleetLabel marks the nodes of a fleet: nodes that exist on paper, whose Leases
// are renewed like those of kubelets.
const fleetLabel = "lab.nodefence.io/fleet"

// AddFleet creates healthy nodes without machines, each with some pods, and
// renews their Leases until the world closes. Nodefence manages them.
func (w *World) AddFleet(ctx context.Context, nodes, podsEach int) error {
	for i := range nodes {
		name := fmt.Sprintf("fleet-%03d", i)
		if err := w.addFleetNode(ctx, name); err != nil {
			return fmt.Errorf("node %s: %w", name, err)
		}
		for p := range podsEach {
			if err := w.addFleetPod(ctx, name, p); err != nil {
				return fmt.Errorf("pod %d on node %s: %w", p, name, err)
			}
		}
		w.fleet = append(w.fleet, name)
		w.followers.Go(func() { w.renew(name) })
	}
	return nil
}

func (w *World) addFleetNode(ctx context.Context, name string) error {
	nodes := w.Cluster.Admin.CoreV1().Nodes()
	if _, err := w.Cluster.Admin.CoordinationV1().Leases(corev1.NamespaceNodeLease).Create(ctx, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: &name, LeaseDurationSeconds: ptr.To(int32(40)), RenewTime: ptr.To(metav1.NowMicro()),
		},
	}, metav1.CreateOptions{}); err != nil {
		return err
	}
	if _, err := nodes.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{fleetLabel: "true", corev1.LabelHostname: name}}}, metav1.CreateOptions{}); err != nil {
		return err
	}
	status := corev1.NodeStatus{
		NodeInfo:   corev1.NodeSystemInfo{SystemUUID: fmt.Sprintf("5f1ee700-0000-4000-8000-%012x", len(w.fleet)), BootID: "boot-of-" + name},
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now()}},
	}
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return err
	}
	_, err = nodes.Patch(ctx, name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

func (w *World) addFleetPod(ctx context.Context, node string, i int) error {
	_, err := w.Cluster.Admin.CoreV1().Pods("default").Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: node + "-" + strconv.Itoa(i)},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "app", Image: "registry.invalid/app"}}},
	}, metav1.CreateOptions{})
	return err
}

// renew renews a Lease every 10 s, as a kubelet does.
func (w *World) renew(node string) {
	leases := w.Cluster.Admin.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	tick := time.NewTicker(10 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-w.background.Done():
			return
		case <-tick.C:
		}
		patch := fmt.Appendf(nil, `{"spec":{"renewTime":%q}}`, metav1.NowMicro().UTC().Format(metav1.RFC3339Micro))
		// A renewal that is lost is followed by the next one, as a kubelet's.
		_, _ = leases.Patch(w.background, node, types.MergePatchType, patch, metav1.PatchOptions{})
	}
}

// Footprint is what the controller uses.
type Footprint struct {
	// Resident and Peak are in bytes. Anonymous is the part of Resident that is
	// not the program file, which is shared and can be dropped at any time.
	Resident, Anonymous, Peak int64
	// CPU is the processor time used so far.
	CPU time.Duration
}

// Footprint reads what the running controller uses (proc(5)).
func (w *World) Footprint() (Footprint, error) {
	var f Footprint
	if w.nodefence.Exited() {
		return f, w.nodefence.Failure()
	}
	dir := fmt.Sprintf("/proc/%d/", w.nodefence.Pid())
	status, err := os.ReadFile(dir + "status")
	if err != nil {
		return f, err
	}
	for _, line := range bytes.Split(status, []byte("\n")) {
		_, _ = fmt.Sscanf(string(line), "VmRSS: %d kB", &f.Resident)
		_, _ = fmt.Sscanf(string(line), "RssAnon: %d kB", &f.Anonymous)
		_, _ = fmt.Sscanf(string(line), "VmHWM: %d kB", &f.Peak)
	}
	f.Resident, f.Anonymous, f.Peak = f.Resident<<10, f.Anonymous<<10, f.Peak<<10
	stat, err := os.ReadFile(dir + "stat")
	if err != nil {
		return f, err
	}
	// The name in parentheses may hold blanks; user and system time are the 12th
	// and 13th fields after it, in hundredths of a second.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 13 || f.Resident == 0 {
		return f, fmt.Errorf("%sstat has %d fields after the name", dir, len(fields))
	}
	for _, field := range fields[11:13] {
		ticks, err := strconv.Atoi(string(field))
		if err != nil {
			return f, err
		}
		f.CPU += time.Duration(ticks) * 10 * time.Millisecond
	}
	return f, nil
}
