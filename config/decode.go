package config

import (
	"encoding"
	"encoding/json"
	"iter"
	"reflect"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	durationType = reflect.TypeFor[metav1.Duration]()
	optionsType  = reflect.TypeFor[Options]()
	textType     = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// decoder fills Go values from YAML nodes by the names in their json tags. It is
// stricter than any library: unknown fields, duplicate keys, empty values and
// values of another type are problems with path and line, and it goes on after
// each, so that one look shows all of them.
type decoder struct{ *problems }

// value fills out from n. The caller has recorded the path's line.
func (d decoder) value(n *yaml.Node, path string, out reflect.Value) {
	t := out.Type()
	switch {
	case t == optionsType:
		d.options(n, path, out)
	case isNull(n):
		d.add(path, "is empty: give it a value or remove it")
	case t == durationType:
		d.duration(n, path, out)
	case reflect.PointerTo(t).Implements(textType):
		d.text(n, path, out)
	case t.Kind() == reflect.Pointer:
		v := reflect.New(t.Elem())
		d.value(n, path, v.Elem())
		out.Set(v)
	case t.Kind() == reflect.Struct:
		d.structure(n, path, out)
	case t.Kind() == reflect.Map:
		d.mapping(n, path, out)
	case t.Kind() == reflect.Slice:
		d.list(n, path, out)
	default:
		d.scalar(n, path, out)
	}
}

func (d decoder) structure(n *yaml.Node, path string, out reflect.Value) {
	if n.Kind != yaml.MappingNode {
		d.add(path, "must be a mapping of %s, but is %s", quoteAll(fieldNames(out.Type())), describe(n))
		return
	}
	for k, v := range fields(n, path, d.problems) {
		i, ok := fieldByName(out.Type(), k.Value)
		if !ok && !plausibleName(k.Value) {
			// `{root:secret}`, without a space, is a key.
			d.addLine(key(path, "…"), k.Line, "unknown field, not repeated here because it looks like no name; the known ones are %s", quoteAll(fieldNames(out.Type())))
			continue
		}
		if !ok {
			d.addLine(join(path, k.Value), k.Line, "unknown field%s", suggestField(out.Type(), k.Value))
			continue
		}
		d.lines[join(path, k.Value)] = k.Line
		d.value(v, join(path, k.Value), out.Field(i))
	}
}

func (d decoder) mapping(n *yaml.Node, path string, out reflect.Value) {
	if n.Kind != yaml.MappingNode {
		d.add(path, "must be a mapping, but is %s", describe(n))
		return
	}
	out.Set(reflect.MakeMap(out.Type()))
	for k, v := range fields(n, path, d.problems) {
		d.lines[key(path, k.Value)] = k.Line
		item := reflect.New(out.Type().Elem()).Elem()
		d.value(v, key(path, k.Value), item)
		out.SetMapIndex(reflect.ValueOf(k.Value), item)
	}
}

func (d decoder) list(n *yaml.Node, path string, out reflect.Value) {
	if n.Kind != yaml.SequenceNode {
		d.add(path, "must be a list (each item begins with `- `), but is %s", describe(n))
		return
	}
	list := reflect.MakeSlice(out.Type(), len(n.Content), len(n.Content))
	for i, item := range n.Content {
		d.lines[index(path, i)] = item.Line
		if g, ok := list.Index(i).Addr().Interface().(*Group); ok {
			*g = defaultGroup()
		}
		d.value(item, index(path, i), list.Index(i))
	}
	out.Set(list)
}

func (d decoder) scalar(n *yaml.Node, path string, out reflect.Value) {
	tag := n.ShortTag()
	switch kind := out.Kind(); {
	case n.Kind == yaml.ScalarNode && kind == reflect.String && tag == "!!str":
		out.SetString(n.Value)
	case n.Kind == yaml.ScalarNode && kind == reflect.Bool && tag == "!!bool":
		out.SetBool(strings.EqualFold(n.Value, "true"))
	case n.Kind == yaml.ScalarNode && kind == reflect.Int && tag == "!!int":
		v, err := strconv.ParseInt(n.Value, 10, 32)
		if err != nil || len(n.Value) > 1 && n.Value[0] == '0' {
			// 010 is eight to some readers and ten to others.
			d.add(path, "must be a whole number in decimal digits")
			return
		}
		out.SetInt(v)
	case n.Kind == yaml.ScalarNode && kind == reflect.String:
		d.add(path, "must be text, but is %s: put it in quotes", describe(n))
	case kind == reflect.String:
		d.add(path, "must be text, but is %s", describe(n))
	case kind == reflect.Bool:
		d.add(path, "must be true or false, but is %s", describe(n))
	case tag == "!!float":
		d.add(path, "must be a whole number")
	default:
		d.add(path, "must be a whole number, but is %s", describe(n))
	}
}

func (d decoder) duration(n *yaml.Node, path string, out reflect.Value) {
	const want = "a duration with its unit, such as 30s or 5m"
	if n.Kind != yaml.ScalarNode {
		d.add(path, "must be %s, but is %s", want, describe(n))
		return
	}
	v, err := time.ParseDuration(n.Value)
	// ParseDuration takes a bare 0; a number of what?
	if err != nil || n.ShortTag() != "!!str" {
		d.add(path, "is %q, but must be %s", clip(n.Value), want)
		return
	}
	out.Set(reflect.ValueOf(metav1.Duration{Duration: v}))
}

// text fills values that read themselves, such as modes and amounts.
func (d decoder) text(n *yaml.Node, path string, out reflect.Value) {
	if n.Kind != yaml.ScalarNode {
		d.add(path, "must be a single value, but is %s", describe(n))
		return
	}
	if err := out.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(clip(n.Value))); err != nil {
		d.add(path, "%v%s", err, suggest(n.Value, modeNames))
	}
}

func (d decoder) options(n *yaml.Node, path string, out reflect.Value) {
	if n.Kind != yaml.MappingNode {
		d.add(path, "must be a mapping, but is %s", describe(n))
		return
	}
	data, err := json.Marshal(toJSON(n, path, d.problems))
	if err != nil {
		d.add(path, "has no form as JSON")
		return
	}
	out.Set(reflect.ValueOf(Options(data)))
}

// fields gives the keys and values of a mapping. Keys that are no text, and the
// second of two equal keys, are problems and are left out.
func fields(n *yaml.Node, path string, p *problems) iter.Seq2[*yaml.Node, *yaml.Node] {
	return func(yield func(k, v *yaml.Node) bool) {
		first := map[string]int{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			k, v := n.Content[i], n.Content[i+1]
			if k.Kind != yaml.ScalarNode || k.ShortTag() != "!!str" {
				p.addLine(path, k.Line, "a key must be text, but is %s", describe(k))
				continue
			}
			if line, ok := first[k.Value]; ok {
				at := join(path, k.Value)
				if !plausibleName(k.Value) {
					at = key(path, "…")
				}
				p.addLine(at, k.Line, "is given twice; the first time in line %d", line)
				continue
			}
			first[k.Value] = k.Line
			if !yield(k, v) {
				return
			}
		}
	}
}

// fieldByName finds the field that a key fills.
func fieldByName(t reflect.Type, name string) (int, bool) {
	for i := range t.NumField() {
		if fieldName(t.Field(i)) == name && name != "" {
			return i, true
		}
	}
	return 0, false
}

// plausibleName tells whether a text may be meant for the name of a field or of
// an option. Anything else may be a password that lost its place, and is not
// repeated in messages (S13).
func plausibleName(s string) bool {
	const longest = 24
	for _, r := range s {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '_' && r != '-' {
			return false
		}
	}
	return s != "" && len(s) <= longest
}

// fieldName is a field's name in the file, or empty when it has none.
func fieldName(f reflect.StructField) string {
	if !f.IsExported() {
		return ""
	}
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return strings.TrimPrefix(name, "-")
}

func fieldNames(t reflect.Type) []string {
	var names []string
	for i := range t.NumField() {
		if name := fieldName(t.Field(i)); name != "" {
			names = append(names, name)
		}
	}
	return names
}
