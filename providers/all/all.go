// Package all is the registry of every driver. There is no other: a driver that
// is not named here does not exist.
package all

import (
	"github.com/nodefence/nodefence/providers"
	"github.com/nodefence/nodefence/providers/bmc"
	"github.com/nodefence/nodefence/providers/ipmi"
	"github.com/nodefence/nodefence/providers/redfish"
)

// Registry gives the drivers by the names that the configuration uses.
func Registry() providers.Registry {
	return providers.Registry{
		"bmc":     bmc.New,
		"ipmi":    ipmi.New,
		"redfish": redfish.New,
	}
}
