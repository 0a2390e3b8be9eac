package redfishbmc

import (
	"strings"
	"sync/atomic"

	"github.com/nodefence/nodefence/test/lab"
)

// What is said about power.
var (
	// PowerStateNull: null while the host's state service starts (HPE, OpenBMC).
	PowerStateNull = setSystem("PowerStateNull", "PowerState", nil)
	// PowerStateMissing: the property is left out when the service behind it is
	// down (OpenBMC).
	PowerStateMissing = without("PowerStateMissing", AreaSystem, "PowerState")
	// ReadsOff: Off, whatever the machine does. OpenBMC maps host states that it
	// does not list to Off.
	ReadsOff = PowerStateText("Off")
	// ReadsOn: On, whatever the machine does; for days, on some.
	ReadsOn = PowerStateText("On")
	// OffWhenAccepted: Off as soon as a shutdown or power-off was accepted,
	// while the machine still runs.
	OffWhenAccepted = onSystem("OffWhenAccepted", func(c *call, doc map[string]any) {
		c.sys.mu.Lock()
		accepted := c.sys.offAccepted
		c.sys.mu.Unlock()
		if accepted || c.sys.machine().Power() == lab.PoweringOff {
			doc["PowerState"] = "Off"
		}
	})
	// OnWhileShuttingDown: On until the machine is off; controllers that know no
	// state between.
	OnWhileShuttingDown = onSystem("OnWhileShuttingDown", func(c *call, doc map[string]any) {
		if c.sys.machine().Power() == lab.PoweringOff {
			doc["PowerState"] = "On"
		}
	})
	// SuspendedReadsOff: a machine suspended to memory reads Off, because its
	// main rails are down.
	SuspendedReadsOff = onSystem("SuspendedReadsOff", func(c *call, doc map[string]any) {
		if c.sys.machine().Power() == lab.Suspended {
			doc["PowerState"] = "Off"
		}
	})
	// ManagerWithoutPowerState: many leave it out; it says nothing about the
	// system either way.
	ManagerWithoutPowerState = without("ManagerWithoutPowerState", AreaManager, "PowerState")
)

// PowerStateText is any other text: HPE says "Reset" and "Unknown", others
// "PoweringOn", "Paused", "off".
func PowerStateText(text string) Quirk { return setSystem("PowerStateText", "PowerState", text) }

// PowerStateValue is a value of the wrong type: a number, a list, an object.
func PowerStateValue(v any) Quirk { return setSystem("PowerStateValue", "PowerState", v) }

// SystemProperty sets or, with nil, nulls any other property: a number where
// the schema has a text makes some libraries' decoding fail as a whole.
func SystemProperty(name string, v any) Quirk { return setSystem("SystemProperty "+name, name, v) }

// NotANumber: "N/A" where the schema has a number (several vendors).
var NotANumber = setSystem("NotANumber", "MemorySummary", map[string]any{"TotalSystemMemoryGiB": "N/A"})

// ChassisPower makes the chassis say something else than the system (OpenBMC:
// two services, two opinions).
func ChassisPower(state any) Quirk {
	return Quirk{Name: "ChassisPower", area: AreaChassis, edit: func(_ *call, v any) any {
		if doc, ok := v.(map[string]any); ok && doc["ChassisType"] != nil {
			doc["PowerState"] = state
		}
		return v
	}}
}

// Who a system is.
var (
	// UUIDVendorDefault: the board was never programmed.
	UUIDVendorDefault = SystemUUID("03000200-0400-0500-0006-000700080009")
	// UUIDZero: likewise.
	UUIDZero = SystemUUID("00000000-0000-0000-0000-000000000000")
	// UUIDMissing: not said at all.
	UUIDMissing = without("UUIDMissing", AreaSystem, "UUID")
	// UUIDUpperCase: the same machine in capitals.
	UUIDUpperCase = onSystem("UUIDUpperCase", func(c *call, doc map[string]any) {
		doc["UUID"] = strings.ToUpper(c.sys.machine().UUID().String())
	})
	// UUIDSwapped: the same machine, first three fields as they lie in memory.
	UUIDSwapped = onSystem("UUIDSwapped", func(c *call, doc map[string]any) {
		doc["UUID"] = c.sys.machine().UUID().Swapped().String()
	})
	// UUIDReversed: the same machine, all bytes the other way round.
	UUIDReversed = onSystem("UUIDReversed", func(c *call, doc map[string]any) {
		doc["UUID"] = c.sys.machine().UUID().Reversed().String()
	})
	// UUIDRawReversed: the same machine, the bytes in memory read from their end
	// (the third order in a dump of a Dell).
	UUIDRawReversed = onSystem("UUIDRawReversed", func(c *call, doc map[string]any) {
		doc["UUID"] = c.sys.machine().UUID().Swapped().Reversed().String()
	})
	// SerialDefault: the board was never programmed.
	SerialDefault = setSystem("SerialDefault", "SerialNumber", "To be filled by O.E.M.")
	// RootUUIDIsSystems: the service root and the manager bear the system's UUID
	// (Lenovo, Supermicro).
	RootUUIDIsSystems = Quirk{Name: "RootUUIDIsSystems", area: AreaRoot | AreaManager, edit: func(c *call, v any) any {
		if doc, ok := v.(map[string]any); ok && doc["UUID"] != nil {
			doc["UUID"] = c.b.systems[0].machine().UUID().String()
		}
		return v
	}}
)

// SystemUUID is a UUID as it stands.
func SystemUUID(text string) Quirk { return setSystem("SystemUUID", "UUID", text) }

// WrongMachine: the address answers for another machine; a cable was moved, an
// address was given out twice.
func WrongMachine() Quirk {
	other := lab.NewUUID().String()
	return onSystem("WrongMachine", func(_ *call, doc map[string]any) {
		doc["UUID"], doc["SerialNumber"], doc["HostName"] = other, "SN-of-another-machine", "another-machine"
	})
}

// Hints.
var (
	// LastReset1970: the controller's clock was not set.
	LastReset1970 = setSystem("LastReset1970", "LastResetTime", "1970-01-01T00:00:12Z")
	// LastResetZero: no date at all (several vendors).
	LastResetZero = setSystem("LastResetZero", "LastResetTime", "0000-00-00T00:00:00Z")
	// LastResetMissing: most leave it out.
	LastResetMissing = without("LastResetMissing", AreaSystem, "LastResetTime")
	// BootProgressUnspecified: says nothing though the OS is up (OpenBMC).
	BootProgressUnspecified = setSystem("BootProgressUnspecified", "BootProgress", map[string]any{"LastState": "Unspecified"})
	// BootProgressStuck: stays where the firmware handed over (Supermicro).
	BootProgressStuck = setSystem("BootProgressStuck", "BootProgress", map[string]any{"LastState": "SystemHardwareInitializationComplete"})
	// BootProgressMissing: most leave it out.
	BootProgressMissing = without("BootProgressMissing", AreaSystem, "BootProgress")
)

// Where the system is.
var (
	// RootWithoutSystems: the service root names no collection (CIMC).
	RootWithoutSystems = without("RootWithoutSystems", AreaRoot, "Systems")
	// NoMembers: the collection has no Members at all.
	NoMembers = without("NoMembers", AreaCollection, "Members")
	// EmptyCollection: the inventory is not built yet.
	EmptyCollection = onMembers("EmptyCollection", func([]any) []any { return []any{} })
	// MemberNull: a member is null.
	MemberNull = firstMember("MemberNull", nil)
	// MemberEmpty: a member is {}.
	MemberEmpty = firstMember("MemberEmpty", map[string]any{})
	// MemberEmptyID: a member's URI is empty; a library may fetch the service
	// root in its place and take it for a system.
	MemberEmptyID = firstMember("MemberEmptyID", ref(""))
	// MemberIsRoot: a member's URI is the service root's.
	MemberIsRoot = firstMember("MemberIsRoot", ref(rootPath+"/"))
	// WrongODataType: the resource at the system's URI is something else.
	WrongODataType = setSystem("WrongODataType", "@odata.type", "#Chassis.v1_20_0.Chassis")
	// WrongODataID: the resource says that it lives elsewhere.
	WrongODataID = setSystem("WrongODataID", "@odata.id", systemsPath+"/another")
)

// MembersRotate gives the members in another order at each reading (chassis
// with several systems: DGX and its baseboard).
func MembersRotate() Quirk {
	var count atomic.Int64
	return onMembers("MembersRotate", func(members []any) []any {
		if len(members) == 0 {
			return members
		}
		n := int(count.Add(1)) % len(members)
		return append(append([]any{}, members[n:]...), members[:n]...)
	})
}

func firstMember(name string, v any) Quirk {
	return onMembers(name, func(members []any) []any {
		if len(members) > 0 {
			members[0] = v
		}
		return members
	})
}

func without(name string, area Area, property string) Quirk {
	return Quirk{Name: name, area: area, edit: func(_ *call, v any) any {
		if doc, ok := v.(map[string]any); ok {
			delete(doc, property)
		}
		return v
	}}
}
