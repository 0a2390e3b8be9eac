package e2e

import (
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nodefence/nodefence/test/controlplane"
	"github.com/nodefence/nodefence/test/story"
)

// TestReadme runs the commands of "Try it on your cluster" as they are printed, in
// a copy of the tree and against a real cluster. (The other two commands are this
// test's own caller and the demonstration, which TestInterrupted runs.)
func TestReadme(t *testing.T) {
	ctx, w := quietWorld(t, map[string]story.Kind{"node-1": story.Redfish, "node-2": story.IPMI}, story.Shortened())
	root, err := controlplane.Root()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := copyTree(dir, root); err != nil {
		t.Fatal(err)
	}
	commands := printed(t, filepath.Join(dir, "README.md"), "## Try it on your cluster")
	if len(commands) < 5 {
		t.Fatalf("only %d commands: %q", len(commands), commands)
	}
	configuration, err := w.WriteConfig("Observe")
	if err != nil {
		t.Fatal(err)
	}
	body, err := os.ReadFile(configuration)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "nodefence.yaml"), body, 0o600); err != nil {
		t.Fatal(err)
	}
	r := reader{dir: dir, env: append(os.Environ(),
		"KUBECONFIG="+w.Cluster.Kubeconfig(), "PATH="+w.Cluster.Binaries().Dir+":"+os.Getenv("PATH"))}
	for _, c := range commands {
		if strings.Contains(c, " controller ") {
			r.untilLeading(ctx, t, c)
			continue
		}
		out, err := r.command(ctx, c).CombinedOutput()
		t.Logf("$ %s\n%s", c, out)
		if err != nil {
			t.Fatalf("%s: %v", c, err)
		}
	}
}

// reader is somebody who types what the README prints.
type reader struct {
	dir string
	env []string
}

func (r reader) command(ctx context.Context, line string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "sh", "-c", line)
	cmd.Dir, cmd.Env = r.dir, r.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	return cmd
}

// untilLeading runs the controller until it leads, and interrupts it.
func (r reader) untilLeading(ctx context.Context, t *testing.T, line string) {
	t.Helper()
	out := &sharedBuffer{}
	cmd := r.command(ctx, "exec "+line) // so that the interrupt is not the shell's
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	defer func() { t.Logf("$ %s\n%s", line, out) }()
	for deadline := time.Now().Add(30 * time.Second); !strings.Contains(out.String(), "leading"); time.Sleep(50 * time.Millisecond) {
		if len(ended) > 0 || time.Now().After(deadline) {
			t.Errorf("it does not lead")
			break
		}
	}
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) // it may have ended
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("after an interrupt: %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Errorf("it does not end")
		_ = cmd.Cancel()
	}
}

// printed gives the commands of a section: its indented lines that begin with a
// command, without their comments.
func printed(t *testing.T, page, heading string) []string {
	t.Helper()
	body, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(body), heading+"\n")
	if !ok {
		t.Fatalf("%s has no section %q", page, heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var commands []string
	for _, line := range strings.Split(section, "\n") {
		command, ok := strings.CutPrefix(line, "    ")
		command, _, _ = strings.Cut(command, "  #")
		for _, name := range []string{"make ", "bin/nodefence ", "kubectl "} {
			if ok && strings.HasPrefix(command, name) {
				commands = append(commands, strings.TrimSpace(command))
			}
		}
	}
	return commands
}

// copyTree copies the files of the tree, without what git and make put there.
func copyTree(to, from string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		switch {
		case d.IsDir() && (rel == ".git" || rel == "bin"):
			return filepath.SkipDir
		case d.IsDir():
			return os.MkdirAll(target, 0o755)
		case !d.Type().IsRegular():
			return nil
		}
		body, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		return os.WriteFile(target, body, info.Mode().Perm())
	})
}
