// Package redfish reads and powers off machines through Redfish services
// (DMTF DSP0266), as the BMCs of servers have them.
//
// What lives here: one short exchange a call. driver.go is the driver, link.go
// the requests and the session, locate.go finds the machine behind an endpoint,
// poweroff.go the command, options.go the configuration. All understanding of
// what an endpoint says is in parse.go and fault.go, in pure functions.
//
// The words of the protocol are those of github.com/stmcginnis/gofish; the
// exchange and the reading of documents are our own, because a wrong "Off" costs
// data (docs/decisions/0003-redfish-driver.md).
//
// What must not live here: judgement, retries across calls, limits per endpoint.
package redfish

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nodefence/nodefence/fencing"
	"github.com/nodefence/nodefence/providers"
)

// name is the driver's name in configuration and readings.
const name = "redfish"

const (
	// defaultTimeout bounds calls whose context has no deadline.
	defaultTimeout = 30 * time.Second
	// leaveTime is kept of a deadline to close the session in: a fifth of it, and
	// no more than this.
	leaveTime = time.Second
)

type driver struct {
	provider string
	opts     options
	tls      providers.TLS
	now      func() time.Time

	mu    sync.Mutex
	roots map[string]rootLinks // what service roots named, by endpoint
}

// New makes the driver from one provider entry.
func New(s providers.Settings) (providers.Driver, error) {
	o, err := parseOptions(s.Options)
	if err != nil {
		return nil, err
	}
	if s.TLS.Fingerprint != "" {
		if _, err := providers.ParseFingerprint(s.TLS.Fingerprint); err != nil {
			return nil, fmt.Errorf("tls.fingerprint: %w", err)
		}
	}
	if _, err := s.TLS.Config(providers.Machine{}); err != nil {
		return nil, fmt.Errorf("tls: %w", err)
	}
	return &driver{provider: s.Name, opts: o, tls: s.TLS, now: s.Now, roots: map[string]rootLinks{}}, nil
}

// Read logs in, reads the system and its chassis, and logs out.
func (d *driver) Read(ctx context.Context, m providers.Machine) fencing.Reading {
	r := fencing.Reading{Provider: d.provider, Driver: name, Address: shown(m), AskedAt: d.now()}
	err := d.with(ctx, m, func(ctx context.Context, l *link) error {
		s, err := d.locate(ctx, l, m)
		if err != nil {
			return err
		}
		return d.observe(ctx, l, s, &r)
	})
	if err != nil {
		r.Power, r.Failure = fencing.Unknown, d.wrap(m, "read power state", err).Failure()
	}
	if r.AnsweredAt.IsZero() {
		r.AnsweredAt = d.now()
	}
	return r
}

// observe fills the reading with what the system says, and its chassis.
func (d *driver) observe(ctx context.Context, l *link, s system, r *fencing.Reading) error {
	r.AskedAt, r.AnsweredAt = s.askedAt, s.answeredAt
	r.Identity = fencing.Identity{UUID: l.clean(s.identity.UUID), Serial: l.clean(s.identity.Serial)}
	r.Hints = s.hints
	r.Hints.BootProgress = l.clean(s.hints.BootProgress)
	r.Raw = providers.CleanRaw(l.clean(s.raw))
	if s.power == fencing.Unknown {
		return problemf(fencing.Malformed, "GET %s: %s; it may not have looked at the host yet, so read again", s.path, s.powerFault)
	}
	r.Power = s.power
	if d.opts.IgnoreChassis {
		return nil
	}
	conflict, note := d.witness(ctx, l, s)
	r.Hints.Conflict = providers.CleanRaw(l.clean(conflict))
	r.Raw = providers.CleanRaw(l.clean(s.raw + note))
	return nil
}

// with runs do within a session, and closes it on every path. What do gets ends
// before ctx, so that there is time to close.
func (d *driver) with(ctx context.Context, m providers.Machine, do func(context.Context, *link) error) (err error) {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, defaultTimeout)
		defer cancel()
	}
	if ctx.Err() != nil {
		return problemf(fencing.TimedOut, "nothing was sent: %v", ctx.Err())
	}
	l, err := d.dial(m)
	if err != nil {
		return err
	}
	end, _ := ctx.Deadline()
	work, cancel := context.WithDeadline(ctx, end.Add(-min(time.Until(end)/5, leaveTime)))
	defer cancel()
	defer l.close(ctx)
	defer func() {
		if err != nil {
			d.forget(l.base)
			err = cleaned(l, err)
		}
	}()
	if !l.basic {
		root, err := d.root(work, l)
		if err != nil {
			return err
		}
		if err := l.logIn(work, root.sessions); err != nil {
			return err
		}
	}
	return do(work, l)
}

// dial checks what can be checked before anything is sent.
func (d *driver) dial(m providers.Machine) (*link, error) {
	e, err := parseAddress(m.Address, d.tls.Insecure)
	if err != nil {
		return nil, problemf(fencing.Misconfigured, "%v", err)
	}
	if m.Credentials.Username == "" || m.Credentials.Password == "" {
		return nil, problemf(fencing.Misconfigured, "the credentials lack a user name or a password; look at the Secret")
	}
	cfg, err := d.tls.Config(m)
	if err != nil {
		return nil, problemf(fencing.Misconfigured, "tls: %v", err)
	}
	return &link{
		endpoint: e, http: providers.NewHTTP(cfg, d.opts.MaxBodyBytes, d.now), now: d.now,
		creds: m.Credentials, basic: d.opts.BasicAuth,
	}, nil
}

// root gives what the endpoint's service root names. It is remembered, because
// it saves a request for each reading and proves nothing: what is found by it
// must prove itself. After any failure it is read anew.
func (d *driver) root(ctx context.Context, l *link) (rootLinks, error) {
	d.mu.Lock()
	known, ok := d.roots[l.base]
	d.mu.Unlock()
	if ok {
		return known, nil
	}
	a, err := l.get(ctx, serviceRoot)
	if err != nil {
		return rootLinks{}, err
	}
	r, err := parseRoot(a.Body)
	if err != nil {
		return rootLinks{}, problemf(fencing.Malformed, "GET %s: %v", serviceRoot, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.roots[l.base] = r
	return r, nil
}

func (d *driver) forget(base string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.roots, base)
}

// cleaned is err without secrets.
func cleaned(l *link, err error) error {
	p := &problem{kind: kindOf(err), text: l.clean(err.Error())}
	var from *problem
	if errors.As(err, &from) {
		p.retryAfter = from.retryAfter
	}
	return p
}

// wrap says where an error was.
func (d *driver) wrap(m providers.Machine, op string, err error) *providers.Error {
	e := &providers.Error{Kind: kindOf(err), Op: op, Node: m.Node, Address: shown(m), Err: err}
	var p *problem
	if errors.As(err, &p) {
		e.RetryAfter = p.retryAfter
	}
	return e
}

// shown is the machine's address as it may be shown: one that cannot be used may
// hold a password.
func shown(m providers.Machine) string {
	if _, err := parseAddress(m.Address, true); err != nil {
		return "(unusable address)"
	}
	return providers.CleanRaw(m.Address)
}
