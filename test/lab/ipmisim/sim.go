package ipmisim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/nodefence/nodefence/test/lab"
	"github.com/nodefence/nodefence/test/lab/ipmibmc"
)

// CipherSuite is the one that this simulator accepts.
const CipherSuite = 3

// Config describes a simulator; the zero value is usable.
type Config struct {
	Users    []ipmibmc.User // ipmibmc.DefaultUsers when nil
	CycleOff time.Duration  // how much longer than the simulator's own second a power cycle reads off
	Dir      string         // where its files live; a new temporary folder, removed by Close, when empty
}

// Sim is a running simulator. Start it with [Start].
type Sim struct {
	port    int
	cmd     *exec.Cmd
	output  *bytes.Buffer // what it printed; read it only when exited is closed
	exited  chan struct{}
	desk    *desk
	tempDir string
	once    sync.Once
}

// Available returns the path of ipmi_sim. Tests call peers.Require, which also
// installs it.
func Available() (string, error) {
	path, err := exec.LookPath("ipmi_sim")
	if err != nil {
		return "", fmt.Errorf("ipmisim: %w (Debian package openipmi)", err)
	}
	return path, nil
}

// Start runs a simulator for a machine and returns when it answers. The context
// bounds the start only.
func Start(ctx context.Context, m *lab.Machine, cfg Config) (*Sim, error) {
	exe, err := Available()
	if err != nil {
		return nil, err
	}
	if cfg.Users == nil {
		cfg.Users = ipmibmc.DefaultUsers()
	}
	s := &Sim{}
	if cfg.Dir == "" {
		if s.tempDir, err = os.MkdirTemp("", "ipmisim-"); err != nil {
			return nil, fmt.Errorf("ipmisim: %w", err)
		}
		cfg.Dir = s.tempDir
	}
	if s.desk, err = openDesk(cfg.Dir, m, cfg.CycleOff); err != nil {
		s.removeFiles()
		return nil, err
	}
	// A free port may be taken by somebody else before the simulator binds it.
	for range 3 {
		if err = s.run(ctx, exe, m, cfg); err == nil || ctx.Err() != nil {
			break
		}
	}
	if err != nil {
		s.desk.close()
		s.removeFiles()
		return nil, err
	}
	return s, nil
}

// run starts the process on a free port and waits for its first answer.
func (s *Sim) run(ctx context.Context, exe string, m *lab.Machine, cfg Config) error {
	port, err := freePort()
	if err != nil {
		return err
	}
	s.port = port
	if err := writeConfig(cfg, port, m.UUID()); err != nil {
		return err
	}
	s.output = new(bytes.Buffer)
	//nolint:noctx // Close ends it; the context bounds the start only
	s.cmd = exec.Command(exe, "-c", filepath.Join(cfg.Dir, lanConf), "-f", filepath.Join(cfg.Dir, emuConf),
		"-s", filepath.Join(cfg.Dir, stateDir), "-n")
	s.cmd.Dir = cfg.Dir
	s.cmd.Stdout, s.cmd.Stderr = s.output, s.output
	s.cmd.WaitDelay = time.Second // a script that outlives it must not hold us
	// A group of its own, so that its script ends with it; and it dies with us.
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	s.exited = make(chan struct{})
	started := make(chan error)
	go func() {
		// The kernel sends Pdeathsig when the thread ends that started the
		// process: keep it as long as the process lives.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(s.exited)
		err := s.cmd.Start()
		started <- err
		if err == nil {
			_ = s.cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("ipmisim: %w", err)
	}
	if err := s.waitReady(ctx); err != nil {
		s.Kill()
		return fmt.Errorf("ipmisim: %w: %s", err, bytes.TrimSpace(s.output.Bytes()))
	}
	return nil
}

// waitReady asks until something answers on the port.
func (s *Sim) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	// Get Channel Authentication Capabilities, which needs no session.
	ask := []byte{6, 0, 0xff, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0x20, 0x18, 0xc8, 0x81, 0, 0x38, 0x8e, 4, 0xb5}
	conn, err := (&net.Dialer{}).DialContext(ctx, "udp4", s.Addr())
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	for {
		// Refused while the port is closed: ask again.
		_, _ = conn.Write(ask)
		_ = conn.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
		if n, err := conn.Read(make([]byte, 64)); err == nil && n > 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("no answer: %w", ctx.Err())
		case <-s.exited:
			return errors.New("the simulator ended")
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// Addr is the simulator's host:port.
func (s *Sim) Addr() string { return net.JoinHostPort(s.Host(), strconv.Itoa(s.port)) }

// Host is its address without the port.
func (s *Sim) Host() string { return "127.0.0.1" }

// Port is its UDP port.
func (s *Sim) Port() int { return s.port }

// SetScriptDelay makes every chassis command slow. The simulator does one thing
// at a time, so what is asked meanwhile waits in line.
func (s *Sim) SetScriptDelay(d time.Duration) { s.desk.setDelay(d) }

// SetScriptFails makes every chassis command fail ("Unspecified error"), as
// controllers do whose power sequencer does not answer.
func (s *Sim) SetScriptFails(fails bool) { s.desk.setFails(fails) }

// Stop freezes the process: the port is open and nobody answers.
func (s *Sim) Stop() error { return s.signal(syscall.SIGSTOP) }

// Continue lets it go on.
func (s *Sim) Continue() error { return s.signal(syscall.SIGCONT) }

// Kill ends the process: the port is closed. The machine is not touched.
func (s *Sim) Kill() {
	// A frozen process would not hear a polite signal, so the last word is
	// SIGKILL, which needs no thawing.
	_ = s.signal(syscall.SIGCONT)
	_ = s.signal(syscall.SIGTERM)
	select {
	case <-s.exited:
	case <-time.After(500 * time.Millisecond):
		_ = s.signal(syscall.SIGKILL)
		<-s.exited
	}
	// The script may be waiting for an answer still.
	_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL)
}

func (s *Sim) signal(sig syscall.Signal) error {
	select {
	case <-s.exited:
		return os.ErrProcessDone
	default:
		return syscall.Kill(-s.cmd.Process.Pid, sig)
	}
}

// Close ends the simulator and removes its files. It may be called again.
func (s *Sim) Close() {
	s.once.Do(func() {
		s.Kill()
		s.desk.close()
		s.removeFiles()
	})
}

func (s *Sim) removeFiles() {
	if s.tempDir != "" {
		_ = os.RemoveAll(s.tempDir)
	}
}

func freePort() (int, error) {
	c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return 0, fmt.Errorf("ipmisim: %w", err)
	}
	defer func() { _ = c.Close() }()
	return c.LocalAddr().(*net.UDPAddr).Port, nil
}
