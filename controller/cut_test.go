package controller

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// An Event's message has at most 1024 bytes (the API server refuses more), and no
// letter is cut in two.
func TestCut(t *testing.T) {
	for _, s := range []string{"", "short", strings.Repeat("a", 1000), strings.Repeat("a", 1001), strings.Repeat("é", 700), "a" + strings.Repeat("é", 700), strings.Repeat("漢", 900)} {
		got := cut(s)
		if len(got) > 1024 || !utf8.ValidString(got) || len(s) <= 1000 && got != s || len(s) > 1000 && len(got) < 990 {
			t.Errorf("%d bytes became %d, valid %t", len(s), len(got), utf8.ValidString(got))
		}
	}
}
