package fencing

import (
	"fmt"
	"time"
)

// VerdictKind is what the evidence says of a machine.
type VerdictKind uint8

// The verdicts. The zero value is the doubtful one.
const (
	// Unverifiable: the evidence is missing, incomplete, stale or in error.
	Unverifiable VerdictKind = iota
	// Running: the right machine, and it is powered on.
	Running
	// Rebooting: on its way through a restart.
	Rebooting
	// VerdictOff: the right machine, proved off (S1).
	VerdictOff
	// VerdictSuspended: the right machine, asleep; it will resume (S12).
	VerdictSuspended
	// Misidentified: another machine answers (S3).
	Misidentified
	// Contradicted: the evidence disagrees with itself (S11).
	Contradicted
)

var verdictNames = [...]string{"Unverifiable", "Running", "Rebooting", "Off", "Suspended", "Misidentified", "Contradicted"}

// String gives the verdict's name.
func (k VerdictKind) String() string { return enumName(verdictNames[:], uint8(k), "VerdictKind") }

// MarshalText gives the verdict's name.
func (k VerdictKind) MarshalText() ([]byte, error) {
	return enumMarshal(verdictNames[:], uint8(k), "verdict")
}

// UnmarshalText takes exactly the names above.
func (k *VerdictKind) UnmarshalText(text []byte) error {
	v, err := enumParse(verdictNames[:], string(text), "verdict")
	*k = VerdictKind(v)
	return err
}

// Verdict is a conclusion about a machine, with its reason in words.
type Verdict struct {
	Kind    VerdictKind
	Reason  Reason
	Message string
	// Since is when Kind and Reason became what they are.
	Since time.Time
}

// judge concludes from the case's evidence. The order is the order of doubt: the
// first check that finds one decides, and Off is what is left when none does.
func judge(p Policy, c Case, o Observation) Verdict {
	if c.State == Distrusted {
		return c.Verdict
	}
	if o.Unaddressed != "" {
		return Verdict{Kind: Unverifiable, Reason: ReasonUnaddressed, Message: o.Unaddressed}
	}
	e, ok := c.Newest()
	if !ok {
		return Verdict{Kind: Unverifiable, Reason: ReasonNoReading, Message: "the machine has not answered yet"}
	}
	if c.awaitsReading(e) {
		return c.Verdict
	}
	for _, doubt := range []func(Policy, Case, Evidence, Observation) (Verdict, bool){
		doubtFailure, doubtIdentity, doubtConflict, doubtState,
	} {
		if v, found := doubt(p, c, e, o); found {
			return v
		}
	}
	if e.Power == On {
		return judgeOn(c, e)
	}
	return judgeOff(p, c, o)
}

// awaitsReading tells whether the node is back and its machine has not been read
// since: what was read before says nothing of it now.
func (c Case) awaitsReading(newest Evidence) bool {
	return (c.State == Recovering || c.State == Untainting) && !c.ReadySince.IsZero() && newest.AskedAt.Before(c.ReadySince)
}

// doubtFailure: an error is not a state (S2).
func doubtFailure(_ Policy, _ Case, e Evidence, _ Observation) (Verdict, bool) {
	if !e.Failed() && e.Power != Unknown {
		return Verdict{}, false
	}
	if !e.Failed() {
		return Verdict{Kind: Unverifiable, Reason: ReasonStateUnknown,
			Message: fmt.Sprintf("%s at %s gives no power state that is known: %s", e.Driver, e.Address, e.Raw)}, true
	}
	return Verdict{Kind: Unverifiable, Reason: failureReason(e.Failure.Kind),
		Message: fmt.Sprintf("%s at %s: %s", e.Driver, e.Address, e.Failure.Message)}, true
}

// doubtIdentity: without the right machine no state means anything (S3).
func doubtIdentity(p Policy, _ Case, e Evidence, _ Observation) (Verdict, bool) {
	switch {
	case e.Match == IdentityMismatch:
		return Verdict{Kind: Misidentified, Reason: ReasonWrongMachine, Message: fmt.Sprintf("at %s %s", e.Address, e.MatchReason)}, true
	case e.Match == IdentityUnproved && !p.AllowUnproved:
		return Verdict{Kind: Unverifiable, Reason: ReasonIdentityUnproved, Message: fmt.Sprintf("at %s: %s", e.Address, e.MatchReason)}, true
	}
	return Verdict{}, false
}

// doubtConflict: a second witness that disagrees (S2).
func doubtConflict(_ Policy, _ Case, e Evidence, _ Observation) (Verdict, bool) {
	if e.Hints.Conflict == "" {
		return Verdict{}, false
	}
	return Verdict{Kind: Unverifiable, Reason: ReasonWitnessConflict, Message: e.Hints.Conflict}, true
}

// doubtState: asleep or between two states is not off (S2, S12).
func doubtState(_ Policy, _ Case, e Evidence, _ Observation) (Verdict, bool) {
	switch {
	case e.Power == Suspended:
		return Verdict{Kind: VerdictSuspended, Reason: ReasonSuspended, Message: "the machine is suspended and will resume with its old memory"}, true
	case e.Power.Transitional():
		return Verdict{Kind: Rebooting, Reason: ReasonTransitional, Message: "the machine reads " + e.Power.String()}, true
	}
	return Verdict{}, false
}

// judgeOn tells a machine that runs from one that is just starting again.
func judgeOn(c Case, e Evidence) Verdict {
	switch {
	case e.Hints.LastReset.After(c.OpenedAt):
		return Verdict{Kind: Rebooting, Reason: ReasonRestarted,
			Message: fmt.Sprintf("the machine is on and was reset at %s, after it fell silent", e.Hints.LastReset.UTC().Format(time.RFC3339))}
	case wasOff(c):
		return Verdict{Kind: Rebooting, Reason: ReasonRestarted, Message: "the machine is on again after it read Off"}
	}
	return Verdict{Kind: Running, Reason: ReasonPoweredOn, Message: fmt.Sprintf("the machine is on: %s at %s says so", e.Driver, e.Address)}
}

// wasOff tells whether an earlier reading of this case said Off.
func wasOff(c Case) bool {
	for _, e := range c.Readings {
		if e.SaysOff() && e.Match != IdentityMismatch {
			return true
		}
	}
	return false
}

// judgeOff holds the streak against S1 and S4. A machine that was proved off and
// tainted, and reads Off still, needs no new proof.
func judgeOff(p Policy, c Case, o Observation) Verdict {
	if c.State == Tainted {
		return Verdict{Kind: VerdictOff, Reason: ReasonProvedOff, Message: "the machine reads Off still"}
	}
	if missing := c.lacking(p, o); missing != "" {
		return Verdict{Kind: Unverifiable, Reason: ReasonOffNotProved, Message: "the machine reads Off, not yet proved: " + missing}
	}
	e, _ := c.Newest()
	return Verdict{Kind: VerdictOff, Reason: ReasonProvedOff,
		Message: fmt.Sprintf("%d consecutive Off readings by %s (%s at %s), the first answered at %s; %s",
			c.Streak.Count, c.Streak.Provider, e.Driver, e.Address, c.Streak.First.UTC().Format("15:04:05"), e.MatchReason)}
}
