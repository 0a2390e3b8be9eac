package bmc

import (
	"maps"
	"slices"

	"github.com/nodefence/nodefence/fencing"
)

// redfishStates are Redfish's words, as bmclib passes them on.
var redfishStates = map[string]fencing.PowerState{
	"On": fencing.On, "Off": fencing.Off, "PoweringOn": fencing.PoweringOn, "PoweringOff": fencing.PoweringOff,
	"Paused": fencing.Suspended,
}

// states are the words of each driver. They are compared whole and exactly;
// bmclib passes on whatever a controller says, the empty word included.
var states = map[string]map[string]fencing.PowerState{
	"gofish":     redfishStates,
	"dell":       redfishStates,
	"supermicro": redfishStates,
	"openbmc":    redfishStates,
	"asrockrack": {"On": fencing.On, "Off": fencing.Off},
}

func driverNames() []string { return slices.Sorted(maps.Keys(states)) }

// parseState is the meaning of a driver's word; Unknown for any other.
func parseState(driver, word string) fencing.PowerState { return states[driver][word] }
