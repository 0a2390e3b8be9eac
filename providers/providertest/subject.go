package providertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/nodefence/nodefence/fencing"
	"github.com/nodefence/nodefence/providers"
)

// canaryMark is in every password of the suite, and may be nowhere else.
const canaryMark = "cAnArY"

// canary makes a password. It fits IPMI's 16 bytes.
func canary(name string) string { return canaryMark + "-" + name }

var machines atomic.Uint32

// subject is one endpoint under test, with a driver that speaks to it.
type subject struct {
	h    Harness
	spec Spec
	end  *Endpoint
	m    providers.Machine
	// timeout is what a call gets.
	timeout time.Duration
	// allowMute: the endpoint may be unable to take leave, so sessions that
	// are left on it are not the driver's fault.
	allowMute bool
	// already are the sessions that the endpoint had before the call.
	already int
}

// start makes a fresh machine that is on, behind a healthy endpoint.
func start(t *testing.T, h Harness) *subject {
	t.Helper()
	n := machines.Add(1)
	spec := Spec{
		UUID:     fmt.Sprintf("7c9e6679-7425-40de-944b-e07fc1f9%04x", n),
		Serial:   fmt.Sprintf("SN%06d", 480000+n),
		Operator: providers.Credentials{Username: "fencer", Password: canary("op")},
		Reader:   providers.Credentials{Username: "watcher", Password: canary("rd")},
	}
	s := &subject{h: h, spec: spec, end: h.Start(t, spec), timeout: h.Timeout}
	s.m = s.end.Machine
	s.m.Node = fmt.Sprintf("node-%d", n)
	s.m.Credentials = spec.Operator
	s.m.Expected = fencing.Expectation{Identity: fencing.Identity{UUID: spec.UUID, Serial: spec.Serial}}
	if h.Lacks[UUID] != "" {
		s.m.Expected.UUID = ""
	}
	if h.Lacks[Identity] != "" {
		s.m.AllowUnproved = true
	}
	return s
}

func (s *subject) read(t *testing.T) fencing.Reading {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), s.timeout)
	defer cancel()
	return s.readCtx(ctx, t)
}

func (s *subject) readCtx(ctx context.Context, t *testing.T) fencing.Reading {
	t.Helper()
	r := s.judge(ctx, t, s.end.Driver)
	s.noSessions(t)
	return r
}

// judge makes one reading and checks what is true of every reading.
func (s *subject) judge(ctx context.Context, t *testing.T, d providers.Driver) fencing.Reading {
	t.Helper()
	before := time.Now()
	r := d.Read(ctx, s.m)
	after := time.Now()
	s.inTime(ctx, t, "Read", after)
	if r.AskedAt.Before(before) || r.AnsweredAt.After(after) || r.AskedAt.After(r.AnsweredAt) {
		t.Errorf("asked %v, answered %v, called from %v to %v", r.AskedAt, r.AnsweredAt, before, after)
	}
	if r.Failed() && r.Power != fencing.Unknown {
		t.Errorf("a failure (%v) with power %v", r.Failure.Kind, r.Power)
	}
	if r.Power == fencing.Unknown && !r.Failed() {
		t.Errorf("Unknown, and no failure that says why; raw %q", r.Raw)
	}
	if r.Failed() && len(strings.TrimSpace(r.Failure.Message)) < 10 {
		t.Errorf("the failure %v says no more than %q", r.Failure.Kind, r.Failure.Message)
	}
	cleanLine(t, "Raw", r.Raw)
	cleanLine(t, "Failure.Message", r.Failure.Message)
	if r.Address == "" {
		t.Error("the reading does not say where")
	}
	noSecret(t, "the reading", r)
	return r
}

func (s *subject) powerOff(t *testing.T) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), s.timeout)
	defer cancel()
	return s.powerOffCtx(ctx, t)
}

func (s *subject) powerOffCtx(ctx context.Context, t *testing.T) error {
	t.Helper()
	err := s.end.Driver.PowerOff(ctx, s.m)
	s.inTime(ctx, t, "PowerOff", time.Now())
	if err != nil {
		noSecret(t, "the error", err)
		noSecret(t, "the failure", providers.FailureOf(err))
	}
	s.noSessions(t)
	return err
}

// wantError checks that err is an *Error of one of the kinds, which says where.
func (s *subject) wantError(t *testing.T, err error, kinds ...fencing.FailureKind) {
	t.Helper()
	var e *providers.Error
	switch {
	case err == nil:
		t.Errorf("no error where one of %v is expected", kinds)
	case !errors.As(err, &e):
		t.Errorf("%T is no *providers.Error: %v", err, err)
	case !contains(kinds, e.Kind):
		t.Errorf("kind %v where one of %v is expected: %v", e.Kind, kinds, err)
	case e.Node != s.m.Node || e.Address == "" || e.Op == "" || e.Err == nil:
		t.Errorf("the error does not say where or what: %#v", e)
	}
}

// inTime: every call ends by its deadline, and a little.
func (s *subject) inTime(ctx context.Context, t *testing.T, what string, ended time.Time) {
	t.Helper()
	deadline, ok := ctx.Deadline()
	if late := ended.Sub(deadline); ok && late > s.h.Slack {
		t.Errorf("%s ended %v after its deadline", what, late)
	}
}

// noSessions: endpoints have few sessions, and one that has none left answers
// nobody any more.
func (s *subject) noSessions(t *testing.T) {
	t.Helper()
	if s.h.Lacks[CountsSessions] != "" || s.allowMute {
		return
	}
	open := 0
	for range 40 {
		if open = s.end.Sessions(); open <= s.already {
			return
		}
		time.Sleep(25 * time.Millisecond)
	}
	t.Errorf("%d sessions are left open", open-s.already)
}

func (s *subject) sessions() int {
	if s.h.Lacks[CountsSessions] != "" {
		return 0
	}
	return s.end.Sessions()
}

func (s *subject) commands() int {
	if s.h.Lacks[CountsCommands] != "" {
		return 0
	}
	return s.end.Commands()
}

// noSecret looks for the canary in every form in which a value may be printed.
func noSecret(t *testing.T, what string, v any) {
	t.Helper()
	texts := []string{fmt.Sprintf("%v", v), fmt.Sprintf("%+v", v), fmt.Sprintf("%#v", v)}
	for err, _ := v.(error); err != nil; err = errors.Unwrap(err) {
		texts = append(texts, err.Error(), fmt.Sprintf("%+v", err), fmt.Sprintf("%#v", err))
	}
	if b, err := json.Marshal(v); err == nil {
		texts = append(texts, string(b))
	}
	for _, text := range texts {
		if strings.Contains(text, canaryMark) {
			t.Errorf("%s holds a password: %s", what, strings.ReplaceAll(text, canaryMark, "[THE PASSWORD]"))
			return
		}
	}
}

// cleanLine: text from outside goes into records and terminals.
func cleanLine(t *testing.T, what, s string) {
	t.Helper()
	switch {
	case len(s) > fencing.MaxRawLength:
		t.Errorf("%s has %d bytes", what, len(s))
	case !utf8.ValidString(s), strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }):
		t.Errorf("%s is no clean line: %q", what, s)
	}
}

func contains(kinds []fencing.FailureKind, k fencing.FailureKind) bool {
	return slices.Contains(kinds, k)
}
