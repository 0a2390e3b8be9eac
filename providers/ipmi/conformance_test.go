package ipmi_test

import (
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/nodefence/nodefence/fencing"
	"github.com/nodefence/nodefence/providers"
	"github.com/nodefence/nodefence/providers/ipmi"
	"github.com/nodefence/nodefence/providers/providertest"
	"github.com/nodefence/nodefence/providers/providertest/labend"
	"github.com/nodefence/nodefence/test/lab"
	"github.com/nodefence/nodefence/test/lab/ipmibmc"
	"github.com/nodefence/nodefence/test/lab/ipmisim"
	"github.com/nodefence/nodefence/test/peers"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newDriver(t testing.TB, options string) providers.Driver {
	t.Helper()
	d, err := ipmi.New(providers.Settings{Name: "test", Options: []byte(options), Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// bench is a machine with its network and controller.
type bench struct {
	machine *lab.Machine
	relay   *relay
	end     *providertest.Endpoint
}

// newBench puts a relay before a controller that listens at addr.
func newBench(t testing.TB, m *lab.Machine, addr, options string) *bench {
	t.Helper()
	b := &bench{machine: m, relay: newRelay(t, addr)}
	b.end = &providertest.Endpoint{
		Driver:  newDriver(t, options),
		Machine: providers.Machine{Address: b.relay.addr()},
		Set:     func(p fencing.PowerState) { labend.SetPower(m, p) },
		Get:     func() fencing.PowerState { return labend.Power(m) },
		Delay:   b.relay.setDelay,
		LogIns:  b.relay.logIns,
		Commands: func() (n int) {
			for _, e := range m.History() {
				if strings.HasPrefix(e.By, "ipmi") {
					n++
				}
			}
			return n
		},
	}
	return b
}

// play makes the network misbehave, or reports that it cannot.
func (b *bench) play(c providertest.Capability) bool {
	switch c {
	case providertest.Healthy:
		b.relay.set(false, nil)
	case providertest.Hangs:
		b.relay.set(true, nil)
	case providertest.HangsLater:
		b.relay.set(false, loseSession)
	case providertest.Garbage:
		b.relay.set(false, noise)
	case providertest.Truncated:
		b.relay.set(false, half)
	case providertest.Closed:
		b.relay.close()
	default:
		return false
	}
	return true
}

func labMachine(t testing.TB, spec providertest.Spec) *lab.Machine {
	t.Helper()
	m := lab.New(lab.Config{
		Name: spec.Serial, UUID: lab.MustUUID(spec.UUID), Serial: spec.Serial, Running: true, ShutdownTime: time.Hour, Restore: lab.LastState,
	})
	t.Cleanup(m.Close)
	return m
}

func users(spec providertest.Spec) []ipmibmc.User {
	return []ipmibmc.User{
		{Name: spec.Operator.Username, Password: spec.Operator.Password, Privilege: ipmibmc.Operator},
		{Name: spec.Reader.Username, Password: spec.Reader.Password, Privilege: ipmibmc.ReadOnly},
	}
}

// startBMC is the in-process controller.
func startBMC(options string, suites ...uint8) func(*testing.T, providertest.Spec) *providertest.Endpoint {
	return func(t *testing.T, spec providertest.Spec) *providertest.Endpoint {
		m := labMachine(t, spec)
		c, err := ipmibmc.Start(m, ipmibmc.Config{Users: users(spec), CipherSuites: suites})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		b := newBench(t, m, c.Addr(), options)
		b.end.Sessions = c.Sessions
		b.end.Play = func(f providertest.Capability) {
			c.SetFaults(ipmibmc.Faults{
				EmptyReply: f == providertest.NoState, Busy: f == providertest.Busy,
				ZeroGUID: f == providertest.NoIdentity, RefusesControl: f == providertest.RefusesWhenOff,
			})
			b.play(f)
		}
		return b.end
	}
}

func TestConformance(t *testing.T) {
	providertest.Run(t, providertest.Harness{Start: startBMC("")})
}

func TestConformanceSuite3(t *testing.T) {
	providertest.Run(t, providertest.Harness{Start: startBMC("", 3)})
}

// TestConformanceSimulator: the same against a controller whose author is not
// the library's.
func TestConformanceSimulator(t *testing.T) {
	peers.Require(t, "ipmi_sim")
	providertest.Run(t, providertest.Harness{
		Start: func(t *testing.T, spec providertest.Spec) *providertest.Endpoint {
			m := labMachine(t, spec)
			sim, err := ipmisim.Start(t.Context(), m, ipmisim.Config{Users: users(spec)})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(sim.Close)
			b := newBench(t, m, sim.Addr(), "")
			b.end.Play = func(f providertest.Capability) {
				sim.SetScriptFails(f == providertest.Busy)
				b.play(f)
			}
			return b.end
		},
		Lacks: map[providertest.Capability]string{
			providertest.NoState:        "ipmi_sim always answers chassis status in full; the in-process controller plays this",
			providertest.NoIdentity:     "ipmi_sim takes its GUID from the configuration at its start; the in-process controller plays this",
			providertest.RefusesWhenOff: "ipmi_sim obeys power down in every state; the in-process controller plays this",
			providertest.Privileges:     "ipmi_sim enforces the level of a session, and lets any account open one of any level; the in-process controller plays this",
			providertest.CountsSessions: "ipmi_sim does not tell how many sessions are open",
		},
		// Its script takes 30 ms and it does one thing at a time.
		Impatient: 600 * time.Millisecond, Slack: 300 * time.Millisecond,
	})
}
