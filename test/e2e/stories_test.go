package e2e

import (
	"context"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nodefence/nodefence/test/controlplane"
	"github.com/nodefence/nodefence/test/peers"
	"github.com/nodefence/nodefence/test/story"
)

// world brings a world up in which nodefence runs.
func world(t testing.TB, nodes map[string]story.Kind) (context.Context, *story.World) {
	t.Helper()
	ctx, w := quietWorld(t, nodes, story.Shortened())
	if err := w.StartNodefence(ctx); err != nil {
		t.Fatal(err)
	}
	return ctx, w
}

// quietWorld brings a world up without nodefence.
func quietWorld(t testing.TB, nodes map[string]story.Kind, timing story.Timing) (context.Context, *story.World) {
	t.Helper()
	if testing.Short() {
		t.Skip("needs the control plane; -short leaves it out")
	}
	// What is built for the first time takes as long as it takes.
	timeline, progress := outputs(t)
	if _, err := controlplane.EnsureBinaries(t.Context(), progress); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	t.Cleanup(cancel)
	w, err := story.New(ctx, story.Options{Timing: timing, Out: timeline, Progress: progress, Nodes: nodes})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return ctx, w
}

// outputs gives where a timeline and the progress go: into a test's own record,
// and with a benchmark, whose record is its figures, only the progress to people.
func outputs(t testing.TB) (timeline, progress io.Writer) {
	if _, ok := t.(*testing.B); ok {
		return io.Discard, os.Stderr
	}
	return writer{t}, writer{t}
}

type writer struct{ t testing.TB }

func (w writer) Write(b []byte) (int, error) {
	w.t.Log(strings.TrimRight(string(b), "\n"))
	return len(b), nil
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// The stories of the demonstration, in a world of their own, one after the other.
// The BMC of the power loss is one that we did not write.
func TestStories(t *testing.T) {
	if !testing.Short() {
		peers.Require(t, "ipmi_sim")
	}
	ctx, w := world(t, map[string]story.Kind{"node-1": story.OpenIPMI, "node-2": story.Redfish, "node-3": story.IPMI, "node-4": story.Redfish})
	for _, s := range story.All() {
		if !t.Run(s.Name, func(t *testing.T) { must(t, s.Tell(ctx, w)) }) {
			break // the world is not as the next story expects it
		}
	}
	must(t, w.ShowCases(ctx))
	must(t, w.GroundTruth())
}

// A controller that is killed in any state of a case goes on where it was. The
// state Distrusted is the story of a BMC that lies.
func TestCrashes(t *testing.T) {
	ctx, w := world(t, map[string]story.Kind{"node-1": story.Redfish, "node-2": story.IPMI, "node-3": story.IPMI})
	must(t, story.Crashes(ctx, w, w.Nodes["node-1"], "db"))
	must(t, story.Liar(ctx, w, w.Nodes["node-2"]))
}
