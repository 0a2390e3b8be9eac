package story

import (
	"context"
	"fmt"
)

// Told is a story with its parts given.
type Told struct {
	Name string
	Tell func(context.Context, *World) error
}

// All are the stories of the demonstration, in the order that they are told in:
// each leaves the world as the next one needs it.
func All() []Told {
	on := func(node string, tell func(context.Context, *World, *Node) error) func(context.Context, *World) error {
		return func(ctx context.Context, w *World) error { return tell(ctx, w, w.Nodes[node]) }
	}
	with := func(app string, tell func(context.Context, *World, *Node, string) error) func(context.Context, *World, *Node) error {
		return func(ctx context.Context, w *World, n *Node) error { return tell(ctx, w, n, app) }
	}
	return []Told{
		{"Check", Check},
		{"PowerLoss/ipmi", on("node-1", with("db", PowerLoss))},
		{"Reset/redfish", on("node-2", Reset)},
		{"PowerCycle/ipmi", on("node-3", PowerCycle)},
		{"Hang/redfish", on("node-4", with("queue", Hang))},
		{"Unreachable/ipmi", on("node-3", Unreachable)},
		{"WrongMachine/redfish", on("node-2", WrongMachine)},
	}
}

// Demo plays all stories in one world.
func Demo(ctx context.Context, o Options) error {
	if o.Nodes == nil {
		o.Nodes = map[string]Kind{"node-1": IPMI, "node-2": Redfish, "node-3": IPMI, "node-4": Redfish}
	}
	w, err := New(ctx, o)
	if err != nil {
		return err
	}
	defer w.Close()
	fmt.Fprintf(o.Progress, "Starting nodefence with its service account. Times: %s.\n", o.Timing)
	fmt.Fprintf(o.Progress, "To look for yourself while it runs:\n  %s --kubeconfig %s get nodes,fencingcases\n", w.Cluster.Binaries().Kubectl, w.Cluster.Kubeconfig())
	if err := w.StartNodefence(ctx); err != nil {
		return err
	}
	for _, s := range All() {
		if err := s.Tell(ctx, w); err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
	}
	if err := w.ShowCases(ctx); err != nil {
		return err
	}
	return w.GroundTruth()
}
