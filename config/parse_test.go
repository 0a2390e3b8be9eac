package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/nodefence/nodefence/fencing"
	"github.com/nodefence/nodefence/providers"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "rewrite what tests compare with")

func TestRefused(t *testing.T) {
	const name = "testdata/refused.txt"
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, _ := strings.Cut(string(text), "\n== ")
	out := head
	provider, group, _ := strings.Cut(good, "- name: workers")
	group = "- name: workers" + group
	for _, story := range strings.Split(rest, "\n== ") {
		title, story, _ := strings.Cut(story, "\n")
		file, want, ok := strings.Cut("\n"+story, "\n=>")
		if !ok {
			t.Fatalf("%s: no =>", title)
		}
		input := strings.TrimPrefix(file, "\n")
		input = strings.NewReplacer("{good}", provider, "{group}", strings.TrimSuffix(group, "\n")).Replace(input)
		_, err := Parse([]byte(input), stubRegistry())
		got := "accepted"
		if err != nil {
			got = err.Error()
		}
		t.Run(title, func(t *testing.T) {
			if want := strings.Trim(want, "\n"); got != want && !*update {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
			checkProblems(t, input, err)
		})
		out += "\n== " + title + file + "\n=>\n" + got + "\n"
	}
	if *update {
		if err := os.WriteFile(name, []byte(out), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// checkProblems holds every refusal to what an operator may expect of it.
func checkProblems(t *testing.T, input string, err error) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || len(e.Problems) == 0 {
		t.Fatalf("no *Error with problems: %v", err)
	}
	lines := strings.Count(input, "\n") + 1
	for i, p := range e.Problems {
		switch {
		case p.Message == "" || strings.Contains(p.String(), "\n"):
			t.Errorf("not one line of text: %q", p)
		case p.Line < 0 || p.Line > lines:
			t.Errorf("line %d of %d: %s", p.Line, lines, p)
		case i > 0 && p.Line < e.Problems[i-1].Line:
			t.Errorf("not in the order of lines: %s", p)
		case len(p.String()) > 2000:
			t.Errorf("%d bytes long: %s…", len(p.String()), p.String()[:100])
		}
	}
}

func TestRefusedEncodings(t *testing.T) {
	for name, c := range map[string]struct{ input, want string }{
		"latin1":     {good + "# caf\xe9\n", "line 13: the file is not UTF-8"},
		"utf16":      {"\xff\xfea\x00", "line 1: the file is not UTF-8"},
		"nul":        {good + "a: \x00\n", "line 13: the control character U+0000 is not allowed"},
		"separator":  {"a: b\u2028c\n", "line 1: the control character U+2028 is not allowed"},
		"mark":       {"a: b\n\ufeffc: d\n", "line 2: the control character U+FEFF is not allowed"},
		"huge":       {strings.Repeat("# x\n", MaxSize/4+1), fmt.Sprintf("the file has more than %d bytes", MaxSize)},
		"deep":       {good + "proof: " + strings.Repeat("[", 100_000), "line 13: is no YAML: exceeded max depth of 10000"},
		"many wrong": {good + strings.Repeat("- 5\n", 200), "and 150 more"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(c.input), stubRegistry())
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %.300q, want %q", fmt.Sprint(err), c.want)
			}
		})
	}
	mustParse(t, "\ufeff"+good)
	mustParse(t, strings.ReplaceAll(good, "\n", "\r\n"))
	mustParse(t, "---\n"+good+"...\n")
}

func TestDefaults(t *testing.T) {
	c := mustParse(t, good)
	want := fencing.DefaultPolicy()
	want.Group = "workers"
	if got := c.Groups[0].Policy(); got != want {
		t.Errorf("a group that sets nothing has\n%+v\nwant\n%+v", got, want)
	}
	if p := c.Groups[0].Provider(); p != c.Provider("bmcs") || p == nil || p.Driver() == nil {
		t.Errorf("provider %+v", p)
	}
	if c.Provider("nobody") != nil {
		t.Error("a provider that is not there")
	}
	s := c.Provider("bmcs").Driver().(stubDriver).settings
	if s.Options != nil || s.Now == nil || s.Name != "bmcs" || !reflect.DeepEqual(s.TLS, providers.TLS{}) {
		t.Errorf("settings %+v", s)
	}
}

func TestEveryValueArrives(t *testing.T) {
	c := mustParse(t, strings.Replace(good, "    secret: {namespace: nodefence, name: bmc}\n",
		"    directory: /run/bmc\n  options: {port: 443, retries: 2, session: true}\n", 1)+`
  mode: Fence
  proof: {readings: 4, hold: 31s, holdAfterPowerOff: 11s, freshness: 12s, interval: 6s, timeout: 7s, suspectAfter: 16s}
  identity: {allowUnproved: true}
  alerts: {holdAfter: 17s, every: 6m}
  survey: {every: 19m}
  powerOff: {after: 61s, timeout: 18s, retryAfter: 32s, attempts: 5}
  untaint: {stableFor: 33s, maxWait: 7m}
budget: {maxConcurrent: 2, maxUnhealthy: 3}
`)
	want := fencing.Policy{
		Group: "workers", Mode: fencing.Fence, SuspectAfter: 16 * time.Second, Readings: 4, Hold: 31 * time.Second,
		HoldAfterPowerOff: 11 * time.Second, Freshness: 12 * time.Second, ReadInterval: 6 * time.Second,
		ReadTimeout: 7 * time.Second, AllowUnproved: true, HoldAfter: 17 * time.Second, AlertEvery: 6 * time.Minute,
		PowerOffAfter: 61 * time.Second, PowerOffTimeout: 18 * time.Second, PowerOffRetry: 32 * time.Second,
		PowerOffAttempts: 5, StableFor: 33 * time.Second, MaxWait: 7 * time.Minute, SurveyEvery: 19 * time.Minute,
		Budget: fencing.Budget{MaxConcurrent: 2, MaxUnhealthy: 3},
	}
	if got := c.Groups[0].Policy(); got != want {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
	if got := string(c.Provider("bmcs").Driver().(stubDriver).settings.Options); got != `{"port":443,"retries":2,"session":true}` {
		t.Errorf("options %s", got)
	}
	again, err := yaml.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	if d := mustParse(t, string(again)); d.Groups[0].Policy() != want {
		t.Errorf("written out and read in again:\n%s", again)
	}
}

// TestPolicyIsCovered fails when fencing.Policy gets a field that the
// configuration cannot set.
func TestPolicyIsCovered(t *testing.T) {
	var known []string
	for i, typ := 0, reflect.TypeFor[fencing.Policy](); i < typ.NumField(); i++ {
		known = append(known, typ.Field(i).Name)
	}
	for _, name := range known {
		if policyPaths[name] == "" && name != "Group" && name != "Budget" {
			t.Errorf("no path for fencing.Policy.%s", name)
		}
	}
	for name, path := range policyPaths {
		typ := reflect.TypeFor[Group]()
		for _, part := range strings.Split(path, ".") {
			i, ok := fieldByName(typ, part)
			if !ok {
				t.Fatalf("%s: no field %s", name, path)
			}
			typ = typ.Field(i).Type
		}
	}
}

func TestOptionsKeepTheirForm(t *testing.T) {
	var seen json.RawMessage
	registry := providers.Registry{"redfish": func(s providers.Settings) (providers.Driver, error) {
		seen = s.Options
		return stubDriver{s}, nil
	}}
	text := with(t, "  driver: redfish\n", `  driver: redfish
  options:
    a: [1, 2.5, 0x10, "01", true, null, 2026-01-01, 12345678901234567890]
    b: {c: {}, d: []}
`)
	if _, err := Parse([]byte(text), registry); err != nil {
		t.Fatal(err)
	}
	want := `{"a":[1,2.5,16,"01",true,null,"2026-01-01",12345678901234567890],"b":{"c":{},"d":[]}}`
	if string(seen) != want {
		t.Errorf("got  %s\nwant %s", seen, want)
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "c.yaml")
	if _, err := Load(name, stubRegistry()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if _, err := Load(dir, stubRegistry()); err == nil || !strings.Contains(err.Error(), "no regular file") {
		t.Errorf("directory: %v", err)
	}
	write(t, name, good)
	if _, err := Load(name, stubRegistry()); err != nil {
		t.Error(err)
	}
	write(t, name, "kind: Configuration")
	var e *Error
	if _, err := Load(name, stubRegistry()); !errors.As(err, &e) || !strings.Contains(err.Error(), name) {
		t.Errorf("bad file: %v", err)
	}
	if err := os.WriteFile(name, bytes.Repeat([]byte("#"), MaxSize+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(name, stubRegistry()); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("huge file: %v", err)
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(good))
	text, err := os.ReadFile("testdata/refused.txt")
	if err != nil {
		f.Fatal(err)
	}
	provider, group, _ := strings.Cut(good, "- name: workers")
	for _, story := range strings.Split(string(text), "\n== ")[1:] {
		_, story, _ = strings.Cut(story, "\n")
		story, _, _ = strings.Cut("\n"+story, "\n=>")
		f.Add([]byte(strings.NewReplacer("{good}", provider, "{group}", "- name: workers"+group).Replace(strings.TrimPrefix(story, "\n"))))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse(data, stubRegistry())
		if err != nil {
			checkProblems(t, string(data), err)
			return
		}
		node := NodeView{Name: "n1", Labels: map[string]string{"role": "worker"}}
		if g, err := c.Group(node); err == nil && g != nil {
			if m, err := g.Machine(node); err == nil && m.Address == "" {
				t.Error("a machine without an address")
			}
		}
		again, err := yaml.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		d, err := Parse(again, stubRegistry())
		if err != nil {
			t.Fatalf("written out and read in again: %v\n%s", err, again)
		}
		for i := range c.Groups {
			if c.Groups[i].Policy() != d.Groups[i].Policy() {
				t.Error("another policy after a round trip")
			}
		}
	})
}

// TestLongListsAreCut: a message that lists what there is stays readable however
// much there is.
func TestLongListsAreCut(t *testing.T) {
	var more strings.Builder
	for i := range 300 {
		fmt.Fprintf(&more, "- {name: rack-%03d-%s, driver: redfish, credentials: {file: /a}}\n", i, strings.Repeat("x", 40))
	}
	text := strings.Replace(with(t, "  provider: bmcs\n", "  provider: bmsc\n"), "groups:\n", more.String()+"groups:\n", 1)
	_, err := Parse([]byte(text), stubRegistry())
	checkProblems(t, text, err)
	if want := `did you mean "bmcs"?; they are "bmcs", "rack-000-`; !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), " more") {
		t.Errorf("got %v, want %q and how many more there are", err, want)
	}
}
