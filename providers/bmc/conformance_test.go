package bmc_test

import (
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/nodefence/nodefence/providers"
	"github.com/nodefence/nodefence/providers/bmc"
	"github.com/nodefence/nodefence/providers/providertest"
	"github.com/nodefence/nodefence/providers/providertest/labend"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newDriver(t testing.TB, options string) providers.Driver {
	t.Helper()
	d, err := bmc.New(providers.Settings{Name: "blades", Options: []byte(options), Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func harness(options string) providertest.Harness {
	return providertest.Harness{
		Start: func(t *testing.T, spec providertest.Spec) *providertest.Endpoint {
			b, end := labend.Redfish(t, spec, strings.Contains(options, "basicAuth"))
			end.Driver = newDriver(t, options)
			end.Machine = providers.Machine{Address: b.Addr(), Fingerprint: b.Fingerprint()}
			return end
		},
		Lacks: map[providertest.Capability]string{
			providertest.UUID: "of identities bmclib tells only the serial number",
		},
	}
}

func TestConformance(t *testing.T) { providertest.Run(t, harness(`{"drivers":["gofish"]}`)) }

func TestConformanceBasicAuth(t *testing.T) {
	providertest.Run(t, harness(`{"drivers":["gofish"],"basicAuth":true}`))
}
