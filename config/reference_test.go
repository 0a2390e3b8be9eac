package config

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nodefence/nodefence/fencing"
)

const (
	referencePage  = "../docs/configuration.md"
	referenceBegin = "<!-- made from config/types.go; write it anew with: go test ./config -run Reference -update -->\n"
	referenceEnd   = "<!-- end of what is made -->\n"
)

// TestReferenceIsCurrent compares the tables of docs/configuration.md with the
// types, their comments, and the defaults and bounds that are in force.
func TestReferenceIsCurrent(t *testing.T) {
	page, err := os.ReadFile(referencePage)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, begins := strings.Cut(string(page), referenceBegin)
	got, tail, ends := strings.Cut(rest, referenceEnd)
	if !begins || !ends {
		t.Fatalf("%s lacks the lines\n%s%s", referencePage, referenceBegin, referenceEnd)
	}
	r := newReference(t)
	r.section("", reflect.TypeFor[Configuration]())
	want := "\n" + r.text.String()
	if *update {
		if err := os.WriteFile(referencePage, []byte(head+referenceBegin+want+referenceEnd+tail), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got != want {
		t.Errorf("%s is not what config/types.go says; look at the difference of: go test ./config -run Reference -update", referencePage)
	}
}

// reference writes the tables.
type reference struct {
	t    *testing.T
	text strings.Builder
	// comments are those of the types (Group) and of their fields (Group.Name).
	comments map[string]string
	defaults Configuration
}

func newReference(t *testing.T) *reference {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "types.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	r := &reference{t: t, comments: map[string]string{}, defaults: Configuration{Groups: []Group{defaultGroup()}, Budget: defaultBudget()}}
	for _, decl := range file.Decls {
		d, ok := decl.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range d.Specs {
			s, ok := spec.(*ast.TypeSpec)
			if !ok {
				continue
			}
			r.comments[s.Name.Name] = oneLine(d.Doc)
			if fields, ok := s.Type.(*ast.StructType); ok {
				for _, f := range fields.Fields.List {
					for _, name := range f.Names {
						r.comments[s.Name.Name+"."+name.Name] = oneLine(f.Doc)
					}
				}
			}
		}
	}
	return r
}

func oneLine(c *ast.CommentGroup) string { return strings.Join(strings.Fields(c.Text()), " ") }

// section writes the table of one type, and those of the types in its fields.
func (r *reference) section(path string, t reflect.Type) {
	if path == "" {
		r.text.WriteString("### The file\n\n")
	} else {
		fmt.Fprintf(&r.text, "### `%s`\n\n%s\n\n", path, meaning(t.Name(), r.comments[t.Name()], t))
	}
	r.text.WriteString("| field | type | default | range | meaning |\n|---|---|---|---|---|\n")
	for _, f := range reflect.VisibleFields(t) {
		if fieldName(f) != "" {
			r.row(path, t, f)
		}
	}
	r.text.WriteString("\n")
	for _, f := range reflect.VisibleFields(t) {
		if below, inner := descend(path, f); inner != nil {
			r.section(below, inner)
		}
	}
}

// descend gives the section of a field whose type has fields of its own here.
func descend(path string, f reflect.StructField) (string, reflect.Type) {
	t, suffix := f.Type, ""
	switch t.Kind() {
	case reflect.Slice:
		t, suffix = t.Elem(), "[]"
	case reflect.Map:
		t, suffix = t.Elem(), ".NODE"
	case reflect.Pointer:
		t = t.Elem()
	default:
	}
	if fieldName(f) == "" || t.Kind() != reflect.Struct || t.PkgPath() != reflect.TypeFor[Configuration]().PkgPath() || t == reflect.TypeFor[Amount]() {
		return "", nil
	}
	return strings.TrimPrefix(path+"."+fieldName(f)+suffix, "."), t
}

var (
	statedDefault = regexp.MustCompile(` ?Default: ([^.]*(?:\.[^ .][^.]*)*)\.`)
	statedNeed    = regexp.MustCompile(` ?Required(: [^.]*)?\.`)
)

func (r *reference) row(path string, t reflect.Type, f reflect.StructField) {
	name := t.Name() + "." + f.Name
	comment := r.comments[name]
	at := strings.TrimPrefix(path+"."+fieldName(f), ".")
	stated := ""
	switch d, n := statedDefault.FindStringSubmatch(comment), statedNeed.FindStringSubmatch(comment); {
	case d != nil:
		stated, comment = d[1], strings.Replace(comment, d[0], "", 1)
	case n != nil:
		stated, comment = "required"+n[1], strings.Replace(comment, n[0], "", 1)
	}
	value, bounds := r.inForce(at)
	below, _ := descend(path, f)
	switch {
	case comment == "":
		r.t.Errorf("%s has no comment", name)
	case value != "" && stated != value:
		r.t.Errorf("the comment of %s says default %q, but %q is in force", name, stated, value)
	case stated == "" && below == "":
		r.t.Errorf("the comment of %s says neither its default nor that it is required", name)
	}
	kind := kindOf(f.Type)
	if below != "" {
		kind = fmt.Sprintf("[%s](#%s)", kind, strings.ToLower(strings.NewReplacer(".", "", "[]", "").Replace(below)))
	}
	if value != "" {
		stated = "`" + value + "`"
	}
	fmt.Fprintf(&r.text, "| `%s` | %s | %s | %s | %s |\n", fieldName(f), kind, cmp.Or(stated, "see there"), bounds, meaning(f.Name, comment, t))
}

// inForce gives default and range of a field that is part of the policy, or
// nothing.
func (r *reference) inForce(at string) (value, bounds string) {
	find := func(paths map[string]string, prefix string) (string, bool) {
		for field, p := range paths {
			if prefix+p == at {
				return field, true
			}
		}
		return "", false
	}
	v := reflect.ValueOf(r.defaults)
	field, ok := find(policyPaths, "groups[].")
	if ok {
		v = reflect.ValueOf(r.defaults.Groups[0])
		at = strings.TrimPrefix(at, "groups[].")
	} else if field, ok = find(budgetPaths, ""); !ok {
		return "", ""
	}
	for part := range strings.SplitSeq(at, ".") {
		i, ok := fieldByName(v.Type(), part)
		if !ok {
			r.t.Fatalf("no field %s", at)
		}
		v = v.Field(i)
	}
	if d, ok := v.Interface().(metav1.Duration); ok {
		return short(d.Duration), bound(field)
	}
	return fmt.Sprint(v.Interface()), bound(field)
}

var between = regexp.MustCompile(`must be (0s for never, or )?between (\S+) and (\S+)$`)

// bound finds what fencing.Policy.Validate allows for one of its fields, by
// asking it.
func bound(field string) string {
	p := fencing.DefaultPolicy()
	v := reflect.ValueOf(&p).Elem()
	for part := range strings.SplitSeq(field, ".") {
		v = v.FieldByName(part)
	}
	problem := func(n int64) string {
		v.SetInt(n)
		i := slices.IndexFunc(p.Validate(), func(e fencing.FieldError) bool { return e.Field == field })
		if i < 0 {
			return ""
		}
		return p.Validate()[i].Problem
	}
	least := func(from, to int64, good func(string) bool) int64 {
		for n := from; n <= to; n++ {
			if good(problem(n)) {
				return n
			}
		}
		return -1
	}
	isGood := func(s string) bool { return s == "" }
	isBad := func(s string) bool { return s != "" }
	switch {
	case v.Kind() == reflect.Bool:
		return ""
	case v.Type() == reflect.TypeFor[fencing.Mode]():
		return strings.Join(modeNames, ", ")
	case v.Type() == reflect.TypeFor[time.Duration]():
		m := between.FindStringSubmatch(problem(-1))
		never := ""
		if m[1] != "" {
			never = "0s, or "
		}
		return never + tidy(m[2]) + " to " + tidy(m[3])
	case field == "Budget.MaxUnhealthy":
		p.Budget.MaxUnhealthyPercent = false
		low := least(0, 1000, isGood)
		p.Budget.MaxUnhealthyPercent = true
		return fmt.Sprintf("at least %d, or %d%% to %d%%", low, least(0, 1000, isGood), least(low, 1000, isBad)-1)
	}
	low := least(0, 1000, isGood)
	if high := least(low, 1000, isBad); high >= 0 {
		return fmt.Sprintf("%d to %d", low, high-1)
	}
	return fmt.Sprintf("at least %d", low)
}

func short(d time.Duration) string { return tidy(d.String()) }

// tidy takes the zeros off a duration: 1h0m0s is 1h.
func tidy(s string) string {
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

func kindOf(t reflect.Type) string {
	switch t {
	case durationType:
		return "duration"
	case optionsType:
		return "mapping"
	case reflect.TypeFor[Amount]():
		return "number or percentage"
	case reflect.TypeFor[*metav1.LabelSelector]():
		return "label selector"
	}
	switch t.Kind() {
	case reflect.Slice:
		return "list"
	case reflect.Map, reflect.Struct, reflect.Pointer:
		return "mapping"
	case reflect.Bool:
		return "true or false"
	case reflect.Int:
		return "number"
	default:
		return "text"
	}
}

// meaning makes a sentence for operators of a Go comment: without the Go name
// that it begins with, and with the file's names for other fields.
func meaning(name, comment string, t reflect.Type) string {
	s := comment
	for _, verb := range []string{" is ", " are ", " "} {
		if rest, ok := strings.CutPrefix(s, name+verb); ok {
			s = strings.ToUpper(rest[:1]) + rest[1:]
			break
		}
	}
	for _, f := range reflect.VisibleFields(t) {
		if fieldName(f) == "" || f.Name == "Secret" || f.Name == "UUID" {
			continue // no field of the file, or the name of a thing as well
		}
		// At the beginning of a sentence it is a word like any other.
		inside := regexp.MustCompile(`([a-z,:] )` + f.Name + `\b`)
		s = inside.ReplaceAllString(s, "$1`"+fieldName(f)+"`")
	}
	return strings.ReplaceAll(s, "|", `\|`)
}

// TestReferenceCatchesDrift makes sure that a comment with another default than
// the one in force does not go unnoticed.
func TestReferenceCatchesDrift(t *testing.T) {
	for at, want := range map[string][2]string{
		"groups[].proof.readings":         {"3", "2 to 20"},
		"groups[].proof.hold":             {"30s", "1s to 1h"},
		"groups[].untaint.maxWait":        {"5m", "1s to 24h"},
		"groups[].proof.interval":         {"5s", "100ms to 1m"},
		"groups[].mode":                   {"Confirm", "Observe, Confirm, Fence"},
		"groups[].identity.allowUnproved": {"false", ""},
		"groups[].powerOff.attempts":      {"3", "at least 1"},
		"budget.maxConcurrent":            {"1", "at least 1"},
		"budget.maxUnhealthy":             {"40%", "at least 1, or 1% to 100%"},
		"groups[].name":                   {"", ""},
	} {
		value, bounds := newReference(t).inForce(at)
		if got := [2]string{value, bounds}; got != want {
			t.Errorf("%s: %q, want %q", at, got, want)
		}
	}
}
