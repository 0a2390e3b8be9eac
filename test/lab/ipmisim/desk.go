package ipmisim

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/nodefence/nodefence/test/lab"
)

// desk answers the simulator's script.
type desk struct {
	machine  *lab.Machine
	cycleOff time.Duration
	ask      *os.File
	answer   *os.File
	closed   chan struct{}
	done     chan struct{}

	mu    sync.Mutex
	delay time.Duration
	fails bool
}

func openDesk(dir string, m *lab.Machine, cycleOff time.Duration) (*desk, error) {
	d := &desk{machine: m, cycleOff: cycleOff, closed: make(chan struct{}), done: make(chan struct{})}
	var err error
	if d.ask, err = openFIFO(filepath.Join(dir, askFIFO)); err != nil {
		return nil, err
	}
	if d.answer, err = openFIFO(filepath.Join(dir, answerFIFO)); err != nil {
		_ = d.ask.Close()
		return nil, err
	}
	go d.serve()
	return d, nil
}

// openFIFO makes and opens a FIFO for both directions: then neither opening it
// blocks, nor does reading end when a script has gone.
func openFIFO(path string) (*os.File, error) {
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		return nil, fmt.Errorf("ipmisim: %s: %w", path, err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("ipmisim: %w", err)
	}
	return f, nil
}

func (d *desk) close() {
	close(d.closed)
	_ = d.ask.Close()
	_ = d.answer.Close()
	<-d.done
}

func (d *desk) setDelay(delay time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.delay = delay
}

func (d *desk) setFails(fails bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fails = fails
}

func (d *desk) faults() (time.Duration, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.delay, d.fails
}

// serve answers one question after the other, as the simulator asks them.
func (d *desk) serve() {
	defer close(d.done)
	lines := bufio.NewScanner(d.ask)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) < 2 {
			continue
		}
		delay, fails := d.faults()
		if delay > 0 {
			select {
			case <-time.After(delay):
			case <-d.closed:
				return
			}
		}
		text, err := "", errors.New("ipmisim: the script was told to fail")
		if !fails {
			text, err = d.do(words[1:])
		}
		status := 0
		if err != nil {
			status = 1
		}
		if _, err := fmt.Fprintf(d.answer, "%s %d %s\n", words[0], status, text); err != nil {
			return
		}
	}
}

// do carries out "get PARM…", "set PARM VALUE…" or "check PARM…".
func (d *desk) do(words []string) (string, error) {
	var out strings.Builder
	switch args := words[1:]; words[0] {
	case "get":
		for _, parm := range args {
			switch parm {
			case "power":
				n := 1
				if d.machine.Power() == lab.Off {
					n = 0
				}
				fmt.Fprintf(&out, `power:%d\n`, n)
			default:
				fmt.Fprintf(&out, `%s:0\n`, parm)
			}
		}
	case "set":
		for len(args) >= 2 {
			if err := d.set(args[0], args[1]); err != nil {
				return "", err
			}
			args = args[2:]
		}
	case "check":
	default:
		return "", fmt.Errorf("ipmisim: the script was asked %q", words)
	}
	return out.String(), nil
}

func (d *desk) set(parm, value string) error {
	const by = "ipmi_sim"
	switch {
	case parm == "power" && value == "0":
		return d.machine.ForceOff(by)
	case parm == "power":
		// The simulator makes a power cycle of two commands a second apart; this
		// lengthens the time between.
		if st := d.machine.State(); st.Power == lab.Off && st.LastOffBy == by {
			if rest := d.cycleOff - time.Since(st.OffSince); rest > 0 {
				select {
				case <-time.After(rest):
				case <-d.closed:
				}
			}
		}
		return d.machine.PowerOn(by)
	case parm == "reset":
		_ = d.machine.Reset(by) // answers OK for a machine that is off, as many do
	case parm == "shutdown":
		return d.machine.GracefulShutdown(by)
	}
	return nil // identify, boot device and the like do not concern us
}
