package providertest

import (
	"slices"
	"testing"
	"time"

	"github.com/nodefence/nodefence/fencing"
	"github.com/nodefence/nodefence/providers"
)

// Harness is what a driver's test brings to the suite.
type Harness struct {
	// Start makes a machine as the spec says, an endpoint in front of it, and a
	// driver that can speak to it. It cleans up by t.Cleanup.
	Start func(t *testing.T, spec Spec) *Endpoint
	// Lacks lists what the harness cannot play, each with the reason why. A
	// test that needs it is skipped with that reason; anything not listed here
	// must work.
	Lacks map[Capability]string
	// Timeout is enough for one healthy call; 5 s when zero.
	Timeout time.Duration
	// Impatient is the deadline that is given to calls that are bound to fail
	// by it; 400 ms when zero. It must leave time for a healthy call.
	Impatient time.Duration
	// Slack is how long after its context's end a call may return; 200 ms when
	// zero.
	Slack time.Duration
}

// Spec is the machine and the accounts that the suite wants.
type Spec struct {
	// UUID and Serial are the machine's, as a Node would report them.
	UUID, Serial string
	// Operator may power the machine off. Reader may only read.
	Operator, Reader providers.Credentials
}

// Endpoint is one machine behind one endpoint, and the strings on which the
// suite plays. Functions whose capability the harness lacks may be nil.
type Endpoint struct {
	// Driver speaks to the endpoint.
	Driver providers.Driver
	// Machine holds Address and, as needed, System and Fingerprint. The suite
	// fills in the rest.
	Machine providers.Machine
	// Set brings the machine truly into a state, at once: On, Off, and as the
	// capabilities allow PoweringOff and Suspended.
	Set func(fencing.PowerState)
	// Get is the machine's true state.
	Get func() fencing.PowerState
	// Play makes the endpoint misbehave; Healthy heals it.
	Play func(Capability)
	// Delay holds back every answer (or packet) of the endpoint for so long.
	Delay func(time.Duration)
	// LogIns counts attempts to log in so far, the refused ones included.
	LogIns func() int
	// Sessions counts the sessions that are open on the endpoint.
	Sessions func() int
	// Commands counts requests so far that would change the machine's power,
	// whether the endpoint carried them out or refused them.
	Commands func() int
}

// Capability names something that a harness may be unable to play.
type Capability string

// The faults, played by Endpoint.Play.
const (
	// Healthy ends every fault.
	Healthy Capability = "healthy"
	// Hangs: the endpoint takes requests and never answers one.
	Hangs Capability = "hangs"
	// HangsLater: it lets in (session, TLS, first answer), and then never
	// answers.
	HangsLater Capability = "hangs later"
	// Closed: nothing listens at the address any more.
	Closed Capability = "closed"
	// Garbage: it answers with noise.
	Garbage Capability = "garbage"
	// Truncated: its answers end half-way.
	Truncated Capability = "truncated"
	// NoState: it answers well, without a power state.
	NoState Capability = "no state"
	// NoIdentity: it answers well, and has no identity to tell.
	NoIdentity Capability = "no identity"
	// Busy: it answers that it is not ready.
	Busy Capability = "busy"
	// RefusesWhenOff: it refuses to power off a machine that is off.
	RefusesWhenOff Capability = "refuses when off"
)

// What else a harness may lack.
const (
	// Slow: Endpoint.Delay.
	Slow Capability = "slow"
	// PoweringOff and Suspended: Endpoint.Set takes these states.
	PoweringOff Capability = "powering off"
	Suspended   Capability = "suspended"
	// Accounts: the endpoint checks passwords.
	Accounts Capability = "accounts"
	// Privileges: the endpoint has accounts that may only read.
	Privileges Capability = "privileges"
	// CountsLogIns, CountsSessions and CountsCommands: the counters.
	CountsLogIns   Capability = "counts log-ins"
	CountsSessions Capability = "counts sessions"
	CountsCommands Capability = "counts commands"
	// UUID: the driver's machines identify themselves by an SMBIOS UUID.
	UUID Capability = "uuid"
	// Identity: the driver can tell which machine answers at all.
	Identity Capability = "identity"
)

var capabilities = []Capability{
	Hangs, HangsLater, Closed, Garbage, Truncated, NoState, NoIdentity, Busy, RefusesWhenOff,
	Slow, PoweringOff, Suspended, Accounts, Privileges, CountsLogIns, CountsSessions, CountsCommands,
	UUID, Identity,
}

// checked is the harness with its defaults, after a look at its list: a typo in
// Lacks would hide a test.
func (h Harness) checked(t *testing.T) Harness {
	t.Helper()
	for c, reason := range h.Lacks {
		if !slices.Contains(capabilities, c) {
			t.Fatalf("Harness.Lacks has %q, which is no capability", c)
		}
		if reason == "" {
			t.Fatalf("Harness.Lacks[%q] gives no reason", c)
		}
		t.Logf("LACKS %s: %s", c, reason)
	}
	h.Timeout = orDefault(h.Timeout, 5*time.Second)
	h.Impatient = orDefault(h.Impatient, 400*time.Millisecond)
	h.Slack = orDefault(h.Slack, 200*time.Millisecond)
	return h
}

func orDefault(d, otherwise time.Duration) time.Duration {
	if d == 0 {
		return otherwise
	}
	return d
}

// needs skips a test whose capabilities the harness lacks, with the reason.
func (h Harness) needs(t *testing.T, caps ...Capability) {
	t.Helper()
	for _, c := range caps {
		if reason, lacks := h.Lacks[c]; lacks {
			t.Skipf("does not apply, the endpoint lacks %q: %s", c, reason)
		}
	}
}
