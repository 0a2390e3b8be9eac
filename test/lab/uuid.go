package lab

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// UUID is a machine's SMBIOS UUID in the order in which people write it
// (RFC 4122, most significant byte first).
type UUID [16]byte

// NewUUID makes a random one.
func NewUUID() UUID {
	var u UUID
	_, _ = rand.Read(u[:]) // crypto/rand never returns an error
	u[6] = u[6]&0x0f | 0x40
	u[8] = u[8]&0x3f | 0x80
	return u
}

// ParseUUID reads the usual form with hyphens, in either case.
func ParseUUID(s string) (UUID, error) {
	var u UUID
	b, err := hex.DecodeString(strings.ReplaceAll(s, "-", ""))
	if err != nil || len(b) != len(u) || len(s) != 36 {
		return u, fmt.Errorf("lab: %q is not a UUID", s)
	}
	copy(u[:], b)
	return u, nil
}

// MustUUID is [ParseUUID] for constants in tests.
func MustUUID(s string) UUID {
	u, err := ParseUUID(s)
	if err != nil {
		panic(err)
	}
	return u
}

// String gives the usual lower-case form, as a kubelet reports it.
func (u UUID) String() string {
	h := hex.EncodeToString(u[:])
	return strings.Join([]string{h[:8], h[8:12], h[12:16], h[16:20], h[20:]}, "-")
}

// Swapped has the bytes of the first three fields in reverse, as SMBIOS keeps
// them in memory; many controllers send these 16 bytes, or print them as they
// lie.
func (u UUID) Swapped() UUID {
	slices.Reverse(u[0:4])
	slices.Reverse(u[4:6])
	slices.Reverse(u[6:8])
	return u
}

// Reversed has all bytes in reverse, as the IPMI specification orders a GUID.
func (u UUID) Reversed() UUID {
	slices.Reverse(u[:])
	return u
}
