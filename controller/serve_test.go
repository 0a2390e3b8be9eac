package controller_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/nodefence/nodefence/controller"
)

func (p *process) get(path string) (int, string) {
	answer := httptest.NewRecorder()
	p.ctl.Handler(p.registry).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
	return answer.Code, strings.TrimSpace(answer.Body.String())
}

func (p *process) expect(path string, code int, text string) {
	p.w.t.Helper()
	if gotCode, got := p.get(path); gotCode != code || !strings.Contains(got, text) {
		p.w.t.Errorf("%s of %s: %d %s", path, p.name, gotCode, got)
	}
}

// The process is healthy from the start, ready once it watches, and says whether
// it leads.
func TestHealthAndReadiness(t *testing.T) {
	inWorld(t, func(w *world) {
		blind := true
		w.intercept(func(c call) error {
			if blind && c.verb == "list" && c.resource == "pods" {
				return apierrors.NewInternalError(errors.New("etcd has no leader"))
			}
			return nil
		})
		first := w.start()
		w.run(20 * time.Second)
		first.expect("/healthz", http.StatusOK, "ok")
		first.expect("/readyz", http.StatusServiceUnavailable, "caches are not filled")
		w.intercept(nil)
		w.run(2 * time.Minute)
		first.expect("/readyz", http.StatusOK, "ok, leading")
		second := w.start()
		w.run(5 * time.Second)
		second.expect("/readyz", http.StatusOK, "ok, waiting for the lead")
		if err := first.stop(); err != nil {
			t.Error(err)
		}
		w.run(10 * time.Second)
		second.expect("/readyz", http.StatusOK, "ok, leading")
		if code, _ := second.get("/secrets"); code != http.StatusNotFound {
			t.Errorf("an unknown path gives %d", code)
		}
	})
}

// The names follow Prometheus' conventions, and a whole life leaves its numbers.
func TestMetrics(t *testing.T) {
	inWorld(t, func(w *world) {
		w.config = fenceConfig
		p := w.start()
		w.run(30 * time.Second)
		w.hang("node-1")
		w.await(30*time.Second, "suspected", func() bool { return w.state("node-1") == "Suspected" })
		if n := p.metric("nodefence_cases", "state", "Suspected"); n != 1 {
			t.Errorf("%v suspected cases are counted", n)
		}
		w.await(4*time.Minute, "tainted", func() bool { return w.state("node-1") == "Tainted" })
		if n, all := p.metric("nodefence_cases", "state", "Tainted"), p.metric("nodefence_cases"); n != 1 || all != 1 {
			t.Errorf("%v tainted cases of %v are counted", n, all)
		}
		w.run(10 * time.Second)
		w.boot("node-1")
		w.await(2*time.Minute, "closed", func() bool { return w.state("node-1") == "Closed" })
		if n := p.metric("nodefence_cases"); n != 0 {
			t.Errorf("%v open cases are counted after the close", n)
		}
		for _, m := range [][]string{
			{"nodefence_decisions_total", "reason", "CaseOpened"}, {"nodefence_decisions_total", "reason", "NodeRecovered"},
			{"nodefence_power_offs_total", "provider", "bmcs", "outcome", "Accepted"},
			{"nodefence_actions_total", "action", "Taint"}, {"nodefence_actions_total", "action", "Untaint"}, {"nodefence_actions_total", "action", "PowerOff"},
		} {
			if n := p.metric(m[0], m[1:]...); n != 1 {
				t.Errorf("%v is %v", m, n)
			}
		}
		for _, m := range [][]string{
			{"nodefence_readings_total", "provider", "bmcs", "outcome", "Off"}, {"nodefence_reading_duration_seconds", "provider", "bmcs", "outcome", "On"},
			{"nodefence_case_store_duration_seconds"}, {"workqueue_adds_total", "name", "nodes"},
		} {
			if n := p.metric(m[0], m[1:]...); n < 3 {
				t.Errorf("%v is %v", m, n)
			}
		}
		p.lint()
	})
}

func (p *process) lint() {
	p.w.t.Helper()
	problems, err := testutil.GatherAndLint(p.registry)
	if err != nil {
		p.w.t.Fatal(err)
	}
	for _, problem := range problems {
		p.w.t.Errorf("%s: %s", problem.Metric, problem.Text)
	}
}

// A controller that stops has ended all that it began, at once and in whatever it
// was; the lead is free.
func TestStop(t *testing.T) {
	for name, prepare := range map[string]func(*world){
		"idle":        func(w *world) { w.run(30 * time.Second) },
		"not started": func(*world) {},
		"asking a BMC that hangs": func(w *world) {
			w.machine("node-1").set(func(m *machine) { m.hangs = true })
			w.run(30 * time.Second)
			w.crash("node-1")
			w.await(time.Minute, "asking", func() bool { return w.asking == 1 })
		},
		"with a taint": func(w *world) {
			w.run(30 * time.Second)
			w.crash("node-1")
			w.await(2*time.Minute, "tainted", func() bool { return w.tainted("node-1") })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(w *world) {
				p := w.start()
				prepare(w)
				begin := time.Now()
				if err := p.stop(); err != nil && name != "not started" {
					t.Errorf("stopped: %v", err)
				}
				if took := time.Since(begin); took > time.Second {
					t.Errorf("it took %s", took)
				}
				if h := w.holder(); h != "" {
					t.Errorf("%q holds the lead", h)
				}
				// What is left in the bubble would have to be the test itself.
				synctest.Wait()
				if left := goroutines("nodefence/controller.", "client-go"); left != "" {
					t.Errorf("left behind:\n%s", left)
				}
			})
		})
	}
}

// Without the custom resource nothing begins, and the error says what to do.
func TestNoCustomResource(t *testing.T) {
	inWorld(t, func(w *world) {
		w.intercept(func(c call) error {
			if c.resource == "fencingcases" {
				return apierrors.NewGenericServerResponse(http.StatusNotFound, "get", schema.GroupResource{}, "", "", 0, false)
			}
			return nil
		})
		p := w.start()
		w.await(5*time.Second, "ended", p.ended)
		if p.err == nil || !strings.Contains(p.err.Error(), "config/crd") {
			t.Errorf("ended with %v", p.err)
		}
	})
}

// HTTP is served until the context ends, on a real port.
func TestServe(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() {
		served <- controller.Serve(ctx, l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "here") }))
	}()
	res, err := http.Get("http://" + l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(res.Body)
	if err := errors.Join(err, res.Body.Close()); err != nil || string(body) != "here" {
		t.Errorf("%q, %v", body, err)
	}
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
	if err := controller.Serve(t.Context(), l, http.NotFoundHandler()); err == nil {
		t.Error("a closed listener is served without an error")
	}
}
