package ipmi_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nodefence/nodefence/fencing"
	"github.com/nodefence/nodefence/providers"
	"github.com/nodefence/nodefence/providers/ipmi"
	"github.com/nodefence/nodefence/providers/providertest"
	"github.com/nodefence/nodefence/test/lab"
	"github.com/nodefence/nodefence/test/lab/ipmibmc"
	"github.com/nodefence/nodefence/test/lab/ipmisim"
	"github.com/nodefence/nodefence/test/peers"
)

// How real controllers mislead, each as a test (docs/providers/ipmi.md).

var testSpec = providertest.Spec{
	UUID: "4c4c4544-0035-3410-8050-c6c04f314733", Serial: "SN4711",
	Operator: providers.Credentials{Username: "fencer", Password: "op-password"},
	Reader:   providers.Credentials{Username: "watcher", Password: "rd-password"},
}

// rig is a machine, its controller, and the network before it.
type rig struct {
	*bench
	bmc *ipmibmc.BMC
	m   providers.Machine
}

func newRig(t testing.TB, options string, suites ...uint8) *rig {
	t.Helper()
	m := labMachine(t, testSpec)
	c, err := ipmibmc.Start(m, ipmibmc.Config{Users: users(testSpec), CipherSuites: suites})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	b := newBench(t, m, c.Addr(), options)
	r := &rig{bench: b, bmc: c, m: b.end.Machine}
	r.m.Node, r.m.Credentials = "node-1", testSpec.Operator
	r.m.Expected.UUID = testSpec.UUID
	return r
}

func (r *rig) read(t testing.TB, timeout time.Duration) fencing.Reading {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	return r.end.Driver.Read(ctx, r.m)
}

func (r *rig) powerOff(t testing.TB, timeout time.Duration) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	return r.end.Driver.PowerOff(ctx, r.m)
}

func wantPower(t testing.TB, r fencing.Reading, power fencing.PowerState, kind fencing.FailureKind) {
	t.Helper()
	if r.Power != power || r.Failure.Kind != kind {
		t.Errorf("%v, failure %v where %v, %v is expected: %s; raw %q", r.Power, r.Failure.Kind, power, kind, r.Failure.Message, r.Raw)
	}
}

// "Unspecified error", then "off", while the controller boots: the error is no
// Off, so that the count begins anew.
func TestUnspecifiedErrorWhileTheControllerBoots(t *testing.T) {
	r := newRig(t, "")
	r.bmc.SetFaults(ipmibmc.Faults{Booting: true})
	got := r.read(t, 2*time.Second)
	wantPower(t, got, fencing.Unknown, fencing.Failed)
	if !strings.Contains(got.Failure.Message, "0xff (unspecified error)") {
		t.Errorf("the message is %q", got.Failure.Message)
	}
	r.bmc.SetFaults(ipmibmc.Faults{ReadsOff: true})
	wantPower(t, r.read(t, 2*time.Second), fencing.Off, fencing.NoFailure)
}

// The cycle was reported done before the machine was off: power off is the hard
// power down, never a cycle, and its answer is no proof.
func TestPowerOffIsNoCycle(t *testing.T) {
	r := newRig(t, "")
	if err := r.powerOff(t, 2*time.Second); err != nil {
		t.Fatal(err)
	}
	time.Sleep(50 * time.Millisecond)
	if n := r.machine.History().Count(lab.PoweredOn); n != 1 || r.machine.Power() != lab.Off {
		t.Errorf("powered on %d times, now %v", n, r.machine.Power())
	}
	r = newRig(t, "")
	r.bmc.SetFaults(ipmibmc.Faults{IgnoresControl: true})
	if err := r.powerOff(t, 2*time.Second); err != nil {
		t.Fatal(err)
	}
	wantPower(t, r.read(t, 2*time.Second), fencing.On, fencing.NoFailure)
}

// Refusal of a cipher suite: the next one is tried, at the
// cost of no log-in.
func TestCipherSuiteRefused(t *testing.T) {
	for name, suites := range map[string][]uint8{"only 3": {3}, "only 17": {17}} {
		t.Run(name, func(t *testing.T) {
			for _, options := range []string{`{"cipherSuites":[17,3]}`, `{"cipherSuites":[3,17]}`} {
				r := newRig(t, options, suites...)
				wantPower(t, r.read(t, 2*time.Second), fencing.On, fencing.NoFailure)
				if n := r.relay.logIns(); n != 1 {
					t.Errorf("%s: %d log-ins", options, n)
				}
			}
		})
	}
	r := newRig(t, `{"cipherSuites":[17]}`, 3)
	got := r.read(t, 2*time.Second)
	wantPower(t, got, fencing.Unknown, fencing.Failed)
	if !strings.Contains(got.Failure.Message, "cipher suite") {
		t.Errorf("the message is %q", got.Failure.Message)
	}
}

func TestCipherSuiteRefusedBySimulator(t *testing.T) {
	peers.Require(t, "ipmi_sim")
	m := labMachine(t, testSpec)
	sim, err := ipmisim.Start(t.Context(), m, ipmisim.Config{Users: users(testSpec)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sim.Close)
	b := newBench(t, m, sim.Addr(), "")
	r := &rig{bench: b, m: b.end.Machine}
	r.m.Credentials = testSpec.Reader
	wantPower(t, r.read(t, 3*time.Second), fencing.On, fencing.NoFailure)
	r.m.Credentials.Password = "wrong"
	wantPower(t, r.read(t, 3*time.Second), fencing.Unknown, fencing.Unauthorized)
	if n := r.relay.logIns(); n != 2 {
		t.Errorf("a good and a bad log-in made %d attempts", n)
	}
	_ = sim.Stop()
	wantPower(t, r.read(t, 300*time.Millisecond), fencing.Unknown, fencing.TimedOut)
	_ = sim.Continue()
	sim.Kill()
	r.m.Address = sim.Addr()
	wantPower(t, r.read(t, time.Second), fencing.Unknown, fencing.Unreachable)
}

// Noise before the answer: passed over.
func TestNoiseBeforeTheAnswer(t *testing.T) {
	r := newRig(t, "")
	r.relay.set(false, func(pkt []byte) []byte {
		r.relay.toDriver(noise(append([]byte(nil), pkt...)))
		r.relay.toDriver(nil)
		r.relay.toDriver([]byte("Unable to Get Channel Cipher Suites"))
		return pkt
	})
	wantPower(t, r.read(t, 2*time.Second), fencing.On, fencing.NoFailure)
}

// Passwords with up to 20 bytes and any sign work; longer ones are refused
// before anything is sent.
func TestPasswords(t *testing.T) {
	for _, password := range []string{`pa$$ w"o'rd\`, "exactly-20-bytes-abc", "exactly-16-bytes", "ümläut"} {
		m := labMachine(t, testSpec)
		c, err := ipmibmc.Start(m, ipmibmc.Config{Users: []ipmibmc.User{{Name: "u", Password: password, Privilege: ipmibmc.ReadOnly}}})
		if err != nil {
			t.Fatal(err)
		}
		r := &rig{bench: newBench(t, m, c.Addr(), "")}
		r.m = providers.Machine{Address: c.Addr(), Credentials: providers.Credentials{Username: "u", Password: password}}
		wantPower(t, r.read(t, 2*time.Second), fencing.On, fencing.NoFailure)
		_ = c.Close()
	}
	r := newRig(t, "")
	for _, c := range []providers.Credentials{
		{Username: "fencer", Password: "twenty-one-bytes-long"}, {Username: "seventeen-letters", Password: "x"},
		{Username: "a", Password: "b\x00c"}, {},
	} {
		r.m.Credentials = c
		got := r.read(t, 2*time.Second)
		wantPower(t, got, fencing.Unknown, fencing.Misconfigured)
		if strings.Contains(got.Failure.Message, "twenty-one") {
			t.Error("the message holds the password")
		}
	}
	if n := r.relay.logIns(); n != 0 {
		t.Errorf("%d attempts", n)
	}
}

// An empty reply's first byte read as chassis status: the length is checked.
func TestEmptyAndShortReplies(t *testing.T) {
	for name, f := range map[string]ipmibmc.Faults{"empty": {EmptyReply: true}, "short": {ShortReply: true}} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, "")
			_ = r.machine.ForceOff("test")
			r.bmc.SetFaults(f)
			wantPower(t, r.read(t, 2*time.Second), fencing.Unknown, fencing.Malformed)
		})
	}
}

// The whole rack without power: the controller is dead too, which proves
// nothing.
func TestRackWithoutPower(t *testing.T) {
	m := labMachine(t, testSpec)
	c, err := ipmibmc.Start(m, ipmibmc.Config{Users: users(testSpec), DiesWithMains: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	r := &rig{bench: newBench(t, m, c.Addr(), "")}
	r.m = providers.Machine{Address: c.Addr(), Credentials: testSpec.Reader}
	_ = m.PowerLoss("test")
	wantPower(t, r.read(t, 300*time.Millisecond), fencing.Unknown, fencing.TimedOut)
	if err := r.powerOff(t, 300*time.Millisecond); err == nil {
		t.Error("power off without a controller is no error")
	}
}

// The address leads to another machine, which is off: it is told as what it is,
// and not powered off.
func TestAnotherMachineAnswers(t *testing.T) {
	r := newRig(t, "")
	r.bmc.SetFaults(ipmibmc.Faults{OtherMachine: true})
	got := r.read(t, 2*time.Second)
	wantPower(t, got, fencing.Off, fencing.NoFailure)
	if match, why := r.m.Expected.Match(got.Identity); match != fencing.IdentityMismatch {
		t.Errorf("%v: %s", match, why)
	}
	var e *providers.Error
	if err := r.powerOff(t, 2*time.Second); !errors.As(err, &e) || e.Kind != fencing.WrongMachine {
		t.Errorf("power off: %v", err)
	}
}

// States that a controller invents are passed on: other rules judge them. On is
// never taken for off because somebody expects it to be.
func TestLies(t *testing.T) {
	r := newRig(t, "")
	_ = r.machine.ForceOff("test")
	r.bmc.SetFaults(ipmibmc.Faults{ReadsOn: true})
	wantPower(t, r.read(t, 2*time.Second), fencing.On, fencing.NoFailure)
}

// A power fault is told, and Off stays Off.
func TestFaultBitsAreTold(t *testing.T) {
	r := newRig(t, "")
	_ = r.machine.ForceOff("test")
	r.bmc.SetFaults(ipmibmc.Faults{PowerFault: true})
	got := r.read(t, 2*time.Second)
	wantPower(t, got, fencing.Off, fencing.NoFailure)
	if !strings.Contains(got.Raw, "power fault") || got.Hints.RestorePolicy != fencing.RestoreLastState {
		t.Errorf("raw %q, restore %v", got.Raw, got.Hints.RestorePolicy)
	}
}

// A packet lost on the way costs a second, not the reading.
func TestLostPackets(t *testing.T) {
	r := newRig(t, "")
	lost := map[byte]bool{}
	r.relay.set(false, func(pkt []byte) []byte {
		if kind := pkt[5] & 0x3f; !lost[kind] {
			lost[kind] = true
			return nil
		}
		return pkt
	})
	got := r.read(t, 8*time.Second)
	wantPower(t, got, fencing.On, fencing.NoFailure)
	if len(lost) != 4 {
		t.Errorf("%d kinds of packets were lost, not 4", len(lost))
	}
}

func TestIPv6(t *testing.T) {
	r := newRig(t, "")
	front, err := net.ListenUDP("udp6", &net.UDPAddr{IP: net.IPv6loopback})
	if err != nil {
		t.Skipf("NOT RUN: no IPv6 here: %v", err)
	}
	newRelayOn(t, front, r.bmc.Addr())
	_, port, _ := net.SplitHostPort(front.LocalAddr().String())
	for address, options := range map[string]string{
		"[::1]:" + port: "", "::1": `{"port":` + port + `}`, "[::1]": `{"port":` + port + `}`,
	} {
		r.m.Address, r.end.Driver = address, newDriver(t, options)
		wantPower(t, r.read(t, 2*time.Second), fencing.On, fencing.NoFailure)
	}
}

func TestOptions(t *testing.T) {
	for options, word := range map[string]string{
		`{"cipherSuite":[3]}`: "cipherSuite", `{"cipherSuites":[0]}`: "cipherSuites[0]", `{"cipherSuites":[]}`: "at least one",
		`{"cipherSuites":[3,3]}`: "twice", `{"port":0}`: "port", `{"privilege":"root"}`: "privilege",
		`{"powerOffPrivilege":"User"}`: "powerOffPrivilege", `[]`: "options", `{} {}`: "more than one",
	} {
		if _, err := ipmi.New(providers.Settings{Options: []byte(options), Now: time.Now}); err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%s: %v", options, err)
		}
	}
	if _, err := ipmi.New(providers.Settings{Now: time.Now, TLS: providers.TLS{Insecure: true}}); err == nil {
		t.Error("TLS settings are taken")
	}
	r := newRig(t, "")
	for _, spoil := range []func(*providers.Machine){
		func(m *providers.Machine) { m.Address = "" }, func(m *providers.Machine) { m.Address = "https://host" },
		func(m *providers.Machine) { m.Address = "host:0" }, func(m *providers.Machine) { m.Address = "host:99999" },
		func(m *providers.Machine) { m.Address = "[::1" }, func(m *providers.Machine) { m.Address = "user@host" },
		func(m *providers.Machine) { m.System = "1" }, func(m *providers.Machine) { m.Fingerprint = "00" },
	} {
		m := r.m
		spoil(&m)
		got := r.end.Driver.Read(t.Context(), m)
		wantPower(t, got, fencing.Unknown, fencing.Misconfigured)
		var e *providers.Error
		if err := r.end.Driver.PowerOff(t.Context(), m); !errors.As(err, &e) || e.Kind != fencing.Misconfigured {
			t.Errorf("power off: %v", err)
		}
	}
}
