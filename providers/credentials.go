package providers

import "log/slog"

// Credentials are a name and a password. However they are printed, only the name
// shows (S13).
type Credentials struct {
	Username string
	Password string
}

const redacted = "[redacted]"

// String hides the password.
func (c Credentials) String() string { return c.Username + ":" + redacted }

// GoString hides the password from %#v.
func (c Credentials) GoString() string { return "providers.Credentials{" + c.String() + "}" }

// MarshalText hides the password from JSON, YAML and loggers that encode values.
func (c Credentials) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// LogValue hides the password from log/slog.
func (c Credentials) LogValue() slog.Value { return slog.StringValue(c.String()) }
