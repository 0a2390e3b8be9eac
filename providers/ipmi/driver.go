// Package ipmi reads and powers off machines through IPMI 2.0 controllers
// (RMCP+ over UDP, "lanplus").
//
// What lives here: the protocol of one short session. The messages and the key
// derivations are those of github.com/bougou/go-ipmi; the exchange of packets
// is our own, because a reply that is not proved to be the controller's must
// not be taken for its power state (docs/decisions/0001-ipmi-driver.md).
// driver.go is the driver, session.go the log-in, packet.go the bytes, link.go
// the socket, and parse.go all understanding of what a controller says.
//
// What must not live here: judgement, retries across calls, limits per
// controller.
package ipmi

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/bougou/go-ipmi/pkg/types"

	"github.com/nodefence/nodefence/fencing"
	"github.com/nodefence/nodefence/providers"
)

// name is the driver's name in configuration and readings.
const name = "ipmi"

type driver struct {
	provider string
	opts     options
	now      func() time.Time
}

// New makes the driver from one provider entry.
func New(s providers.Settings) (providers.Driver, error) {
	o, err := parseOptions(s.Options)
	if err != nil {
		return nil, err
	}
	if s.TLS.Fingerprint != "" || len(s.TLS.CA) > 0 || s.TLS.Insecure {
		return nil, errors.New("tls: IPMI has no TLS; the password proves both ends to each other. Remove it")
	}
	return &driver{provider: s.Name, opts: o, now: s.Now}, nil
}

// Read opens a session, reads identity and power, and closes it.
func (d *driver) Read(ctx context.Context, m providers.Machine) fencing.Reading {
	r := fencing.Reading{Provider: d.provider, Driver: name, Address: providers.CleanRaw(m.Address), AskedAt: d.now()}
	err := d.with(ctx, m, levels[d.opts.Privilege], func(ctx context.Context, s *session) error {
		err := d.observe(ctx, s, &r)
		r.AnsweredAt = d.now()
		return err
	})
	if err != nil {
		r.Power, r.Failure = fencing.Unknown, d.wrap(m, "read power state", err).Failure()
	}
	if r.AnsweredAt.IsZero() {
		r.AnsweredAt = d.now()
	}
	return r
}

// observe fills a reading. Identity comes first, so that a power state never
// comes without the identity that belongs to it.
func (d *driver) observe(ctx context.Context, s *session, r *fencing.Reading) error {
	uuid, err := s.identity(ctx)
	if err != nil {
		return err
	}
	r.Identity.UUID = uuid
	st, raw, err := s.status(ctx)
	r.Raw = providers.CleanRaw(raw)
	if err != nil {
		return err
	}
	raw += fmt.Sprintf(" %s, restore %s", st.power, st.restore)
	if len(st.words) > 0 {
		raw += ", " + strings.Join(st.words, ", ")
	}
	r.Hints.RestorePolicy = st.restore
	if st.power == fencing.Off && !d.opts.IgnoreACPIPowerState {
		word, asleep, err := s.acpi(ctx)
		if err != nil {
			return err
		}
		if asleep {
			st.power, raw = fencing.Suspended, raw+", ACPI "+word
		}
	}
	r.Power, r.Raw = st.power, providers.CleanRaw(fmt.Sprintf("%s; cipher suite %d", raw, s.keys.suite.id))
	return nil
}

// PowerOff proves the identity and sends the hard power down in one session.
func (d *driver) PowerOff(ctx context.Context, m providers.Machine) error {
	err := d.with(ctx, m, levels[d.opts.PowerOffPrivilege], func(ctx context.Context, s *session) error {
		uuid, err := s.identity(ctx)
		if err != nil {
			return err
		}
		switch match, why := m.Expected.Match(fencing.Identity{UUID: uuid}); {
		case match == fencing.IdentityMismatch:
			return problemf(fencing.WrongMachine, "%s; nothing was sent", why)
		case match != fencing.IdentityProved && !m.AllowUnproved:
			return problemf(fencing.Ambiguous, "%s; nothing was sent", why)
		}
		return s.powerDown(ctx)
	})
	if err != nil {
		return d.wrap(m, "power off", err)
	}
	return nil
}

// with runs f within a session and closes what was opened on every path.
func (d *driver) with(ctx context.Context, m providers.Machine, level types.PrivilegeLevel, f func(context.Context, *session) error) error {
	if err := checkMachine(m); err != nil {
		return err
	}
	address, err := d.opts.endpoint(m.Address)
	if err != nil {
		return problemf(fencing.Misconfigured, "%v", err)
	}
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, noDeadline)
		defer cancel()
	}
	if err := ctx.Err(); err != nil {
		return &problem{kind: fencing.TimedOut, text: "nothing was asked", err: err}
	}
	l, err := dial(ctx, address)
	if err != nil {
		return err
	}
	defer l.close()
	s, err := openSession(ctx, l, m.Credentials, level, d.opts.CipherSuites)
	if err != nil {
		return err
	}
	defer s.close(ctx)
	return f(ctx, s)
}

// wrap gives a failure the form of the interface.
func (d *driver) wrap(m providers.Machine, op string, err error) *providers.Error {
	return &providers.Error{Kind: kindOf(err), Op: op, Node: m.Node, Address: providers.CleanRaw(m.Address), Err: err}
}

// identity is the system GUID as a UUID, or empty when the controller has none.
// A controller without the command has still named one when it logged us in.
func (s *session) identity(ctx context.Context) (string, error) {
	code, data, err := s.do(ctx, cmdSystemGUID, nil)
	switch {
	case err != nil:
		return "", err
	case notImplemented(code):
		data = s.guid[:]
	case code != codeOK:
		return "", commandProblem(cmdSystemGUID, code)
	}
	uuid, err := parseGUID(data)
	if err != nil {
		return "", problemf(fencing.Malformed, "%v", err)
	}
	return uuid, nil
}

// status asks for the power state. raw is what came, for the record.
func (s *session) status(ctx context.Context) (st status, raw string, err error) {
	code, data, err := s.do(ctx, cmdChassisStatus, nil)
	if err != nil {
		return status{}, "", err
	}
	raw = fmt.Sprintf("chassis status %#02x: %s:", code, hexOf(data))
	if err := commandProblem(cmdChassisStatus, code); err != nil {
		return status{}, raw, err
	}
	if st, err = parseStatus(data); err != nil {
		return status{}, raw, problemf(fencing.Malformed, "%v", err)
	}
	return st, raw, nil
}

// acpi asks whether a machine without main power sleeps. The command is
// optional: a controller that lacks it is taken at its power bit, one that is
// busy is not.
func (s *session) acpi(ctx context.Context) (word string, asleep bool, err error) {
	code, data, err := s.do(ctx, cmdACPIState, nil)
	if err != nil {
		return "", false, err
	}
	if busy := commandProblem(cmdACPIState, code); code != codeOK {
		if kindOf(busy) == fencing.Busy {
			return "", false, busy
		}
		return "", false, nil
	}
	word, asleep = sleeping(data)
	return word, asleep, nil
}

// powerDown cuts the power. A controller that refuses may do so because the
// machine is off already: its state tells, not its answer.
func (s *session) powerDown(ctx context.Context) error {
	const powerDown = 0x00
	code, _, err := s.do(ctx, cmdChassisControl, []byte{powerDown})
	if err != nil {
		var p *problem
		if errors.As(err, &p) {
			p.text += "; the command may have been carried out all the same"
		}
		return err
	}
	refused := commandProblem(cmdChassisControl, code)
	if refused == nil || code == codePrivilege {
		return refused
	}
	if st, _, err := s.status(ctx); err == nil && st.power == fencing.Off {
		return nil
	}
	return refused
}
