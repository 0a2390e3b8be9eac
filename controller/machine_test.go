package controller_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nodefence/nodefence/fencing"
	"github.com/nodefence/nodefence/providers"
)

// machine is one computer with its BMC: the world that the API server does not
// see. What is set here is what the driver's next answer tells.
type machine struct {
	mu    sync.Mutex
	power fencing.PowerState
	uuid  string
	// latency is how long a reading or a power-off takes.
	latency time.Duration
	// hangs: the BMC accepts the question and never answers.
	hangs bool
	// failure, when set, is what every reading comes to.
	failure fencing.Failure
	// says, when it is not Unknown, is what readings say instead of the truth,
	// until saysUntil, or for good when that is zero.
	says      fencing.PowerState
	saysUntil time.Time
	// raw gives what is put into each reading; it may panic.
	raw func(providers.Machine) string
	// deaf: power-offs are accepted and change nothing.
	deaf bool
	// ignoresContext: a power-off goes on after its context has ended, as with
	// client libraries that take none.
	ignoresContext bool
	powerOffErr    func(providers.Machine) error

	readings  int
	powerOffs []time.Time
}

func (m *machine) set(change func(*machine)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change(m)
}

func (m *machine) state() fencing.PowerState {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.power
}

func (m *machine) timesRead() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.readings
}

func (m *machine) poweredOffAt() []time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.powerOffs)
}

func (m *machine) timesPoweredOff() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.powerOffs)
}

// scriptedDriver answers for the machines of the world, on behalf of one process:
// a process that was killed asks nothing any more.
type scriptedDriver struct{ p *process }

// Read tells what the machine's script says.
func (d scriptedDriver) Read(ctx context.Context, pm providers.Machine) fencing.Reading {
	r := fencing.Reading{Driver: "scripted", Address: pm.Address, AskedAt: time.Now()}
	if err := d.p.enter(call{verb: "read", resource: "machine", name: pm.Address}); err != nil {
		r.Failure = fencing.Failure{Kind: fencing.Unreachable, Message: err.Error()}
		return r
	}
	w := d.p.w
	m := w.machineAt(pm.Address)
	if m == nil {
		r.Failure = fencing.Failure{Kind: fencing.NotFound, Message: "nothing answers at " + pm.Address}
		return r
	}
	if pm.Credentials.Password != password {
		r.Failure = fencing.Failure{Kind: fencing.Unauthorized, Message: "the password is refused"}
		return r
	}
	w.beginAsking()
	defer w.endAsking()
	m.set(func(m *machine) { m.readings++ })
	if !m.wait(ctx) {
		r.Failure, r.AnsweredAt = fencing.Failure{Kind: fencing.TimedOut, Message: "no answer from " + pm.Address}, time.Now()
		return r
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	r.AnsweredAt, r.Failure = time.Now(), m.failure
	if m.raw != nil {
		r.Raw = m.raw(pm)
	}
	if !r.Failed() {
		r.Power, r.Identity = m.power, fencing.Identity{UUID: m.uuid}
		if m.says != fencing.Unknown && (m.saysUntil.IsZero() || time.Now().Before(m.saysUntil)) {
			r.Power = m.says
		}
	}
	return r
}

// wait spends the latency, and tells whether an answer came before the deadline.
func (m *machine) wait(ctx context.Context) bool {
	m.mu.Lock()
	latency, hangs := m.latency, m.hangs
	m.mu.Unlock()
	if hangs {
		<-ctx.Done()
		return false
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(latency):
		return true
	}
}

// PowerOff cuts the power, unless the machine's script says otherwise.
func (d scriptedDriver) PowerOff(ctx context.Context, pm providers.Machine) error {
	c := call{verb: "poweroff", resource: "machine", name: pm.Address}
	if err := d.p.enter(c); err != nil {
		return err
	}
	w := d.p.w
	m := w.machineAt(pm.Address)
	if m == nil || pm.Expected.UUID != "" && fencing.UUIDKey(m.uuid) != fencing.UUIDKey(pm.Expected.UUID) {
		return &providers.Error{Kind: fencing.WrongMachine, Op: "power off", Node: pm.Node, Address: pm.Address, Err: fmt.Errorf("another machine answers")}
	}
	w.checkPowerOff(pm)
	m.set(func(m *machine) { m.powerOffs = append(m.powerOffs, time.Now()) })
	if m.ignoresContext {
		time.Sleep(m.latency)
	} else if !m.wait(ctx) {
		return ctx.Err()
	}
	if m.powerOffErr != nil {
		return m.powerOffErr(pm)
	}
	m.set(func(m *machine) {
		if !m.deaf {
			m.power = fencing.Off
		}
	})
	return d.p.leave(c)
}
