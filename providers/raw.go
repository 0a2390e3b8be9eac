package providers

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/nodefence/nodefence/fencing"
)

// CleanRaw makes text from outside fit for a record: valid UTF-8, one line,
// printable, at most fencing.MaxRawLength bytes.
func CleanRaw(s string) string {
	var b strings.Builder
	space := false
	for _, r := range s {
		if b.Len() >= fencing.MaxRawLength {
			break
		}
		if unicode.IsSpace(r) {
			space = b.Len() > 0
			continue
		}
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			r = '?'
		}
		if space {
			b.WriteByte(' ')
			space = false
		}
		b.WriteRune(r)
	}
	out := b.String()
	for len(out) > fencing.MaxRawLength {
		_, n := utf8.DecodeLastRuneInString(out)
		out = out[:len(out)-n]
	}
	return out
}
