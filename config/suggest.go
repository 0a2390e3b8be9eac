package config

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/nodefence/nodefence/fencing"
)

var modeNames = []string{fencing.Observe.String(), fencing.Confirm.String(), fencing.Fence.String()}

// suggestField says what a misspelt field may have meant: one with a similar
// name, or one of that name a level deeper; failing that, which there are.
func suggestField(t reflect.Type, name string) string {
	known := fieldNames(t)
	if s := suggest(name, known); s != "" {
		return s
	}
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Type.Kind() == reflect.Struct && f.IsExported() && f.Type != durationType {
			if _, ok := fieldByName(f.Type, name); ok {
				return "; did you mean " + strconv.Quote(fieldName(f)+"."+name) + "?"
			}
		}
	}
	return "; the known ones are " + quoteAll(known)
}

// suggest gives "; did you mean …?" for the known name nearest to got, if one is
// near.
func suggest(got string, known []string) string {
	best, least := "", 0
	for _, k := range known {
		limit := max(1, len(k)/3)
		d := distance(strings.ToLower(got), strings.ToLower(k), limit)
		if d <= limit && (best == "" || d < least) {
			best, least = k, d
		}
	}
	if best == "" || best == got {
		return ""
	}
	return "; did you mean " + strconv.Quote(best) + "?"
}

// distance is the number of letters to insert, delete, replace or swap with the
// next to get from a to b, or more than limit when it is more.
func distance(a, b string, limit int) int {
	if len(a)-len(b) > limit || len(b)-len(a) > limit {
		return limit + 1
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j-1]+cost, last[j]+1, row[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}

// quoteAll lists names for people, as many as one can read.
func quoteAll(names []string) string {
	const most = 12
	quoted := make([]string, 0, most)
	for i, n := range names {
		if i == most {
			return fmt.Sprintf("%s and %d more", strings.Join(quoted, ", "), len(names)-most)
		}
		quoted = append(quoted, strconv.Quote(clip(n)))
	}
	return strings.Join(quoted, ", ")
}

// clip shortens a value for a message.
func clip(s string) string {
	const most = 80
	if len(s) <= most {
		return s
	}
	cut := most
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}
