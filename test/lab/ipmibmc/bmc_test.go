package ipmibmc_test

import (
	"context"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/bougou/go-ipmi/pkg/client"
	"github.com/bougou/go-ipmi/pkg/command/chassis"
	"github.com/bougou/go-ipmi/pkg/types"
	"go.uber.org/goleak"

	"github.com/nodefence/nodefence/test/lab"
	"github.com/nodefence/nodefence/test/lab/ipmibmc"
	"github.com/nodefence/nodefence/test/peers"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t *testing.T, cfg ipmibmc.Config) (*lab.Machine, *ipmibmc.BMC) {
	t.Helper()
	m := lab.New(lab.Config{
		Name: "m1", UUID: lab.MustUUID("00112233-4455-6677-8899-aabbccddeeff"),
		Running: true, Restore: lab.LastState,
	})
	t.Cleanup(m.Close)
	b, err := ipmibmc.Start(m, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return m, b
}

// connect opens a session with go-ipmi's client.
func connect(t *testing.T, b *ipmibmc.BMC, user, pass string, priv types.PrivilegeLevel, suite types.CipherSuiteID) (*client.Client, error) {
	t.Helper()
	c, err := client.NewClient(b.Host(), b.Port(), user, pass)
	if err != nil {
		t.Fatal(err)
	}
	c = c.WithCipherSuiteID(suite).WithMaxPrivilegeLevel(priv).WithTimeout(300 * time.Millisecond).WithRetry(1)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if err := c.Connect(ctx); err != nil {
		_ = c.Close(ctx)
		return nil, err
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		defer cancel()
		_ = c.Close(ctx)
	})
	return c, nil
}

func read(t *testing.T, b *ipmibmc.BMC) (*chassis.GetChassisStatusResponse, error) {
	t.Helper()
	c, err := connect(t, b, "admin", "adminpass", types.PrivilegeLevelAdministrator, types.CipherSuiteID3)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	return c.GetChassisStatus(ctx)
}

func TestStatusIsTheMachines(t *testing.T) {
	m, b := start(t, ipmibmc.Config{})
	got, err := read(t, b)
	if err != nil {
		t.Fatal(err)
	}
	if !got.PowerIsOn || got.PowerRestorePolicy != chassis.PowerRestorePolicyPrevious {
		t.Errorf("status %+v", got)
	}
	_ = m.PowerLoss("test")
	if got, err = read(t, b); err != nil || got.PowerIsOn || !got.ACFailed {
		t.Errorf("status after the loss of power %+v, %v", got, err)
	}
}

func TestSuitesUsersAndGUID(t *testing.T) {
	m, b := start(t, ipmibmc.Config{})
	for _, suite := range []types.CipherSuiteID{types.CipherSuiteID3, types.CipherSuiteID17} {
		c, err := connect(t, b, "reader", "readerpass", types.PrivilegeLevelUser, suite)
		if err != nil {
			t.Fatalf("suite %d: %v", suite, err)
		}
		guid, err := c.GetSystemGUID(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		u, err := types.ParseGUID(guid.GUID[:], types.GUIDModeSMBIOS)
		if err != nil || u.String() != m.UUID().String() {
			t.Errorf("suite %d: GUID %v, %v", suite, u, err)
		}
		if _, err := c.ChassisControl(t.Context(), chassis.ChassisControlPowerDown); err == nil || m.Power() != lab.On {
			t.Errorf("a reader switched off: %v", err)
		}
	}
	for _, bad := range [][2]string{{"admin", "wrong"}, {"nobody", "adminpass"}, {"", ""}} {
		if _, err := connect(t, b, bad[0], bad[1], types.PrivilegeLevelUser, types.CipherSuiteID3); err == nil {
			t.Errorf("a session for %q", bad)
		}
	}
	if _, err := connect(t, b, "reader", "readerpass", types.PrivilegeLevelAdministrator, types.CipherSuiteID3); err == nil {
		t.Error("a reader became administrator")
	}
}

func TestControl(t *testing.T) {
	m, b := start(t, ipmibmc.Config{CycleOff: 30 * time.Millisecond})
	c, err := connect(t, b, "operator", "operatorpass", types.PrivilegeLevelOperator, types.CipherSuiteID17)
	if err != nil {
		t.Fatal(err)
	}
	control := func(what chassis.ChassisControl, fails bool) {
		t.Helper()
		if _, err := c.ChassisControl(t.Context(), what); (err != nil) != fails {
			t.Errorf("control %d: %v", what, err)
		}
	}
	control(chassis.ChassisControlPowerDown, false)
	if m.Power() != lab.Off || m.State().LastOffBy != "ipmi:operator" {
		t.Errorf("after power down: %+v", m.State())
	}
	control(chassis.ChassisControlPowerCycle, true) // not of a machine that is off
	control(chassis.ChassisControlHardReset, false) // answered OK, without effect
	if m.Power() != lab.Off {
		t.Error("a reset started a machine that was off")
	}
	control(chassis.ChassisControlPowerUp, false)
	boot := m.BootID()
	control(chassis.ChassisControlHardReset, false)
	if m.BootID() == boot || m.Power() != lab.On {
		t.Error("a reset did not boot")
	}
	control(chassis.ChassisControlPowerCycle, false)
	if got, err := read(t, b); err != nil || got.PowerIsOn {
		t.Errorf("within a cycle: %+v, %v", got, err)
	}
	time.Sleep(60 * time.Millisecond)
	if got, err := read(t, b); err != nil || !got.PowerIsOn || !got.LastPowerOnByCommand {
		t.Errorf("after a cycle: %+v, %v", got, err)
	}
}

func TestFaultsThatFail(t *testing.T) {
	for name, f := range map[string]ipmibmc.Faults{
		"dead":      {Dead: true},
		"hang":      {Hang: true},
		"slow":      {Delay: 2 * time.Second},
		"password":  {WrongPassword: true},
		"garbage":   {Garbage: true},
		"truncated": {Truncated: true},
		"short":     {ShortReply: true},
		"empty":     {EmptyReply: true},
		"booting":   {Booting: true},
		"busy":      {Busy: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, b := start(t, ipmibmc.Config{})
			b.SetFaults(f)
			if got, err := read(t, b); err == nil {
				t.Errorf("a reading: %+v", got)
			}
			b.SetFaults(ipmibmc.Faults{})
			if got, err := read(t, b); err != nil || !got.PowerIsOn {
				t.Errorf("healed: %+v, %v", got, err)
			}
		})
	}
}

func TestFaultsThatLie(t *testing.T) {
	m, b := start(t, ipmibmc.Config{DiesWithMains: true})
	b.SetFaults(ipmibmc.Faults{ReadsOff: true, PowerFault: true})
	if got, err := read(t, b); err != nil || got.PowerIsOn || !got.PowerFault {
		t.Errorf("reads off: %+v, %v", got, err)
	}
	_ = m.ForceOff("test")
	b.SetFaults(ipmibmc.Faults{ReadsOn: true})
	if got, err := read(t, b); err != nil || !got.PowerIsOn {
		t.Errorf("reads on: %+v, %v", got, err)
	}
	_ = m.PowerLoss("test")
	if got, err := read(t, b); err == nil {
		t.Errorf("a controller without mains: %+v", got)
	}
}

func TestIPMITool(t *testing.T) {
	exe := peers.Require(t, "ipmitool")
	m, b := start(t, ipmibmc.Config{})
	for _, suite := range []string{"3", "17"} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		run := func(args ...string) string {
			t.Helper()
			cmd := exec.CommandContext(ctx, exe, append([]string{"-I", "lanplus", "-H", b.Host(), "-p",
				strconv.Itoa(b.Port()), "-U", "admin", "-E", "-C", suite, "-N", "1", "-R", "1"}, args...)...)
			cmd.Env = append(cmd.Environ(), "IPMI_PASSWORD=adminpass")
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("suite %s: %v: %v: %s", suite, args, err, out)
			}
			return string(out)
		}
		if got := run("power", "status"); !strings.Contains(got, "Chassis Power is on") {
			t.Errorf("suite %s: %s", suite, got)
		}
		if got := run("mc", "guid", "smbios"); !strings.Contains(got, m.UUID().String()) {
			t.Errorf("suite %s: %s", suite, got)
		}
		if got := run("chassis", "status"); !strings.Contains(got, "Power Restore Policy : previous") {
			t.Errorf("suite %s: %s", suite, got)
		}
		run("power", "off")
		if m.Power() != lab.Off {
			t.Errorf("suite %s: power off had no effect", suite)
		}
		run("power", "on")
		if m.Power() != lab.On {
			t.Errorf("suite %s: power on had no effect", suite)
		}
	}
}

func TestConfigIsChecked(t *testing.T) {
	m := lab.New(lab.Config{Name: "m1"})
	defer m.Close()
	for name, cfg := range map[string]ipmibmc.Config{
		"suite":    {CipherSuites: []uint8{99}},
		"password": {Users: []ipmibmc.User{{Name: "a", Password: strings.Repeat("x", 21)}}},
		"twice":    {Users: []ipmibmc.User{{Name: "a"}, {Name: "a"}}},
	} {
		if b, err := ipmibmc.Start(m, cfg); err == nil {
			_ = b.Close()
			t.Errorf("%s: no error", name)
		}
	}
}
