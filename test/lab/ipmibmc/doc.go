// Package ipmibmc is an IPMI management controller in the test's own process:
// RMCP+ over UDP on a free port of 127.0.0.1, tied to one lab machine.
//
// It is quick (a session and a reading take about a millisecond), and every
// fault in [Faults] can be switched on and off while it runs. Its protocol code
// comes from the same module as the client that nodefence uses, so the two
// could agree on a mistake: run what matters against package ipmisim too,
// which is OpenIPMI's own simulator.
//
// What must not live here: anything that knows what nodefence concludes.
package ipmibmc
