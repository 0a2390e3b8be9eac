// Package providertest is the conformance suite of the drivers: what package
// providers promises of a Driver, every driver proves here, against an endpoint
// that works, refuses, hangs, lies half-way or belongs to another machine.
//
// A driver's test gives a [Harness] and calls [Run]. Everything that a driver
// returns during the suite, from the plainest reading to the error of the worst
// fault, goes through the same checks: times within the call, raw text that is
// bounded and clean, no secret anywhere, no goroutine and no session left over.
//
// What a harness cannot play it lists in Harness.Lacks with the reason, which
// the log repeats: a test that does not run must not look like one that passes.
//
// What lives here: tests of the contract. What must not: anything of a vendor
// or protocol; that belongs to the driver's own tests.
package providertest
