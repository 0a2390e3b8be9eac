package ipmi

import (
	"testing"

	"github.com/bougou/go-ipmi/pkg/types"

	"github.com/nodefence/nodefence/fencing"
)

// FuzzParse: Off is three or four bytes with the power bit at 0, and nothing else;
// neither identity nor sleep comes of an answer of another length.
func FuzzParse(f *testing.F) {
	for _, s := range [][]byte{nil, {0}, {0, 0, 0}, {1, 0, 0}, {0x60, 0x10, 0x40, 0x00}, {4, 0x7f}, make([]byte, 16), make([]byte, 300)} {
		f.Add(s, uint8(0))
	}
	f.Fuzz(func(t *testing.T, data []byte, code uint8) {
		s, err := parseStatus(data)
		if (err != nil) != (s.power == fencing.Unknown) {
			t.Errorf("% x: %v, %v", data, s.power, err)
		}
		if s.power == fencing.Off && (len(data) != 3 && len(data) != 4 || data[0]&1 != 0) {
			t.Errorf("% x is Off", data)
		}
		if uuid, err := parseGUID(data); err == nil && (len(data) != 16 || uuid != "" && len(uuid) != 36) || err != nil && uuid != "" {
			t.Errorf("% x: %q, %v", data, uuid, err)
		}
		if word, asleep := sleeping(data); asleep && (len(data) != 2 || word == "") {
			t.Errorf("% x: %q", data, word)
		}
		for _, c := range []command{cmdChassisStatus, cmdChassisControl, cmdACPIState, cmdSystemGUID, cmdPrivilege} {
			if err := commandProblem(c, code); (err == nil) != (code == codeOK) {
				t.Errorf("%s %#02x: %v", c.name, code, err)
			}
		}
		if err := setupProblem("x", types.RmcpStatusCode(code)); err == nil || kindOf(err) == fencing.NoFailure {
			t.Errorf("setup %#02x: %v", code, err)
		}
	})
}

// FuzzSession: what the other end of a session that is being opened sends neither
// panics nor is taken for a reply within it.
func FuzzSession(f *testing.F) {
	f.Add([]byte{0, 0}, uint8(1))
	f.Add([]byte{1, 0x0d, 0, 0, 1, 0, 0, 0}, uint8(1))
	f.Add([]byte{}, uint8(0))
	f.Fuzz(func(t *testing.T, data []byte, tag uint8) {
		s := &session{tag: tag}
		if err := s.refusal("x", data); (err != nil) && (len(data) < 2 || data[1] == 0) {
			t.Errorf("% x refuses: %v", data, err)
		}
		k := &keys{suite: suites[3], consoleID: 1, k1: []byte("20 bytes of a key...."), k2: make([]byte, 20)}
		sealed, err := k.seal(1, data)
		if err != nil {
			t.Fatal(err)
		}
		// Sealed for the controller's session number, which is not ours.
		if _, err := k.open(sealed); err == nil {
			t.Error("a packet to the controller is taken for one from it")
		}
		k.bmcID = k.consoleID
		sealed, _ = k.seal(1, data)
		if msg, err := k.open(sealed); err != nil || string(msg) != string(data) {
			t.Errorf("% x is opened as % x, %v", data, msg, err)
		}
	})
}
