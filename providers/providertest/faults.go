package providertest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/nodefence/nodefence/fencing"
)

// faults are what may stand between a driver and its machine, with the kinds of
// failure that say so.
var faults = []struct {
	name  Capability
	kinds []fencing.FailureKind
}{
	{Hangs, []fencing.FailureKind{fencing.TimedOut}},
	{HangsLater, []fencing.FailureKind{fencing.TimedOut}},
	{Closed, []fencing.FailureKind{fencing.Unreachable}},
	{Garbage, []fencing.FailureKind{fencing.Malformed, fencing.TimedOut, fencing.Failed, fencing.Unreachable}},
	{Truncated, []fencing.FailureKind{fencing.Malformed, fencing.TimedOut, fencing.Failed, fencing.Unreachable}},
	{NoState, []fencing.FailureKind{fencing.Malformed, fencing.Failed}},
	{Busy, []fencing.FailureKind{fencing.Busy, fencing.Failed}},
}

// testFaults: a reading that failed is Unknown, says why, and comes by the
// deadline (S2). When the fault is over, the driver reads again: nothing of it
// stays behind.
func testFaults(t *testing.T, h Harness) {
	for _, f := range faults {
		for _, truth := range []fencing.PowerState{fencing.On, fencing.Off} {
			t.Run(string(f.name)+" "+truth.String(), func(t *testing.T) {
				h.needs(t, f.name)
				s := start(t, h)
				s.end.Set(truth)
				s.end.Play(f.name)
				s.timeout = s.h.Impatient
				s.allowMute = true
				r := s.read(t)
				if r.Power != fencing.Unknown || !contains(f.kinds, r.Failure.Kind) {
					t.Errorf("%v, failure %v (wanted %v): %s", r.Power, r.Failure.Kind, f.kinds, r.Failure.Message)
				}
				if f.name == Closed {
					return // the harness need not be able to open the same port again
				}
				s.end.Play(Healthy)
				// What the endpoint opened for answers that nobody could read is
				// its own.
				s.already = s.sessions()
				s.timeout = s.h.Timeout
				s.allowMute = false
				if r := s.read(t); r.Failed() || r.Power != truth {
					t.Errorf("healed: %v, failure %v: %s", r.Power, r.Failure.Kind, r.Failure.Message)
				}
			})
		}
	}
}

// testSlow: slow is read if the time allows it, and is TimedOut if not.
func testSlow(t *testing.T, h Harness) {
	h.needs(t, Slow)
	s := start(t, h)
	s.end.Delay(30 * time.Millisecond)
	if r := s.read(t); r.Failed() || r.Power != fencing.On {
		t.Errorf("slow, within the deadline: %v, failure %v: %s", r.Power, r.Failure.Kind, r.Failure.Message)
	}
	s.end.Delay(2 * time.Second)
	s.timeout = s.h.Impatient
	s.allowMute = true
	if r := s.read(t); r.Power != fencing.Unknown || r.Failure.Kind != fencing.TimedOut {
		t.Errorf("slow, over the deadline: %v, failure %v: %s", r.Power, r.Failure.Kind, r.Failure.Message)
	}
	s.end.Delay(0)
}

// testOldAnswers: an answer that was under way while the machine was switched on
// again is as old as its question. A reading that says Off may not claim to have
// been asked after the machine was on.
func testOldAnswers(t *testing.T, h Harness) {
	h.needs(t, Slow)
	s := start(t, h)
	s.end.Set(fencing.Off)
	s.end.Delay(60 * time.Millisecond)
	stop := make(chan struct{})
	var on time.Time
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case <-stop:
		case <-time.After(100 * time.Millisecond):
		}
		on = time.Now()
		s.end.Set(fencing.On)
	})
	r := s.read(t)
	close(stop)
	wg.Wait()
	if r.SaysOff() && r.AskedAt.After(on) {
		t.Errorf("Off, asked at %v, and the machine was on from %v", r.AskedAt, on)
	}
	s.end.Delay(0)
}

// testCancelled: who no longer wants an answer does not wait for one.
func testCancelled(t *testing.T, h Harness) {
	s := start(t, h)
	s.allowMute = true
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	began := time.Now()
	r := s.readCtx(ctx, t)
	if r.Power != fencing.Unknown || !r.Failed() {
		t.Errorf("with a cancelled context: %v, failure %v", r.Power, r.Failure.Kind)
	}
	if err := s.powerOffCtx(ctx, t); err == nil {
		t.Error("a power off with a cancelled context is no error")
	}
	if took := time.Since(began); took > s.h.Slack {
		t.Errorf("a cancelled context was honoured after %v", took)
	}
	if got := s.end.Get(); got != fencing.On {
		t.Errorf("a cancelled power off brought the machine to %v", got)
	}
	if reason := h.Lacks[Hangs]; reason != "" {
		t.Logf("NOT RUN: cancelled while it waits: %s", reason)
		return
	}
	s.end.Play(Hangs)
	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	time.AfterFunc(50*time.Millisecond, cancel)
	began = time.Now()
	if r := s.readCtx(ctx, t); r.Power != fencing.Unknown {
		t.Errorf("cancelled while it waits: %v", r.Power)
	}
	if took := time.Since(began); took > 50*time.Millisecond+s.h.Slack {
		t.Errorf("cancelled after 50 ms, returned after %v", took)
	}
	s.end.Play(Healthy)
}

// testConcurrent: one driver serves many callers, and nothing of one machine
// gets into another's reading. Endpoints have few sessions, hence no more than
// three callers each.
func testConcurrent(t *testing.T, h Harness) {
	var all []*subject
	for i := range 4 {
		s := start(t, h)
		if i%2 == 1 {
			s.end.Set(fencing.Off)
		}
		all = append(all, s)
	}
	var wg sync.WaitGroup
	for i, s := range all {
		want := [...]fencing.PowerState{fencing.On, fencing.Off}[i%2]
		for range 3 {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 2*s.h.Timeout)
				defer cancel()
				r := s.judge(ctx, t, all[0].end.Driver)
				if r.Failed() || r.Power != want {
					t.Errorf("%v wanted, %v, failure %v: %s", want, r.Power, r.Failure.Kind, r.Failure.Message)
				}
				if !r.Failed() && h.Lacks[Identity] == "" {
					if match, why := s.m.Expected.Match(r.Identity); match != fencing.IdentityProved {
						t.Errorf("%v: %s", match, why)
					}
				}
			})
		}
	}
	wg.Wait()
	for _, s := range all {
		s.noSessions(t)
	}
}
