package lab_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/nodefence/nodefence/test/lab"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeOS notes what its machine does to it.
type fakeOS struct {
	mu    sync.Mutex
	calls []string
	boots []lab.BootInfo
	boot  func(context.Context) error
}

func (o *fakeOS) note(s string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.calls = append(o.calls, s)
}

func (o *fakeOS) Boot(ctx context.Context, info lab.BootInfo) error {
	o.note("boot")
	o.mu.Lock()
	o.boots = append(o.boots, info)
	o.mu.Unlock()
	if o.boot != nil {
		return o.boot(ctx)
	}
	return nil
}
func (o *fakeOS) Kill()   { o.note("kill") }
func (o *fakeOS) Freeze() { o.note("freeze") }
func (o *fakeOS) Thaw()   { o.note("thaw") }

func (o *fakeOS) got(t *testing.T, want ...string) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	if !slices.Equal(o.calls, want) {
		t.Errorf("calls of the OS: %v, want %v", o.calls, want)
	}
}

// inRoom runs a story in virtual time with one running machine that boots in a
// minute and shuts down in 20 s.
func inRoom(t *testing.T, story func(t *testing.T, m *lab.Machine, os *fakeOS)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		os := &fakeOS{}
		m := lab.New(lab.Config{Name: "m1", OS: os, BootTime: time.Minute, ShutdownTime: 20 * time.Second, Running: true})
		defer m.Close()
		story(t, m, os)
	})
}

func do(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

func sleep(d time.Duration) { time.Sleep(d); synctest.Wait() }

func TestPowerLossAndRestorePolicies(t *testing.T) {
	for _, policy := range []lab.RestorePolicy{lab.AlwaysOff, lab.LastState, lab.AlwaysOn} {
		t.Run(policy.String(), func(t *testing.T) {
			inRoom(t, func(t *testing.T, m *lab.Machine, os *fakeOS) {
				m.SetRestorePolicy(policy)
				boot := m.BootID()
				sleep(time.Hour)
				do(t, m.PowerLoss("test"))
				lost := time.Now()
				if m.Power() != lab.Off {
					t.Errorf("power %s after its loss", m.Power())
				}
				os.got(t, "boot", "kill")
				if err := m.PowerOn("test"); !errors.Is(err, lab.ErrNoMains) {
					t.Errorf("power on without mains: %v", err)
				}
				sleep(time.Minute)
				if !m.OffThroughout(lost) || m.OffThroughout(lost.Add(-time.Nanosecond)) {
					t.Error("OffThroughout is wrong about the loss")
				}
				do(t, m.PowerRestore("test"))
				sleep(2 * time.Minute)
				if starts := policy != lab.AlwaysOff; (m.Power() == lab.On) != starts || (m.BootID() != boot) != starts {
					t.Errorf("after the mains came back: %+v", m.State())
				}
			})
		})
	}
}

func TestBootTakesItsTime(t *testing.T) {
	inRoom(t, func(t *testing.T, m *lab.Machine, os *fakeOS) {
		do(t, m.ForceOff("test"))
		if got := m.State().Progress; got != lab.BootNone {
			t.Errorf("progress %s when off", got)
		}
		do(t, m.PowerOn("test"))
		for _, want := range []lab.BootProgress{lab.BootFirmware, lab.BootOSStarting, lab.BootOSRunning} {
			if got := m.State().Progress; got != want {
				t.Errorf("progress %s, want %s", got, want)
			}
			sleep(30 * time.Second)
		}
		os.got(t, "boot", "kill", "boot")
		if a, b := os.boots[0], os.boots[1]; a.BootID == b.BootID || b.Count != 2 || b.BootID != m.BootID() {
			t.Errorf("boots %+v, %+v", a, b)
		}
	})
}

func TestShutdownRunsOnUntilItIsOff(t *testing.T) {
	inRoom(t, func(t *testing.T, m *lab.Machine, os *fakeOS) {
		do(t, m.GracefulShutdown("test"))
		sleep(19 * time.Second)
		os.got(t, "boot")
		if m.Power() != lab.PoweringOff {
			t.Errorf("power %s during a shutdown", m.Power())
		}
		sleep(time.Second)
		os.got(t, "boot", "kill")
		if m.Power() != lab.Off {
			t.Errorf("power %s after a shutdown", m.Power())
		}
	})
}

func TestAHungMachineHearsNoShutdown(t *testing.T) {
	inRoom(t, func(t *testing.T, m *lab.Machine, os *fakeOS) {
		do(t, m.Hang("test"))
		do(t, m.GracefulShutdown("test"))
		sleep(time.Hour)
		if m.Power() != lab.On || !m.State().Hung {
			t.Errorf("state %+v", m.State())
		}
		do(t, m.Unhang("test"))
		os.got(t, "boot", "freeze", "thaw")
	})
}

func TestResetIsNeverOff(t *testing.T) {
	inRoom(t, func(t *testing.T, m *lab.Machine, os *fakeOS) {
		boot := m.BootID()
		do(t, m.Reset("test"))
		sleep(2 * time.Minute)
		os.got(t, "boot", "kill", "boot")
		if h := m.History(); m.BootID() == boot || h.Count(lab.PoweredOff) != 1 {
			t.Errorf("history of a reset:\n%s", h)
		}
	})
}

func TestPowerCycle(t *testing.T) {
	inRoom(t, func(t *testing.T, m *lab.Machine, _ *fakeOS) {
		do(t, m.PowerCycle("test", 10*time.Second))
		t0 := time.Now()
		sleep(9 * time.Second)
		if !m.OffThroughout(t0) {
			t.Error("not off within a cycle")
		}
		sleep(time.Second)
		if m.Power() != lab.On || m.OffThroughout(t0) || !m.History().OffThroughout(t0, t0.Add(9*time.Second)) {
			t.Errorf("after a cycle:\n%s", m.History())
		}
	})
	inRoom(t, func(t *testing.T, m *lab.Machine, _ *fakeOS) {
		do(t, m.PowerCycle("test", 10*time.Second))
		do(t, m.ForceOff("test"))
		sleep(time.Hour)
		if m.Power() != lab.Off {
			t.Error("a power-off within a cycle did not hold")
		}
	})
}

func TestSuspendIsNotOff(t *testing.T) {
	inRoom(t, func(t *testing.T, m *lab.Machine, os *fakeOS) {
		boot, t0 := m.BootID(), time.Now()
		do(t, m.Suspend("test"))
		sleep(time.Hour)
		if m.Power() != lab.Suspended || m.OffThroughout(t0) {
			t.Error("a suspended machine is not called so")
		}
		do(t, m.PowerOn("test"))
		os.got(t, "boot", "freeze", "thaw")
		if m.BootID() != boot || m.Power() != lab.On {
			t.Error("not the same boot after it woke")
		}
	})
}

// A boot that takes for ever must not keep the power on.
func TestForceOffEndsABoot(t *testing.T) {
	inRoom(t, func(t *testing.T, m *lab.Machine, os *fakeOS) {
		os.boot = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		do(t, m.Reset("test"))
		sleep(time.Minute) // the boot hangs now
		done := make(chan struct{})
		go func() { defer close(done); do(t, m.ForceOff("test")) }()
		<-done
		if m.Power() != lab.Off {
			t.Errorf("power %s", m.Power())
		}
		if h := m.History(); h.Count(lab.OSFailed) != 1 {
			t.Errorf("history:\n%s", h)
		}
	})
}

func TestHistoryKnowsNothingBeforeItBegan(t *testing.T) {
	inRoom(t, func(t *testing.T, m *lab.Machine, _ *fakeOS) {
		do(t, m.ForceOff("test"))
		h := m.History()
		if h.OffAt(h[0].At.Add(-time.Second)) || !h.OffAt(time.Now()) {
			t.Errorf("history:\n%s", h)
		}
		if e, ok := h.Last(lab.PoweredOff); !ok || e.By != "test" {
			t.Errorf("last power-off %v", e)
		}
	})
}

func TestOperationsOfAClosedMachine(t *testing.T) {
	m := lab.New(lab.Config{Name: "m1", Running: true})
	m.Close()
	m.Close()
	if err := m.PowerOn("test"); !errors.Is(err, lab.ErrClosed) || m.Power() != lab.Off {
		t.Errorf("power on: %v, %s", err, m.Power())
	}
}

// Whatever is done at once, the history stays a true story: on and off take
// turns, and the state is its end.
func TestManyHandsAtOnce(t *testing.T) {
	m := lab.New(lab.Config{Name: "m1", BootTime: time.Millisecond, ShutdownTime: time.Millisecond})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 50 {
				switch (i + j) % 8 {
				case 0, 1:
					_ = m.PowerOn("a")
				case 2:
					_ = m.ForceOff("b")
				case 3:
					_ = m.GracefulShutdown("c")
				case 4:
					_ = m.Reset("d")
				case 5:
					_ = m.PowerCycle("e", time.Millisecond)
				case 6:
					_ = m.PowerLoss("f")
				case 7:
					_ = m.PowerRestore("g")
				}
				_ = m.State()
			}
		})
	}
	wg.Wait()
	m.Close()
	off := false
	for _, e := range m.History() {
		switch e.Kind {
		case lab.PoweredOff:
			if off {
				t.Fatalf("off twice:\n%s", m.History())
			}
			off = true
		case lab.PoweredOn:
			if !off {
				t.Fatalf("on twice:\n%s", m.History())
			}
			off = false
		}
	}
	if !off {
		t.Error("on after Close")
	}
}

func TestUUIDOrders(t *testing.T) {
	u := lab.MustUUID("4C4C4544-0035-3410-8050-c6c04f314733")
	for got, want := range map[string]string{
		u.String():            "4c4c4544-0035-3410-8050-c6c04f314733",
		u.Swapped().String():  "44454c4c-3500-1034-8050-c6c04f314733",
		u.Reversed().String(): "3347314f-c0c6-5080-1034-350044454c4c",
		// The third order of a real Dell's dump: what lies in memory, reversed.
		u.Swapped().Reversed().String(): "3347314f-c0c6-5080-3410-00354c4c4544",
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if _, err := lab.ParseUUID("4c4c4544"); err == nil {
		t.Error("a short UUID was read")
	}
}
