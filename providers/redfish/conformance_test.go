package redfish_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/nodefence/nodefence/fencing"
	"github.com/nodefence/nodefence/providers"
	"github.com/nodefence/nodefence/providers/providertest"
	"github.com/nodefence/nodefence/providers/redfish"
	"github.com/nodefence/nodefence/test/lab"
	"github.com/nodefence/nodefence/test/lab/redfishbmc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newDriver(t testing.TB, b *redfishbmc.BMC, options string) providers.Driver {
	t.Helper()
	s := providers.Settings{Name: "rack-1", Options: []byte(options), Now: time.Now}
	if b != nil {
		s.TLS.CA = b.CAPEM()
	}
	d, err := redfish.New(s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// setPower brings a lab machine into a state; its errors say that it is in it.
func setPower(m *lab.Machine, p fencing.PowerState) {
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

func getPower(m *lab.Machine) fencing.PowerState {
	return map[lab.Power]fencing.PowerState{
		lab.Off: fencing.Off, lab.On: fencing.On, lab.PoweringOff: fencing.PoweringOff, lab.Suspended: fencing.Suspended,
	}[m.Power()]
}

// played are the suite's faults as this service shows them.
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

// harness starts the lab's service for the suite.
func harness(options string) providertest.Harness {
	return providertest.Harness{Start: func(t *testing.T, spec providertest.Spec) *providertest.Endpoint {
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
		count := func(match func(redfishbmc.Request) bool) func() int {
			return func() (n int) {
				for _, r := range b.Requests() {
					if match(r) {
						n++
					}
				}
				return n
			}
		}
		return &providertest.Endpoint{
			Driver:  newDriver(t, nil, options),
			Machine: providers.Machine{Address: b.Addr(), Fingerprint: b.Fingerprint()},
			Set:     func(p fencing.PowerState) { setPower(m, p) },
			Get:     func() fencing.PowerState { return getPower(m) },
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
			LogIns: count(func(r redfishbmc.Request) bool {
				// With basic authentication each request is an attempt.
				return r.Method == http.MethodPost && strings.HasSuffix(r.Path, "/Sessions") || options != "" && r.Status == http.StatusUnauthorized
			}),
			Commands: count(func(r redfishbmc.Request) bool { return strings.Contains(r.Path, "/Actions/") }),
		}
	}}
}

func TestConformance(t *testing.T) { providertest.Run(t, harness("")) }

func TestConformanceBasicAuth(t *testing.T) { providertest.Run(t, harness(`{"basicAuth": true}`)) }

func newWith(s providers.TLS) (providers.Driver, error) {
	return redfish.New(providers.Settings{Name: "rack-1", TLS: s, Now: time.Now})
}

func newWithOptions(options string) (providers.Driver, error) {
	return redfish.New(providers.Settings{Name: "rack-1", Options: []byte(options), Now: time.Now})
}
