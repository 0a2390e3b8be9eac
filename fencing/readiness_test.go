package fencing_test

import (
	"testing"

	"github.com/nodefence/nodefence/fencing"
)

func TestJudgeReadiness(t *testing.T) {
	type setting struct {
		p           fencing.Policy
		x           fencing.Expectation
		unaddressed string
		r           fencing.Reading
	}
	for _, k := range []struct {
		name   string
		change func(*setting)
		want   fencing.Reason
	}{
		{"well", func(*setting) {}, ""},
		{"starting", func(s *setting) { s.r.Power = fencing.PoweringOn }, ""},
		{"no address", func(s *setting) { s.unaddressed = "no group" }, fencing.ReasonUnaddressed},
		{"never read", func(s *setting) { s.r = fencing.Reading{} }, fencing.ReasonStateUnknown},
		{"unknown state", func(s *setting) { s.r.Power = fencing.Unknown }, fencing.ReasonStateUnknown},
		{"time-out", func(s *setting) { s.r.Failure.Kind = fencing.TimedOut }, fencing.ReasonUnreachable},
		{"password", func(s *setting) { s.r.Failure.Kind = fencing.Unauthorized }, fencing.ReasonRefused},
		{"certificate", func(s *setting) { s.r.Failure.Kind = fencing.Untrusted }, fencing.ReasonUntrusted},
		{"another machine", func(s *setting) { s.r.Identity.UUID = otherUUID }, fencing.ReasonWrongMachine},
		{"no identity", func(s *setting) { s.r.Identity = fencing.Identity{} }, fencing.ReasonIdentityUnproved},
		{"no identity, allowed", func(s *setting) { s.r.Identity, s.p.AllowUnproved = fencing.Identity{}, true }, ""},
		{"shared UUID", func(s *setting) { s.x.SharedUUID = true }, fencing.ReasonIdentityUnproved},
		{"witnesses", func(s *setting) { s.r.Hints.Conflict = "the chassis is Off" }, fencing.ReasonWitnessConflict},
		{"off", func(s *setting) { s.r.Power = fencing.Off }, fencing.ReasonOffWhileReady},
		{"suspended", func(s *setting) { s.r.Power = fencing.Suspended }, fencing.ReasonOffWhileReady},
		{"off and another machine", func(s *setting) { s.r.Power, s.r.Identity.UUID = fencing.Off, otherUUID }, fencing.ReasonWrongMachine},
	} {
		t.Run(k.name, func(t *testing.T) {
			s := setting{p: policy(), x: silent(0).Expected, r: reading(10, fencing.On)}
			k.change(&s)
			got := fencing.JudgeReadiness(s.p, s.x, s.unaddressed, s.r)
			if got.Reason != k.want || got.Ready() != (k.want == "") || (got.Message == "") != (k.want == "") {
				t.Errorf("%+v, want %q", got, k.want)
			}
		})
	}
}
