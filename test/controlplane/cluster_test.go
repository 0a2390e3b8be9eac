package controlplane_test

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/nodefence/nodefence/test/controlplane"
)

// start brings up a control plane that notices a silent node soon.
func start(t *testing.T) (context.Context, *controlplane.Cluster) {
	t.Helper()
	if testing.Short() {
		t.Skip("needs the control plane; -short leaves it out")
	}
	binaries, err := controlplane.EnsureBinaries(context.Background(), testWriter{t})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	t.Cleanup(cancel)
	c, err := controlplane.Start(ctx, controlplane.Options{Binaries: binaries, NodeMonitorGracePeriod: 8 * time.Second, NodeMonitorPeriod: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Stop)
	return ctx, c
}

type testWriter struct{ t *testing.T }

func (w testWriter) Write(b []byte) (int, error) {
	w.t.Log(strings.TrimRight(string(b), "\n"))
	return len(b), nil
}

func isReady(n *corev1.Node) bool { return controlplane.Ready(n) == corev1.ConditionTrue }

// The whole road that nodefence will walk, walked by hand: what the tests rely on
// is Kubernetes' own.
func TestPowerLossByHand(t *testing.T) {
	ctx, c := start(t)
	uuids := map[string]string{"n1": "4c4c4544-0035-3410-8050-c6c04f314733", "n2": "420e3f74-ea84-f9a2-8050-c6c04f314734", "n3": "11e3f740-ea84-f9a2-8050-c6c04f314735"}
	agents := map[string]*controlplane.NodeAgent{}
	boot := func(name, bootID string) {
		t.Helper()
		n, err := c.StartNode(ctx, controlplane.NodeOptions{Name: name, SystemUUID: uuids[name], BootID: bootID})
		if err != nil {
			t.Fatal(err)
		}
		agents[name] = n
	}
	for name := range uuids {
		boot(name, "boot-1-"+name)
	}
	for name, uuid := range uuids {
		must(t, c.WaitNode(ctx, name, "Ready with its identity", func(n *corev1.Node) bool {
			return isReady(n) && n.Status.NodeInfo.SystemUUID == uuid && n.Status.NodeInfo.BootID == "boot-1-"+name
		}))
	}
	must(t, c.CreateStatefulSet(ctx, "default", "db", "n1"))
	first, err := c.WaitRunning(ctx, "default", "db-0", "")
	must(t, err)
	if vas, err := c.Attachments(ctx, first); err != nil || len(vas) != 1 || !vas[0].Status.Attached {
		t.Fatalf("attachments of %s: %v, %v", first, vas, err)
	}

	agents[first].Kill()
	must(t, c.WaitNode(ctx, first, "not Ready", func(n *corev1.Node) bool { return !isReady(n) }))
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"taints": []corev1.Taint{{Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute}}}})
	must(t, err)
	_, err = c.Admin.CoreV1().Nodes().Patch(ctx, first, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	must(t, err)
	second, err := c.WaitRunning(ctx, "default", "db-0", first)
	must(t, err)
	t.Logf("moved from %s to %s", first, second)

	ledger, err := c.Ledger()
	must(t, err)
	var story []string
	for _, e := range ledger {
		// The attacher repeats what it is not sure of; a repetition changes nothing.
		if line := e.Op + " " + e.Node + " " + e.Error; len(story) == 0 || story[len(story)-1] != line {
			story = append(story, line)
		}
	}
	want := []string{"publish " + first + " ", "unpublish " + first + " ", "publish " + second + " "}
	if strings.Join(story, ",") != strings.Join(want, ",") {
		t.Errorf("the disk saw %q, want %q", story, want)
	}

	boot(first, "boot-2-"+first)
	must(t, c.WaitNode(ctx, first, "Ready with a new boot", func(n *corev1.Node) bool {
		return isReady(n) && n.Status.NodeInfo.BootID == "boot-2-"+first
	}))
	must(t, c.Check())
	c.Stop()
	if _, err := os.Stat(c.Dir); !os.IsNotExist(err) {
		t.Errorf("%s is left behind", c.Dir)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
