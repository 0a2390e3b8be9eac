package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// run runs the command in this process and gives what it wrote and how it ended.
func run(t *testing.T, args ...string) (out, errs string, err error) {
	t.Helper()
	var o, e bytes.Buffer
	root := newRootCommand()
	root.SetArgs(args)
	root.SetOut(&o)
	root.SetErr(&e)
	err = root.ExecuteContext(t.Context())
	return o.String(), e.String(), err
}

// status is the exit status that main makes of a command's error.
func status(err error) int {
	var s exitStatus
	switch {
	case err == nil:
		return 0
	case errors.As(err, &s):
		return int(s)
	}
	return exitFailure
}

// file writes a file for a test.
func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestVersion(t *testing.T) {
	out, errs, err := run(t, "version")
	if want := "nodefence " + version; err != nil || errs != "" || !strings.HasPrefix(out, want) || !strings.Contains(out, runtime.Version()) || strings.Count(out, "\n") != 1 {
		t.Errorf("got %q, %q, %v; want one line that begins with %q and has %s", out, errs, err, want, runtime.Version())
	}
	if _, _, err := run(t, "version", "please"); err == nil {
		t.Error("version takes an argument")
	}
}

// TestHelp: each command says what it does, what it changes, and how it ends.
func TestHelp(t *testing.T) {
	for args, want := range map[string][]string{
		"":           {"out of band", "node.kubernetes.io/out-of-service", "only with proof", "In doubt it does nothing", "controller", "check", "version"},
		"controller": {"until it is stopped", "one leads", "read again when it changes", "old configuration stays in force", "Exit status", "--config", "--kubeconfig", "--listen", "--leader-lease"},
		"check":      {"Validates the configuration file", "each node's machine", "Nothing is", "changed", "Exit status", "--file-only", "--output", "nodefence check --config nodefence.yaml --file-only"},
		"version":    {"Print the version"},
	} {
		for _, help := range []string{"--help", "-h"} {
			out, errs, err := run(t, append(strings.Fields(args), help)...)
			if err != nil || errs != "" {
				t.Errorf("%s %s: %v %s", args, help, err, errs)
			}
			for _, w := range want {
				if !strings.Contains(out, w) {
					t.Errorf("nodefence %s %s does not mention %q:\n%s", args, help, w, out)
				}
			}
		}
	}
}

// TestEveryCommandIsDescribed: also those that are added later.
func TestEveryCommandIsDescribed(t *testing.T) {
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Short == "" || strings.HasSuffix(c.Short, ".") {
			t.Errorf("%s: Short is %q, but must be one sentence without a full stop", c.CommandPath(), c.Short)
		}
		if c.Runnable() && c.Args == nil {
			t.Errorf("%s takes any argument and ignores it", c.CommandPath())
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(newRootCommand())
}

func TestWrongUse(t *testing.T) {
	for args, want := range map[string]string{
		"check --bogus":                             "unknown flag: --bogus",
		"controller --bogus":                        "unknown flag: --bogus",
		"chekc":                                     `unknown command "chekc"`,
		"check nodefence.yaml":                      `unknown command "nodefence.yaml" for "nodefence check"`,
		"check --output yaml --config /x":           `--output: "yaml" is neither table nor json`,
		"check --parallel many":                     "invalid argument",
		"controller --config /nonexistent/c.yaml":   "/nonexistent/c.yaml",
		"controller --log-level loud --config /x":   "--log-level",
		"controller --log-format fancy --config /x": "--log-format",
	} {
		out, _, err := run(t, strings.Fields(args)...)
		if err == nil || !strings.Contains(err.Error(), want) || status(err) != exitFailure {
			t.Errorf("nodefence %s: %v, want %q and status 1", args, err, want)
		}
		if out != "" {
			t.Errorf("nodefence %s writes to its output: %q", args, out)
		}
	}
}
