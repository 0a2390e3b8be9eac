package redfishbmc

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The paths of the service.
const (
	rootPath       = "/redfish/v1"
	systemsPath    = rootPath + "/Systems"
	chassisPath    = rootPath + "/Chassis"
	managersPath   = rootPath + "/Managers"
	sessionService = rootPath + "/SessionService"
	sessionsPath   = sessionService + "/Sessions"
	resetSuffix    = "/Actions/ComputerSystem.Reset"
)

// Request is one line of the service's log.
type Request struct {
	At        time.Time
	Method    string
	Path      string
	Session   string // the session's ID; empty for basic authentication
	User      string
	ResetType string // of a Reset action
	IfMatch   string // the header
	Status    int    // 0: no answer (yet), or cut
}

// Requests is the log of all requests, oldest first.
func (b *BMC) Requests() []Request {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := make([]Request, len(b.requests))
	for i, r := range b.requests {
		out[i] = *r
	}
	return out
}

// Panics are the handlers that panicked. There should be none; Close says so
// too.
func (b *BMC) Panics() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.panics)
}

// call is one request under way.
type call struct {
	b       *BMC
	w       http.ResponseWriter
	r       *http.Request
	path    string
	area    Area
	sys     *system // of a system's or action's path
	account Account
	session string
	log     *Request
}

// note brings the log up to date.
func (b *BMC) note(c *call) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c.log.Session, c.log.User = c.session, c.account.Name
}

// serve answers one request. Nothing that a quirk does may take the test's
// process with it.
func (b *BMC) serve(w http.ResponseWriter, r *http.Request) {
	c := &call{b: b, w: w, r: r, path: strings.TrimSuffix(r.URL.Path, "/")}
	c.area, c.sys = b.locate(c.path)
	c.log = &Request{At: time.Now(), Method: r.Method, Path: r.URL.Path, IfMatch: r.Header.Get("If-Match")}
	b.mu.Lock()
	b.requests = append(b.requests, c.log)
	down := time.Now().Before(b.downUntil)
	b.mu.Unlock()
	defer func() {
		if p := recover(); p != nil {
			b.mu.Lock()
			b.panics = append(b.panics, fmt.Sprintf("%s %s: %v", r.Method, r.URL.Path, p))
			b.mu.Unlock()
			c.cut()
		}
	}()
	if down || b.cfg.DiesWithMains && !b.systems[0].machine().State().Mains {
		c.cut()
		return
	}
	w.Header().Set("OData-Version", "4.0")
	w.Header().Set("Cache-Control", "no-cache")
	for _, q := range b.active(c.area) {
		if q.answer != nil && q.answer(c) {
			return
		}
	}
	if c.authenticate() {
		c.route()
	}
}

// locate tells what part of the service a path belongs to.
func (b *BMC) locate(path string) (Area, *system) {
	under := func(p string) bool { return path == p || strings.HasPrefix(path, p+"/") }
	switch {
	case path == rootPath || path == "/redfish":
		return AreaRoot, nil
	case under(sessionService):
		return AreaSessions, nil
	case path == systemsPath:
		return AreaCollection, nil
	case under(systemsPath):
		id, rest, _ := strings.Cut(path[len(systemsPath)+1:], "/")
		area := AreaSystem
		if rest != "" {
			area = AreaAction
		}
		for _, s := range b.systems {
			if s.ID == id {
				return area, s
			}
		}
		return area, nil
	case under(chassisPath):
		return AreaChassis, nil
	case under(managersPath):
		return AreaManager, nil
	}
	return AreaOther, nil
}

func (c *call) isGet() bool { return c.r.Method == http.MethodGet || c.r.Method == http.MethodHead }

// send writes a document, as the quirks leave it.
func (c *call) send(status int, doc any) {
	quirks := c.b.active(c.area)
	for _, q := range quirks {
		if q.edit != nil && status < 300 {
			doc = q.edit(c, doc)
		}
	}
	body, err := json.Marshal(doc)
	if err != nil {
		panic(err) // documents are made of what JSON can say
	}
	c.w.Header().Set("Content-Type", "application/json;odata.metadata=minimal;charset=utf-8")
	for _, q := range quirks {
		if q.body != nil {
			body = q.body(c, body)
		}
	}
	c.write(status, body)
}

func (c *call) write(status int, body []byte) {
	c.status(status)
	c.w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	c.w.WriteHeader(status)
	if c.r.Method != http.MethodHead {
		_, _ = c.w.Write(body) // a client that has gone is its own affair
	}
}

func (c *call) status(status int) {
	c.b.mu.Lock()
	c.log.Status = status
	c.b.mu.Unlock()
}

func (c *call) sendNothing() {
	c.status(http.StatusNoContent)
	c.w.WriteHeader(http.StatusNoContent)
}

// cut closes the connection without another word.
func (c *call) cut() {
	if conn, _, err := http.NewResponseController(c.w).Hijack(); err == nil {
		_ = conn.Close()
	}
}

// fail answers with an error in Redfish's form.
func (c *call) fail(status int, id, message string) {
	c.send(status, map[string]any{"error": map[string]any{
		"code": "Base.1.8.GeneralError", "message": "A general error has occurred. See ExtendedInfo for more information.",
		"@Message.ExtendedInfo": []any{map[string]any{
			"@odata.type": "#Message.v1_1_2.Message", "MessageId": id, "Message": message,
			"MessageArgs": []any{}, "Severity": "Critical", "Resolution": "",
		}},
	}})
}

func (c *call) notFound() {
	c.fail(http.StatusNotFound, "Base.1.8.ResourceMissingAtURI", "The resource at the URI "+c.path+" was not found.")
}

func (c *call) forbidden() {
	c.fail(http.StatusForbidden, "Base.1.8.InsufficientPrivilege", "There are insufficient privileges for the account or credentials associated with the current session to perform the requested operation.")
}

func (c *call) methodNotAllowed() {
	c.w.Header().Set("Allow", "GET, HEAD")
	c.fail(http.StatusMethodNotAllowed, "Base.1.8.OperationNotAllowed", "The HTTP method is not allowed on this resource.")
}
