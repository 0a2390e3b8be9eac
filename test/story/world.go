package story

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/dynamic"

	"github.com/nodefence/nodefence/test/controlplane"
	"github.com/nodefence/nodefence/test/lab"
)

// World is a cluster, its machine room, and nodefence.
type World struct {
	Timing   Timing
	Timeline *Timeline
	Cluster  *controlplane.Cluster
	// Nodes does not change once the world is up; until then mu guards it.
	Nodes map[string]*Node
	mu    sync.Mutex

	// liars are the nodes whose BMC lies at present: no taint of theirs can be held
	// against the ground truth.
	liars map[string]bool
	// TaintLatencies are the times from "proof complete and not Ready" to the
	// taint of the stories told so far.
	TaintLatencies []time.Duration

	binary    string
	dynamic   dynamic.Interface
	nodefence *controlplane.Process
	listen    string
	mode      string
	watch     *watcher
	// background ends with the world.
	background context.Context
	fleet      []string
	cancel     context.CancelFunc
	followers  sync.WaitGroup
}

// Node is a node of the world, from its kubelet down to its BMC.
type Node struct {
	Name    string
	Machine *lab.Machine
	BMC     BMC
	os      *kubelet
}

// Options say how a world is to be.
type Options struct {
	Timing Timing
	// Out takes the timeline.
	Out io.Writer
	// Progress takes what is said while things are built and started.
	Progress io.Writer
	// Nodes says which BMC each node's machine has.
	Nodes map[string]Kind
}

// New brings a world up, or leaves nothing behind.
func New(ctx context.Context, o Options) (*World, error) {
	binaries, err := controlplane.EnsureBinaries(ctx, o.Progress)
	if err != nil {
		return nil, err
	}
	binary, err := buildNodefence(ctx, o.Progress)
	if err != nil {
		return nil, err
	}
	fmt.Fprintln(o.Progress, "Starting etcd, kube-apiserver, kube-controller-manager, kube-scheduler and the disks ...")
	cluster, err := controlplane.Start(ctx, controlplane.Options{Binaries: binaries, NodeMonitorGracePeriod: o.Timing.GracePeriod, NodeMonitorPeriod: time.Second})
	if err != nil {
		_ = os.RemoveAll(filepath.Dir(binary))
		return nil, err
	}
	w := &World{Timing: o.Timing, Timeline: NewTimeline(o.Out), Cluster: cluster, Nodes: map[string]*Node{}, liars: map[string]bool{}, binary: binary, mode: "Confirm"}
	background, cancel := context.WithCancel(context.WithoutCancel(ctx))
	w.background, w.cancel = background, cancel
	if err := w.populate(ctx, o); err != nil {
		w.Close()
		return nil, err
	}
	return w, nil
}

func (w *World) populate(ctx context.Context, o Options) error {
	var err error
	if w.dynamic, err = dynamic.NewForConfig(w.Cluster.RESTConfig()); err != nil {
		return err
	}
	if err := w.install(ctx); err != nil {
		return err
	}
	if w.watch, err = w.startWatching(w.background); err != nil {
		return err
	}
	fmt.Fprintf(o.Progress, "Powering on %d machines ...\n", len(o.Nodes))
	for name, kind := range o.Nodes {
		n, err := w.addNode(ctx, name, kind)
		if err != nil {
			return fmt.Errorf("machine %s: %w", name, err)
		}
		w.mu.Lock()
		w.Nodes[name] = n
		w.mu.Unlock()
	}
	for _, n := range w.Nodes {
		if err := w.WaitReady(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// WaitReady waits until the node is Ready with the boot ID that its machine has.
func (w *World) WaitReady(ctx context.Context, n *Node) error {
	return w.Cluster.WaitNode(ctx, n.Name, "Ready", func(node *corev1.Node) bool {
		return controlplane.Ready(node) == corev1.ConditionTrue && node.Status.NodeInfo.BootID == n.Machine.BootID()
	})
}

// Close ends everything that the world started and removes its files.
func (w *World) Close() {
	if w.nodefence != nil {
		w.nodefence.Stop(10 * time.Second)
	}
	w.cancel()
	w.followers.Wait()
	w.Timeline.Close()
	for _, n := range w.Nodes {
		n.Machine.Close()
		_ = n.BMC.Close() // a loopback listener; nothing is left to do about an error
	}
	w.Cluster.Stop()
	_ = os.RemoveAll(filepath.Dir(w.binary))
}

// kubelet is the operating system of a lab machine: a hollow kubelet.
type kubelet struct {
	cluster *controlplane.Cluster
	lease   time.Duration
	mu      sync.Mutex
	agent   *controlplane.NodeAgent
}

// Boot starts the kubelet with the machine's identity and the boot's ID.
func (k *kubelet) Boot(ctx context.Context, info lab.BootInfo) error {
	agent, err := k.cluster.StartNode(ctx, controlplane.NodeOptions{Name: info.Machine, SystemUUID: info.UUID.String(), BootID: info.BootID, LeaseDuration: k.lease})
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.agent = agent
	return nil
}

func (k *kubelet) current() *controlplane.NodeAgent {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.agent
}

// Kill ends it at once.
func (k *kubelet) Kill() {
	if a := k.current(); a != nil {
		a.Kill()
	}
}

// Freeze stops it where it stands.
func (k *kubelet) Freeze() {
	if a := k.current(); a != nil {
		_ = a.Freeze() // it may have ended
	}
}

// Thaw lets it go on.
func (k *kubelet) Thaw() {
	if a := k.current(); a != nil {
		_ = a.Thaw() // it may have ended
	}
}

var errStory = errors.New("the story went another way")

func wrong(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errStory, fmt.Sprintf(format, args...))
}
