package ipmi_test

import (
	"bytes"
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bougou/go-ipmi/pkg/bmc"
	"github.com/bougou/go-ipmi/pkg/hal/mock"
	"github.com/bougou/go-ipmi/pkg/handlers"
	"github.com/bougou/go-ipmi/pkg/protocol"
	"github.com/bougou/go-ipmi/pkg/server"
	"github.com/bougou/go-ipmi/pkg/types"

	"github.com/nodefence/nodefence/fencing"
	"github.com/nodefence/nodefence/providers"
	"github.com/nodefence/nodefence/test/lab"
)

// forgedOff is what somebody without the password could send: chassis status, OK,
// power off, for every sequence number and command of a reading.
func forgedOff(pkt []byte, encrypted bool) [][]byte {
	var out [][]byte
	for seq := uint8(0); seq < 8; seq++ {
		for _, c := range []struct{ netFn, cmd uint8 }{{0, 1}, {6, 0x37}} {
			data := make([]byte, map[uint8]int{1: 3, 0x37: 16}[c.cmd])
			msg := protocol.BuildIPMIResponse(c.netFn, c.cmd, seq, 0, data)
			v15 := append([]byte{6, 0, 0xff, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, byte(len(msg))}, msg...)
			v20 := protocol.BuildRMCPPlusPacket(0, 0, 0, 0, msg)
			inSession := bytes.Clone(v20)
			if len(pkt) >= 10 {
				copy(inSession[6:10], pkt[6:10])
			}
			signed := append(bytes.Clone(inSession), make([]byte, 32)...)
			signed[5] = 0xc0
			if !encrypted {
				signed[5] = 0x40
			}
			out = append(out, v15, v20, inSession, signed)
		}
	}
	return out
}

// A reply that anybody on the network could have sent is no reply: neither one
// without the session's encryption and signature, nor one that was altered.
func TestForgedRepliesAreNotTaken(t *testing.T) {
	r := newRig(t, "")
	r.relay.set(false, func(pkt []byte) []byte {
		if !inSession(pkt) {
			return pkt
		}
		for _, encrypted := range []bool{false, true} {
			for _, forged := range forgedOff(pkt, encrypted) {
				r.relay.toDriver(forged)
			}
		}
		for i := range pkt {
			altered := bytes.Clone(pkt)
			altered[i] ^= 0x10
			// Version and class of RMCP are not signed; nor are they power.
			if i >= 4 {
				r.relay.toDriver(altered)
			}
		}
		return pkt
	})
	wantPower(t, r.read(t, 3*time.Second), fencing.On, fencing.NoFailure)
	r.relay.set(false, func(pkt []byte) []byte {
		if !inSession(pkt) {
			return pkt
		}
		for _, forged := range forgedOff(pkt, true) {
			r.relay.toDriver(forged)
		}
		return nil
	})
	wantPower(t, r.read(t, 400*time.Millisecond), fencing.Unknown, fencing.Malformed)
}

// A reply of an earlier session, when the machine was off, is not taken later.
func TestReplayedRepliesAreNotTaken(t *testing.T) {
	r := newRig(t, "")
	var mu sync.Mutex
	var old [][]byte
	r.relay.set(false, func(pkt []byte) []byte {
		mu.Lock()
		defer mu.Unlock()
		old = append(old, bytes.Clone(pkt))
		return pkt
	})
	_ = r.machine.ForceOff("test")
	wantPower(t, r.read(t, 2*time.Second), fencing.Off, fencing.NoFailure)
	_ = r.machine.PowerOn("test")
	mu.Lock()
	replay := old
	mu.Unlock()
	r.relay.set(false, func(pkt []byte) []byte {
		for _, o := range replay {
			r.relay.toDriver(o)
		}
		return pkt
	})
	for range 3 {
		if got := r.read(t, time.Second); got.Power == fencing.Off {
			t.Fatalf("an old reply was taken: %+v", got)
		}
	}
}

// A controller, or somebody between, that answers with weaker algorithms than
// were asked for would make the rest forgeable.
func TestWeakerAlgorithmsAreNotTaken(t *testing.T) {
	r := newRig(t, "")
	for _, at := range []int{16 + 16, 16 + 24, 16 + 32} {
		r.relay.set(false, func(pkt []byte) []byte {
			if pkt[5] == 0x11 && len(pkt) > at {
				pkt[at] = 0
			}
			return pkt
		})
		wantPower(t, r.read(t, time.Second), fencing.Unknown, fencing.Malformed)
	}
}

// Datagrams cut at every length, and controllers that fall silent after every
// packet, end in Unknown by the deadline.
func TestCutAtEveryLength(t *testing.T) {
	r := newRig(t, "")
	_ = r.machine.ForceOff("test")
	for _, n := range []int{0, 1, 4, 5, 6, 15, 16, 17, 31, 32, 47, 48, 60, 70} {
		r.relay.set(false, func(pkt []byte) []byte { return pkt[:min(n, len(pkt)-1)] })
		if got := r.read(t, 60*time.Millisecond); got.Power != fencing.Unknown || !got.Failed() {
			t.Errorf("cut to %d bytes: %+v", n, got)
		}
	}
	for n := range 6 {
		var count atomic.Int32
		r.relay.set(false, func(pkt []byte) []byte {
			if int(count.Add(1)) > n {
				return nil
			}
			return pkt
		})
		began := time.Now()
		got := r.read(t, 80*time.Millisecond)
		if took := time.Since(began); took > 300*time.Millisecond {
			t.Errorf("silent after %d packets: took %v", n, took)
		}
		wantPower(t, got, fencing.Unknown, fencing.TimedOut)
	}
}

// A machine that is suspended to disk has its power bit at 0. Where the
// controller knows the ACPI state, it is Suspended (S12).
func TestHibernatedIsNotOff(t *testing.T) {
	for _, c := range []struct {
		name    string
		acpi    []byte
		code    types.CompletionCode
		options string
		power   fencing.PowerState
		kind    fencing.FailureKind
	}{
		{"S4", []byte{0x04, 0x7f}, 0, "", fencing.Suspended, 0},
		{"S3", []byte{0x03, 0x7f}, 0, "", fencing.Suspended, 0},
		{"S5", []byte{0x05, 0x7f}, 0, "", fencing.Off, 0},
		{"never set", []byte{0x2a, 0x2a}, 0, "", fencing.Off, 0},
		{"stale", []byte{0x00, 0x00}, 0, "", fencing.Off, 0},
		{"ignored", []byte{0x04, 0x7f}, 0, `{"ignoreACPIPowerState":true}`, fencing.Off, 0},
		{"lacking", nil, 0xc1, "", fencing.Off, 0},
		{"busy", nil, 0xc0, "", fencing.Unknown, fencing.Busy},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := startWithACPI(t, c.acpi, c.code)
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			wantPower(t, newDriver(t, c.options).Read(ctx, m), c.power, c.kind)
		})
	}
}

// startWithACPI runs a controller of a machine that is off, with an ACPI state.
func startWithACPI(t *testing.T, acpi []byte, code types.CompletionCode) providers.Machine {
	t.Helper()
	b := bmc.New(bmc.DeviceInfo{IPMIVersion: 2}, lab.NewUUID(), mock.New(), bmc.WithV15Disabled())
	user, err := b.Users.Add(2, "u")
	if err != nil {
		t.Fatal(err)
	}
	user.SetPassword([]byte("p"))
	user.Enabled = true
	user.ChannelAccess[1] = bmc.UserChannelAccess{MaxPrivilege: bmc.PrivilegeLevelUser, Enabled: true}
	reg := handlers.NewRegistry()
	handlers.RegisterAllHandlers(reg)
	answer := func(data []byte, code types.CompletionCode) func(context.Context, *handlers.HandlerContext, []byte) ([]byte, types.CompletionCode, error) {
		return func(context.Context, *handlers.HandlerContext, []byte) ([]byte, types.CompletionCode, error) {
			return data, code, nil
		}
	}
	reg.RegisterFunc(types.CommandGetChassisStatus, answer([]byte{0, 0, 0}, 0))
	reg.RegisterFunc(types.CommandGetACPIPowerState, answer(acpi, code))
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	srv := server.NewServer(b, conn, server.WithHandlerRegistry(reg))
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = srv.Serve(ctx) })
	t.Cleanup(func() { cancel(); _ = srv.Close(); wg.Wait() })
	return providers.Machine{Address: conn.LocalAddr().String(), Credentials: providers.Credentials{Username: "u", Password: "p"}}
}
