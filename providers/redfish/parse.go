package redfish

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/stmcginnis/gofish/common"
	"github.com/stmcginnis/gofish/redfish"

	"github.com/nodefence/nodefence/fencing"
	"github.com/nodefence/nodefence/providers"
)

// serviceRoot is where every Redfish service begins (DSP0266 section 6.3).
const serviceRoot = common.DefaultServiceRoot

// system is what counts of a ComputerSystem.
type system struct {
	path  string
	power fencing.PowerState
	// powerFault says why power is Unknown, in words.
	powerFault string
	identity   fencing.Identity
	hints      fencing.Hints
	// raw is the part of the document that counted.
	raw string
	// chassis are the paths of the chassis that it says it is in.
	chassis []string
	reset   resetAction

	etag                string
	askedAt, answeredAt time.Time
}

// resetAction is how a system may be reset.
type resetAction struct {
	target string
	// allowed are the values it takes; nil when it does not say.
	allowed []string
	// info is the path of its ActionInfo, where it may say so instead.
	info string
}

// errNotSystem: the document is something else than the ComputerSystem that was
// asked for.
var errNotSystem = errors.New("it is not the ComputerSystem that was asked for")

// parsePower reads a PowerState (DSP0268, Resource.PowerState). Only the exact
// words count: comparing without case, or by a part of the word, has turned
// PoweringOff into Off elsewhere. raw is nil when the property is missing. The
// text says why the result is Unknown.
func parsePower(raw json.RawMessage) (fencing.PowerState, string) {
	if raw == nil {
		return fencing.Unknown, "there is no PowerState"
	}
	var word string
	switch err := json.Unmarshal(raw, &word); {
	case err != nil:
		return fencing.Unknown, "PowerState is no text: " + clip(string(raw), 40)
	case string(bytes.TrimSpace(raw)) == "null":
		return fencing.Unknown, "PowerState is null: the endpoint does not know it now"
	}
	switch redfish.PowerState(word) {
	case redfish.OnPowerState:
		return fencing.On, ""
	case redfish.OffPowerState:
		return fencing.Off, ""
	case redfish.PoweringOnPowerState:
		return fencing.PoweringOn, ""
	case redfish.PoweringOffPowerState:
		return fencing.PoweringOff, ""
	case redfish.PausedPowerState:
		return fencing.Suspended, ""
	}
	return fencing.Unknown, fmt.Sprintf("PowerState is %q, which is no power state of the Redfish schema", clip(word, 40))
}

// parseSystem reads the answer to a GET of path. The document must say that it
// is a ComputerSystem and that it lives there: a service root, a chassis or
// another member in its place is an error. Properties that do not count are not
// looked at, so their values may be wrong in any way.
func parseSystem(path string, body []byte) (system, error) {
	doc, err := resource(path, body, "ComputerSystem", errNotSystem)
	if err != nil {
		return system{}, err
	}
	s := system{
		path:     path,
		identity: fencing.Identity{UUID: word(doc["UUID"]), Serial: word(doc["SerialNumber"])},
		hints: fencing.Hints{
			LastReset:     parseLastReset(doc["LastResetTime"]),
			BootProgress:  word(member(doc["BootProgress"], "LastState")),
			RestorePolicy: parseRestorePolicy(doc["PowerRestorePolicy"]),
		},
		chassis: links(member(doc["Links"], "Chassis")),
		reset:   parseReset(member(doc["Actions"], "#ComputerSystem.Reset")),
	}
	s.power, s.powerFault = parsePower(doc["PowerState"])
	s.raw = rawOf(path, doc, "PowerState", "UUID", "SerialNumber", "LastResetTime", "PowerRestorePolicy")
	return s, nil
}

// resource reads a document and checks that it is of a type and lives at path.
// wrong is what the error wraps when it is another one.
func resource(path string, body []byte, kind string, wrong error) (map[string]json.RawMessage, error) {
	doc, err := object(body)
	if err != nil {
		return nil, err
	}
	if id := word(doc["@odata.id"]); strings.TrimSuffix(id, "/") != strings.TrimSuffix(path, "/") {
		return nil, fmt.Errorf("%w: its @odata.id is %q", wrong, id)
	}
	if t := word(doc["@odata.type"]); !strings.HasPrefix(t, "#"+kind+".") || !strings.HasSuffix(t, "."+kind) {
		return nil, fmt.Errorf("%w: its @odata.type is %q", wrong, t)
	}
	return doc, nil
}

// parseLastReset takes a date and time that can be meant. LastResetTime came
// into the schema in 2020: what is before the first Redfish, of 2015, is a clock
// that nobody has set, or no date at all.
func parseLastReset(raw json.RawMessage) time.Time {
	at, err := time.Parse(time.RFC3339, word(raw))
	if err != nil || at.Year() < 2015 {
		return time.Time{}
	}
	return at.UTC()
}

func parseRestorePolicy(raw json.RawMessage) fencing.RestorePolicy {
	switch redfish.PowerRestorePolicyTypes(word(raw)) {
	case redfish.AlwaysOnPowerRestorePolicyTypes:
		return fencing.RestoreAlwaysOn
	case redfish.AlwaysOffPowerRestorePolicyTypes:
		return fencing.RestoreAlwaysOff
	case redfish.LastStatePowerRestorePolicyTypes:
		return fencing.RestoreLastState
	}
	return fencing.RestoreUnknown
}

func parseReset(raw json.RawMessage) resetAction {
	a := resetAction{target: word(member(raw, "target"))}
	a.info, _ = localPath(word(member(raw, "@Redfish.ActionInfo")))
	a.allowed = words(member(raw, "ResetType@Redfish.AllowableValues"))
	return a
}

// parseActionInfo gives the values that an ActionInfo allows for ResetType; nil
// when it does not say.
func parseActionInfo(body []byte) []string {
	doc, err := object(body)
	if err != nil {
		return nil
	}
	for _, p := range list(doc["Parameters"]) {
		if word(member(p, "Name")) == "ResetType" {
			return words(member(p, "AllowableValues"))
		}
	}
	return nil
}

// chassis is what counts of a Chassis.
type chassis struct {
	power fencing.PowerState
	// word is its PowerState as it stands.
	word string
	// systems are the paths of the systems that it says it holds.
	systems []string
}

var errNotChassis = errors.New("it is not the Chassis that was asked for")

func parseChassis(path string, body []byte) (chassis, error) {
	doc, err := resource(path, body, "Chassis", errNotChassis)
	if err != nil {
		return chassis{}, err
	}
	c := chassis{word: word(doc["PowerState"]), systems: links(member(doc["Links"], "ComputerSystems"))}
	c.power, _ = parsePower(doc["PowerState"])
	return c, nil
}

// disagrees is the text of Hints.Conflict when a chassis says otherwise than the
// system in it. Only a chassis that holds this system and no other is a witness:
// an enclosure is on while any of its systems is.
func (c chassis) disagrees(path string, s system) string {
	for _, other := range c.systems {
		if strings.TrimSuffix(other, "/") != strings.TrimSuffix(s.path, "/") {
			return ""
		}
	}
	against := false
	switch s.power {
	case fencing.Off:
		against = c.power != fencing.Off && c.power != fencing.Unknown
	case fencing.On:
		against = c.power == fencing.Off
	}
	if !against {
		return ""
	}
	return fmt.Sprintf("the system %s says %s while its chassis %s says %s", s.path, s.power, path, clip(c.word, 20))
}

// rootLinks are the places that a service root names.
type rootLinks struct{ systems, sessions string }

// parseRoot reads a service root. A missing Systems is left to the caller: a
// configured path does without. A missing Sessions is where the specification
// has it.
func parseRoot(body []byte) (rootLinks, error) {
	doc, err := object(body)
	if err != nil {
		return rootLinks{}, err
	}
	if t := word(doc["@odata.type"]); !strings.HasPrefix(t, "#ServiceRoot.") {
		return rootLinks{}, fmt.Errorf("it is no Redfish service root: its @odata.type is %q", t)
	}
	r := rootLinks{sessions: serviceRoot + "SessionService/Sessions"}
	r.systems, _ = localPath(word(member(doc["Systems"], "@odata.id")))
	if p, ok := localPath(word(member(member(doc["Links"], "Sessions"), "@odata.id"))); ok {
		r.sessions = p
	}
	return r, nil
}

// collection is one page of a resource collection.
type collection struct {
	// members has an empty string for each that is no link to a resource.
	members []string
	// count is what it says of itself; -1 when it does not.
	count int
	// next is the path of the next page, or empty.
	next string
}

func parseCollection(body []byte) (collection, error) {
	doc, err := object(body)
	if err != nil {
		return collection{}, err
	}
	raw := doc["Members"]
	var members []json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil || members == nil {
		return collection{}, errors.New("it is no collection: it has no Members")
	}
	c := collection{count: -1}
	for _, m := range members {
		p, ok := localPath(word(member(m, "@odata.id")))
		if !ok || p == serviceRoot {
			p = ""
		}
		c.members = append(c.members, p)
	}
	if n, ok := doc["Members@odata.count"]; ok && json.Unmarshal(n, &c.count) != nil {
		c.count = -1
	}
	next := word(doc["Members@odata.nextLink"])
	if p, _, _ := strings.Cut(next, "?"); next != "" {
		if _, ok := localPath(p); !ok {
			return collection{}, errors.New("the collection's next page is not on this endpoint")
		}
		c.next = next
	}
	return c, nil
}

// member is a member of a JSON object, or nil: a value of another type has no
// members.
func member(raw json.RawMessage, name string) json.RawMessage {
	if len(bytes.TrimSpace(raw)) == 0 {
		return nil
	}
	doc, err := object(raw)
	if err != nil {
		return nil
	}
	return doc[name]
}

// word is a JSON text, trimmed; anything else is empty.
func word(raw json.RawMessage) string {
	var s string
	if raw == nil || json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return clip(providers.CleanRaw(s), 256)
}

// list are the elements of a JSON array; anything else has none.
func list(raw json.RawMessage) []json.RawMessage {
	var l []json.RawMessage
	if raw == nil || json.Unmarshal(raw, &l) != nil {
		return nil
	}
	return l
}

// words are the texts in a JSON array; nil when it is none.
func words(raw json.RawMessage) []string {
	var out []string
	for _, r := range list(raw) {
		out = append(out, word(r))
	}
	return out
}

// links are the paths in a JSON array of references.
func links(raw json.RawMessage) []string {
	var out []string
	for _, r := range list(raw) {
		if p, ok := localPath(word(member(r, "@odata.id"))); ok {
			out = append(out, p)
		}
	}
	return out
}

// rawOf is the part of a document that counted, as it stood there.
func rawOf(path string, doc map[string]json.RawMessage, names ...string) string {
	var b strings.Builder
	b.WriteString(path + ":")
	for _, n := range names {
		if v, ok := doc[n]; ok {
			fmt.Fprintf(&b, " %s=%s", n, clip(string(v), 64))
		} else {
			fmt.Fprintf(&b, " %s missing", n)
		}
	}
	return b.String()
}
