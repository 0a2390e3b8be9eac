package config

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/nodefence/nodefence/providers"
)

// Watcher follows a configuration file.
type Watcher struct {
	// Path is the file.
	Path string
	// Registry says which drivers there are.
	Registry providers.Registry
	// Current is the configuration in force at the start; nil when there is none,
	// and then the first good one is a change.
	Current *Configuration
	// Accept looks at a configuration that is valid by itself; an error refuses it.
	// Nil accepts all.
	Accept func(*Configuration) error
	// Quiet is how long the file must have been left alone before it is read, so
	// that half a file is not taken for a whole one. Default: 250ms.
	Quiet time.Duration
	// Every is how often it is read without any sign of a change: notification
	// fails on some file systems, and does not cover CA files. Default: 1m.
	Every time.Duration
}

const (
	defaultQuiet = 250 * time.Millisecond
	defaultEvery = time.Minute
	// maxQuiet bounds the wait for quiet in a directory that is never quiet, as a
	// multiple of Quiet.
	maxQuiet = 20
)

// Watch follows a configuration file with the defaults of Watcher.
func Watch(ctx context.Context, path string, registry providers.Registry, onChange func(*Configuration), onError func(error)) {
	(&Watcher{Path: path, Registry: registry}).Run(ctx, onChange, onError)
}

// Run calls onChange for each new configuration until the context ends. A bad
// one is refused: onError is called once, and what was in force stays in force,
// also when the file vanishes. Both functions are called from here, one call at a
// time; nothing goes on after Run has returned.
func (w *Watcher) Run(ctx context.Context, onChange func(*Configuration), onError func(error)) {
	f := follower{Watcher: w, current: w.Current, onChange: onChange, onError: onError}
	var events <-chan fsnotify.Event
	var failures <-chan error
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		// Too many watches on this host, for example. Reading now and then still
		// works.
		onError(fmt.Errorf("changes of %s are noticed only every %s: %w", w.Path, w.every(), err))
	} else {
		defer func() { _ = notify.Close() }() // it only reads
		events, failures = notify.Events, notify.Errors
		f.notify = notify
	}
	tick := time.NewTicker(w.every())
	defer tick.Stop()
	quiet := time.NewTimer(w.quiet())
	defer quiet.Stop()
	// The watch begins before the first look, so that nothing falls between.
	f.look()
	quiet.Stop()
	var since time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-events:
			// Any event of the directory counts: a ConfigMap changes by a rename of
			// a link that the file's path does not show.
			if since.IsZero() {
				since = time.Now()
			}
			if time.Since(since) < maxQuiet*w.quiet() {
				quiet.Reset(w.quiet())
			}
			continue
		case <-failures: //nolint:errcheck // events were lost, for whatever reason: look
		case <-quiet.C:
		case <-tick.C:
		}
		since = time.Time{}
		f.look()
	}
}

func (w *Watcher) quiet() time.Duration {
	if w.Quiet > 0 {
		return w.Quiet
	}
	return defaultQuiet
}

func (w *Watcher) every() time.Duration {
	if w.Every > 0 {
		return w.Every
	}
	return defaultEvery
}

// follower is one Run of a Watcher.
type follower struct {
	*Watcher
	notify   *fsnotify.Watcher
	current  *Configuration
	refused  string // what was last refused, and why
	onChange func(*Configuration)
	onError  func(error)
}

// look reads the file and says what is new.
func (f *follower) look() {
	f.follow()
	data, err := readFile(f.Path, MaxSize)
	if err != nil {
		f.refuse("", fmt.Errorf("the configuration cannot be read, the one in force stays: %w", err))
		return
	}
	if f.current != nil && digest(data, f.current.caFiles) == f.current.digest {
		f.refused = ""
		return
	}
	c, err := Parse(data, f.Registry)
	if err == nil && f.Accept != nil {
		err = f.Accept(c)
	}
	if err != nil {
		f.refuse(digest(data, nil), fmt.Errorf("%s is refused, the configuration in force stays:\n%w", f.Path, err))
		return
	}
	f.current, f.refused = c, ""
	f.onChange(c)
}

// refuse reports an error once for each content and cause.
func (f *follower) refuse(content string, err error) {
	if id := content + "\x00" + err.Error(); id != f.refused {
		f.refused = id
		f.onError(err)
	}
}

// follow watches the directory of the file and, when the file is a link, the one
// it leads to. It is done again before each look, for directories that were
// replaced; what is watched already costs nothing, and what cannot be watched is
// read every now and then.
func (f *follower) follow() {
	if f.notify == nil {
		return
	}
	names := []string{f.Path}
	if target, err := filepath.EvalSymlinks(f.Path); err == nil {
		names = append(names, target)
	}
	for _, name := range names {
		_ = f.notify.Add(filepath.Dir(name))
	}
}
