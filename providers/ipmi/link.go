package ipmi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"github.com/nodefence/nodefence/fencing"
	"github.com/nodefence/nodefence/providers"
)

const (
	// firstWait is how long an answer may take before the request is sent
	// again; it grows, so that a controller that is merely slow is not flooded.
	firstWait = time.Second
	// noDeadline bounds a call whose context has no deadline.
	noDeadline = 30 * time.Second
	// farewell is what saying goodbye may take, beyond what the context allows
	// only by sending, never by waiting.
	farewell = 300 * time.Millisecond
	// maxDatagram is more than any answer to what is asked here.
	maxDatagram = 1024
)

// problem is a failure with its kind. Its text is made here, of parts that hold
// no secrets.
type problem struct {
	kind fencing.FailureKind
	text string
	err  error
}

func (p *problem) Error() string {
	if p.err != nil {
		return p.text + ": " + p.err.Error()
	}
	return p.text
}

func (p *problem) Unwrap() error { return p.err }

func problemf(kind fencing.FailureKind, format string, args ...any) *problem {
	return &problem{kind: kind, text: fmt.Sprintf(format, args...)}
}

func kindOf(err error) fencing.FailureKind {
	var p *problem
	if errors.As(err, &p) {
		return p.kind
	}
	return fencing.Failed
}

// link is a UDP socket to one controller, for one call.
type link struct {
	conn net.Conn
	stop func() bool
}

// dial opens a socket whose reads end with ctx.
func dial(ctx context.Context, address string) (*link, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "udp", address)
	if err != nil {
		return nil, &problem{kind: providers.ClassifyNetwork(err), text: "no way to the controller; check the address and the network", err: err}
	}
	return &link{conn: conn, stop: context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Unix(1, 0)) })}, nil
}

func (l *link) close() {
	l.stop()
	_ = l.conn.Close()
}

// send sends once and waits for nothing.
func (l *link) send(pkt []byte) { _, _ = l.conn.Write(pkt) }

// exchange sends what next makes, again when no answer comes, until accept takes
// a datagram (nil, or an error that is final) or ctx ends. Datagrams of which
// accept says errNotOurs are passed over: anybody may send one.
func (l *link) exchange(ctx context.Context, what string, next func() ([]byte, error), accept func(pkt []byte) error) error {
	buf := make([]byte, maxDatagram)
	var junk error
	junked := 0
	for wait, sent := firstWait, 1; ; wait, sent = wait*3/2, sent+1 {
		if ended(ctx) != nil {
			return silence(ctx, what, sent-1, junked, junk)
		}
		pkt, err := next()
		if err != nil {
			return problemf(fencing.Failed, "%s: %v", what, err)
		}
		if _, err := l.conn.Write(pkt); err != nil {
			return l.broken(ctx, what, err)
		}
		again := time.Now().Add(wait)
		for {
			if err := l.setDeadline(ctx, again); err != nil {
				return silence(ctx, what, sent, junked, junk)
			}
			n, err := l.conn.Read(buf)
			var timeout net.Error
			if errors.As(err, &timeout) && timeout.Timeout() {
				break
			}
			if err != nil {
				return l.broken(ctx, what, err)
			}
			err = accept(buf[:n])
			if !errors.Is(err, errNotOurs) {
				return err
			}
			junked, junk = junked+1, err
		}
	}
}

// setDeadline bounds the next read. The context may end while it is set and its
// own deadline be overwritten, so it is looked at once more after.
func (l *link) setDeadline(ctx context.Context, t time.Time) error {
	if d, ok := ctx.Deadline(); ok && d.Before(t) {
		t = d
	}
	if err := l.conn.SetReadDeadline(t); err != nil {
		return err
	}
	return ended(ctx)
}

// ended is ctx.Err, but does not wait for the context's timer to run: between
// the deadline and that moment every read would fail at once.
func ended(ctx context.Context) error {
	if d, ok := ctx.Deadline(); ok && !time.Now().Before(d) {
		return context.DeadlineExceeded
	}
	return ctx.Err()
}

// broken says why the socket failed.
func (l *link) broken(ctx context.Context, what string, err error) error {
	switch {
	case ended(ctx) != nil:
		return silence(ctx, what, 1, 0, nil)
	case errors.Is(err, syscall.ECONNREFUSED):
		return &problem{kind: fencing.Unreachable, text: what + ": nothing listens on the controller's port; check address and port, and that IPMI over LAN is enabled", err: err}
	}
	kind := providers.ClassifyNetwork(err)
	if kind == fencing.Failed {
		kind = fencing.Unreachable
	}
	return &problem{kind: kind, text: what, err: err}
}

// silence says what did not come in time.
func silence(ctx context.Context, what string, sent, junked int, junk error) error {
	cause := ended(ctx)
	if junked > 0 {
		return &problem{kind: fencing.Malformed, err: cause,
			text: fmt.Sprintf("%s: sent %d times; %d datagrams came back that are no answer (the last one: %v)", what, sent, junked, junk)}
	}
	return &problem{kind: fencing.TimedOut, err: cause,
		text: fmt.Sprintf("%s: sent %d times, no answer in time; check that the controller has power and network, and that IPMI over LAN is enabled", what, sent)}
}
