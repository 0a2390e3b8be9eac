package controller_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/nodefence/nodefence/fencing"
)

// Two nodes with one UUID, in whatever byte order: it identifies neither of them,
// and the machine that reads Off may be the other's (S3). That is seen when it comes
// up late, too, and is over when it is.
func TestSharedUUID(t *testing.T) {
	for name, uuid := range map[string]string{
		"the same":              uuidOf("node-1"),
		"in another byte order": "44454C4C-3900-1059-804A-B9C04F4C3631",
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.config = fenceConfig
				w.start()
				w.run(5 * time.Second)
				w.changeNode("node-2", func(n *corev1.Node) { n.Status.NodeInfo.SystemUUID = uuid })
				w.run(5 * time.Second)
				w.crash("node-1")
				w.run(5 * time.Minute)
				if w.tainted("node-1") || w.taints != 0 {
					t.Error("the node was tainted")
				}
				if held := w.heldFor("node-1"); held != string(fencing.ReasonIdentityUnproved) {
					t.Errorf("held for %q", held)
				}
				w.changeNode("node-2", func(n *corev1.Node) { n.Status.NodeInfo.SystemUUID = uuidOf("node-2") })
				w.await(2*time.Minute, "tainted when the UUID is its own again", func() bool { return w.tainted("node-1") })
			})
		})
	}
}
