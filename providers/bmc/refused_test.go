package bmc_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	bmclib "github.com/bmc-toolbox/bmclib/v2"
	lib "github.com/bmc-toolbox/bmclib/v2/bmc"
	"github.com/bmc-toolbox/bmclib/v2/providers/supermicro"

	"github.com/nodefence/nodefence/test/lab"
	"github.com/nodefence/nodefence/test/lab/ipmibmc"
	"github.com/nodefence/nodefence/test/lab/ipmisim"
	"github.com/nodefence/nodefence/test/peers"
)

// Why drivers of bmclib are refused (options.go), shown on the library itself.
// When one of these fails, the library has changed and the refusal may be
// lifted.

// pinned is one driver of a client of bmclib.
func pinned(t *testing.T, c *bmclib.Client, name string) any {
	t.Helper()
	for _, r := range c.Registry.For(name) {
		return r.DriverInterface
	}
	t.Fatalf("bmclib has no driver %s", name)
	return nil
}

// An answer without a power state is off to asrockrack.
func TestWhyASRockRackIsRefused(t *testing.T) {
	for _, body := range []string{`{}`, `null`, `{"error":"not ready"}`} {
		srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) }))
		host, port, _ := net.SplitHostPort(srv.Listener.Addr().String())
		c := bmclib.NewClient(host, "u", "p", bmclib.WithHTTPClient(srv.Client()), bmclib.WithAsrockrackPort(port))
		word, err := pinned(t, c, "asrockrack").(lib.PowerStateGetter).PowerStateGet(t.Context())
		if err != nil || word != "Off" {
			t.Errorf("%s: %q, %v", body, word, err)
		}
		srv.CloseClientConnections()
		srv.Close()
	}
}

// supermicro makes connections of its own, without looking at the certificate,
// and sends a wrong password twice.
func TestWhySupermicroIsRefused(t *testing.T) {
	var logIns atomic.Int32
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/login.cgi") {
			logIns.Add(1)
		}
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer srv.Close()
	defer srv.CloseClientConnections()
	host, port, _ := net.SplitHostPort(srv.Listener.Addr().String())
	strict := &http.Client{Transport: &http.Transport{}} // trusts nobody that this test could be
	c := supermicro.NewClient(host, "u", "p", bmclib.NewClient(host, "", "").Logger, supermicro.WithHttpClient(strict), supermicro.WithPort(port))
	if err := c.Open(t.Context()); err == nil {
		t.Error("a log-in that was refused is no error")
	}
	if n := logIns.Load(); n != 2 {
		t.Errorf("%d log-ins reached an endpoint without trust", n)
	}
}

// ipmitool's driver takes output of any kind for an answer.
func TestWhyIpmitoolIsRefused(t *testing.T) {
	script := filepath.Join(t.TempDir(), "ipmitool")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho Chassis Power is Unknown\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	c := bmclib.NewClient("127.0.0.1", "u", "p", bmclib.WithIpmitoolPath(script), bmclib.WithIpmitoolPort("9"))
	d := pinned(t, c, "ipmitool")
	if done, err := d.(lib.PowerSetter).PowerSet(t.Context(), "off"); err != nil || !done {
		t.Errorf("off is not reported done: %t, %v", done, err)
	}
	if _, ok := d.(lib.InventoryGetter); ok {
		t.Error("it can tell which machine it speaks to")
	}
}

// Its errors do not tell a wrong password from a controller that is not there, so
// that nobody could stop in time before an account is locked.
func TestWhyIpmitoolIsRefusedOnASimulator(t *testing.T) {
	tool := peers.Require(t, "ipmitool")
	peers.Require(t, "ipmi_sim")
	m := lab.New(lab.Config{Name: "m", UUID: lab.NewUUID(), Running: true})
	t.Cleanup(m.Close)
	sim, err := ipmisim.Start(t.Context(), m, ipmisim.Config{Users: []ipmibmc.User{{Name: "fencer", Password: "right", Privilege: ipmibmc.Administrator}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sim.Close)
	_, port, _ := net.SplitHostPort(sim.Addr())
	read := func(password string) (string, error) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		c := bmclib.NewClient(sim.Host(), "fencer", password, bmclib.WithIpmitoolPath(tool), bmclib.WithIpmitoolPort(port), bmclib.WithIpmitoolCipherSuite("3"))
		return pinned(t, c, "ipmitool").(lib.PowerStateGetter).PowerStateGet(ctx)
	}
	if word, err := read("right"); word != "Chassis Power is on\n" || err != nil {
		t.Errorf("%q, %v", word, err)
	}
	_, err = read("wrong")
	if err == nil || !strings.Contains(err.Error(), "Unable to establish IPMI v2 / RMCP+ session") || strings.Contains(err.Error(), "assword") {
		t.Errorf("with a wrong password: %v", err)
	}
}
