package providers_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nodefence/nodefence/fencing"
	"github.com/nodefence/nodefence/providers"
)

func serve(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv
}

func do(t *testing.T, r providers.Request, maxBody int64, timeout time.Duration) (providers.Answer, error) {
	t.Helper()
	h := providers.NewHTTP(nil, maxBody, time.Now)
	defer h.Close()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	a, err := h.Do(ctx, r)
	var sent *providers.SendError
	if err != nil && !errors.As(err, &sent) {
		t.Errorf("%T is no *SendError: %v", err, err)
	}
	return a, err
}

func TestDo(t *testing.T) {
	var got *http.Request
	var body []byte
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got = r.Clone(context.Background())
		body, _ = io.ReadAll(r.Body)
		w.Header().Set("X-Auth-Token", "t")
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.WriteString(w, "short and stout")
	})
	before := time.Now()
	a, err := do(t, providers.Request{Method: http.MethodPost, URL: srv.URL + "/pot", Header: http.Header{"X-Tea": {"1"}}, Body: []byte("water")}, 0, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if a.Status != http.StatusTeapot || string(a.Body) != "short and stout" || a.Header.Get("X-Auth-Token") != "t" {
		t.Errorf("%+v", a)
	}
	if got.Method != http.MethodPost || got.URL.Path != "/pot" || got.Header.Get("X-Tea") != "1" || string(body) != "water" {
		t.Errorf("%s %s %v %s", got.Method, got.URL, got.Header, body)
	}
	if got.Header.Get("Accept-Encoding") != "" {
		t.Error("it takes compressed answers: a small one may unfold to a large one")
	}
	if a.AskedAt.Before(before) || a.AnsweredAt.Before(a.AskedAt) || a.AnsweredAt.After(time.Now()) {
		t.Errorf("asked %v, answered %v", a.AskedAt, a.AnsweredAt)
	}
}

// TestBodiesAreBounded, to the byte.
func TestBodiesAreBounded(t *testing.T) {
	var n atomic.Int64
	srv := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, strings.Repeat("x", int(n.Load())))
	})
	for size, fits := range map[int64]bool{0: true, 99: true, 100: true, 101: false, 1 << 20: false} {
		n.Store(size)
		a, err := do(t, providers.Request{Method: http.MethodGet, URL: srv.URL}, 100, time.Second)
		if (err == nil) != fits || fits && int64(len(a.Body)) != size || !fits && !errors.Is(err, providers.ErrBodyTooLong) {
			t.Errorf("%d bytes: %d, %v", size, len(a.Body), err)
		}
	}
	n.Store(providers.DefaultMaxBody + 1)
	if _, err := do(t, providers.Request{Method: http.MethodGet, URL: srv.URL}, 0, 5*time.Second); !errors.Is(err, providers.ErrBodyTooLong) {
		t.Errorf("without a limit of one's own: %v", err)
	}
}

func TestHeadersAreBounded(t *testing.T) {
	srv := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-Long", strings.Repeat("x", 100<<10)) })
	_, err := do(t, providers.Request{Method: http.MethodGet, URL: srv.URL}, 0, time.Second)
	if kind, words := providers.ExplainHTTP(err); kind != fencing.Malformed || !strings.Contains(words, "header") {
		t.Errorf("%v: %s", kind, words)
	}
}

// TestRedirectsAreNotFollowed: the caller decides, and its credentials stay.
func TestRedirectsAreNotFollowed(t *testing.T) {
	var elsewhere atomic.Int32
	other := serve(t, func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) })
	for _, status := range []int{301, 302, 303, 307, 308} {
		srv := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", other.URL)
			w.WriteHeader(status)
		})
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			a, err := do(t, providers.Request{Method: method, URL: srv.URL, Header: http.Header{"Authorization": {"x"}}}, 0, time.Second)
			if err != nil || a.Status != status || a.Header.Get("Location") != other.URL {
				t.Errorf("%s %d: %+v, %v", method, status, a, err)
			}
		}
	}
	if elsewhere.Load() != 0 {
		t.Error("another host was asked")
	}
}

// TestNoProxy: a proxy of the environment would see the credentials. TestMain
// names one, because the environment is read once.
func TestNoProxy(t *testing.T) {
	srv := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	_, port, _ := net.SplitHostPort(srv.Listener.Addr().String())
	// This host, by an address that is not exempt from proxies.
	url := "http://0.0.0.0:" + port
	if proxy, err := http.ProxyFromEnvironment(httptest.NewRequest(http.MethodGet, url, nil)); proxy == nil || err != nil {
		t.Fatalf("the environment names no proxy (%v), so this proves nothing", err)
	}
	if a, err := do(t, providers.Request{Method: http.MethodGet, URL: url}, 0, 2*time.Second); err != nil || a.Status != http.StatusTeapot {
		t.Errorf("%+v, %v", a, err)
	}
}

// TestRetries: what failed on the way is tried again, where a second time changes
// nothing; AskedAt is the time of the attempt that was answered.
func TestRetries(t *testing.T) {
	for method, attempts := range map[string]int32{
		http.MethodGet: 3, http.MethodDelete: 3, http.MethodPost: 1, http.MethodPatch: 1, http.MethodPut: 1,
	} {
		var n atomic.Int32
		cut := serve(t, func(http.ResponseWriter, *http.Request) { n.Add(1); panic(http.ErrAbortHandler) })
		_, err := do(t, providers.Request{Method: method, URL: cut.URL, Body: []byte("x")}, 0, 5*time.Second)
		if err == nil || n.Load() != attempts {
			t.Errorf("%s: %d attempts where %d are due, %v", method, n.Load(), attempts, err)
		}
		if kind, words := providers.ExplainHTTP(err); kind != fencing.Failed || !strings.Contains(words, "closed the connection") {
			t.Errorf("%s: %v: %s", method, kind, words)
		}
		var sent *providers.SendError
		if errors.As(err, &sent) && !sent.Sent {
			t.Errorf("%s: it was sent, and the error does not say so", method)
		}
	}
	var n atomic.Int32
	var last atomic.Int64
	flaky := serve(t, func(_ http.ResponseWriter, _ *http.Request) {
		if n.Add(1) < 3 {
			panic(http.ErrAbortHandler)
		}
		last.Store(time.Now().UnixNano())
	})
	a, err := do(t, providers.Request{Method: http.MethodGet, URL: flaky.URL}, 0, 5*time.Second)
	if err != nil || a.AskedAt.After(time.Unix(0, last.Load())) || time.Unix(0, last.Load()).Sub(a.AskedAt) > 40*time.Millisecond {
		t.Errorf("asked at %v, the attempt that was answered came at %v, %v", a.AskedAt, time.Unix(0, last.Load()), err)
	}
	n.Store(0)
	refused := serve(t, func(w http.ResponseWriter, _ *http.Request) { n.Add(1); w.WriteHeader(http.StatusServiceUnavailable) })
	if a, err := do(t, providers.Request{Method: http.MethodGet, URL: refused.URL}, 0, time.Second); err != nil || a.Status != 503 || n.Load() != 1 {
		t.Errorf("an answer is an answer: %d attempts, %+v, %v", n.Load(), a, err)
	}
}

// TestDeadlines: the context bounds everything from the dial to the last byte.
func TestDeadlines(t *testing.T) {
	silent := serve(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	dribbling := serve(t, func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			_, _ = io.WriteString(w, " ")
			_ = http.NewResponseController(w).Flush()
			time.Sleep(10 * time.Millisecond)
		}
	})
	for name, url := range map[string]string{"silent": silent.URL, "dribbling": dribbling.URL} {
		began := time.Now()
		_, err := do(t, providers.Request{Method: http.MethodGet, URL: url}, 0, 100*time.Millisecond)
		if took := time.Since(began); took > 300*time.Millisecond {
			t.Errorf("%s: %v", name, took)
		}
		if kind, words := providers.ExplainHTTP(err); kind != fencing.TimedOut || words != "no complete answer within the deadline" {
			t.Errorf("%s: %v: %s", name, kind, words)
		}
	}
	h := providers.NewHTTP(nil, 0, time.Now)
	defer h.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := h.Do(ctx, providers.Request{Method: http.MethodGet, URL: silent.URL})
	var sent *providers.SendError
	if !errors.As(err, &sent) || sent.Sent || !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled before: %v", err)
	}
}

// raw answers each connection with bytes of any kind.
func raw(t *testing.T, answer string) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	t.Cleanup(func() { _ = l.Close(); wg.Wait() })
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer func() { _ = c.Close() }()
				_ = c.SetDeadline(time.Now().Add(2 * time.Second))
				_, _ = bufio.NewReader(c).ReadByte()
				_, _ = io.WriteString(c, answer)
			})
		}
	})
	return l.Addr().String()
}

// TestNoHTTP: what does not speak the protocol is Malformed, with words.
func TestNoHTTP(t *testing.T) {
	plain := serve(t, func(http.ResponseWriter, *http.Request) {})
	for name, c := range map[string]struct{ url, says string }{
		"HTTP where TLS is due": {"https://" + plain.Listener.Addr().String(), "does not speak TLS"},
		"SSH where TLS is due":  {"https://" + raw(t, "SSH-2.0-OpenSSH_9.2\r\n"), "does not speak TLS"},
		"SSH":                   {"http://" + raw(t, "SSH-2.0-OpenSSH_9.2\r\n"), "HTTP as it should"},
		"a bad status":          {"http://" + raw(t, "HTTP/1.1 2x0 OK\r\n\r\n"), "HTTP as it should"},
		"a bad header":          {"http://" + raw(t, "HTTP/1.1 200 OK\r\nno colon\r\n\r\n"), "HTTP as it should"},
		"a bad chunk":           {"http://" + raw(t, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"), ""},
		"less than promised":    {"http://" + raw(t, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"), "before its answer was complete"},
	} {
		_, err := do(t, providers.Request{Method: http.MethodPost, URL: c.url}, 0, 3*time.Second)
		kind, words := providers.ExplainHTTP(err)
		if err == nil || kind != fencing.Malformed && kind != fencing.Failed || !strings.Contains(words, c.says) {
			t.Errorf("%s: %v: %s (%v)", name, kind, words, err)
		}
		if strings.Contains(c.says, "speak") && kind != fencing.Malformed {
			t.Errorf("%s: %v", name, kind)
		}
	}
}

func TestNobodyThere(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_ = l.Close()
	began := time.Now()
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		_, err := do(t, providers.Request{Method: method, URL: "http://" + addr}, 0, 3*time.Second)
		var sent *providers.SendError
		if kind, words := providers.ExplainHTTP(err); kind != fencing.Unreachable || !strings.Contains(words, "no connection") || !errors.As(err, &sent) || sent.Sent {
			t.Errorf("%s: %v: %s", method, kind, words)
		}
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("a refused connection was tried for %v", took)
	}
}

func TestBadRequest(t *testing.T) {
	if _, err := do(t, providers.Request{Method: "GET", URL: "http://[::1"}, 0, time.Second); err == nil {
		t.Error("a URL that is none is taken")
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	for in, want := range map[string]time.Duration{
		"": 0, "0": 0, "30": 30 * time.Second, " 30 ": 30 * time.Second, "-5": 0, "86400": 5 * time.Minute, "99999999999999999999": 0,
		"soon": 0, "1.5": 0, "Mon, 04 May 2026 03:02:31 GMT": 30 * time.Second, "Mon, 04 May 2026 03:00:00 GMT": 0, "Tue, 05 May 2026 03:02:01 GMT": 5 * time.Minute,
	} {
		if got := providers.RetryAfter(http.Header{"Retry-After": {in}}, now); got != want {
			t.Errorf("%q: %v where %v is expected", in, got, want)
		}
	}
	if got := providers.RetryAfter(http.Header{}, now); got != 0 {
		t.Errorf("no header: %v", got)
	}
}

// FuzzRetryAfter: whatever an endpoint asks for, it is not negative and not long.
func FuzzRetryAfter(f *testing.F) {
	for _, s := range []string{"", "30", "-1", "Mon, 04 May 2026 03:02:31 GMT", "9223372036854775807", "Mon, 04 May 9999 03:02:31 GMT"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		got := providers.RetryAfter(http.Header{"Retry-After": {in}}, time.Now())
		if got < 0 || got > 5*time.Minute {
			t.Errorf("%q: %v", in, got)
		}
	})
}

func TestExplainIsNeverSilent(t *testing.T) {
	for _, err := range []error{errors.New("x"), io.EOF, io.ErrUnexpectedEOF, context.Canceled, &providers.SendError{Err: errors.New("y")}, fmt.Errorf("z: %w", providers.ErrFingerprint)} {
		if kind, words := providers.ExplainHTTP(err); kind == fencing.NoFailure || words == "" {
			t.Errorf("%v: %v %q", err, kind, words)
		}
	}
}
