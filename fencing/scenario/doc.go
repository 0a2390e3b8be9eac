// Package scenario is a small world in virtual time around fencing.Decide: one
// node, its machine with the truth about its power, a BMC that may lie, a
// kubelet, the control plane's part, and the loop that joins them. A scenario is
// a text file: commands change the world or let time pass, and the transcript
// shows what nodefence made of it, so that an on-call engineer can review it.
//
// What lives here: the world, the commands, the transcript. What must not:
// judgement (that is fencing's) and anything beyond the standard library, so
// that the program can run scenarios too.
package scenario
