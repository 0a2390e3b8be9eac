package ipmi

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/bougou/go-ipmi/pkg/crypto"
	"github.com/bougou/go-ipmi/pkg/rmcpplus"
	"github.com/bougou/go-ipmi/pkg/types"

	"github.com/nodefence/nodefence/fencing"
	"github.com/nodefence/nodefence/providers"
)

// session is one RMCP+ session (IPMI 2.0 section 13.15). It belongs to one call
// and one goroutine.
type session struct {
	link  *link
	keys  keys
	level types.PrivilegeLevel
	creds providers.Credentials
	kuid  []byte

	role                 uint8
	consoleRand, bmcRand [16]byte
	// guid is the system GUID as RAKP message 2 gives it, covered by its
	// authentication code.
	guid [16]byte

	tag    uint8  // of the session setup's messages
	seq    uint32 // of the session's packets
	rqSeq  uint8  // of the commands, 6 bits
	active bool
}

// errSuite: the controller does not want this cipher suite; another may do.
var errSuite = errors.New("cipher suite refused")

// openSession logs in with the first suite that the controller takes. The next
// one is tried only when the controller refused the suite itself: a second
// attempt with a wrong password would bring the account nearer to its lock.
func openSession(ctx context.Context, l *link, creds providers.Credentials, level types.PrivilegeLevel, order []int) (*session, error) {
	var refused error
	for _, id := range order {
		s := &session{link: l, level: level, creds: creds, kuid: crypto.PadPassword20([]byte(creds.Password))}
		s.keys.suite = suites[id]
		err := s.open(ctx)
		if err == nil {
			return s, nil
		}
		s.abandon()
		if !errors.Is(err, errSuite) {
			return nil, err
		}
		refused = err
	}
	return nil, problemf(fencing.Failed, "the controller takes none of the cipher suites %v (the last refusal: %v); enable 17 or 3 on it, or set cipherSuites", order, refused)
}

func (s *session) open(ctx context.Context) error {
	for _, step := range []func(context.Context) error{s.request, s.rakp12, s.rakp34, s.raise} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// request asks for a session with exactly one suite, and takes no other: a
// controller, or somebody between, that answers with weaker algorithms would
// make its replies forgeable.
func (s *session) request(ctx context.Context) error {
	auth, integrity, crypt := rmcpplus.NewAlgorithmPayloads(s.keys.suite.auth, s.keys.suite.integrity, s.keys.suite.crypt)
	s.keys.consoleID = randomID()
	req := rmcpplus.OpenSessionRequest{
		RemoteConsoleSessionID: s.keys.consoleID,
		AuthenticationPayload:  auth, IntegrityPayload: integrity, ConfidentialityPayload: crypt,
	}
	next := func() ([]byte, error) {
		s.tag++
		req.MessageTag = s.tag
		return plainPacket(types.PayloadTypeRmcpOpenSessionRequest, req.Pack()), nil
	}
	return s.link.exchange(ctx, "Open Session", next, func(pkt []byte) error {
		data, err := openPlain(pkt, types.PayloadTypeRmcpOpenSessionResponse)
		if err != nil {
			return err
		}
		if err := s.refusal("Open Session", data); err != nil {
			return err
		}
		var res rmcpplus.OpenSessionResponse
		if err := res.Unpack(data); err != nil || res.RemoteConsoleSessionID != s.keys.consoleID {
			return fmt.Errorf("%w: no answer to Open Session", errNotOurs)
		}
		if res.AuthAlg != auth.AuthAlg || res.IntegrityAlg != integrity.IntegrityAlg || res.CryptAlg != crypt.CryptAlg || res.ManagedSystemSessionID == 0 {
			return problemf(fencing.Malformed, "Open Session: asked for cipher suite %d, the controller answers with algorithms %d/%d/%d", s.keys.suite.id, res.AuthAlg, res.IntegrityAlg, res.CryptAlg)
		}
		s.keys.bmcID = res.ManagedSystemSessionID
		return nil
	})
}

// refusal is the meaning of an answer of the session's setup whose status is not
// success. It may be as short as tag and status: OpenIPMI sends no more. No
// refusal proves anything, so that a forged one can do no harm but delay.
func (s *session) refusal(what string, data []byte) error {
	if len(data) < 2 || data[0] > s.tag || data[1] == 0 {
		return nil
	}
	return setupProblem(what, types.RmcpStatusCode(data[1]))
}

// rakp12 names the user, and lets the controller prove that it knows the
// password. A wrong password shows here, before anything is sent that the
// controller could count as a failed log-in.
func (s *session) rakp12(ctx context.Context) error {
	_, _ = rand.Read(s.consoleRand[:]) // never fails
	req := rmcpplus.RAKPMessage1{
		ManagedSystemSessionID: s.keys.bmcID, RemoteConsoleRandomNumber: s.consoleRand,
		NameOnlyLookup: true, RequestedMaximumPrivilegeLevel: s.level,
		UsernameLength: uint8(len(s.creds.Username)), Username: []byte(s.creds.Username),
	}
	s.role = req.Role()
	next := func() ([]byte, error) {
		s.tag++
		req.MessageTag = s.tag
		return plainPacket(types.PayloadTypeRAKPMessage1, req.Pack()), nil
	}
	return s.link.exchange(ctx, "log in (RAKP 1)", next, func(pkt []byte) error {
		data, err := openPlain(pkt, types.PayloadTypeRAKPMessage2)
		if err != nil {
			return err
		}
		if err := s.refusal("log in (RAKP 2)", data); err != nil {
			return err
		}
		res := rmcpplus.RAKPMessage2{AuthAlg: s.keys.suite.auth}
		// Only the answer to the last copy: a controller makes a new random
		// number for each, and log-in by an older one would fail as if the
		// password were wrong.
		if err := res.Unpack(data); err != nil || res.MessageTag != s.tag {
			return fmt.Errorf("%w: no answer to the last RAKP 1", errNotOurs)
		}
		if res.RemoteConsoleSessionID != s.keys.consoleID {
			return fmt.Errorf("%w: RAKP 2 of another session", errNotOurs)
		}
		want, err := crypto.RAKP2AuthCode(s.keys.suite.auth, s.keys.consoleID, s.keys.bmcID, s.consoleRand[:],
			res.ManagedSystemRandomNumber[:], res.ManagedSystemGUID[:], s.role, s.creds.Username, s.kuid)
		if err != nil || !crypto.Equal(want, res.KeyExchangeAuthenticationCode) {
			return problemf(fencing.Unauthorized, "the controller does not know this user and password; check the Secret (some controllers keep only the first 16 bytes of a password)")
		}
		s.bmcRand, s.guid = res.ManagedSystemRandomNumber, res.ManagedSystemGUID
		return nil
	})
}

// rakp34 proves that we know the password, and makes the session's keys.
func (s *session) rakp34(ctx context.Context) error {
	alg := s.keys.suite.auth
	sik, k1, k2, err := crypto.DeriveSessionKeys(alg, s.consoleRand[:], s.bmcRand[:], s.role, s.creds.Username, s.kuid)
	if err != nil {
		return problemf(fencing.Failed, "log in: %v", err)
	}
	code, err := crypto.RAKP3AuthCode(alg, s.bmcRand[:], s.keys.consoleID, s.role, s.creds.Username, s.kuid)
	if err != nil {
		return problemf(fencing.Failed, "log in: %v", err)
	}
	req := rmcpplus.RAKPMessage3{ManagedSystemSessionID: s.keys.bmcID, KeyExchangeAuthenticationCode: code}
	next := func() ([]byte, error) {
		s.tag++
		req.MessageTag = s.tag
		return plainPacket(types.PayloadTypeRAKPMessage3, req.Pack()), nil
	}
	err = s.link.exchange(ctx, "log in (RAKP 3)", next, func(pkt []byte) error {
		data, err := openPlain(pkt, types.PayloadTypeRAKPMessage4)
		if err != nil {
			return err
		}
		if err := s.refusal("log in (RAKP 4)", data); err != nil {
			return err
		}
		res := rmcpplus.RAKPMessage4{AuthAlg: alg}
		if err := res.Unpack(data); err != nil {
			return fmt.Errorf("%w: no answer to RAKP 3", errNotOurs)
		}
		want, err := crypto.RAKP4ICV(alg, s.consoleRand[:], s.keys.bmcID, s.guid[:], sik)
		if err != nil || res.MgmtConsoleSessionID != s.keys.consoleID || !crypto.Equal(want, res.IntegrityCheckValue) {
			return problemf(fencing.Malformed, "log in: the controller's last message fails its integrity check (a controller with a separate BMC key, K_G, is not supported)")
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.keys.k1, s.keys.k2, s.active = k1, k2, true
	return nil
}

// raise goes to the level that is wanted. A session starts as User (section
// 22.18), so reading needs no more.
func (s *session) raise(ctx context.Context) error {
	if s.level <= types.PrivilegeLevelUser {
		return nil
	}
	code, _, err := s.do(ctx, cmdPrivilege, []byte{byte(s.level)})
	if err != nil {
		return err
	}
	return commandProblem(cmdPrivilege, code)
}

// do sends one command and gives its completion code and data. A request that is
// sent again bears new numbers, so that the controller does not take it for an
// echo; the answer to any of them is an answer.
func (s *session) do(ctx context.Context, c command, data []byte) (code uint8, reply []byte, err error) {
	var sent []uint8
	err = s.link.exchange(ctx, c.name, func() ([]byte, error) {
		s.seq++
		s.rqSeq = (s.rqSeq + 1) & 0x3f
		sent = append(sent, s.rqSeq)
		return s.keys.seal(s.seq, c.request(s.rqSeq, data))
	}, func(pkt []byte) error {
		msg, err := s.keys.open(pkt)
		if err != nil {
			return err
		}
		for _, rq := range sent {
			if code, reply, err = c.reply(msg, rq); err == nil {
				return nil
			}
		}
		return err
	})
	return code, reply, err
}

// close ends the session: controllers have four or so. It waits for the
// answer only as long as ctx lasts, and sends in any case.
func (s *session) close(ctx context.Context) {
	if !s.active {
		s.abandon()
		return
	}
	ctx, cancel := context.WithTimeout(ctx, farewell)
	defer cancel()
	if ended(ctx) == nil {
		if _, _, err := s.do(ctx, cmdCloseSession, le32(s.keys.bmcID)); err == nil {
			s.active = false
			return
		}
	}
	s.seq++
	if pkt, err := s.keys.seal(s.seq, cmdCloseSession.request((s.rqSeq+1)&0x3f, le32(s.keys.bmcID))); err == nil {
		s.link.send(pkt)
	}
	s.active = false
}

// abandon takes back a session that is only half set up, by the one message that
// the protocol has for it, which has no answer.
func (s *session) abandon() {
	switch {
	case s.keys.bmcID == 0:
		return
	case s.active:
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		s.close(ctx)
		return
	}
	req := rmcpplus.RAKPMessage3{
		MessageTag: s.tag + 1, RmcpStatusCode: types.RmcpStatusCodeInvalidIntegrityCheckValue, ManagedSystemSessionID: s.keys.bmcID,
	}
	s.link.send(plainPacket(types.PayloadTypeRAKPMessage3, req.Pack()))
}

// randomID makes a session number; zero means none.
func randomID() uint32 {
	var b [4]byte
	for {
		_, _ = rand.Read(b[:]) // never fails
		if id := binary.LittleEndian.Uint32(b[:]); id != 0 {
			return id
		}
	}
}
