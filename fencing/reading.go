package fencing

import "time"

// MaxRawLength bounds Reading.Raw, in bytes. It is enough for the line that
// counts and keeps a case object small whatever a BMC sends.
const MaxRawLength = 512

// Reading is one observation of one machine by one provider. A reading that
// failed is a reading too: its Power is Unknown and Failure says why.
type Reading struct {
	// Provider is the provider's name in the configuration.
	Provider string
	// Driver is what answered, such as "redfish" or, of a driver with several
	// protocols, "bmc/dell".
	Driver string
	// Address is where the machine was asked, without credentials.
	Address string
	// AskedAt and AnsweredAt are the controller's clock before the first and
	// after the last byte. A reading is as old as AskedAt: the state may have
	// changed while the answer was under way.
	AskedAt, AnsweredAt time.Time
	// Power is the machine's power state.
	Power PowerState
	// Identity is what the machine says of itself, as read in the same exchange
	// as Power.
	Identity Identity
	// Hints are the further facts that the provider has. They may veto, and
	// never prove.
	Hints Hints
	// Failure is why Power or Identity could not be read; the zero value means
	// that nothing failed.
	Failure Failure
	// Raw is the part of the answer that counted, cut to MaxRawLength, without
	// secrets.
	Raw string
}

// Hints are facts beside the power state. Each may be missing, and each is known
// to be wrong on some hardware: a hint makes a verdict more careful, never less.
type Hints struct {
	// LastReset is when the machine was last reset or powered on, by the
	// provider's clock; zero when it does not say.
	LastReset time.Time
	// BootProgress is how far the machine has booted, in Redfish's words
	// (ComputerSystem.BootProgress.LastState), or empty.
	BootProgress string
	// RestorePolicy is what the machine does when power returns.
	RestorePolicy RestorePolicy
	// Conflict, when not empty, says which second witness of the same provider
	// disagrees with Power (a chassis that is On while its system is Off). A
	// reading with a conflict is not counted as Off.
	Conflict string
}

// RestorePolicy is what a machine does when mains power returns (IPMI 2.0
// section 28.2 bits 6:5 of the current power state; Redfish
// ComputerSystem.PowerRestorePolicy).
type RestorePolicy uint8

// The restore policies. The zero value means that the provider does not say.
const (
	RestoreUnknown RestorePolicy = iota
	// RestoreAlwaysOff: it stays off until somebody powers it on.
	RestoreAlwaysOff
	// RestoreAlwaysOn: it starts by itself.
	RestoreAlwaysOn
	// RestoreLastState: it returns to the state that it had.
	RestoreLastState
)

var restoreNames = [...]string{"", "AlwaysOff", "AlwaysOn", "LastState"}

// String gives the policy's name, empty when unknown.
func (r RestorePolicy) String() string { return enumName(restoreNames[:], uint8(r), "RestorePolicy") }

// MarshalText gives the policy's name, empty when unknown.
func (r RestorePolicy) MarshalText() ([]byte, error) {
	return enumMarshal(restoreNames[:], uint8(r), "restore policy")
}

// UnmarshalText takes exactly the names above.
func (r *RestorePolicy) UnmarshalText(text []byte) error {
	v, err := enumParse(restoreNames[:], string(text), "restore policy")
	*r = RestorePolicy(v)
	return err
}

// Failure is why a provider could not do what it was asked to.
type Failure struct {
	// Kind is one of a closed set: metrics and decisions use it.
	Kind FailureKind
	// Message says what failed, where, what was tried and what to do next. It
	// holds no secrets.
	Message string
	// RetryAfter is how long the provider asked to be left alone; zero when it
	// did not ask.
	RetryAfter time.Duration
}

// FailureKind classifies failures of providers.
type FailureKind uint8

// The kinds of failure.
const (
	// NoFailure: it worked.
	NoFailure FailureKind = iota
	// Unreachable: no connection (refused, no route, name not found).
	Unreachable
	// TimedOut: no complete answer within the deadline.
	TimedOut
	// Untrusted: TLS could not prove the other end (CA, pin, expiry, name).
	Untrusted
	// Unauthorized: the credentials were refused.
	Unauthorized
	// Forbidden: the credentials are good, their privilege is not enough.
	Forbidden
	// Busy: the provider asks to come back later (503, session limit, starting,
	// throttled).
	Busy
	// NotFound: the address answers, but knows no such machine.
	NotFound
	// Ambiguous: several machines answer at the address, and none is proved to
	// be the Node's.
	Ambiguous
	// Malformed: an answer that is not what the protocol says.
	Malformed
	// WrongMachine: the operation was not begun because another machine answers.
	WrongMachine
	// Misconfigured: the configuration or a Secret cannot be used.
	Misconfigured
	// Failed: the provider refused or failed for a reason of its own.
	Failed
)

var failureNames = [...]string{
	"", "Unreachable", "TimedOut", "Untrusted", "Unauthorized", "Forbidden", "Busy",
	"NotFound", "Ambiguous", "Malformed", "WrongMachine", "Misconfigured", "Failed",
}

// String gives the kind's name, empty for NoFailure.
func (k FailureKind) String() string { return enumName(failureNames[:], uint8(k), "FailureKind") }

// MarshalText gives the kind's name.
func (k FailureKind) MarshalText() ([]byte, error) {
	return enumMarshal(failureNames[:], uint8(k), "failure kind")
}

// UnmarshalText takes exactly the names above.
func (k *FailureKind) UnmarshalText(text []byte) error {
	v, err := enumParse(failureNames[:], string(text), "failure kind")
	*k = FailureKind(v)
	return err
}

// Failed tells whether the reading's power state could not be read.
func (r Reading) Failed() bool { return r.Failure.Kind != NoFailure }

// SaysOff tells whether the reading, taken alone, is a clean answer of Off: no
// failure and no second witness against it (S2).
func (r Reading) SaysOff() bool {
	return r.Power == Off && !r.Failed() && r.Hints.Conflict == ""
}
