package story

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// Line is one thing that happened.
type Line struct {
	At   time.Time
	Who  string
	What string
}

// Timeline collects what happens and prints it as it does, with the seconds
// since the failure that the story is about.
type Timeline struct {
	out   io.Writer
	mu    sync.Mutex
	zero  time.Time
	lines []Line
}

// NewTimeline prints to out.
func NewTimeline(out io.Writer) *Timeline { return &Timeline{out: out, zero: time.Now()} }

// Title begins a story.
func (t *Timeline) Title(title, about string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.zero = time.Now()
	fmt.Fprintf(t.out, "\n━━ %s\n   %s\n", title, about)
}

// Zero sets the moment that seconds are counted from.
func (t *Timeline) Zero() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.zero = time.Now()
}

// Add adds a line and prints it.
func (t *Timeline) Add(who, format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := Line{time.Now(), who, fmt.Sprintf(format, args...)}
	t.lines = append(t.lines, l)
	fmt.Fprintf(t.out, "%+7.1fs  %-10s %s\n", l.At.Sub(t.zero).Seconds(), l.Who, l.What)
}

// Since gives the lines since a moment.
func (t *Timeline) Since(at time.Time) []Line {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []Line
	for _, l := range t.lines {
		if !l.At.Before(at) {
			out = append(out, l)
		}
	}
	return out
}
