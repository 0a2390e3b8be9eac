package redfishbmc

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"time"

	"github.com/nodefence/nodefence/test/lab"
)

func ref(path string) map[string]any { return map[string]any{"@odata.id": path} }

func refs(base string, ids []string) []any {
	out := make([]any, 0, len(ids))
	for _, id := range ids {
		out = append(out, ref(base+"/"+id))
	}
	return out
}

// route finds the resource of a call that nobody has answered or refused.
func (c *call) route() {
	switch c.area {
	case AreaSessions:
		c.sessionService()
		return
	case AreaAction:
		c.action()
		return
	}
	if !c.isGet() {
		c.methodNotAllowed()
		return
	}
	switch {
	case c.path == "/redfish":
		c.send(http.StatusOK, map[string]any{"v1": rootPath + "/"})
	case c.area == AreaRoot:
		c.send(http.StatusOK, c.root())
	case c.area == AreaCollection:
		c.sendCollection(systemsPath, "#ComputerSystemCollection.ComputerSystemCollection", "Computer System Collection", c.b.systemIDs())
	case c.area == AreaSystem && c.sys != nil:
		doc := c.system(c.sys)
		c.w.Header().Set("ETag", doc["@odata.etag"].(string))
		c.send(http.StatusOK, doc)
	case c.path == chassisPath:
		c.sendCollection(chassisPath, "#ChassisCollection.ChassisCollection", "Chassis Collection", []string{"1"})
	case c.path == chassisPath+"/1":
		c.send(http.StatusOK, c.chassis())
	case c.path == managersPath:
		c.sendCollection(managersPath, "#ManagerCollection.ManagerCollection", "Manager Collection", []string{"1"})
	case c.path == managersPath+"/1":
		c.send(http.StatusOK, c.manager())
	case c.path == rootPath+"/odata":
		c.send(http.StatusOK, map[string]any{
			"@odata.context": rootPath + "/$metadata",
			"value": []any{
				map[string]any{"name": "Service", "kind": "Singleton", "url": rootPath + "/"},
				map[string]any{"name": "Systems", "kind": "Singleton", "url": systemsPath},
			},
		})
	default:
		c.notFound()
	}
}

func (b *BMC) systemIDs() []string {
	ids := make([]string, 0, len(b.systems))
	for _, s := range b.systems {
		ids = append(ids, s.ID)
	}
	return ids
}

func (c *call) sendCollection(path, odataType, name string, ids []string) {
	c.send(http.StatusOK, map[string]any{
		"@odata.id": path, "@odata.type": odataType, "Name": name,
		"Members": refs(path, ids), "Members@odata.count": len(ids),
	})
}

func (c *call) root() map[string]any {
	return map[string]any{
		"@odata.id": rootPath + "/", "@odata.type": "#ServiceRoot.v1_11_0.ServiceRoot",
		"Id": "RootService", "Name": "Root Service", "RedfishVersion": "1.15.0", "UUID": c.b.rootUUID.String(),
		"Systems": ref(systemsPath), "Chassis": ref(chassisPath), "Managers": ref(managersPath),
		"SessionService": ref(sessionService), "Links": map[string]any{"Sessions": ref(sessionsPath)},
	}
}

// resetTypes are the values that the Reset action takes.
var resetTypes = []any{"On", "ForceOff", "GracefulShutdown", "GracefulRestart", "ForceRestart", "PowerCycle"}

func (c *call) system(s *system) map[string]any {
	m, path := s.machine(), systemsPath+"/"+s.ID
	st := m.State()
	doc := map[string]any{
		"@odata.id": path, "@odata.type": "#ComputerSystem.v1_20_0.ComputerSystem",
		"Id": s.ID, "Name": s.Name, "SystemType": "Physical", "Manufacturer": "Lab", "Model": "Machine",
		"HostName": m.Name(), "SerialNumber": m.Serial(), "UUID": m.UUID().String(),
		"PowerState": c.b.powerState(s, st), "PowerRestorePolicy": st.Restore.String(),
		"BootProgress":     map[string]any{"LastState": bootProgress(st.Progress)},
		"Status":           map[string]any{"State": "Enabled", "Health": "OK"},
		"ProcessorSummary": map[string]any{"Count": 2},
		"MemorySummary":    map[string]any{"TotalSystemMemoryGiB": 64},
		"Boot": map[string]any{
			"BootSourceOverrideEnabled": "Disabled", "BootSourceOverrideTarget": "None",
			"BootSourceOverrideTarget@Redfish.AllowableValues": []any{"None", "Pxe", "Hdd"},
		},
		"Links": map[string]any{
			"Chassis": []any{ref(chassisPath + "/1")}, "ManagedBy": []any{ref(managersPath + "/1")},
		},
		"Actions": map[string]any{"#ComputerSystem.Reset": map[string]any{
			"target": path + resetSuffix, "ResetType@Redfish.AllowableValues": resetTypes,
		}},
	}
	if !st.LastReset.IsZero() {
		doc["LastResetTime"] = st.LastReset.UTC().Format(time.RFC3339)
	}
	doc["@odata.etag"] = etag(doc)
	return doc
}

func etag(doc map[string]any) string {
	body, err := json.Marshal(doc)
	if err != nil {
		panic(err)
	}
	sum := sha256.Sum256(body)
	return `"` + hex.EncodeToString(sum[:8]) + `"`
}

// powerState is what the controller believes of a system.
func (b *BMC) powerState(s *system, st lab.State) string {
	now := time.Now()
	b.mu.Lock()
	notLooked := now.Before(b.offUntil)
	b.mu.Unlock()
	s.mu.Lock()
	stale := now.Before(s.staleUntil)
	s.mu.Unlock()
	switch {
	case notLooked:
		return "Off"
	case stale:
		return "On"
	}
	switch st.Power {
	case lab.On:
		return "On"
	case lab.PoweringOff:
		return "PoweringOff"
	case lab.Suspended:
		return "Paused"
	}
	return "Off"
}

func bootProgress(p lab.BootProgress) string {
	switch p {
	case lab.BootFirmware:
		return "SystemHardwareInitializationComplete"
	case lab.BootOSStarting:
		return "OSBootStarted"
	case lab.BootOSRunning:
		return "OSRunning"
	}
	return "None"
}

// chassis holds all systems; it is on while one of them is.
func (c *call) chassis() map[string]any {
	power := "Off"
	for _, s := range c.b.systems {
		if s.machine().Power() != lab.Off {
			power = "On"
		}
	}
	return map[string]any{
		"@odata.id": chassisPath + "/1", "@odata.type": "#Chassis.v1_20_0.Chassis",
		"Id": "1", "Name": "Chassis", "ChassisType": "RackMount", "PowerState": power,
		"SerialNumber": "CH-" + c.b.systems[0].machine().Serial(),
		"Status":       map[string]any{"State": "Enabled", "Health": "OK"},
		"Links": map[string]any{
			"ComputerSystems": refs(systemsPath, c.b.systemIDs()), "ManagedBy": []any{ref(managersPath + "/1")},
		},
	}
}

// manager is the controller itself. Its UUID and power are its own.
func (c *call) manager() map[string]any {
	return map[string]any{
		"@odata.id": managersPath + "/1", "@odata.type": "#Manager.v1_15_0.Manager",
		"Id": "1", "Name": "Manager", "ManagerType": "BMC", "UUID": c.b.uuid.String(), "PowerState": "On",
		"FirmwareVersion": "1.0.0", "DateTime": time.Now().UTC().Format(time.RFC3339),
		"Status": map[string]any{"State": "Enabled", "Health": "OK"},
		"Links": map[string]any{
			"ManagerForServers": refs(systemsPath, c.b.systemIDs()), "ManagerForChassis": []any{ref(chassisPath + "/1")},
		},
	}
}
