package peers

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Prefix begins the reason of every test that was skipped for want of a peer.
const Prefix = "NOT RUN: real peer "

// packages tells which Debian package brings an executable.
var packages = map[string]string{
	"amtool":                  "prometheus-alertmanager",
	"fence_ipmilan":           "fence-agents",
	"fence_redfish":           "fence-agents",
	"ipmi_sim":                "openipmi",
	"ipmitool":                "ipmitool",
	"libvirtd":                "libvirt-daemon",
	"prometheus":              "prometheus",
	"prometheus-alertmanager": "prometheus-alertmanager",
	"promtool":                "prometheus",
	"python3":                 "python3-minimal",
	"redfishtool":             "redfishtool",
	"virsh":                   "libvirt-clients",
}

// modules tells which Debian package brings a Python module.
var modules = map[string]string{
	"sushy": "python3-sushy",
}

// extraDirs are searched after PATH: a user's PATH often lacks them.
var extraDirs = []string{"/usr/sbin", "/sbin", "/usr/local/sbin"}

// installTime bounds one installation, including the wait for other tests that
// install at the same time.
const installTime = 4 * time.Minute

// Require returns the path of an executable, or ends the test.
func Require(t testing.TB, name string) string {
	t.Helper()
	path, err := get(t.Context(), want{
		name: name,
		pkg:  packages[name],
		find: func(context.Context) (string, error) { return Find(name) },
	})
	if err != nil {
		missing(t, name, err)
	}
	return path
}

// RequirePython returns the path of a python3 that can import a module, or ends
// the test.
func RequirePython(t testing.TB, module string) string {
	t.Helper()
	path, err := get(t.Context(), want{
		name: "python3-" + module,
		pkg:  modules[module],
		find: func(ctx context.Context) (string, error) {
			// Debian's modules belong to Debian's python, not to the first in PATH.
			const python = "/usr/bin/python3"
			if out, err := exec.CommandContext(ctx, python, "-c", "import "+module).CombinedOutput(); err != nil {
				return "", fmt.Errorf("%s cannot import %s: %w %s", python, module, err, lastLine(out))
			}
			return python, nil
		},
	})
	if err != nil {
		missing(t, "python module "+module, err)
	}
	return path
}

// Find looks an executable up without installing anything.
func Find(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	for _, dir := range extraDirs {
		path := filepath.Join(dir, name)
		if st, err := os.Stat(path); err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s is not installed", name)
}

// missing ends the test: a failure in CI, a skip that leaves a trace elsewhere.
func missing(t testing.TB, name string, err error) {
	t.Helper()
	reason := Prefix + name + " is missing: " + err.Error()
	if os.Getenv("CI") == "true" {
		t.Fatal(reason)
		return
	}
	if file := os.Getenv("NODEFENCE_NOT_RUN"); file != "" {
		if err := note(file, t.Name()+"\t"+reason+"\n"); err != nil {
			// A skip that nobody would learn of is worse than a failure.
			t.Fatalf("%s (and NODEFENCE_NOT_RUN: %v)", reason, err)
			return
		}
	}
	t.Skip(reason)
}

// note appends one line; several test processes write to the same file, and a
// short append is not torn.
func note(file, line string) error {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

func lastLine(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}
