package ipmi

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/bougou/go-ipmi/pkg/types"

	"github.com/nodefence/nodefence/fencing"
)

// Everything that a controller says is understood here, byte by byte, and
// nowhere else. What is not known is Unknown, never Off.

// status is what Get Chassis Status says (section 28.2).
type status struct {
	power   fencing.PowerState
	restore fencing.RestorePolicy
	// words are the faults and the last event, for people.
	words []string
}

// parseStatus reads the data of a successful Get Chassis Status. The
// specification has three bytes and an optional fourth: of an answer with any
// other length the first byte is not the power state, even if there is one.
func parseStatus(data []byte) (status, error) {
	if len(data) != 3 && len(data) != 4 {
		return status{}, fmt.Errorf("chassis status has %d bytes (%s) where 3 or 4 are due", len(data), hexOf(data))
	}
	s := status{power: fencing.Off}
	if data[0]&1 != 0 {
		s.power = fencing.On
	}
	s.restore = [4]fencing.RestorePolicy{
		fencing.RestoreAlwaysOff, fencing.RestoreLastState, fencing.RestoreAlwaysOn, fencing.RestoreUnknown,
	}[data[0]>>5&3]
	for _, w := range []struct {
		byte, bit int
		word      string
	}{
		{0, 1, "power overload"}, {0, 2, "interlock active"}, {0, 3, "power fault"}, {0, 4, "power control fault"},
		{1, 0, "last event: mains failed"}, {1, 1, "last event: down by overload"},
		{1, 2, "last event: down by interlock"}, {1, 3, "last event: down by power fault"},
		{1, 4, "last event: on by command"}, {2, 0, "chassis intrusion"}, {2, 3, "fan fault"},
	} {
		if data[w.byte]>>w.bit&1 != 0 {
			s.words = append(s.words, w.word)
		}
	}
	return s, nil
}

// sleeping tells whether Get ACPI Power State says that the system sleeps or is
// hibernated (section 20.6): then power bit 0 is not off, because it resumes
// with its old memory (S12). States that are off, on or unknown, or any answer
// that is not understood, tell nothing: many controllers never set the state.
func sleeping(data []byte) (word string, asleep bool) {
	const dontChange, s1, s2, s3, s4, sleeping, g1 = 0x80, 0x01, 0x02, 0x03, 0x04, 0x08, 0x09
	if len(data) != 2 {
		return "", false
	}
	switch data[0] &^ dontChange {
	case s1:
		return "S1 (sleeping)", true
	case s2:
		return "S2 (sleeping)", true
	case s3:
		return "S3 (suspended to memory)", true
	case s4:
		return "S4 (hibernated)", true
	case sleeping:
		return "S1, S2 or S3 (sleeping)", true
	case g1:
		return "G1 (sleeping)", true
	}
	return "", false
}

// parseGUID reads the data of Get System GUID. Controllers send it in several
// byte orders; the one in which it looks most like a UUID is given, and
// package fencing compares in all of them.
func parseGUID(data []byte) (string, error) {
	if len(data) != 16 {
		return "", fmt.Errorf("the system GUID has %d bytes (%s) where 16 are due", len(data), hexOf(data))
	}
	u := [16]byte(data)
	if u == ([16]byte{}) {
		return "", nil
	}
	swapped := u // as SMBIOS keeps it in memory; the most common
	slices.Reverse(swapped[0:4])
	slices.Reverse(swapped[4:6])
	slices.Reverse(swapped[6:8])
	reversed := u // as the IPMI specification says
	slices.Reverse(reversed[:])
	for _, v := range [][16]byte{swapped, reversed, u} {
		if version := v[6] >> 4; version >= 1 && version <= 8 && v[8]>>6 == 2 {
			return formatUUID(v), nil
		}
	}
	return formatUUID(swapped), nil
}

func formatUUID(u [16]byte) string {
	h := hex.EncodeToString(u[:])
	return strings.Join([]string{h[:8], h[8:12], h[12:16], h[16:20], h[20:]}, "-")
}

// Completion codes (section 5.2).
const (
	codeOK                = 0x00
	codeNodeBusy          = 0xc0
	codeInvalidCommand    = 0xc1
	codeInvalidForLUN     = 0xc2
	codeTimeout           = 0xc3
	codeOutOfSpace        = 0xc4
	codeBadReservation    = 0xc5
	codeUpdating          = 0xd1
	codeInitializing      = 0xd2
	codePrivilege         = 0xd4
	codeNotInPresentState = 0xd5
	codeDisabled          = 0xd6
	codeUnspecified       = 0xff
)

var codeWords = map[uint8]string{
	codeNodeBusy: "node busy", codeInvalidCommand: "invalid command", codeInvalidForLUN: "command invalid for this LUN",
	codeTimeout: "timeout within the controller", codeOutOfSpace: "out of space", codeBadReservation: "reservation cancelled",
	codeUpdating: "firmware update in progress", codeInitializing: "controller initialization in progress",
	codePrivilege: "insufficient privilege", codeNotInPresentState: "not supported in the present state",
	codeDisabled: "sub-function disabled", codeUnspecified: "unspecified error",
}

// commandProblem is the meaning of a completion code, nil for success.
func commandProblem(c command, code uint8) error {
	if code == codeOK {
		return nil
	}
	word := codeWords[code]
	if word == "" {
		word = "unknown code"
	}
	kind, advice := fencing.Failed, ""
	switch code {
	case codeNodeBusy, codeTimeout, codeOutOfSpace, codeUpdating, codeInitializing:
		kind, advice = fencing.Busy, "; the controller is not ready, ask again later"
	case codePrivilege:
		kind, advice = fencing.Forbidden, "; give the account the level Operator, or set privilege and powerOffPrivilege"
	}
	// The command's own codes.
	if c == cmdPrivilege && code >= 0x80 && code <= 0x82 {
		kind, word, advice = fencing.Forbidden, "privilege level refused", "; give the account the level Operator, or set privilege and powerOffPrivilege"
	}
	return problemf(kind, "%s: completion code %#02x (%s)%s", c.name, code, word, advice)
}

// notImplemented tells whether the code says that the controller lacks the
// command, as it may where the command is optional.
func notImplemented(code uint8) bool {
	return code == codeInvalidCommand || code == codeInvalidForLUN || code == codeDisabled
}

// setupProblem is the meaning of a status code of the session setup (section
// 13.24).
func setupProblem(what string, code types.RmcpStatusCode) error {
	p := problemf(fencing.Failed, "%s: status %#02x (%s)", what, uint8(code), code)
	switch code {
	case types.RmcpStatusCodeNoResToCreateSess, types.RmcpStatusCodeNoResToCreateSessAtRole:
		p.kind, p.text = fencing.Busy, p.text+"; the controller has no session left"
	case types.RmcpStatusCodeInvalidSessionID, types.RmcpStatusCodeInactiveSessionID:
		p.kind, p.text = fencing.Busy, p.text+"; the controller dropped the session while it was set up, as it does when too many are opened at once"
	case types.RmcpStatusCodeInvalidAuthAlg, types.RmcpStatusCodeInvalidIntegrityAlg, types.RmcpStatusCodeInvalidConfidentAlg,
		types.RmcpStatusCodeNoCipherSuiteMatch, types.RmcpStatusCodeInvalidPayloadType,
		types.RmcpStatusCodeNoMatchingAuthPayload, types.RmcpStatusCodeNoMatchingIntegrityPayload:
		p.err = errSuite
	case types.RmcpStatusCodeInvalidRole, types.RmcpStatusCodeUnauthorizedRoleOfPriLevel:
		p.kind, p.text = fencing.Forbidden, p.text+"; give the account the level Operator, or set privilege and powerOffPrivilege"
	case types.RmcpStatusCodeInvalidNameLength, types.RmcpStatusCodeUnauthorizedName, types.RmcpStatusCodeInvalidIntegrityCheckValue:
		p.kind, p.text = fencing.Unauthorized, p.text+"; check user and password, and that the user may use the LAN channel"
	}
	return p
}

// hexOf shows bytes, cut short.
func hexOf(b []byte) string {
	if len(b) > 20 {
		b = b[:20]
	}
	if len(b) == 0 {
		return "none"
	}
	return fmt.Sprintf("% x", b)
}
