// Command hollow-node is a machine's operating system as far as Kubernetes can
// see: a real kubelet over a fake container runtime, with the system UUID and
// boot ID that it is given, and the node plugin of the lab's CSI driver. Killing
// the process is a power loss.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	cadvisorapi "github.com/google/cadvisor/lib/model"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	remote "k8s.io/cri-client/pkg"
	fakeremote "k8s.io/cri-client/pkg/fake"
	"k8s.io/klog/v2"
	cadvisortest "k8s.io/kubernetes/pkg/kubelet/cadvisor/testing"
	"k8s.io/kubernetes/pkg/kubelet/cm"
	"k8s.io/kubernetes/pkg/kubemark"

	"github.com/nodefence/nodefence/test/controlplane/binaries/csidriver"
)

type settings struct {
	name, kubeconfig, root, systemUUID, bootID, providerID, labels string
	leaseSeconds                                                   int
}

func main() {
	var s settings
	flag.StringVar(&s.name, "name", "", "name of the node")
	flag.StringVar(&s.kubeconfig, "kubeconfig", "", "kubeconfig file")
	flag.StringVar(&s.root, "root", "", "directory for everything that the node writes; short, for sockets lie below it")
	flag.StringVar(&s.systemUUID, "system-uuid", "", "SMBIOS UUID of the machine")
	flag.StringVar(&s.bootID, "boot-id", "", "boot ID of this boot")
	flag.StringVar(&s.providerID, "provider-id", "", "provider ID of the node")
	flag.StringVar(&s.labels, "labels", "", "labels of the node: k=v,k=v")
	flag.IntVar(&s.leaseSeconds, "lease-seconds", 0, "duration of the node's lease; it is renewed every quarter of it; 0 for the kubelet's default")
	flag.Parse()
	if err := run(context.Background(), s); err != nil {
		fmt.Fprintln(os.Stderr, "hollow-node:", err)
		os.Exit(1)
	}
}

// machine is the fake cadvisor with the identity of a machine and of a boot.
type machine struct {
	*cadvisortest.Fake
	systemUUID, bootID string
}

func (m machine) MachineInfo(logger klog.Logger) (*cadvisorapi.MachineInfo, error) {
	info, err := m.Fake.MachineInfo(logger)
	if err == nil {
		info.SystemUUID, info.BootID, info.MachineID = m.systemUUID, m.bootID, strings.ReplaceAll(m.systemUUID, "-", "")
	}
	return info, err
}

func run(ctx context.Context, s settings) error {
	tmp := filepath.Join(s.root, "tmp")
	if err := os.MkdirAll(tmp, 0o755); err != nil {
		return err
	}
	// What the kubelet's packages put into temporary directories belongs to the
	// machine too.
	if err := os.Setenv("TMPDIR", tmp); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", s.kubeconfig)
	if err != nil {
		return err
	}
	config.UserAgent, config.QPS, config.Burst = "hollow-node", 50, 100
	client, err := clientset.NewForConfig(config)
	if err != nil {
		return err
	}
	flags, kubelet := kubemark.GetHollowKubeletConfig(&kubemark.HollowKubeletOptions{
		NodeName: s.name, MaxPods: 110, NodeLabels: parseLabels(s.labels),
	})
	// The configuration comes with folders in /tmp, whatever TMPDIR says.
	if err := os.RemoveAll(flags.RootDirectory); err != nil {
		return err
	}
	flags.RootDirectory = filepath.Join(s.root, "k")
	kubelet.StaticPodPath, kubelet.PodLogsDir = filepath.Join(s.root, "static-pods"), filepath.Join(s.root, "pod-logs")
	for _, dir := range []string{flags.RootDirectory, kubelet.StaticPodPath, kubelet.PodLogsDir} {
		if err := os.MkdirAll(dir, 0o750); err != nil {
			return err
		}
	}
	kubelet.EnableServer, kubelet.ReadOnlyPort, kubelet.HealthzPort = false, 0, 0
	kubelet.Address = "127.0.0.1"
	kubelet.EnableControllerAttachDetach = true
	kubelet.ProviderID = s.providerID
	if s.leaseSeconds > 0 {
		kubelet.NodeLeaseDurationSeconds = int32(s.leaseSeconds)
	}

	heartbeat := *config
	heartbeat.Timeout, heartbeat.QPS = kubelet.NodeStatusUpdateFrequency.Duration, -1
	heartbeatClient, err := clientset.NewForConfig(&heartbeat)
	if err != nil {
		return err
	}
	if err := csidriver.ServeNode(s.name, flags.RootDirectory); err != nil {
		return fmt.Errorf("CSI node plugin: %w", err)
	}
	endpoint := "unix://" + filepath.Join(s.root, "cri.sock")
	_ = os.Remove(filepath.Join(s.root, "cri.sock")) // of the boot before
	runtime := fakeremote.NewFakeRemoteRuntime()
	if err := runtime.Start(endpoint); err != nil {
		return fmt.Errorf("container runtime: %w", err)
	}
	defer runtime.Stop()
	service, err := remote.NewRemoteRuntimeServiceBuilder().WithEndpoint(endpoint).WithConnectionTimeout(15 * time.Second).Build(ctx)
	if err != nil {
		return fmt.Errorf("container runtime: %w", err)
	}
	kubemark.NewHollowKubelet(flags, kubelet, client, heartbeatClient,
		machine{&cadvisortest.Fake{NodeName: s.name}, s.systemUUID, s.bootID},
		runtime.ImageService, service, cm.NewStubContainerManager()).Run(ctx)
	return nil
}

func parseLabels(text string) map[string]string {
	labels := map[string]string{}
	for _, pair := range strings.Split(text, ",") {
		if k, v, ok := strings.Cut(pair, "="); ok {
			labels[k] = v
		}
	}
	return labels
}
