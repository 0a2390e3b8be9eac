package story

import (
	"fmt"
	"time"
)

// Timing is how fast a world runs.
type Timing struct {
	// GracePeriod is the node-monitor-grace-period; Lease the kubelets' lease
	// duration, of which they renew every quarter.
	GracePeriod time.Duration
	Lease       time.Duration
	// CycleOff is how long a power cycle reads Off. Less than Hold.
	CycleOff time.Duration
	// Boot is how long a machine boots: longer than GracePeriod, so that a reboot
	// makes its node NotReady.
	Boot time.Duration

	SuspectAfter, Hold, HoldAfterPowerOff, Freshness, Interval, ReadTimeout time.Duration
	HoldAfter, PowerOffAfter, PowerOffTimeout, PowerOffRetry                time.Duration
	StableFor, MaxWait                                                      time.Duration
	// LeaderLease is the leader's lease; a killed leader's successor waits for it.
	LeaderLease, LeaderRenew, LeaderRetry time.Duration
}

// Shortened is for watching and for tests: everything in the right order, about
// four times as fast.
func Shortened() Timing {
	return Timing{
		GracePeriod: 10 * time.Second, Lease: 12 * time.Second, CycleOff: 5 * time.Second, Boot: 14 * time.Second,
		SuspectAfter: 5 * time.Second, Hold: 8 * time.Second, HoldAfterPowerOff: 4 * time.Second, Freshness: 4 * time.Second,
		Interval: 2 * time.Second, ReadTimeout: 2 * time.Second,
		HoldAfter: 3 * time.Second, PowerOffAfter: 5 * time.Second, PowerOffTimeout: 5 * time.Second, PowerOffRetry: 8 * time.Second,
		StableFor: 3 * time.Second, MaxWait: 60 * time.Second,
		LeaderLease: 12 * time.Second, LeaderRenew: 8 * time.Second, LeaderRetry: time.Second,
	}
}

// Defaults are Kubernetes' and nodefence's own defaults.
func Defaults() Timing {
	return Timing{
		GracePeriod: 50 * time.Second, Lease: 40 * time.Second, CycleOff: 15 * time.Second, Boot: 75 * time.Second,
		SuspectAfter: 15 * time.Second, Hold: 30 * time.Second, HoldAfterPowerOff: 10 * time.Second, Freshness: 10 * time.Second,
		Interval: 5 * time.Second, ReadTimeout: 8 * time.Second,
		HoldAfter: 15 * time.Second, PowerOffAfter: 60 * time.Second, PowerOffTimeout: 15 * time.Second, PowerOffRetry: 30 * time.Second,
		StableFor: 30 * time.Second, MaxWait: 5 * time.Minute,
		LeaderLease: 30 * time.Second, LeaderRenew: 20 * time.Second, LeaderRetry: 3 * time.Second,
	}
}

// String says the figures that matter to a reader of the timeline.
func (t Timing) String() string {
	return fmt.Sprintf("not Ready after %s of silence, suspect after %s, off proved by 3 readings over %s (a power cycle reads Off for %s), untaint after %s Ready",
		t.GracePeriod, t.SuspectAfter, t.Hold, t.CycleOff, t.StableFor)
}
