package redfishbmc

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"sort"
	"strconv"
	"strings"
)

// Role is what an account may do.
type Role string

// The roles that the Redfish specification defines.
const (
	Administrator Role = "Administrator"
	Operator      Role = "Operator"
	ReadOnly      Role = "ReadOnly"
)

// Account is a login of the service.
type Account struct {
	Name     string
	Password string
	Role     Role
}

// DefaultAccounts are the accounts of a service whose Config names none.
func DefaultAccounts() []Account {
	return []Account{
		{"admin", "adminpass", Administrator},
		{"operator", "operatorpass", Operator},
		{"reader", "readerpass", ReadOnly},
	}
}

type session struct {
	id      string
	account Account
}

// OpenSessions is the number of sessions that nobody has closed.
func (b *BMC) OpenSessions() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.sessions)
}

// SessionsOpened counts all sessions that were ever opened.
func (b *BMC) SessionsOpened() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.opened
}

// ForgetSessions ends all sessions without a word, as a controller does that
// restarts or runs short of memory.
func (b *BMC) ForgetSessions() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sessions = map[string]*session{}
}

func (b *BMC) check(name, password string) (Account, bool) {
	for _, a := range b.cfg.Accounts {
		if a.Name == name && a.Password == password {
			return a, true
		}
	}
	return Account{}, false
}

// authenticate finds out who asks; false when the call has been refused.
func (c *call) authenticate() bool {
	if c.public() {
		return true
	}
	if token := c.r.Header.Get("X-Auth-Token"); token != "" {
		c.b.mu.Lock()
		s := c.b.sessions[token]
		c.b.mu.Unlock()
		if s != nil {
			c.account, c.session = s.account, s.id
			c.b.note(c)
			return true
		}
	} else if name, password, ok := c.r.BasicAuth(); ok {
		if a, ok := c.b.check(name, password); ok {
			c.account = a
			c.b.note(c)
			return true
		}
	}
	c.unauthorized()
	return false
}

// public: the service root and the login need no authentication (DSP0266).
func (c *call) public() bool {
	switch c.path {
	case "/redfish", rootPath, rootPath + "/odata", rootPath + "/$metadata":
		return true
	case sessionsPath:
		return c.r.Method == http.MethodPost
	}
	return false
}

func (c *call) unauthorized() {
	c.w.Header().Set("WWW-Authenticate", `Basic realm="RedfishService"`)
	c.fail(http.StatusUnauthorized, "Base.1.8.NoValidSession", "There is no valid session established with the implementation.")
}

// sessionService serves everything under SessionService.
func (c *call) sessionService() {
	rest := strings.TrimPrefix(c.path, sessionsPath)
	switch {
	case c.path == sessionService && c.isGet():
		c.send(http.StatusOK, map[string]any{
			"@odata.id": sessionService, "@odata.type": "#SessionService.v1_1_8.SessionService",
			"Id": "SessionService", "Name": "Session Service", "ServiceEnabled": true, "SessionTimeout": 1800,
			"Sessions": ref(sessionsPath),
		})
	case c.path == sessionsPath && c.r.Method == http.MethodPost:
		c.login()
	case c.path == sessionsPath && c.isGet():
		c.b.mu.Lock()
		var ids []string
		for _, s := range c.b.sessions {
			ids = append(ids, s.id)
		}
		c.b.mu.Unlock()
		sort.Strings(ids)
		c.sendCollection(sessionsPath, "#SessionCollection.SessionCollection", "Session Collection", ids)
	case strings.HasPrefix(rest, "/") && rest != c.path:
		c.oneSession(rest[1:])
	default:
		c.notFound()
	}
}

func (c *call) login() {
	var body struct{ UserName, Password string }
	if err := json.NewDecoder(io.LimitReader(c.r.Body, 1<<16)).Decode(&body); err != nil {
		c.fail(http.StatusBadRequest, "Base.1.8.MalformedJSON", "The request body is malformed JSON.")
		return
	}
	a, ok := c.b.check(body.UserName, body.Password)
	if !ok {
		c.unauthorized()
		return
	}
	b := c.b
	b.mu.Lock()
	if len(b.sessions) >= b.cfg.MaxSessions {
		b.mu.Unlock()
		c.sessionLimit()
		return
	}
	b.opened++
	s := &session{id: strconv.Itoa(b.opened), account: a}
	token := make([]byte, 16)
	_, _ = rand.Read(token)
	b.sessions[hex.EncodeToString(token)] = s
	b.mu.Unlock()
	c.account, c.session = a, s.id
	b.note(c)
	c.w.Header().Set("X-Auth-Token", hex.EncodeToString(token))
	c.w.Header().Set("Location", sessionsPath+"/"+s.id)
	c.send(http.StatusCreated, sessionDoc(s))
}

func sessionDoc(s *session) map[string]any {
	return map[string]any{
		"@odata.id": sessionsPath + "/" + s.id, "@odata.type": "#Session.v1_3_0.Session",
		"Id": s.id, "Name": "User Session", "UserName": s.account.Name,
	}
}

// sessionLimit is what iDRACs answer when too many sessions are open.
func (c *call) sessionLimit() {
	c.fail(http.StatusServiceUnavailable, "IDRAC.2.8.RAC0218", "The maximum number of user sessions is reached.")
}

func (c *call) oneSession(id string) {
	b := c.b
	b.mu.Lock()
	token, s := "", (*session)(nil)
	for t, candidate := range b.sessions {
		if candidate.id == id {
			token, s = t, candidate
		}
	}
	mine := s != nil && (s.id == c.session || c.account.Role == Administrator || s.account.Name == c.account.Name)
	if mine && c.r.Method == http.MethodDelete {
		delete(b.sessions, token)
	}
	b.mu.Unlock()
	switch {
	case s == nil:
		c.notFound()
	case !mine:
		c.forbidden()
	case c.r.Method == http.MethodDelete:
		c.sendNothing()
	case c.isGet():
		c.send(http.StatusOK, sessionDoc(s))
	default:
		c.methodNotAllowed()
	}
}
