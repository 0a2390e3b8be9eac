package e2e

import (
	"slices"
	"testing"
	"time"

	"github.com/nodefence/nodefence/test/story"
)

// BenchmarkIdle measures the controller beside 100 healthy nodes with 20 pods each.
func BenchmarkIdle(b *testing.B) {
	const nodes, pods, watched = 100, 20, 30 * time.Second
	ctx, w := quietWorld(b, map[string]story.Kind{"node-1": story.Redfish}, story.Defaults())
	if err := w.AddFleet(ctx, nodes, pods); err != nil {
		b.Fatal(err)
	}
	if err := w.StartNodefence(ctx); err != nil {
		b.Fatal(err)
	}
	time.Sleep(15 * time.Second) // caches fill, the leader is elected
	before, err := w.Footprint()
	if err != nil {
		b.Fatal(err)
	}
	time.Sleep(watched)
	after, err := w.Footprint()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(after.Resident)/1e6, "MB-resident")
	b.ReportMetric(float64(after.Anonymous)/1e6, "MB-anonymous")
	b.ReportMetric(float64(after.Peak)/1e6, "MB-peak")
	b.ReportMetric(100*(after.CPU-before.CPU).Seconds()/watched.Seconds(), "%core")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkTaint measures, on the real control plane, the time from "proof
// complete and node not Ready" to the taint as seen by another client, and from
// the power loss to the pod running elsewhere.
func BenchmarkTaint(b *testing.B) {
	const losses = 3
	ctx, w := world(b, map[string]story.Kind{"node-1": story.Redfish, "node-2": story.IPMI, "node-3": story.Redfish})
	for i := range losses {
		node := []string{"node-1", "node-2"}[i%2]
		if err := story.PowerLoss(ctx, w, w.Nodes[node], []string{"a", "b", "c"}[i]); err != nil {
			b.Fatal(err)
		}
	}
	if len(w.TaintLatencies) != losses {
		b.Fatalf("%d of %d latencies", len(w.TaintLatencies), losses)
	}
	slices.Sort(w.TaintLatencies)
	b.ReportMetric(float64(w.TaintLatencies[0].Milliseconds()), "ms-min")
	b.ReportMetric(float64(w.TaintLatencies[losses/2].Milliseconds()), "ms-median")
	b.ReportMetric(float64(w.TaintLatencies[losses-1].Milliseconds()), "ms-max")
	b.ReportMetric(0, "ns/op")
}
