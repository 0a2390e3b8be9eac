package peers

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// recorder is a test that notes how it was ended.
type recorder struct {
	testing.TB
	skipped, failed string
}

func (r *recorder) Helper()                  {}
func (r *recorder) Name() string             { return "TestOfSomethingReal" }
func (r *recorder) Context() context.Context { return context.Background() }
func (r *recorder) Skip(a ...any)            { r.skipped = a[0].(string); runtime.Goexit() }
func (r *recorder) Fatal(a ...any)           { r.failed = a[0].(string); runtime.Goexit() }
func (r *recorder) Fatalf(f string, _ ...any) {
	r.failed = f
	runtime.Goexit()
}

func require(t *testing.T, name string) *recorder {
	t.Helper()
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		Require(r, name)
	}()
	<-done
	return r
}

// fakeApt stands in for the package manager; it records what is asked of it.
func fakeApt(t *testing.T, fail error) *[]string {
	t.Helper()
	dir := t.TempDir()
	var asked []string
	oldRun, oldMay, oldDir := run, mayInstall, stateDir
	run = func(_ context.Context, args ...string) error {
		asked = append(asked, strings.Join(args[:2], " "))
		if args[1] == "install" {
			return fail
		}
		return nil
	}
	mayInstall = func() error { return nil }
	stateDir = func() (string, error) { return dir, nil }
	t.Cleanup(func() { run, mayInstall, stateDir = oldRun, oldMay, oldDir })
	return &asked
}

func TestRequireFindsWhatIsThere(t *testing.T) {
	if path := Require(t, "sh"); !filepath.IsAbs(path) {
		t.Errorf("Require(sh) = %q", path)
	}
}

func TestMissingPeerIsSkippedAndNoted(t *testing.T) {
	file := filepath.Join(t.TempDir(), "not-run")
	t.Setenv("NODEFENCE_NOT_RUN", file)
	t.Setenv("CI", "")
	r := require(t, "no_such_peer")
	if !strings.HasPrefix(r.skipped, "NOT RUN: real peer no_such_peer is missing: ") {
		t.Errorf("skipped with %q", r.skipped)
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if want := "TestOfSomethingReal\t" + r.skipped + "\n"; string(got) != want {
		t.Errorf("noted %q, want %q", got, want)
	}
}

func TestMissingPeerFailsInCI(t *testing.T) {
	t.Setenv("CI", "true")
	if r := require(t, "no_such_peer"); r.failed == "" || r.skipped != "" {
		t.Errorf("failed %q, skipped %q", r.failed, r.skipped)
	}
}

func TestASkipThatCannotBeNotedFails(t *testing.T) {
	t.Setenv("CI", "")
	t.Setenv("NODEFENCE_NOT_RUN", filepath.Join(t.TempDir(), "no", "such", "folder"))
	if r := require(t, "no_such_peer"); r.failed == "" {
		t.Errorf("skipped with %q", r.skipped)
	}
}

func TestInstallation(t *testing.T) {
	there := false
	w := want{name: "x", pkg: "x-pkg", find: func(context.Context) (string, error) {
		if there {
			return "/x", nil
		}
		return "", errors.New("x is not installed")
	}}
	t.Run("updates once, installs each", func(t *testing.T) {
		asked := fakeApt(t, nil)
		for range 2 {
			if err := install(t.Context(), w); err != nil {
				t.Fatal(err)
			}
		}
		want := "apt-get update,apt-get install,apt-get install"
		if got := strings.Join(*asked, ","); got != want {
			t.Errorf("asked %s, want %s", got, want)
		}
	})
	t.Run("remembers a failure", func(t *testing.T) {
		asked := fakeApt(t, errors.New("no such package"))
		for range 3 {
			if _, err := get(t.Context(), w); err == nil || !strings.Contains(err.Error(), "no such package") {
				t.Fatalf("error %v", err)
			}
		}
		if len(*asked) != 2 {
			t.Errorf("asked %v: a failure was tried again", *asked)
		}
	})
	t.Run("asks nothing when it is there", func(t *testing.T) {
		asked := fakeApt(t, nil)
		there = true
		if path, err := get(t.Context(), w); err != nil || path != "/x" || len(*asked) != 0 {
			t.Errorf("get = %q, %v; asked %v", path, err, *asked)
		}
	})
}

func TestLockHasADeadline(t *testing.T) {
	file := filepath.Join(t.TempDir(), "lock")
	unlock, err := lock(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
	defer cancel()
	if _, err := lock(ctx, file); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a second lock: %v", err)
	}
	unlock()
	again, err := lock(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	again()
}
