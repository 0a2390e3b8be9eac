package ipmi_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/bougou/go-ipmi/pkg/client"
	"github.com/bougou/go-ipmi/pkg/types"

	"github.com/nodefence/nodefence/test/lab"
)

// TestWhyNotTheLibrarysClient shows why the exchange of packets is our own: the
// library's client takes "off" from anybody who can send a datagram, and answers
// whose integrity code is wrong. When this fails, the library has changed and
// its client may be looked at again (docs/decisions/0001-ipmi-driver.md).
func TestWhyNotTheLibrarysClient(t *testing.T) {
	read := func(r *rig) bool {
		host, port, _ := splitHostPort(r.m.Address)
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		defer cancel()
		c, err := client.NewClient(host, port, r.m.Credentials.Username, r.m.Credentials.Password)
		if err != nil {
			t.Fatal(err)
		}
		c = c.WithCipherSuiteID(types.CipherSuiteID3).WithMaxPrivilegeLevel(types.PrivilegeLevelUser).WithTimeout(time.Second)
		if err := c.Connect(ctx); err != nil {
			t.Fatal(err)
		}
		status, err := c.GetChassisStatus(ctx)
		if err != nil {
			t.Fatal(err)
		}
		_ = c.Close(ctx)
		return status.PowerIsOn
	}
	for i, form := range []string{"IPMI 1.5", "IPMI 2.0 without a session", "in the session, not encrypted"} {
		r := newRig(t, "")
		r.relay.set(false, func(pkt []byte) []byte {
			if inSession(pkt) {
				for n, forged := range forgedOff(pkt, true) {
					if n%4 == i { // forgedOff gives four forms of each answer
						r.relay.toDriver(forged)
					}
				}
			}
			return pkt
		})
		if read(r) || r.machine.Power() != lab.On {
			t.Errorf("%s: the forged off is not taken", form)
		}
	}
	r := newRig(t, "")
	r.relay.set(false, func(pkt []byte) []byte {
		if inSession(pkt) {
			pkt = bytes.Clone(pkt)
			pkt[len(pkt)-1] ^= 1
		}
		return pkt
	})
	if !read(r) {
		t.Error("an answer with a wrong integrity code is not taken")
	}
}
