package redfish

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/nodefence/nodefence/fencing"
	"github.com/nodefence/nodefence/providers"
)

// notReady are the messages that mean: come again. The last part of a MessageId
// counts, exactly; what is before it is the registry and its version.
var notReady = []string{
	"ResourceNotReadyRetry",             // HPE iLO
	"SWC0700",                           // iDRAC: not ready
	"RAC0218",                           // iDRAC: too many sessions
	"ServiceTemporarilyUnavailable",     // Base registry, as are the next
	"ServiceInUnknownState",             //
	"ServiceShuttingDown",               //
	"SessionLimitExceeded",              //
	"EventSubscriptionLimitExceeded",    // of services that say it of sessions
	"CouldNotEstablishConnection",       //
	"UnableToModifyDuringSystemPOST",    // HPE iLO
	"ResourceTemporarilyUnavailable",    //
	"ServerTemporarilyUnavailableRetry", //
}

// refusedLogIn are the messages that mean a wrong name or password, whatever the
// status (HPE iLO answers 400).
var refusedLogIn = []string{"UnauthorizedLoginAttempt", "NoValidSession", "LoginFailed"}

// message is one message of an error answer (DSP0266 section 8.6).
type message struct{ id, text string }

// short is the last part of the MessageId.
func (m message) short() string { return m.id[strings.LastIndexByte(m.id, '.')+1:] }

// parseMessages finds the messages of an error answer, wherever vendors put
// them. None is no error: the status then says it all.
func parseMessages(body []byte) []message {
	doc, err := object(body)
	if err != nil {
		return nil
	}
	const extended = "@Message.ExtendedInfo"
	var out []message
	for _, raw := range []json.RawMessage{member(doc["error"], extended), doc[extended]} {
		infos := list(raw)
		if infos == nil && raw != nil {
			infos = []json.RawMessage{raw} // one object, where a list is due
		}
		for _, info := range infos {
			if m := (message{word(member(info, "MessageId")), word(member(info, "Message"))}); m != (message{}) {
				out = append(out, m)
			}
		}
	}
	if e := doc["error"]; len(out) == 0 && e != nil {
		if m := (message{word(member(e, "code")), word(member(e, "message"))}); m != (message{}) {
			out = append(out, m)
		}
	}
	return out
}

func anyOf(messages []message, known []string) bool {
	return slices.ContainsFunc(messages, func(m message) bool { return slices.Contains(known, m.short()) })
}

// parseFault classifies an answer whose status is not the one that was hoped
// for. what is the request, in words.
func parseFault(what string, a providers.Answer, now time.Time) *problem {
	messages := parseMessages(a.Body)
	said := fmt.Sprintf("%s: HTTP %d", what, a.Status)
	if len(messages) > 0 {
		said += fmt.Sprintf(" (%s: %s)", clip(messages[0].id, 60), clip(messages[0].text, 120))
	}
	p := problemf(fencing.Failed, "%s; look at the endpoint's log", said)
	switch status := a.Status; {
	case status == http.StatusUnauthorized, anyOf(messages, refusedLogIn):
		p = problemf(fencing.Unauthorized, "%s; check name and password. There is one attempt per call, because controllers lock accounts", said)
	case anyOf(messages, notReady), status == http.StatusServiceUnavailable, status == http.StatusTooManyRequests:
		p = problemf(fencing.Busy, "%s; it asks to come again later", said)
	case status == http.StatusForbidden:
		p = problemf(fencing.Forbidden, "%s; the account lacks the privilege, or is locked", said)
	case status == http.StatusNotFound, status == http.StatusGone:
		p = problemf(fencing.NotFound, "%s; check the address and `system`, or the endpoint is still building its inventory", said)
	case status >= 200 && status < 300:
		p = problemf(fencing.Malformed, "%s, where another status is due", said)
	}
	p.retryAfter = 0
	if p.kind == fencing.Busy {
		p.retryAfter = providers.RetryAfter(a.Header, now)
	}
	return p
}

// redirectTarget is where an answer redirects to: a path on the same endpoint,
// or else the host in words.
func redirectTarget(e endpoint, a providers.Answer) (path, host string, ok bool) {
	if a.Status < 300 || a.Status >= 400 {
		return "", "", false
	}
	base, err := url.Parse(e.base)
	if err != nil {
		return "", "somewhere", true
	}
	to, err := base.Parse(a.Header.Get("Location"))
	switch {
	case err != nil || a.Header.Get("Location") == "":
		return "", "nowhere that can be read", true
	case to.Scheme != base.Scheme || to.Host != base.Host || to.User != nil || to.RawQuery != "":
		return "", clip(providers.CleanRaw(to.Scheme+"://"+to.Host), 100), true
	}
	if p, ok := localPath(to.Path); ok {
		return p, e.host, true
	}
	return "", e.host + ", outside of Redfish", true
}
