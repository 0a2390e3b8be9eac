package scenario

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nodefence/nodefence/fencing"
)

// Exec carries out commands, one a line, and gives the transcript of what
// happened. A command that is not understood is an error; the ones before it
// have been carried out.
func (w *World) Exec(text string) (string, error) {
	w.out.Reset()
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if err := w.command(line); err != nil {
			return w.out.String(), fmt.Errorf("%s: %w", line, err)
		}
	}
	return w.out.String(), nil
}

// args are a command's words: plain ones and key=value.
type args struct {
	words  []string
	values map[string]string
	err    error
}

func parse(fields []string) *args {
	a := &args{values: map[string]string{}}
	for _, f := range fields {
		if k, v, ok := strings.Cut(f, "="); ok {
			a.values[k] = v
		} else {
			a.words = append(a.words, f)
		}
	}
	return a
}

func (a *args) fail(err error) {
	if a.err == nil && err != nil {
		a.err = err
	}
}

// word takes the next plain word.
func (a *args) word() string {
	if len(a.words) == 0 {
		return ""
	}
	w := a.words[0]
	a.words = a.words[1:]
	return w
}

func (a *args) take(key string) (string, bool) {
	v, ok := a.values[key]
	delete(a.values, key)
	return v, ok
}

func (a *args) duration(key string, into *time.Duration) {
	if v, ok := a.take(key); ok {
		d, err := time.ParseDuration(v)
		a.fail(err)
		*into = d
	}
}

func (a *args) number(key string, into *int) {
	if v, ok := a.take(key); ok {
		n, err := strconv.Atoi(v)
		a.fail(err)
		*into = n
	}
}

func (a *args) truth(key string, into *bool) {
	if v, ok := a.take(key); ok {
		b, err := strconv.ParseBool(v)
		a.fail(err)
		*into = b
	}
}

func (a *args) text(key string, into interface{ UnmarshalText([]byte) error }) bool {
	v, ok := a.take(key)
	if ok {
		a.fail(into.UnmarshalText([]byte(v)))
	}
	return ok
}

func (a *args) string(key string, into *string) bool {
	v, ok := a.take(key)
	if ok {
		*into = strings.ReplaceAll(v, "_", " ")
	}
	return ok
}

// done fails on what no command has asked for.
func (a *args) done() error {
	if a.err != nil {
		return a.err
	}
	left := slices.Clone(a.words)
	for k := range a.values {
		left = append(left, k+"=")
	}
	slices.Sort(left)
	if len(left) > 0 {
		return fmt.Errorf("not understood: %s", strings.Join(left, " "))
	}
	return nil
}

// commands are what a scenario may say. docs/scenarios.md explains them.
var commands map[string]func(*World, *args)

func init() {
	commands = map[string]func(*World, *args){
		"policy": (*World).cmdPolicy, "cluster": (*World).cmdCluster, "expect": (*World).cmdExpect, "config": (*World).cmdConfig,
		"machine": (*World).cmdMachine, "kubelet": (*World).cmdKubelet, "bmc": (*World).cmdBMC, "poweroff": (*World).cmdPowerOff,
		"node": (*World).cmdNode, "lease": (*World).cmdLease, "taint": (*World).cmdTaint, "workloads": (*World).cmdWorkloads,
		"case": (*World).cmdCase, "crash": (*World).cmdCrash, "run": (*World).cmdRun, "show": (*World).cmdShow, "transcript": (*World).cmdTranscript,
		"anew": (*World).cmdAnew, "api": (*World).cmdAPI,
	}
}

func (w *World) command(line string) error {
	fields := strings.Fields(line)
	cmd, ok := commands[fields[0]]
	if !ok {
		return fmt.Errorf("no such command")
	}
	a := parse(fields[1:])
	cmd(w, a)
	return a.done()
}

func (w *World) cmdPolicy(a *args) {
	p := &w.policy
	a.text("mode", &p.Mode)
	a.number("readings", &p.Readings)
	a.number("attempts", &p.PowerOffAttempts)
	a.truth("allow-unproved", &p.AllowUnproved)
	for key, into := range map[string]*time.Duration{
		"hold": &p.Hold, "hold-after-power-off": &p.HoldAfterPowerOff, "freshness": &p.Freshness, "interval": &p.ReadInterval, "read-timeout": &p.ReadTimeout,
		"hold-after": &p.HoldAfter, "alert-every": &p.AlertEvery, "power-off-after": &p.PowerOffAfter, "retry": &p.PowerOffRetry,
		"stable-for": &p.StableFor, "max-wait": &p.MaxWait,
	} {
		a.duration(key, into)
	}
	a.number("max-concurrent", &p.Budget.MaxConcurrent)
	if errs := p.Validate(); len(errs) > 0 {
		a.fail(errs[0])
	}
	w.turn()
}

func (w *World) cmdCluster(a *args) {
	a.number("nodes", &w.cluster.Nodes)
	a.number("not-ready", &w.cluster.NotReady)
	a.number("in-action", &w.cluster.InAction)
	w.turn()
}

func (w *World) cmdExpect(a *args) {
	a.string("uuid", &w.expect.UUID)
	a.string("serial", &w.expect.Serial)
	a.truth("shared", &w.expect.SharedUUID)
	w.turn()
}

// cmdConfig makes the machine's address known or not.
func (w *World) cmdConfig(a *args) {
	if !a.string("unaddressed", &w.unaddressed) {
		w.unaddressed = ""
	}
	w.turn()
}

func (w *World) cmdMachine(a *args) {
	boot, off := 60*time.Second, time.Duration(0)
	a.duration("boot", &boot)
	a.duration("off", &off)
	ready := fencing.ReadyTrue
	a.text("ready", &ready)
	switch what := a.word(); what {
	case "loses-power":
		w.lose()
	case "on":
		w.boot(boot, ready)
	case "reset":
		w.boot(boot, ready)
	case "cycle":
		w.lose()
		life := w.machine.life
		w.at(w.now.Add(off), func() {
			if w.machine.life == life {
				w.boot(boot, ready)
			}
		})
	case "suspend":
		w.setPower(fencing.Suspended)
	case "powering-off":
		w.setPower(fencing.PoweringOff)
	case "resume":
		w.setPower(fencing.On)
		w.startKubelet(fencing.ReadyTrue)
	default:
		a.fail(fmt.Errorf("the machine cannot %q", what))
	}
}

func (w *World) cmdKubelet(a *args) {
	ready := fencing.ReadyTrue
	a.text("ready", &ready)
	switch what := a.word(); what {
	case "stops":
		w.stopKubelet()
	case "starts":
		w.startKubelet(ready)
	default:
		a.fail(fmt.Errorf("the kubelet cannot %q", what))
	}
}
