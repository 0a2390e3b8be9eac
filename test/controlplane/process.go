package controlplane

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// Process is a child that ends with us, whatever becomes of us.
type Process struct {
	Name string
	Log  string
	cmd  *exec.Cmd
	done chan struct{}
	err  error
}

// spawn runs on one operating-system thread for the life of the process: the
// kernel ends a child when the thread that started it ends (PR_SET_PDEATHSIG).
var spawn = func() chan func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range work {
			f()
		}
	}()
	return work
}()

// StartProcess starts a child in a process group of its own, so that a Ctrl-C at
// the terminal reaches only us and the order of the end stays ours. Its output is
// appended to dir/name.log.
func StartProcess(dir, name string, env []string, path string, args ...string) (*Process, error) {
	p := &Process{Name: name, Log: filepath.Join(dir, name+".log"), done: make(chan struct{})}
	log, err := os.OpenFile(p.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	p.cmd = exec.Command(path, args...) //nolint:noctx // it is ended by Stop, in order
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = dir, log, log
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	spawn <- func() { started <- p.cmd.Start() }
	err = <-started
	_ = log.Close() // the child has its own
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() { p.err = p.cmd.Wait(); close(p.done) }()
	return p, nil
}

// Pid is the child's process ID.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Exited tells whether the child has ended.
func (p *Process) Exited() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Done is closed when the child has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Signal sends a signal to the child's whole group.
func (p *Process) Signal(s syscall.Signal) error {
	err := syscall.Kill(-p.Pid(), s)
	if errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return err
}

// Kill ends the child at once and waits until it is gone.
func (p *Process) Kill() {
	_ = p.Signal(syscall.SIGKILL) // it may be gone already
	<-p.done
}

// Stop asks the child to end, and ends it when it has not after grace.
func (p *Process) Stop(grace time.Duration) {
	if p.Exited() {
		return
	}
	_ = p.Signal(syscall.SIGCONT) // a stopped process would not hear
	_ = p.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(grace):
		p.Kill()
	}
}

// Failure says how a child that should run has ended, with its last words.
func (p *Process) Failure() error {
	body, err := os.ReadFile(p.Log)
	if err != nil {
		return fmt.Errorf("%s ended: %w", p.Name, p.err)
	}
	return fmt.Errorf("%s ended (%w); its last lines:\n%s", p.Name, p.err, tail(string(body), 12))
}
