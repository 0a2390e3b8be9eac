// Package lab is the machine room of the tests: machines with power, a time to
// boot, an identity and an operating system that can be killed.
//
// A [Machine] is the ground truth. What a management controller says about it
// (packages ipmibmc, ipmisim and redfishbmc beneath this one) may be late,
// wrong or missing, as in a real machine room; what the machine's [History]
// says is what happened. A test compares what nodefence concluded with it:
// "the taint was set at t, and the machine had been off without a break since
// t0".
//
// What lives here: machines, their clockwork, their history. What must not:
// anything of nodefence (no import of fencing, providers or controller; a lab
// that shared code with what it judges would share its mistakes), protocols
// (they are in the folders below), and Kubernetes (an [OS] ties a machine to a
// kubelet from outside).
//
// Time is the time package's. Inside a testing/synctest bubble the whole room
// therefore runs in virtual time, and needs no clock of its own: make the
// machine in the bubble, and Close it there.
package lab
