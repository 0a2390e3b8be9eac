package fencing

import "fmt"

// PowerState is what a machine's power is, as its provider says. The zero value
// is Unknown: a state that nobody set is never Off.
type PowerState uint8

// The power states. There are no others: a driver maps every word of its vendor
// to one of these, and what it does not know to Unknown.
const (
	// Unknown: no answer, an answer that is not understood, or a word that the
	// driver does not know.
	Unknown PowerState = iota
	// On: the machine is powered, whatever its operating system does.
	On
	// Off: no power, no memory; what ran before will not run on.
	Off
	// PoweringOn: on its way from Off to On.
	PoweringOn
	// PoweringOff: on its way from On to Off; it may still write.
	PoweringOff
	// Suspended: paused, asleep or hibernated. It resumes with its old memory,
	// its pods and its open files, so it is not Off (S12).
	Suspended
)

var powerNames = [...]string{"Unknown", "On", "Off", "PoweringOn", "PoweringOff", "Suspended"}

// String gives the state's one name.
func (p PowerState) String() string { return enumName(powerNames[:], uint8(p), "PowerState") }

// MarshalText gives the state's name; a value outside the enumeration is an error.
func (p PowerState) MarshalText() ([]byte, error) {
	return enumMarshal(powerNames[:], uint8(p), "power state")
}

// UnmarshalText takes exactly the names above. Anything else is an error, and
// the receiver is Unknown.
func (p *PowerState) UnmarshalText(text []byte) error {
	v, err := enumParse(powerNames[:], string(text), "power state")
	*p = PowerState(v)
	return err
}

// Transitional tells whether the machine is between two states.
func (p PowerState) Transitional() bool { return p == PoweringOn || p == PoweringOff }

func enumName(names []string, v uint8, kind string) string {
	if int(v) < len(names) {
		return names[v]
	}
	return fmt.Sprintf("%s(%d)", kind, v)
}

func enumMarshal(names []string, v uint8, kind string) ([]byte, error) {
	if int(v) < len(names) {
		return []byte(names[v]), nil
	}
	return nil, fmt.Errorf("%d is no %s", v, kind)
}

func enumParse(names []string, text, kind string) (uint8, error) {
	for i, n := range names {
		if n == text {
			return uint8(i), nil
		}
	}
	return 0, fmt.Errorf("%q is no %s; the known ones are %q", text, kind, names)
}
