package fencing_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/nodefence/nodefence/fencing"
)

var update = flag.Bool("update", false, "write generated documents anew")

const reasonsPage = "../docs/reasons.md"

// declared reads the constants from the source, with the comments of their groups:
// a constant that is missing from the table is found.
func declared(t *testing.T) (groups []string, reasons map[string][]fencing.Reason) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "reasons.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	reasons = map[string][]fencing.Reason{}
	for _, decl := range f.Decls {
		g, ok := decl.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		group := strings.TrimSpace(g.Doc.Text())
		groups = append(groups, group)
		for _, spec := range g.Specs {
			v := spec.(*ast.ValueSpec)
			for _, value := range v.Values {
				text, err := strconv.Unquote(value.(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				reasons[group] = append(reasons[group], fencing.Reason(text))
			}
		}
	}
	return groups, reasons
}

func TestReasons(t *testing.T) {
	groups, declared := declared(t)
	var all []fencing.Reason
	for _, g := range groups {
		all = append(all, declared[g]...)
	}
	slices.Sort(all)
	wantEqual(t, fencing.Reasons(), all)
	sentences := map[string]fencing.Reason{}
	for _, r := range all {
		text, ok := r.Text()
		if !ok {
			t.Errorf("%s is not in the table", r)
			continue
		}
		for what, s := range map[string]string{"sentence": text.Sentence, "explanation": text.Explanation, "remedy": text.Remedy} {
			if len(s) < 10 || !strings.ContainsAny(s[:1], "ABCDEFGHIJKLMNOPQRSTUVWXYZ") && !strings.HasPrefix(s, "nodefence ") {
				t.Errorf("%s: the %s is %q", r, what, s)
			}
		}
		if !strings.HasSuffix(text.Sentence, ".") || text.Remedy != r.Remedy() {
			t.Errorf("%s: %q, remedy %q", r, text.Sentence, r.Remedy())
		}
		if was, dup := sentences[text.Sentence]; dup {
			t.Errorf("%s says the same as %s", r, was)
		}
		sentences[text.Sentence] = r
	}
	if _, ok := fencing.Reason("Nonsense").Text(); ok || fencing.Reason("Nonsense").Remedy() != "" {
		t.Error("a reason outside the table has words")
	}
}

// TestReasonsPage compares docs/reasons.md with the table; -update writes it.
func TestReasonsPage(t *testing.T) {
	groups, reasons := declared(t)
	var b strings.Builder
	b.WriteString("# Reasons\n\nWhy something was concluded, done, held or said. Each is the same word in logs, Events,\nmetrics, the conditions of a FencingCase and notifications. This page is made from the\ntable in `fencing/reasontexts.go`; write it anew with `go test ./fencing -run ReasonsPage -update`.\n")
	for _, g := range groups {
		fmt.Fprintf(&b, "\n## %s\n", strings.TrimSuffix(g, "."))
		rs := slices.Clone(reasons[g])
		slices.Sort(rs)
		for _, r := range rs {
			text, _ := r.Text()
			fmt.Fprintf(&b, "\n### %s\n%s %s\n\n*What to do:* %s\n", r, text.Sentence, text.Explanation, text.Remedy)
		}
	}
	if *update {
		if err := os.WriteFile(reasonsPage, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(reasonsPage)
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, string(got), b.String())
}

// TestFailureReasons: every kind of failure leads to a doubtful verdict with words.
func TestFailureReasons(t *testing.T) {
	want := map[fencing.FailureKind]fencing.Reason{
		fencing.Unreachable: fencing.ReasonUnreachable, fencing.TimedOut: fencing.ReasonUnreachable, fencing.Untrusted: fencing.ReasonUntrusted,
		fencing.Unauthorized: fencing.ReasonRefused, fencing.Forbidden: fencing.ReasonForbidden, fencing.Busy: fencing.ReasonBusy,
		fencing.NotFound: fencing.ReasonNotFound, fencing.Ambiguous: fencing.ReasonAmbiguous, fencing.Malformed: fencing.ReasonMalformed,
		fencing.WrongMachine: fencing.ReasonWrongMachine, fencing.Misconfigured: fencing.ReasonMisconfigured, fencing.Failed: fencing.ReasonProviderFailed,
		99: fencing.ReasonProviderFailed,
	}
	for k, reason := range want {
		r := reading(15, fencing.Off)
		r.Failure = fencing.Failure{Kind: k, Message: "because"}
		v := feed(policy(), fencing.Case{}, r).Verdict
		if v.Kind != fencing.Unverifiable || v.Reason != reason || !strings.Contains(v.Message, "because") {
			t.Errorf("%s: %s (%s): %s", k, v.Kind, v.Reason, v.Message)
		}
	}
}
