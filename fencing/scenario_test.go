package fencing_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/nodefence/nodefence/fencing/scenario"
)

const scenarios = "testdata/scenarios"

// TestScenarios plays every story and compares its transcript. With -rewrite the
// transcripts are written anew: commit them only when every line is understood.
func TestScenarios(t *testing.T) {
	datadriven.Walk(t, scenarios, func(t *testing.T, path string) {
		w := scenario.New()
		datadriven.RunTest(t, path, func(_ *testing.T, d *datadriven.TestData) string {
			words := []string{d.Cmd}
			for _, a := range d.CmdArgs {
				words = append(words, a.String())
			}
			out, err := w.Exec(strings.Join(words, " ") + "\n" + d.Input)
			if err != nil {
				return out + "error: " + err.Error() + "\n"
			}
			return out
		})
	})
}

// TestScenarioFiles holds every story to what a story is: it says why its outcome
// is right, it fits on a screen, no command of it fails, and the program's own
// reader of scenarios makes the same of it as the tests' one.
func TestScenarioFiles(t *testing.T) {
	files, err := filepath.Glob(scenarios + "/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.HasPrefix(text, []byte("# ")) {
				t.Error("the first line is no comment that says why the outcome is right")
			}
			if lines := bytes.Count(text, []byte("\n")); lines > 70 {
				t.Errorf("%d lines are more than a screen", lines)
			}
			if bytes.Contains(text, []byte("\nerror: ")) {
				t.Error("a command failed")
			}
			var out strings.Builder
			same, err := scenario.Run(bytes.NewReader(text), &out)
			if err != nil || !same {
				t.Errorf("scenario.Run: same %t, error %v\n%s", same, err, out.String())
			}
		})
	}
}
