package nodefence

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/nodefence/nodefence/controller"
)

// pages are the documents that people read.
func pages(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md"} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			body, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			out[name] = string(body)
		}
	}
	if len(out) < 5 {
		t.Fatalf("only %d pages", len(out))
	}
	return out
}

var link = regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)

func TestLinks(t *testing.T) {
	for name, body := range pages(t) {
		for _, m := range link.FindAllStringSubmatch(body, -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(name), m[1])); err != nil {
				t.Errorf("%s links to %s, which is not there", name, m[1])
			}
		}
	}
}

// descriptions collects what is registered.
type descriptions struct {
	prometheus.Registerer
	found []*prometheus.Desc
}

func (d *descriptions) Register(c prometheus.Collector) error {
	descs := make(chan *prometheus.Desc, 100)
	c.Describe(descs)
	close(descs)
	for desc := range descs {
		d.found = append(d.found, desc)
	}
	return nil
}

var described = regexp.MustCompile(`fqName: "([^"]+)", help: "([^"]+)"`)

// TestMetricsAreDocumented: the table names each metric with its own help.
func TestMetricsAreDocumented(t *testing.T) {
	var d descriptions
	if _, err := controller.NewMetrics(&d); err != nil {
		t.Fatal(err)
	}
	if err := controller.RegisterClientMetrics(&d); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, desc := range d.found {
		m := described.FindStringSubmatch(desc.String())
		if m == nil {
			t.Fatalf("no name and help in %s", desc)
		}
		row := regexp.MustCompile("(?m)^\\| `" + m[1] + "` \\|.*" + regexp.QuoteMeta(strings.TrimSuffix(m[2], ".")))
		if !row.Match(page) {
			t.Errorf("docs/metrics.md lacks a row for `%s`: %s", m[1], m[2])
		}
	}
}
