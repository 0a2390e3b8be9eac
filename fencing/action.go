package fencing

// ActionKind is what a decision asks for.
type ActionKind uint8

// The actions. PowerOff, Taint and Untaint are irrevocable for somebody: Check
// looks at them once more before they are carried out.
const (
	// ActionRead: ask the machine.
	ActionRead ActionKind = iota + 1
	// ActionPowerOff: force the machine off.
	ActionPowerOff
	// ActionTaint: put the out-of-service taint on the Node.
	ActionTaint
	// ActionUntaint: take our taint off the Node.
	ActionUntaint
	// ActionAlert: tell people.
	ActionAlert
)

var actionNames = [...]string{"", "Read", "PowerOff", "Taint", "Untaint", "Alert"}

// String gives the action's name.
func (k ActionKind) String() string { return enumName(actionNames[:], uint8(k), "ActionKind") }

// Action is one thing to do after the case has been stored.
type Action struct {
	Kind ActionKind
	// Alert is what to say; for ActionAlert only.
	Alert Entry
}

// Severity is how much an entry of the timeline matters to people.
type Severity uint8

// The severities.
const (
	// Info: it happened.
	Info Severity = iota
	// Warning: somebody should look.
	Warning
	// Critical: data may be at risk; somebody must act.
	Critical
)

var severityNames = [...]string{"Info", "Warning", "Critical"}

// String gives the severity's name.
func (s Severity) String() string { return enumName(severityNames[:], uint8(s), "Severity") }

// MarshalText gives the severity's name.
func (s Severity) MarshalText() ([]byte, error) {
	return enumMarshal(severityNames[:], uint8(s), "severity")
}

// UnmarshalText takes exactly the names above.
func (s *Severity) UnmarshalText(text []byte) error {
	v, err := enumParse(severityNames[:], string(text), "severity")
	*s = Severity(v)
	return err
}
