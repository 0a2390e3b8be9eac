package redfishbmc

// Area is a part of the service; areas may be joined with |.
type Area uint

const (
	AreaRoot       Area = 1 << iota // the service root
	AreaSessions                    // SessionService and all beneath it
	AreaCollection                  // the collection of systems
	AreaSystem                      // a ComputerSystem
	AreaAction                      // its actions
	AreaChassis                     // Chassis, collection and member
	AreaManager                     // Managers, collection and member
	AreaOther                       // anything else

	// Everything is the whole service.
	Everything = AreaOther<<1 - 1
)

// Quirk is one way in which a controller misleads. Each has an area in which it
// works at first, the one in which the device that it is taken from shows it;
// At moves it.
type Quirk struct {
	Name string

	area Area
	// answer answers instead of the service; false lets the service go on.
	answer func(*call) bool
	// edit changes a document, or puts something else in its place.
	edit func(*call, any) any
	// body changes the bytes.
	body func(*call, []byte) []byte
	// reset takes a Reset command over; false lets the service go on.
	reset func(*call, string) bool
	// reapplies: a restart of the controller starts machines that are off.
	reapplies bool
}

// At returns the same quirk for another area.
func (q Quirk) At(a Area) Quirk { q.area = a; return q }

// onSystem makes a quirk that changes a ComputerSystem's document.
func onSystem(name string, change func(c *call, doc map[string]any)) Quirk {
	return Quirk{Name: name, area: AreaSystem, edit: func(c *call, v any) any {
		// The document of this system, and not an error's.
		if doc, ok := v.(map[string]any); ok && c.sys != nil && doc["error"] == nil {
			change(c, doc)
		}
		return v
	}}
}

// setSystem makes a quirk that gives a property of a system a fixed value.
func setSystem(name, property string, value any) Quirk {
	return onSystem(name, func(_ *call, doc map[string]any) { doc[property] = value })
}

// onMembers makes a quirk that changes the members of the systems' collection.
func onMembers(name string, change func(members []any) []any) Quirk {
	return Quirk{Name: name, area: AreaCollection, edit: func(_ *call, v any) any {
		if doc, ok := v.(map[string]any); ok {
			if members, ok := doc["Members"].([]any); ok {
				members = change(members)
				doc["Members"], doc["Members@odata.count"] = members, len(members)
			}
		}
		return v
	}}
}
