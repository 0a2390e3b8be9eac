package controller

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// ElectionSettings say how the leader is elected. The times are longer than
// client-go's defaults, so that a power-off fits into what is left of the lease.
type ElectionSettings struct {
	// Namespace and Name are those of the Lease.
	Namespace, Name string
	// Identity tells this process from all others.
	Identity string
	// LeaseDuration is how long others wait before they take over. Longer than
	// RenewDeadline, which is longer than RetryPeriod.
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration
}

// DefaultElection gives the times that are used unless told otherwise.
func DefaultElection() ElectionSettings {
	return ElectionSettings{Name: "nodefence", LeaseDuration: 30 * time.Second, RenewDeadline: 20 * time.Second, RetryPeriod: 3 * time.Second}
}

// LongestAction is the longest deadline of an action that a leader can be sure to
// outlast at any time: between two renewals, one of which may fail, with the
// margin of S8.
func (s ElectionSettings) LongestAction() time.Duration {
	return s.LeaseDuration - 2*s.RetryPeriod - leaseMargin
}

func (s ElectionSettings) validate() error {
	if most := s.LongestAction(); most < patchDeadline {
		return fmt.Errorf("leader election: a lease of %s that is renewed every %s leaves %s for an action, and a taint needs %s: lengthen the lease",
			s.LeaseDuration, s.RetryPeriod, most, patchDeadline)
	}
	return nil
}

// election holds the leader's lease and knows how long it surely lasts.
type election struct {
	settings ElectionSettings
	now      func() time.Time
	// renewed is when the last successful renewal was sent; nil while not leading.
	// Sent, not answered: others count from when the API server stored it, which
	// is later.
	renewed atomic.Pointer[time.Time]
	lock    *timedLock
}

func newElection(client API, s ElectionSettings, now func() time.Time) (*election, error) {
	if err := s.validate(); err != nil {
		return nil, err
	}
	lock, err := resourcelock.New(resourcelock.LeasesResourceLock, s.Namespace, s.Name,
		client.CoreV1(), client.CoordinationV1(), resourcelock.ResourceLockConfig{Identity: s.Identity})
	if err != nil {
		return nil, fmt.Errorf("leader election: %w", err)
	}
	e := &election{settings: s, now: now}
	e.lock = &timedLock{Interface: lock, e: e}
	return e, nil
}

// Remaining is how long the lease surely lasts without another renewal.
func (e *election) Remaining() time.Duration {
	at := e.renewed.Load()
	if at == nil {
		return 0
	}
	return e.settings.LeaseDuration - elapsed(*at, e.now())
}

// elapsed is the time from a to b by the clock that has gone further: the monotonic
// one stands still while the machine is suspended, and the other one may be set
// back.
func elapsed(a, b time.Time) time.Duration {
	return max(b.Sub(a), b.Round(0).Sub(a.Round(0)))
}

// run campaigns until ctx ends or the lease is lost. lead runs while leading,
// with a context that ends with the lease.
func (e *election) run(ctx context.Context, log *zap.Logger, lead func(context.Context)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan struct{})
	led := false
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: e.lock, Name: e.settings.Name,
		LeaseDuration: e.settings.LeaseDuration, RenewDeadline: e.settings.RenewDeadline, RetryPeriod: e.settings.RetryPeriod,
		// It is released below, after everything that acts has ended: client-go
		// would release it while lead still winds up.
		ReleaseOnCancel: false,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				defer close(done)
				log.Info("leading", zap.String("identity", e.settings.Identity))
				lead(ctx)
				cancel()
			},
			// Called also by one that never led.
			OnStoppedLeading: func() { led = e.renewed.Swap(nil) != nil },
			OnNewLeader:      func(identity string) { log.Info("leader", zap.String("identity", identity)) },
		},
	})
	if err != nil {
		return fmt.Errorf("leader election: %w", err)
	}
	elector.Run(ctx)
	if !led {
		return nil
	}
	select {
	case <-done:
		e.release(log)
	case <-time.After(e.settings.RetryPeriod):
		// A driver whose library takes no context may still be at it (S8).
		log.Warn("what was begun has not ended; the leader's lease is not released: others wait until it ends")
	}
	return nil
}

// release gives the lease up once everything that acted has ended.
func (e *election) release(log *zap.Logger) {
	ctx, cancel := context.WithTimeout(context.Background(), e.settings.RetryPeriod)
	defer cancel()
	record, _, err := e.lock.Interface.Get(ctx)
	if err != nil || record.HolderIdentity != e.settings.Identity {
		return
	}
	now := metav1.NewTime(e.now())
	err = e.lock.Interface.Update(ctx, resourcelock.LeaderElectionRecord{
		LeaderTransitions: record.LeaderTransitions, LeaseDurationSeconds: 1, AcquireTime: now, RenewTime: now,
	})
	if err != nil {
		log.Info("the leader's lease was not released; others wait until it ends", zap.Error(err))
	}
}

// timedLock notes when each successful renewal was sent.
type timedLock struct {
	resourcelock.Interface
	e *election
}

// Create acquires a lease that nobody had.
func (l *timedLock) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.timed(r, func() error { return l.Interface.Create(ctx, r) })
}

// Update acquires or renews the lease.
func (l *timedLock) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.timed(r, func() error { return l.Interface.Update(ctx, r) })
}

func (l *timedLock) timed(r resourcelock.LeaderElectionRecord, write func() error) error {
	sent := l.e.now()
	err := write()
	if err == nil && r.HolderIdentity == l.e.settings.Identity {
		l.e.renewed.Store(&sent)
	}
	return err
}
