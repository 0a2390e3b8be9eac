package providertest

import (
	"strings"
	"testing"

	"github.com/nodefence/nodefence/fencing"
)

// otherUUID is another machine's.
const otherUUID = "9b2e7f04-1c3d-4a5b-8e6f-70819243a5b6"

// testIdentityOrders: whichever byte order the Node reports, it is the machine.
func testIdentityOrders(t *testing.T, h Harness) {
	h.needs(t, Identity, UUID)
	s := start(t, h)
	for name, uuid := range byteOrders(s.spec.UUID) {
		s.m.Expected = fencing.Expectation{Identity: fencing.Identity{UUID: uuid}}
		r := s.read(t)
		if match, why := s.m.Expected.Match(r.Identity); match != fencing.IdentityProved {
			t.Errorf("%s, %s: %v: %s", name, uuid, match, why)
		}
	}
}

// byteOrders gives a UUID in the orders in which Nodes report it.
func byteOrders(uuid string) map[string]string {
	h := strings.ReplaceAll(uuid, "-", "")
	turn := func(s string) string {
		var b strings.Builder
		for i := len(s) - 2; i >= 0; i -= 2 {
			b.WriteString(s[i : i+2])
		}
		return b.String()
	}
	swap := func(s string) string { return turn(s[:8]) + turn(s[8:12]) + turn(s[12:16]) + s[16:] }
	form := func(s string) string {
		return strings.Join([]string{s[:8], s[8:12], s[12:16], s[16:20], s[20:]}, "-")
	}
	return map[string]string{
		"as printed":           uuid,
		"upper case":           strings.ToUpper(uuid),
		"first fields swapped": form(swap(h)),
		"reversed":             form(turn(h)),
		"swapped and reversed": form(turn(swap(h))),
	}
}

// testWrongMachine: another machine's answer is reported as what it is, and it
// is never powered off, whatever the policy allows.
func testWrongMachine(t *testing.T, h Harness) {
	h.needs(t, Identity)
	s := start(t, h)
	s.m.Expected = fencing.Expectation{Identity: fencing.Identity{UUID: otherUUID, Serial: "OTHER-1"}}
	for _, allow := range []bool{false, true} {
		s.m.AllowUnproved = allow
		// A driver that looks for the machine by its identity may say that there
		// is none; then it must not have picked another.
		r := s.read(t)
		if match, _ := s.m.Expected.Match(r.Identity); match != fencing.IdentityMismatch && r.Power != fencing.Unknown {
			t.Errorf("another machine reads %v with identity %+v (%v)", r.Power, r.Identity, match)
		}
		before := s.commands()
		s.wantError(t, s.powerOff(t), fencing.WrongMachine)
		if s.commands() != before {
			t.Error("a power command was sent to another machine")
		}
		if got := s.end.Get(); got != fencing.On {
			t.Fatalf("another machine was brought to %v", got)
		}
	}
}

// testNoIdentity: a machine that cannot be told from another is read, and
// powered off only where the policy accepts that (S3, S5).
func testNoIdentity(t *testing.T, h Harness) {
	if h.Lacks[Identity] == "" {
		h.needs(t, NoIdentity)
	}
	s := start(t, h)
	if h.Lacks[Identity] == "" {
		s.end.Play(NoIdentity)
	}
	r := s.read(t)
	if r.Failed() || r.Power != fencing.On {
		t.Errorf("without identity: %v, failure %v: %s", r.Power, r.Failure.Kind, r.Failure.Message)
	}
	if match, why := s.m.Expected.Match(r.Identity); match != fencing.IdentityUnproved {
		t.Errorf("without identity the match is %v: %s", match, why)
	}
	before := s.commands()
	s.wantError(t, s.powerOff(t), fencing.Ambiguous)
	if s.commands() != before || s.end.Get() != fencing.On {
		t.Fatalf("a power command was sent without proof of identity; the machine is %v", s.end.Get())
	}
	s.m.AllowUnproved = true
	if err := s.powerOff(t); err != nil {
		t.Errorf("where the policy accepts it: %v", err)
	}
	s.awaitOff(t)
}
