package e2e

import (
	"testing"

	"github.com/nodefence/nodefence/test/story"
)

func TestTmp(t *testing.T) {
	ctx, w := world(t, map[string]story.Kind{"node-1": story.IPMI, "node-2": story.IPMI, "node-3": story.IPMI})
	must(t, story.PowerLoss(ctx, w, w.Nodes["node-1"], "db"))
}
