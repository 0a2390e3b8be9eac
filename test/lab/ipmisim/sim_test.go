package ipmisim_test

import (
	"context"
	"errors"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/nodefence/nodefence/test/lab"
	"github.com/nodefence/nodefence/test/lab/ipmisim"
	"github.com/nodefence/nodefence/test/peers"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t *testing.T) (*lab.Machine, *ipmisim.Sim) {
	t.Helper()
	peers.Require(t, "ipmi_sim")
	m := lab.New(lab.Config{
		Name: "m1", UUID: lab.MustUUID("00112233-4455-6677-8899-aabbccddeeff"),
		Running: true, BootTime: 50 * time.Millisecond,
	})
	t.Cleanup(m.Close)
	s, err := ipmisim.Start(t.Context(), m, ipmisim.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return m, s
}

// ipmitool runs one command. The password goes by the environment.
func ipmitool(t *testing.T, s *ipmisim.Sim, user, pass string, args ...string) (string, error) {
	t.Helper()
	exe := peers.Require(t, "ipmitool")
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
	defer cancel()
	all := append([]string{"-I", "lanplus", "-H", s.Host(), "-p", strconv.Itoa(s.Port()), "-U", user, "-E",
		"-C", strconv.Itoa(ipmisim.CipherSuite), "-N", "1", "-R", "1"}, args...)
	cmd := exec.CommandContext(ctx, exe, all...)
	cmd.Env = append(cmd.Environ(), "IPMI_PASSWORD="+pass)
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func admin(t *testing.T, s *ipmisim.Sim, args ...string) string {
	t.Helper()
	out, err := ipmitool(t, s, "admin", "adminpass", args...)
	if err != nil {
		t.Errorf("ipmitool %v: %v: %s", args, err, out)
	}
	return out
}

func TestPowerIsTheMachines(t *testing.T) {
	m, s := start(t)
	if got := admin(t, s, "power", "status"); got != "Chassis Power is on" {
		t.Errorf("status %q", got)
	}
	if err := m.PowerLoss("test"); err != nil {
		t.Fatal(err)
	}
	if got := admin(t, s, "power", "status"); got != "Chassis Power is off" {
		t.Errorf("status after the loss of power %q", got)
	}
	if err := m.PowerRestore("test"); err != nil {
		t.Fatal(err)
	}
	admin(t, s, "power", "on")
	if m.Power() != lab.On {
		t.Error("power on had no effect")
	}
	admin(t, s, "power", "off")
	if m.Power() != lab.Off {
		t.Error("power off had no effect")
	}
}

func TestCycleTrulyIsOffForAWhile(t *testing.T) {
	m, s := start(t)
	admin(t, s, "power", "cycle")
	deadline := time.Now().Add(5 * time.Second)
	for m.History().Count(lab.PoweredOn) < 2 && time.Now().Before(deadline) {
		time.Sleep(20 * time.Millisecond)
	}
	h := m.History()
	off, _ := h.Last(lab.PoweredOff)
	on, _ := h.Last(lab.PoweredOn)
	if h.Count(lab.PoweredOff) != 2 || on.At.Sub(off.At) < 300*time.Millisecond {
		t.Errorf("history of a power cycle:\n%s", h)
	}
}

func TestReset(t *testing.T) {
	m, s := start(t)
	before := m.BootID()
	admin(t, s, "power", "reset")
	if m.BootID() == before || m.History().Count(lab.PoweredOff) != 1 {
		t.Errorf("history of a reset:\n%s", m.History())
	}
}

func TestGUIDIsInSMBIOSOrder(t *testing.T) {
	_, s := start(t)
	got := admin(t, s, "mc", "guid", "smbios")
	if !strings.Contains(got, "00112233-4455-6677-8899-aabbccddeeff") {
		t.Errorf("mc guid:\n%s", got)
	}
}

func TestAReaderMayNotSwitch(t *testing.T) {
	m, s := start(t)
	out, err := ipmitool(t, s, "reader", "readerpass", "-L", "USER", "power", "status")
	// ipmitool prints a complaint before it, about a question of its own.
	if err != nil || !strings.HasSuffix(out, "\nChassis Power is on") {
		t.Errorf("status for a reader: %q, %v", out, err)
	}
	out, err = ipmitool(t, s, "reader", "readerpass", "-L", "USER", "power", "off")
	if err == nil || !strings.Contains(out, "nsufficient privilege") || m.Power() != lab.On {
		t.Errorf("power off for a reader: %q, %v; the machine is %s", out, err, m.Power())
	}
}

func TestFaults(t *testing.T) {
	m, s := start(t)
	fails := func(name string) {
		t.Helper()
		if out, err := ipmitool(t, s, "admin", "adminpass", "power", "status"); err == nil {
			t.Errorf("%s: ipmitool says %q", name, out)
		}
	}
	works := func(name string) {
		t.Helper()
		if got := admin(t, s, "power", "status"); got != "Chassis Power is on" {
			t.Errorf("after %s: %q", name, got)
		}
	}
	s.SetScriptFails(true)
	fails("a script that fails")
	s.SetScriptFails(false)
	works("a script that failed")

	s.SetScriptDelay(300 * time.Millisecond)
	begin := time.Now()
	works("a slow script")
	if took := time.Since(begin); took < 300*time.Millisecond {
		t.Errorf("a slow script took %v", took)
	}
	s.SetScriptDelay(0)

	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	fails("a frozen simulator")
	if err := s.Continue(); err != nil {
		t.Fatal(err)
	}
	works("a frozen simulator")

	s.Kill()
	if !refused(t, s) {
		t.Error("the port is open after Kill")
	}
	if m.Power() != lab.On {
		t.Error("the machine went with its controller")
	}
}

func TestStartRefusesWhatTheSimulatorCannotTake(t *testing.T) {
	peers.Require(t, "ipmi_sim")
	m := lab.New(lab.Config{Name: "m1"})
	defer m.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if s, err := ipmisim.Start(ctx, m, ipmisim.Config{}); err == nil {
		s.Close()
		t.Error("started under a context that had ended")
	}
}

// refused says whether the simulator's port is closed.
func refused(t *testing.T, s *ipmisim.Sim) bool {
	t.Helper()
	conn, err := net.Dial("udp4", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	_, _ = conn.Write([]byte{6, 0, 0xff, 6})
	_, err = conn.Read(make([]byte, 64))
	return errors.Is(err, syscall.ECONNREFUSED)
}
