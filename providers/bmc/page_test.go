package bmc

import (
	"testing"

	"github.com/nodefence/nodefence/providers/providertest"
)

func TestPage(t *testing.T) {
	defaults, err := parseOptions([]byte(`{"drivers":["gofish"]}`))
	if err != nil {
		t.Fatal(err)
	}
	defaults.Drivers = nil // there is no default
	providertest.Page(t, name, defaults)
}
