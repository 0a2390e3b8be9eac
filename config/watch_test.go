package config

import (
	"context"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// never is a time that no test lasts: what is said to come by notification must
// not come by the clock, and the other way round.
const never = time.Hour

// said is one call of a Watcher's functions.
type said struct {
	config *Configuration
	err    error
}

// watched is a Watcher at work.
type watched struct {
	t      *testing.T
	calls  chan said
	cancel context.CancelFunc
	done   chan struct{}
}

// watch runs a Watcher until the test ends, and then makes sure that it has left
// nothing behind.
func watch(t *testing.T, w Watcher) *watched {
	t.Helper()
	before := goleak.IgnoreCurrent()
	ctx, cancel := context.WithCancel(t.Context())
	w.Registry = stubRegistry()
	o := &watched{t: t, calls: make(chan said, 100), cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(o.done)
		w.Run(ctx, func(c *Configuration) { o.calls <- said{config: c} }, func(err error) { o.calls <- said{err: err} })
	}()
	t.Cleanup(func() {
		o.stop()
		goleak.VerifyNone(t, before)
		select {
		case s := <-o.calls:
			t.Errorf("one call too many: %+v", s)
		default:
		}
	})
	return o
}

func (o *watched) stop() {
	o.cancel()
	select {
	case <-o.done:
	case <-time.After(10 * time.Second):
		o.t.Fatal("Run goes on after its context has ended")
	}
}

func (o *watched) next() said {
	o.t.Helper()
	select {
	case s := <-o.calls:
		return s
	case <-time.After(10 * time.Second):
		o.t.Fatal("nothing was said")
		return said{}
	}
}

// change expects a new configuration whose budget tells it from others.
func (o *watched) change(concurrent int) *Configuration {
	o.t.Helper()
	s := o.next()
	if s.err != nil || s.config.Budget.MaxConcurrent != concurrent {
		o.t.Fatalf("got %+v, want the configuration with %d", s, concurrent)
	}
	return s.config
}

func (o *watched) refusal(parts ...string) {
	o.t.Helper()
	s := o.next()
	for _, part := range parts {
		if s.err == nil || !strings.Contains(s.err.Error(), part) {
			o.t.Fatalf("got %+v, want an error with %q", s, part)
		}
	}
}

// numbered is a good configuration that differs from others by a number.
func numbered(n int) string { return fmt.Sprintf("%sbudget: {maxConcurrent: %d}\n", good, n) }

// replace puts a file in place as a whole, so that a Watcher sees the old or the
// new one, and nothing between.
func replace(t *testing.T, name, text string) {
	t.Helper()
	next := filepath.Join(t.TempDir(), "next")
	write(t, next, text)
	if err := os.Rename(next, name); err != nil {
		t.Fatal(err)
	}
}

func TestWatchTakesChangesAndRefusesBadOnes(t *testing.T) {
	name := filepath.Join(t.TempDir(), "nodefence.yaml")
	write(t, name, numbered(1))
	first := mustParse(t, numbered(1))
	o := watch(t, Watcher{Path: name, Current: first, Quiet: time.Millisecond, Every: never})
	// What is in force already is no change: the first call is about the next.
	replace(t, name, numbered(2))
	if c := o.change(2); c.Digest() == first.Digest() {
		t.Error("the digest does not tell two configurations apart")
	}
	replace(t, name, numbered(0))
	o.refusal(name, "the configuration in force stays", "line 13: budget.maxConcurrent: is 0")
	// Another mistake is told anew.
	replace(t, name, "kind: Configuration\n")
	o.refusal("apiVersion: is missing")
	// Back to what is in force: nothing is new, and nothing is wrong any more.
	replace(t, name, numbered(2))
	replace(t, name, numbered(3))
	o.change(3)
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	o.refusal("cannot be read", "the one in force stays", "no such file")
	replace(t, name, numbered(4))
	o.change(4)
}

// TestWatchTellsOfAMistakeOnce: a file that stays wrong is no news each minute,
// but the same mistake made again is.
func TestWatchTellsOfAMistakeOnce(t *testing.T) {
	name := filepath.Join(t.TempDir(), "nodefence.yaml")
	write(t, name, numbered(0))
	f := follower{Watcher: &Watcher{Path: name, Registry: stubRegistry()}}
	changes, errors := 0, 0
	f.onChange = func(*Configuration) { changes++ }
	f.onError = func(error) { errors++ }
	expect := func(wantChanges, wantErrors int) {
		t.Helper()
		f.look()
		f.look()
		if changes != wantChanges || errors != wantErrors {
			t.Fatalf("%d changes and %d errors, want %d and %d", changes, errors, wantChanges, wantErrors)
		}
	}
	expect(0, 1)
	write(t, name, numbered(1))
	expect(1, 1)
	write(t, name, numbered(0))
	expect(1, 2)
	write(t, name, numbered(1)) // back to what is in force
	expect(1, 2)
	write(t, name, numbered(0))
	expect(1, 3)
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	expect(1, 4)
}

// TestWatchFollowsAConfigMap changes a file as the kubelet does: the file is a
// link through ..data, which is replaced by another link.
func TestWatchFollowsAConfigMap(t *testing.T) {
	mount := t.TempDir()
	publish := func(version, text string) {
		t.Helper()
		if err := os.Mkdir(filepath.Join(mount, version), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(mount, version, "nodefence.yaml"), text)
		old, _ := os.Readlink(filepath.Join(mount, "..data"))
		if err := os.Symlink(version, filepath.Join(mount, "..data_tmp")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(mount, "..data_tmp"), filepath.Join(mount, "..data")); err != nil {
			t.Fatal(err)
		}
		if old != "" {
			if err := os.RemoveAll(filepath.Join(mount, old)); err != nil {
				t.Fatal(err)
			}
		}
	}
	publish("..2026_1", numbered(1))
	name := filepath.Join(mount, "nodefence.yaml")
	if err := os.Symlink("..data/nodefence.yaml", name); err != nil {
		t.Fatal(err)
	}
	o := watch(t, Watcher{Path: name, Quiet: time.Millisecond, Every: never})
	o.change(1)
	publish("..2026_2", numbered(2))
	o.change(2)
	publish("..2026_3", "")
	o.refusal("the file is empty")
	publish("..2026_4", numbered(4))
	o.change(4)
}

// TestWatchFollowsALinkOutOfTheDirectory: notification of the directory that a
// link leads to, also after the link was changed.
func TestWatchFollowsALinkOutOfTheDirectory(t *testing.T) {
	here, there, elsewhere := t.TempDir(), t.TempDir(), t.TempDir()
	name := filepath.Join(here, "nodefence.yaml")
	link := func(target string) {
		t.Helper()
		next := name + ".next"
		if err := os.Symlink(target, next); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(next, name); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(there, "a.yaml"), numbered(1))
	write(t, filepath.Join(elsewhere, "b.yaml"), numbered(3))
	link(filepath.Join(there, "a.yaml"))
	o := watch(t, Watcher{Path: name, Quiet: time.Millisecond, Every: never})
	o.change(1)
	replace(t, filepath.Join(there, "a.yaml"), numbered(2))
	o.change(2)
	link(filepath.Join(elsewhere, "b.yaml"))
	o.change(3)
	replace(t, filepath.Join(elsewhere, "b.yaml"), numbered(4))
	o.change(4)
}

// TestWatchTakesAnotherCA: the CA files are elsewhere and have no notification;
// they are looked at now and then.
func TestWatchTakesAnotherCA(t *testing.T) {
	dir := t.TempDir()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	certificate := testCertificate(t)
	write(t, ca, certificate)
	name := filepath.Join(dir, "nodefence.yaml")
	write(t, name, strings.Replace(numbered(1), "  driver: redfish\n", "  driver: redfish\n  tls: {caFile: "+ca+"}\n", 1))
	o := watch(t, Watcher{Path: name, Quiet: time.Millisecond, Every: time.Millisecond})
	first := o.change(1)
	replace(t, ca, certificate+certificate)
	second := o.change(1)
	if first.Digest() == second.Digest() {
		t.Error("the digest does not cover the CA file")
	}
	settings := second.Provider("bmcs").Driver().(stubDriver).settings
	if got := string(settings.TLS.CA); got != certificate+certificate {
		t.Error("the driver still has the old CA")
	}
	replace(t, ca, "no certificate")
	o.refusal("caFile", "holds no certificate")
	if err := os.Remove(ca); err != nil {
		t.Fatal(err)
	}
	o.refusal("caFile", "no such file")
	replace(t, ca, certificate)
	o.change(1)
}

func testCertificate(t *testing.T) string {
	t.Helper()
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
}

// TestWatchWaitsForQuiet: a file that is written in parts is read when it is
// whole.
func TestWatchWaitsForQuiet(t *testing.T) {
	name := filepath.Join(t.TempDir(), "nodefence.yaml")
	write(t, name, numbered(1))
	const quiet = 300 * time.Millisecond
	o := watch(t, Watcher{Path: name, Quiet: quiet, Every: never})
	o.change(1)
	text := numbered(2)
	begin := time.Now()
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(text); i += 50 {
		if _, err := f.WriteString(text[i:min(i+50, len(text))]); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if time.Since(begin) > quiet/2 {
		o.next()
		t.Skip("this machine is too slow to write a file at once")
	}
	o.change(2)
}

// TestWatchLooksInARestlessDirectory: other files that change all the time delay
// a look, and do not prevent it.
func TestWatchLooksInARestlessDirectory(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "nodefence.yaml")
	write(t, name, numbered(1))
	o := watch(t, Watcher{Path: name, Quiet: 20 * time.Millisecond, Every: never})
	o.change(1)
	stop := make(chan struct{})
	var noise sync.WaitGroup
	noise.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
				if err := os.WriteFile(filepath.Join(dir, "noise"), nil, 0o600); err != nil {
					t.Error(err)
					return
				}
			}
		}
	})
	replace(t, name, numbered(2))
	o.change(2)
	close(stop)
	noise.Wait()
}

// TestWatchBeginsWithoutAFile: the file may come later, the directory too.
func TestWatchBeginsWithoutAFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "later", "nodefence.yaml")
	o := watch(t, Watcher{Path: name, Quiet: time.Millisecond, Every: time.Millisecond})
	o.refusal("no such file")
	if err := os.Mkdir(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	replace(t, name, numbered(1))
	o.change(1)
}

// TestWatchEnds: also with the defaults, and with a context that had ended
// before.
func TestWatchEnds(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	name := filepath.Join(t.TempDir(), "nodefence.yaml")
	write(t, name, numbered(1))
	ctx, cancel := context.WithCancel(t.Context())
	changes := 0
	// Ending from within a call is ending, too.
	Watch(ctx, name, stubRegistry(), func(*Configuration) { changes++; cancel() }, func(err error) { t.Error(err) })
	Watch(ctx, name, stubRegistry(), func(*Configuration) { changes++ }, func(err error) { t.Error(err) })
	if changes == 0 {
		t.Error("no configuration")
	}
}

func TestStore(t *testing.T) {
	one, two := mustParse(t, numbered(1)), mustParse(t, numbered(2))
	s := NewStore(one)
	if s.Load() != one {
		t.Error("not the first configuration")
	}
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for s.Load() != two {
				time.Sleep(time.Microsecond)
			}
		})
	}
	s.Set(two)
	readers.Wait()
}
