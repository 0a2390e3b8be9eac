package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const story = "# why\nmachine loses-power\nrun 2m\n----\n"

func TestSimulate(t *testing.T) {
	out, _, err := run(t, "simulate", file(t, "story.txt", story))
	if err != nil || !strings.HasPrefix(out, story) || !strings.Contains(out, "Tainted") {
		t.Errorf("%v\n%s", err, out)
	}
	again, _, err := run(t, "simulate", "--verify", file(t, "again.txt", out))
	if err != nil || again != out {
		t.Errorf("what was written is not read again: %v\n%s", err, again)
	}
	other := strings.Replace(out, "Tainted", "Closed", 1)
	if _, errs, err := run(t, "simulate", "--verify", file(t, "other.txt", other)); status(err) != exitFindings || !strings.Contains(errs, "another way") {
		t.Errorf("another transcript: %v %s", err, errs)
	}
	if _, _, err := run(t, "simulate", file(t, "other.txt", other)); err != nil {
		t.Errorf("without --verify: %v", err)
	}
	for name, text := range map[string]string{"unknown command": "machine flies\n----\n", "no transcript": "run 1m\n"} {
		if _, _, err := run(t, "simulate", file(t, "bad.txt", text)); status(err) != exitFailure || !strings.Contains(err.Error(), "bad.txt") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := run(t, "simulate", filepath.Join(t.TempDir(), "missing")); status(err) != exitFailure {
		t.Errorf("missing file: %v", err)
	}
}

// TestScenarioPage: the page knows the commands, and its example is true.
func TestScenarioPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/scenarios.md")
	if err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile("../../fencing/scenario/commands.go")
	if err != nil {
		t.Fatal(err)
	}
	commands := regexp.MustCompile(`"([a-z]+)": +\(\*World\)`).FindAllSubmatch(code, -1)
	if len(commands) < 15 {
		t.Fatalf("only %d commands", len(commands))
	}
	for _, m := range commands {
		if !strings.Contains(string(page), "| `"+string(m[1])) && !strings.Contains(string(page), "`"+string(m[1])+"`") {
			t.Errorf("docs/scenarios.md does not explain %s", m[1])
		}
	}
	example := regexp.MustCompile(`(?m)^    # The machine(?s:.*?)\n\n`).FindString(string(page))
	example = strings.ReplaceAll(strings.ReplaceAll(example, "\n    ", "\n"), "    #", "#")
	if _, _, err := run(t, "simulate", "--verify", file(t, "page.txt", example)); err != nil || example == "" {
		t.Errorf("the page's example: %v\n%s", err, example)
	}
}
