package ipmi_test

import (
	"context"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"testing"
	"time"

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

// TestAgainstIpmitool measures both on the same simulator in one run. It fails
// only if ours is slower: the ratio is for the log.
func TestAgainstIpmitool(t *testing.T) {
	tool := peers.Require(t, "ipmitool")
	m := simMachine(t)
	host, port, _ := splitHostPort(m.Address)
	d := newDriver(t, `{"cipherSuites":[3]}`)
	var ours, theirs []time.Duration
	for range 9 {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		began := time.Now()
		wantPower(t, d.Read(ctx, m), fencing.On, fencing.NoFailure)
		ours = append(ours, time.Since(began))
		cmd := exec.CommandContext(ctx, tool, "-I", "lanplus", "-H", host, "-p", strconv.Itoa(port), "-U", m.Credentials.Username,
			"-E", "-C", "3", "-L", "USER", "power", "status")
		cmd.Env = append(os.Environ(), "IPMI_PASSWORD="+m.Credentials.Password)
		began = time.Now()
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("ipmitool: %v: %s", err, out)
		}
		theirs = append(theirs, time.Since(began))
		cancel()
	}
	a, b := median(ours), median(theirs)
	t.Logf("median of %d: ours %v with identity, ipmitool %v without; ratio %.1f", len(ours), a, b, float64(b)/float64(a))
	if a > b {
		t.Errorf("a reading takes %v, and ipmitool %v", a, b)
	}
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
