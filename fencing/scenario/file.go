package scenario

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// separator parts the commands of a step from its transcript.
const separator = "----"

// Step is a group of commands and the transcript that is recorded for them.
type Step struct {
	// Comment is the text before the commands, with its marks.
	Comment string
	// Commands are the commands, one a line.
	Commands string
	// Recorded is the transcript in the file.
	Recorded string
}

// Parse reads a scenario file: steps of commands, "----" and a transcript, each
// ended by an empty line.
func Parse(r io.Reader) ([]Step, error) {
	var steps []Step
	var s Step
	recorded := false
	flush := func() {
		if s.Commands != "" {
			steps = append(steps, s)
			s = Step{}
		}
		recorded = false
	}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line := lines.Text()
		switch {
		case line == "" && recorded:
			flush()
		case line == separator && s.Commands == "":
			return nil, fmt.Errorf("a transcript without commands")
		case line == separator && !recorded:
			recorded = true
		case recorded:
			s.Recorded += line + "\n"
		case strings.HasPrefix(line, "#") && s.Commands == "":
			s.Comment += line + "\n"
		case line != "":
			s.Commands += line + "\n"
		}
	}
	if s.Commands != "" && !recorded {
		return nil, fmt.Errorf("the last commands are not followed by %s", separator)
	}
	flush()
	return steps, lines.Err()
}

// Run plays a scenario and writes it with the transcript of what happens now. It
// tells whether that is what was recorded.
func Run(r io.Reader, out io.Writer) (same bool, err error) {
	steps, err := Parse(r)
	if err != nil {
		return false, err
	}
	w := New()
	same = true
	for i, s := range steps {
		got, err := w.Exec(s.Commands)
		if err != nil {
			return false, fmt.Errorf("step %d: %w", i+1, err)
		}
		same = same && got == s.Recorded
		if _, err := fmt.Fprintf(out, "%s%s%s\n%s\n", s.Comment, s.Commands, separator, got); err != nil {
			return false, err
		}
	}
	return same, nil
}
