package ipmi

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/bougou/go-ipmi/pkg/crypto"
	"github.com/bougou/go-ipmi/pkg/protocol"
	"github.com/bougou/go-ipmi/pkg/types"
)

// RMCP+ packets (IPMI 2.0 section 13). Every reply within a session is taken
// only if it is encrypted, bears the number of its session and its integrity code
// is right: a reply that anybody could have sent proves nothing about power.

const (
	rmcpHeader    = 4
	sessionHeader = 12
	payloadStart  = rmcpHeader + sessionHeader

	flagEncrypted     = 0x80
	flagAuthenticated = 0x40

	nextHeader = 0x07

	bmcAddress     = 0x20
	consoleAddress = 0x81
)

// errNotOurs is for datagrams that are no answer to what was asked: noise,
// somebody else's, or late. The real answer may still come.
var errNotOurs = errors.New("not an answer to this request")

// suite is a set of algorithms with authentication, integrity and encryption.
type suite struct {
	id        int
	auth      types.AuthAlg
	integrity types.IntegrityAlg
	crypt     types.CryptAlg
}

// suites are the ones that this driver speaks. Suites without integrity or
// encryption are missing on purpose.
var suites = map[int]suite{
	3:  {3, types.AuthAlg_HMAC_SHA1, types.IntegrityAlg_HMAC_SHA1_96, types.CryptAlg_AES_CBC_128},
	17: {17, types.AuthAlg_HMAC_SHA256, types.IntegrityAlg_HMAC_SHA256_128, types.CryptAlg_AES_CBC_128},
}

// plainPacket is a packet outside any session.
func plainPacket(payload types.PayloadType, data []byte) []byte {
	return protocol.BuildRMCPPlusPacket(uint8(payload), 0, 0, 0, data)
}

// openPlain takes the payload out of a packet outside any session.
func openPlain(pkt []byte, want types.PayloadType) ([]byte, error) {
	if err := checkRMCP(pkt); err != nil {
		return nil, err
	}
	id, seq, payload, flags, data, ok := protocol.ParseRMCPPlusHeader(pkt)
	if !ok || id != 0 || seq != 0 || flags&(flagEncrypted|flagAuthenticated) != 0 || payload != uint8(want) {
		return nil, fmt.Errorf("%w: no plain payload of type %#02x", errNotOurs, uint8(want))
	}
	return data, nil
}

func checkRMCP(pkt []byte) error {
	const version, classIPMI, formatRMCPPlus = 0x06, 0x07, 0x06
	if len(pkt) < payloadStart || pkt[0] != version || pkt[3]&0x1f != classIPMI || pkt[4] != formatRMCPPlus {
		return fmt.Errorf("%w: no RMCP+ packet", errNotOurs)
	}
	return nil
}

// keys are what a session's packets are sealed with.
type keys struct {
	suite     suite
	bmcID     uint32 // in packets to the controller
	consoleID uint32 // in packets from it
	k1, k2    []byte
}

// seal encrypts and signs one message to the controller.
func (k *keys) seal(seq uint32, msg []byte) ([]byte, error) {
	block, err := aes.NewCipher(k.k2[:16])
	if err != nil {
		return nil, err
	}
	body := crypto.PadAES(msg)
	payload := make([]byte, aes.BlockSize+len(body))
	_, _ = rand.Read(payload[:aes.BlockSize]) // never fails
	cipher.NewCBCEncrypter(block, payload[:aes.BlockSize]).CryptBlocks(payload[aes.BlockSize:], body)
	pkt := protocol.BuildRMCPPlusPacket(uint8(types.PayloadTypeIPMI), flagEncrypted|flagAuthenticated, k.bmcID, seq, payload)
	pad := types.IntegrityPadLen(sessionHeader, len(payload))
	pkt = append(pkt, bytes.Repeat([]byte{0xff}, pad)...)
	pkt = append(pkt, byte(pad), nextHeader)
	code, err := crypto.SessionIntegrityAuthCode(k.suite.integrity, pkt[rmcpHeader:], k.k1, "")
	if err != nil {
		return nil, err
	}
	return append(pkt, code...), nil
}

// open checks and decrypts one packet from the controller.
func (k *keys) open(pkt []byte) ([]byte, error) {
	if err := checkRMCP(pkt); err != nil {
		return nil, err
	}
	id, _, payload, flags, data, ok := protocol.ParseRMCPPlusHeader(pkt)
	codeLen, known := crypto.IntegrityAuthCodeLen(k.suite.integrity)
	switch {
	case !ok || !known:
		return nil, fmt.Errorf("%w: cut short", errNotOurs)
	case id != k.consoleID:
		return nil, fmt.Errorf("%w: of another session", errNotOurs)
	case payload != uint8(types.PayloadTypeIPMI) || flags&(flagEncrypted|flagAuthenticated) != flagEncrypted|flagAuthenticated:
		return nil, fmt.Errorf("%w: not encrypted and signed", errNotOurs)
	case len(pkt) < payloadStart+len(data)+2+codeLen:
		return nil, fmt.Errorf("%w: no integrity code", errNotOurs)
	}
	signed := len(pkt) - codeLen
	code, err := crypto.SessionIntegrityAuthCode(k.suite.integrity, pkt[rmcpHeader:signed], k.k1, "")
	if err != nil || !crypto.Equal(code, pkt[signed:]) {
		return nil, fmt.Errorf("%w: its integrity code is wrong", errNotOurs)
	}
	return k.decrypt(data)
}

func (k *keys) decrypt(data []byte) ([]byte, error) {
	if len(data) < 2*aes.BlockSize || len(data)%aes.BlockSize != 0 {
		return nil, fmt.Errorf("%w: encrypted payload of %d bytes", errNotOurs, len(data))
	}
	block, err := aes.NewCipher(k.k2[:16])
	if err != nil {
		return nil, err
	}
	plain := make([]byte, len(data)-aes.BlockSize)
	cipher.NewCBCDecrypter(block, data[:aes.BlockSize]).CryptBlocks(plain, data[aes.BlockSize:])
	end := len(plain) - 1 - int(plain[len(plain)-1])
	if end < 0 {
		return nil, fmt.Errorf("%w: padding longer than the message", errNotOurs)
	}
	return plain[:end], nil
}

// command is an IPMI command: network function and number.
type command struct {
	netFn, cmd uint8
	name       string
}

var (
	cmdChassisStatus  = command{0x00, 0x01, "Get Chassis Status"}
	cmdChassisControl = command{0x00, 0x02, "Chassis Control"}
	cmdACPIState      = command{0x06, 0x07, "Get ACPI Power State"}
	cmdSystemGUID     = command{0x06, 0x37, "Get System GUID"}
	cmdPrivilege      = command{0x06, 0x3b, "Set Session Privilege Level"}
	cmdCloseSession   = command{0x06, 0x3c, "Close Session"}
)

// request is the message that carries a command (section 13.8).
func (c command) request(rqSeq uint8, data []byte) []byte {
	msg := []byte{bmcAddress, c.netFn << 2, 0, consoleAddress, rqSeq << 2, c.cmd}
	msg[2] = checksum(msg[:2])
	msg = append(msg, data...)
	return append(msg, checksum(msg[3:]))
}

// reply takes completion code and data out of the answer to the request with
// this sequence number.
func (c command) reply(msg []byte, rqSeq uint8) (code uint8, data []byte, err error) {
	const header, trailer = 7, 1
	if len(msg) < header+trailer {
		return 0, nil, fmt.Errorf("%w: a message of %d bytes", errNotOurs, len(msg))
	}
	// The requester's address (byte 0) is not looked at: some controllers put
	// their own there, and the session and its numbers say more.
	if msg[1]>>2 != c.netFn|1 || msg[4]>>2 != rqSeq || msg[5] != c.cmd {
		return 0, nil, fmt.Errorf("%w: it answers another command", errNotOurs)
	}
	if checksum(msg[:3]) != 0 || checksum(msg[3:]) != 0 {
		return 0, nil, fmt.Errorf("%w: its checksum is wrong", errNotOurs)
	}
	return msg[6], msg[header : len(msg)-trailer], nil
}

// checksum makes the sum of all bytes, itself included, zero.
func checksum(b []byte) (sum uint8) {
	for _, v := range b {
		sum -= v
	}
	return sum
}

func le32(v uint32) []byte { return binary.LittleEndian.AppendUint32(nil, v) }
