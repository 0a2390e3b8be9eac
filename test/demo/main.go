// Command demo is `make demo`: nodefence's main job on a real control plane, as
// five stories with a timeline. It needs no root and no packages, and leaves
// nothing behind.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/nodefence/nodefence/test/story"
)

func main() { os.Exit(run()) }

func run() int {
	defaults := flag.Bool("defaults", false, "run with Kubernetes' and nodefence's own default times (about 25 minutes)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	timing := story.Shortened()
	if *defaults {
		timing = story.Defaults()
	}
	begin := time.Now()
	err := story.Demo(ctx, story.Options{Timing: timing, Out: os.Stdout, Progress: os.Stdout})
	switch {
	case err != nil && ctx.Err() != nil:
		fmt.Println("\nStopped; everything that was started has ended.")
		return 130
	case err != nil:
		fmt.Fprintln(os.Stderr, "\ndemo:", err)
		return 1
	}
	fmt.Printf("\nAll stories went as told, in %s. Nothing is left behind.\n", time.Since(begin).Round(time.Second))
	if errors.Is(ctx.Err(), context.Canceled) {
		return 130
	}
	return 0
}
