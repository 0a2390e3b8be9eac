// Command nodefence is the fencing service and its tools. This package wires the
// others together and holds no logic of its own.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() { os.Exit(execute()) }

func execute() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := newRootCommand().ExecuteContext(ctx)
	var status exitStatus
	switch {
	case errors.As(err, &status):
		return int(status)
	case err != nil:
		fmt.Fprintln(os.Stderr, "nodefence:", err)
		return exitFailure
	}
	return 0
}

// Exit statuses, as the help of each command documents them.
const (
	exitFailure  = 1 // the command could not do its work
	exitFindings = 2 // check: it did, and something is not as it must be
)

// exitStatus ends the process with a status after the command has said why.
type exitStatus int

// Error is never shown.
func (e exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(e)) }
