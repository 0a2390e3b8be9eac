package story

import (
	"fmt"
	"io"
	"slices"
	"sync"
	"time"
)

// Line is one thing that happened.
type Line struct {
	At   time.Time
	Who  string
	What string
	// title begins a story, text is printed as it is, and zero is the moment that
	// a story's seconds are counted from; none is a thing that happened.
	title, text, zero bool
}

// settle is how long a line waits for earlier ones: a watch tells of a change
// before the log that says why has been read.
const settle = 300 * time.Millisecond

// Timeline collects what happens and prints it in the order of time, with the
// seconds since the failure that the story is about.
type Timeline struct {
	out     io.Writer
	mu      sync.Mutex
	zero    time.Time
	pending []Line
	stop    chan struct{}
	done    sync.WaitGroup
}

// NewTimeline prints to out until it is closed.
func NewTimeline(out io.Writer) *Timeline {
	t := &Timeline{out: out, zero: time.Now(), stop: make(chan struct{})}
	t.done.Go(t.run)
	return t
}

func (t *Timeline) run() {
	tick := time.NewTicker(settle / 3)
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			t.flush(now.Add(-settle))
		case <-t.stop:
			t.flush(time.Now().Add(settle))
			return
		}
	}
}

// Close prints what is left.
func (t *Timeline) Close() {
	close(t.stop)
	t.done.Wait()
}

// Title begins a story.
func (t *Timeline) Title(title, about string) {
	t.add(Line{At: time.Now(), Who: title, What: about, title: true, zero: true})
}

// Text adds what a command has printed.
func (t *Timeline) Text(s string) { t.add(Line{At: time.Now(), What: s, text: true}) }

// Zero sets the moment that seconds are counted from.
func (t *Timeline) Zero() { t.add(Line{At: time.Now(), zero: true}) }

// Add adds a line for something that happens now.
func (t *Timeline) Add(who, format string, args ...any) {
	t.AddAt(time.Now(), who, format, args...)
}

// AddAt adds a line for something that happened a moment ago.
func (t *Timeline) AddAt(at time.Time, who, format string, args ...any) {
	t.add(Line{At: at, Who: who, What: fmt.Sprintf(format, args...)})
}

func (t *Timeline) add(l Line) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pending = append(t.pending, l)
}

// flush prints what happened until then.
func (t *Timeline) flush(until time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	slices.SortStableFunc(t.pending, func(a, b Line) int { return a.At.Compare(b.At) })
	for len(t.pending) > 0 && !t.pending[0].At.After(until) {
		t.print(t.pending[0])
		t.pending = t.pending[1:]
	}
}

func (t *Timeline) print(l Line) {
	if l.zero {
		t.zero = l.At
	}
	switch {
	case l.title:
		fmt.Fprintf(t.out, "\n━━ %s\n   %s\n", l.Who, l.What)
	case l.text:
		fmt.Fprint(t.out, l.What)
	case !l.zero:
		fmt.Fprintf(t.out, "%+7.1fs  %-10s %s\n", l.At.Sub(t.zero).Seconds(), l.Who, l.What)
	}
}
