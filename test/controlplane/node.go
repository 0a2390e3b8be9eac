package controlplane

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// NodeOptions say what a node's operating system knows of its machine.
type NodeOptions struct {
	Name       string
	SystemUUID string
	BootID     string
	ProviderID string
	// Labels are set by the kubelet when it registers: k=v,k=v.
	Labels string
	// LeaseDuration is the node's lease duration, of which the kubelet renews every
	// quarter; zero for the kubelet's default of 40 s.
	LeaseDuration time.Duration
}

// NodeAgent is the running operating system of a machine: a kubelet process.
type NodeAgent struct {
	cluster *Cluster
	process *Process
	name    string
}

// StartNode boots a node. The node of a name runs once at a time.
func (c *Cluster) StartNode(_ context.Context, o NodeOptions) (*NodeAgent, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return nil, fmt.Errorf("node %s: the cluster is stopped", o.Name)
	}
	if n := c.nodes[o.Name]; n != nil && !n.process.Exited() {
		return nil, fmt.Errorf("node %s runs already", o.Name)
	}
	// Short: the kubelet's sockets lie below it. What the last boot left there is
	// the machine's disk.
	root := filepath.Join(c.Dir, "n", o.Name)
	if err := os.MkdirAll(root, 0o755); err != nil {
		return nil, err
	}
	lease := int(max(o.LeaseDuration, 0) / time.Second)
	p, err := StartProcess(c.Dir, "node-"+o.Name, []string{"TMPDIR=" + root}, c.options.Binaries.HollowNode,
		"--name", o.Name, "--kubeconfig", c.kubeconfig, "--root", root, "--system-uuid", o.SystemUUID, "--boot-id", o.BootID,
		"--provider-id", o.ProviderID, "--labels", o.Labels, "--lease-seconds", fmt.Sprint(lease))
	if err != nil {
		return nil, err
	}
	n := &NodeAgent{cluster: c, process: p, name: o.Name}
	c.nodes[o.Name] = n
	return n, nil
}

func (c *Cluster) agents() []*NodeAgent {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []*NodeAgent
	for _, n := range c.nodes {
		all = append(all, n)
	}
	return all
}

// Kill takes the power away.
func (n *NodeAgent) Kill() { n.process.Kill() }

// Freeze hangs the operating system: it keeps its memory and does nothing.
func (n *NodeAgent) Freeze() error { return n.process.Signal(syscall.SIGSTOP) }

// Thaw lets a frozen operating system go on.
func (n *NodeAgent) Thaw() error { return n.process.Signal(syscall.SIGCONT) }

// Exited tells whether it has ended.
func (n *NodeAgent) Exited() bool { return n.process.Exited() }
