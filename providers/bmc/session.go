package bmc

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	lib "github.com/bmc-toolbox/bmclib/v2/bmc"
	liberrors "github.com/bmc-toolbox/bmclib/v2/errors"
	"github.com/stmcginnis/gofish/common"

	"github.com/nodefence/nodefence/fencing"
	"github.com/nodefence/nodefence/providers"
)

// session is one driver of bmclib, logged in for one call.
type session struct {
	x      *exchange
	name   string
	driver any
	creds  providers.Credentials
	now    func() time.Time
}

// problem is a failure with its kind. Its text holds no secrets.
type problem struct {
	kind  fencing.FailureKind
	text  string
	after time.Duration
}

func (p *problem) Error() string { return p.text }

func problemf(kind fencing.FailureKind, format string, args ...any) *problem {
	return &problem{kind: kind, text: providers.CleanRaw(fmt.Sprintf(format, args...))}
}

// misfitError: the controller is not of this driver's kind; another may fit.
type misfitError struct{ text string }

func (e *misfitError) Error() string { return e.text }

// run logs in, calls f and logs out. The driver's own methods are called, not
// bmclib's client, which runs them in goroutines where a panic ends the process,
// and divides the time that is left by the number of drivers.
func (s *session) run(ctx context.Context, left int, f func(context.Context) error) error {
	opener, ok := s.driver.(lib.Opener)
	if !ok {
		return problemf(fencing.Failed, "bmclib has no driver %s", s.name)
	}
	defer s.close()
	open, cancel := ctx, context.CancelFunc(func() {})
	if d, ok := ctx.Deadline(); ok && left > 1 {
		open, cancel = context.WithTimeout(ctx, time.Until(d)/time.Duration(left))
	}
	defer cancel()
	if err := opener.Open(open); err != nil {
		if errors.Is(err, liberrors.ErrIncompatibleProvider) || isMisfit(s.name, err) {
			return &misfitError{text: s.scrub(err.Error())}
		}
		return s.explain(ctx, "log in", err)
	}
	return f(ctx)
}

// isMisfit: bmclib's openbmc driver says only in its text that the controller is
// no OpenBMC.
func isMisfit(driver string, err error) bool {
	return driver == "openbmc" && err.Error() == "not an OpenBMC device"
}

// close logs out, for a little while even if the call's context has ended.
func (s *session) close() {
	closer, ok := s.driver.(lib.Closer)
	if !ok {
		return
	}
	defer s.x.lingerOn()()
	ctx, cancel := context.WithTimeout(context.Background(), farewell)
	defer cancel()
	defer func() { _ = recover() }() // some drivers cannot close what never opened
	_ = closer.Close(ctx)
}

// power reads the power state into a.
func (s *session) power(ctx context.Context, a *answer) error {
	getter, ok := s.driver.(lib.PowerStateGetter)
	if !ok {
		return problemf(fencing.Failed, "bmclib's driver %s reads no power state", s.name)
	}
	word, err := getter.PowerStateGet(ctx)
	a.done = s.now()
	if err != nil {
		return s.explain(ctx, "read the power state", err)
	}
	a.word, a.power = word, parseState(s.name, word)
	if a.power == fencing.Unknown {
		return problemf(fencing.Malformed, "the power state is %q, which is none that is known", providers.CleanRaw(word))
	}
	return nil
}

// serial reads the system's serial number; empty when the controller tells none.
func (s *session) serial(ctx context.Context) (string, error) {
	getter, ok := s.driver.(lib.InventoryGetter)
	if !ok {
		return "", nil
	}
	device, err := getter.Inventory(ctx)
	if err != nil {
		return "", s.explain(ctx, "read the inventory", err)
	}
	if device == nil {
		return "", nil
	}
	return strings.TrimSpace(device.Serial), nil
}

// powerOff forces the machine off. What bmclib returns is not proof of anything;
// a refusal is judged by the state.
func (s *session) powerOff(ctx context.Context, a *answer) error {
	setter, ok := s.driver.(lib.PowerSetter)
	if !ok {
		return problemf(fencing.Failed, "bmclib's driver %s cannot power off", s.name)
	}
	done, err := setter.PowerSet(ctx, "off")
	if err == nil && done {
		return nil
	}
	refused := error(problemf(fencing.Failed, "the command was not accepted, and no reason given"))
	if err != nil {
		refused = s.explain(ctx, "power off", err)
	}
	var p *problem
	if errors.As(refused, &p) && p.kind != fencing.Failed {
		return refused
	}
	s.x.forgive()
	if s.power(ctx, a) == nil && a.power == fencing.Off {
		return nil
	}
	return refused
}

// explain classifies what bmclib returned. Its errors may quote what was sent or
// received, so only their text is kept, without the password.
func (s *session) explain(ctx context.Context, what string, err error) error {
	kind, words := s.classify(ctx, err)
	const most = 300 // leaves room for the advice
	if words = s.scrub(words); len(words) > most {
		words = strings.ToValidUTF8(words[:most], "") + "…"
	}
	if a := advice[kind]; a != "" {
		words += "; " + a
	}
	return problemf(kind, "bmclib's %s could not %s: %s", s.name, what, words)
}

func (s *session) classify(ctx context.Context, err error) (fencing.FailureKind, string) {
	var status *common.Error
	var syntax *json.SyntaxError
	var typed *json.UnmarshalTypeError
	err = firstOf(err)
	switch lost := s.x.failure(); {
	case ctx.Err() != nil:
		return fencing.TimedOut, ctx.Err().Error()
	case errors.Is(lost, errTooMuch):
		return fencing.Malformed, lost.Error()
	case lost != nil:
		return providers.ExplainHTTP(lost)
	case errors.As(err, &status):
		return parseRefusal(status)
	case errors.As(err, &syntax), errors.As(err, &typed), errors.Is(err, io.ErrUnexpectedEOF):
		return fencing.Malformed, err.Error()
	case errors.Is(err, liberrors.ErrLoginFailed), errors.Is(err, liberrors.ErrNotAuthenticated):
		// Not always the password's fault; but to take it for that makes the
		// caller careful with further attempts, which lock accounts.
		return fencing.Unauthorized, err.Error()
	}
	return providers.ExplainHTTP(err)
}

// firstOf is the cause of a collection that could not be read: the library's
// error for it hides its causes from errors.As. The first by path, so that the
// same failure has the same words.
func firstOf(err error) error {
	var many *common.CollectionError
	if !errors.As(err, &many) || many.Empty() {
		return err
	}
	path := slices.Sorted(maps.Keys(many.Failures))[0]
	return fmt.Errorf("GET %s: %w", path, many.Failures[path])
}

// scrub takes the password out of a text, in the forms in which it is sent.
func (s *session) scrub(text string) string {
	pass := s.creds.Password
	quoted, _ := json.Marshal(pass) // a string always encodes
	for _, form := range []string{
		pass, string(quoted[1 : len(quoted)-1]), url.QueryEscape(pass), url.PathEscape(pass),
		base64.StdEncoding.EncodeToString([]byte(pass)),
		base64.StdEncoding.EncodeToString([]byte(s.creds.Username + ":" + pass)),
	} {
		if form != "" {
			text = strings.ReplaceAll(text, form, "[redacted]")
		}
	}
	return providers.CleanRaw(text)
}
