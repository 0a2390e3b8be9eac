// Package nodefence holds the tests of the house rules: who may import whom, and
// what the pure packages may not touch. No code lives here.
package nodefence

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/nodefence/nodefence"

// allowed says which packages of ours a package may import. A trailing /... stands
// for everything below. What is not named here may import nothing of ours.
var allowed = map[string][]string{
	"fencing":                       {},
	"fencing/scenario":              {"fencing"},
	"providers":                     {"fencing"},
	"providers/all":                 {"providers", "providers/..."},
	"providers/providertest":        {"providers", "fencing"},
	"providers/providertest/labend": {"providers/providertest", "fencing", "test/lab", "test/lab/..."},
	"providers/bmc":                 {"providers", "fencing"},
	"providers/ipmi":                {"providers", "fencing"},
	"providers/redfish":             {"providers", "fencing"},
	"config":                        {"providers", "fencing"},
	"config/v1alpha1":               {"fencing"},
	"controller":                    {"config", "config/v1alpha1", "providers", "fencing"},
	"cmd/nodefence":                 {"config", "config/v1alpha1", "controller", "fencing", "fencing/scenario", "providers", "providers/all"},
	"test/controlplane":             {},
	"test/peers":                    {},
	"test/lab":                      {},
	"test/lab/ipmibmc":              {"test/lab"},
	"test/lab/ipmisim":              {"test/lab", "test/lab/ipmibmc"},
	"test/lab/redfishbmc":           {"test/lab"},
	"test/story":                    {"config", "config/v1alpha1", "test/controlplane", "test/lab", "test/lab/..."},
	"test/demo":                     {"test/story"},
	"test/e2e":                      {"test/story", "test/controlplane"},
	"test/runtests":                 {"test/controlplane"},
	"test/mutations":                {"test/controlplane"},
}

// outside says which packages of others a package may import, where that is
// limited; each stands for everything below it, too.
var outside = map[string][]string{
	"fencing":          {},
	"fencing/scenario": {},
	"providers":        {"github.com/hashicorp/go-retryablehttp"},
	"test/lab":         {},
}

func TestWhoImportsWhom(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", "{{.ImportPath}} {{join .Imports \" \"}}", "./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	seen := map[string]bool{}
	for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		fields := strings.Fields(line)
		pkg := strings.TrimPrefix(strings.TrimPrefix(fields[0], module), "/")
		if pkg == "" {
			continue
		}
		seen[pkg] = true
		ours, ok := allowed[pkg]
		if !ok {
			t.Errorf("package %s has no rule: say in this test what it may import", pkg)
			continue
		}
		for _, imported := range fields[1:] {
			if name, ok := strings.CutPrefix(imported, module+"/"); ok {
				if !covered(ours, name) {
					t.Errorf("package %s must not import %s", pkg, name)
				}
				continue
			}
			limits, limited := outside[pkg]
			standard := !strings.Contains(strings.Split(imported, "/")[0], ".")
			if limited && !standard && !slices.ContainsFunc(limits, func(l string) bool { return imported == l || strings.HasPrefix(imported, l+"/") }) {
				t.Errorf("package %s must not import %s", pkg, imported)
			}
		}
	}
	for pkg := range allowed {
		if !seen[pkg] {
			t.Errorf("the rule for package %s is about no package", pkg)
		}
	}
}

func covered(rules []string, name string) bool {
	return slices.ContainsFunc(rules, func(r string) bool {
		below, all := strings.CutSuffix(r, "/...")
		return r == name || all && strings.HasPrefix(name, below+"/")
	})
}

// impure are the standard packages, and the functions of package time, that a
// pure package may not use: time enters as an argument, chance not at all.
var (
	impurePackages = []string{"context", "io/fs", "math/rand", "math/rand/v2", "net", "net/http", "os", "os/exec", "sync", "syscall", "crypto/rand", "unsafe", "log", "log/slog"}
	impureTime     = []string{"Now", "Sleep", "After", "AfterFunc", "Since", "Until", "Tick", "NewTimer", "NewTicker"}
)

func TestFencingIsPure(t *testing.T) {
	files, err := filepath.Glob("fencing/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files of package fencing: %v", err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range f.Imports {
			if path := strings.Trim(i.Path.Value, `"`); slices.Contains(impurePackages, path) {
				t.Errorf("%s: package fencing must not import %s", set.Position(i.Pos()), path)
			}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && x.Name == "time" && slices.Contains(impureTime, n.Sel.Name) {
					t.Errorf("%s: package fencing must not use time.%s", set.Position(n.Pos()), n.Sel.Name)
				}
			case *ast.GoStmt:
				t.Errorf("%s: package fencing must not start goroutines", set.Position(n.Pos()))
			}
			return true
		})
	}
}

// TestSize holds the project to its own taste: files that fit in a head.
func TestSize(t *testing.T) {
	const most = 400
	err := filepath.WalkDir(".", func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == ".git" || d.Name() == "bin") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasPrefix(d.Name(), "zz_generated") {
			return nil
		}
		body, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if lines := strings.Count(string(body), "\n"); lines > most {
			t.Errorf("%s has %d lines, more than %d", path, lines, most)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
