package config

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Amount is a number of nodes or a percentage of all nodes.
type Amount struct {
	Value   int
	Percent bool
}

// String gives the amount as the file has it, such as 3 or 40%.
func (a Amount) String() string {
	s := strconv.Itoa(a.Value)
	if a.Percent {
		s += "%"
	}
	return s
}

// MarshalText gives the amount as the file has it.
func (a Amount) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText takes digits with or without a percent sign, and nothing else.
func (a *Amount) UnmarshalText(text []byte) error {
	digits, percent := strings.CutSuffix(string(text), "%")
	n, err := strconv.ParseUint(digits, 10, 31)
	if err != nil {
		return fmt.Errorf("is %q, but must be a number of nodes such as 3, or a percentage such as 40%%", text)
	}
	*a = Amount{Value: int(n), Percent: percent}
	return nil
}

// Options are a driver's options as JSON. They may hold anything, so they are
// kept out of whatever is printed (S13).
type Options json.RawMessage

// String says only how much there is.
func (o Options) String() string { return fmt.Sprintf("[%d bytes of options]", len(o)) }

// GoString says only how much there is.
func (o Options) GoString() string { return o.String() }

// MarshalJSON gives the options themselves: a Configuration that was written out
// can be read in again.
func (o Options) MarshalJSON() ([]byte, error) { return json.RawMessage(o).MarshalJSON() }
