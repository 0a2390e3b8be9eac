package fencing

import (
	"fmt"
	"time"
)

// Mode is how far nodefence may go for the nodes of a group.
type Mode uint8

// The modes. The zero value changes nothing.
const (
	// Observe: decide and report, change nothing.
	Observe Mode = iota
	// Confirm: taint the Node of a machine that is proved off. The
	// configuration's default.
	Confirm
	// Fence: also power the machine off.
	Fence
)

var modeNames = [...]string{"Observe", "Confirm", "Fence"}

// String gives the mode's name.
func (m Mode) String() string { return enumName(modeNames[:], uint8(m), "Mode") }

// MarshalText gives the mode's name.
func (m Mode) MarshalText() ([]byte, error) { return enumMarshal(modeNames[:], uint8(m), "mode") }

// UnmarshalText takes exactly the names above.
func (m *Mode) UnmarshalText(text []byte) error {
	v, err := enumParse(modeNames[:], string(text), "mode")
	*m = Mode(v)
	return err
}

// Policy is what may be done for the nodes of one group, and when. All durations
// are positive unless a field says otherwise; Validate holds the bounds.
type Policy struct {
	// Group is the group's name in the configuration, for messages.
	Group string
	// Mode is how far nodefence may go.
	Mode Mode

	// SuspectAfter is how long a node's Lease may go without a renewal before
	// its machine is read. The kubelet renews every 10 s, so 15 s is one and a
	// half periods. Reading early costs nothing in safety: without NotReady
	// nothing but reading happens.
	SuspectAfter time.Duration

	// Readings is how many consecutive Off readings prove Off (S1). At least 2, at
	// most MaxReadings.
	Readings int
	// Hold is how long those readings must span (S1): longer than the longest
	// Off of a power cycle.
	Hold time.Duration
	// HoldAfterPowerOff takes the place of Hold after a power-off of our own.
	HoldAfterPowerOff time.Duration
	// Freshness is how old the newest Off reading may be when it is used (S1).
	Freshness time.Duration
	// ReadInterval is the time between two readings of one machine. It is less
	// than Freshness, so that a proof stays fresh.
	ReadInterval time.Duration
	// ReadTimeout is the deadline of one reading.
	ReadTimeout time.Duration
	// AllowUnproved accepts a machine whose identity cannot be proved (S3). One
	// that mismatches is never accepted.
	AllowUnproved bool

	// HoldAfter is how long a verdict that permits nothing must last, on a node
	// that is not Ready, before the case is held and people are told.
	HoldAfter time.Duration
	// AlertEvery is how often a held case is announced again.
	AlertEvery time.Duration

	// PowerOffAfter is how long a node must have been not Ready, by our own
	// clock, before its machine is powered off (S5): time for kdump and for
	// watchdogs. Mode Fence only.
	PowerOffAfter time.Duration
	// PowerOffTimeout is the deadline of one power-off command.
	PowerOffTimeout time.Duration
	// PowerOffRetry is how long a power-off may take to show before it is tried
	// again.
	PowerOffRetry time.Duration
	// PowerOffAttempts is how often it is tried before the case is held. At
	// least 1.
	PowerOffAttempts int

	// StableFor is how long a node must have been Ready before its taint goes
	// (S10).
	StableFor time.Duration
	// MaxWait is how long the taint may stay on a Ready node while something has
	// not left it (S10); then it goes all the same, with an alert.
	MaxWait time.Duration

	// SurveyEvery is how often the machine of a healthy node is read, to know
	// before it fails whether it could be fenced (S14); 0 for never.
	SurveyEvery time.Duration

	// Budget bounds what happens at once (S6).
	Budget Budget
}

// Budget bounds how much of the cluster may be acted on at once (S6). It is the
// same for all groups.
type Budget struct {
	// MaxConcurrent is how many cases may be in action (being powered off or
	// tainted, until their workloads have left) at once. At least 1.
	MaxConcurrent int
	// MaxUnhealthy is how many of the cluster's nodes may be not Ready; above it
	// the network or the control plane is suspected and everything is held.
	// Percent of all nodes when MaxUnhealthyPercent is set.
	MaxUnhealthy        int
	MaxUnhealthyPercent bool
}

// Limit is the highest number of nodes not Ready that the budget allows among
// total nodes. A percentage is rounded down, but one node may always fail.
func (b Budget) Limit(total int) int {
	if !b.MaxUnhealthyPercent {
		return b.MaxUnhealthy
	}
	return max(1, total*b.MaxUnhealthy/100)
}

// DefaultPolicy is the policy of a group that sets nothing. docs/configuration.md
// explains each value.
func DefaultPolicy() Policy {
	return Policy{
		Mode:              Confirm,
		SuspectAfter:      15 * time.Second,
		Readings:          3,
		Hold:              30 * time.Second,
		HoldAfterPowerOff: 10 * time.Second,
		Freshness:         10 * time.Second,
		ReadInterval:      5 * time.Second,
		ReadTimeout:       8 * time.Second,
		HoldAfter:         15 * time.Second,
		AlertEvery:        5 * time.Minute,
		PowerOffAfter:     60 * time.Second,
		PowerOffTimeout:   15 * time.Second,
		PowerOffRetry:     30 * time.Second,
		PowerOffAttempts:  3,
		StableFor:         30 * time.Second,
		MaxWait:           5 * time.Minute,
		SurveyEvery:       15 * time.Minute,
		Budget:            Budget{MaxConcurrent: 1, MaxUnhealthy: 40, MaxUnhealthyPercent: true},
	}
}

// FieldError is a value of a policy that is out of bounds.
type FieldError struct {
	// Field is the Policy field's name.
	Field string
	// Problem says what is wrong and what is allowed.
	Problem string
}

// Error names the field and the problem.
func (e FieldError) Error() string { return e.Field + ": " + e.Problem }

// Validate gives every value that is out of bounds. The floors are what keeps
// the rules meaningful: one reading proves nothing, and a hold shorter than a
// power cycle's Off mistakes a reboot for a failure.
func (p Policy) Validate() []FieldError {
	var errs []FieldError
	check := func(ok bool, field, format string, args ...any) {
		if !ok {
			errs = append(errs, FieldError{field, fmt.Sprintf(format, args...)})
		}
	}
	check(int(p.Mode) < len(modeNames), "Mode", "is none of %q", modeNames)
	check(p.Readings >= 2 && p.Readings <= MaxReadings, "Readings", "is %d, but at least 2 are needed for a proof, and at most %d are kept", p.Readings, MaxReadings)
	check(p.PowerOffAttempts >= 1, "PowerOffAttempts", "is %d, but must be at least 1", p.PowerOffAttempts)
	for _, d := range []struct {
		field string
		value time.Duration
		least time.Duration
		most  time.Duration
	}{
		{"SuspectAfter", p.SuspectAfter, time.Second, time.Hour},
		{"Hold", p.Hold, time.Second, time.Hour},
		{"HoldAfterPowerOff", p.HoldAfterPowerOff, time.Second, time.Hour},
		{"Freshness", p.Freshness, time.Second, time.Minute},
		{"ReadInterval", p.ReadInterval, 100 * time.Millisecond, time.Minute},
		{"ReadTimeout", p.ReadTimeout, 100 * time.Millisecond, time.Minute},
		{"HoldAfter", p.HoldAfter, 0, time.Hour},
		{"AlertEvery", p.AlertEvery, time.Second, 24 * time.Hour},
		{"PowerOffAfter", p.PowerOffAfter, 0, time.Hour},
		{"PowerOffTimeout", p.PowerOffTimeout, 100 * time.Millisecond, 5 * time.Minute},
		{"PowerOffRetry", p.PowerOffRetry, time.Second, time.Hour},
		{"StableFor", p.StableFor, 0, time.Hour},
		{"MaxWait", p.MaxWait, time.Second, 24 * time.Hour},
	} {
		check(d.value >= d.least && d.value <= d.most, d.field, "is %s, but must be between %s and %s", d.value, d.least, d.most)
	}
	check(p.SurveyEvery == 0 || p.SurveyEvery >= time.Minute && p.SurveyEvery <= 24*time.Hour, "SurveyEvery", "is %s, but must be 0s for never, or between 1m0s and 24h0m0s", p.SurveyEvery)
	check(p.ReadInterval < p.Freshness, "ReadInterval", "is %s, but must be less than freshness (%s), or a proof is stale before it is complete", p.ReadInterval, p.Freshness)
	check(p.ReadTimeout <= p.Freshness, "ReadTimeout", "is %s, but must not be longer than freshness (%s), or a slow answer never counts", p.ReadTimeout, p.Freshness)
	check(p.StableFor <= p.MaxWait, "StableFor", "is %s, but must not be longer than maxWait (%s)", p.StableFor, p.MaxWait)
	check(p.Budget.MaxConcurrent >= 1, "Budget.MaxConcurrent", "is %d, but must be at least 1", p.Budget.MaxConcurrent)
	check(p.Budget.MaxUnhealthy >= 1 && (!p.Budget.MaxUnhealthyPercent || p.Budget.MaxUnhealthy <= 100),
		"Budget.MaxUnhealthy", "is %d, but must be at least 1, and at most 100 as a percentage", p.Budget.MaxUnhealthy)
	return errs
}
