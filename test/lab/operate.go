package lab

import (
	"context"
	"time"
)

// The operations. Each takes the name of who asks, for the history.

// PowerOn starts a machine that is off, wakes one that is suspended, and leaves
// any other alone.
func (m *Machine) PowerOn(by string) error {
	return m.do(func() error { return m.powerOn(by) }, false)
}

func (m *Machine) powerOn(by string) error {
	switch st := m.State(); {
	case !st.Mains:
		return ErrNoMains
	case st.Power == Suspended:
		m.resume(by)
	case st.Power == Off:
		m.powerUp(by, m.cfg.BootTime)
	}
	return nil
}

// ForceOff cuts the main power at once. On a machine that is off it does
// nothing, except that it ends a power cycle.
func (m *Machine) ForceOff(by string) error {
	return m.do(func() error {
		m.cancelStep()
		if m.Power() != Off {
			m.powerDown(by)
		}
		return nil
	}, true)
}

// GracefulShutdown asks the operating system to shut down. It returns at once;
// the machine runs on for its ShutdownTime (PoweringOff) and is off only then.
// An operating system that hangs or is not up does not hear it.
func (m *Machine) GracefulShutdown(by string) error {
	return m.do(func() error {
		st := m.State()
		if st.Power == Off {
			return ErrOff
		}
		m.mu.Lock()
		m.record(ShutdownRequested, by)
		hears := st.Power == On && !st.Hung && st.Progress == BootOSRunning
		if hears {
			m.st.Power = PoweringOff
		}
		m.mu.Unlock()
		if hears {
			m.after(m.cfg.ShutdownTime, func() { m.powerDown(by) })
		}
		return nil
	}, false)
}

// Reset is a warm reset: the operating system dies and the machine boots again,
// and at no time is the power off.
func (m *Machine) Reset(by string) error {
	return m.do(func() error {
		if m.Power() == Off {
			return ErrOff
		}
		m.cancelStep()
		m.cfg.OS.Kill()
		m.mu.Lock()
		m.record(ResetDone, by)
		m.mu.Unlock()
		m.startBoot(by, m.cfg.BootTime)
		return nil
	}, true)
}

// PowerCycle cuts the power and restores it after offFor. In between the
// machine truly is off, and a reader of its power sees just that: the trap that
// a fencing service must not fall into. It returns when the power is off.
func (m *Machine) PowerCycle(by string, offFor time.Duration) error {
	return m.do(func() error {
		if m.Power() == Off {
			return ErrOff
		}
		m.powerDown(by)
		m.after(offFor, func() { _ = m.powerOn(by) })
		return nil
	}, true)
}

// PowerLoss takes the mains away: the machine is off at once, and stays so
// until PowerRestore.
func (m *Machine) PowerLoss(by string) error {
	return m.do(func() error {
		st := m.State()
		if !st.Mains {
			return nil
		}
		m.cancelStep()
		m.mu.Lock()
		m.before = st.Power
		m.st.Mains = false
		m.record(MainsLost, by)
		m.mu.Unlock()
		if st.Power != Off {
			m.powerDown(by)
		}
		return nil
	}, true)
}

// PowerRestore brings the mains back; the restore policy decides what follows.
func (m *Machine) PowerRestore(by string) error {
	return m.do(func() error {
		m.mu.Lock()
		if m.st.Mains {
			m.mu.Unlock()
			return nil
		}
		m.st.Mains = true
		m.record(MainsBack, by)
		start := m.st.Restore == AlwaysOn || m.st.Restore == LastState && m.before != Off
		m.mu.Unlock()
		if start {
			m.powerUp("restore policy", m.cfg.BootTime)
		}
		return nil
	}, false)
}

// Hang freezes the operating system: it falls silent, and the power stays on.
func (m *Machine) Hang(by string) error {
	return m.do(func() error { return m.setHung(by, true) }, false)
}

// Unhang lets a hung operating system go on as if nothing had been.
func (m *Machine) Unhang(by string) error {
	return m.do(func() error { return m.setHung(by, false) }, false)
}

func (m *Machine) setHung(by string, hung bool) error {
	st := m.State()
	if st.Power == Off || st.Power == Suspended {
		return ErrOff
	}
	if st.Hung == hung {
		return nil
	}
	kind := Unhung
	if hung {
		kind = Hung
		m.cfg.OS.Freeze()
		if st.Power == PoweringOff {
			m.cancelStep() // a hung system never finishes its shutdown
		}
	} else {
		m.cfg.OS.Thaw()
		if st.Power == PoweringOff {
			m.after(m.cfg.ShutdownTime, func() { m.powerDown(by) })
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.st.Hung = hung
	m.record(kind, by)
	return nil
}

// Suspend stops a running machine and keeps its memory. It is not off.
func (m *Machine) Suspend(by string) error {
	return m.do(func() error {
		if st := m.State(); st.Power != On || st.Progress != BootOSRunning {
			return ErrOff
		}
		m.cfg.OS.Freeze()
		m.mu.Lock()
		defer m.mu.Unlock()
		m.st.Power = Suspended
		m.record(SuspendedNow, by)
		return nil
	}, false)
}

// Resume wakes a suspended machine: the same boot, the same memory.
func (m *Machine) Resume(by string) error {
	return m.do(func() error {
		if m.Power() != Suspended {
			return ErrOff
		}
		m.resume(by)
		return nil
	}, false)
}

func (m *Machine) resume(by string) {
	m.mu.Lock()
	m.st.Power = On
	hung := m.st.Hung
	m.record(Resumed, by)
	m.mu.Unlock()
	if !hung {
		m.cfg.OS.Thaw()
	}
}

// powerUp switches a machine on that is off, and boots it in bootTime.
func (m *Machine) powerUp(by string, bootTime time.Duration) {
	m.mu.Lock()
	m.record(PoweredOn, by)
	m.st.Power = On
	m.st.LastOnBy = by
	m.st.OffSince = time.Time{}
	m.st.poweredAt = time.Now()
	m.mu.Unlock()
	m.startBoot(by, bootTime)
}

// powerDown ends everything, and only then says that the machine is off.
func (m *Machine) powerDown(by string) {
	m.cancelStep()
	m.cfg.OS.Kill()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.record(PoweredOff, by)
	m.st.Power = Off
	m.st.Hung = false
	m.st.Progress = BootNone
	m.st.LastOffBy = by
	m.st.OffSince = m.history[len(m.history)-1].At
}

// startBoot begins a boot with an ID of its own.
func (m *Machine) startBoot(by string, bootTime time.Duration) {
	id := m.cfg.NewBootID()
	m.mu.Lock()
	m.st.Power = On
	m.st.Hung = false
	m.st.BootID = id
	m.st.Boots++
	m.st.Progress = BootFirmware
	m.st.LastReset = time.Now()
	m.record(BootStarted, by)
	m.mu.Unlock()
	if bootTime == 0 {
		m.runOS(by)
		return
	}
	m.after(bootTime, func() { m.runOS(by) })
}

// runOS starts the operating system at the end of the firmware's part.
func (m *Machine) runOS(by string) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	m.mu.Lock()
	m.boot = cancel
	if m.enders > 0 {
		cancel() // somebody already waits to end this boot
	}
	info := BootInfo{
		Machine: m.cfg.Name, UUID: m.cfg.UUID, Serial: m.cfg.Serial,
		BootID: m.st.BootID, Count: m.st.Boots, Started: m.st.LastReset,
	}
	hung := m.st.Hung
	m.mu.Unlock()
	err := m.cfg.OS.Boot(ctx, info)
	if err != nil {
		m.cfg.OS.Kill() // nothing half-started may run on
	} else if hung {
		m.cfg.OS.Freeze()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.boot = nil
	if err != nil {
		m.record(OSFailed, by+": "+err.Error())
		return
	}
	m.st.Progress = BootOSRunning
	m.record(OSUp, by)
}
