// Package bmc reads and powers off machines through the vendor protocols that
// github.com/bmc-toolbox/bmclib knows, where neither redfish nor ipmi will do.
//
// What lives here: the fence around that library. bmclib logs in with every
// driver at once, takes the first answer, does not keep to contexts, and passes
// on any word as a state (docs/decisions/0002-bmc-driver.md). So one of
// its drivers is pinned, called directly, over connections that end with the
// call's context, and its words are compared exactly. What comes after the
// deadline is never used.
//
// What must not live here: judgement, and any protocol of our own.
package bmc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	bmclib "github.com/bmc-toolbox/bmclib/v2"

	"github.com/nodefence/nodefence/fencing"
	"github.com/nodefence/nodefence/providers"
)

const (
	name = "bmc"
	// noDeadline bounds a call whose context has no deadline.
	noDeadline = time.Minute
)

type driver struct {
	provider string
	opts     options
	tls      providers.TLS
	now      func() time.Time
}

// New makes the driver from one provider entry.
func New(s providers.Settings) (providers.Driver, error) {
	o, err := parseOptions(s.Options)
	if err != nil {
		return nil, err
	}
	if _, err := s.TLS.Config(providers.Machine{}); err != nil {
		return nil, fmt.Errorf("tls: %w", err)
	}
	// With this variable bmclib prints every request and answer, the log-in
	// with its password included (S13).
	if os.Getenv("DEBUG_BMCLIB") == "true" {
		return nil, errors.New("the environment has DEBUG_BMCLIB=true, with which bmclib prints passwords; unset it")
	}
	return &driver{provider: s.Name, opts: o, tls: s.TLS, now: s.Now}, nil
}

// answer is what one call found out. It belongs to the call's goroutine until
// that is done, so that nothing late gets into a reading.
type answer struct {
	driver string
	word   string
	power  fencing.PowerState
	serial string
	asked  time.Time
	done   time.Time
}

// Read logs in, reads the serial number where that is wanted and the power state,
// and logs out.
func (d *driver) Read(ctx context.Context, m providers.Machine) fencing.Reading {
	r := fencing.Reading{Provider: d.provider, Driver: name, Address: providers.CleanRaw(m.Address), AskedAt: d.now()}
	a, err := d.call(ctx, m, func(ctx context.Context, s *session, a *answer) error {
		if d.opts.wantsSerial(m) {
			if err := d.identify(ctx, s, a); err != nil {
				return err
			}
		}
		a.asked = d.now()
		return s.power(ctx, a)
	})
	r.AnsweredAt = d.now()
	if a.driver != "" {
		r.Driver = name + "/" + a.driver
	}
	if err != nil {
		r.Failure = d.wrap(m, "read power state", err).Failure()
		return r
	}
	r.AskedAt, r.AnsweredAt = a.asked, a.done
	r.Power, r.Identity.Serial = a.power, a.serial
	r.Raw = providers.CleanRaw(fmt.Sprintf("power state %q, serial %q", a.word, a.serial))
	return r
}

// PowerOff proves the identity and switches off in one session. Of identities
// bmclib tells only the serial number.
func (d *driver) PowerOff(ctx context.Context, m providers.Machine) error {
	_, err := d.call(ctx, m, func(ctx context.Context, s *session, a *answer) error {
		if d.opts.wantsSerial(m) {
			if err := d.identify(ctx, s, a); err != nil {
				return err
			}
		}
		switch match, why := m.Expected.Match(fencing.Identity{Serial: a.serial}); {
		case match == fencing.IdentityMismatch:
			return problemf(fencing.WrongMachine, "%s; nothing was sent", why)
		case match != fencing.IdentityProved && !m.AllowUnproved:
			if a.serial == "" && d.opts.wantsSerial(m) {
				// bmclib keeps to itself why it has no serial number: if nothing can
				// be read, that is the reason.
				if err := s.power(ctx, a); err != nil {
					return err
				}
			}
			return problemf(fencing.Ambiguous, "nothing was sent: %s; bmclib tells only serial numbers: configure the machine's, or use the driver redfish or ipmi", why)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		return s.powerOff(ctx, a)
	})
	if err != nil {
		return d.wrap(m, "power off", err)
	}
	return nil
}

// identify reads the serial number. With basic authentication each request is an
// attempt to log in, and the inventory makes dozens: so one that is refused ends
// it before, because controllers lock accounts.
func (d *driver) identify(ctx context.Context, s *session, a *answer) error {
	if d.opts.BasicAuth {
		var refused *problem
		if err := s.power(ctx, &answer{}); errors.As(err, &refused) && refused.kind == fencing.Unauthorized {
			return err
		}
	}
	serial, err := s.serial(ctx)
	a.serial = serial
	return err
}

// call runs f within a session of the first driver that fits, in a goroutine of
// its own, and forgets it when ctx ends.
func (d *driver) call(ctx context.Context, m providers.Machine, f func(context.Context, *session, *answer) error) (answer, error) {
	if err := checkMachine(m); err != nil {
		return answer{}, err
	}
	host, port, err := d.opts.endpoint(m.Address)
	if err != nil {
		return answer{}, problemf(fencing.Misconfigured, "%v", err)
	}
	cfg, err := d.tls.Config(m)
	if err != nil {
		return answer{}, problemf(fencing.Misconfigured, "tls: %v", err)
	}
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, noDeadline)
		defer cancel()
	}
	if err := ctx.Err(); err != nil {
		return answer{}, problemf(fencing.TimedOut, "nothing was asked: %v", err)
	}
	type result struct {
		a   answer
		err error
	}
	done := make(chan result, 1)
	go func() {
		var r result
		defer func() {
			if p := recover(); p != nil {
				r.err = problemf(fencing.Failed, "bmclib panicked on what the controller sent (%T)", p)
			}
			done <- r
		}()
		r.err = d.inOrder(ctx, func(driver string, left int) error {
			r.a = answer{driver: driver}
			x := newExchange(ctx, host, port, cfg, d.now)
			defer x.close()
			s := newSession(x, driver, host, m, d)
			return s.run(ctx, left, func(ctx context.Context) error { return f(ctx, s, &r.a) })
		})
	}()
	select {
	case r := <-done:
		if ctx.Err() != nil && r.err == nil {
			break
		}
		return r.a, r.err
	case <-ctx.Done():
	}
	return answer{}, problemf(fencing.TimedOut, "no complete answer in time: %v; an answer that comes later is discarded", ctx.Err())
}

// inOrder tries the configured drivers until one fits the controller.
func (d *driver) inOrder(ctx context.Context, try func(driver string, left int) error) error {
	var misfits []string
	for i, driver := range d.opts.Drivers {
		err := try(driver, len(d.opts.Drivers)-i)
		var misfit *misfitError
		if !errors.As(err, &misfit) {
			return err
		}
		misfits = append(misfits, driver+": "+misfit.Error())
		if ctx.Err() != nil {
			break
		}
	}
	return problemf(fencing.Failed, "none of the drivers fits this controller: %s", strings.Join(misfits, "; "))
}

// newSession pins one driver of bmclib, and nothing else of its registry.
func newSession(x *exchange, driver, host string, m providers.Machine, d *driver) *session {
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	c := bmclib.NewClient(host, m.Credentials.Username, m.Credentials.Password,
		bmclib.WithHTTPClient(x.client()),
		bmclib.WithRedfishUseBasicAuth(d.opts.BasicAuth),
		bmclib.WithDellRedfishUseBasicAuth(d.opts.BasicAuth),
		bmclib.WithRedfishEtagMatchDisabled(d.opts.DisableEtagMatch),
	)
	s := &session{x: x, name: driver, creds: m.Credentials, now: d.now}
	for _, r := range c.Registry.For(driver) {
		s.driver = r.DriverInterface
	}
	return s
}

// wrap gives a failure the form of the interface.
func (d *driver) wrap(m providers.Machine, op string, err error) *providers.Error {
	e := &providers.Error{Kind: fencing.Failed, Op: op, Node: m.Node, Address: providers.CleanRaw(m.Address), Err: err}
	var p *problem
	if errors.As(err, &p) {
		e.Kind, e.RetryAfter = p.kind, p.after
	}
	return e
}
