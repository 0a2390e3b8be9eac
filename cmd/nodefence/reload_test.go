package main

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"k8s.io/client-go/tools/record"

	"github.com/nodefence/nodefence/config"
	"github.com/nodefence/nodefence/controller"
	"github.com/nodefence/nodefence/providers/all"
)

// TestReload: a good change is put in force and the nodes are looked at anew; a bad
// one is told, and changes nothing.
func TestReload(t *testing.T) {
	first := strings.Replace(checkedConfig, "SECRET", "first", 1)
	path := file(t, "nodefence.yaml", first)
	cfg, err := config.Load(path, all.Registry())
	if err != nil {
		t.Fatal(err)
	}
	m, err := controller.NewMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	events := record.NewFakeRecorder(10)
	r := reloader{path: path, store: config.NewStore(cfg), m: m, log: zap.NewNop(), events: events, namespace: "nodefence",
		watcher: config.Watcher{Path: path, Registry: all.Registry(), Current: cfg, Quiet: time.Millisecond, Every: time.Millisecond}}
	requeued := make(chan struct{}, 10)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); r.run(ctx, func() { requeued <- struct{}{} }) }()

	next := func(want string) string {
		t.Helper()
		select {
		case e := <-events.Events:
			if !strings.HasPrefix(e, want) || !utf8.ValidString(e) || len(e) > 1100 || strings.Contains(e, canary) {
				t.Errorf("event %q, want %q", e, want)
			}
			return e
		case <-time.After(10 * time.Second):
			t.Fatalf("no event %s", want)
			return ""
		}
	}
	replace(t, path, first+"  mode: sometimes\n  password: "+canary+"\n")
	if e := next("Warning ConfigurationRefused"); !strings.Contains(e, `groups[2].mode: "sometimes" is no mode`) {
		t.Errorf("the event does not say what is wrong: %s", e)
	}
	if r.store.Load() != cfg {
		t.Error("a bad configuration was taken")
	}
	replace(t, path, strings.Replace(checkedConfig, "SECRET", "second", 1))
	next("Normal ConfigurationChanged")
	select {
	case <-requeued:
	case <-time.After(10 * time.Second):
		t.Error("the nodes are not looked at anew")
	}
	if got := r.store.Load().Provider("bmcs").From.Secret.Name; got != "second" {
		t.Errorf("in force is %q", got)
	}
	cancel()
	<-done
	if len(requeued) != 0 {
		t.Error("looked at anew for a change that was refused")
	}
}

// TestEventText: an Event's message has at most 1024 bytes, and is cut between two
// letters.
func TestEventText(t *testing.T) {
	for pad := range 4 {
		long := strings.Repeat("x", pad) + strings.Repeat("é", 1000)
		if got := eventText(long); !utf8.ValidString(got) || len(got) > 1024 || !strings.HasPrefix(long, got) || len(got) < 900 {
			t.Errorf("%d bytes, cut badly: %q", len(got), got)
		}
	}
	if got := eventText("short"); got != "short" {
		t.Errorf("got %q", got)
	}
}

// replace puts a file in place as a whole.
func replace(t *testing.T, path, text string) {
	t.Helper()
	if err := os.Rename(file(t, "next", text), path); err != nil {
		t.Fatal(err)
	}
}

// TestOptionsShowNoSecret puts a password into every option of every driver.
func TestOptionsShowNoSecret(t *testing.T) {
	options := map[string][]string{
		"redfish": {"system", "basicAuth", "ignoreChassis", "maxBodyBytes", "password"},
		"ipmi":    {"port", "cipherSuites", "privilege", "powerOffPrivilege", "ignoreACPIPowerState", "password"},
		"bmc":     {"drivers", "port", "inventory", "basicAuth", "disableEtagMatch", "password"},
	}
	for driver := range all.Registry() {
		if options[driver] == nil {
			t.Errorf("teach this test the options of the driver %s", driver)
		}
		for _, option := range options[driver] {
			for _, entry := range []string{option + ": " + canary, option + ": [" + canary + "]", option + ": {" + canary + ": 1}", canary + ": 1", option + ": /redfish/v1/Systems/" + canary + "?"} {
				text := strings.Replace(checkedConfig, "driver: redfish", "driver: "+driver+"\n  options: {"+entry+"}", 1)
				_, err := config.Parse([]byte(strings.Replace(text, "SECRET", "s", 1)), all.Registry())
				if err == nil {
					t.Errorf("%s takes the option %s", driver, entry)
				} else if strings.Contains(err.Error(), canary) {
					t.Errorf("%s: %s shows in\n%v", driver, entry, err)
				}
			}
		}
	}
}
