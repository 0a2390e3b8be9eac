package e2e

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nodefence/nodefence/test/controlplane"
)

// TestInterrupted: whenever a command of the README is interrupted, no process and
// no file is left; when it is killed, no process.
func TestInterrupted(t *testing.T) {
	if testing.Short() {
		t.Skip("needs the control plane; -short leaves it out")
	}
	if _, err := controlplane.EnsureBinaries(t.Context(), writer{t}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, command string
		args          []string
		when          string
		signal        syscall.Signal
	}{
		{"demo while it builds", "demo", nil, "Building nodefence", syscall.SIGINT},
		{"demo while it starts", "demo", nil, "Starting etcd", syscall.SIGINT},
		{"demo within a story", "demo", nil, "loses its power", syscall.SIGTERM},
		{"demo killed within a story", "demo", nil, "loses its power", syscall.SIGKILL},
		{"tests", "runtests", []string{"./test/controlplane"}, "Running go vet", syscall.SIGINT},
	} {
		t.Run(c.name, func(t *testing.T) {
			interrupt(t, c.command, c.args, c.when, c.signal)
		})
	}
}

// interrupt runs a command until its output says when, and signals it.
func interrupt(t *testing.T, command string, args []string, when string, signal syscall.Signal) {
	t.Helper()
	root, err := controlplane.Root()
	if err != nil {
		t.Fatal(err)
	}
	// Short, because unix sockets lie below it.
	dir, err := os.MkdirTemp("/tmp", "nfi-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	tmp := filepath.Join(dir, "t")
	if err := os.Mkdir(tmp, 0o755); err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, command)
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, filepath.Join(root, "test", command)).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	elsewhere := outsideTMPDIR(t)
	cmd := exec.CommandContext(t.Context(), binary, args...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "TMPDIR="+tmp)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out := &sharedBuffer{}
	cmd.Stdout, cmd.Stderr = out, out
	cmd.WaitDelay = 20 * time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	waitFor(t, 3*time.Minute, "the output to say "+when, func() bool { return strings.Contains(out.String(), when) || len(ended) > 0 })
	time.Sleep(2 * time.Second) // into the midst of what it says
	if signal != syscall.SIGKILL {
		// As a terminal does: to the whole group.
		if err := syscall.Kill(-cmd.Process.Pid, signal); err != nil {
			t.Fatal(err)
		}
	} else if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			t.Errorf("it ended with %v, not as interrupted:\n%s", err, out)
		}
	case <-time.After(time.Minute):
		_ = cmd.Process.Kill()
		t.Fatalf("it goes on:\n%s", out)
	}
	waitFor(t, 5*time.Second, "its processes to end", func() bool { return len(processes(t, tmp)) == 0 })
	waitFor(t, 2*time.Second, "files outside TMPDIR to go", func() bool { return len(outsideTMPDIR(t)) <= len(elsewhere) })
	if signal == syscall.SIGKILL {
		return
	}
	left, err := os.ReadDir(tmp)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range left {
		t.Errorf("%s is left behind", f.Name())
	}
	if t.Failed() {
		t.Logf("its output:\n%s", out)
	}
}

// outsideTMPDIR lists what kubelets put into /tmp, whatever TMPDIR says.
func outsideTMPDIR(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob("/tmp/hollow-kubelet.*")
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func waitFor(t *testing.T, most time.Duration, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(most); !ok(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited %s for %s", most, what)
		}
	}
}

// processes lists those whose environment or command line names dir.
func processes(t *testing.T, dir string) []string {
	t.Helper()
	pids, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, p := range pids {
		environ, _ := os.ReadFile(p + "/environ") // it may have ended meanwhile
		cmdline, _ := os.ReadFile(p + "/cmdline")
		if bytes.Contains(environ, []byte("="+dir)) || bytes.Contains(cmdline, []byte(dir)) {
			found = append(found, string(bytes.ReplaceAll(cmdline, []byte{0}, []byte{' '})))
		}
	}
	return found
}

// sharedBuffer is written by a process and read meanwhile.
type sharedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *sharedBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *sharedBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
