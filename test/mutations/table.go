package main

// mutation is a rule switched off.
type mutation struct {
	rule, what string
	edits      []edit
}

// edit replaces the one place of a file that reads old.
type edit struct{ file, old, new string }

const (
	streakFile   = "fencing/streak.go"
	checkFile    = "fencing/check.go"
	verdictFile  = "fencing/verdict.go"
	stepsFile    = "fencing/steps.go"
	decideFile   = "fencing/decide.go"
	holdFile     = "fencing/hold.go"
	recoveryFile = "fencing/recovery.go"
	actFile      = "controller/act.go"
	loopFile     = "controller/loop.go"
	lookFile     = "controller/lastlook.go"
	taintFile    = "controller/taint.go"
	recordFile   = "controller/record.go"
)

// mutations is every rule that is built, each in its parts.
var mutations = []mutation{
	{"S1", "the number of readings", []edit{
		{streakFile, "case s.Count < p.Readings:", "case false:"},
		{checkFile, "k.require(len(run) >= k.p.Readings,", "k.require(true,"},
	}},
	{"S1", "the hold", []edit{
		{streakFile, "case span < hold:", "case false:"},
		{checkFile, "k.require(span >= hold,", "k.require(true,"},
	}},
	{"S1", "the freshness of the newest reading", []edit{
		{streakFile, "case now.Sub(s.Last) > p.Freshness:", "case false:"},
		{checkFile, "k.require(age >= 0 && age <= k.p.Freshness,", "k.require(true,"},
	}},
	{"S1", "gaps break the proof", []edit{
		{streakFile, "unbroken := same && gap <= p.Freshness", "unbroken := same"},
		{checkFile, "(b.AskedAt.Sub(a.AnsweredAt) <= k.p.Freshness || dropped)", "(true || dropped)"},
	}},
	{"S1", "one provider, one address", []edit{
		{streakFile, "c.Streak.Provider == r.Provider && last.Address == r.Address &&", "true &&"},
		{checkFile, "return a.Provider == b.Provider && a.Address == b.Address &&", "return true &&"},
	}},
	{"S1", "the short hold is for our own power-off", []edit{
		{streakFile, "!c.Streak.First.Equal(po.FirstOffAt) || c.Streak.First.Sub(po.EndedAt) > p.PowerOffRetry {", "false {"},
		{checkFile, "after > k.p.PowerOffRetry || !oldest.AnsweredAt.Equal(po.FirstOffAt) {", "after < 0 {"},
		{checkFile, "if e.Power == Off && e.AskedAt.After(po.EndedAt) && e.AskedAt.Before(oldest.AskedAt) {", "if e.Failed() && false {"},
	}},
	{"S2", "a failed reading does not count", []edit{
		{"fencing/reading.go", "!r.Failed() && ", ""},
		{checkFile, "e.Power == Off && e.Failure.Kind == NoFailure &&", "e.Power == Off &&"},
		{verdictFile, "if !e.Failed() && e.Power != Unknown {", "if e.Power != Unknown {"},
	}},
	{"S2", "PoweringOff is not Off", []edit{
		{"fencing/reading.go", "return r.Power == Off &&", "return (r.Power == Off || r.Power == PoweringOff) &&"},
		{checkFile, "return e.Power == Off &&", "return (e.Power == Off || e.Power == PoweringOff) &&"},
		{verdictFile, "case e.Power.Transitional():", "case e.Power == PoweringOn:"},
	}},
	{"S2", "a witness that disagrees", []edit{
		{"fencing/reading.go", " && r.Hints.Conflict == \"\"", ""},
		{checkFile, "e.Hints.Conflict == \"\" && right", "right"},
		{verdictFile, "if e.Hints.Conflict == \"\" {", "if true {"},
	}},
	{"S3", "another machine is not ours", []edit{
		{streakFile, "right := e.Match == IdentityProved || e.Match == IdentityUnproved && p.AllowUnproved", "right := true"},
		{checkFile, "return e.Power == Off && e.Failure.Kind == NoFailure && e.Hints.Conflict == \"\" && right && timed", "_ = right; return e.Power == Off && e.Failure.Kind == NoFailure && e.Hints.Conflict == \"\" && timed"},
		{verdictFile, "case e.Match == IdentityMismatch:", "case false:"},
	}},
	{"S3", "a shared UUID proves nothing", []edit{
		{"controller/observe.go", "a.Expected.SharedUUID = c.health.shared(a.Expected.UUID)", ""},
	}},
	{"S4", "the Lease not renewed since", []edit{
		{streakFile, "renewed := c.Streak.Count > 0 && !o.Lease.RenewedAt.Equal(c.Streak.LeaseRenewedAt)", "renewed := false"},
		{streakFile, "if !o.Lease.RenewedAt.Equal(c.Streak.LeaseRenewedAt) {", "if false {"},
		{checkFile, "k.require(k.o.Lease.RenewedAt.Equal(k.c.Streak.LeaseRenewedAt),", "k.require(true,"},
	}},
	{"S4", "the last look", []edit{
		{lookFile, "violations := fencing.Check(a.Policy, kase, o, action)", "violations := fencing.Check(a.Policy, kase, o, fencing.ActionAlert)"},
	}},
	{"S4", "the preconditions of the patch", []edit{
		{taintFile, "{\"test\", \"/metadata/uid\", n.UID},\n\t\t{\"test\", \"/metadata/resourceVersion\", n.ResourceVersion},", ""},
	}},
	{"S5", "power-off only in mode Fence", []edit{
		{stepsFile, "if d.p.Mode != Fence || d.kubeletSpeaks() {\n\t\td.holdWhileAlive()\n\t\treturn\n\t}\n\tif d.o.Now.Before(grace)", "if d.kubeletSpeaks() {\n\t\td.holdWhileAlive()\n\t\treturn\n\t}\n\tif d.o.Now.Before(grace)"},
		{checkFile, "k.require(k.p.Mode == Fence,", "k.require(true,"},
	}},
	{"S5", "the grace before a power-off", []edit{
		{stepsFile, "if d.o.Now.Before(grace) || !d.fresh() {", "if !d.fresh() {"},
		{checkFile, "k.require(!k.c.NotReadySince.IsZero() && silent >= k.p.PowerOffAfter,", "k.require(true,"},
	}},
	{"S5", "paused nodes", []edit{
		{stepsFile, "case n.Paused != \"\":", "case false:"},
		{checkFile, "k.require(k.o.Node.Paused == \"\",", "k.require(true,"},
		{stepsFile, "!n.NotReady() || n.Paused != \"\" ||", "!n.NotReady() ||"},
	}},
	{"S5", "only readings after the power-off count", []edit{
		{streakFile, "if !e.countsAsOff(p) || !c.countsAfterPowerOff(r) {", "if !e.countsAsOff(p) {"},
	}},
	{"S6", "the budget of cases in action", []edit{
		{holdFile, "n >= most {", "n >= most && false {"},
	}},
	{"S6", "storms", []edit{
		{holdFile, "case cl.NotReady > limit:", "case false:"},
		{checkFile, "k.require(cl.Nodes > 0 && cl.NotReady <= k.p.Budget.Limit(cl.Nodes),", "k.require(true,"},
	}},
	{"S7", "the control plane is not powered off", []edit{
		{stepsFile, "if d.o.Node.ControlPlane {", "if false {"},
		{checkFile, "k.require(!k.o.Node.ControlPlane,", "k.require(true,"},
	}},
	{"S8", "the lease outlasts the action", []edit{
		{actFile, "if left := c.leader.Remaining(); left < deadline+leaseMargin {", "if left := c.leader.Remaining(); false {"},
	}},
	{"S9", "stored before it is done", []edit{
		{loopFile, "if err != nil {\n\t\t\tc.cases.unreserve(node)", "if false {\n\t\t\tc.cases.unreserve(node)"},
		{loopFile, "c.cases.put(dec.Case, newly)\n\t\tc.tell(dec, newly)", "if err == nil {\n\t\t\tc.cases.put(dec.Case, newly)\n\t\t\tc.tell(dec, newly)\n\t\t}"},
	}},
	{"S10", "only our own taint", []edit{
		{checkFile, "k.require(!n.Taint.Present || n.Taint.Case == k.c.Name,", "k.require(true,"},
		{decideFile, "return d.o.Node.Taint.Present && d.o.Node.Taint.Case == d.c.Name", "return d.o.Node.Taint.Present"},
		{checkFile, "k.require(!k.o.Node.Taint.Present, \"S10\", \"the node carries an out-of-service taint already\")\n\tk.require(k.o.Node.BootID", "k.require(k.o.Node.BootID"},
	}},
	{"S10", "stable before the taint goes", []edit{
		{recoveryFile, "case !d.o.Now.Before(stable) && d.newBoot()", "case d.newBoot()"},
		{checkFile, "k.require(ready >= k.p.StableFor,", "k.require(true,"},
	}},
	{"S10", "a new boot before the taint goes", []edit{
		{recoveryFile, "return d.c.BootID != \"\" && d.o.Node.BootID != \"\" && d.c.BootID != d.o.Node.BootID", "return true"},
		{checkFile, "k.require(k.c.BootID != \"\" && n.BootID != \"\" && n.BootID != k.c.BootID,", "k.require(true,"},
	}},
	{"S10", "everything has left before the taint goes", []edit{
		{recoveryFile, "d.newBoot() && d.o.Workloads.Gone():", "d.newBoot():"},
		{checkFile, "k.require(k.o.Workloads.Gone(),", "k.require(true,"},
	}},
	{"S10", "the taint goes in any case after maxWait", []edit{
		{recoveryFile, "case !d.o.Now.Before(overdue):", "case false:"},
	}},
	{"S11", "the return with the old boot", []edit{
		{recoveryFile, "if n.Ready == ReadyTrue && n.BootID != \"\" && n.BootID == d.c.BootID {", "if false {"},
	}},
	{"S11", "the Lease of a machine that is off", []edit{
		{streakFile, "if watched && renewed && late && !o.Lease.SeenAt.After(r.AskedAt) {", "if watched && renewed && late && false {"},
	}},
	{"S12", "suspended is not off", []edit{
		{verdictFile, "case e.Power == Suspended:", "case false:"},
		{"fencing/reading.go", "return r.Power == Off &&", "return (r.Power == Off || r.Power == Suspended) &&"},
		{checkFile, "return e.Power == Off &&", "return (e.Power == Off || e.Power == Suspended) &&"},
	}},
	{"S14", "held cases are announced", []edit{
		{holdFile, "d.actions = append(d.actions, Action{Kind: ActionAlert, Alert: e})", ""},
	}},
}
