package ipmi

import (
	"errors"
	"strings"
	"testing"

	"github.com/bougou/go-ipmi/pkg/types"

	"github.com/nodefence/nodefence/fencing"
)

func TestParseStatus(t *testing.T) {
	for _, c := range []struct {
		data    []byte
		power   fencing.PowerState
		restore fencing.RestorePolicy
		words   string
	}{
		{[]byte{0x21, 0x10, 0x40, 0x00}, fencing.On, fencing.RestoreLastState, "last event: on by command"},
		{[]byte{0x20, 0x00, 0x40}, fencing.Off, fencing.RestoreLastState, ""},
		{[]byte{0x00, 0x00, 0x00}, fencing.Off, fencing.RestoreAlwaysOff, ""},
		{[]byte{0x41, 0x00, 0x00}, fencing.On, fencing.RestoreAlwaysOn, ""},
		{[]byte{0x60, 0x01, 0x00}, fencing.Off, fencing.RestoreUnknown, "last event: mains failed"},
		{[]byte{0x7e, 0x0e, 0x09}, fencing.Off, fencing.RestoreUnknown, "power overload|interlock active|power fault|power control fault|" +
			"last event: down by overload|last event: down by interlock|last event: down by power fault|chassis intrusion|fan fault"},
	} {
		s, err := parseStatus(c.data)
		if err != nil || s.power != c.power || s.restore != c.restore || strings.Join(s.words, "|") != c.words {
			t.Errorf("% x: %+v, %v", c.data, s, err)
		}
	}
	for _, data := range [][]byte{nil, {}, {0}, {0, 0}, {0, 0, 0, 0, 0}, make([]byte, 300)} {
		if s, err := parseStatus(data); err == nil || s.power != fencing.Unknown {
			t.Errorf("%d bytes: %+v, %v", len(data), s, err)
		}
	}
}

func TestParseGUID(t *testing.T) {
	const uuid = "4c4c4544-0035-3410-8050-c6c04f314733"
	wire := func(order ...int) []byte {
		plain := []byte{0x4c, 0x4c, 0x45, 0x44, 0x00, 0x35, 0x34, 0x10, 0x80, 0x50, 0xc6, 0xc0, 0x4f, 0x31, 0x47, 0x33}
		out := make([]byte, 16)
		for i, o := range order {
			out[i] = plain[o]
		}
		return out
	}
	for name, data := range map[string][]byte{
		"SMBIOS":   wire(3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15),
		"reversed": wire(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0),
		"plain":    wire(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
	} {
		got, err := parseGUID(data)
		if err != nil || !fencing.SameUUID(got, uuid) {
			t.Errorf("%s: %s, %v", name, got, err)
		}
		if name == "SMBIOS" && got != uuid {
			t.Errorf("%s is shown as %s", name, got)
		}
	}
	if got, err := parseGUID(make([]byte, 16)); got != "" || err != nil {
		t.Errorf("all zero: %q, %v", got, err)
	}
	for _, n := range []int{0, 1, 15, 17} {
		if got, err := parseGUID(make([]byte, n)); err == nil || got != "" {
			t.Errorf("%d bytes: %q, %v", n, got, err)
		}
	}
}

func TestSleeping(t *testing.T) {
	for state := range 256 {
		_, asleep := sleeping([]byte{byte(state), 0})
		want := map[int]bool{1: true, 2: true, 3: true, 4: true, 8: true, 9: true}[state&0x7f]
		if asleep != want {
			t.Errorf("state %#02x: %v", state, asleep)
		}
	}
	for _, data := range [][]byte{nil, {4}, {4, 0, 0}} {
		if _, asleep := sleeping(data); asleep {
			t.Errorf("% x is taken for sleep", data)
		}
	}
}

func TestCodes(t *testing.T) {
	for code, kind := range map[uint8]fencing.FailureKind{
		0xc0: fencing.Busy, 0xc1: fencing.Failed, 0xc3: fencing.Busy, 0xc4: fencing.Busy, 0xd1: fencing.Busy, 0xd2: fencing.Busy,
		0xd4: fencing.Forbidden, 0xd5: fencing.Failed, 0xff: fencing.Failed, 0x01: fencing.Failed, 0x80: fencing.Failed,
	} {
		if err := commandProblem(cmdChassisStatus, code); kindOf(err) != kind {
			t.Errorf("%#02x: %v", code, err)
		}
	}
	if err := commandProblem(cmdPrivilege, 0x81); kindOf(err) != fencing.Forbidden {
		t.Error(err)
	}
	if err := commandProblem(cmdChassisStatus, 0); err != nil {
		t.Error(err)
	}
	for code := range 256 {
		err := setupProblem("x", types.RmcpStatusCode(code))
		kind := map[int]fencing.FailureKind{
			1: fencing.Busy, 2: fencing.Busy, 8: fencing.Busy, 0xb: fencing.Busy, 9: fencing.Forbidden, 0xa: fencing.Forbidden,
			0xc: fencing.Unauthorized, 0xd: fencing.Unauthorized, 0xf: fencing.Unauthorized,
		}[code]
		if kind == fencing.NoFailure {
			kind = fencing.Failed
		}
		suite := map[int]bool{3: true, 4: true, 5: true, 6: true, 7: true, 0x10: true, 0x11: true}[code]
		if kindOf(err) != kind || errors.Is(err, errSuite) != suite {
			t.Errorf("%#02x: %v (%v)", code, err, kindOf(err))
		}
	}
}

// FuzzReply: whatever decrypts, Off needs a whole chassis status, and nothing
// panics.
func FuzzReply(f *testing.F) {
	f.Add(cmdChassisStatus.request(1, []byte{0, 0, 0}))
	f.Add([]byte{0x81, 4, 0x7b, 0x20, 4, 1, 0, 0x21, 0x10, 0x40, 0x6a})
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, msg []byte) {
		code, data, err := cmdChassisStatus.reply(msg, 1)
		if err != nil {
			return
		}
		_ = commandProblem(cmdChassisStatus, code)
		if s, err := parseStatus(data); err == nil && s.power == fencing.Off && (len(data) < 3 || data[0]&1 != 0) {
			t.Errorf("% x is Off", data)
		}
		_, _ = parseGUID(data)
		_, _ = sleeping(data)
	})
}

// FuzzPacket: no datagram panics or is taken without the keys.
func FuzzPacket(f *testing.F) {
	k := &keys{suite: suites[17], bmcID: 7, consoleID: 7, k1: make([]byte, 32), k2: make([]byte, 32)}
	good, err := k.seal(1, cmdChassisStatus.request(1, nil))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(good[:20])
	f.Add([]byte{6, 0, 0xff, 7, 6, 0x11, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 5, 4})
	other := &keys{suite: suites[3], bmcID: 7, consoleID: 7, k1: []byte("another key of 20 by"), k2: make([]byte, 20)}
	f.Fuzz(func(t *testing.T, pkt []byte) {
		if _, err := other.open(pkt); err == nil {
			t.Errorf("taken without the key: % x", pkt)
		}
		_, _ = k.open(pkt)
		_, _ = k.decrypt(pkt)
		_, _ = openPlain(pkt, types.PayloadTypeRmcpOpenSessionResponse)
	})
}
