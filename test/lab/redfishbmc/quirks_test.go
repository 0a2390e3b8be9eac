package redfishbmc_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/nodefence/nodefence/test/lab"
	rf "github.com/nodefence/nodefence/test/lab/redfishbmc"
)

// is makes a check of one property of the system.
func is(property string, want any) func(*bench, answer) bool {
	return func(_ *bench, a answer) bool {
		got, present := a.doc[property]
		return a.status == 200 && present && got == want
	}
}

func missing(property string) func(*bench, answer) bool {
	return func(_ *bench, a answer) bool {
		_, present := a.doc[property]
		return a.status == 200 && a.doc["@odata.id"] != nil && !present
	}
}

func says(status int, text string) func(*bench, answer) bool {
	return func(_ *bench, a answer) bool { return a.status == status && strings.Contains(string(a.body), text) }
}

func failed(_ *bench, a answer) bool { return a.err != nil }

// uuid is that of the machine on the bench.
const uuid = "00112233-4455-6677-8899-aabbccddeeff"

// readingQuirks are the quirks that show in a reading of the system.
var readingQuirks = []struct {
	quirk rf.Quirk
	shows func(*bench, answer) bool
}{
	{rf.HTMLBody, says(200, "<html>")},
	{rf.NullBody, says(200, "null")},
	{rf.EmptyBody, func(_ *bench, a answer) bool { return a.status == 200 && len(a.body) == 0 }},
	{rf.EmptyObject, says(200, "{}")},
	{rf.TruncatedJSON, func(_ *bench, a answer) bool { return a.status == 200 && len(a.body) > 9 && a.doc == nil }},
	{rf.CutHalfway, failed},
	{rf.CutAtOnce, failed},
	{rf.Megabyte, func(_ *bench, a answer) bool { return len(a.body) > 1<<20 && a.doc["PowerState"] == "On" }},
	{rf.EndlessBody, func(_ *bench, a answer) bool { return a.err != nil || len(a.body) == 8<<20 }},
	{rf.HangForever, failed},
	{rf.Slow(time.Minute), failed},
	{rf.Unauthorized, says(401, "NoValidSession")},
	{rf.UnauthorizedNowAndThen(1), says(401, "")},
	{rf.Forbidden, says(403, "InsufficientPrivilege")},
	{rf.NotFound, says(404, "ResourceMissingAtURI")},
	{rf.InternalError, says(500, "InternalError")},
	{rf.HPENotReady, says(503, "ResourceNotReadyRetry")},
	{rf.IDRACNotReady, says(400, "SWC0700")},
	{rf.Unavailable(30 * time.Second), func(_ *bench, a answer) bool { return a.status == 503 && a.header.Get("Retry-After") == "30" }},
	{rf.Redirect(307, "https://example.invalid"), func(_ *bench, a answer) bool {
		return a.status == 307 && a.header.Get("Location") == "https://example.invalid/redfish/v1/Systems/1"
	}},
	{rf.PowerStateNull, is("PowerState", nil)},
	{rf.PowerStateMissing, missing("PowerState")},
	{rf.PowerStateText("Reset"), is("PowerState", "Reset")},
	{rf.PowerStateValue(7), is("PowerState", 7.0)},
	{rf.ReadsOff, is("PowerState", "Off")},
	{rf.ReadsOn, is("PowerState", "On")},
	{rf.NotANumber, says(200, "N/A")},
	{rf.SystemProperty("Model", 3), is("Model", 3.0)},
	{rf.SystemUUID("x"), is("UUID", "x")},
	{rf.UUIDVendorDefault, is("UUID", "03000200-0400-0500-0006-000700080009")},
	{rf.UUIDZero, is("UUID", "00000000-0000-0000-0000-000000000000")},
	{rf.UUIDMissing, missing("UUID")},
	{rf.UUIDUpperCase, is("UUID", strings.ToUpper(uuid))},
	{rf.UUIDSwapped, is("UUID", "33221100-5544-7766-8899-aabbccddeeff")},
	{rf.UUIDReversed, is("UUID", "ffeeddcc-bbaa-9988-7766-554433221100")},
	{rf.UUIDRawReversed, is("UUID", "ffeeddcc-bbaa-9988-6677-445500112233")},
	{rf.SerialDefault, is("SerialNumber", "To be filled by O.E.M.")},
	{rf.WrongMachine(), func(_ *bench, a answer) bool { return a.status == 200 && a.doc["UUID"] != uuid }},
	{rf.LastReset1970, is("LastResetTime", "1970-01-01T00:00:12Z")},
	{rf.LastResetZero, is("LastResetTime", "0000-00-00T00:00:00Z")},
	{rf.LastResetMissing, missing("LastResetTime")},
	{rf.BootProgressUnspecified, says(200, `"LastState":"Unspecified"`)},
	{rf.BootProgressStuck, says(200, `"LastState":"SystemHardwareInitializationComplete"`)},
	{rf.BootProgressMissing, missing("BootProgress")},
	{rf.WrongODataType, is("@odata.type", "#Chassis.v1_20_0.Chassis")},
	{rf.WrongODataID, is("@odata.id", "/redfish/v1/Systems/another")},
	{rf.WithoutForceOff, func(_ *bench, a answer) bool { return !strings.Contains(string(a.body), "ForceOff") }},
	{rf.WithoutReset, missing("Actions")},
}

// Each quirk shows as its name says, and leaves nothing behind.
func TestQuirksOfReading(t *testing.T) {
	for _, c := range readingQuirks {
		t.Run(c.quirk.Name, func(t *testing.T) {
			t.Parallel()
			b := start(t)
			patience := b.client.Timeout
			switch c.quirk.Name {
			case "HangForever", "Slow", "EndlessBody": // these end with the client's patience
				b.client.Timeout = 200 * time.Millisecond
			}
			b.Set(c.quirk)
			if a := b.system(); !c.shows(b, a) {
				t.Errorf("%d %v %.300s", a.status, a.err, a.body)
			}
			b.Clear()
			b.client.Timeout = patience
			if a := b.system(); a.err != nil || a.doc["PowerState"] != "On" || a.doc["UUID"] != uuid {
				t.Errorf("healed: %d %v %.300s", a.status, a.err, a.body)
			}
		})
	}
}

// Quirks of other places than the system.
func TestQuirksElsewhere(t *testing.T) {
	for _, c := range []struct {
		quirk rf.Quirk
		path  string
		shows func(*bench, answer) bool
	}{
		{rf.RootWithoutSystems, "/redfish/v1/", missing("Systems")},
		{rf.RootUUIDIsSystems, "/redfish/v1/", is("UUID", "00112233-4455-6677-8899-aabbccddeeff")},
		{rf.RootUUIDIsSystems, "/redfish/v1/Managers/1", is("UUID", "00112233-4455-6677-8899-aabbccddeeff")},
		{rf.ManagerWithoutPowerState, "/redfish/v1/Managers/1", missing("PowerState")},
		{rf.ChassisPower("Off"), "/redfish/v1/Chassis/1", is("PowerState", "Off")},
		{rf.NoMembers, "/redfish/v1/Systems", missing("Members")},
		{rf.EmptyCollection, "/redfish/v1/Systems", says(200, `"Members":[]`)},
		{rf.MemberNull, "/redfish/v1/Systems", says(200, `"Members":[null]`)},
		{rf.MemberEmpty, "/redfish/v1/Systems", says(200, `"Members":[{}]`)},
		{rf.MemberEmptyID, "/redfish/v1/Systems", says(200, `"Members":[{"@odata.id":""}]`)},
		{rf.MemberIsRoot, "/redfish/v1/Systems", says(200, `"Members":[{"@odata.id":"/redfish/v1/"}]`)},
		{rf.HTMLBody.At(rf.AreaRoot), "/redfish/v1/", says(200, "<html>")},
	} {
		t.Run(c.quirk.Name, func(t *testing.T) {
			t.Parallel()
			b := start(t)
			b.Set(c.quirk)
			if a := b.ask("GET", c.path, "admin", nil); !c.shows(b, a) {
				t.Errorf("%d %v %s", a.status, a.err, a.body)
			}
		})
	}
}

func TestQuirksOfCommands(t *testing.T) {
	b := start(t)
	b.Set(rf.IgnoresReset)
	if a := b.reset("admin", "ForceOff"); a.status != 204 || b.m.Power() != lab.On {
		t.Errorf("IgnoresReset: %d, %s", a.status, b.m.Power())
	}
	b.Set(rf.PreconditionFailed)
	if a := b.reset("admin", "ForceRestart", "If-Match", b.system().header.Get("ETag")); a.status != 412 {
		t.Errorf("PreconditionFailed: %d", a.status)
	}
	if a := b.reset("admin", "ForceRestart"); a.status != 204 {
		t.Errorf("PreconditionFailed without If-Match: %d", a.status)
	}
	b.Set(rf.QueuedForceOff(150*time.Millisecond), rf.OffWhenAccepted)
	if a := b.reset("admin", "ForceOff"); a.status != 202 || b.m.Power() != lab.On || b.power() != "Off" {
		t.Errorf("QueuedForceOff and OffWhenAccepted: %d, the machine is %s", a.status, b.m.Power())
	}
	eventually(t, "off", func() bool { return b.m.Power() == lab.Off })
	b.Set(rf.ForceOffRefusedWhenOff(http.StatusConflict))
	if a := b.reset("admin", "ForceOff"); a.status != 409 {
		t.Errorf("ForceOffRefusedWhenOff: %d", a.status)
	}
	_ = b.m.PowerOn("test")
	b.Set(rf.StaleAfterForceOff(100 * time.Millisecond))
	if a := b.reset("admin", "ForceOff"); a.status != 204 || b.m.Power() != lab.Off || b.power() != "On" {
		t.Errorf("StaleAfterForceOff: %d", a.status)
	}
	eventually(t, "Off", func() bool { return b.power() == "Off" })
	_ = b.m.PowerOn("test")
	b.Set(rf.ResetDoneAnswerLost)
	if a := b.reset("admin", "ForceOff"); a.err == nil || b.m.Power() != lab.Off {
		t.Errorf("ResetDoneAnswerLost: %d, %s", a.status, b.m.Power())
	}
}

func TestQuirksOfStates(t *testing.T) {
	b := start(t)
	_ = b.m.GracefulShutdown("test")
	b.Set(rf.OffWhenAccepted)
	if got := b.power(); got != "Off" || b.m.Power() != lab.PoweringOff {
		t.Errorf("OffWhenAccepted: %v while the machine is %s", got, b.m.Power())
	}
	b.Set(rf.OnWhileShuttingDown)
	if got := b.power(); got != "On" {
		t.Errorf("OnWhileShuttingDown: %v", got)
	}
	eventually(t, "off", func() bool { return b.m.Power() == lab.Off })
	_ = b.m.PowerOn("test")
	_ = b.m.Suspend("test")
	b.Clear()
	if got := b.power(); got != "Paused" {
		t.Errorf("suspended: %v", got)
	}
	b.Set(rf.SuspendedReadsOff)
	if got := b.power(); got != "Off" {
		t.Errorf("SuspendedReadsOff: %v", got)
	}
}

func TestRestartOfTheController(t *testing.T) {
	b := start(t)
	b.RestartBMC(60*time.Millisecond, 150*time.Millisecond)
	if a := b.system(); a.err == nil {
		t.Errorf("an answer while it restarts: %d", a.status)
	}
	eventually(t, "Off", func() bool { return b.power() == "Off" })
	if b.m.Power() != lab.On {
		t.Error("the machine went with its controller")
	}
	eventually(t, "On", func() bool { return b.power() == "On" })

	_ = b.m.ForceOff("test")
	b.Set(rf.RestartReapplies)
	b.RestartBMC(20*time.Millisecond, 0)
	eventually(t, "started by the restart", func() bool { return b.m.Power() == lab.On })

	b.Set(rf.CrashesWhenPolled(2, time.Minute, 30*time.Millisecond))
	b.system()
	b.system()
	if a := b.system(); a.err == nil {
		t.Errorf("the third poll: %d", a.status)
	}
}

func TestLoginQuirks(t *testing.T) {
	b := start(t)
	other := httptest.NewTLSServer(http.NotFoundHandler())
	defer other.Close()
	login := func() answer {
		return b.ask("POST", "/redfish/v1/SessionService/Sessions", "", map[string]any{"UserName": "admin", "Password": "adminpass"})
	}
	b.Set(rf.SessionRedirect(301, other.URL))
	if a := login(); a.status != 301 || !strings.HasPrefix(a.header.Get("Location"), other.URL) || b.OpenSessions() != 0 {
		t.Errorf("SessionRedirect: %d", a.status)
	}
	b.Set(rf.SessionLimit)
	if a := login(); a.status != 503 || !strings.Contains(string(a.body), "RAC0218") {
		t.Errorf("SessionLimit: %d", a.status)
	}
	b.Set(rf.UnauthorizedNowAndThen(3))
	var codes []int
	for range 6 {
		codes = append(codes, b.system().status)
	}
	if codes[2] != 401 || codes[5] != 401 || codes[0] != 200 || codes[4] != 200 {
		t.Errorf("UnauthorizedNowAndThen(3): %v", codes)
	}
}

// Every quirk on every area, one after the other: nothing may panic or hang
// beyond the client's patience (Close reports a panic).
func TestNothingPanics(t *testing.T) {
	b := start(t)
	b.client.Timeout = 30 * time.Millisecond
	for _, q := range []rf.Quirk{
		rf.HTMLBody, rf.NullBody, rf.TruncatedJSON, rf.CutHalfway, rf.Megabyte, rf.EndlessBody, rf.HangForever,
		rf.PowerStateNull, rf.UUIDReversed, rf.OffWhenAccepted, rf.NoMembers, rf.MemberNull, rf.RootUUIDIsSystems,
		rf.ChassisPower(nil), rf.MembersRotate(), rf.WithoutForceOff,
	} {
		b.Set(q.At(rf.Everything))
		for _, path := range []string{
			"/", "/redfish", "/redfish/v1/", "/redfish/v1/Systems", "/redfish/v1/Systems/1", "/redfish/v1/Systems/2",
			"/redfish/v1/Systems//", "/redfish/v1/Chassis/1", "/redfish/v1/Managers", "/redfish/v1/SessionService/Sessions/x",
		} {
			b.ask("GET", path, "admin", nil)
			b.ask("PATCH", path, "", nil)
		}
		b.reset("admin", "On")
	}
}
