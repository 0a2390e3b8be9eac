package fencing

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Bounds of what a case keeps, so that its object stays small however long it
// lasts.
const (
	// MaxReadings is how many of the newest readings are kept, the one that began
	// the streak among them.
	MaxReadings = 20
	// MaxTimeline is how many of the newest timeline entries are kept, beside
	// the first one.
	MaxTimeline = 60
)

// CaseState is where a case stands.
type CaseState uint8

// The states, in the order of a whole life. The zero value is no case.
const (
	NoCase CaseState = iota
	// Suspected: the node is silent; evidence is gathered; nothing is intended.
	Suspected
	// PoweringOffMachine: a power-off is intended or sent; its proof is awaited.
	PoweringOffMachine
	// Tainting: off is proved and the taint is intended.
	Tainting
	// Tainted: the taint is on the Node; workloads are leaving or have left.
	Tainted
	// Recovering: the machine or the node is back; the taint waits until nothing
	// needs it any more.
	Recovering
	// Untainting: the removal of the taint is intended.
	Untainting
	// Distrusted: the evidence contradicted itself (S11). The taint is withdrawn
	// and nothing more is done until a person deletes the case.
	Distrusted
	// Closed: the end.
	Closed
)

var stateNames = [...]string{"", "Suspected", "PoweringOff", "Tainting", "Tainted", "Recovering", "Untainting", "Distrusted", "Closed"}

// String gives the state's name.
func (s CaseState) String() string { return enumName(stateNames[:], uint8(s), "CaseState") }

// MarshalText gives the state's name.
func (s CaseState) MarshalText() ([]byte, error) {
	return enumMarshal(stateNames[:], uint8(s), "case state")
}

// UnmarshalText takes exactly the names above.
func (s *CaseState) UnmarshalText(text []byte) error {
	v, err := enumParse(stateNames[:], string(text), "case state")
	*s = CaseState(v)
	return err
}

// Case is one incident of one node, from the first doubt to the close. It holds
// everything that a decision needs from the past, so that a controller that
// starts anew goes on where the last one was (S9).
type Case struct {
	Name    string
	Node    string
	NodeUID string
	// BootID is the boot ID that the node had when it fell silent. A node that
	// returns with it never went off (S11).
	BootID string
	Group  string

	State    CaseState
	OpenedAt time.Time
	ClosedAt time.Time
	// LeaseRenewedAt is the Lease's renewal time when the case was opened.
	LeaseRenewedAt time.Time
	// NotReadySince is our own clock of continuous not-Ready; zero while Ready.
	NotReadySince time.Time
	// ReadySince is our own clock of continuous Ready; zero while not.
	ReadySince time.Time

	Verdict Verdict
	Hold    Hold
	Streak  Streak
	// Refusals counts consecutive readings whose credentials were refused.
	Refusals int
	Readings []Evidence
	PowerOff PowerOffRecord
	Taint    TaintRecord
	Timeline []Entry
}

// Evidence is a reading and how its identity compares with the Node's.
type Evidence struct {
	Reading
	Match       IdentityMatch
	MatchReason string
}

// Hold says why a case may not go on.
type Hold struct {
	// Reason is empty when the case is not held.
	Reason  Reason
	Message string
	// Since is when the hold began. Without a Reason it is since when the case
	// has waited for a verdict that lasts, or zero.
	Since time.Time
	// AlertedAt is when people were last told.
	AlertedAt time.Time
}

// PowerOffRecord is what a case knows of its own power-offs.
type PowerOffRecord struct {
	// Attempts is how many were intended.
	Attempts int
	// IntendedAt is when the latest was stored, before it was sent (S9).
	IntendedAt time.Time
	// EndedAt is when the latest command ended, or was given up for lost with
	// the controller that had sent it; zero while it is under way.
	EndedAt time.Time
	// FirstOffAt is when the first reading was answered that was begun after
	// EndedAt and said Off; zero while there is none. Only a streak that begins
	// with it may be of our own making.
	FirstOffAt time.Time
	// Failure is why the latest was not accepted.
	Failure Failure
}

// TaintRecord is what a case knows of its taint.
type TaintRecord struct {
	// OffSince is when the first reading of the proof was answered, and
	// LastReset what the provider then gave as the last reset time.
	OffSince, LastReset time.Time
	// IntendedAt is when the taint was decided and stored, before it was set.
	IntendedAt time.Time
	// AppliedAt is when it was first seen on the Node.
	AppliedAt time.Time
	// EvacuatedAt is when everything that had to leave had left.
	EvacuatedAt time.Time
	// UntaintIntendedAt is when its removal was decided and stored.
	UntaintIntendedAt time.Time
	// RemovedAt is when it was first seen to be gone.
	RemovedAt time.Time
}

// on tells whether the taint is on the Node, as far as the case knows.
func (t TaintRecord) on() bool { return !t.AppliedAt.IsZero() && t.RemovedAt.IsZero() }

// Entry is one line of a case's timeline.
type Entry struct {
	At       time.Time
	Severity Severity
	Reason   Reason
	Message  string
}

// Held tells whether the case may not go on.
func (c Case) Held() bool { return c.Hold.Reason != "" }

// Open tells whether there is a case that is not closed.
func (c Case) Open() bool { return c.State != NoCase && c.State != Closed }

// InAction tells whether the case counts against the budget (S6): from the
// intent to touch the machine or the Node until the workloads have left.
func (c Case) InAction() bool {
	switch c.State {
	case PoweringOffMachine, Tainting:
		return true
	case Tainted, Recovering, Untainting:
		return c.Taint.EvacuatedAt.IsZero()
	}
	return false
}

// Newest gives the newest reading, if there is one.
func (c Case) Newest() (Evidence, bool) {
	if len(c.Readings) == 0 {
		return Evidence{}, false
	}
	return c.Readings[len(c.Readings)-1], true
}

// clone copies what Decide may change, so that its argument stays as it was.
func (c Case) clone() Case {
	c.Readings = slices.Clone(c.Readings)
	c.Timeline = slices.Clone(c.Timeline)
	return c
}

// CaseName is the name of the case of one incident: the same for every
// controller that sees the same node fall silent after the same renewal, so that
// two of them cannot open two cases (S8).
func CaseName(node NodeFacts, lease LeaseFacts) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%s/%d", node.UID, node.BootID, lease.RenewedAt.UnixMicro()))
	name := node.Name
	// An object's name has at most 253 characters (RFC 1123 subdomain).
	if len(name) > 240 {
		name = strings.TrimRight(name[:240], "-.")
	}
	return fmt.Sprintf("%s-%x", name, sum[:5])
}
