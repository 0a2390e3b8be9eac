// Package story plays nodefence's stories on the real control plane: machines
// with BMCs, kubelets and disks, nodefence as it would run in a cluster, and a
// timeline of what happened. The demonstration prints the timeline; the
// end-to-end tests hold it against the ground truth of the machine room.
//
// What lives here: the world and the stories, each a function. What must not:
// anything that a test could not fail on.
package story
