package v1alpha1_test

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/nodefence/nodefence/config/v1alpha1"
	"github.com/nodefence/nodefence/fencing"
)

// TestBrokenWords: a word that nodefence never writes is an error with its path,
// and nothing of the object is used: somebody has edited it.
func TestBrokenWords(t *testing.T) {
	for _, x := range []struct {
		path  string
		empty string // what is allowed to be empty, because its zero value is written so
	}{
		{"status.state", "allowed"},
		{"status.verdict.kind", ""},
		{"status.verdict.reason", "allowed"},
		{"status.hold.reason", ""},
		{"status.powerOff.failure.kind", ""},
		{"status.readings[0].power", ""},
		{"status.readings[0].identity", ""},
		{"status.readings[0].restorePolicy", "allowed"},
		{"status.readings[0].failure.kind", ""},
		{"status.timeline[0].severity", ""},
		{"status.timeline[0].reason", "allowed"},
	} {
		for _, word := range []string{"Bogus", "off", "OFF", " Off", "Off\x00", "2", ""} {
			o := fullObject(t, 7)
			put(t, o, x.path, word)
			got, err := decode(t, o)
			if word == "" && x.empty != "" {
				if err != nil {
					t.Errorf("%s empty: %v", x.path, err)
				}
				continue
			}
			if err == nil || !strings.Contains(err.Error(), "fencing case "+o["metadata"].(map[string]any)["name"].(string)+": "+x.path+": ") {
				t.Errorf("%s is %q: error %v, want one with the path", x.path, word, err)
			}
			if !reflect.DeepEqual(got, fencing.Case{}) {
				t.Errorf("%s is %q: a case comes with the error", x.path, word)
			}
		}
	}
}

// TestWrongTypes: a value of another type is refused by the decoder, with the
// field's name.
func TestWrongTypes(t *testing.T) {
	for _, x := range []struct {
		path  string
		value any
	}{
		{"status.state", 3.0}, {"status.state", []any{}}, {"status.refusals", "many"}, {"status.openedAt", "yesterday"}, {"status.openedAt", 5.0},
		{"status.readings", map[string]any{}}, {"status.readings[0].power", true}, {"status.readings[0].askedAt", "now"},
		{"status.streak.count", "3"}, {"status.streak.first", map[string]any{}}, {"status.verdict", "Off"}, {"status.taint", []any{}}, {"spec", "node-1"},
	} {
		o := fullObject(t, 7)
		put(t, o, x.path, x.value)
		var fc v1alpha1.FencingCase
		data, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(data, &fc); err == nil {
			t.Errorf("%s: %v is accepted from JSON", x.path, x.value)
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o, &fc); err == nil {
			t.Errorf("%s: %v is accepted from a map", x.path, x.value)
		}
	}
}

// TestNothingBecomesOff changes every value of an object that nowhere says Off, and
// adds fields everywhere: whatever comes of it, it is no Off (S2).
func TestNothingBecomesOff(t *testing.T) {
	junk := []any{nil, "", "Bogus", "off", 0.0, -1.0, 2.0, 1e300, true, []any{}, []any{nil}, map[string]any{}, map[string]any{"kind": "bogus"}}
	tried := 0
	for seed := range uint64(1) {
		visit(onObject(t, seed), func(at func(o map[string]any) (parent any, key any)) {
			for _, value := range append(junk, absent{}) {
				o := onObject(t, seed)
				parent, key := at(o)
				change(parent, key, value)
				tried++
				got, err := decode(t, o)
				if err != nil {
					continue
				}
				if off := saysOff(got); off != "" {
					t.Errorf("%v set to %#v: %s", key, value, off)
				}
			}
		})
	}
	if tried < 900 {
		t.Errorf("only %d changes tried", tried)
	}
}

// TestForeignFieldsAreWithoutEffect: those of a later version, or somebody's own.
func TestForeignFieldsAreWithoutEffect(t *testing.T) {
	want, err := decode(t, fullObject(t, 7))
	if err != nil {
		t.Fatal(err)
	}
	visit(fullObject(t, 7), func(at func(o map[string]any) (parent any, key any)) {
		o := fullObject(t, 7)
		parent, key := at(o)
		m, ok := parent.(map[string]any)
		if !ok {
			return
		}
		m["Power"], m["powerstate"], m["foreign"] = "Off", "Off", map[string]any{"power": "Off"}
		got, err := decodeMap(o)
		if d := cmp.Diff(want, got); err != nil || d != "" {
			t.Errorf("beside %v: %v, -want +got:\n%s", key, err, d)
		}
	})
}

func saysOff(c fencing.Case) string {
	if c.Verdict.Kind == fencing.VerdictOff {
		return "the verdict is Off"
	}
	if c.Streak.Count != 0 {
		return "there is a run of Off readings"
	}
	for _, e := range c.Readings {
		if e.Power == fencing.Off || e.SaysOff() {
			return "a reading says Off"
		}
	}
	return ""
}

func fullObject(t *testing.T, seed uint64) map[string]any {
	t.Helper()
	var c fencing.Case
	filler{rand.New(rand.NewPCG(seed, 1))}.fill(t, reflect.ValueOf(&c).Elem())
	return asMap(t, c)
}

// onObject is full of everything but of Off.
func onObject(t *testing.T, seed uint64) map[string]any {
	t.Helper()
	var c fencing.Case
	filler{rand.New(rand.NewPCG(seed, 1))}.fill(t, reflect.ValueOf(&c).Elem())
	c.Verdict.Kind, c.Streak = fencing.Running, fencing.Streak{}
	for i := range c.Readings {
		c.Readings[i].Power, c.Readings[i].Failure = fencing.On, fencing.Failure{}
	}
	return asMap(t, c)
}

func asMap(t *testing.T, c fencing.Case) map[string]any {
	t.Helper()
	data, err := json.Marshal(object(c))
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(data, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// decode reads an object from its JSON.
func decode(t *testing.T, o map[string]any) (fencing.Case, error) {
	t.Helper()
	data, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	var fc v1alpha1.FencingCase
	if err := json.Unmarshal(data, &fc); err != nil {
		return fencing.Case{}, err
	}
	return fc.ToCase()
}

func decodeMap(o map[string]any) (fencing.Case, error) {
	var fc v1alpha1.FencingCase
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o, &fc); err != nil {
		return fencing.Case{}, err
	}
	return fc.ToCase()
}

// absent as a value takes the field away.
type absent struct{}

func change(parent, key, value any) {
	switch p := parent.(type) {
	case map[string]any:
		if value == (absent{}) {
			delete(p, key.(string))
			return
		}
		p[key.(string)] = value
	case []any:
		if value == (absent{}) {
			value = nil
		}
		p[key.(int)] = value
	}
}

// visit calls f for every value of an object, with a function that finds the same
// place in a copy.
func visit(o map[string]any, f func(at func(map[string]any) (parent, key any))) {
	var walk func(v any, path []any)
	walk = func(v any, path []any) {
		if len(path) > 0 {
			f(func(o map[string]any) (parent, key any) {
				parent = o
				for _, k := range path[:len(path)-1] {
					parent = step(parent, k)
				}
				return parent, path[len(path)-1]
			})
		}
		switch v := v.(type) {
		case map[string]any:
			for k := range v {
				walk(v[k], append(path[:len(path):len(path)], k))
			}
		case []any:
			for i := range v {
				walk(v[i], append(path[:len(path):len(path)], i))
			}
		}
	}
	walk(o, nil)
}

func step(v, key any) any {
	if m, ok := v.(map[string]any); ok {
		return m[key.(string)]
	}
	return v.([]any)[key.(int)]
}

// put sets the value at a path such as status.readings[0].power.
func put(t *testing.T, o map[string]any, path string, value any) {
	t.Helper()
	parts := strings.Split(strings.ReplaceAll(path, "[0]", ".0"), ".")
	var at any = o
	for i, part := range parts {
		var key any = part
		if part == "0" {
			key = 0
		}
		if i == len(parts)-1 {
			change(at, key, value)
			return
		}
		if at = step(at, key); at == nil {
			t.Fatalf("no %s in the object", path)
		}
	}
}

// FuzzToCase: an object is refused or read, and what was read is kept.
func FuzzToCase(f *testing.F) {
	for seed := range uint64(3) {
		var c fencing.Case
		filler{rand.New(rand.NewPCG(seed, 1))}.fill(f, reflect.ValueOf(&c).Elem())
		data, err := json.Marshal(object(c))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(`{"spec":{"nodeName":"n"},"status":{"streak":{"count":-1},"verdict":{"kind":"Off"}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var fc v1alpha1.FencingCase
		if json.Unmarshal(data, &fc) != nil {
			return
		}
		read, err := fc.ToCase()
		if err != nil {
			if !strings.Contains(err.Error(), "status.") {
				t.Errorf("no path: %v", err)
			}
			return
		}
		once, err := throughJSON(t, object(read)).ToCase()
		if err != nil {
			t.Fatalf("%v\n%+v", err, read)
		}
		twice, err := throughJSON(t, object(once)).ToCase()
		if d := cmp.Diff(once, twice, cmp.Comparer(time.Time.Equal)); err != nil || d != "" {
			t.Errorf("%v %s", err, d)
		}
		if saysOff(read) == "" && saysOff(twice) != "" {
			t.Errorf("became Off: %s", saysOff(twice))
		}
	})
}
