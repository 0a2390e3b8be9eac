package redfish

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/stmcginnis/gofish/redfish"

	"github.com/nodefence/nodefence/fencing"
	"github.com/nodefence/nodefence/providers"
)

// PowerOff logs in, proves the identity, sends ForceOff, and logs out.
func (d *driver) PowerOff(ctx context.Context, m providers.Machine) error {
	err := d.with(ctx, m, func(ctx context.Context, l *link) error {
		s, err := d.locate(ctx, l, m)
		if err != nil {
			return err
		}
		// S3, S5: the document that proves the machine is the one that names the
		// command's target, in the session that sends it.
		switch match, why := m.Expected.Match(s.identity); {
		case match == fencing.IdentityMismatch:
			return problemf(fencing.WrongMachine, "nothing was sent: %s: %s; correct the machine's address or its expected identity", s.path, why)
		case match != fencing.IdentityProved && !m.AllowUnproved:
			return problemf(fencing.Ambiguous, "nothing was sent: the identity of %s is unproved: %s; give the machine's serial number, or allow it for the group", s.path, why)
		}
		if err := l.offersForceOff(ctx, s); err != nil {
			return err
		}
		return l.forceOff(ctx, s)
	})
	if err != nil {
		return d.wrap(m, "power off", err)
	}
	return nil
}

// offersForceOff finds what stands against the command before it is sent. There
// is no other command that would do: a graceful shutdown asks an operating
// system that may hang, and a restart or cycle starts the machine again.
func (l *link) offersForceOff(ctx context.Context, s system) error {
	if s.reset.target == "" {
		return problemf(fencing.Failed, "nothing was sent: %s offers no Reset; it may be no machine of its own, or the account may not see it", s.path)
	}
	// The target is taken from the document, so it must lie within it: another
	// system's would switch off another machine.
	target, ok := localPath(s.reset.target)
	if !ok || !strings.HasPrefix(target, strings.TrimSuffix(s.path, "/")+"/") {
		return problemf(fencing.Malformed, "nothing was sent: the Reset of %s has the target %q, which is not its own", s.path, clip(s.reset.target, 100))
	}
	allowed := s.reset.allowed
	if allowed == nil && s.reset.info != "" {
		// If it cannot be read, the command itself will tell.
		if a, err := l.get(ctx, s.reset.info); err == nil {
			allowed = parseActionInfo(a.Body)
		}
	}
	if allowed != nil && !slices.Contains(allowed, string(redfish.ForceOffResetType)) {
		return problemf(fencing.Failed, "nothing was sent: the Reset of %s does not offer ForceOff, only %s; update its firmware, or use another provider for it", s.path, clip(strings.Join(allowed, ", "), 150))
	}
	return nil
}

// forceOff sends the command, once. It is sent a second time only after 412 or
// 428, which say that it was not carried out: some endpoints want the document's
// ETag, and some cannot bear one.
func (l *link) forceOff(ctx context.Context, s system) error {
	if ctx.Err() != nil {
		return problemf(fencing.TimedOut, "nothing was sent: no time was left for the command")
	}
	a, err := l.postReset(ctx, s, "")
	if err == nil && s.etag != "" && (a.Status == http.StatusPreconditionFailed || a.Status == http.StatusPreconditionRequired) {
		a, err = l.postReset(ctx, s, s.etag)
	}
	if err != nil {
		// The answer is lost; the command may be carried out. Only the state can
		// tell, and sending it again could hit a machine that somebody has just
		// started.
		if l.readsOff(ctx, s) {
			return nil
		}
		return problemf(kindOf(err), "%v; the command may have been carried out all the same: only readings can tell", err)
	}
	what := "POST " + s.reset.target + " ForceOff"
	if _, host, redirected := redirectTarget(l.endpoint, a); redirected {
		return redirectProblem(what, a.Status, host)
	}
	switch a.Status {
	case http.StatusOK, http.StatusCreated, http.StatusAccepted, http.StatusNoContent:
		return nil
	}
	fault := parseFault(what, a, l.now())
	if fault.kind == fencing.Unauthorized || fault.kind == fencing.Forbidden {
		return fault
	}
	if l.readsOff(ctx, s) {
		return nil // refused because it is off already
	}
	return fault
}

// postReset sends ForceOff. The transport does not repeat a POST.
func (l *link) postReset(ctx context.Context, s system, etag string) (providers.Answer, error) {
	r := providers.Request{Method: http.MethodPost, URL: l.base + s.reset.target, Header: l.header()}
	r.Body = []byte(`{"ResetType":"` + string(redfish.ForceOffResetType) + `"}`)
	r.Header.Set("Content-Type", "application/json")
	if etag != "" {
		r.Header.Set("If-Match", etag)
	}
	a, err := l.http.Do(ctx, r)
	if err == nil {
		return a, nil
	}
	kind, words := providers.ExplainHTTP(err)
	var lost *providers.SendError
	if errors.As(err, &lost) && !lost.Sent {
		words += " (nothing was sent)"
	}
	return a, problemf(kind, "POST %s: %s", s.reset.target, words)
}

// readsOff tells whether the same machine says now that it is off.
func (l *link) readsOff(ctx context.Context, s system) bool {
	again, err := l.system(ctx, s.path)
	return err == nil && again.power == fencing.Off && again.identity == s.identity
}
