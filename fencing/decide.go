package fencing

import (
	"fmt"
	"time"
)

// Decision is what Decide says.
type Decision struct {
	// Case is what the case becomes. It is stored before any action is carried
	// out (S9).
	Case Case
	// Actions are to be carried out in order, after the case has been stored.
	Actions []Action
	// NextAt is when to decide again although nothing has changed; zero when
	// only a change matters.
	NextAt time.Time
	// Entries are what was added to the case's timeline.
	Entries []Entry
}

// Decide says what becomes of a case. It is pure: the same policy, case and
// observation give the same decision. c is the zero Case when the node has no
// open one.
//
//nolint:gocritic // everything comes by value on purpose: nothing is shared with the caller
func Decide(p Policy, c Case, o Observation) Decision {
	d := &decider{p: p, c: c.clone(), o: o}
	switch {
	case c.State == Closed:
	case c.State == NoCase:
		d.consider()
	default:
		d.advance()
	}
	return Decision{Case: d.c, Actions: d.actions, NextAt: d.nextAt, Entries: d.entries}
}

// decider is one decision in the making.
type decider struct {
	p       Policy
	c       Case
	o       Observation
	actions []Action
	entries []Entry
	nextAt  time.Time
}

// consider opens a case when the node is silent, or when a taint of ours has no
// case to take care of it.
func (d *decider) consider() {
	n := d.o.Node
	switch {
	case !n.Exists:
		return
	case n.Taint.Case != "":
		d.open(n.Taint.Case, n.Taint.BootID)
		d.c.State, d.c.Taint.AppliedAt = Tainted, d.o.Now
		d.note(Warning, ReasonTaintAdopted, "the node carries our taint, but its case is gone; this case takes care of it")
	case n.Ready == ReadyUnknown || d.o.Lease.Exists && d.o.Lease.Age(d.o.Now) >= d.p.SuspectAfter:
		d.open(CaseName(n, d.o.Lease), n.BootID)
		d.c.State = Suspected
		d.note(Info, ReasonOpened, "the node is silent: "+d.silence())
	default:
		if d.o.Lease.Exists {
			d.wake(d.o.Lease.SeenAt.Add(d.p.SuspectAfter))
		}
		return
	}
	d.advance()
}

func (d *decider) open(name, bootID string) {
	d.c = Case{
		Name: name, Node: d.o.Node.Name, NodeUID: d.o.Node.UID, BootID: bootID, Group: d.p.Group,
		OpenedAt: d.o.Now, LeaseRenewedAt: d.o.Lease.RenewedAt,
	}
}

// advance takes in the observation and moves the case on by at most one step.
func (d *decider) advance() {
	if d.c.Group != d.p.Group {
		d.c.Group = d.p.Group
	}
	d.distrustClocks()
	d.setClocks()
	d.absorbPowerOff()
	d.c.compareAgain(d.p, d.o.Expected)
	contradiction := ""
	if d.o.Reading != nil {
		contradiction = d.c.absorbReading(d.p, d.o)
	}
	switch {
	case !d.o.Node.Exists:
		d.closeDeleted()
		return
	case d.o.Node.UID != d.c.NodeUID:
		d.close(ReasonClosedReplaced, "the Node object is another one of the same name (UID "+d.o.Node.UID+")")
		return
	case d.rebooted():
		d.close(ReasonClosedRestarted, fmt.Sprintf("the node reported from another boot (%q, before %q), and is not Ready", d.o.Node.BootID, d.c.BootID))
		return
	}
	if contradiction == "" {
		contradiction = d.contradiction()
	}
	if contradiction != "" && d.c.State != Distrusted {
		d.distrust(contradiction)
	}
	d.setVerdict()
	d.step()
	d.scheduleReading()
	d.announce()
	if d.c.Open() && d.nextAt.IsZero() {
		d.wake(d.o.Now.Add(d.p.AlertEvery)) // no open case depends on changes alone
	}
}

// rebooted tells whether the node has reported from another boot than the one
// that the case is about, and yet is not Ready: what was seen before says nothing
// of it, and its return with this boot ID would look like a recovery (S11).
func (d *decider) rebooted() bool {
	switch d.c.State {
	case Suspected, PoweringOffMachine, Tainting:
		n := d.o.Node
		return n.NotReady() && n.BootID != d.c.BootID && !d.ourTaint()
	}
	return false
}

// ourTaint tells whether this case's taint is on the Node.
func (d *decider) ourTaint() bool {
	return d.o.Node.Taint.Present && d.o.Node.Taint.Case == d.c.Name
}

func (d *decider) step() {
	//exhaustive:enforce
	switch d.c.State {
	case NoCase, Closed: // nothing is to be done
	case Suspected:
		d.stepSuspected()
	case PoweringOffMachine:
		d.stepPoweringOff()
	case Tainting:
		d.stepTainting()
	case Tainted:
		d.stepTainted()
	case Recovering:
		d.stepRecovering()
	case Untainting:
		d.stepUntainting()
	case Distrusted:
		d.stepDistrusted()
	}
}

// setClocks keeps our own clocks of Ready and not Ready. Kubernetes' transition
// time does not serve: a change from Unknown to False resets it (S6).
func (d *decider) setClocks() {
	switch {
	case !d.o.Node.Exists:
	case d.o.Node.NotReady():
		d.c.ReadySince = time.Time{}
		if d.c.NotReadySince.IsZero() {
			d.c.NotReadySince = d.o.Now
			d.note(Info, ReasonNodeNotReady, "the node's Ready condition is "+d.o.Node.Ready.String())
		}
	case d.o.Node.Ready == ReadyTrue:
		d.c.NotReadySince = time.Time{}
		if d.c.ReadySince.IsZero() {
			d.c.ReadySince = d.o.Now
		}
	default:
		d.c.NotReadySince, d.c.ReadySince = time.Time{}, time.Time{}
	}
}

// distrustClocks drops what lies in the future. It was written by a controller
// whose clock was ahead of ours, or before ours was set back: readings would not
// be taken in, and people not be told, until that time comes.
func (d *decider) distrustClocks() {
	kept := len(d.c.Readings)
	for kept > 0 && d.c.Readings[kept-1].AskedAt.After(d.o.Now) {
		kept--
	}
	if kept < len(d.c.Readings) || d.c.Streak.Last.After(d.o.Now) {
		d.c.Readings, d.c.Streak = d.c.Readings[:kept], Streak{}
	}
	c := &d.c
	for _, t := range []*time.Time{
		&c.NotReadySince, &c.ReadySince, &c.Verdict.Since, &c.Hold.Since, &c.Hold.AlertedAt,
		&c.PowerOff.IntendedAt, &c.PowerOff.EndedAt, &c.Taint.IntendedAt, &c.Taint.AppliedAt,
	} {
		if t.After(d.o.Now) {
			*t = d.o.Now
		}
	}
}

func (d *decider) setVerdict() {
	v := judge(d.p, d.c, d.o)
	old := d.c.Verdict
	v.Since = old.Since
	if v.Kind != old.Kind || v.Reason != old.Reason {
		v.Since = d.o.Now
		d.note(severityOf(v), ReasonVerdict, v.Kind.String()+" ("+string(v.Reason)+"): "+v.Message)
	}
	d.c.Verdict = v
}

func severityOf(v Verdict) Severity {
	switch v.Kind {
	case Contradicted:
		return Critical
	case Misidentified:
		return Warning
	}
	return Info
}

// scheduleReading asks for the next reading when it is due. Readings go on for
// as long as the case is open, also after the taint: a machine may be started
// again by a person, a watchdog or its restore policy.
func (d *decider) scheduleReading() {
	if d.o.Unaddressed != "" || d.c.State == Distrusted || d.c.State == Closed {
		return
	}
	due := d.o.Now
	if e, ok := d.c.Newest(); ok {
		due = e.AskedAt.Add(d.interval(e))
		if d.c.awaitsReading(e) {
			due = earliest(due, e.AskedAt.Add(d.p.ReadInterval))
		}
	}
	if due.After(d.o.Now) {
		d.wake(due)
		return
	}
	d.actions = append(d.actions, Action{Kind: ActionRead})
	d.wake(d.o.Now.Add(d.p.ReadTimeout + d.p.ReadInterval))
}

// calmInterval is the time between readings once nothing hangs on them any more.
const calmInterval = 30 * time.Second

// interval is the time from the newest reading to the next: the policy's, longer
// where the provider asks for peace, and much longer where it refuses the
// credentials, because many BMCs lock an account after a few bad log-ins.
func (d *decider) interval(e Evidence) time.Duration {
	interval := d.p.ReadInterval
	calm := d.c.State == Tainted || d.c.State == Recovering && d.o.Node.Ready == ReadyTrue
	if calm && !d.c.Taint.EvacuatedAt.IsZero() {
		interval = max(interval, calmInterval)
	}
	switch {
	case d.c.Refusals >= 6:
		interval = max(interval, 5*time.Minute)
	case d.c.Refusals >= 3:
		interval = max(interval, time.Minute)
	}
	return max(interval, min(e.Failure.RetryAfter, 5*time.Minute))
}

func (d *decider) wake(t time.Time) {
	if t.After(d.o.Now) && (d.nextAt.IsZero() || t.Before(d.nextAt)) {
		d.nextAt = t
	}
}

// note adds an entry to the timeline; the first entry is kept for good.
func (d *decider) note(s Severity, r Reason, message string) {
	e := Entry{At: d.o.Now, Severity: s, Reason: r, Message: message}
	d.entries = append(d.entries, e)
	d.c.Timeline = append(d.c.Timeline, e)
	if len(d.c.Timeline) > MaxTimeline {
		d.c.Timeline = append(d.c.Timeline[:1], d.c.Timeline[len(d.c.Timeline)-MaxTimeline+1:]...)
	}
}

func (d *decider) silence() string {
	s := "its Ready condition is " + d.o.Node.Ready.String()
	if d.o.Lease.Exists {
		s += ", its Lease was last renewed at " + d.o.Lease.RenewedAt.UTC().Format("15:04:05")
	}
	return s
}

func (d *decider) close(r Reason, message string) {
	d.c.State, d.c.ClosedAt, d.c.Hold = Closed, d.o.Now, Hold{}
	d.note(Info, r, message)
	if d.o.Node.Exists {
		d.wake(d.o.Now.Add(retryAction)) // the node may be silent still, or again
	}
}

// closeDeleted closes the case of a deleted Node. Kubernetes force-deletes its
// pods whatever the machine does: where it is alive, people must know (S15).
func (d *decider) closeDeleted() {
	alive := d.c.Verdict.Kind.alive() && !d.c.NotReadySince.IsZero()
	d.close(ReasonClosedNodeDeleted, "the Node object is gone")
	if alive {
		d.actions = append(d.actions, Action{Kind: ActionAlert, Alert: Entry{At: d.o.Now, Severity: Warning, Reason: ReasonClosedNodeDeleted,
			Message: "the Node object was deleted while its machine was not off: " + d.c.Verdict.Message}})
	}
}
