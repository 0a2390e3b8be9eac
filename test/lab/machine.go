package lab

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

var (
	// ErrOff: the operation needs a machine that is powered.
	ErrOff = errors.New("lab: the machine is off")
	// ErrNoMains: the supply is gone, nothing can be switched on.
	ErrNoMains = errors.New("lab: the machine has no mains")
	// ErrClosed: the machine was taken out of the lab.
	ErrClosed = errors.New("lab: the machine is closed")
)

// Config describes a machine. Only Name is needed.
type Config struct {
	Name   string
	UUID   UUID   // random when zero
	Serial string // made from the name when empty

	BootTime     time.Duration // from power on or reset to the running OS; 0: at once
	ShutdownTime time.Duration // an orderly shutdown takes so long; 0: at once
	Restore      RestorePolicy

	OS        OS            // [NoOS] when nil
	NewBootID func() string // random UUIDs when nil
	Running   bool          // made with power on and its OS up, without BootTime
}

// Machine is one computer. Make it with [New]; all methods may be called from
// any goroutine, except from inside an [OS].
//
// Operations are done one after the other, each complete when it returns: after
// ForceOff the operating system has ended, and only then does the history say
// PoweredOff and does State read Off.
type Machine struct {
	cfg Config

	// turn is held during an operation. It is a channel and not a mutex,
	// because waiting for a mutex does not let a synctest bubble's time move on.
	turn chan struct{}
	wg   sync.WaitGroup // timers and their callbacks

	mu      sync.Mutex // guards all below; never held while calling the OS
	st      State
	history History
	boot    context.CancelFunc // ends the Boot that runs now
	timer   *time.Timer        // the one pending step: boot done, shutdown done, cycle over
	step    uint64             // counts steps, so that a late timer knows itself outdated
	enders  int                // operations under way that will end any boot
	before  Power              // when the mains went
	closed  bool
}

// State is what is true of a machine at one moment.
type State struct {
	Power     Power
	Mains     bool
	Hung      bool
	BootID    string // of the present or, when off, the last boot
	Boots     int
	Progress  BootProgress
	LastReset time.Time // last power on or reset
	Restore   RestorePolicy
	LastOnBy  string // who switched on last
	LastOffBy string // who switched off last
	OffSince  time.Time
	OnFor     time.Duration // how long the power has been on, 0 when off
	poweredAt time.Time
}

// New makes a machine: off, or running if the configuration says so.
func New(cfg Config) *Machine {
	if cfg.UUID == (UUID{}) {
		cfg.UUID = NewUUID()
	}
	if cfg.Serial == "" {
		cfg.Serial = "SN-" + cfg.Name
	}
	if cfg.OS == nil {
		cfg.OS = NoOS{}
	}
	if cfg.NewBootID == nil {
		cfg.NewBootID = func() string { return NewUUID().String() }
	}
	m := &Machine{cfg: cfg, turn: make(chan struct{}, 1)}
	m.st = State{Power: Off, Mains: true, Restore: cfg.Restore}
	m.mu.Lock()
	m.record(PoweredOff, "made")
	m.st.OffSince = m.history[0].At
	m.mu.Unlock()
	if cfg.Running {
		m.turn <- struct{}{}
		m.powerUp("made", 0)
		<-m.turn
	}
	return m
}

// Name is the machine's name in the lab.
func (m *Machine) Name() string { return m.cfg.Name }

// UUID is the machine's SMBIOS UUID.
func (m *Machine) UUID() UUID { return m.cfg.UUID }

// Serial is the machine's serial number.
func (m *Machine) Serial() string { return m.cfg.Serial }

// BootID is the ID of the present or last boot.
func (m *Machine) BootID() string { return m.State().BootID }

// Power is the true power state.
func (m *Machine) Power() Power { return m.State().Power }

// State returns what is true now.
func (m *Machine) State() State {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.st
	if s.Power != Off {
		s.OnFor = time.Since(s.poweredAt)
	}
	// The firmware hands over half-way; nothing but this answer depends on it.
	if s.Progress == BootFirmware && time.Since(s.LastReset) >= m.cfg.BootTime/2 {
		s.Progress = BootOSStarting
	}
	return s
}

// History returns all that happened so far.
func (m *Machine) History() History {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.history)
}

// OffThroughout says whether the machine was off without a break from t0 to
// now.
func (m *Machine) OffThroughout(t0 time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.history.OffThroughout(t0, time.Now())
}

// SetRestorePolicy changes what happens when the mains come back.
func (m *Machine) SetRestorePolicy(p RestorePolicy) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.st.Restore = p
}

// Close takes the machine out of the lab: power off, no timer and no boot left.
// It may be called again.
func (m *Machine) Close() {
	_ = m.do(func() error {
		m.mu.Lock()
		m.closed = true
		off := m.st.Power == Off
		m.mu.Unlock()
		if !off {
			m.powerDown("closed")
		}
		m.cancelStep()
		return nil
	}, true)
	m.wg.Wait()
}

// do runs one operation when it is its turn. A destructive operation ends a
// boot that is under way instead of waiting for it.
func (m *Machine) do(op func() error, destructive bool) error {
	if destructive {
		m.mu.Lock()
		m.enders++
		if m.boot != nil {
			m.boot()
		}
		m.mu.Unlock()
	}
	m.turn <- struct{}{}
	defer func() { <-m.turn }()
	m.mu.Lock()
	if destructive {
		m.enders--
	}
	closed := m.closed
	m.mu.Unlock()
	if closed {
		return ErrClosed
	}
	return op()
}

// record adds to the history; the caller holds mu.
func (m *Machine) record(kind EventKind, by string) {
	e := Event{At: time.Now(), Kind: kind, By: by, BootID: m.st.BootID}
	if kind == PoweredOn {
		e.BootID = "" // the boot that follows has not begun
	}
	m.history = append(m.history, e)
}

// after plans the next step, in place of any other. A step runs as an operation
// of its own, if nothing has replaced it until its turn.
func (m *Machine) after(d time.Duration, op func()) {
	m.cancelStep()
	m.mu.Lock()
	defer m.mu.Unlock()
	step := m.step
	m.wg.Add(1)
	m.timer = time.AfterFunc(d, func() {
		defer m.wg.Done()
		_ = m.do(func() error {
			m.mu.Lock()
			current := step == m.step
			if current {
				m.timer = nil
			}
			m.mu.Unlock()
			if current {
				op()
			}
			return nil
		}, false)
	})
}

func (m *Machine) cancelStep() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.step++
	if m.timer != nil && m.timer.Stop() {
		m.wg.Done()
	}
	m.timer = nil
}
