package redfish

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stmcginnis/gofish/redfish"

	"github.com/nodefence/nodefence/fencing"
	"github.com/nodefence/nodefence/providers"
)

// TestParsePower: the whole mapping. Only the exact words count.
func TestParsePower(t *testing.T) {
	for raw, want := range map[string]fencing.PowerState{
		`"On"`: fencing.On, `"Off"`: fencing.Off, `"PoweringOn"`: fencing.PoweringOn,
		`"PoweringOff"`: fencing.PoweringOff, `"Paused"`: fencing.Suspended, ` "Off" `: fencing.Off, `"\u004fff"`: fencing.Off,

		`null`: 0, `""`: 0, `"off"`: 0, `"OFF"`: 0, `"Off "`: 0, `" Off"`: 0, `"Off\u0000"`: 0, `"Offline"`: 0, `"PowerOff"`: 0,
		`"Powering Off"`: 0, `"Reset"`: 0, `"Unknown"`: 0, `"Suspended"`: 0, `"SoftOff"`: 0, `"Standby"`: 0, `"0ff"`: 0, `"Оff"`: 0,
		`0`: 0, `1`: 0, `true`: 0, `false`: 0, `["Off"]`: 0, `{"Off":"Off"}`: 0, `{}`: 0, `[]`: 0, `"`: 0, `Off`: 0, ``: 0,
	} {
		got, why := parsePower(json.RawMessage(raw))
		if got != want {
			t.Errorf("%s: %v, wanted %v", raw, got, want)
		}
		if (got == fencing.Unknown) == (why == "") {
			t.Errorf("%s: %v because %q", raw, got, why)
		}
	}
	if got, why := parsePower(nil); got != fencing.Unknown || !strings.Contains(why, "no PowerState") {
		t.Errorf("missing: %v, %q", got, why)
	}
}

const testPath = "/redfish/v1/Systems/1"

// document is a good answer, with properties put in or, with "-", left out.
func document(changes ...string) []byte {
	doc := map[string]string{
		"@odata.id": `"/redfish/v1/Systems/1"`, "@odata.type": `"#ComputerSystem.v1_20_0.ComputerSystem"`,
		"PowerState": `"Off"`, "UUID": `"4c4c4544-0035-3410-8050-c6c04f314733"`, "SerialNumber": `"5A41GS3"`,
	}
	for i := 0; i < len(changes); i += 2 {
		if doc[changes[i]] = changes[i+1]; changes[i+1] == "-" {
			delete(doc, changes[i])
		}
	}
	var parts []string
	for k, v := range doc {
		parts = append(parts, fmt.Sprintf("%q:%s", k, v))
	}
	return []byte("{" + strings.Join(parts, ",") + "}")
}

// TestParseSystem goes through the inputs that real endpoints gave.
func TestParseSystem(t *testing.T) {
	for _, c := range []struct {
		name   string
		body   []byte
		power  fencing.PowerState
		refuse bool
	}{
		{"good", document(), fencing.Off, false},
		{"slash in the id", document("@odata.id", `"/redfish/v1/Systems/1/"`), fencing.Off, false},
		{"no version in the type", document("@odata.type", `"#ComputerSystem.ComputerSystem"`), fencing.Off, false},
		{"OpenBMC: the property is missing", document("PowerState", "-"), fencing.Unknown, false},
		{"HPE: null", document("PowerState", `null`), fencing.Unknown, false},
		{"HPE: Reset", document("PowerState", `"Reset"`), fencing.Unknown, false},
		{"HPE: Unknown", document("PowerState", `"Unknown"`), fencing.Unknown, false},
		{"a name in another case", document("PowerState", "-", "powerState", `"Off"`), fencing.Unknown, false},
		{"N/A for a number", document("MemorySummary", `{"TotalSystemMemoryGiB":"N/A"}`), fencing.Off, false},
		{"wrong types everywhere", document("Status", `7`, "Boot", `[]`, "BootProgress", `"x"`, "Links", `null`, "Actions", `[1]`, "LastResetTime", `12`, "PowerRestorePolicy", `{}`, "Name", `{}`, "ProcessorSummary", `"2"`), fencing.Off, false},
		{"given twice", []byte(`{"@odata.id":"/redfish/v1/Systems/1","@odata.type":"#ComputerSystem.ComputerSystem","PowerState":"On","PowerState":"Off"}`), 0, true},
		{"null", []byte("null"), 0, true},
		{"{}", []byte("{}"), 0, true},
		{"[]", []byte("[]"), 0, true},
		{"nothing", nil, 0, true},
		{"text", []byte(`"Off"`), 0, true},
		{"half", document()[:60], 0, true},
		{"two documents", append(document(), document()...), 0, true},
		{"the service root", []byte(`{"@odata.id":"/redfish/v1/","@odata.type":"#ServiceRoot.v1_5_0.ServiceRoot","UUID":"4c4c4544-0035-3410-8050-c6c04f314733","PowerState":"Off"}`), 0, true},
		{"the manager", document("@odata.type", `"#Manager.v1_0_0.Manager"`), 0, true},
		{"a chassis", document("@odata.type", `"#Chassis.v1_0_0.Chassis"`), 0, true},
		{"the collection", document("@odata.type", `"#ComputerSystemCollection.ComputerSystemCollection"`), 0, true},
		{"another member", document("@odata.id", `"/redfish/v1/Systems/2"`), 0, true},
		{"a member whose path begins alike", document("@odata.id", `"/redfish/v1/Systems/10"`), 0, true},
		{"no id", document("@odata.id", "-"), 0, true},
		{"no type", document("@odata.type", "-"), 0, true},
		{"web page", []byte("<html>PowerState: Off</html>"), 0, true},
	} {
		s, err := parseSystem(testPath, c.body)
		if (err != nil) != c.refuse || s.power != c.power {
			t.Errorf("%s: %v, %v", c.name, s.power, err)
		}
	}
}

func TestParseIdentity(t *testing.T) {
	for _, c := range []struct {
		name string
		body []byte
		want fencing.IdentityMatch
	}{
		{"as it is", document(), fencing.IdentityProved},
		{"upper case", document("UUID", `"4C4C4544-0035-3410-8050-C6C04F314733"`), fencing.IdentityProved},
		{"raw", document("UUID", `"44454c4c-3500-1034-8050-c6c04f314733"`), fencing.IdentityProved},
		{"reversed", document("UUID", `"3347314f-c0c6-5080-3410-00354c4c4544"`), fencing.IdentityProved},
		{"one differs", document("SerialNumber", `"another"`), fencing.IdentityMismatch},
		{"another machine", document("UUID", `"9b2e7f04-1c3d-4a5b-8e6f-70819243a5b6"`, "SerialNumber", "-"), fencing.IdentityMismatch},
		{"zeros", document("UUID", `"00000000-0000-0000-0000-000000000000"`, "SerialNumber", `""`), fencing.IdentityUnproved},
		{"all F", document("UUID", `"ffffffff-ffff-ffff-ffff-ffffffffffff"`, "SerialNumber", `" "`), fencing.IdentityUnproved},
		{"default", document("UUID", `"03000200-0400-0500-0006-000700080009"`, "SerialNumber", `"To be filled by O.E.M."`), fencing.IdentityUnproved},
		{"missing", document("UUID", "-", "SerialNumber", "-"), fencing.IdentityUnproved},
		{"null", document("UUID", `null`, "SerialNumber", `null`), fencing.IdentityUnproved},
		{"wrong type", document("UUID", `7`, "SerialNumber", `["5A41GS3"]`), fencing.IdentityUnproved},
		{"names in another case", document("UUID", "-", "SerialNumber", "-", "uuid", `"4c4c4544-0035-3410-8050-c6c04f314733"`), fencing.IdentityUnproved},
	} {
		s, err := parseSystem(testPath, c.body)
		if err != nil {
			t.Fatal(err)
		}
		e := fencing.Expectation{Identity: fencing.Identity{UUID: "4c4c4544-0035-3410-8050-c6c04f314733", Serial: "5A41GS3"}}
		if got, why := e.Match(s.identity); got != c.want {
			t.Errorf("%s: %v: %s", c.name, got, why)
		}
	}
}

func TestParseHints(t *testing.T) {
	for raw, want := range map[string]string{
		`"2026-05-04T03:02:01Z"`: "2026-05-04T03:02:01Z", `"2026-05-04T03:02:01+02:00"`: "2026-05-04T01:02:01Z",
		`"1970-01-01T00:00:12Z"`: "", `"0000-00-00T00:00:00Z"`: "", `"0001-01-01T00:00:00Z"`: "", `"2000-01-01T00:00:00Z"`: "",
		`""`: "", `null`: "", `1777863721`: "", `"2026-05-04"`: "", `"2026-13-04T03:02:01Z"`: "",
	} {
		s, err := parseSystem(testPath, document("LastResetTime", raw))
		got := ""
		if !s.hints.LastReset.IsZero() {
			got = s.hints.LastReset.Format(time.RFC3339)
		}
		if err != nil || got != want {
			t.Errorf("%s: %q, %v", raw, got, err)
		}
	}
	for raw, want := range map[string]fencing.RestorePolicy{
		`"AlwaysOn"`: fencing.RestoreAlwaysOn, `"AlwaysOff"`: fencing.RestoreAlwaysOff, `"LastState"`: fencing.RestoreLastState,
		`"alwaysOn"`: 0, `"Always"`: 0, `null`: 0, `1`: 0, `""`: 0,
	} {
		s, _ := parseSystem(testPath, document("PowerRestorePolicy", raw, "BootProgress", `{"LastState":"OSRunning"}`))
		if s.hints.RestorePolicy != want || s.hints.BootProgress != "OSRunning" {
			t.Errorf("%s: %v, boot %q", raw, s.hints.RestorePolicy, s.hints.BootProgress)
		}
	}
}

// TestChassisVetoes: which words of which chassis contradict which state.
func TestChassisVetoes(t *testing.T) {
	const here = `{"ComputerSystems":[{"@odata.id":"/redfish/v1/Systems/1/"}]}`
	for _, c := range []struct {
		system         fencing.PowerState
		chassis, links string
		veto           bool
	}{
		{fencing.Off, `"Off"`, here, false},
		{fencing.Off, `"On"`, here, true},
		{fencing.Off, `"On"`, `{}`, true},
		{fencing.Off, `"PoweringOff"`, here, true},
		{fencing.Off, `"PoweringOn"`, here, true},
		{fencing.Off, `"Paused"`, here, true},
		{fencing.Off, `null`, here, false},
		{fencing.Off, `"on"`, here, false},
		{fencing.On, `"Off"`, here, true},
		{fencing.On, `"On"`, here, false},
		{fencing.On, `"PoweringOff"`, here, false},
		// An enclosure is on while one of its systems is.
		{fencing.Off, `"On"`, `{"ComputerSystems":[{"@odata.id":"/redfish/v1/Systems/1"},{"@odata.id":"/redfish/v1/Systems/2"}]}`, false},
		{fencing.Off, `"On"`, `{"ComputerSystems":[{"@odata.id":"/redfish/v1/Systems/2"}]}`, false},
	} {
		const path = "/redfish/v1/Chassis/1"
		body := fmt.Sprintf(`{"@odata.id":%q,"@odata.type":"#Chassis.v1_0_0.Chassis","PowerState":%s,"Links":%s}`, path, c.chassis, c.links)
		ch, err := parseChassis(path, []byte(body))
		if err != nil {
			t.Fatal(err)
		}
		text := ch.disagrees(path, system{path: testPath, power: c.system})
		if (text != "") != c.veto {
			t.Errorf("%v against %s in %s: %q", c.system, c.chassis, c.links, text)
		}
		if c.veto && (!strings.Contains(text, path) || !strings.Contains(text, testPath)) {
			t.Errorf("it does not say which two disagree: %q", text)
		}
	}
	if _, err := parseChassis("/redfish/v1/Chassis/1", document()); !errors.Is(err, errNotChassis) {
		t.Errorf("a system in the chassis' place: %v", err)
	}
}

func TestParseCollection(t *testing.T) {
	for body, want := range map[string]string{
		`{"Members":[{"@odata.id":"/redfish/v1/Systems/1"}],"Members@odata.count":1}`: "1 [/redfish/v1/Systems/1]",
		`{"Members":[]}`: "-1 []",
		`{"Members":[null,{},{"@odata.id":""},{"@odata.id":"/redfish/v1/"},7,"x"]}`: "-1 [     ]",
		`{"Members":[{"@odata.id":"https://other.invalid/redfish/v1/Systems/1"}]}`:  "-1 []",
		`{"Members":[{"@odata.id":"//other.invalid/redfish/v1/Systems/1"}]}`:        "-1 []",
		`{"Members":[{"@odata.id":"/redfish/v1/../../admin"}]}`:                     "-1 []",
		`{"Members":[{"@odata.id":"/redfish/v1/Systems/1?x=y"}]}`:                   "-1 []",
		`{"Members":null}`: "refused", `{"Members":{}}`: "refused", `{}`: "refused", `null`: "refused", `<html>`: "refused",
		`{"Members":[],"Members@odata.nextLink":"https://other.invalid/redfish/v1/Systems"}`: "refused",
	} {
		c, err := parseCollection([]byte(body))
		got := fmt.Sprint(c.count, " ", c.members)
		if err != nil {
			got = "refused"
		}
		if got != want {
			t.Errorf("%s: %s, wanted %s", body, got, want)
		}
	}
}

// TestParseFault: what answers with another status mean.
func TestParseFault(t *testing.T) {
	info := func(id string) string {
		return `{"error":{"code":"Base.1.0.GeneralError","message":"see","@Message.ExtendedInfo":[{"MessageId":"` + id + `","Message":"words"}]}}`
	}
	for _, c := range []struct {
		status int
		body   string
		want   fencing.FailureKind
	}{
		{401, "", fencing.Unauthorized},
		{400, info("iLO.2.14.UnauthorizedLoginAttempt"), fencing.Unauthorized},
		{403, "", fencing.Forbidden},
		{404, info("Base.1.8.ResourceMissingAtURI"), fencing.NotFound},
		{400, info("iLO.2.14.ResourceNotReadyRetry"), fencing.Busy},
		{400, info("IDRAC.2.8.SWC0700"), fencing.Busy},
		{503, info("IDRAC.2.8.RAC0218"), fencing.Busy},
		{403, info("Base.1.8.SessionLimitExceeded"), fencing.Busy},
		{503, "<html>", fencing.Busy},
		{429, "", fencing.Busy},
		{400, `{"@Message.ExtendedInfo":{"MessageId":"SWC0700"}}`, fencing.Busy},
		{400, info("IDRAC.2.8.SWC07001"), fencing.Failed}, // exactly, not by a part
		{400, `{"error":7}`, fencing.Failed},
		{500, "null", fencing.Failed},
		{302, "", fencing.Failed},
		{204, "", fencing.Malformed},
	} {
		p := parseFault("GET x", providers.Answer{Status: c.status, Body: []byte(c.body), Header: http.Header{"Retry-After": {"7"}}}, time.Now())
		if p.kind != c.want || !strings.Contains(p.text, fmt.Sprint(c.status)) {
			t.Errorf("%d %s: %v, wanted %v: %s", c.status, c.body, p.kind, c.want, p.text)
		}
		if (p.retryAfter == 7*time.Second) != (c.want == fencing.Busy) {
			t.Errorf("%d %s: retry after %v", c.status, c.body, p.retryAfter)
		}
	}
}

// FuzzParseSystem: whatever is answered, nothing panics; Off comes of the exact
// word in a document of the right type and place alone; and where the library
// decodes the document at all, both agree.
func FuzzParseSystem(f *testing.F) {
	for _, seed := range [][]byte{
		document(), document("PowerState", `null`), document("PowerState", `"PoweringOff"`), document("Links", `{"Chassis":[{"@odata.id":"/redfish/v1/Chassis/1"}]}`),
		document("Actions", `{"#ComputerSystem.Reset":{"target":"/redfish/v1/Systems/1/Actions/ComputerSystem.Reset","ResetType@Redfish.AllowableValues":["On","ForceOff"]}}`),
		[]byte("null"), []byte("{}"), []byte("<html>"), []byte(`{"a":`), []byte(strings.Repeat("[", 20000)), document()[:70],
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		_, _ = parseRoot(body)
		_, _ = parseCollection(body)
		_, _ = parseChassis("/redfish/v1/Chassis/1", body)
		_ = parseActionInfo(body)
		_ = parseMessages(body)
		s, err := parseSystem(testPath, body)
		if err != nil {
			if s.power != fencing.Unknown {
				t.Errorf("%v with %v", s.power, err)
			}
			return
		}
		var doc map[string]any
		if json.Unmarshal(body, &doc) != nil {
			t.Fatal("it is no JSON")
		}
		if s.power == fencing.Off && doc["PowerState"] != "Off" {
			t.Errorf("Off of %v", doc["PowerState"])
		}
		var other redfish.ComputerSystem
		if json.Unmarshal(body, &other) != nil {
			return
		}
		// The library takes names in any case, so it may know more.
		if s.power == fencing.Off && other.PowerState != redfish.OffPowerState && !caseVariants(doc) {
			t.Errorf("Off, and the library has %q", other.PowerState)
		}
	})
}

// caseVariants tells whether a document has a name twice but for its case.
func caseVariants(doc map[string]any) bool {
	seen := map[string]bool{}
	for k := range doc {
		low := strings.ToLower(strings.ToUpper(k))
		if seen[low] {
			return true
		}
		seen[low] = true
	}
	return false
}
