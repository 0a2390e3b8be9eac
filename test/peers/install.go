package peers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// want is a peer, the package that brings it, and how to see that it is there.
type want struct {
	name, pkg string
	find      func(context.Context) (string, error)
}

// stateDir is where test processes agree on who installs, and remember what
// failed.
var stateDir = func() (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(base, "nodefence-peers")
	return dir, os.MkdirAll(dir, 0o700)
}

// run executes a program of the package manager; tests replace it.
var run = func(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	// apt-get ends its helpers when it is asked to, not when it is killed.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, lastLine(out))
	}
	return nil
}

// mayInstall says why packages may not be installed here, or nil.
var mayInstall = func() error {
	if os.Getenv("NODEFENCE_INSTALL") == "no" {
		return errors.New("NODEFENCE_INSTALL=no forbids installing it")
	}
	if os.Geteuid() != 0 {
		return errors.New("only root may install it")
	}
	if _, err := os.Stat("/etc/debian_version"); err != nil {
		return errors.New("this is not Debian")
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		return errors.New("there is no apt-get")
	}
	return nil
}

// get returns where the peer is, after installing it if need be.
func get(ctx context.Context, w want) (string, error) {
	path, err := w.find(ctx)
	if err == nil {
		return path, nil
	}
	if w.pkg == "" {
		return "", fmt.Errorf("%w, and no package is known to bring it", err)
	}
	if no := mayInstall(); no != nil {
		return "", fmt.Errorf("%w (Debian package %s): %w", err, w.pkg, no)
	}
	ctx, cancel := context.WithTimeout(ctx, installTime)
	defer cancel()
	if err := install(ctx, w); err != nil {
		return "", err
	}
	return w.find(ctx)
}

// install brings a package in, one process at a time. A failure is remembered
// for a while: the next test must not wait for it again.
func install(ctx context.Context, w want) error {
	dir, err := stateDir()
	if err != nil {
		return err
	}
	unlock, err := lock(ctx, filepath.Join(dir, "lock"))
	if err != nil {
		return fmt.Errorf("waiting for another installation: %w", err)
	}
	defer unlock()
	if _, err := w.find(ctx); err == nil {
		return nil // another test process has just installed it
	}
	failed := filepath.Join(dir, "failed-"+w.pkg)
	if fresh(failed, 10*time.Minute) {
		why, _ := os.ReadFile(failed)
		return fmt.Errorf("installing %s failed a moment ago: %s", w.pkg, why)
	}
	updated := filepath.Join(dir, "updated")
	if !fresh(updated, time.Hour) {
		if err := run(ctx, "apt-get", "update"); err == nil {
			_ = os.WriteFile(updated, nil, 0o600)
		}
		// A failed update is no reason not to try: the lists at hand may do.
	}
	err = run(ctx, "apt-get", "install", "-y", "--no-install-recommends",
		"-o", "Dpkg::Lock::Timeout=60", w.pkg)
	if err != nil {
		_ = os.WriteFile(failed, []byte(err.Error()), 0o600)
		return fmt.Errorf("installing %s: %w", w.pkg, err)
	}
	_ = os.Remove(failed)
	return nil
}

func fresh(file string, age time.Duration) bool {
	st, err := os.Stat(file)
	return err == nil && time.Since(st.ModTime()) < age
}

// lock takes a lock that other processes see and that dies with this one. It
// asks again and again, because a wait in the kernel has no deadline.
func lock(ctx context.Context, file string) (func(), error) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = f.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			_ = f.Close()
			return nil, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			_ = f.Close()
			return nil, ctx.Err()
		}
	}
}
