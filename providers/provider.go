// Package providers speaks to machines out of band: the interface that every
// driver implements, the registry of drivers, and what drivers share
// (credentials, TLS, HTTP, cleaning of raw answers).
//
// What lives here: nothing of any vendor. Each driver has a folder of its own
// below this one, imports this package and fencing, and no other driver. What
// must not: decisions. A driver maps what a machine says to a fencing.Reading
// and judges nothing; package fencing does.
package providers

import (
	"context"
	"encoding/json"
	"time"

	"github.com/nodefence/nodefence/fencing"
)

// Driver reads the power and the identity of machines and powers them off.
//
// A driver is safe for concurrent use. Every call ends by the context's deadline,
// closes what it opened on every path, and keeps the credentials to itself: they
// appear in no error, log line or reading (S13).
type Driver interface {
	// Read asks the machine for its power state, identity and hints in one
	// exchange. It never fails: what could not be read is a Reading whose Power
	// is Unknown and whose Failure says why. AskedAt is taken before the first
	// byte is sent, AnsweredAt after the last one was received.
	//
	// A driver may retry a transport error within the context's deadline, but
	// then AskedAt is the time of the request that was answered.
	Read(ctx context.Context, m Machine) fencing.Reading

	// PowerOff forces the machine off, now, without asking its operating system.
	// It proves the identity first, on the same connection and session as the
	// command (S5), and sends nothing when it cannot; then the error is an
	// *Error of kind WrongMachine, Ambiguous or whatever stood in the way.
	//
	// A nil error says that the command was accepted, not that the machine is
	// off: only readings asked for afterwards may prove that (S1). It is
	// idempotent: the refusal of a machine that is off already is no error. It
	// never restarts, cycles or deletes a machine.
	PowerOff(ctx context.Context, m Machine) error
}

// Machine is how a driver finds the machine of one Node and knows it again.
type Machine struct {
	// Node is the Node's name, for messages.
	Node string
	// Address is the endpoint: a host, host:port or URL, as the driver's page
	// says. IPv6 literals are bracketed when a port follows.
	Address string
	// System names the machine behind an endpoint that has several (for Redfish
	// the path of its ComputerSystem). Empty: the one that has the identity.
	System string
	// Fingerprint, when set, pins the endpoint's certificate: the SHA-256 of its
	// DER form, 64 hexadecimal digits, colons allowed. It overrides the
	// provider's TLS settings for this machine.
	Fingerprint string
	// Expected is the identity that the machine must have.
	Expected fencing.Expectation
	// AllowUnproved is set when the group's policy accepts a machine whose
	// identity cannot be proved (S3); one that mismatches is never accepted.
	AllowUnproved bool
	// Credentials are what to log in with.
	Credentials Credentials
}

// Settings are what a driver is made from: one provider entry of the
// configuration.
type Settings struct {
	// Name is the provider's name in the configuration.
	Name string
	// TLS says how endpoints prove themselves.
	TLS TLS
	// Options is the entry's `options` as JSON, or nil. The driver decodes it
	// strictly: an unknown or misspelt field is an error that names its path.
	Options json.RawMessage
	// Now is the clock for AskedAt and AnsweredAt. It is never nil.
	Now func() time.Time
}

// Factory makes a driver, or says what in its settings is wrong.
type Factory func(Settings) (Driver, error)

// Registry holds the drivers by the name that the configuration uses. There is
// no global one: package providers/all builds it.
type Registry map[string]Factory
