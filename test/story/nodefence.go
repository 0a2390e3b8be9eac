package story

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"text/template"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/yaml"

	"github.com/nodefence/nodefence/config"
	"github.com/nodefence/nodefence/test/controlplane"
)

const namespace = "nodefence"

// buildNodefence builds the binary that the stories run, from the tree.
func buildNodefence(ctx context.Context, progress io.Writer) (string, error) {
	root, err := controlplane.Root()
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "nodefence-bin-")
	if err != nil {
		return "", err
	}
	fmt.Fprintln(progress, "Building nodefence (a minute or two the first time) ...")
	binary := filepath.Join(dir, "nodefence")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-o", binary, "./cmd/nodefence")
	cmd.Dir = root
	// An interrupted build leaves its work folder: it lies in ours.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOTMPDIR="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = 10 * time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		_ = os.RemoveAll(dir)
		return "", fmt.Errorf("build nodefence: %w\n%s", err, out)
	}
	return binary, nil
}

// install applies what an operator applies, file by file, and the Secret with
// the BMCs' credentials.
func (w *World) install(ctx context.Context) error {
	for _, name := range []string{"crd/nodefence.io_fencingcases.yaml", "rbac/namespace.yaml", "rbac/rbac.yaml"} {
		body, err := config.Manifests.ReadFile(name)
		if err != nil {
			return err
		}
		if err := w.apply(ctx, body); err != nil {
			return fmt.Errorf("apply config/%s: %w", name, err)
		}
	}
	_, err := w.Cluster.Admin.CoreV1().Secrets(namespace).Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "bmc"},
		StringData: map[string]string{"username": userName, "password": password},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create the BMCs' Secret: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		_, err := w.cases().List(ctx, metav1.ListOptions{})
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for the custom resource: %w", err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// apply creates each object of a YAML file.
func (w *World) apply(ctx context.Context, body []byte) error {
	client, err := discovery.NewDiscoveryClientForConfig(w.Cluster.RESTConfig())
	if err != nil {
		return err
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client))
	for _, doc := range bytes.Split(body, []byte("\n---\n")) {
		var u unstructured.Unstructured
		if err := yaml.Unmarshal(doc, &u.Object); err != nil {
			return err
		}
		if len(u.Object) == 0 {
			continue
		}
		gvk := u.GroupVersionKind()
		mapping, err := mapper.RESTMapping(schema.GroupKind{Group: gvk.Group, Kind: gvk.Kind}, gvk.Version)
		if err != nil {
			return err
		}
		_, err = w.dynamic.Resource(mapping.Resource).Namespace(u.GetNamespace()).Create(ctx, &u, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("%s %s: %w", gvk.Kind, u.GetName(), err)
		}
	}
	return nil
}

var configTemplate = template.Must(template.New("").Parse(`apiVersion: nodefence.io/v1alpha1
kind: Configuration
providers:
{{- range $driver, $_ := .Drivers }}
- name: {{ $driver }}
  driver: {{ $driver }}
  credentials: {secret: {namespace: nodefence, name: bmc}}
{{- end }}
groups:
{{- range $driver, $nodes := .Drivers }}
- name: {{ $driver }}-machines
  selector: {matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [{{ range $nodes }}{{ .Name }}, {{ end }}]}]}
  provider: {{ $driver }}
  mode: {{ $.Mode }}
  machine:
    nodes:
{{- range $nodes }}
      {{ .Name }}: {address: "{{ .Address }}"{{ if .Fingerprint }}, fingerprint: "{{ .Fingerprint }}"{{ end }}}
{{- end }}
{{- with $.Timing }}
  proof: {readings: 3, hold: {{ .Hold }}, holdAfterPowerOff: {{ .HoldAfterPowerOff }}, freshness: {{ .Freshness }}, interval: {{ .Interval }}, timeout: {{ .ReadTimeout }}, suspectAfter: {{ .SuspectAfter }}}
  alerts: {holdAfter: {{ .HoldAfter }}, every: 5m}
  powerOff: {after: {{ .PowerOffAfter }}, timeout: {{ .PowerOffTimeout }}, retryAfter: {{ .PowerOffRetry }}, attempts: 3}
  untaint: {stableFor: {{ .StableFor }}, maxWait: {{ .MaxWait }}}
{{- end }}
{{- end }}
{{- if .Fleet }}
- name: fleet
  selector: {matchLabels: {lab.nodefence.io/fleet: "true"}}
  provider: redfish
  machine: {template: "https://{{ "{{ .Name }}" }}.bmc.invalid"}
  powerOff: {timeout: {{ .Timing.PowerOffTimeout }}}
{{- end }}
budget: {maxConcurrent: 1, maxUnhealthy: 50%}
`))

// writeConfig writes the configuration as an editor does: a new file, moved into
// place.
func (w *World) writeConfig() error {
	type node struct{ Name, Address, Fingerprint string }
	drivers := map[string][]node{}
	for name, n := range w.Nodes {
		e := node{Name: name, Address: n.BMC.Address()}
		if r, ok := n.BMC.(*redfishBMC); ok {
			e.Fingerprint = r.Fingerprint()
		}
		drivers[n.BMC.Driver()] = append(drivers[n.BMC.Driver()], e)
	}
	var b bytes.Buffer
	if err := configTemplate.Execute(&b, map[string]any{"Drivers": drivers, "Mode": w.mode, "Timing": w.Timing, "Fleet": w.fleet != nil}); err != nil {
		return err
	}
	if err := os.WriteFile(w.configFile()+".new", b.Bytes(), 0o600); err != nil {
		return err
	}
	return os.Rename(w.configFile()+".new", w.configFile())
}

func (w *World) configFile() string { return filepath.Join(w.Cluster.Dir, "nodefence.yaml") }

// WriteConfig writes the configuration with a mode, and gives its path.
func (w *World) WriteConfig(mode string) (string, error) {
	w.mode = mode
	return w.configFile(), w.writeConfig()
}

// SetMode changes the configuration file under the running controller.
func (w *World) SetMode(mode string) error {
	w.mode = mode
	w.Timeline.Add("operator", "sets mode: %s in the configuration file", mode)
	return w.writeConfig()
}

// StartNodefence starts the controller as a pod of its service account would be.
func (w *World) StartNodefence(ctx context.Context) error {
	if err := w.writeConfig(); err != nil {
		return err
	}
	cfg, err := w.Cluster.ServiceAccountConfig(ctx, namespace, "nodefence")
	if err != nil {
		return err
	}
	kubeconfig := filepath.Join(w.Cluster.Dir, "nodefence.kubeconfig")
	if err := controlplane.WriteKubeconfig(cfg, kubeconfig); err != nil {
		return err
	}
	if w.listen == "" {
		l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it does not block
		if err != nil {
			return err
		}
		w.listen = l.Addr().String()
		_ = l.Close() // it is given to nodefence
	}
	t := w.Timing
	w.nodefence, err = controlplane.StartProcess(w.Cluster.Dir, "nodefence", nil, w.binary, "controller",
		"--config", w.configFile(), "--kubeconfig", kubeconfig, "--namespace", namespace, "--listen", w.listen, "--identity", "story",
		"--leader-lease", t.LeaderLease.String(), "--leader-renew-deadline", t.LeaderRenew.String(), "--leader-retry", t.LeaderRetry.String())
	if err != nil {
		return err
	}
	return nil
}

// KillNodefence ends the controller without warning.
func (w *World) KillNodefence() {
	w.Timeline.Add("operator", "kills nodefence (SIGKILL)")
	w.nodefence.Kill()
}

// MetricsURL is where the controller serves its metrics.
func (w *World) MetricsURL() string { return "http://" + w.listen + "/metrics" }

// followLog turns the controller's log into lines of the timeline.
func (w *World) followLog(ctx context.Context) {
	path := filepath.Join(w.Cluster.Dir, "nodefence.log")
	var offset int64
	for {
		offset = w.readLog(path, offset)
		select {
		case <-ctx.Done():
			w.readLog(path, offset)
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (w *World) readLog(path string, offset int64) int64 {
	f, err := os.Open(path)
	if err != nil {
		return offset // not started yet
	}
	defer f.Close()
	if _, err := f.Seek(offset, io.SeekStart); err != nil {
		return offset
	}
	r := bufio.NewReader(f)
	for {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return offset // half a line is read again
		}
		offset += int64(len(line))
		var l struct {
			Time                                  time.Time
			Level, Msg, Node, Case, Reason, Error string
		}
		if json.Unmarshal(line, &l) != nil {
			continue
		}
		switch {
		case l.Case != "" && l.Reason != "":
			w.Timeline.AddAt(l.Time, "nodefence", "%s: %s: %s", l.Node, l.Reason, l.Msg)
		case l.Level == "error", l.Level == "warn":
			w.Timeline.AddAt(l.Time, "nodefence", "%s: %s %s", l.Level, l.Msg, l.Error)
		}
	}
}
