package v1alpha1_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

const crdFile = "../crd/nodefence.io_fencingcases.yaml"

// version is the part of the custom resource that tests look at.
type version struct {
	AdditionalPrinterColumns []struct{ Name string }
	Schema                   struct {
		OpenAPIV3Schema map[string]any `json:"openAPIV3Schema"`
	}
}

func readCRD(t *testing.T) version {
	t.Helper()
	data, err := os.ReadFile(crdFile)
	if err != nil {
		t.Fatal(err)
	}
	var crd struct{ Spec struct{ Versions []version } }
	if err := yaml.Unmarshal(data, &crd); err != nil {
		t.Fatal(err)
	}
	return crd.Spec.Versions[0]
}

func columns(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, c := range readCRD(t).AdditionalPrinterColumns {
		names = append(names, c.Name)
	}
	return names
}

// schemaAt gives the schema of a field of the custom resource.
func schemaAt(t *testing.T, path ...string) map[string]any {
	t.Helper()
	at := readCRD(t).Schema.OpenAPIV3Schema
	for _, name := range path {
		next, _ := at["properties"].(map[string]any)
		if name == "items" {
			next = at
		}
		var ok bool
		if at, ok = next[name].(map[string]any); !ok {
			t.Fatalf("the schema has no %s in %q", name, path)
		}
	}
	return at
}

// TestSchemaKeepsNothingForeign: the API server drops what the types do not know.
func TestSchemaKeepsNothingForeign(t *testing.T) {
	data, err := os.ReadFile(crdFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, loose := range []string{"x-kubernetes-preserve-unknown-fields", "additionalProperties", "x-kubernetes-embedded-resource"} {
		if bytes.Contains(data, []byte(loose)) {
			t.Errorf("the schema has %s", loose)
		}
	}
}

// TestGeneratedFilesAreCurrent runs what `make generate` runs, into a directory of
// its own.
func TestGeneratedFilesAreCurrent(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: controller-gen has to be built")
	}
	out := t.TempDir()
	for _, args := range [][]string{
		{"object", "paths=./config/v1alpha1", "output:object:dir=" + out},
		{"crd", "paths=./config/v1alpha1", "output:crd:dir=" + out},
	} {
		cmd := exec.CommandContext(t.Context(), "go", append([]string{"run", "sigs.k8s.io/controller-tools/cmd/controller-gen@v0.23.0"}, args...)...)
		cmd.Dir = "../.."
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, text)
		}
	}
	for _, file := range []string{"zz_generated.deepcopy.go", crdFile} {
		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(filepath.Join(out, filepath.Base(file)))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(string(want), string(got)); d != "" {
			t.Errorf("%s is not what `make generate` makes now: -want +got\n%s", file, d)
		}
	}
	made, err := os.ReadDir(out)
	if err != nil || len(made) != 2 {
		t.Errorf("controller-gen makes %d files, and 2 are compared: %v", len(made), err)
	}
}

// TestPageIsComplete: docs/cases.md explains every word that a case shows.
func TestPageIsComplete(t *testing.T) {
	page, err := os.ReadFile("../../docs/cases.md")
	if err != nil {
		t.Fatal(err)
	}
	var words []string
	for _, at := range [][]string{{"status", "state"}, {"status", "verdict", "kind"}} {
		for _, v := range schemaAt(t, at...)["enum"].([]any) {
			words = append(words, "| `"+v.(string)+"` |")
		}
	}
	for _, column := range columns(t) {
		words = append(words, "| "+column+" |")
	}
	for _, w := range words {
		if !bytes.Contains(page, []byte("\n"+w)) {
			t.Errorf("docs/cases.md has no row %s", w)
		}
	}
	if len(words) < 8+7+8 {
		t.Errorf("only %d words: %q", len(words), words)
	}
}
