package providers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"github.com/nodefence/nodefence/fencing"
)

// Error is a failure of a driver, classified for decisions and metrics.
type Error struct {
	// Kind is one of the closed set of package fencing.
	Kind fencing.FailureKind
	// Op is what was tried, such as "read power state".
	Op string
	// Node and Address are where.
	Node, Address string
	// RetryAfter is how long the endpoint asked to be left alone, or zero.
	RetryAfter time.Duration
	// Err is the cause. It holds no secrets: drivers build it from parts that
	// cannot contain any.
	Err error
}

// Error says what failed, on which node and machine, and why.
func (e *Error) Error() string {
	return fmt.Sprintf("node %s, machine at %s: %s: %s: %v", e.Node, e.Address, e.Op, e.Kind, e.Err)
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// Failure is the error in the form that a Reading carries.
func (e *Error) Failure() fencing.Failure {
	return fencing.Failure{Kind: e.Kind, Message: CleanRaw(e.Op + ": " + e.Err.Error()), RetryAfter: e.RetryAfter}
}

// FailureOf gives any error the form that a Reading carries; an error that no
// driver classified is classified by what the network says.
func FailureOf(err error) fencing.Failure {
	var e *Error
	if errors.As(err, &e) {
		return e.Failure()
	}
	return fencing.Failure{Kind: ClassifyNetwork(err), Message: CleanRaw(err.Error())}
}

// ClassifyNetwork tells an endpoint that did not answer in time from one that
// cannot be reached; everything else is Failed.
func ClassifyNetwork(err error) fencing.FailureKind {
	var netErr net.Error
	var dns *net.DNSError
	var op *net.OpError
	switch {
	case err == nil:
		return fencing.NoFailure
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return fencing.TimedOut
	case errors.As(err, &dns):
		return fencing.Unreachable
	case errors.As(err, &netErr) && netErr.Timeout():
		return fencing.TimedOut
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return fencing.Unreachable
	case errors.As(err, &op) && op.Op == "dial":
		return fencing.Unreachable
	}
	return fencing.Failed
}
