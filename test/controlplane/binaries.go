package controlplane

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// KubernetesVersion is what the nested module binaries builds.
const KubernetesVersion = "v1.37.2"

// Binaries are the paths of the built programs.
type Binaries struct {
	Dir                                           string
	Etcd, APIServer, ControllerManager, Scheduler string
	Kubectl, CSIAttacher, LabCSI, HollowNode      string
}

// packages are built in this order: the one that takes longest first, so that the
// estimate is honest early.
var packages = []struct{ binary, path string }{
	{"kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"},
	{"kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager"},
	{"kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler"},
	{"server", "go.etcd.io/etcd/server/v3"},
	{"kubectl", "k8s.io/kubernetes/cmd/kubectl"},
	{"csi-attacher", "github.com/kubernetes-csi/external-attacher/v4/cmd/csi-attacher"},
	{"hollow-node", "./cmd/hollow-node"},
	{"lab-csi", "./cmd/lab-csi"},
}

func in(dir string) Binaries {
	at := func(name string) string { return filepath.Join(dir, name) }
	return Binaries{
		Dir: dir, Etcd: at("server"), APIServer: at("kube-apiserver"), ControllerManager: at("kube-controller-manager"),
		Scheduler: at("kube-scheduler"), Kubectl: at("kubectl"), CSIAttacher: at("csi-attacher"), LabCSI: at("lab-csi"), HollowNode: at("hollow-node"),
	}
}

// CacheDir is where built programs are kept: $NODEFENCE_CACHE, or nodefence in
// the user's cache directory.
func CacheDir() (string, error) {
	if dir := os.Getenv("NODEFENCE_CACHE"); dir != "" {
		return dir, nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find a cache directory (set NODEFENCE_CACHE): %w", err)
	}
	return filepath.Join(dir, "nodefence"), nil
}

// EnsureBinaries builds what is not in the cache yet, and tells progress of it.
// The cache's key is everything that the programs are made from.
func EnsureBinaries(ctx context.Context, progress io.Writer) (Binaries, error) {
	module, err := moduleDir()
	if err != nil {
		return Binaries{}, err
	}
	key, err := cacheKey(module)
	if err != nil {
		return Binaries{}, err
	}
	cache, err := CacheDir()
	if err != nil {
		return Binaries{}, err
	}
	dir := filepath.Join(cache, "controlplane", key)
	if complete(dir) {
		return in(dir), nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return Binaries{}, err
	}
	unlock, err := lock(ctx, dir+".lock", progress)
	if err != nil {
		return Binaries{}, err
	}
	defer unlock()
	if complete(dir) {
		return in(dir), nil // another builder was first
	}
	return in(dir), build(ctx, module, dir, progress)
}

func complete(dir string) bool {
	for _, p := range packages {
		if info, err := os.Stat(filepath.Join(dir, p.binary)); err != nil || info.Size() == 0 {
			return false
		}
	}
	return true
}

// build makes all programs in a directory beside dir and moves it there when all
// is done, so that a build that was cut off leaves nothing half made.
func build(ctx context.Context, module, dir string, progress io.Writer) error {
	work, err := os.MkdirTemp(filepath.Dir(dir), ".building-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	staging := filepath.Join(work, "bin")
	if err := os.Mkdir(staging, 0o755); err != nil {
		return err
	}
	begin := time.Now()
	fmt.Fprintf(progress, "Building Kubernetes %s, etcd and the test nodes from Go modules into %s.\n", KubernetesVersion, dir)
	fmt.Fprintln(progress, "The first time this takes about 10 to 15 minutes on two cores; afterwards it is cached.")
	for i, p := range packages {
		fmt.Fprintf(progress, "  [%d/%d] %s ...\n", i+1, len(packages), p.binary)
		if err := goBuild(ctx, module, staging, work, p.path, begin, progress); err != nil {
			return fmt.Errorf("build %s: %w", p.binary, err)
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.Rename(staging, dir); err != nil {
		return err
	}
	fmt.Fprintf(progress, "  done in %s\n", time.Since(begin).Round(time.Second))
	return nil
}

func goBuild(ctx context.Context, module, out, work, pkg string, begin time.Time, progress io.Writer) error {
	version := strings.Split(strings.TrimPrefix(KubernetesVersion, "v"), ".")
	const base = "k8s.io/component-base/version."
	flags := fmt.Sprintf("-s -w -X %sgitVersion=%s -X %sgitMajor=%s -X %sgitMinor=%s", base, KubernetesVersion, base, version[0], base, version[1])
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", flags, "-o", out+"/", pkg)
	cmd.Dir = module
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=", "GOTMPDIR="+work)
	// A group of its own: the compiler's children end with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = 10 * time.Second
	var errs strings.Builder
	cmd.Stdout, cmd.Stderr = &errs, &errs
	done := make(chan error, 1)
	go func() { done <- cmd.Run() }()
	tick := time.NewTicker(15 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			fmt.Fprintf(progress, "        %s so far\n", time.Since(begin).Round(time.Second))
		case err := <-done:
			if err != nil && ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err != nil {
				return fmt.Errorf("%w\n%s", err, tail(errs.String(), 30))
			}
			return nil
		}
	}
}

// moduleDir finds the nested module by the source tree around the working
// directory.
func moduleDir() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		candidate := filepath.Join(dir, "test", "controlplane", "binaries")
		if _, err := os.Stat(filepath.Join(candidate, "go.mod")); err == nil {
			return candidate, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("find test/controlplane/binaries: run inside nodefence's source tree")
		}
		dir = parent
	}
}

// Root is the top of the source tree.
func Root() (string, error) {
	module, err := moduleDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(module, "..", "..", ".."), nil
}

func cacheKey(module string) (string, error) {
	h := sha256.New()
	fmt.Fprintln(h, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	err := filepath.WalkDir(module, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(module, path)
		if err != nil {
			return err
		}
		body, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		fmt.Fprintf(h, "%s %d\n%s\n", rel, len(body), body)
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("read %s: %w", module, err)
	}
	return fmt.Sprintf("%s-%x", KubernetesVersion, h.Sum(nil)[:6]), nil
}

// lock waits until no other builder works on the same key.
func lock(ctx context.Context, path string, progress io.Writer) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	told := false
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = f.Close() }, nil // closing gives the lock back
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			_ = f.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		if !told {
			fmt.Fprintln(progress, "Another process builds the control plane; waiting for it ...")
			told = true
		}
		select {
		case <-ctx.Done():
			_ = f.Close()
			return nil, context.Cause(ctx)
		case <-time.After(time.Second):
		}
	}
}

func tail(text string, lines int) string {
	all := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
