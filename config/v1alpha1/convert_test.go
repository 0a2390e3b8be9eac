package v1alpha1_test

import (
	"encoding"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/nodefence/nodefence/config/v1alpha1"
	"github.com/nodefence/nodefence/fencing"
)

// TestRoundTrip: a case comes back from its object as it was, whatever is in it
// (S9). The values are set by reflection, so a field that is added to
// fencing.Case and forgotten in the conversion fails here.
func TestRoundTrip(t *testing.T) {
	for seed := range uint64(300) {
		f := filler{rand.New(rand.NewPCG(seed, 0))}
		var want fencing.Case
		f.fill(t, reflect.ValueOf(&want).Elem())
		checkFilled(t, "Case", reflect.ValueOf(want))
		for form, through := range forms {
			got, err := through(t, object(want)).ToCase()
			if err != nil {
				t.Fatalf("seed %d, %s: %v", seed, form, err)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Fatalf("seed %d, %s: -want +got:\n%s", seed, form, d)
			}
		}
	}
}

// TestRoundTripOfOneField: each field is kept although all others are empty, but
// for those that are details of one that is empty.
func TestRoundTripOfOneField(t *testing.T) {
	details := []string{"Hold.Message", "Hold.AlertedAt", "Streak.", "PowerOff.", "Failure.Message", "Failure.RetryAfter"}
	f := filler{rand.New(rand.NewPCG(1, 2))}
	var full fencing.Case
	f.fill(t, reflect.ValueOf(&full).Elem())
	n := 0
	for _, path := range leaves(reflect.TypeFor[fencing.Case](), nil) {
		var want fencing.Case
		name := set(reflect.ValueOf(&want).Elem(), reflect.ValueOf(full), path)
		got, err := throughJSON(t, object(want)).ToCase()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		isDetail := false
		for _, d := range details {
			isDetail = isDetail || strings.Contains(name, d)
		}
		if d := cmp.Diff(want, got); d != "" && !isDetail || d == "" && isDetail && !strings.HasSuffix(name, ".Count") && !strings.HasSuffix(name, ".Attempts") {
			t.Errorf("%s alone: -want +got:\n%s", name, d)
		}
		n++
	}
	if n < 60 {
		t.Errorf("only %d fields", n)
	}
}

func object(c fencing.Case) *v1alpha1.FencingCase {
	spec, status := v1alpha1.FromCase(c)
	return &v1alpha1.FencingCase{ObjectMeta: metav1.ObjectMeta{Name: c.Name}, Spec: spec, Status: status}
}

// forms are the ways that objects take: bytes, and client-go's maps.
var forms = map[string]func(*testing.T, *v1alpha1.FencingCase) *v1alpha1.FencingCase{
	"JSON":         throughJSON,
	"unstructured": throughUnstructured,
}

func throughJSON(t *testing.T, o *v1alpha1.FencingCase) *v1alpha1.FencingCase {
	t.Helper()
	data, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	var out v1alpha1.FencingCase
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return &out
}

func throughUnstructured(t *testing.T, o *v1alpha1.FencingCase) *v1alpha1.FencingCase {
	t.Helper()
	m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		t.Fatal(err)
	}
	var out v1alpha1.FencingCase
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(m, &out, true); err != nil {
		t.Fatal(err)
	}
	return &out
}

// filler makes random values that a controller could have.
type filler struct{ *rand.Rand }

func (f filler) fill(t testing.TB, v reflect.Value) {
	t.Helper()
	switch x := v.Addr().Interface().(type) {
	case *time.Time:
		*x = time.UnixMicro(1 + f.Int64N(4e15)).UTC()
		return
	case *time.Duration:
		*x = time.Duration(1 + f.Int64N(int64(time.Hour)))
		return
	case *fencing.Reason:
		all := fencing.Reasons()
		*x = all[f.IntN(len(all))]
		return
	case encoding.TextUnmarshaler:
		// An enum: any of its values but the zero one, which checkFilled could not
		// tell from a field that was forgotten.
		names := enumNames(v.Type())[1:]
		if err := x.UnmarshalText([]byte(names[f.IntN(len(names))])); err != nil {
			t.Fatal(err)
		}
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprintf("%d äöü \"\\<\n", f.IntN(1e6)))
	case reflect.Int:
		v.SetInt(1 + f.Int64N(1e6))
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1+f.IntN(3), 3))
		for i := range v.Len() {
			f.fill(t, v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			f.fill(t, v.Field(i))
		}
	default:
		t.Fatalf("%s: teach this test about %s", v.Type(), v.Kind())
	}
}

// enumNames lists the names of an enum's values, the zero one first.
func enumNames(t reflect.Type) []string {
	var names []string
	for i := range uint64(256) {
		v := reflect.New(t).Elem()
		v.SetUint(i)
		if text, err := v.Interface().(encoding.TextMarshaler).MarshalText(); err == nil {
			names = append(names, string(text))
		}
	}
	return names
}

func checkFilled(t *testing.T, path string, v reflect.Value) {
	t.Helper()
	if v.IsZero() {
		t.Fatalf("%s was not filled", path)
	}
	if _, ok := v.Interface().(time.Time); ok {
		return
	}
	switch v.Kind() {
	case reflect.Slice:
		checkFilled(t, path+"[0]", v.Index(0))
	case reflect.Struct:
		for i := range v.NumField() {
			checkFilled(t, path+"."+v.Type().Field(i).Name, v.Field(i))
		}
	default:
	}
}

// leaves gives the fields without fields of their own, as indexes. Of lists it
// gives the first item's.
func leaves(t reflect.Type, at []int) [][]int {
	if t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || t == reflect.TypeFor[time.Time]() {
		return [][]int{at}
	}
	var out [][]int
	for i := range t.NumField() {
		out = append(out, leaves(t.Field(i).Type, append(at[:len(at):len(at)], i))...)
	}
	return out
}

// set copies one field, and gives its name.
func set(to, from reflect.Value, path []int) string {
	name := ""
	for _, i := range path {
		if to.Kind() == reflect.Slice {
			to.Set(reflect.MakeSlice(to.Type(), 1, 1))
			to, from = to.Index(0), from.Index(0)
			name += "[0]"
		}
		name += "." + to.Type().Field(i).Name
		to, from = to.Field(i), from.Field(i)
	}
	to.Set(from)
	return name
}

// TestBoundsFitTheSchema: a case with as much in it as a controller keeps is not
// refused by the API server.
func TestBoundsFitTheSchema(t *testing.T) {
	for field, kept := range map[string]int{"readings": fencing.MaxReadings + 1, "timeline": fencing.MaxTimeline + 1} {
		schema := schemaAt(t, "status", field)
		if most, ok := schema["maxItems"].(float64); !ok || int(most) < kept {
			t.Errorf("the schema allows %v %s, and %d are kept", schema["maxItems"], field, kept)
		}
	}
}

var inAnyOrder = cmpopts.SortSlices(func(a, b any) bool { return a.(string) < b.(string) })

// TestEnumsMatchTheSchema: the schema allows exactly the words that are written.
func TestEnumsMatchTheSchema(t *testing.T) {
	for path, typ := range map[string]reflect.Type{
		"status state":                       reflect.TypeFor[fencing.CaseState](),
		"status verdict kind":                reflect.TypeFor[fencing.VerdictKind](),
		"status readings items power":        reflect.TypeFor[fencing.PowerState](),
		"status readings items identity":     reflect.TypeFor[fencing.IdentityMatch](),
		"status timeline items severity":     reflect.TypeFor[fencing.Severity](),
		"status powerOff failure kind":       reflect.TypeFor[fencing.FailureKind](),
		"status readings items failure kind": reflect.TypeFor[fencing.FailureKind](),
	} {
		var want []any
		for _, name := range enumNames(typ) {
			if name != "" { // left out
				want = append(want, name)
			}
		}
		if d := cmp.Diff(want, schemaAt(t, strings.Fields(path)...)["enum"], inAnyOrder); d != "" {
			t.Errorf("%s: -code +schema:\n%s", path, d)
		}
	}
}
