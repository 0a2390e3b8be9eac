package story

import (
	"context"
	"fmt"
)

// Demo plays all stories, one after the other, in one world.
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
	fmt.Fprintf(o.Progress, "To look for yourself while it runs: %s --kubeconfig %s get nodes,fencingcases\n", w.Cluster.Binaries().Kubectl, w.Cluster.Kubeconfig())
	if err := w.StartNodefence(ctx); err != nil {
		return err
	}
	for _, tell := range []func(context.Context) error{
		func(ctx context.Context) error { return PowerLoss(ctx, w, w.Nodes["node-1"], "db") },
		func(ctx context.Context) error { return Reset(ctx, w, w.Nodes["node-2"]) },
		func(ctx context.Context) error { return PowerCycle(ctx, w, w.Nodes["node-3"]) },
		func(ctx context.Context) error { return Hang(ctx, w, w.Nodes["node-4"], "queue") },
		func(ctx context.Context) error { return Unreachable(ctx, w, w.Nodes["node-3"]) },
		func(ctx context.Context) error { return WrongMachine(ctx, w, w.Nodes["node-2"]) },
	} {
		if err := tell(ctx); err != nil {
			return err
		}
	}
	return w.GroundTruth()
}
