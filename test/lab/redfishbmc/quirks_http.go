package redfishbmc

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// Answers that are no answers. They work on the system unless moved by At.
var (
	// HTMLBody: 200 with a web page, as a login page or a proxy in front gives.
	HTMLBody = Quirk{Name: "HTMLBody", area: AreaSystem, answer: func(c *call) bool {
		c.w.Header().Set("Content-Type", "text/html")
		c.write(http.StatusOK, []byte("<!DOCTYPE html><html><body>Please log in. PowerState: Off</body></html>"))
		return true
	}}
	// NullBody: 200 with the JSON value null; a service whose backend is down.
	NullBody = raw("NullBody", "null")
	// EmptyBody: 200 with nothing.
	EmptyBody = raw("EmptyBody", "")
	// EmptyObject: 200 with {}.
	EmptyObject = raw("EmptyObject", "{}")
	// TruncatedJSON: the document ends half-way, in a complete HTTP answer; a
	// buffer of the controller was too small.
	TruncatedJSON = Quirk{Name: "TruncatedJSON", area: AreaSystem, body: func(_ *call, b []byte) []byte { return b[:len(b)/2] }}
	// CutHalfway: the connection closes in the middle of the answer; the web
	// server of the controller crashed.
	CutHalfway = Quirk{Name: "CutHalfway", area: AreaSystem, answer: cutHalfway}
	// CutAtOnce: the connection closes without an answer.
	CutAtOnce = Quirk{Name: "CutAtOnce", area: Everything, answer: func(c *call) bool { c.cut(); return true }}
	// Megabyte: a good answer with a megabyte of blanks before it.
	Megabyte = Quirk{Name: "Megabyte", area: AreaSystem, body: func(_ *call, b []byte) []byte {
		return append(blanks(1<<20), b...)
	}}
	// EndlessBody: an answer that never ends; a controller gone mad, or somebody
	// else's server.
	EndlessBody = Quirk{Name: "EndlessBody", area: AreaSystem, answer: endless}
	// HangForever: the request is taken and never answered; the most common
	// death of a controller.
	HangForever = Quirk{Name: "HangForever", area: Everything, answer: func(c *call) bool {
		// The server notices that a client has gone only when the body is read.
		_, _ = io.Copy(io.Discard, c.r.Body)
		<-c.r.Context().Done()
		c.cut()
		return true
	}}
)

// Refusals.
var (
	// Unauthorized: 401 whatever the credentials; the account is locked.
	Unauthorized = Quirk{Name: "Unauthorized", area: Everything &^ AreaRoot, answer: func(c *call) bool { c.unauthorized(); return true }}
	// Forbidden: 403, as for an account without the privilege.
	Forbidden = Quirk{Name: "Forbidden", area: AreaSystem, answer: func(c *call) bool { c.forbidden(); return true }}
	// NotFound: 404; the inventory of the controller is not built yet.
	NotFound = Quirk{Name: "NotFound", area: AreaSystem, answer: func(c *call) bool { c.notFound(); return true }}
	// InternalError: 500.
	InternalError = status("InternalError", http.StatusInternalServerError, "Base.1.8.InternalError")
	// HPENotReady: iLO's answer while the host initialises: come again.
	HPENotReady = status("HPENotReady", http.StatusServiceUnavailable, "iLO.2.14.ResourceNotReadyRetry")
	// IDRACNotReady: iDRAC's answer after its own restart: 400, though the
	// request is right.
	IDRACNotReady = status("IDRACNotReady", http.StatusBadRequest, "IDRAC.2.8.SWC0700")
	// SessionLimit: no session is to be had; somebody leaks them.
	SessionLimit = Quirk{Name: "SessionLimit", area: AreaSessions, answer: func(c *call) bool {
		if c.r.Method != http.MethodPost {
			return false
		}
		c.sessionLimit()
		return true
	}}
	// SessionDeleteFails: DELETE of a session answers 500 and the session stays.
	SessionDeleteFails = Quirk{Name: "SessionDeleteFails", area: AreaSessions, answer: func(c *call) bool {
		if c.r.Method != http.MethodDelete {
			return false
		}
		c.fail(http.StatusInternalServerError, "Base.1.8.InternalError", "The request failed due to an internal service error.")
		return true
	}}
)

// UnauthorizedNowAndThen answers every nth request 401 though the credentials
// are good, as iLOs do under load.
func UnauthorizedNowAndThen(n int64) Quirk {
	var count atomic.Int64
	return Quirk{Name: "UnauthorizedNowAndThen", area: Everything &^ AreaRoot, answer: func(c *call) bool {
		if count.Add(1)%n != 0 {
			return false
		}
		c.unauthorized()
		return true
	}}
}

// Unavailable answers 503 and asks to come again; while the service root says
// 200, as controllers do that still start.
func Unavailable(retryAfter time.Duration) Quirk {
	return Quirk{Name: "Unavailable", area: AreaSystem, answer: func(c *call) bool {
		c.w.Header().Set("Retry-After", strconv.Itoa(int(retryAfter.Round(time.Second)/time.Second)))
		c.fail(http.StatusServiceUnavailable, "Base.1.8.ServiceTemporarilyUnavailable",
			fmt.Sprintf("The service is temporarily unavailable. Retry in %d seconds.", int(retryAfter.Seconds())))
		return true
	}}
}

// Redirect answers with a redirect (301, 302, 307 or 308) to the same path on
// another host, as a controller's load balancer or an attacker does.
func Redirect(status int, base string) Quirk {
	return Quirk{Name: "Redirect", area: AreaSystem, answer: func(c *call) bool {
		c.w.Header().Set("Location", base+c.r.URL.Path)
		c.write(status, nil)
		return true
	}}
}

// SessionRedirect redirects the login: a client that follows a 301 turns the
// POST into a GET and may go on without a session.
func SessionRedirect(status int, base string) Quirk {
	q := Redirect(status, base).At(AreaSessions)
	q.Name = "SessionRedirect"
	return q
}

// Slow delays every answer: a controller with a slow processor that is busy.
func Slow(d time.Duration) Quirk {
	return Quirk{Name: "Slow", area: Everything, answer: func(c *call) bool {
		// When the client or the service has gone there is nobody to answer.
		if c.b.sleep(c.r.Context(), d) {
			return false
		}
		c.cut()
		return true
	}}
}

// CrashesWhenPolled restarts the controller when it gets more than n requests
// within a time: polling too often kills some.
func CrashesWhenPolled(n int, within, down time.Duration) Quirk {
	var mu sync.Mutex
	var recent []time.Time
	return Quirk{Name: "CrashesWhenPolled", area: Everything, answer: func(c *call) bool {
		mu.Lock()
		now := time.Now()
		for len(recent) > 0 && now.Sub(recent[0]) > within {
			recent = recent[1:]
		}
		recent = append(recent, now)
		crash := len(recent) > n
		if crash {
			recent = nil
		}
		mu.Unlock()
		if crash {
			c.b.RestartBMC(down, 0)
			c.cut()
		}
		return crash
	}}
}

func raw(name, body string) Quirk {
	return Quirk{Name: name, area: AreaSystem, answer: func(c *call) bool {
		c.w.Header().Set("Content-Type", "application/json")
		c.write(http.StatusOK, []byte(body))
		return true
	}}
}

func status(name string, code int, id string) Quirk {
	return Quirk{Name: name, area: AreaSystem, answer: func(c *call) bool {
		c.fail(code, id, "The resource is not ready. Retry the request later.")
		return true
	}}
}

func blanks(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = ' '
	}
	return b
}

// cutHalfway promises more than it sends.
func cutHalfway(c *call) bool {
	c.w.Header().Set("Content-Type", "application/json")
	c.w.Header().Set("Content-Length", "1000")
	c.w.WriteHeader(http.StatusOK)
	_, _ = c.w.Write([]byte(`{"@odata.id":"` + c.path + `","PowerState":"Off",`))
	_ = http.NewResponseController(c.w).Flush()
	c.cut()
	return true
}

// endless sends blanks until the client or the service has had enough.
func endless(c *call) bool {
	c.w.Header().Set("Content-Type", "application/json")
	c.w.WriteHeader(http.StatusOK)
	chunk := blanks(1 << 16)
	for c.r.Context().Err() == nil {
		if _, err := c.w.Write(chunk); err != nil {
			break
		}
	}
	return true
}
