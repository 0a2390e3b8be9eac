package redfishbmc_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stmcginnis/gofish"

	"github.com/nodefence/nodefence/test/lab"
	"github.com/nodefence/nodefence/test/peers"
)

// run runs a client that we did not write, and returns what it printed.
func run(t *testing.T, stdin string, env []string, exe string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, exe, args...)
	cmd.Stdin = strings.NewReader(stdin)
	cmd.Env = append(os.Environ(), env...)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// caFile writes the lab's CA where a client can read it.
func caFile(t *testing.T, b *bench) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, b.CAPEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// ClusterLabs' agent, as Pacemaker calls it: options by standard input.
func TestPeerFenceRedfish(t *testing.T) {
	exe := peers.Require(t, "fence_redfish")
	b := start(t)
	host, port, _ := strings.Cut(b.Addr(), ":")
	agent := func(action string) (string, error) {
		return run(t, strings.Join([]string{
			"action=" + action, "ip=" + host, "ipport=" + port, "username=admin", "password=adminpass",
			"ssl_insecure=1", "systems_uri=" + b.SystemURI("1"), "power_wait=0", "",
		}, "\n"), nil, exe)
	}
	if out, err := agent("status"); err != nil || !strings.Contains(out, "Status: ON") {
		t.Errorf("status: %v %s", err, out)
	}
	if out, err := agent("off"); err != nil || b.m.Power() != lab.Off {
		t.Errorf("off: %v %s; the machine is %s", err, out, b.m.Power())
	}
	// Exit code 2 is the agent's word for off.
	if out, err := agent("status"); err == nil || !strings.Contains(out, "Status: OFF") {
		t.Errorf("status when off: %v %s", err, out)
	}
	if out, err := agent("on"); err != nil || b.m.Power() != lab.On {
		t.Errorf("on: %v %s", err, out)
	}
}

// DMTF's own tool, with sessions.
func TestPeerRedfishtool(t *testing.T) {
	exe := peers.Require(t, "redfishtool")
	b := start(t)
	tool := func(args ...string) (string, error) {
		return run(t, "", nil, exe, append([]string{"-r", b.Addr(), "-S", "Always", "-A", "Session", "-u", "admin", "-p", "adminpass"}, args...)...)
	}
	out, err := tool("Systems", "-I", "1")
	if err != nil || !strings.Contains(out, `"PowerState": "On"`) || !strings.Contains(out, b.m.UUID().String()) {
		t.Errorf("Systems: %v %s", err, out)
	}
	if out, err := tool("Systems", "-I", "1", "reset", "ForceOff"); err != nil || b.m.Power() != lab.Off {
		t.Errorf("reset ForceOff: %v %s", err, out)
	}
	if b.SessionsOpened() == 0 || b.OpenSessions() != 0 {
		t.Errorf("%d sessions opened, %d left open", b.SessionsOpened(), b.OpenSessions())
	}
	if out, err := tool("Chassis", "-1"); err != nil || !strings.Contains(out, `"ChassisType"`) {
		t.Errorf("Chassis: %v %s", err, out)
	}
	if out, err := tool("Managers", "-1"); err != nil || !strings.Contains(out, `"ManagerType"`) {
		t.Errorf("Managers: %v %s", err, out)
	}
}

const sushyStory = `
import os, sushy
from sushy import auth
s = sushy.Sushy(os.environ["URL"] + "/redfish/v1/", verify=os.environ["CA"],
                auth=auth.SessionAuth("admin", "adminpass"))
system = s.get_system("/redfish/v1/Systems/1")
print(system.uuid, system.power_state.value, s.get_system_collection().members_identities)
system.reset_system(sushy.ResetType.FORCE_OFF)
system.refresh()
print(system.power_state.value, s.get_manager("/redfish/v1/Managers/1").manager_type.value)
s.get_session_service().close_session(s._conn._auth.get_session_resource_id())
`

// OpenStack's library, which Ironic and Metal3 use; it verifies the
// certificate.
func TestPeerSushy(t *testing.T) {
	python := peers.RequirePython(t, "sushy")
	b := start(t)
	ca := caFile(t, b)
	// The library's HTTP client lets these variables overrule what it is told,
	// and a proxy has no business here.
	env := []string{"URL=" + b.URL(), "CA=" + ca, "REQUESTS_CA_BUNDLE=" + ca, "NO_PROXY=127.0.0.1", "no_proxy=127.0.0.1"}
	out, err := run(t, sushyStory, env, python, "-")
	want := b.m.UUID().String() + " On ('/redfish/v1/Systems/1',)\nOff BMC\n"
	if err != nil || out != want {
		t.Errorf("%v\n%s\nwant\n%s", err, out, want)
	}
	if b.m.Power() != lab.Off || b.OpenSessions() != 0 {
		t.Errorf("the machine is %s, %d sessions are open", b.m.Power(), b.OpenSessions())
	}
}

// The library that the driver uses.
func TestPeerGofish(t *testing.T) {
	b := start(t)
	c, err := gofish.ConnectContext(t.Context(), gofish.ClientConfig{
		Endpoint: b.URL(), Username: "reader", Password: "readerpass", HTTPClient: b.client,
	})
	if err != nil {
		t.Fatal(err)
	}
	systems, err := c.Service.Systems()
	if err != nil || len(systems) != 1 || systems[0].PowerState != "On" || systems[0].UUID != b.m.UUID().String() {
		t.Errorf("systems %v, %v", systems, err)
	}
	c.Logout()
	if b.OpenSessions() != 0 {
		t.Errorf("%d sessions left", b.OpenSessions())
	}
}
