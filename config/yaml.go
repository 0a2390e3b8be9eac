package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// MaxSize bounds a configuration file. A ConfigMap holds no more.
const MaxSize = 1 << 20

// document gives the root of the one YAML document in data, free of anchors,
// aliases, merge keys and tags: none of them is needed here, and without them no
// file is larger than it looks and every value has one place.
func document(data []byte, p *problems) *yaml.Node {
	if !readable(data, p) {
		return nil
	}
	root, line, err := parseYAML(data)
	switch {
	case errors.Is(err, io.EOF) || err == nil && isNull(root):
		p.add("", "the file is empty: it must begin with `apiVersion: %s` and `kind: %s`", APIVersion, Kind)
		return nil
	case errors.Is(err, errSecondDocument):
		p.addLine("", line, "%v", err)
		return nil
	case err != nil:
		p.addLine("", refine(data, line, err), "is no YAML: %v", err)
		return nil
	}
	before := len(p.found)
	plain(root, p)
	if len(p.found) > before {
		return nil
	}
	return root
}

// readable refuses what no editor shows: too much, other encodings, control
// characters, and line separators that would make line numbers wrong.
func readable(data []byte, p *problems) bool {
	if len(data) > MaxSize {
		p.add("", "the file has more than %d bytes", MaxSize)
		return false
	}
	line := 1
	text := bytes.TrimPrefix(data, []byte("\ufeff"))
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		switch {
		case r == utf8.RuneError && n == 1:
			p.addLine("", line, "the file is not UTF-8")
			return false
		case r == '\n':
			line++
		case r == '\t' || r == '\r':
		case unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || r == '\ufeff':
			p.addLine("", line, "the control character %U is not allowed", r)
			return false
		}
		text = text[n:]
	}
	return true
}

var errSecondDocument = errors.New("the file has more than one YAML document; one is expected")

// parseYAML gives the root of the only document, or an error and its line.
func parseYAML(data []byte) (root *yaml.Node, line int, err error) {
	defer func() {
		// The library panics on what it takes for its own bugs. Here it is one
		// more file that cannot be read.
		if r := recover(); r != nil {
			root, line, err = nil, 1, errors.New("the parser cannot make sense of it")
		}
	}()
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, second yaml.Node
	if err := dec.Decode(&doc); err != nil {
		line, err := splitLine(err)
		return nil, line, err
	}
	switch err := dec.Decode(&second); {
	case errors.Is(err, io.EOF):
		return doc.Content[0], 1, nil
	case err != nil:
		line, err := splitLine(err)
		return nil, line, err
	}
	return nil, second.Line, errSecondDocument
}

// unknownAnchor is a message that repeats what may be the beginning of a password.
var unknownAnchor = regexp.MustCompile(`unknown anchor '[^']*' referenced`)

var yamlLine = regexp.MustCompile(`^line (\d+): `)

// splitLine takes the line out of the library's error; it names none for the
// first line.
func splitLine(err error) (int, error) {
	if errors.Is(err, io.EOF) {
		return 1, err
	}
	text := unknownAnchor.ReplaceAllString(strings.TrimPrefix(err.Error(), "yaml: "), "an alias (*name) stands for nothing; write text that begins with * in quotes")
	m := yamlLine.FindStringSubmatch(text)
	if m == nil {
		return 1, errors.New(text)
	}
	line, convErr := strconv.Atoi(m[1])
	if convErr != nil {
		return 1, errors.New(text)
	}
	return line, errors.New(text[len(m[0]):])
}

// refine finds the line of a syntax error. The library gives the beginning of
// the block around it, which in a long file is far away; the error shows as soon
// as the line that causes it has been read, so the shortest beginning of the
// file that fails alike ends there.
func refine(data []byte, line int, want error) int {
	lines := bytes.SplitAfter(data, []byte("\n"))
	low, high := max(1, min(line, len(lines))), len(lines)
	for low < high {
		middle := (low + high) / 2
		_, at, err := parseYAML(bytes.Join(lines[:middle], nil))
		if err != nil && at == line && err.Error() == want.Error() {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return low
}

// plain reports anchors, aliases, merge keys and tags. It does not follow
// aliases, so it is done in one pass over the text.
func plain(n *yaml.Node, p *problems) {
	switch {
	case n.Kind == yaml.AliasNode:
		p.addLine("", n.Line, "aliases (*name) are not supported; write the value again, and text that begins with * in quotes")
	case n.Anchor != "":
		p.addLine("", n.Line, "anchors (&name) are not supported; write the value again where it is needed, and text that begins with & in quotes")
	case n.Style&yaml.TaggedStyle != 0:
		p.addLine("", n.Line, "tags (!name) are not supported; write text that begins with ! in quotes")
	case n.ShortTag() == "!!merge":
		p.addLine("", n.Line, "merge keys (<<) are not supported; write the fields again")
	}
	for _, child := range n.Content {
		plain(child, p)
	}
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// describe says what a node is, without its value: it may be a secret in the
// wrong place.
func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	default:
	}
	switch n.ShortTag() {
	case "!!int", "!!float":
		return "a number"
	case "!!bool":
		return "true or false"
	case "!!timestamp":
		return "a date"
	case "!!null":
		return "empty"
	}
	return "text"
}

// toJSON gives a node as a value that encoding/json writes. Only strings,
// numbers, booleans, null, lists and mappings with unique text keys have one.
func toJSON(n *yaml.Node, path string, p *problems) any {
	switch n.Kind {
	case yaml.SequenceNode:
		list := make([]any, 0, len(n.Content))
		for i, item := range n.Content {
			p.lines[index(path, i)] = item.Line
			list = append(list, toJSON(item, index(path, i), p))
		}
		return list
	case yaml.MappingNode:
		m := map[string]any{}
		for k, v := range fields(n, path, p) {
			p.lines[join(path, k.Value)] = k.Line
			m[k.Value] = toJSON(v, join(path, k.Value), p)
		}
		return m
	default:
	}
	switch n.ShortTag() {
	case "!!int", "!!bool", "!!null", "!!float":
		var v any
		if err := n.Decode(&v); err != nil {
			p.addLine(path, n.Line, "cannot be read")
			return nil
		}
		if s := fmt.Sprint(v); n.ShortTag() == "!!float" && strings.ContainsAny(s, "NI") {
			p.addLine(path, n.Line, "must be a finite number")
			return nil
		}
		return v
	}
	return n.Value
}
