package ipmibmc

import "time"

// Faults are the ways in which a controller misleads. They may be combined; the
// zero value is a healthy controller.
type Faults struct {
	// Dead: no packet is answered. A controller without power or network, as in
	// a rack that lost its supply.
	Dead bool
	// Hang: sessions open, and no command within them is ever answered. A
	// controller whose network stack outlives its IPMI task.
	Hang bool
	// Delay before each packet of an answer: a busy controller. A session takes
	// about four packets, so it multiplies.
	Delay time.Duration
	// WrongPassword: the accounts' passwords were changed on the controller.
	WrongPassword bool
	// Garbage: answers of the right length full of noise; a broken network
	// sideband port does that.
	Garbage bool
	// Truncated: datagrams end half-way.
	Truncated bool
	// ShortReply: chassis status with one byte instead of three.
	ShortReply bool
	// EmptyReply: chassis status is "OK" without any byte. A reader that takes
	// byte 0 without looking at the length reads power off.
	EmptyReply bool
	// Booting: every chassis command fails with "Unspecified error" (0xFF), as
	// OpenBMC does while its own services start.
	Booting bool
	// Busy: every chassis command fails with "Node busy" (0xC0).
	Busy bool
	// ReadsOff: the power bit is 0 whatever the machine does. A controller that
	// has just restarted and not yet looked, or lies.
	ReadsOff bool
	// ReadsOn: the power bit is 1 whatever the machine does. A stale state.
	ReadsOn bool
	// PowerFault: the status has the power fault and control fault bits set.
	PowerFault bool
	// IgnoresControl: chassis control is answered OK and nothing happens.
	IgnoresControl bool
	// RefusesControl: chassis control fails with "not supported in present
	// state" (0xD5).
	RefusesControl bool
	// ZeroGUID: the system GUID was never programmed.
	ZeroGUID bool
	// OtherMachine: the address leads to another machine, which is off.
	OtherMachine bool
}
