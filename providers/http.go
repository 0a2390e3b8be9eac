package providers

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-retryablehttp"
)

// Limits of the shared HTTP client.
const (
	// DefaultMaxBody bounds an answer's body in bytes. The largest documents
	// that drivers read have some tens of kilobytes.
	DefaultMaxBody = 1 << 20
	// maxHeader bounds an answer's header.
	maxHeader = 64 << 10
	// maxRetryAfter bounds what an endpoint may ask for: one that asks for a day
	// would be unwatched for a day.
	maxRetryAfter = 5 * time.Minute
)

// ErrBodyTooLong is the cause when an answer does not end within the limit.
var ErrBodyTooLong = errors.New("the answer is too long")

// HTTP makes the requests of one exchange with one endpoint. It is made for one
// call of a driver and closed with it, so nothing of it outlives the call.
//
// What it does for drivers: every request is bound to a context from the dial to
// the last byte of the body; bodies and headers are bounded; redirects are never
// followed but handed to the caller; no proxy of the environment sees the
// credentials; what was asked when is noted by the attempt that was answered;
// GET and DELETE are tried again when the connection failed, other methods never
// (a POST may have been carried out although its answer was lost).
type HTTP struct {
	client    *http.Client
	transport *http.Transport
	maxBody   int64
	now       func() time.Time
}

// NewHTTP makes a client. cfg is TLS.Config's result; maxBody 0 means
// DefaultMaxBody; now is Settings.Now.
func NewHTTP(cfg *tls.Config, maxBody int64, now func() time.Time) *HTTP {
	if maxBody <= 0 {
		maxBody = DefaultMaxBody
	}
	t := &http.Transport{
		DialContext:            (&net.Dialer{}).DialContext, // bounded by the request's context
		TLSClientConfig:        cfg,
		DisableCompression:     true, // a small body cannot unfold to a large one
		MaxResponseHeaderBytes: maxHeader,
		MaxIdleConnsPerHost:    1,
		IdleConnTimeout:        30 * time.Second,
	}
	return &HTTP{
		transport: t, maxBody: maxBody, now: now,
		client: &http.Client{
			Transport:     t,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// Answer is what came back for one request.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
	// AskedAt is just before the request that was answered was sent, AnsweredAt
	// after the last byte of its body.
	AskedAt, AnsweredAt time.Time
}

// Request is one request to an endpoint.
type Request struct {
	Method string
	URL    string
	Header http.Header
	Body   []byte
}

// SendError is an exchange without a complete answer.
type SendError struct {
	// Sent is set when the request was written: the endpoint may have acted on
	// it.
	Sent bool
	// Err is the cause.
	Err error
}

func (e *SendError) Error() string { return e.Err.Error() }

// Unwrap gives the cause.
func (e *SendError) Unwrap() error { return e.Err }

// Do makes one request and reads the answer whole. A status of any kind is an
// answer; an error is always a *SendError.
func (h *HTTP) Do(ctx context.Context, r Request) (Answer, error) {
	var a Answer
	var sent atomic.Bool // the transport writes in a goroutine of its own
	trace := &httptrace.ClientTrace{WroteHeaders: func() { sent.Store(true) }}
	req, err := retryablehttp.NewRequestWithContext(httptrace.WithClientTrace(ctx, trace), r.Method, r.URL, body(r.Body))
	if err != nil {
		return a, &SendError{Err: err}
	}
	for k, v := range r.Header {
		req.Header[k] = v
	}
	req.SetResponseHandler(func(resp *http.Response) error {
		var err error
		a.Status, a.Header = resp.StatusCode, resp.Header
		a.Body, err = h.read(resp)
		a.AnsweredAt = h.now()
		return err
	})
	c := &retryablehttp.Client{
		HTTPClient:   h.client,
		RetryMax:     2,
		RetryWaitMin: 50 * time.Millisecond,
		RetryWaitMax: 200 * time.Millisecond,
		CheckRetry: func(ctx context.Context, _ *http.Response, err error) (bool, error) {
			return retryable(ctx, r.Method, err), nil
		},
		Backoff:        retryablehttp.DefaultBackoff,
		ErrorHandler:   retryablehttp.PassthroughErrorHandler,
		RequestLogHook: func(retryablehttp.Logger, *http.Request, int) { a.AskedAt = h.now() },
	}
	resp, err := c.Do(req)
	if resp != nil {
		_ = resp.Body.Close() // already closed by read; a second time does no harm
	}
	if err != nil {
		// The context's own error says best what happened.
		if ctxErr := ctx.Err(); ctxErr != nil {
			err = fmt.Errorf("%w (%s)", ctxErr, err.Error())
		}
		return Answer{}, &SendError{Sent: sent.Load(), Err: err}
	}
	return a, nil
}

// Close drops the connections.
func (h *HTTP) Close() { h.transport.CloseIdleConnections() }

func body(b []byte) any {
	if b == nil {
		return nil
	}
	return bytes.NewReader(b)
}

func (h *HTTP) read(resp *http.Response) ([]byte, error) {
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(io.LimitReader(resp.Body, h.maxBody+1))
	switch {
	case err != nil:
		return nil, err
	case int64(len(b)) > h.maxBody:
		return nil, fmt.Errorf("%w: more than %d bytes", ErrBodyTooLong, h.maxBody)
	}
	return b, nil
}

// retryable: only what failed on the way, and only where a second time changes
// nothing. A refusal of trust or an answer is final: the next reading is the
// next attempt.
func retryable(ctx context.Context, method string, err error) bool {
	if err == nil || ctx.Err() != nil || method != http.MethodGet && method != http.MethodDelete {
		return false
	}
	if errors.Is(err, ErrBodyTooLong) {
		return false
	}
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		// Nobody listens, or nobody knows the name: waiting for that is not the
		// business of a single request.
		return false
	}
	var noTLS tls.RecordHeaderError
	if _, ok := ExplainTLS(err); ok || errors.Is(err, http.ErrSchemeMismatch) || errors.As(err, &noTLS) {
		return false
	}
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &op)
}

// RetryAfter reads a Retry-After header (RFC 9110 section 10.2.3), in seconds or
// as a date. What is not understood is zero; more than five minutes are five.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	text := strings.TrimSpace(h.Get("Retry-After"))
	if text == "" {
		return 0
	}
	if s, err := strconv.ParseInt(text, 10, 64); err == nil {
		return time.Duration(min(max(s, 0), int64(maxRetryAfter/time.Second))) * time.Second
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	return min(max(at.Sub(now), 0), maxRetryAfter)
}
