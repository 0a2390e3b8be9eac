// Package fencing decides. Given the policy of a node's group, the case so far
// and one observation, Decide says what the case becomes, what may be done and
// when to look again; Check looks at each action once more, independently,
// just before it is carried out.
//
// What lives here: the vocabulary (power states, readings, identities,
// verdicts, cases, actions), the rules of safety S1 to S16 that docs/safety.md
// explains, and the reasons in words. What must not: I/O, clocks, randomness,
// clients, vendor names. Time enters only as Observation.Now. The package
// imports nothing but the standard library, and the same input gives the same
// bytes out; a test in the module's root holds it to that.
//
// Read it in this order: power.go, reading.go, identity.go (what is seen),
// verdict.go (what it means), case.go (what is remembered), decide.go (what is
// done), check.go (what must hold before it is done).
package fencing
