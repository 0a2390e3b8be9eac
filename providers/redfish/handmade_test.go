package redfish_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nodefence/nodefence/fencing"
	"github.com/nodefence/nodefence/providers"
	"github.com/nodefence/nodefence/providers/redfish"
)

// handmade is a service of a few documents, for what the lab's cannot play: other
// things for each member, and wishes about ETags.
type handmade struct {
	*bench
	mu      sync.Mutex
	pages   map[string]string // by path; missing: 404
	action  func(*http.Request) int
	actions []string // path, ETag and body of each POST
}

func document(path, uuid, power string) string {
	return fmt.Sprintf(`{"@odata.id":%q,"@odata.type":"#ComputerSystem.v1_20_0.ComputerSystem","UUID":%q,"PowerState":%q,
		"Actions":{"#ComputerSystem.Reset":{"target":"%s/Actions/ComputerSystem.Reset"}}}`, path, uuid, power, path)
}

func newHandmade(t *testing.T) *handmade {
	t.Helper()
	h := &handmade{pages: map[string]string{
		"/redfish/v1/":          `{"@odata.id":"/redfish/v1/","@odata.type":"#ServiceRoot.v1_11_0.ServiceRoot","Systems":{"@odata.id":"/redfish/v1/Systems"}}`,
		"/redfish/v1/Systems":   `{"Members":[{"@odata.id":"/redfish/v1/Systems/1"}]}`,
		"/redfish/v1/Systems/1": document("/redfish/v1/Systems/1", uuid, "On"),
	}, action: func(*http.Request) int { return http.StatusNoContent }}
	srv := httptest.NewTLSServer(http.HandlerFunc(h.serve))
	t.Cleanup(srv.Close)
	d, err := redfish.New(providers.Settings{Name: "x", TLS: providers.TLS{Insecure: true}, Options: []byte(`{"basicAuth":true}`), Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	h.bench = &bench{t: t, driver: d, timeout: 3 * time.Second, m: providers.Machine{
		Node: "node-1", Address: srv.URL, Expected: fencing.Expectation{Identity: fencing.Identity{UUID: uuid}},
		Credentials: providers.Credentials{Username: "fencer", Password: password},
	}}
	return h
}

func (h *handmade) serve(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r.Method == http.MethodPost {
		body, _ := io.ReadAll(r.Body)
		h.actions = append(h.actions, r.URL.Path+" "+r.Header.Get("If-Match")+" "+string(body))
		w.WriteHeader(h.action(r))
		return
	}
	page, ok := h.pages[r.URL.Path]
	if !ok {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	w.Header().Set("ETag", `"e1"`)
	_, _ = io.WriteString(w, page)
}

// Of two systems one is ours, and the other cannot be read now: it may be ours
// too, so nothing is concluded.
func TestASystemThatCannotBeRead(t *testing.T) {
	h := newHandmade(t)
	h.pages["/redfish/v1/Systems"] = `{"Members":[{"@odata.id":"/redfish/v1/Systems/1"},{"@odata.id":"/redfish/v1/Systems/2"}]}`
	for name, second := range map[string]string{"missing": "", "web page": "<html>", "null": "null", "without identity": document("/redfish/v1/Systems/2", "", "Off")} {
		h.pages["/redfish/v1/Systems/2"] = second
		if second == "" {
			delete(h.pages, "/redfish/v1/Systems/2")
		}
		r := h.read()
		if name == "without identity" { // known not to be proved ours
			wantPower(t, r, fencing.On)
			continue
		}
		if wantPower(t, r, fencing.Unknown); r.Failure.Kind != fencing.Ambiguous || !strings.Contains(r.Failure.Message, "could not be read") {
			t.Errorf("%s: %v: %s", name, r.Failure.Kind, r.Failure.Message)
		}
		if err := h.powerOff(); kindOf(err) != fencing.Ambiguous || len(h.actions) != 0 {
			t.Errorf("%s: %v, %q", name, err, h.actions)
		}
	}
	// A member that is something else altogether is no rival.
	h.pages["/redfish/v1/Systems/2"] = `{"@odata.id":"/redfish/v1/Systems/2","@odata.type":"#Chassis.v1_0_0.Chassis","PowerState":"Off"}`
	wantPower(t, h.read(), fencing.On)
}

// Some services want the document's ETag, which was not sent at first because
// others cannot bear it.
func TestETagIsSentWhenAskedFor(t *testing.T) {
	for _, status := range []int{http.StatusPreconditionFailed, http.StatusPreconditionRequired} {
		h := newHandmade(t)
		h.action = func(r *http.Request) int {
			if r.Header.Get("If-Match") == "" {
				return status
			}
			return http.StatusAccepted
		}
		if err := h.powerOff(); err != nil {
			t.Error(err)
		}
		const path, body = "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset", `{"ResetType":"ForceOff"}`
		if got, want := fmt.Sprint(h.actions), fmt.Sprintf(`[%s  %s %s "e1" %s]`, path, body, path, body); got != want {
			t.Errorf("%d: %s", status, got)
		}
	}
}

// A target outside of the system's own resource would switch off another machine.
func TestTargetOfAnotherSystem(t *testing.T) {
	for _, target := range []string{
		"/redfish/v1/Systems/2/Actions/ComputerSystem.Reset", "/redfish/v1/Systems/1/../2/Actions/ComputerSystem.Reset",
		"https://other.invalid/redfish/v1/Systems/1/Actions/ComputerSystem.Reset", "/redfish/v1/Systems/10/Actions/ComputerSystem.Reset", "",
	} {
		h := newHandmade(t)
		h.pages["/redfish/v1/Systems/1"] = strings.Replace(h.pages["/redfish/v1/Systems/1"], "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset", target, 1)
		if err := h.powerOff(); err == nil || len(h.actions) != 0 {
			t.Errorf("%q: %v, %q", target, err, h.actions)
		}
	}
}

// A refusal is never repeated, and is an error as long as the machine is on.
func TestRefusalsAreNotRepeated(t *testing.T) {
	for status, kind := range map[int]fencing.FailureKind{400: fencing.Failed, 401: fencing.Unauthorized, 403: fencing.Forbidden, 404: fencing.NotFound, 409: fencing.Failed, 500: fencing.Failed, 503: fencing.Busy} {
		h := newHandmade(t)
		h.action = func(*http.Request) int { return status }
		if err := h.powerOff(); kindOf(err) != kind || len(h.actions) != 1 {
			t.Errorf("%d: %v, sent %d times", status, err, len(h.actions))
		}
	}
}
