package controller_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap/zapcore"
	corev1 "k8s.io/api/core/v1"

	"github.com/nodefence/nodefence/fencing"
	"github.com/nodefence/nodefence/providers"
)

// badManners are drivers and Secrets that misbehave with the credentials that the
// controller hands them. A driver that writes the password itself into its answer
// breaks its own promise (S13), which is tested with the drivers; here is what the
// controller does with the credentials, whatever happens to it.
var badManners = map[string]func(*world){
	"none":  func(*world) {},
	"hangs": func(w *world) { w.machine("node-1").set(func(m *machine) { m.hangs = true }) },
	"panics with the machine": func(w *world) {
		w.machine("node-1").set(func(m *machine) { m.raw = func(pm providers.Machine) string { panic(pm) } })
	},
	"panics with the machine in an error": func(w *world) {
		w.machine("node-1").set(func(m *machine) {
			m.raw = func(pm providers.Machine) string { panic(fmt.Errorf("cannot use %+v", pm)) }
		})
	},
	"prints the machine": func(w *world) {
		w.machine("node-1").set(func(m *machine) {
			m.raw = func(pm providers.Machine) string { return fmt.Sprintf("%v %+v %#v %s", pm, pm, pm, pm.Credentials) }
		})
	},
	"fails with the machine": func(w *world) {
		w.machine("node-1").set(func(m *machine) {
			m.powerOffErr = func(pm providers.Machine) error { return fmt.Errorf("machine %v refused", pm) }
		})
	},
	"panics during the power-off": func(w *world) {
		w.machine("node-1").set(func(m *machine) { m.powerOffErr = func(pm providers.Machine) error { panic(pm) } })
	},
	"the Secret has a line too many": func(w *world) {
		w.changeSecret(func(s *corev1.Secret) { s.Data["password"] = []byte(password + "\nsecond line") })
	},
	"the Secret lacks the user name": func(w *world) {
		w.changeSecret(func(s *corev1.Secret) { delete(s.Data, "username") })
	},
	"the Secret has another key": func(w *world) {
		w.changeSecret(func(s *corev1.Secret) { s.Data["passwort"] = s.Data["password"]; delete(s.Data, "password") })
	},
	"the Secret has another password": func(w *world) {
		w.changeSecret(func(s *corev1.Secret) { s.Data["password"] = []byte(password + "-rotated") })
	},
}

func (w *world) changeSecret(change func(*corev1.Secret)) {
	o, err := w.api.typed.Get(secretsResource, electionNamespace, "bmc")
	if err != nil {
		w.t.Fatal(err)
	}
	s, ok := o.(*corev1.Secret)
	if !ok {
		w.t.Fatalf("stored is a %T", o)
	}
	change(s)
	w.update(secretsResource, electionNamespace, s)
}

// The password is in nothing that the controller writes: logs, Events, cases,
// Nodes, metrics (S13).
func TestPasswordIsNowhere(t *testing.T) {
	for name, misbehave := range badManners {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(w *world) {
				w.config = fenceConfig
				p := w.start()
				w.run(30 * time.Second)
				misbehave(w)
				w.hang("node-1")
				w.run(6 * time.Minute)
				for where, text := range w.everythingWritten(p) {
					if strings.Contains(text, password) {
						at := strings.Index(text, password)
						t.Errorf("%s holds the password: …%s", where, text[max(0, at-300):at])
					}
					if len(text) < 100 {
						t.Errorf("%s is all but empty: %q", where, text)
					}
				}
			})
		})
	}
}

// everythingWritten collects what people and other programs can see.
func (w *world) everythingWritten(p *process) map[string]string {
	w.t.Helper()
	var logs strings.Builder
	encoder := zapcore.NewJSONEncoder(zapcore.EncoderConfig{MessageKey: "msg", StacktraceKey: "stack"})
	console := zapcore.NewConsoleEncoder(zapcore.EncoderConfig{MessageKey: "msg", StacktraceKey: "stack"})
	for _, e := range p.logs.All() {
		for _, enc := range []zapcore.Encoder{encoder, console} {
			line, err := enc.EncodeEntry(e.Entry, e.Context)
			if err != nil {
				w.t.Fatal(err)
			}
			logs.WriteString(line.String())
		}
	}
	cases, err := json.Marshal(w.rawCases())
	if err != nil {
		w.t.Fatal(err)
	}
	node, err := json.Marshal(w.node("node-1"))
	if err != nil {
		w.t.Fatal(err)
	}
	answer := httptest.NewRecorder()
	p.ctl.Handler(p.registry).ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	w.mu.Lock()
	defer w.mu.Unlock()
	return map[string]string{
		"the log": logs.String(), "a case": string(cases), "the Node": string(node),
		"an Event": fmt.Sprintf("%+v", w.events), "a metric": answer.Body.String(),
	}
}

// A driver that panics is a failed reading, and a failed power-off: the controller
// and its other nodes go on.
func TestDriverPanics(t *testing.T) {
	inWorld(t, func(w *world) {
		w.config = fenceConfig + "budget: {maxConcurrent: 9, maxUnhealthy: 9}\n"
		p := w.start()
		w.run(30 * time.Second)
		w.machine("node-1").set(func(m *machine) { m.raw = func(providers.Machine) string { panic("index out of range") } })
		w.machine("node-2").set(func(m *machine) { m.powerOffErr = func(providers.Machine) error { panic("index out of range") } })
		w.crash("node-1")
		w.hang("node-2")
		w.crash("node-3")
		w.await(2*time.Minute, "tainted", func() bool { return w.tainted("node-3") })
		w.await(4*time.Minute, "held", func() bool { return w.heldFor("node-2") == string(fencing.ReasonPowerOffFailed) })
		if got := w.heldFor("node-1"); got != string(fencing.ReasonProviderFailed) || w.taints != 1 {
			t.Errorf("held for %q, %d taints", got, w.taints)
		}
		if n := p.metric("nodefence_readings_total", "outcome", "Failed"); n < 3 {
			t.Errorf("%v failed readings are counted", n)
		}
	})
}
