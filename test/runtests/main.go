// Command runtests is `make test`: it prepares what the tests need, runs all of
// them with visible progress, and closes with a summary that names every test
// that did not run. Under CI a test that did not run is a failure.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"sort"
	"strings"
	"syscall"
	"time"

	"github.com/nodefence/nodefence/test/controlplane"
)

func main() { os.Exit(status()) }

func status() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "runtests:", err)
		return 1
	}
	return 0
}

func run(ctx context.Context, args []string) error {
	fmt.Println("Preparing the real control plane (built once, then cached) ...")
	if _, err := controlplane.EnsureBinaries(ctx, os.Stdout); err != nil {
		return fmt.Errorf("build the control plane: %w", err)
	}
	dir, err := os.MkdirTemp("", "nft-") // short: unix sockets lie below it
	if err != nil {
		return err
	}
	defer remove(dir)
	// Tests that are interrupted cannot remove what they wrote: all of it lies here.
	if err := os.Setenv("TMPDIR", dir); err != nil {
		return err
	}
	notRun := filepath.Join(dir, "not-run")
	if len(args) == 0 {
		args = []string{"./..."}
	}
	fmt.Printf("Running go vet and go test %s ...\n", strings.Join(args, " "))
	if err := stream(ctx, nil, os.Stdout, append([]string{"vet"}, args...)...); err != nil {
		return fmt.Errorf("go vet: %w", err)
	}
	r := newReport(os.Stdout)
	// The e2e packages each start a control plane: one package after the other
	// keeps their timing honest on a small machine.
	testErr := goTest(ctx, r, notRun, append([]string{"test", "-json", "-p", "1", "-timeout", "30m"}, args...)...)
	missing := readLines(notRun)
	r.close(missing)
	switch {
	case testErr != nil:
		return testErr
	case r.failed > 0:
		return fmt.Errorf("%d tests failed", r.failed)
	case r.passed == 0:
		return errors.New("no test ran")
	case len(missing) > 0 && os.Getenv("CI") != "":
		return fmt.Errorf("%d tests did not run, and under CI each must", len(missing))
	}
	return nil
}

// remove removes the tests' files. Processes that an interrupted test has started
// end with it, and may write for a moment still.
func remove(dir string) {
	for range 20 {
		if os.RemoveAll(dir) == nil {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	fmt.Fprintln(os.Stderr, "runtests: could not remove", dir)
}

func command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	// Its own group, so that Ctrl-C reaches it once, from here, and tests clean up.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = 20 * time.Second
	return cmd
}

func stream(ctx context.Context, env []string, out io.Writer, args ...string) error {
	cmd := command(ctx, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = out, out
	return cmd.Run()
}

func goTest(ctx context.Context, r *report, notRun string, args ...string) error {
	pr, pw := io.Pipe()
	done := make(chan struct{})
	go func() { defer close(done); r.read(pr) }()
	cmd := command(ctx, args...)
	cmd.Env = append(os.Environ(), "NODEFENCE_NOT_RUN="+notRun)
	cmd.Stdout, cmd.Stderr = pw, os.Stderr
	err := cmd.Run()
	_ = pw.Close() // the reader sees the end; a pipe's close cannot fail
	<-done
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || r.failed == 0) {
		return fmt.Errorf("go test: %w", err)
	}
	return nil
}

// event is one line of go test -json.
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64
}

// report counts tests and prints what a person wants to see: a line a package,
// and the whole output of what failed.
type report struct {
	out                     io.Writer
	passed, failed, skipped int
	skips                   []string
	outputs                 map[string]*strings.Builder
}

func newReport(out io.Writer) *report {
	return &report{out: out, outputs: map[string]*strings.Builder{}}
}

func (r *report) read(in io.Reader) {
	s := bufio.NewScanner(in)
	s.Buffer(make([]byte, 0, 1<<16), 1<<24)
	for s.Scan() {
		var e event
		if json.Unmarshal(s.Bytes(), &e) != nil {
			fmt.Fprintln(r.out, s.Text())
			continue
		}
		r.add(e)
	}
}

func (r *report) add(e event) {
	key := e.Package + " " + e.Test
	switch e.Action {
	case "output":
		if r.outputs[key] == nil {
			r.outputs[key] = &strings.Builder{}
		}
		r.outputs[key].WriteString(e.Output)
		return
	case "build-output":
		fmt.Fprint(r.out, e.Output)
		return
	case "pass", "fail", "skip":
	default:
		return
	}
	text := ""
	if b := r.outputs[key]; b != nil {
		text = b.String()
		delete(r.outputs, key)
	}
	if e.Test == "" {
		if e.Action == "fail" || e.Action == "pass" {
			fmt.Fprintf(r.out, "%-4s %s %.1fs\n", map[string]string{"pass": "ok", "fail": "FAIL"}[e.Action], e.Package, e.Elapsed)
		}
		if e.Action == "fail" {
			fmt.Fprint(r.out, text)
		}
		return
	}
	switch e.Action {
	case "pass":
		r.passed++
		if e.Elapsed > 5 {
			fmt.Fprintf(r.out, "     %s %.1fs\n", e.Test, e.Elapsed)
		}
	case "fail":
		r.failed++
		fmt.Fprintf(r.out, "FAIL %s %s\n%s", e.Package, e.Test, text)
	case "skip":
		r.skipped++
		r.skips = append(r.skips, e.Package+" "+e.Test+": "+strings.TrimSpace(lastLine(text)))
	}
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for _, l := range lines {
		if !strings.HasPrefix(strings.TrimSpace(l), "---") && !strings.HasPrefix(l, "===") {
			return l
		}
	}
	return ""
}

func (r *report) close(missing []string) {
	for _, s := range r.skips {
		fmt.Fprintln(r.out, "skipped:", s)
	}
	sort.Strings(missing)
	for _, m := range missing {
		fmt.Fprintln(r.out, "NOT RUN:", m)
	}
	fmt.Fprintf(r.out, "%d passed, %d failed, %d skipped\n", r.passed, r.failed, r.skipped)
}

func readLines(path string) []string {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil // nothing was left out
	}
	return strings.FieldsFunc(string(b), func(c rune) bool { return c == '\n' })
}
