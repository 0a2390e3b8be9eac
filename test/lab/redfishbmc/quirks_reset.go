package redfishbmc

import (
	"net/http"
	"time"

	"github.com/nodefence/nodefence/test/lab"
)

// What becomes of commands.
var (
	// IgnoresReset: 204, and nothing happens; some firmware after an update.
	IgnoresReset = Quirk{Name: "IgnoresReset", area: AreaAction, reset: func(c *call, _ string) bool {
		c.sendNothing()
		return true
	}}
	// PreconditionFailed: 412 to any action with If-Match, even a right one
	// (iDRAC10).
	PreconditionFailed = Quirk{Name: "PreconditionFailed", area: AreaAction, answer: func(c *call) bool {
		if c.r.Header.Get("If-Match") == "" {
			return false
		}
		c.preconditionFailed()
		return true
	}}
	// WithoutForceOff: the action does not list ForceOff.
	WithoutForceOff = onSystem("WithoutForceOff", func(c *call, doc map[string]any) {
		doc["Actions"] = map[string]any{"#ComputerSystem.Reset": map[string]any{
			"target":                            systemsPath + "/" + c.sys.ID + resetSuffix,
			"ResetType@Redfish.AllowableValues": []any{"On", "GracefulShutdown", "GracefulRestart", "ForceRestart"},
		}}
	})
	// WithoutReset: a system that cannot be switched (a baseboard).
	WithoutReset = without("WithoutReset", AreaSystem, "Actions")
	// ResetDoneAnswerLost: the command is carried out and the answer never
	// comes; the connection closes.
	ResetDoneAnswerLost = Quirk{Name: "ResetDoneAnswerLost", area: AreaAction, reset: func(c *call, t string) bool {
		_ = c.apply(t)
		c.cut()
		return true
	}}
	// RestartReapplies: when the controller restarts, it starts machines that
	// are off, because it believes that they should run (OpenBMC).
	RestartReapplies = Quirk{Name: "RestartReapplies", area: AreaAction, reapplies: true}
)

// ForceOffRefusedWhenOff answers ForceOff with 409 or 400 when the machine is
// off already.
func ForceOffRefusedWhenOff(status int) Quirk {
	return Quirk{Name: "ForceOffRefusedWhenOff", area: AreaAction, reset: func(c *call, t string) bool {
		if t != "ForceOff" || c.sys.machine().Power() != lab.Off {
			return false
		}
		c.refuse(status, lab.ErrOff)
		return true
	}}
}

// QueuedForceOff accepts ForceOff (202) and carries it out later; until then
// the machine runs and reads On.
func QueuedForceOff(after time.Duration) Quirk {
	return Quirk{Name: "QueuedForceOff", area: AreaAction, reset: func(c *call, t string) bool {
		if t != "ForceOff" {
			return false
		}
		sys, by := c.sys, "redfish:"+c.account.Name
		sys.accept(true)
		c.b.afterwards(after, func() {
			_ = sys.machine().ForceOff(by)
			sys.accept(false)
		})
		c.send(http.StatusAccepted, map[string]any{})
		return true
	}}
}

// StaleAfterForceOff carries ForceOff out at once and reads On for a while.
func StaleAfterForceOff(d time.Duration) Quirk {
	return Quirk{Name: "StaleAfterForceOff", area: AreaAction, reset: func(c *call, t string) bool {
		if t == "ForceOff" {
			c.sys.mu.Lock()
			c.sys.staleUntil = time.Now().Add(d)
			c.sys.mu.Unlock()
		}
		return false
	}}
}

func (s *system) accept(accepted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.offAccepted = accepted
}
