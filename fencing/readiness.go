package fencing

import "fmt"

// Readiness is whether a healthy node's machine could be fenced if it failed now.
type Readiness struct {
	// Reason is empty when it could.
	Reason Reason
	// Message says what stands in the way.
	Message string
}

// Ready tells whether the machine could be fenced.
func (r Readiness) Ready() bool { return r.Reason == "" }

// JudgeReadiness concludes from one reading of the machine of a node that is well
// (S14: what could not be fenced is told before it has to be). The zero Reading
// stands for none, where unaddressed says why. The same doubts count as for a case;
// and a machine that reads Off or Suspended while its node is Ready is not the
// node's, or its provider is wrong.
func JudgeReadiness(p Policy, x Expectation, unaddressed string, r Reading) Readiness {
	if unaddressed != "" {
		return Readiness{ReasonUnaddressed, unaddressed}
	}
	e := Evidence{Reading: bounded(r)}
	e.compare(x)
	for _, doubt := range []func(Policy, Case, Evidence, Observation) (Verdict, bool){doubtFailure, doubtIdentity, doubtConflict} {
		if v, found := doubt(p, Case{}, e, Observation{}); found {
			return Readiness{v.Reason, v.Message}
		}
	}
	if e.Power == Off || e.Power == Suspended {
		return Readiness{ReasonOffWhileReady, fmt.Sprintf("%s at %s says that the machine is %s, and the node is Ready", e.Driver, e.Address, e.Power)}
	}
	return Readiness{}
}
