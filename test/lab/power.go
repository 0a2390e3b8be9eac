package lab

import "fmt"

// Power is the state of a machine's main power, as it truly is.
type Power int

const (
	// Off: no instruction is executed. The only state in which a machine cannot
	// write to a disk.
	Off Power = iota
	// On: powered. The operating system may be booting, running or hung.
	On
	// PoweringOff: a shutdown was accepted and the operating system still runs.
	PoweringOff
	// Suspended: the processors stand still and memory is kept. Not off: the
	// machine goes on where it was.
	Suspended
)

func (p Power) String() string {
	switch p {
	case Off:
		return "Off"
	case On:
		return "On"
	case PoweringOff:
		return "PoweringOff"
	case Suspended:
		return "Suspended"
	}
	return fmt.Sprintf("Power(%d)", int(p))
}

// RestorePolicy says what a machine does when its mains come back.
type RestorePolicy int

const (
	// AlwaysOff stays off until somebody switches it on.
	AlwaysOff RestorePolicy = iota
	// LastState does what the machine did when the mains went.
	LastState
	// AlwaysOn starts.
	AlwaysOn
)

func (p RestorePolicy) String() string {
	switch p {
	case AlwaysOff:
		return "AlwaysOff"
	case LastState:
		return "LastState"
	case AlwaysOn:
		return "AlwaysOn"
	}
	return fmt.Sprintf("RestorePolicy(%d)", int(p))
}

// BootProgress says how far the present boot has come.
type BootProgress int

const (
	// BootNone: not powered.
	BootNone BootProgress = iota
	// BootFirmware: the firmware initialises the hardware.
	BootFirmware
	// BootOSStarting: the firmware has handed over to the operating system.
	BootOSStarting
	// BootOSRunning: the operating system is up, or hung after it was up.
	BootOSRunning
)

func (p BootProgress) String() string {
	switch p {
	case BootNone:
		return "None"
	case BootFirmware:
		return "Firmware"
	case BootOSStarting:
		return "OSStarting"
	case BootOSRunning:
		return "OSRunning"
	}
	return fmt.Sprintf("BootProgress(%d)", int(p))
}
