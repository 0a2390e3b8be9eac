package ipmi_test

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	bmclib "github.com/bmc-toolbox/bmclib/v2"
	"github.com/bougou/go-ipmi/pkg/client"
	"github.com/bougou/go-ipmi/pkg/types"

	"github.com/nodefence/nodefence/fencing"
	"github.com/nodefence/nodefence/providers"
	"github.com/nodefence/nodefence/test/lab/ipmisim"
	"github.com/nodefence/nodefence/test/peers"
)

// BenchmarkRead is one whole reading, log-in to log-out, of the in-process
// controller, whose own answer takes next to nothing.
func BenchmarkRead(b *testing.B) {
	r := newRig(b, "")
	r.m.Address = r.bmc.Addr()
	for b.Loop() {
		if got := r.read(b, 5*time.Second); got.Power != fencing.On {
			b.Fatalf("%+v", got.Failure)
		}
	}
}

// BenchmarkReadSimulator is the same of ipmi_sim, most of it the simulator's own
// script.
func BenchmarkReadSimulator(b *testing.B) {
	m := simMachine(b)
	d := newDriver(b, `{"cipherSuites":[3]}`)
	for b.Loop() {
		if got := d.Read(b.Context(), m); got.Power != fencing.On {
			b.Fatalf("%+v", got.Failure)
		}
	}
}

func simMachine(t testing.TB) providers.Machine {
	t.Helper()
	peers.Require(t, "ipmi_sim")
	sim, err := ipmisim.Start(t.Context(), labMachine(t, testSpec), ipmisim.Config{Users: users(testSpec)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sim.Close)
	return providers.Machine{Node: "node-1", Address: sim.Addr(), Credentials: testSpec.Reader}
}

// TestReadingIsQuick: what a reading costs beyond the controller's own time.
func TestReadingIsQuick(t *testing.T) {
	const delay, packets, allowance = 10 * time.Millisecond, 6, 20 * time.Millisecond
	r := newRig(t, "")
	r.relay.setDelay(delay) // of each packet: 3 to log in, identity, power, log out
	var took []time.Duration
	for range 9 {
		began := time.Now()
		wantPower(t, r.read(t, 5*time.Second), fencing.On, fencing.NoFailure)
		took = append(took, time.Since(began))
	}
	if got := median(took); got > packets*delay+allowance {
		t.Errorf("a reading took %v where the controller's share is %v", got, packets*delay)
	}
}

// TestAgainstPeers measures all that can read power over IPMI on the same
// simulator in one run, taking turns. It fails only if ours is the slower one of
// those that start a process: the ratios are for the log.
func TestAgainstPeers(t *testing.T) {
	tool := peers.Require(t, "ipmitool")
	m := simMachine(t)
	host, port, _ := splitHostPort(m.Address)
	d := newDriver(t, `{"cipherSuites":[3]}`)
	contenders := []struct {
		name string
		read func(context.Context) error
		took []time.Duration
	}{
		{name: "ours, with identity", read: func(ctx context.Context) error {
			wantPower(t, d.Read(ctx, m), fencing.On, fencing.NoFailure)
			return nil
		}},
		{name: "go-ipmi's client, with identity", read: func(ctx context.Context) error { return readByLibrary(ctx, host, port, m.Credentials) }},
		{name: "ipmitool power status", read: func(ctx context.Context) error {
			cmd := exec.CommandContext(ctx, tool, "-I", "lanplus", "-H", host, "-p", strconv.Itoa(port), "-U", m.Credentials.Username,
				"-E", "-C", "3", "-L", "USER", "power", "status")
			cmd.Env = append(os.Environ(), "IPMI_PASSWORD="+m.Credentials.Password)
			return cmd.Run()
		}},
		{name: "bmclib's ipmitool driver, Open and PowerStateGet", read: func(ctx context.Context) error {
			return readByBmclib(ctx, tool, host, port, m.Credentials)
		}},
	}
	for range 15 {
		for i := range contenders {
			c := &contenders[i]
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			began := time.Now()
			if err := c.read(ctx); err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			c.took = append(c.took, time.Since(began))
			cancel()
		}
	}
	ours := median(contenders[0].took)
	for _, c := range contenders {
		got := median(c.took)
		t.Logf("median of %d: %-50s %6.1f ms, ratio %.2f", len(c.took), c.name, got.Seconds()*1000, got.Seconds()/ours.Seconds())
		if strings.Contains(c.name, "ipmitool") && ours > got {
			t.Errorf("a reading takes %v, and %s %v", ours, c.name, got)
		}
	}
}

// readByLibrary is a reading by the library's own client.
func readByLibrary(ctx context.Context, host string, port int, creds providers.Credentials) error {
	c, err := client.NewClient(host, port, creds.Username, creds.Password)
	if err != nil {
		return err
	}
	c = c.WithCipherSuiteID(types.CipherSuiteID3).WithMaxPrivilegeLevel(types.PrivilegeLevelUser)
	if err := c.Connect(ctx); err != nil {
		return err
	}
	_, err = c.GetSystemGUID(ctx)
	if err == nil {
		_, err = c.GetChassisStatus(ctx)
	}
	return errors.Join(err, c.Close(ctx))
}

// readByBmclib is a reading by bmclib, with one driver pinned.
func readByBmclib(ctx context.Context, tool, host string, port int, creds providers.Credentials) error {
	c := bmclib.NewClient(host, creds.Username, creds.Password, bmclib.WithIpmitoolPath(tool),
		bmclib.WithIpmitoolPort(strconv.Itoa(port)), bmclib.WithIpmitoolCipherSuite("3"))
	c.Registry.Drivers = c.Registry.For("ipmitool")
	if err := c.Open(ctx); err != nil {
		return err
	}
	_, err := c.GetPowerState(ctx)
	return errors.Join(err, c.Close(ctx))
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

func splitHostPort(address string) (host string, port int, err error) {
	host, p, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, err
	}
	port, err = strconv.Atoi(p)
	return host, port, err
}
