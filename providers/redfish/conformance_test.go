package redfish_test

import (
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/nodefence/nodefence/providers"
	"github.com/nodefence/nodefence/providers/providertest"
	"github.com/nodefence/nodefence/providers/providertest/labend"
	"github.com/nodefence/nodefence/providers/redfish"
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

// harness starts the lab's service for the suite.
func harness(options string) providertest.Harness {
	return providertest.Harness{Start: func(t *testing.T, spec providertest.Spec) *providertest.Endpoint {
		b, end := labend.Redfish(t, spec, strings.Contains(options, "basicAuth"))
		end.Driver = newDriver(t, nil, options)
		end.Machine = providers.Machine{Address: b.Addr(), Fingerprint: b.Fingerprint()}
		return end
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
