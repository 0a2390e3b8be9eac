// Package controller carries decisions out: it observes the cluster and the
// machines, lets package fencing decide, stores the case, and only then acts.
//
// A node's way through one turn of the loop is in loop.go; observe.go gathers
// what is known, record.go stores and tells, act.go changes nodes and machines
// after a last look at the API server itself (lastlook.go). leader.go makes sure
// that one controller acts.
//
// What lives here: informers, the work queue, leader election, the calls to the
// API server and to providers. What must not: judgement. Whether something may
// be done is decided in package fencing and nowhere else.
package controller
