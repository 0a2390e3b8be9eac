package redfish_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/nodefence/nodefence/fencing"
	"github.com/nodefence/nodefence/providers/providertest/labend"
	"github.com/nodefence/nodefence/test/lab"
	rf "github.com/nodefence/nodefence/test/lab/redfishbmc"
)

// How real endpoints mislead beyond what TestFaults has, each as a test
// (docs/providers/redfish.md).

func wantPower(t *testing.T, r fencing.Reading, power fencing.PowerState) {
	t.Helper()
	if r.Power != power || r.Failed() != (power == fencing.Unknown) {
		t.Errorf("%v where %v is expected, failure %v: %s; raw %q", r.Power, power, r.Failure.Kind, r.Failure.Message, r.Raw)
	}
}

func match(s *bench, r fencing.Reading) fencing.IdentityMatch {
	m, _ := s.m.Expected.Match(r.Identity)
	return m
}

// A system that is off in a chassis that is on, and the reverse, is a conflict
// that names both.
func TestSystemAndChassisDisagree(t *testing.T) {
	s := newBench(t, "")
	for _, c := range []struct {
		truth    fencing.PowerState
		chassis  any
		conflict bool
	}{
		{fencing.Off, "On", true}, {fencing.On, "Off", true}, {fencing.Off, "Off", false}, {fencing.On, "On", false},
		{fencing.Off, nil, false}, {fencing.Off, 7, false},
	} {
		labend.SetPower(s.machines[0], c.truth)
		s.Set(rf.ChassisPower(c.chassis))
		r := s.read()
		wantPower(t, r, c.truth)
		if (r.Hints.Conflict != "") != c.conflict || c.conflict && (!strings.Contains(r.Hints.Conflict, "/Systems/1") || !strings.Contains(r.Hints.Conflict, "/Chassis/1")) {
			t.Errorf("system %v, chassis %v: conflict %q", c.truth, c.chassis, r.Hints.Conflict)
		}
	}
	s.driver = newDriver(t, s.BMC, `{"ignoreChassis":true}`)
	labend.SetPower(s.machines[0], fencing.Off)
	s.Set(rf.ChassisPower("On"))
	if r := s.read(); r.Power != fencing.Off || r.Hints.Conflict != "" {
		t.Errorf("ignored: %v, conflict %q", r.Power, r.Hints.Conflict)
	}
}

// A chassis that cannot be read says nothing, and does not spoil the reading.
func TestChassisThatCannotBeRead(t *testing.T) {
	s := newBench(t, "")
	labend.SetPower(s.machines[0], fencing.Off)
	for _, q := range []rf.Quirk{rf.HTMLBody, rf.NullBody, rf.NotFound, rf.Forbidden, rf.InternalError, rf.Redirect(302, "https://other.invalid")} {
		s.Set(q.At(rf.AreaChassis))
		r := s.read()
		wantPower(t, r, fencing.Off)
		if r.Hints.Conflict != "" || !strings.Contains(r.Raw, "/Chassis/1 not") {
			t.Errorf("%s: conflict %q, raw %q", q.Name, r.Hints.Conflict, r.Raw)
		}
	}
}

// While the controller restarts nothing is known, so that the count of Off
// readings begins anew; what it says before it has looked at the host is
// contradicted by the chassis.
func TestControllerRestarts(t *testing.T) {
	s := newBench(t, "")
	wantPower(t, s.read(), fencing.On)
	s.RestartBMC(150*time.Millisecond, time.Minute)
	s.timeout = 100 * time.Millisecond
	wantPower(t, s.read(), fencing.Unknown)
	time.Sleep(150 * time.Millisecond)
	s.timeout = 5 * time.Second
	if r := s.read(); r.Hints.Conflict == "" {
		t.Errorf("it says %v of a machine that runs, and nothing contradicts", r.Power)
	}
}

// A controller that restarts switches the machine on again: the next reading says
// so, with the reset that is newer, and the policy was shown before.
func TestControllerReappliesTheLastState(t *testing.T) {
	s := newBench(t, "")
	s.Set(rf.RestartReapplies)
	if err := s.powerOff(); err != nil {
		t.Fatal(err)
	}
	r := s.read()
	wantPower(t, r, fencing.Off)
	if r.Hints.RestorePolicy == fencing.RestoreUnknown {
		t.Error("the restore policy is not shown")
	}
	s.RestartBMC(10*time.Millisecond, 0)
	for range 100 {
		if s.machines[0].Power() == lab.On {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	r = s.read()
	wantPower(t, r, fencing.On)
	if r.Hints.LastReset.IsZero() {
		t.Error("the last reset is not told")
	}
}

// Hints that are wrong or missing are no hints.
func TestHints(t *testing.T) {
	s := newBench(t, "")
	for _, q := range []rf.Quirk{rf.LastReset1970, rf.LastResetZero, rf.LastResetMissing, rf.SystemProperty("LastResetTime", 7)} {
		s.Set(q)
		r := s.read()
		wantPower(t, r, fencing.On)
		if !r.Hints.LastReset.IsZero() {
			t.Errorf("%s: last reset %v", q.Name, r.Hints.LastReset)
		}
	}
	// Boot progress is told as it stands; neither it nor its lack changes power.
	for want, q := range map[string]rf.Quirk{
		"Unspecified": rf.BootProgressUnspecified, "SystemHardwareInitializationComplete": rf.BootProgressStuck, "": rf.BootProgressMissing,
	} {
		for _, truth := range []fencing.PowerState{fencing.On, fencing.Off} {
			labend.SetPower(s.machines[0], truth)
			s.Set(q)
			r := s.read()
			wantPower(t, r, truth)
			if r.Hints.BootProgress != want {
				t.Errorf("%s: boot progress %q", q.Name, r.Hints.BootProgress)
			}
		}
	}
}

// The controller's own power and identity are nobody's business: it is never
// asked, and neither its UUID nor the service root's identifies the system.
func TestManagerAndRootAreNoWitnesses(t *testing.T) {
	s := newBench(t, "")
	s.Set(rf.RootUUIDIsSystems, rf.UUIDMissing, rf.SystemProperty("SerialNumber", nil), rf.ManagerWithoutPowerState)
	r := s.read()
	wantPower(t, r, fencing.On)
	if got := match(s, r); got != fencing.IdentityUnproved {
		t.Errorf("the identity is %v: %+v", got, r.Identity)
	}
	if err := s.powerOff(); kindOf(err) != fencing.Ambiguous || s.commands() != 0 {
		t.Errorf("%v, %d commands", err, s.commands())
	}
	for _, q := range s.Requests() {
		if strings.Contains(q.Path, "/Managers") {
			t.Errorf("the manager was asked: %s %s", q.Method, q.Path)
		}
	}
}

// Each byte order, upper case, defaults: through the whole driver.
func TestIdentityOnTheWire(t *testing.T) {
	s := newBench(t, "")
	for _, c := range []struct {
		quirks []rf.Quirk
		want   fencing.IdentityMatch
	}{
		{[]rf.Quirk{rf.UUIDUpperCase}, fencing.IdentityProved},
		{[]rf.Quirk{rf.UUIDSwapped}, fencing.IdentityProved},
		{[]rf.Quirk{rf.UUIDReversed}, fencing.IdentityProved},
		{[]rf.Quirk{rf.UUIDRawReversed}, fencing.IdentityProved},
		{[]rf.Quirk{rf.UUIDVendorDefault}, fencing.IdentityProved}, // by its serial number
		{[]rf.Quirk{rf.UUIDVendorDefault, rf.SerialDefault}, fencing.IdentityUnproved},
		{[]rf.Quirk{rf.UUIDZero, rf.SerialDefault}, fencing.IdentityUnproved},
		{[]rf.Quirk{rf.WrongMachine()}, fencing.IdentityMismatch},
	} {
		s.Set(c.quirks...)
		r := s.read()
		wantPower(t, r, fencing.On)
		if got := match(s, r); got != c.want {
			t.Errorf("%s: %v: %+v", c.quirks[0].Name, got, r.Identity)
		}
	}
}

// States that lie are passed on as they are: other rules judge them. A state that
// a controller says too early is contradicted by its chassis.
func TestLies(t *testing.T) {
	s := newBench(t, "")
	labend.SetPower(s.machines[0], fencing.Off)
	s.Set(rf.ReadsOn)
	wantPower(t, s.read(), fencing.On)
	labend.SetPower(s.machines[0], fencing.On)
	labend.SetPower(s.machines[0], fencing.PoweringOff)
	s.Set(rf.OffWhenAccepted)
	if r := s.read(); r.Power == fencing.Off && r.Hints.Conflict == "" {
		t.Error("Off while the machine still shuts down, and nothing contradicts")
	}
	s.Set(rf.OnWhileShuttingDown)
	wantPower(t, s.read(), fencing.On)
}

// A wrong type or "N/A" elsewhere does not spoil what counts.
func TestWrongTypesElsewhere(t *testing.T) {
	s := newBench(t, "")
	labend.SetPower(s.machines[0], fencing.Off)
	s.Set(rf.NotANumber, rf.SystemProperty("ProcessorSummary", "two"), rf.SystemProperty("Boot", 3), rf.SystemProperty("Status", []any{}))
	wantPower(t, s.read(), fencing.Off)
}

// ForceOff that is accepted and queued is no error, and the machine reads On
// until it is done: only readings tell.
func TestQueuedForceOff(t *testing.T) {
	s := newBench(t, "")
	s.Set(rf.QueuedForceOff(200 * time.Millisecond))
	if err := s.powerOff(); err != nil {
		t.Fatal(err)
	}
	sent := time.Now()
	for {
		r := s.read()
		if r.AskedAt.Before(sent) {
			t.Fatalf("asked at %v, before the command was answered at %v", r.AskedAt, sent)
		}
		if r.Power == fencing.Off && r.Hints.Conflict == "" {
			if labend.Power(s.machines[0]) != fencing.Off {
				t.Error("Off before it was")
			}
			return
		}
		if time.Since(sent) > 3*time.Second {
			t.Fatal("it never reads Off")
		}
	}
}

func TestStaleOnAfterForceOff(t *testing.T) {
	s := newBench(t, "")
	s.Set(rf.StaleAfterForceOff(150 * time.Millisecond))
	if err := s.powerOff(); err != nil {
		t.Fatal(err)
	}
	if r := s.read(); r.SaysOff() {
		t.Error("the stale state is On, and the reading says Off")
	}
	time.Sleep(160 * time.Millisecond)
	wantPower(t, s.read(), fencing.Off)
}

// What the answer to ForceOff is worth.
func TestAnswersToForceOff(t *testing.T) {
	for name, c := range map[string]struct {
		quirk rf.Quirk
		off   bool // before
		kind  fencing.FailureKind
		after fencing.PowerState
	}{
		"409 because it is off":          {rf.ForceOffRefusedWhenOff(http.StatusConflict), true, fencing.NoFailure, fencing.Off},
		"400 because it is off":          {rf.ForceOffRefusedWhenOff(http.StatusBadRequest), true, fencing.NoFailure, fencing.Off},
		"412 to any If-Match":            {rf.PreconditionFailed, false, fencing.NoFailure, fencing.Off},
		"carried out, answer lost":       {rf.ResetDoneAnswerLost, false, fencing.NoFailure, fencing.Off},
		"204 and nothing happens":        {rf.IgnoresReset, false, fencing.NoFailure, fencing.On},
		"403":                            {rf.Forbidden.At(rf.AreaAction), false, fencing.Forbidden, fencing.On},
		"503":                            {rf.Unavailable(time.Second).At(rf.AreaAction), false, fencing.Busy, fencing.On},
		"redirect to another host":       {rf.Redirect(307, "https://other.invalid").At(rf.AreaAction), false, fencing.Failed, fencing.On},
		"ForceOff is not offered":        {rf.WithoutForceOff, false, fencing.Failed, fencing.On},
		"no Reset at all (a baseboard)":  {rf.WithoutReset, false, fencing.Failed, fencing.On},
		"another machine, and it is off": {rf.WrongMachine(), true, fencing.WrongMachine, fencing.Off},
	} {
		t.Run(name, func(t *testing.T) {
			s := newBench(t, "")
			if c.off {
				labend.SetPower(s.machines[0], fencing.Off)
			}
			s.Set(c.quirk)
			if err := s.powerOff(); kindOf(err) != c.kind {
				t.Errorf("%v where %v is expected: %v", kindOf(err), c.kind, err)
			}
			s.Clear()
			wantPower(t, s.read(), c.after)
			if n := s.commands(); n > 1 {
				t.Errorf("%d commands", n)
			}
		})
	}
}

// Of several systems only the one that is proved to be the machine counts,
// whatever their order, names and number.
func TestSeveralSystems(t *testing.T) {
	const other = "9b2e7f04-1c3d-4a5b-8e6f-70819243a5b6"
	ours, board := fencing.Identity{UUID: uuid, Serial: serial}, fencing.Identity{UUID: other, Serial: "BOARD-1"}
	t.Run("by identity, order changes", func(t *testing.T) {
		s := newBench(t, "", ours, board)
		labend.SetPower(s.machines[1], fencing.Off)
		s.Set(rf.MembersRotate())
		for range 4 {
			wantPower(t, s.read(), fencing.On)
		}
		if err := s.powerOff(); err != nil {
			t.Error(err)
		}
		if labend.Power(s.machines[0]) != fencing.Off || len(s.Requests()) == 0 {
			t.Error("the machine is not off")
		}
	})
	t.Run("none is ours", func(t *testing.T) {
		s := newBench(t, "", ours, board)
		s.m.Expected.UUID, s.m.Expected.Serial = "11111111-2222-4333-8444-555555555555", "X1"
		s.m.AllowUnproved = true
		wantKind(t, s, fencing.Ambiguous)
	})
	t.Run("two have our identity", func(t *testing.T) {
		s := newBench(t, "", ours, ours)
		wantKind(t, s, fencing.Ambiguous)
	})
	t.Run("none tells who it is", func(t *testing.T) {
		s := newBench(t, "", ours, board)
		s.Set(rf.UUIDZero, rf.SerialDefault)
		s.m.AllowUnproved = true
		wantKind(t, s, fencing.Ambiguous)
	})
	t.Run("configured", func(t *testing.T) {
		s := newBench(t, "", ours, board)
		labend.SetPower(s.machines[0], fencing.Off)
		s.m.System = "/redfish/v1/Systems/2"
		r := s.read()
		wantPower(t, r, fencing.On)
		if got := match(s, r); got != fencing.IdentityMismatch {
			t.Errorf("the configured one is another machine, and the identity is %v", got)
		}
		if err := s.powerOff(); kindOf(err) != fencing.WrongMachine || s.commands() != 0 {
			t.Errorf("%v, %d commands", err, s.commands())
		}
		s.m.System = "/redfish/v1/Systems/1"
		wantPower(t, s.read(), fencing.Off)
	})
	t.Run("a member is no link", func(t *testing.T) {
		for _, q := range []rf.Quirk{rf.MemberNull, rf.MemberEmpty, rf.MemberEmptyID, rf.MemberIsRoot} {
			s := newBench(t, "", board, ours)
			s.m.Expected.Identity = ours
			s.Set(q)
			if r := s.read(); r.Power == fencing.Off || r.Failed() && r.Power != fencing.Unknown {
				t.Errorf("%s: %v", q.Name, r.Power)
			}
		}
	})
}

// wantKind: neither read nor powered off.
func wantKind(t *testing.T, s *bench, kind fencing.FailureKind) {
	t.Helper()
	r := s.read()
	wantPower(t, r, fencing.Unknown)
	if r.Failure.Kind != kind {
		t.Errorf("failure %v where %v is expected: %s", r.Failure.Kind, kind, r.Failure.Message)
	}
	if err := s.powerOff(); kindOf(err) != kind || s.commands() != 0 {
		t.Errorf("power off: %v, %d commands", err, s.commands())
	}
}
