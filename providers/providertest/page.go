package providertest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/nodefence/nodefence/fencing"
)

// Page checks the driver's page, docs/providers/NAME.md, against the code: a row
// for each option with its default, a row for each kind of failure, and every
// test that it names exists. defaults is the driver's options as they are when
// nothing is configured.
func Page(t *testing.T, name string, defaults any) {
	t.Helper()
	root := filepath.Join("..", "..")
	body, err := os.ReadFile(filepath.Join(root, "docs", "providers", name+".md"))
	if err != nil {
		t.Fatal(err)
	}
	page := string(body)
	v := reflect.ValueOf(defaults)
	for i := range v.NumField() {
		option := v.Type().Field(i).Tag.Get("json")
		row := fmt.Sprintf("| `%s` | %s |", option, inWords(v.Field(i).Interface()))
		if !strings.Contains(page, "\n"+row) {
			t.Errorf("the page lacks a row that begins with %s", row)
		}
	}
	for _, kind := range failureKinds() {
		if !strings.Contains(page, "\n| `"+kind+"` |") {
			t.Errorf("the page lacks a row for the failure %s", kind)
		}
	}
	places := map[string]string{"": ".", "fencing.": filepath.Join(root, "fencing"), "providers.": ".."}
	named := regexp.MustCompile("`([a-z]+\\.)?((?:Test|Fuzz)[A-Za-z0-9]+)`").FindAllStringSubmatch(page, -1)
	if len(named) == 0 {
		t.Error("the page names no test")
	}
	for _, m := range named {
		if !hasTest(t, places[m[1]], m[2]) {
			t.Errorf("the page names the test %s%s, which is not there", m[1], m[2])
		}
	}
}

// inWords is a default as the pages show it.
func inWords(v any) string {
	if reflect.ValueOf(v).IsZero() && reflect.TypeOf(v).Kind() != reflect.Bool {
		return "none"
	}
	b, _ := json.Marshal(v) // options are made of what JSON can say
	return "`" + strings.ReplaceAll(strings.Trim(string(b), `"`), ",", ", ") + "`"
}

// failureKinds are the names of all kinds of failures.
func failureKinds() (names []string) {
	for k := fencing.NoFailure + 1; k <= fencing.Failed; k++ {
		names = append(names, k.String())
	}
	return names
}

func hasTest(t *testing.T, dir, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		body, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(body), "\nfunc "+name+"(") {
			return true
		}
	}
	return false
}
