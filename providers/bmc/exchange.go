package bmc

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"strings"
	"sync"
	"time"

	"github.com/nodefence/nodefence/providers"
)

const (
	// farewell is how long a session may take to be closed after a call's
	// context has ended. The call itself does not wait for it.
	farewell = 500 * time.Millisecond
	// maxBytes bounds what one call may receive; one answer is bounded by
	// providers.DefaultMaxBody.
	maxBytes = 32 << 20
	// codeNoObject is the code of the answers that the exchange puts in the place
	// of those that the library could not bear.
	codeNoObject = "nodefence.NoObject"
)

var (
	errTooMuch = errors.New("the controller sends too much")
	errGivenUp = errors.New("given up after an earlier failure")
)

// exchange is the network of one call. bmclib's drivers keep to no context, bound
// no answer, verify no certificate, and panic in goroutines of their own, where
// nobody can catch it, when a document is null. So they get a connection that
// ends within this process: what they ask is asked by providers.HTTP, and what
// they could not bear they never see.
type exchange struct {
	base string
	http *providers.HTTP

	mu     sync.Mutex
	ctx    context.Context // what requests live by at present
	pipes  map[net.Conn]bool
	got    int
	failed error // the first failure of a request
	closed bool
}

// newExchange makes the network to one controller. All requests go to host and
// port, whatever a driver or a redirect names: no other host sees the credentials.
func newExchange(ctx context.Context, host, port string, cfg *tls.Config, now func() time.Time) *exchange {
	return &exchange{
		ctx: ctx, base: "https://" + net.JoinHostPort(host, port),
		http: providers.NewHTTP(cfg, 0, now), pipes: map[net.Conn]bool{},
	}
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
			TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}, // bmclib expects one; TLS is spoken by providers.HTTP
			DialTLSContext:  func(context.Context, string, string) (net.Conn, error) { return x.dial() },
			DialContext: func(context.Context, string, string) (net.Conn, error) {
				return nil, errors.New("no connection without TLS")
			},
			DisableCompression: true,
			IdleConnTimeout:    time.Second,
		},
	}
}

// dial makes a connection whose other end is answered by forward.
func (x *exchange) dial() (net.Conn, error) {
	near, far := net.Pipe()
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return nil, net.ErrClosed
	}
	x.pipes[far] = true
	go x.serve(far)
	return near, nil
}

// serve answers the requests of one connection until there is no answer.
func (x *exchange) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	from := bufio.NewReader(conn)
	for {
		req, err := http.ReadRequest(from)
		if err != nil {
			return
		}
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return
		}
		a, err := x.forward(req, body)
		if err != nil {
			return
		}
		a.Header.Del("Content-Length")
		a.Header.Del("Transfer-Encoding")
		answer := http.Response{
			StatusCode: a.Status, ProtoMajor: 1, ProtoMinor: 1, Request: req, Header: a.Header,
			Body: io.NopCloser(bytes.NewReader(a.Body)), ContentLength: int64(len(a.Body)),
		}
		if answer.Write(conn) != nil {
			return
		}
	}
}

// forward asks the controller. After a request without an answer there are no
// more, except to log out: what cannot be reached is not asked dozens of times.
func (x *exchange) forward(req *http.Request, body []byte) (providers.Answer, error) {
	x.mu.Lock()
	ctx, over := x.ctx, x.closed || x.failed != nil && req.Method != http.MethodDelete
	x.mu.Unlock()
	if over {
		return providers.Answer{}, errGivenUp
	}
	header := req.Header.Clone()
	header.Del("Accept-Encoding")
	// gofish asks for a new connection each time, and a TLS handshake is the most
	// that many controllers can be asked for.
	header.Del("Connection")
	if len(body) == 0 {
		body = nil
	}
	a, err := x.http.Do(ctx, providers.Request{Method: req.Method, URL: x.base + req.URL.RequestURI(), Header: header, Body: body})
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.got += len(a.Body); err == nil && x.got > maxBytes {
		err = errTooMuch
	}
	if err != nil {
		if x.failed == nil {
			x.failed = fmt.Errorf("%s %s: %w", req.Method, req.URL.Path, err)
		}
		return providers.Answer{}, err
	}
	if req.Method == http.MethodGet && a.Status == http.StatusOK && strings.HasPrefix(req.URL.Path, "/redfish/") && !isObject(a.Body) {
		a.Status, a.Body = http.StatusBadGateway, noObject(req.URL.Path)
	}
	return a, nil
}

func isObject(body []byte) bool { return bytes.HasPrefix(bytes.TrimSpace(body), []byte("{")) }

func noObject(path string) []byte {
	b, _ := json.Marshal(map[string]any{"error": map[string]string{
		"code": codeNoObject, "message": "GET " + path + ": the answer is no JSON object, but a web page, null, or nothing",
	}}) // texts always encode
	return b
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
	defer x.mu.Unlock()
	x.closed = true
	for c := range x.pipes {
		_ = c.Close()
	}
	x.http.Close()
}

// failure is why a request had no answer, or nil.
func (x *exchange) failure() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.failed
}

// forgive lets requests through again, to see what became of a command whose
// answer was lost.
func (x *exchange) forgive() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.failed = nil
}
