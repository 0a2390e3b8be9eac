package redfish

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/nodefence/nodefence/fencing"
	"github.com/nodefence/nodefence/providers"
)

const (
	// late is how long a request that our side no longer waits for may take to
	// be put in order in the background: a log-in whose answer comes late is a
	// session to close.
	late = 5 * time.Second
	// maxRedirects within one endpoint: some add or remove a slash.
	maxRedirects = 3
)

// link is one exchange with one endpoint: its connection, its session. It
// belongs to one call and one goroutine.
type link struct {
	endpoint
	http  *providers.HTTP
	now   func() time.Time
	creds providers.Credentials
	// basic: name and password go with each request.
	basic bool
	// token and session are the open session: its X-Auth-Token and its path.
	token, session string
	// adopted: the log-in goes on in the background and closes what it opens.
	adopted bool
}

// header is that of a request with authentication.
func (l *link) header() http.Header {
	h := http.Header{"Accept": {"application/json"}, "Odata-Version": {"4.0"}, "User-Agent": {"nodefence"}}
	switch {
	case l.token != "":
		h.Set("X-Auth-Token", l.token)
	case l.basic:
		h.Set("Authorization", "Basic "+l.basicToken())
	}
	return h
}

func (l *link) basicToken() string {
	return base64.StdEncoding.EncodeToString([]byte(l.creds.Username + ":" + l.creds.Password))
}

// send makes one request and gives whatever is answered.
func (l *link) send(ctx context.Context, method, path string, payload any) (providers.Answer, error) {
	r := providers.Request{Method: method, URL: l.base + path, Header: l.header()}
	if payload != nil {
		body, err := json.Marshal(payload)
		if err != nil {
			return providers.Answer{}, problemf(fencing.Failed, "%s %s: the request cannot be encoded", method, path)
		}
		r.Body = body
		r.Header.Set("Content-Type", "application/json")
	}
	a, err := l.http.Do(ctx, r)
	if err != nil {
		kind, words := providers.ExplainHTTP(err)
		return a, problemf(kind, "%s %s: %s", method, path, words)
	}
	return a, nil
}

// get reads a resource. Redirects are followed on the endpoint itself only.
func (l *link) get(ctx context.Context, path string) (providers.Answer, error) {
	for range maxRedirects + 1 {
		a, err := l.send(ctx, http.MethodGet, path, nil)
		if err != nil {
			return a, err
		}
		to, host, redirected := redirectTarget(l.endpoint, a)
		switch {
		case a.Status == http.StatusOK:
			return a, nil
		case !redirected:
			return a, parseFault("GET "+path, a, l.now())
		case to == "":
			return a, redirectProblem("GET "+path, a.Status, host)
		}
		path = to
	}
	return providers.Answer{}, problemf(fencing.Malformed, "GET %s: redirected in circles", path)
}

func redirectProblem(what string, status int, host string) *problem {
	return problemf(fencing.Failed, "%s: HTTP %d redirects to %s, which is not followed: the credentials are for this endpoint only; set the machine's address to the right host", what, status, host)
}

// logIn opens a session at path, or does nothing with basic authentication. A
// log-in is sent once and never again: controllers lock accounts. If ctx ends
// before the answer comes, the session may come to be all the same, and would
// stay: so the wait goes on in the background, and what comes is closed.
func (l *link) logIn(ctx context.Context, path string) error {
	if l.basic {
		return nil
	}
	detached, cancel := context.WithTimeout(context.WithoutCancel(ctx), untilEnd(ctx)+late)
	done, abandoned := make(chan error), make(chan struct{})
	background := *l
	go func() {
		defer cancel()
		err := background.createSession(detached, path)
		select {
		case done <- err:
		case <-abandoned:
			background.logOut(detached)
			background.http.Close()
		}
	}()
	select {
	case err := <-done:
		l.token, l.session = background.token, background.session
		return err
	case <-ctx.Done():
		close(abandoned)
		l.adopted = true
		return problemf(fencing.TimedOut, "POST %s: no complete answer to the log-in within the deadline", path)
	}
}

// untilEnd is the time until ctx's deadline; without one there is none to add.
func untilEnd(ctx context.Context) time.Duration {
	if end, ok := ctx.Deadline(); ok {
		return max(time.Until(end), 0)
	}
	return 0
}

func (l *link) createSession(ctx context.Context, path string) error {
	a, err := l.send(ctx, http.MethodPost, path, map[string]string{"UserName": l.creds.Username, "Password": l.creds.Password})
	if err != nil {
		return err
	}
	what := "POST " + path + " (log-in)"
	if _, host, redirected := redirectTarget(l.endpoint, a); redirected {
		return redirectProblem(what, a.Status, host)
	}
	if a.Status != http.StatusCreated && a.Status != http.StatusOK {
		return parseFault(what, a, l.now())
	}
	session, token := sessionPath(a), a.Header.Get("X-Auth-Token")
	switch {
	case token == "":
		return problemf(fencing.Malformed, "%s: HTTP %d without X-Auth-Token: no session was opened; if the endpoint's sessions do not work, set basicAuth", what, a.Status)
	case session == "":
		return problemf(fencing.Malformed, "%s: HTTP %d without the session's Location: it could never be closed; set basicAuth", what, a.Status)
	}
	l.token, l.session = token, session
	return nil
}

// sessionPath is where an answer to a log-in says that the session is. Some give
// a URL with a host of their own liking; only the path counts.
func sessionPath(a providers.Answer) string {
	if u, err := url.Parse(a.Header.Get("Location")); err == nil {
		if p, ok := localPath(u.Path); ok && p != serviceRoot {
			return p
		}
	}
	doc, err := object(a.Body)
	if err != nil {
		return ""
	}
	if p, ok := localPath(word(doc["@odata.id"])); ok && p != serviceRoot {
		return p
	}
	return ""
}

// logOut closes the session. Its failure is nobody's concern but the endpoint's:
// there, it ends by its time-out.
func (l *link) logOut(ctx context.Context) {
	if l.session != "" {
		_, _ = l.send(ctx, http.MethodDelete, l.session, nil)
		l.session, l.token = "", ""
	}
}

// close ends the session and the connection on every path, also when ctx is
// over. It waits for that a little, so that the next call finds the endpoint's
// sessions free, and leaves a slow endpoint to a goroutine that ends by itself.
func (l *link) close(ctx context.Context) {
	if l.adopted {
		return
	}
	if l.session == "" {
		l.http.Close()
		return
	}
	detached, cancel := context.WithTimeout(context.WithoutCancel(ctx), late)
	done := make(chan struct{})
	background := *l
	go func() {
		defer cancel()
		defer close(done)
		background.logOut(detached)
		background.http.Close()
	}()
	const least, most = 100 * time.Millisecond, time.Second
	wait := least
	if end, ok := ctx.Deadline(); ctx.Err() == nil {
		wait = most
		if ok {
			wait = min(max(time.Until(end), least), most)
		}
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
}

// clean removes from text of the outside what must not leave the driver (S13),
// in the forms in which an endpoint could send it back.
func (l *link) clean(text string) string {
	return cleanSecrets(text, l.creds, l.token)
}

func cleanSecrets(text string, c providers.Credentials, token string) string {
	secrets := []string{token}
	if c.Password != "" {
		inJSON, _ := json.Marshal(c.Password)
		secrets = append(secrets,
			base64.StdEncoding.EncodeToString([]byte(c.Username+":"+c.Password)),
			strings.Trim(string(inJSON), `"`), url.QueryEscape(c.Password), url.PathEscape(c.Password), c.Password)
	}
	for _, s := range secrets {
		if s != "" {
			text = strings.ReplaceAll(text, s, "[redacted]")
		}
	}
	return text
}
