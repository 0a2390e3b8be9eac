// Package ipmisim runs OpenIPMI's ipmi_sim (Debian package openipmi) as the
// management controller of a lab machine: IPMI by people who wrote neither
// nodefence nor the library that it uses.
//
// It listens on loopback only, lives in a temporary folder, and ends with the
// test's process, whatever ends that. This version speaks cipher suite 3 and
// refuses 17.
//
// ipmi_sim runs a script for everything that concerns the chassis. Ours passes
// the question to the test's process through one FIFO and prints what comes
// back through another: so an answer is the machine's state at that very
// moment, and a command has been carried out when it is answered.
//
// What must not live here: faults of the machine (they are package lab's), and
// other ways to speak IPMI.
package ipmisim
