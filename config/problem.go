package config

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Problem is one thing that is wrong with a configuration file.
type Problem struct {
	// Path is where in the file's structure, such as groups[0].proof.readings;
	// empty for the file as a whole.
	Path string
	// Line is where in the file's text, from 1; 0 for the file as a whole.
	Line int
	// Message says what is wrong and what is right. It quotes no value that
	// could be a secret.
	Message string
}

// String gives line, path and message.
func (p Problem) String() string {
	var b strings.Builder
	if p.Line > 0 {
		fmt.Fprintf(&b, "line %d: ", p.Line)
	}
	if p.Path != "" {
		b.WriteString(p.Path + ": ")
	}
	b.WriteString(p.Message)
	return b.String()
}

// Error is everything that is wrong with a configuration file, in the order of
// its lines.
type Error struct {
	Problems []Problem
}

// maxShown bounds the text of an Error: a file that is wrong throughout needs no
// line for each place.
const maxShown = 50

// Error gives one line for each problem.
func (e *Error) Error() string {
	lines := make([]string, 0, len(e.Problems))
	for i, p := range e.Problems {
		if i == maxShown {
			lines = append(lines, fmt.Sprintf("and %d more", len(e.Problems)-i))
			break
		}
		lines = append(lines, p.String())
	}
	return strings.Join(lines, "\n")
}

// problems collects what is wrong, and knows where each path is in the text.
type problems struct {
	lines  map[string]int
	found  []Problem
	seen   map[Problem]bool
	broken map[string]bool
}

func newProblems() *problems {
	return &problems{lines: map[string]int{}, seen: map[Problem]bool{}}
}

// decoded marks the end of decoding: what could not be decoded has no value, so
// nothing more is said about it.
func (p *problems) decoded() {
	p.broken = map[string]bool{}
	for _, problem := range p.found {
		p.broken[problem.Path] = true
	}
}

// at says where a path is; a path that is not in the file (a default, or a field
// that is missing) is where the nearest thing around it is.
func (p *problems) at(path string) int {
	for around := range upwards(path) {
		if line, ok := p.lines[around]; ok {
			return line
		}
	}
	return p.lines[""]
}

// upwards gives a path and what is around it, without the file itself.
func upwards(path string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for path != "" && yield(path) {
			path = path[:max(0, strings.LastIndexAny(path, ".["))]
		}
	}
}

func (p *problems) add(path, format string, args ...any) {
	p.addLine(path, p.at(path), format, args...)
}

func (p *problems) addLine(path string, line int, format string, args ...any) {
	for around := range upwards(path) {
		if p.broken[around] {
			return
		}
	}
	problem := Problem{Path: path, Line: line, Message: fmt.Sprintf(format, args...)}
	// One cause that shows in several groups (the budget) is said once.
	if !p.seen[problem] {
		p.seen[problem] = true
		p.found = append(p.found, problem)
	}
}

// err gives all problems in the order of the file, or nil.
func (p *problems) err() error {
	if len(p.found) == 0 {
		return nil
	}
	// Some checks walk maps: path and message make the order the same each time.
	slices.SortFunc(p.found, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Message, b.Message))
	})
	return &Error{Problems: p.found}
}

// join appends a field's name to a path. A key that is no name (it may be
// anything that somebody typed) is quoted and cut short.
func join(path, field string) string {
	for _, r := range field {
		if r >= utf8.RuneSelf || r != '-' && r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return key(path, field)
		}
	}
	if field == "" || len(field) > maxKey {
		return key(path, field)
	}
	if path == "" {
		return field
	}
	return path + "." + field
}

const maxKey = 80

// index appends a list's index to a path.
func index(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }

// key appends a map's key to a path.
func key(path, k string) string {
	if len(k) > maxKey {
		return fmt.Sprintf("%s[%q…]", path, clip(k))
	}
	return fmt.Sprintf("%s[%q]", path, k)
}
