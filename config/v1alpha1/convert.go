package v1alpha1

import (
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nodefence/nodefence/fencing"
)

// FromCase gives the spec and status that record c. Times are kept to the
// microsecond, which is what the controller's clock is cut to.
//
//nolint:gocritic // a Case is a value
func FromCase(c fencing.Case) (FencingCaseSpec, FencingCaseStatus) {
	spec := FencingCaseSpec{NodeName: c.Node, NodeUID: c.NodeUID, BootID: c.BootID}
	s := FencingCaseStatus{
		State: c.State.String(), Group: c.Group,
		OpenedAt: micro(c.OpenedAt), ClosedAt: micro(c.ClosedAt), LeaseRenewedAt: micro(c.LeaseRenewedAt),
		NotReadySince: micro(c.NotReadySince), ReadySince: micro(c.ReadySince),
		Verdict:  &Verdict{Kind: c.Verdict.Kind.String(), Reason: string(c.Verdict.Reason), Message: c.Verdict.Message, Since: micro(c.Verdict.Since)},
		Refusals: int32(c.Refusals),
	}
	switch h := c.Hold; h.Reason {
	case "":
		s.WaitingSince = micro(h.Since)
	default:
		s.Hold = &Hold{Reason: string(h.Reason), Message: h.Message, Remedy: h.Reason.Remedy(), Since: micro(h.Since), AlertedAt: micro(h.AlertedAt)}
	}
	if k := c.Streak; k.Count > 0 {
		s.Streak = &Streak{Provider: k.Provider, Count: int32(k.Count), First: metav1.NewMicroTime(k.First), Last: metav1.NewMicroTime(k.Last),
			LastAnswered: metav1.NewMicroTime(k.LastAnswered), LeaseRenewedAt: micro(k.LeaseRenewedAt), LastReset: micro(k.LastReset)}
	}
	if p := c.PowerOff; p.Attempts > 0 {
		s.PowerOff = &PowerOff{Attempts: int32(p.Attempts), IntendedAt: micro(p.IntendedAt), EndedAt: micro(p.EndedAt), FirstOffAt: micro(p.FirstOffAt), Failure: fromFailure(p.Failure)}
	}
	if t := c.Taint; t != (fencing.TaintRecord{}) {
		s.Taint = &Taint{OffSince: micro(t.OffSince), LastReset: micro(t.LastReset), IntendedAt: micro(t.IntendedAt), AppliedAt: micro(t.AppliedAt),
			EvacuatedAt: micro(t.EvacuatedAt), UntaintIntendedAt: micro(t.UntaintIntendedAt), RemovedAt: micro(t.RemovedAt)}
	}
	for _, e := range c.Readings {
		s.Readings = append(s.Readings, fromEvidence(e))
	}
	for _, e := range c.Timeline {
		s.Timeline = append(s.Timeline, TimelineEntry{At: metav1.NewMicroTime(e.At), Severity: e.Severity.String(), Reason: string(e.Reason), Message: e.Message})
	}
	return spec, s
}

//nolint:gocritic // a reading is a value
func fromEvidence(e fencing.Evidence) Reading {
	return Reading{
		Provider: e.Provider, Driver: e.Driver, Address: e.Address,
		AskedAt: metav1.NewMicroTime(e.AskedAt), AnsweredAt: micro(e.AnsweredAt), Power: e.Power.String(),
		UUID: e.Identity.UUID, Serial: e.Identity.Serial, InstanceID: e.Identity.InstanceID,
		Identity: e.Match.String(), IdentityReason: e.MatchReason,
		LastReset: micro(e.Hints.LastReset), BootProgress: e.Hints.BootProgress, RestorePolicy: e.Hints.RestorePolicy.String(),
		Conflict: e.Hints.Conflict, Failure: fromFailure(e.Failure), Raw: e.Raw,
	}
}

func fromFailure(f fencing.Failure) *Failure {
	if f.Kind == fencing.NoFailure {
		return nil
	}
	out := &Failure{Kind: f.Kind.String(), Message: f.Message}
	if f.RetryAfter > 0 {
		out.RetryAfter = &metav1.Duration{Duration: f.RetryAfter}
	}
	return out
}

// ToCase gives the case that the object records. A value that nodefence never
// writes is an error with its path: an object that somebody edited by hand is not
// guessed at.
func (o *FencingCase) ToCase() (fencing.Case, error) {
	s := &o.Status
	r := &reader{}
	c := fencing.Case{
		Name: o.Name, Node: o.Spec.NodeName, NodeUID: o.Spec.NodeUID, BootID: o.Spec.BootID, Group: s.Group,
		OpenedAt: when(s.OpenedAt), ClosedAt: when(s.ClosedAt), LeaseRenewedAt: when(s.LeaseRenewedAt),
		NotReadySince: when(s.NotReadySince), ReadySince: when(s.ReadySince), Refusals: int(s.Refusals),
	}
	r.text("status.state", &c.State, s.State)
	if v := s.Verdict; v != nil {
		c.Verdict = fencing.Verdict{Message: v.Message, Since: when(v.Since)}
		r.text("status.verdict.kind", &c.Verdict.Kind, v.Kind)
		c.Verdict.Reason = r.reason("status.verdict.reason", v.Reason)
	}
	c.Hold.Since = when(s.WaitingSince)
	if h := s.Hold; h != nil {
		c.Hold = fencing.Hold{Reason: r.needed("status.hold.reason", h.Reason), Message: h.Message, Since: when(h.Since), AlertedAt: when(h.AlertedAt)}
	}
	if k := s.Streak; k != nil {
		c.Streak = fencing.Streak{Provider: k.Provider, Count: int(k.Count), First: k.First.UTC(), Last: k.Last.UTC(),
			LastAnswered: k.LastAnswered.UTC(), LeaseRenewedAt: when(k.LeaseRenewedAt), LastReset: when(k.LastReset)}
	}
	if p := s.PowerOff; p != nil {
		c.PowerOff = fencing.PowerOffRecord{Attempts: int(p.Attempts), IntendedAt: when(p.IntendedAt), EndedAt: when(p.EndedAt), FirstOffAt: when(p.FirstOffAt), Failure: r.failure("status.powerOff.failure", p.Failure)}
	}
	if t := s.Taint; t != nil {
		c.Taint = fencing.TaintRecord{OffSince: when(t.OffSince), LastReset: when(t.LastReset), IntendedAt: when(t.IntendedAt), AppliedAt: when(t.AppliedAt),
			EvacuatedAt: when(t.EvacuatedAt), UntaintIntendedAt: when(t.UntaintIntendedAt), RemovedAt: when(t.RemovedAt)}
	}
	for i := range s.Readings {
		c.Readings = append(c.Readings, r.evidence(fmt.Sprintf("status.readings[%d]", i), &s.Readings[i]))
	}
	for i, e := range s.Timeline {
		path := fmt.Sprintf("status.timeline[%d]", i)
		entry := fencing.Entry{At: e.At.UTC(), Message: e.Message, Reason: r.reason(path+".reason", e.Reason)}
		r.text(path+".severity", &entry.Severity, e.Severity)
		c.Timeline = append(c.Timeline, entry)
	}
	if r.err != nil {
		return fencing.Case{}, fmt.Errorf("fencing case %s: %w", o.Name, r.err)
	}
	return c, nil
}

// reader parses values and keeps the first error.
type reader struct{ err error }

func (r *reader) fail(path string, err error) {
	if r.err == nil && err != nil {
		r.err = fmt.Errorf("%s: %w", path, err)
	}
}

func (r *reader) text(path string, into interface{ UnmarshalText([]byte) error }, s string) {
	r.fail(path, into.UnmarshalText([]byte(s)))
}

func (r *reader) reason(path, s string) fencing.Reason {
	reason := fencing.Reason(s)
	if _, known := reason.Text(); !known && s != "" {
		r.fail(path, fmt.Errorf("%q is no reason that nodefence knows", s))
	}
	return reason
}

// needed is a reason that may not be empty: a hold without one would be none.
func (r *reader) needed(path, s string) fencing.Reason {
	if s == "" {
		r.fail(path, errors.New("is empty"))
	}
	return r.reason(path, s)
}

func (r *reader) failure(path string, f *Failure) (out fencing.Failure) {
	if f == nil {
		return out
	}
	out.Message = f.Message
	r.text(path+".kind", &out.Kind, f.Kind)
	if f.Kind == "" {
		// A failure without a kind would pass for a reading that did not fail (S2).
		r.fail(path+".kind", errors.New("is empty"))
	}
	if f.RetryAfter != nil {
		out.RetryAfter = f.RetryAfter.Duration
	}
	return out
}

func (r *reader) evidence(path string, in *Reading) fencing.Evidence {
	e := fencing.Evidence{
		Reading: fencing.Reading{
			Provider: in.Provider, Driver: in.Driver, Address: in.Address, AskedAt: in.AskedAt.UTC(), AnsweredAt: when(in.AnsweredAt),
			Identity: fencing.Identity{UUID: in.UUID, Serial: in.Serial, InstanceID: in.InstanceID},
			Hints:    fencing.Hints{LastReset: when(in.LastReset), BootProgress: in.BootProgress, Conflict: in.Conflict},
			Failure:  r.failure(path+".failure", in.Failure), Raw: in.Raw,
		},
		MatchReason: in.IdentityReason,
	}
	r.text(path+".power", &e.Power, in.Power)
	r.text(path+".identity", &e.Match, in.Identity)
	r.text(path+".restorePolicy", &e.Hints.RestorePolicy, in.RestorePolicy)
	return e
}

func micro(t time.Time) *metav1.MicroTime {
	if t.IsZero() {
		return nil
	}
	m := metav1.NewMicroTime(t)
	return &m
}

func when(m *metav1.MicroTime) time.Time {
	if m == nil || m.IsZero() {
		return time.Time{}
	}
	return m.UTC()
}
