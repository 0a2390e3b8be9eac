package fencing_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/nodefence/nodefence/fencing"
)

// Three orders in one dump of a Dell machine (QUIRKS).
const (
	dellSystem   = "4c4c4544-0035-3410-8050-c6c04f314733"
	dellRaw      = "44454c4c-3500-1034-8050-c6c04f314733"
	dellReversed = "3347314f-c0c6-5080-3410-00354c4c4544"
)

func TestMatch(t *testing.T) {
	id := func(uuid, serial, instance string) fencing.Identity {
		return fencing.Identity{UUID: uuid, Serial: serial, InstanceID: instance}
	}
	const (
		proved, unproved, mismatch = fencing.IdentityProved, fencing.IdentityUnproved, fencing.IdentityMismatch
		vendor                     = "03000200-0400-0500-0006-000700080009"
	)
	for _, c := range []struct {
		name      string
		want, got fencing.Identity
		shared    bool
		match     fencing.IdentityMatch
		why       string
	}{
		{"nothing expected", id("", "", ""), id(ourUUID, "", ""), false, unproved, "gives no system UUID"},
		{"nothing given", id(ourUUID, "", ""), id("", "", ""), false, unproved, "gives no identifier"},
		{"nothing in common", id(ourUUID, "", ""), id("", "S1", ""), false, unproved, "gives no identifier"},
		{"same UUID", id(ourUUID, "", ""), id(ourUUID, "", ""), false, proved, "matches"},
		{"upper case", id(ourUUID, "", ""), id(strings.ToUpper(ourUUID), "", ""), false, proved, "matches"},
		{"fields swapped", id(dellSystem, "", ""), id(dellRaw, "", ""), false, proved, "matches"},
		{"all bytes reversed", id(dellSystem, "", ""), id(dellReversed, "", ""), false, proved, "matches"},
		{"reversed against raw", id(dellRaw, "", ""), id(dellReversed, "", ""), false, proved, "matches"},
		{"vSphere's order", id("743F0E42-84EA-A2F9-8050-c6c04f314733", "", ""), id("420e3f74-ea84-f9a2-8050-c6c04f314733", "", ""), false, proved, "matches"},
		{"another UUID", id(ourUUID, "", ""), id(otherUUID, "", ""), false, mismatch, "another machine"},
		{"one digit differs", id(ourUUID, "", ""), id(ourUUID[:35]+"4", "", ""), false, mismatch, "another machine"},
		{"no UUID at all", id(ourUUID, "", ""), id("not-a-uuid", "", ""), false, unproved, "vendor default"},
		{"vendor default on both sides", id(vendor, "", ""), id(vendor, "", ""), false, unproved, "vendor default"},
		{"vendor default expected", id(vendor, "", ""), id(ourUUID, "", ""), false, unproved, "vendor default"},
		{"zeros", id("00000000-0000-0000-0000-000000000000", "", ""), id("00000000-0000-0000-0000-000000000000", "", ""), false, unproved, "vendor default"},
		{"shared UUID", id(ourUUID, "", ""), id(ourUUID, "", ""), true, unproved, "more than one Node"},
		{"shared UUID, and another answers", id(ourUUID, "", ""), id(otherUUID, "", ""), true, mismatch, "another machine"},
		{"shared UUID, another answers, same serial", id(ourUUID, "S1", ""), id(otherUUID, "S1", ""), true, mismatch, "another machine"},
		{"shared UUID and nothing given", id(ourUUID, "", ""), id("", "", ""), true, unproved, "more than one Node"},
		{"shared UUID, same serial", id(ourUUID, "S1", ""), id(ourUUID, "S1", ""), true, proved, "serial S1 matches"},
		{"same serial", id("", "S1", ""), id("", " s1 ", ""), false, proved, "matches"},
		{"another serial", id("", "S1", ""), id("", "S2", ""), false, mismatch, `serial is "S2" where "S1" is expected`},
		{"same UUID, another serial", id(ourUUID, "S1", ""), id(ourUUID, "S2", ""), false, mismatch, "another machine"},
		{"same serial, another UUID", id(ourUUID, "S1", ""), id(otherUUID, "S1", ""), false, mismatch, "another machine"},
		{"same UUID, filler serial", id(ourUUID, "S1", ""), id(ourUUID, "To be filled by O.E.M.", ""), false, proved, "matches"},
		{"filler serial on both sides", id("", "Default string", ""), id("", "Default string", ""), false, unproved, "vendor default"},
		{"same instance", id("", "", "i-0abc"), id("", "", "i-0abc"), false, proved, "matches"},
		{"another instance", id("", "", "i-0abc"), id("", "", "i-0abd"), false, mismatch, "another machine"},
		{"instance in another case", id("", "", "i-0abc"), id("", "", "I-0ABC"), false, mismatch, "another machine"},
		{"same instance, another UUID", id(ourUUID, "", "i-1"), id(otherUUID, "", "i-1"), false, mismatch, "another machine"},
		{"both match", id(ourUUID, "S1", ""), id(ourUUID, "S1", ""), false, proved, " and UUID"},
	} {
		t.Run(c.name, func(t *testing.T) {
			match, why := fencing.Expectation{Identity: c.want, SharedUUID: c.shared}.Match(c.got)
			if match != c.match || !strings.Contains(why, c.why) {
				t.Errorf("%s: %s; want %s with %q", match, why, c.match, c.why)
			}
		})
	}
}

func TestUsableUUID(t *testing.T) {
	for s, want := range map[string]bool{
		ourUUID: true, strings.ToUpper(ourUUID): true, strings.ReplaceAll(ourUUID, "-", ""): true, "{" + ourUUID + "}": true, " " + ourUUID + "\n": true,
		"00000000-0000-0000-0000-ac1f6b123456": true,
		"":                                     false, "-": false,
		"00000000-0000-0000-0000-000000000000": false,
		"ffffffff-ffff-ffff-ffff-ffffffffffff": false,
		"FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF": false,
		"03000200-0400-0500-0006-000700080009": false,
		"00020003-0004-0005-0006-000700080009": false, // its swap
		"09000800-0700-0600-0005-000400020003": false, // its reversal
		"03de0294-0480-05de-1a06-350700080009": false,
		"9402de03-8004-de05-1a06-350700080009": false,
		"12345678-1234-5678-90ab-cddeefaabbcc": false,
		"To be filled by O.E.M.":               false,
		"4c4c4544-0035-3410-8050-c6c04f31473":  false, // a digit short
		"4c4c4544-0035-3410-8050-c6c04f31473g": false,
		"4c4c454400-35-3410-8050-c6c04f314733": false, // hyphens elsewhere
		"4c4c4544 0035 3410 8050 c6c04f314733": false,
		"4c4c4544 0035-3410-8050-c6c04f314733": false, // one of them another character
		"4c4c4544-0035 3410-8050-c6c04f314733": false,
		"4c4c4544-0035-3410 8050-c6c04f314733": false,
		"4c4c4544-0035-3410-8050 c6c04f314733": false,
	} {
		if got := fencing.UsableUUID(s); got != want {
			t.Errorf("UsableUUID(%q) = %t", s, got)
		}
		if key := fencing.UUIDKey(s); (key != "") != want {
			t.Errorf("UUIDKey(%q) = %q", s, key)
		}
	}
}

func TestUsableSerial(t *testing.T) {
	for s, want := range map[string]bool{
		"5P1GS13": true, "i-0abc": true, "": false, "  ": false, "0": false, "0000000": false, "XXXX": false, "....": false,
		"To be filled by O.E.M.": false, "to be filled by o.e.m": false, "Default string": false, "N/A": false, "None": false,
		"Not Specified": false, "System Serial Number": false, "0123456789": false, "Chassis Serial Number": false, " none ": false,
	} {
		if got := fencing.UsableSerial(s); got != want {
			t.Errorf("UsableSerial(%q) = %t", s, got)
		}
	}
}

// TestUUIDOrders: whatever two orders two sources use, it is one machine, and the
// index of Nodes by UUID finds it (S3: shared UUIDs must be seen to be shared).
func TestUUIDOrders(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u := rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "uuid")
		a, b := u, u
		for range rapid.IntRange(0, 5).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "swap") {
				b = swapped(b)
			} else {
				b = backwards(b)
			}
		}
		if !fencing.SameUUID(printed(a), printed(b)) {
			t.Fatalf("%s and %s are the same in another order", printed(a), printed(b))
		}
		if fencing.UUIDKey(printed(a)) != fencing.UUIDKey(printed(b)) {
			t.Fatalf("%s and %s have different keys", printed(a), printed(b))
		}
	})
}

func swapped(u []byte) []byte {
	return []byte{u[3], u[2], u[1], u[0], u[5], u[4], u[7], u[6], u[8], u[9], u[10], u[11], u[12], u[13], u[14], u[15]}
}

func backwards(u []byte) []byte {
	r := make([]byte, 0, 16)
	for i := 15; i >= 0; i-- {
		r = append(r, u[i])
	}
	return r
}

func printed(u []byte) string {
	const digits = "0123456789abcdef"
	var b strings.Builder
	for i, v := range u {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			b.WriteByte('-')
		}
		b.WriteByte(digits[v>>4])
		b.WriteByte(digits[v&15])
	}
	return b.String()
}
