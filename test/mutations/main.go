// Command mutations is `make mutations`: it switches off one rule of safety after
// the other, in a copy of the tree, and sees the tests fail. Decide and Check keep
// the rules twice, so each mutation takes a rule out of both. It ends with an error
// when a rule can be missing without any test noticing.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/nodefence/nodefence/test/controlplane"
)

func main() { os.Exit(status()) }

func status() int {
	only := flag.String("only", "", "try only the mutations whose name has this in it")
	all := flag.Bool("all", false, "run all suites on each mutation, not only up to the first that notices")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *only, *all); err != nil {
		fmt.Fprintln(os.Stderr, "mutations:", err)
		return 1
	}
	return 0
}

func run(ctx context.Context, only string, all bool) error {
	root, err := controlplane.Root()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "nodefence-mutations-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := copyTree(dir, root); err != nil {
		return err
	}
	fmt.Println("| rule | switched off | noticed by |\n|---|---|---|")
	var missed []string
	for _, m := range mutations {
		if !strings.Contains(m.rule+" "+m.what, only) {
			continue
		}
		by, err := m.try(ctx, dir, all)
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s, %s: %v\n", m.rule, m.what, err)
			by = []string{"not tried"}
			missed = append(missed, m.rule+" "+m.what+" (not tried)")
		}
		if len(by) == 0 {
			missed = append(missed, m.rule+" "+m.what)
			by = []string{"**nothing**"}
		}
		fmt.Printf("| %s | %s | %s |\n", m.rule, m.what, strings.Join(by, "; "))
	}
	if len(missed) > 0 {
		return fmt.Errorf("nothing notices: %s", strings.Join(missed, "; "))
	}
	return nil
}

// suite is one of the groups of tests that may notice.
type suite struct {
	name string
	args []string
}

// suites are tried apart, so that the table shows how well a rule is guarded.
var suites = []suite{
	{"scenarios and tables", []string{"./fencing", "-skip", "TestRandomLives"}},
	{"random lives of one node", []string{"./fencing", "-run", "TestRandomLives"}},
	{"the controller in virtual time", []string{"./controller", "-short", "-skip", "TestSeeds"}},
	{"seeds", []string{"./controller", "-run", "TestSeeds", "-seeds", "40"}},
}

// try makes the edits, runs the tests, and takes the edits back.
func (m mutation) try(ctx context.Context, dir string, all bool) ([]string, error) {
	before := map[string][]byte{}
	defer func() {
		for name, body := range before {
			_ = os.WriteFile(name, body, 0o644) // the copy is thrown away if that fails
		}
	}()
	for _, e := range m.edits {
		name := filepath.Join(dir, e.file)
		body, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		if _, seen := before[name]; !seen {
			before[name] = body
		}
		if n := bytes.Count(body, []byte(e.old)); n != 1 {
			return nil, fmt.Errorf("%s has %d places like %q: the code has changed, and this table must, too", e.file, n, e.old)
		}
		if err := os.WriteFile(name, bytes.Replace(body, []byte(e.old), []byte(e.new), 1), 0o644); err != nil {
			return nil, err
		}
	}
	var by []string
	for _, s := range suites {
		if len(by) > 0 && !all {
			break
		}
		failed, err := test(ctx, dir, s)
		if err != nil {
			return nil, err
		}
		if failed != "" {
			by = append(by, s.name+" ("+failed+")")
		}
	}
	return by, nil
}

var failure = regexp.MustCompile(`(?m)^ *--- FAIL: (\S+)`)

// test runs a suite and gives the first test that failed, or nothing.
func test(ctx context.Context, dir string, s suite) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-failfast", "-vet=off"}, s.args...)...)
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return "", nil
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case !errors.As(err, &exit):
		return "", err
	case bytes.Contains(out, []byte("[build failed]")):
		return "", fmt.Errorf("the mutated code does not build:\n%s", out)
	}
	deepest := ""
	for _, f := range failure.FindAllSubmatch(out, -1) {
		if len(f[1]) > len(deepest) {
			deepest = string(f[1])
		}
	}
	if deepest == "" {
		return "it crashed", nil
	}
	return deepest, nil
}

// copyTree copies what the tests of the core and the controller need.
func copyTree(to, from string) error {
	for _, part := range []string{"go.mod", "go.sum", "fencing", "providers", "config", "controller", "docs"} {
		err := filepath.WalkDir(filepath.Join(from, part), func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			rel, err := filepath.Rel(from, path)
			if err != nil {
				return err
			}
			if d.IsDir() {
				return os.MkdirAll(filepath.Join(to, rel), 0o755)
			}
			body, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(to, rel), body, 0o644)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
