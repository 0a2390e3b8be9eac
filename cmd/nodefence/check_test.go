package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// canary is a password; wherever it shows, something is wrong (S13).
const canary = "CANARY-Pa55word"

const checkedConfig = `apiVersion: nodefence.io/v1alpha1
kind: Configuration
providers:
- name: bmcs
  driver: redfish
  credentials:
    secret: {namespace: fence, name: SECRET}
  tls: {insecureSkipVerify: true}
groups:
- name: workers
  selector: {matchLabels: {role: worker}}
  provider: bmcs
  machine: {annotation: example.com/bmc}
- name: databases
  selector: {matchLabels: {pool: db}}
  provider: bmcs
  machine: {annotation: example.com/bmc}
- name: forgotten
  selector: {matchLabels: {pool: nowhere}}
  provider: bmcs
  machine: {annotation: example.com/bmc}
`

func configWith(t *testing.T, secret string) string {
	t.Helper()
	return file(t, "nodefence.yaml", strings.Replace(checkedConfig, "SECRET", secret, 1))
}

func TestCheckFileOnly(t *testing.T) {
	good := configWith(t, "good")
	out, errs, err := run(t, "check", "--config", good, "--file-only", "--kubeconfig", "/nonexistent")
	if err != nil || out != "" || errs != "configuration "+good+" is valid\n" {
		t.Errorf("good file: %q, %q, %v", out, errs, err)
	}
	bad := file(t, "bad.yaml", strings.Replace(checkedConfig, "credentials:", "credentials:\n    password: "+canary, 1)+"  mode: fence\n")
	for _, output := range []string{"table", "json"} {
		out, errs, err = run(t, "check", "--config", bad, "--file-only", "-o", output)
		if status(err) != exitFindings || out != "" {
			t.Errorf("bad file: %v, %q", err, out)
		}
		for _, want := range []string{bad + " is not valid", "line 7: providers[0].credentials.password: unknown field", `groups[2].mode: "fence" is no mode`, `did you mean "Fence"?`} {
			if !strings.Contains(errs, want) {
				t.Errorf("bad file: no %q in\n%s", want, errs)
			}
		}
		if strings.Contains(errs, canary) {
			t.Errorf("a password shows:\n%s", errs)
		}
	}
	if _, _, err := run(t, "check", "--config", "/nonexistent/nodefence.yaml", "--file-only"); status(err) != exitFailure || !strings.Contains(err.Error(), "/nonexistent/nodefence.yaml") {
		t.Errorf("no file: %v", err)
	}
}

// TestCheckWithoutACluster: the check itself fails, which is not the same as a
// finding.
func TestCheckWithoutACluster(t *testing.T) {
	good := configWith(t, "good")
	_, errs, err := run(t, "check", "--config", good, "--kubeconfig", "/nonexistent/kubeconfig")
	if status(err) != exitFailure || !strings.Contains(err.Error(), "--kubeconfig") || !strings.Contains(errs, "is valid") {
		t.Errorf("no kubeconfig: %v", err)
	}
	server := httptest.NewServer(http.NotFoundHandler())
	kubeconfig := kubeconfigFor(t, server.URL)
	server.Close()
	if _, _, err := run(t, "check", "--config", good, "--kubeconfig", kubeconfig); status(err) != exitFailure || !strings.Contains(err.Error(), server.URL) {
		t.Errorf("no API server: %v", err)
	}
}

// TestCheckFindings: what cannot be fenced is told node by node, with the reason,
// and which groups and nodes have nothing to do with each other.
func TestCheckFindings(t *testing.T) {
	kubeconfig := kubeconfigFor(t, apiServer(t).URL)
	out, errs, err := run(t, "check", "--config", configWith(t, "good"), "--kubeconfig", kubeconfig, "-o", "json")
	if status(err) != exitFindings {
		t.Errorf("%v, want status %d", err, exitFindings)
	}
	for _, want := range []string{
		"warning: group forgotten selects no node\n",
		"2 of 6 nodes belong to no group and are left alone: control-1, control-2\n",
	} {
		if !strings.Contains(errs, want) {
			t.Errorf("no %q in\n%s", want, errs)
		}
	}
	var results []checkResult
	if err := json.Unmarshal([]byte(out), &results); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	want := map[string]string{
		"node-bare":        "groups[0].machine.annotation: the Node has no annotation example.com/bmc",
		"node-both":        "the groups workers (groups[0].selector) and databases (groups[1].selector) both select it",
		"node-password":    "the address must not hold a user name or a password",
		"node-unreachable": "127.0.0.1:1",
	}
	if len(results) != len(want) {
		t.Errorf("%d rows, want %d:\n%s", len(results), len(want), out)
	}
	for _, r := range results {
		if w := want[r.Node]; w == "" || !strings.Contains(r.Message, w) || r.Fenceable || r.Reachable {
			t.Errorf("%+v, want %q", r, w)
		}
		if r.Node == "node-unreachable" && (r.Group != "workers" || r.Mode != "Confirm" || r.Provider != "bmcs" || r.Driver != "redfish" || r.Failure != "Unreachable") {
			t.Errorf("%+v", r)
		}
	}
	table, _, err := run(t, "check", "--config", configWith(t, "good"), "--kubeconfig", kubeconfig)
	lines := strings.Split(strings.TrimSpace(table), "\n")
	if status(err) != exitFindings || len(lines) != 1+len(want) || !strings.HasPrefix(lines[0], "NODE") || !strings.Contains(lines[0], "FENCEABLE") {
		t.Errorf("%v\n%s", err, table)
	}
	if strings.Contains(out+errs+table, canary) {
		t.Error("a password shows")
	}
}

// TestCheckNamesTheSecret: the message says which Secret, which key, and no value.
func TestCheckNamesTheSecret(t *testing.T) {
	kubeconfig := kubeconfigFor(t, apiServer(t).URL)
	for secret, want := range map[string]string{
		"missing":     `the Secret fence/missing: read secret fence/missing: secrets "missing" not found`,
		"forbidden":   "the Secret fence/forbidden: read secret fence/forbidden: ",
		"no-password": "the Secret fence/no-password: the key password is missing",
		"empty":       "the Secret fence/empty: the key password is empty",
		"two-lines":   "the Secret fence/two-lines: the key password holds a line break",
	} {
		out, errs, err := run(t, "check", "--config", configWith(t, secret), "--kubeconfig", kubeconfig, "-o", "json")
		if status(err) != exitFindings || strings.Contains(out+errs, canary) {
			t.Errorf("%s: %v\n%s%s", secret, err, out, errs)
		}
		var results []checkResult
		if err := json.Unmarshal([]byte(out), &results); err != nil {
			t.Fatal(err)
		}
		for _, r := range results {
			if r.Node == "node-unreachable" && !strings.Contains(r.Message, want) {
				t.Errorf("%s: %q, want %q", secret, r.Message, want)
			}
		}
	}
}

func TestCheckOfAnEmptyCluster(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if tellsVersion(w, r) {
			return
		}
		if _, err := w.Write([]byte(`{"kind":"NodeList","apiVersion":"v1","items":[]}`)); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	out, errs, err := run(t, "check", "--config", configWith(t, "good"), "--kubeconfig", kubeconfigFor(t, server.URL), "-o", "json")
	if err != nil || out != "[]\n" || strings.Count(errs, "selects no node") != 3 {
		t.Errorf("%v\n%s%s", err, out, errs)
	}
}

func TestSomeOf(t *testing.T) {
	names := make([]string, 0, 25)
	for i := range 25 {
		names = append(names, fmt.Sprintf("n%02d", 24-i))
	}
	if got := someOf(names[:2]); got != "n23, n24" {
		t.Errorf("got %q", got)
	}
	if got := someOf(names); !strings.HasPrefix(got, "n00, ") || !strings.HasSuffix(got, ", n19 and 5 more") {
		t.Errorf("got %q", got)
	}
}

func kubeconfigFor(t *testing.T, server string) string {
	t.Helper()
	return file(t, "kubeconfig", `{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}], users: [{name: u, user: {}}], clusters: [{name: c, cluster: {server: "`+server+`"}}]}`)
}

// apiServer has nodes and Secrets, and nothing else.
func apiServer(t *testing.T) *httptest.Server {
	t.Helper()
	node := func(name, address string, labels ...string) corev1.Node {
		n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}}
		n.Status.NodeInfo.SystemUUID = "4c4c4544-0039-5910-804a-b9c04f4c3632"
		for i := 0; i < len(labels); i += 2 {
			n.Labels[labels[i]] = labels[i+1]
		}
		if address != "" {
			n.Annotations = map[string]string{"example.com/bmc": address}
		}
		return n
	}
	nodes := corev1.NodeList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "NodeList"}, Items: []corev1.Node{
		node("control-2", ""), node("control-1", "127.0.0.1:1"),
		node("node-unreachable", "127.0.0.1:1", "role", "worker"),
		node("node-bare", "", "role", "worker"),
		node("node-both", "127.0.0.1:1", "role", "worker", "pool", "db"),
		node("node-password", "https://root:"+canary+"@127.0.0.1:1", "pool", "db"),
	}}
	secret := func(data map[string][]byte) corev1.Secret {
		return corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, Data: data}
	}
	objects := map[string]any{
		"/api/v1/nodes":                                nodes,
		"/api/v1/namespaces/fence/secrets/good":        secret(map[string][]byte{"username": []byte("root"), "password": []byte(canary)}),
		"/api/v1/namespaces/fence/secrets/no-password": secret(map[string][]byte{"username": []byte("root"), "pasword": []byte(canary)}),
		"/api/v1/namespaces/fence/secrets/empty":       secret(map[string][]byte{"username": []byte(canary), "password": nil}),
		"/api/v1/namespaces/fence/secrets/two-lines":   secret(map[string][]byte{"username": []byte("root"), "password": []byte(canary + "\n" + canary)}),
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if tellsVersion(w, r) {
			return
		}
		o, ok := objects[r.URL.Path]
		if !ok {
			name := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
			code, reason, text := http.StatusNotFound, metav1.StatusReasonNotFound, `secrets "`+name+`" not found`
			if name == "forbidden" {
				code, reason, text = http.StatusForbidden, metav1.StatusReasonForbidden, "secrets is forbidden"
			}
			w.WriteHeader(code)
			o = metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: text}
		}
		if err := json.NewEncoder(w).Encode(o); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	return server
}

// serverVersion is what the tests' API servers call themselves.
const serverVersion = "v1.37.2"

func tellsVersion(w http.ResponseWriter, r *http.Request) bool {
	if r.URL.Path != "/version" {
		return false
	}
	_, _ = fmt.Fprintf(w, `{"major":"1","minor":"37","gitVersion":%q}`, serverVersion) // a client that is gone asks no more
	return true
}

// TestCheckOfAnOldCluster: where the taint does nothing, no mode that sets it is fine.
func TestCheckOfAnOldCluster(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/version" {
			t.Errorf("asked for %s", r.URL)
		}
		_, _ = fmt.Fprint(w, `{"major":"1","minor":"25","gitVersion":"v1.25.16"}`)
	}))
	defer server.Close()
	_, errs, err := run(t, "check", "--config", configWith(t, "good"), "--kubeconfig", kubeconfigFor(t, server.URL))
	if status(err) != exitFindings || !strings.Contains(errs, "1.26") {
		t.Errorf("%v\n%s", err, errs)
	}
}
