package bmc

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/cookiejar"
	"sync"
	"time"
)

const (
	// farewell is how long a session may take to be closed after a call's
	// context has ended. The call itself does not wait for it.
	farewell = 500 * time.Millisecond
	// maxBytes bounds what one call may receive.
	maxBytes = 32 << 20
)

var errTooMuch = errors.New("the controller sends too much")

// exchange is the network of one call. bmclib's drivers do not keep to a
// context, so the context is tied to what they cannot do without: when it ends,
// the call's connections are closed, and new ones refused.
type exchange struct {
	address string
	tls     *tls.Config

	mu      sync.Mutex
	ctx     context.Context // what connections live by at present
	conns   map[*boundConn]bool
	got     int64
	dialErr error // why the last connection did not come about
	closed  bool
}

// newExchange makes the network to one controller. All connections go to
// address, whatever host or port a driver or a redirect names: no other host
// sees the credentials.
func newExchange(ctx context.Context, host, port string, cfg *tls.Config) *exchange {
	cfg = cfg.Clone()
	cfg.ServerName = host
	return &exchange{ctx: ctx, address: net.JoinHostPort(host, port), tls: cfg, conns: map[*boundConn]bool{}}
}

// client is an HTTP client over the exchange. Its transport is a plain
// *http.Transport, because bmclib panics on others.
func (x *exchange) client() *http.Client {
	jar, _ := cookiejar.New(nil) // never fails
	return &http.Client{
		Jar: jar,
		// A redirected log-in is repeated without its body, and what follows
		// goes on without a session.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}, // bmclib expects one; connections are made below
			DialTLSContext:  x.dial,
			DialContext: func(context.Context, string, string) (net.Conn, error) {
				return nil, errors.New("no connection without TLS")
			},
			MaxResponseHeaderBytes: 64 << 10,
			IdleConnTimeout:        time.Second,
		},
	}
}

func (x *exchange) dial(context.Context, string, string) (net.Conn, error) {
	x.mu.Lock()
	ctx, closed := x.ctx, x.closed
	x.mu.Unlock()
	if closed {
		return nil, net.ErrClosed
	}
	raw, err := (&net.Dialer{}).DialContext(ctx, "tcp", x.address)
	if err == nil {
		secure := tls.Client(raw, x.tls)
		if err = secure.HandshakeContext(ctx); err == nil {
			return x.keep(ctx, secure)
		}
		_ = raw.Close()
	}
	x.mu.Lock()
	x.dialErr = err
	x.mu.Unlock()
	return nil, err
}

// keep ties a connection to ctx and to the exchange.
func (x *exchange) keep(ctx context.Context, conn net.Conn) (net.Conn, error) {
	c := &boundConn{Conn: conn, x: x}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		_ = conn.Close()
		return nil, net.ErrClosed
	}
	x.dialErr = nil
	x.conns[c] = true
	c.stop = context.AfterFunc(ctx, func() { _ = conn.Close() })
	return c, nil
}

// lingerOn lets the exchange live a little beyond its context, to close the
// session.
func (x *exchange) lingerOn() context.CancelFunc {
	ctx, cancel := context.WithTimeout(context.Background(), farewell)
	x.mu.Lock()
	x.ctx = ctx
	x.mu.Unlock()
	return cancel
}

// close ends every connection.
func (x *exchange) close() {
	x.mu.Lock()
	x.closed = true
	var all []*boundConn
	for c := range x.conns {
		all = append(all, c)
	}
	x.mu.Unlock()
	for _, c := range all {
		_ = c.Close()
	}
}

// failure is why no connection came about, or nil.
func (x *exchange) failure() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.dialErr
}

// boundConn is a connection that counts and that the exchange can close.
type boundConn struct {
	net.Conn
	x    *exchange
	stop func() bool
}

func (c *boundConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.x.mu.Lock()
	c.x.got += int64(n)
	much := c.x.got > maxBytes
	c.x.mu.Unlock()
	if much {
		return 0, errTooMuch
	}
	return n, err
}

func (c *boundConn) Close() error {
	c.stop()
	c.x.mu.Lock()
	delete(c.x.conns, c)
	c.x.mu.Unlock()
	return c.Conn.Close()
}
