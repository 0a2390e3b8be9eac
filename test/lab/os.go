package lab

import (
	"context"
	"time"
)

// OS is what runs on a machine: a hollow kubelet in the end-to-end tests,
// nothing in most others.
//
// A machine calls one method at a time and never while it holds its state, so
// an OS may read the machine. It must not operate it from inside these methods
// (a reboot from inside is an operation from another goroutine).
type OS interface {
	// Boot starts the operating system and returns when it runs. The context
	// ends when the machine loses power or is reset: Boot must then return
	// soon. An error leaves the machine powered with nothing running.
	Boot(ctx context.Context, info BootInfo) error
	// Kill ends everything at once, as a loss of power does. It is called after
	// Boot has returned, also after a failed Boot, and must be idempotent. Only
	// when it has returned is the machine off.
	Kill()
	// Freeze stops it where it stands: a hang, or a suspend.
	Freeze()
	// Thaw lets it go on.
	Thaw()
}

// BootInfo is what an operating system learns from its machine at boot.
type BootInfo struct {
	Machine string    // the machine's name
	UUID    UUID      // SMBIOS UUID
	Serial  string    // serial number
	BootID  string    // new at every boot
	Count   int       // 1 at the first boot
	Started time.Time // when the machine was powered on or reset
}

// NoOS is an operating system without any effect.
type NoOS struct{}

// Boot does nothing.
func (NoOS) Boot(context.Context, BootInfo) error { return nil }

// Kill does nothing.
func (NoOS) Kill() {}

// Freeze does nothing.
func (NoOS) Freeze() {}

// Thaw does nothing.
func (NoOS) Thaw() {}
