package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nodefence/nodefence/test/lab"
	"github.com/nodefence/nodefence/test/lab/redfishbmc"
)

// TestCheckOfAMachine asks a real Redfish service: exit status 0 only for the
// right machine, and nothing is changed.
func TestCheckOfAMachine(t *testing.T) {
	const uuid, other = "4c4c4544-0039-5910-804a-b9c04f4c3632", "4c4c4544-0039-5910-804a-b9c04f4c3699"
	m := lab.New(lab.Config{Name: "m", UUID: lab.MustUUID(uuid), Serial: "ABC1234", Running: true})
	t.Cleanup(m.Close)
	bmc, err := redfishbmc.Start(redfishbmc.Config{Systems: []redfishbmc.System{{Machine: m}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = bmc.Close() })
	account := redfishbmc.DefaultAccounts()[2] // one that may only read
	cfg := file(t, "nodefence.yaml", `apiVersion: nodefence.io/v1alpha1
kind: Configuration
providers:
- name: bmcs
  driver: redfish
  credentials: {file: `+file(t, "credentials.yaml", "username: "+account.Name+"\npassword: "+account.Password+"\n")+`}
  tls: {caFile: `+file(t, "ca.pem", string(bmc.CAPEM()))+`}
groups:
- {name: all, selector: {}, provider: bmcs, mode: Fence, machine: {nodes: {node-1: {address: "`+bmc.Addr()+`"}}}}
`)
	for nodeUUID, want := range map[string]checkResult{
		uuid:  {Fenceable: true, Reachable: true, Identity: "Proved", Power: "On"},
		other: {Reachable: true, Identity: "Mismatch", Power: "On"},
		"":    {Reachable: true, Identity: "Unproved", Power: "On"},
	} {
		out, errs, err := run(t, "check", "--config", cfg, "--kubeconfig", kubeconfigFor(t, oneNode(t, nodeUUID).URL), "-o", "json")
		var got []checkResult
		if err := json.Unmarshal([]byte(out), &got); err != nil || len(got) != 1 {
			t.Fatalf("%v\n%s%s", err, out, errs)
		}
		wantStatus := exitFindings
		if want.Fenceable {
			wantStatus = 0
		}
		r := got[0]
		if status(err) != wantStatus || r.Fenceable != want.Fenceable || r.Reachable != want.Reachable || r.Identity != want.Identity || r.Power != want.Power || r.Address != bmc.Addr() {
			t.Errorf("UUID %q: status %d\n%s", nodeUUID, status(err), out)
		}
		if strings.Contains(out+errs, account.Password) {
			t.Errorf("the password shows:\n%s%s", out, errs)
		}
	}
	for _, r := range bmc.Requests() {
		if strings.Contains(r.Path, "Reset") {
			t.Errorf("check sent %s %s", r.Method, r.Path)
		}
	}
}

func oneNode(t *testing.T, uuid string) *httptest.Server {
	t.Helper()
	n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}
	n.Status.NodeInfo.SystemUUID = uuid
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if tellsVersion(w, r) {
			return
		}
		if r.Method != http.MethodGet {
			t.Errorf("check sent %s %s", r.Method, r.URL)
		}
		if err := json.NewEncoder(w).Encode(corev1.NodeList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "NodeList"}, Items: []corev1.Node{n}}); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	return server
}
