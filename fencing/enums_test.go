package fencing_test

import (
	"encoding"
	"fmt"
	"testing"

	"github.com/nodefence/nodefence/fencing"
)

type enum interface {
	encoding.TextUnmarshaler
	fmt.Stringer
}

// TestEnums: every value's name leads back to it; any other text is an error and
// leaves the zero value, which is always the one that permits nothing.
func TestEnums(t *testing.T) {
	power := make([]fencing.PowerState, 1)
	for _, e := range []struct {
		name  string
		count int
		// make gives a fresh value with the given number.
		make func(uint8) enum
	}{
		{"PowerState", 6, func(v uint8) enum { p := fencing.PowerState(v); return &p }},
		{"RestorePolicy", 4, func(v uint8) enum { p := fencing.RestorePolicy(v); return &p }},
		{"FailureKind", 13, func(v uint8) enum { p := fencing.FailureKind(v); return &p }},
		{"IdentityMatch", 3, func(v uint8) enum { p := fencing.IdentityMatch(v); return &p }},
		{"VerdictKind", 7, func(v uint8) enum { p := fencing.VerdictKind(v); return &p }},
		{"CaseState", 9, func(v uint8) enum { p := fencing.CaseState(v); return &p }},
		{"Mode", 3, func(v uint8) enum { p := fencing.Mode(v); return &p }},
		{"Severity", 3, func(v uint8) enum { p := fencing.Severity(v); return &p }},
		{"ReadyStatus", 4, func(v uint8) enum { p := fencing.ReadyStatus(v); return &p }},
	} {
		t.Run(e.name, func(t *testing.T) {
			zero := e.make(0).String()
			for v := range uint8(e.count) {
				value, back := e.make(v), e.make(0)
				text := []byte(value.String())
				if m, ok := value.(encoding.TextMarshaler); ok {
					got, err := m.MarshalText()
					if err != nil || string(got) != value.String() {
						t.Errorf("%s marshals as %q, %v", value, got, err)
					}
				}
				if err := back.UnmarshalText(text); err != nil || back.String() != value.String() {
					t.Errorf("%q leads to %s, %v", text, back, err)
				}
			}
			for _, bad := range []string{"off", "OFF", "Off ", " Off", "nonsense", "0", "2", "CaseState(9)", "Powering", "on", "confirm"} {
				value := e.make(uint8(e.count - 1))
				if err := value.UnmarshalText([]byte(bad)); err == nil || value.String() != zero {
					t.Errorf("%q leads to %s, error %v; want %q and an error", bad, value, err, zero)
				}
			}
			beyond := e.make(uint8(e.count))
			if m, ok := beyond.(encoding.TextMarshaler); ok {
				if text, err := m.MarshalText(); err == nil {
					t.Errorf("a value outside the enumeration marshals as %q", text)
				}
			}
			if got, want := beyond.String(), fmt.Sprintf("%s(%d)", e.name, e.count); got != want {
				t.Errorf("a value outside the enumeration is called %q, not %q", got, want)
			}
		})
	}
	if power[0] != fencing.Unknown {
		t.Error("a power state that nobody set is not Unknown")
	}
	if fencing.ActionKind(0).String() != "" || fencing.ActionTaint.String() != "Taint" {
		t.Error("names of actions")
	}
}

func TestSaysOff(t *testing.T) {
	for _, p := range []fencing.PowerState{fencing.Unknown, fencing.On, fencing.PoweringOn, fencing.PoweringOff, fencing.Suspended} {
		if reading(0, p).SaysOff() {
			t.Errorf("%s is taken for Off", p)
		}
		if got, want := p.Transitional(), p == fencing.PoweringOn || p == fencing.PoweringOff; got != want {
			t.Errorf("%s: transitional %t", p, got)
		}
	}
	r := reading(0, fencing.Off)
	if !r.SaysOff() {
		t.Error("a clean Off is none")
	}
	for k := fencing.Unreachable; k <= fencing.Failed; k++ {
		failed := r
		failed.Failure.Kind = k
		if failed.SaysOff() || !failed.Failed() {
			t.Errorf("%s is taken for Off", k)
		}
	}
	r.Hints.Conflict = "the chassis is On"
	if r.SaysOff() {
		t.Error("a conflict is taken for Off")
	}
}
