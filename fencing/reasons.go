package fencing

import "slices"

// Reason says in one word why something was concluded, done, held or said. The
// set is closed: each has a sentence, an explanation and a remedy in the table
// below, from which docs/reasons.md is made.
type Reason string

// Reasons of verdicts.
const (
	ReasonUnaddressed      Reason = "Unaddressed"
	ReasonNoReading        Reason = "NoReading"
	ReasonStateUnknown     Reason = "StateUnknown"
	ReasonUnreachable      Reason = "Unreachable"
	ReasonUntrusted        Reason = "Untrusted"
	ReasonRefused          Reason = "CredentialsRefused"
	ReasonForbidden        Reason = "PrivilegeMissing"
	ReasonBusy             Reason = "ProviderBusy"
	ReasonNotFound         Reason = "MachineNotFound"
	ReasonAmbiguous        Reason = "SeveralMachines"
	ReasonMalformed        Reason = "AnswerMalformed"
	ReasonMisconfigured    Reason = "Misconfigured"
	ReasonProviderFailed   Reason = "ProviderFailed"
	ReasonWrongMachine     Reason = "WrongMachine"
	ReasonIdentityUnproved Reason = "IdentityUnproved"
	ReasonWitnessConflict  Reason = "WitnessesDisagree"
	ReasonSuspended        Reason = "Suspended"
	ReasonTransitional     Reason = "InTransition"
	ReasonRestarted        Reason = "Restarted"
	ReasonPoweredOn        Reason = "PoweredOn"
	ReasonOffNotProved     Reason = "OffNotProved"
	ReasonProvedOff        Reason = "ProvedOff"
	ReasonContradiction    Reason = "Contradiction"
)

// Reasons of holds that no verdict gives.
const (
	ReasonObserveOnly    Reason = "ObserveOnly"
	ReasonBudget         Reason = "Budget"
	ReasonStorm          Reason = "Storm"
	ReasonQuorum         Reason = "Quorum"
	ReasonPaused         Reason = "Paused"
	ReasonForeignTaint   Reason = "ForeignTaint"
	ReasonTaintRemoved   Reason = "TaintRemoved"
	ReasonLeaseMissing   Reason = "LeaseMissing"
	ReasonPowerOffFailed Reason = "PowerOffFailed"
	ReasonWorkloadsStuck Reason = "WorkloadsStuck"
	ReasonActionStuck    Reason = "ActionStuck"
)

// Reasons of timeline entries.
const (
	ReasonOpened            Reason = "CaseOpened"
	ReasonNodeNotReady      Reason = "NodeNotReady"
	ReasonVerdict           Reason = "Verdict"
	ReasonReleased          Reason = "HoldReleased"
	ReasonPowerOffIntended  Reason = "PowerOffIntended"
	ReasonPowerOffAccepted  Reason = "PowerOffAccepted"
	ReasonPowerOffRefused   Reason = "PowerOffRefused"
	ReasonPowerOffLost      Reason = "PowerOffResultLost"
	ReasonTaintIntended     Reason = "TaintIntended"
	ReasonTaintWithdrawn    Reason = "TaintIntentWithdrawn"
	ReasonTaintApplied      Reason = "TaintApplied"
	ReasonTaintAdopted      Reason = "TaintAdopted"
	ReasonEvacuated         Reason = "WorkloadsGone"
	ReasonMachineOn         Reason = "MachineOn"
	ReasonNodeReady         Reason = "NodeReady"
	ReasonRelapsed          Reason = "Relapsed"
	ReasonUntaintIntended   Reason = "UntaintIntended"
	ReasonUntaintOverdue    Reason = "UntaintOverdue"
	ReasonUntaintWithdrawn  Reason = "UntaintIntentWithdrawn"
	ReasonTaintGone         Reason = "TaintGone"
	ReasonClosedRecovered   Reason = "NodeRecovered"
	ReasonClosedNodeDeleted Reason = "NodeDeleted"
	ReasonClosedReplaced    Reason = "NodeReplaced"
	ReasonClosedRestarted   Reason = "NodeRestarted"
)

// Reasons for which a healthy node's machine could not be fenced, beside those of
// verdicts.
const (
	ReasonOffWhileReady Reason = "OffWhileReady"
)

// Text is what people are told about a reason.
type Text struct {
	// Sentence says what is the case.
	Sentence string
	// Explanation says why nodefence does what it does about it.
	Explanation string
	// Remedy says what a person can do.
	Remedy string
}

// Text gives the reason's words. A reason outside the table has none.
func (r Reason) Text() (Text, bool) {
	t, ok := texts[r]
	return t, ok
}

// Remedy is what a person can do about the reason.
func (r Reason) Remedy() string { return texts[r].Remedy }

// Reasons lists all reasons in alphabetical order.
func Reasons() []Reason {
	all := make([]Reason, 0, len(texts))
	for r := range texts {
		all = append(all, r)
	}
	slices.Sort(all)
	return all
}

// failureReason maps every kind of failure to the reason of its verdict.
func failureReason(k FailureKind) Reason {
	switch k {
	case Unreachable, TimedOut:
		return ReasonUnreachable
	case Untrusted:
		return ReasonUntrusted
	case Unauthorized:
		return ReasonRefused
	case Forbidden:
		return ReasonForbidden
	case Busy:
		return ReasonBusy
	case NotFound:
		return ReasonNotFound
	case Ambiguous:
		return ReasonAmbiguous
	case Malformed:
		return ReasonMalformed
	case WrongMachine:
		return ReasonWrongMachine
	case Misconfigured:
		return ReasonMisconfigured
	}
	return ReasonProviderFailed
}
