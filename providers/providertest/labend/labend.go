// Package labend puts the lab's machines and their Redfish service behind the
// endpoints of the conformance suite, for the drivers that are tested on them.
//
// What must not live here: expectations. Those are the suite's and the drivers'.
package labend

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/nodefence/nodefence/fencing"
	"github.com/nodefence/nodefence/providers/providertest"
	"github.com/nodefence/nodefence/test/lab"
	"github.com/nodefence/nodefence/test/lab/redfishbmc"
)

// SetPower brings a lab machine into a state; its errors say that it is in it.
func SetPower(m *lab.Machine, p fencing.PowerState) {
	switch p {
	case fencing.On:
		_ = m.PowerOn("test")
	case fencing.Off:
		_ = m.ForceOff("test")
	case fencing.PoweringOff:
		_ = m.GracefulShutdown("test")
	case fencing.Suspended:
		_ = m.Suspend("test")
	}
}

// Power is the state that a lab machine is in.
func Power(m *lab.Machine) fencing.PowerState {
	return map[lab.Power]fencing.PowerState{
		lab.Off: fencing.Off, lab.On: fencing.On, lab.PoweringOff: fencing.PoweringOff, lab.Suspended: fencing.Suspended,
	}[m.Power()]
}

// played are the suite's faults as the Redfish service shows them.
var played = map[providertest.Capability][]redfishbmc.Quirk{
	providertest.Healthy:        {},
	providertest.Hangs:          {redfishbmc.HangForever},
	providertest.HangsLater:     {redfishbmc.HangForever.At(redfishbmc.AreaCollection | redfishbmc.AreaSystem)},
	providertest.Garbage:        {redfishbmc.HTMLBody},
	providertest.Truncated:      {redfishbmc.TruncatedJSON},
	providertest.NoState:        {redfishbmc.PowerStateMissing},
	providertest.NoIdentity:     {redfishbmc.UUIDMissing, redfishbmc.SystemProperty("SerialNumber", nil)},
	providertest.Busy:           {redfishbmc.Unavailable(30 * time.Second)},
	providertest.RefusesWhenOff: {redfishbmc.ForceOffRefusedWhenOff(http.StatusConflict)},
}

// Redfish starts the lab's Redfish service for one machine. The endpoint lacks what
// is the driver's: Driver and Machine.
func Redfish(t testing.TB, spec providertest.Spec, basicAuth bool) (*redfishbmc.BMC, *providertest.Endpoint) {
	t.Helper()
	m := lab.New(lab.Config{
		Name: spec.Serial, UUID: lab.MustUUID(spec.UUID), Serial: spec.Serial, Running: true, ShutdownTime: time.Hour,
	})
	t.Cleanup(m.Close)
	b, err := redfishbmc.Start(redfishbmc.Config{
		Systems: []redfishbmc.System{{Machine: m}},
		Accounts: []redfishbmc.Account{
			{Name: spec.Operator.Username, Password: spec.Operator.Password, Role: redfishbmc.Operator},
			{Name: spec.Reader.Username, Password: spec.Reader.Password, Role: redfishbmc.ReadOnly},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b, &providertest.Endpoint{
		Set: func(p fencing.PowerState) { SetPower(m, p) },
		Get: func() fencing.PowerState { return Power(m) },
		Play: func(c providertest.Capability) {
			if c == providertest.Closed {
				_ = b.Close()
				return
			}
			b.Set(played[c]...)
		},
		Delay: func(d time.Duration) {
			if b.Clear(); d > 0 {
				b.Set(redfishbmc.Slow(d))
			}
		},
		Sessions: b.OpenSessions,
		LogIns: func() int {
			return Count(b, func(r redfishbmc.Request) bool {
				// With basic authentication each request is an attempt.
				return r.Method == http.MethodPost && strings.HasSuffix(r.Path, "/Sessions") || basicAuth && r.Status == http.StatusUnauthorized
			})
		},
		Commands: func() int { return Count(b, IsCommand) },
	}
}

// Count counts the requests that match.
func Count(b *redfishbmc.BMC, match func(redfishbmc.Request) bool) (n int) {
	for _, r := range b.Requests() {
		if match(r) {
			n++
		}
	}
	return n
}

// IsCommand tells whether a request asks for an action.
func IsCommand(r redfishbmc.Request) bool { return strings.Contains(r.Path, "/Actions/") }
