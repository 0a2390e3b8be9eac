package redfish

import (
	"errors"
	"fmt"
	"time"

	"github.com/nodefence/nodefence/fencing"
)

// problem is a failure with its kind, as text only: an error chain could carry
// secrets along.
type problem struct {
	kind       fencing.FailureKind
	text       string
	retryAfter time.Duration
}

func (p *problem) Error() string { return p.text }

func problemf(kind fencing.FailureKind, format string, args ...any) *problem {
	return &problem{kind: kind, text: fmt.Sprintf(format, args...)}
}

// kindOf is the kind of an error of this package; what nobody classified is
// Failed.
func kindOf(err error) fencing.FailureKind {
	var p *problem
	switch {
	case err == nil:
		return fencing.NoFailure
	case errors.As(err, &p):
		return p.kind
	}
	return fencing.Failed
}
