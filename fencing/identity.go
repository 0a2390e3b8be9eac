package fencing

import (
	"fmt"
	"strings"
)

// Identity is what tells one machine from another. Empty fields are not known.
type Identity struct {
	// UUID is the SMBIOS system UUID, in any byte order and case.
	UUID string
	// Serial is the system's serial number.
	Serial string
	// InstanceID is a cloud's or hypervisor's own identifier.
	InstanceID string
}

// Empty tells whether nothing is known.
func (i Identity) Empty() bool { return i == Identity{} }

// Expectation is the identity that a Node's machine must have.
type Expectation struct {
	Identity
	// SharedUUID is set when another Node of the cluster has the same UUID (in
	// any byte order): such a UUID is no identity.
	SharedUUID bool
}

// IdentityMatch is how a machine's identity compares with the expected one.
type IdentityMatch uint8

// The outcomes. The zero value is the doubtful one.
const (
	// IdentityUnproved: nothing to compare, or nothing that identifies.
	IdentityUnproved IdentityMatch = iota
	// IdentityProved: at least one identifier is equal and none differs.
	IdentityProved
	// IdentityMismatch: an identifier differs; this is another machine.
	IdentityMismatch
)

var matchNames = [...]string{"Unproved", "Proved", "Mismatch"}

// String gives the outcome's name.
func (m IdentityMatch) String() string { return enumName(matchNames[:], uint8(m), "IdentityMatch") }

// MarshalText gives the outcome's name.
func (m IdentityMatch) MarshalText() ([]byte, error) {
	return enumMarshal(matchNames[:], uint8(m), "identity match")
}

// UnmarshalText takes exactly the names above.
func (m *IdentityMatch) UnmarshalText(text []byte) error {
	v, err := enumParse(matchNames[:], string(text), "identity match")
	*m = IdentityMatch(v)
	return err
}

// Match compares what a machine says of itself with what is expected (S3). One
// differing identifier outweighs all that are equal. The second result says why,
// in words for people.
func (e Expectation) Match(got Identity) (IdentityMatch, string) {
	var equal, doubts []string
	compare := func(kind, want, have string, same func(a, b string) bool, usable func(string) bool) bool {
		switch {
		case want == "" || have == "":
			return true
		case !usable(want) || !usable(have):
			doubts = append(doubts, fmt.Sprintf("%s %q against %q is a vendor default and identifies nothing", kind, want, have))
			return true
		case same(want, have):
			equal = append(equal, fmt.Sprintf("%s %s", kind, have))
			return true
		}
		doubts = append(doubts, fmt.Sprintf("%s is %q where %q is expected", kind, have, want))
		return false
	}
	exact := func(a, b string) bool { return strings.EqualFold(strings.TrimSpace(a), strings.TrimSpace(b)) }
	ok := compare("serial", e.Serial, got.Serial, exact, UsableSerial)
	ok = compare("instance ID", e.InstanceID, got.InstanceID, func(a, b string) bool { return a == b }, UsableSerial) && ok
	switch {
	case !e.SharedUUID:
		ok = compare("UUID", e.UUID, got.UUID, SameUUID, UsableUUID) && ok
	case UsableUUID(e.UUID) && UsableUUID(got.UUID) && !SameUUID(e.UUID, got.UUID):
		// A shared UUID proves nothing, but another one still disproves.
		ok = compare("UUID", e.UUID, got.UUID, SameUUID, UsableUUID) && ok
	case e.UUID != "":
		doubts = append(doubts, fmt.Sprintf("UUID %s belongs to more than one Node and identifies nothing", e.UUID))
	}
	switch {
	case !ok:
		return IdentityMismatch, "another machine answers: " + strings.Join(doubts, "; ")
	case len(equal) > 0:
		return IdentityProved, strings.Join(equal, " and ") + " matches"
	case len(doubts) > 0:
		return IdentityUnproved, strings.Join(doubts, "; ")
	case e.Identity.Empty():
		return IdentityUnproved, "the Node gives no system UUID and none is configured"
	}
	return IdentityUnproved, "the machine gives no identifier that could be compared with the Node's"
}

// vendorSerials are fillers that whole product lines share.
var vendorSerials = map[string]bool{
	"to be filled by o.e.m.": true, "default string": true, "none": true, "n/a": true, "na": true,
	"not specified": true, "system serial number": true, "unknown": true, "null": true, "not available": true,
	"0123456789": true, "123456789": true, "1234567890": true, "empty": true, "oem": true,
	"to be filled by o.e.m": true, "chassis serial number": true, "base board serial number": true,
	"not applicable": true, "unspecified": true, "none specified": true, "undefined": true, "invalid": true,
}

// UsableSerial tells whether a serial number or instance ID can identify a
// machine: not blank, no vendor's filler, not one character repeated.
func UsableSerial(s string) bool {
	s = strings.ToLower(strings.TrimSpace(s))
	return s != "" && !vendorSerials[s] && strings.Trim(s, s[:1]) != ""
}

// vendorUUIDs are defaults that many boards share, in canonical form.
var vendorUUIDs = func() map[[16]byte]bool {
	m := map[[16]byte]bool{}
	for _, s := range []string{
		"03000200-0400-0500-0006-000700080009",
		"03de0294-0480-05de-1a06-350700080009",
		"00112233-4455-6677-8899-aabbccddeeff",
		"12345678-1234-5678-90ab-cddeefaabbcc",
		"01234567-89ab-cdef-0123-456789abcdef",
	} {
		u, ok := parseUUID(s)
		if !ok {
			panic("fencing: bad built-in UUID " + s)
		}
		m[canonical(u)] = true
	}
	return m
}()

// UsableUUID tells whether s is a UUID that can identify a machine: well formed,
// not one byte repeated, no vendor's default in any byte order.
func UsableUUID(s string) bool {
	u, ok := parseUUID(s)
	if !ok || vendorUUIDs[canonical(u)] {
		return false
	}
	for _, b := range u[1:] {
		if b != u[0] {
			return true
		}
	}
	return false
}

// SameUUID tells whether a and b are the same SMBIOS UUID in any of the byte
// orders in use: as printed, with the first three fields swapped (SMBIOS 2.6,
// DSP0134 section 7.2.1), all bytes reversed (IPMI 2.0 section 20.8), or both.
func SameUUID(a, b string) bool {
	x, ok := parseUUID(a)
	y, ok2 := parseUUID(b)
	return ok && ok2 && canonical(x) == canonical(y)
}

// UUIDKey is the same for all byte orders of one UUID, so that Nodes can be
// indexed by it. It is empty when s is no usable UUID.
func UUIDKey(s string) string {
	if !UsableUUID(s) {
		return ""
	}
	u, _ := parseUUID(s)
	return fmt.Sprintf("%x", canonical(u))
}

// canonical picks the smallest of all orders that swapping and reversing lead to,
// in whatever sequence, so that it is the same whichever order it starts from.
func canonical(u [16]byte) [16]byte {
	least := u
	v := u
	// Each round swaps and reverses once more; after four rounds it is u again.
	for range 4 {
		v = swapFields(v)
		least = smaller(least, v)
		v = reversed(v)
		least = smaller(least, v)
	}
	return least
}

func smaller(a, b [16]byte) [16]byte {
	if string(b[:]) < string(a[:]) {
		return b
	}
	return a
}

func swapFields(u [16]byte) [16]byte {
	return [16]byte{u[3], u[2], u[1], u[0], u[5], u[4], u[7], u[6], u[8], u[9], u[10], u[11], u[12], u[13], u[14], u[15]}
}

func reversed(u [16]byte) (r [16]byte) {
	for i := range u {
		r[15-i] = u[i]
	}
	return r
}

// parseUUID reads 32 hexadecimal digits, with or without the hyphens of RFC
// 9562, in any case, with or without braces.
func parseUUID(s string) (u [16]byte, ok bool) {
	s = strings.Trim(strings.TrimSpace(s), "{}")
	if len(s) == 36 {
		if s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
			return u, false
		}
		s = s[:8] + s[9:13] + s[14:18] + s[19:23] + s[24:]
	}
	if len(s) != 32 {
		return u, false
	}
	for i := range u {
		hi, lo := hexDigit(s[2*i]), hexDigit(s[2*i+1])
		if hi < 0 || lo < 0 {
			return [16]byte{}, false
		}
		u[i] = byte(hi<<4 | lo)
	}
	return u, true
}

func hexDigit(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}
