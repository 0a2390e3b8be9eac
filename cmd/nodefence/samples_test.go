package main

import (
	"encoding/pem"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/nodefence/nodefence/config"
	"github.com/nodefence/nodefence/fencing"
	"github.com/nodefence/nodefence/providers/all"
)

// TestSamples holds the files that people copy to what this binary accepts.
func TestSamples(t *testing.T) {
	files, err := filepath.Glob("../../config/samples/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, file := range files {
		name := filepath.Base(file)
		names = append(names, name)
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := config.Parse(data, all.Registry()); err != nil {
				t.Errorf("refused:\n%v", err)
			}
			// What is commented out is copied by people, too.
			if _, err := config.Parse([]byte(withOffers(t, string(data))), all.Registry()); err != nil {
				t.Errorf("refused with its commented lines:\n%v", err)
			}
		})
	}
	if want := []string{"bmc.yaml", "ipmi.yaml", "mixed.yaml", "observe.yaml", "redfish.yaml"}; !slices.Equal(names, want) {
		t.Errorf("samples %q, want %q", names, want)
	}
}

// withOffers takes the comment signs off the commented lines that are YAML.
func withOffers(t *testing.T, text string) string {
	t.Helper()
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		before, offer, ok := strings.Cut(line, "# ")
		word, _, isField := strings.Cut(strings.TrimSpace(offer), ":")
		if ok && strings.TrimSpace(before) == "" && isField && slices.Contains([]string{"tls", "caFile", "options", "basicAuth"}, word) {
			lines[i] = before + offer
		}
	}
	return withCA(t, strings.Join(lines, "\n"))
}

// withCA lets a text name a CA file that is there.
func withCA(t *testing.T, text string) string {
	t.Helper()
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(text, "/etc/nodefence/bmc-ca.pem", file)
}

// TestObserveSampleChangesNothing: people run it on clusters that matter to them.
func TestObserveSampleChangesNothing(t *testing.T) {
	c, err := config.Load("../../config/samples/observe.yaml", all.Registry())
	if err != nil {
		t.Fatal(err)
	}
	for i := range c.Groups {
		if mode := c.Groups[i].Policy().Mode; mode != fencing.Observe {
			t.Errorf("group %s has mode %s", c.Groups[i].Name, mode)
		}
	}
}

// TestDocumentedYAML parses every YAML block of the pages for operators.
func TestDocumentedYAML(t *testing.T) {
	for page, atLeast := range map[string]int{"README.md": 0, "docs/cases.md": 0, "docs/configuration.md": 10} {
		data, err := os.ReadFile("../../" + page)
		if err != nil {
			t.Fatal(err)
		}
		blocks := yamlBlocks(string(data))
		if len(blocks) < atLeast {
			t.Errorf("%s has %d YAML blocks, fewer than %d: are they marked as yaml?", page, len(blocks), atLeast)
		}
		for _, block := range blocks {
			checkDocumented(t, page, block)
		}
	}
}

var yamlBlock = regexp.MustCompile("(?ms)^( *)```yaml\n(.*?)\n *```$")

// yamlBlocks finds the blocks, those in lists too.
func yamlBlocks(page string) []string {
	var blocks []string
	for _, m := range yamlBlock.FindAllStringSubmatch(page, -1) {
		blocks = append(blocks, strings.ReplaceAll("\n"+m[2], "\n"+m[1], "\n"))
	}
	return blocks
}

// documentedBase is what a page's fragment is a part of.
const documentedBase = `
apiVersion: nodefence.io/v1alpha1
kind: Configuration
providers:
- {name: bmcs, driver: redfish, credentials: {file: /credentials.yaml}}
groups:
- {name: workers, selector: {}, provider: bmcs, machine: {annotation: nodefence.io/bmc-address}}
`

// checkDocumented parses a whole configuration as it is, a Secret as such, and a
// fragment of a configuration in its place: at the top, in a group or in a
// provider, whichever has such a field.
func checkDocumented(t *testing.T, page, block string) {
	t.Helper()
	var fields map[string]any
	if err := yaml.UnmarshalStrict([]byte(block), &fields); err != nil {
		t.Errorf("%s: %v\n%s", page, err, block)
		return
	}
	switch fields["kind"] {
	case "Secret":
		var s corev1.Secret
		if err := yaml.UnmarshalStrict([]byte(block), &s); err != nil || s.StringData["username"] == "" || s.StringData["password"] == "" {
			t.Errorf("%s: no Secret with username and password: %v\n%s", page, err, block)
		}
		return
	case nil:
		block = completed(t, fields)
	}
	if _, err := config.Parse([]byte(withCA(t, block)), all.Registry()); err != nil {
		t.Errorf("%s is refused:\n%v\n%s", page, err, block)
	}
}

func completed(t *testing.T, fragment map[string]any) string {
	t.Helper()
	var whole map[string]any
	if err := yaml.Unmarshal([]byte(documentedBase), &whole); err != nil {
		t.Fatal(err)
	}
	group := whole["groups"].([]any)[0].(map[string]any)
	provider := whole["providers"].([]any)[0].(map[string]any)
	for name, value := range fragment {
		switch name {
		case "providers", "groups", "budget":
			whole[name] = value
		case "driver", "credentials", "tls", "options":
			provider[name] = value
		default:
			group[name] = value
		}
	}
	out, err := yaml.Marshal(whole)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// TestSamplesAreDocumented keeps the list of samples on the page complete.
func TestSamplesAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, driver := range slices.Sorted(maps.Keys(all.Registry())) {
		if link := "../config/samples/" + driver + ".yaml"; !strings.Contains(string(page), link) {
			t.Errorf("docs/configuration.md has no link to %s", link)
		}
	}
}
