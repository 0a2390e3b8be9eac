package lab

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// EventKind names something that happened to a machine.
type EventKind string

const (
	PoweredOn         EventKind = "PoweredOn"         // main power came; written before anything runs
	PoweredOff        EventKind = "PoweredOff"        // main power is gone; written after everything has ended
	BootStarted       EventKind = "BootStarted"       // after power on or reset, with the new boot ID
	OSUp              EventKind = "OSUp"              // the operating system runs
	OSFailed          EventKind = "OSFailed"          // the operating system did not start
	ShutdownRequested EventKind = "ShutdownRequested" // an orderly shutdown was asked for
	ResetDone         EventKind = "ResetDone"         // a warm reset; power stayed on
	Hung              EventKind = "Hung"              // the operating system stands still, power on
	Unhung            EventKind = "Unhung"            // it goes on
	SuspendedNow      EventKind = "Suspended"         // suspended to memory
	Resumed           EventKind = "Resumed"           // resumed from memory
	MainsLost         EventKind = "MainsLost"         // the supply is gone
	MainsBack         EventKind = "MainsBack"         // the supply is back
)

// Event is one line of a machine's history.
type Event struct {
	At     time.Time
	Kind   EventKind
	By     string // who asked
	BootID string // of the boot that the event belongs to, if any
}

func (e Event) String() string {
	return fmt.Sprintf("%s %s by %s boot %s", e.At.Format("15:04:05.000"), e.Kind, e.By, e.BootID)
}

// History is what happened to a machine, oldest first.
type History []Event

func (h History) String() string {
	var b strings.Builder
	for _, e := range h {
		fmt.Fprintln(&b, e)
	}
	return b.String()
}

// Count says how many events of a kind there are.
func (h History) Count(kind EventKind) int {
	n := 0
	for _, e := range h {
		if e.Kind == kind {
			n++
		}
	}
	return n
}

// Last returns the newest event of a kind.
func (h History) Last(kind EventKind) (Event, bool) {
	for _, e := range slices.Backward(h) {
		if e.Kind == kind {
			return e, true
		}
	}
	return Event{}, false
}

// OffThroughout says whether the machine was off at from, at to, and at every
// instant between. Of several events at one instant the last decides what was
// true at it. A time before the history began counts as not off: nothing is
// known about it.
func (h History) OffThroughout(from, to time.Time) bool {
	off := false
	for _, e := range h {
		switch {
		case e.At.After(to):
		case e.Kind == PoweredOn && e.At.After(from):
			return false
		case e.Kind == PoweredOn:
			off = false
		case e.Kind == PoweredOff && !e.At.After(from):
			off = true
		}
	}
	return off && !to.Before(from)
}

// OffAt says whether the machine was off at t.
func (h History) OffAt(t time.Time) bool { return h.OffThroughout(t, t) }
