package ipmibmc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/bougou/go-ipmi/pkg/bmc"
	"github.com/bougou/go-ipmi/pkg/hal/mock"
	"github.com/bougou/go-ipmi/pkg/handlers"
	"github.com/bougou/go-ipmi/pkg/server"
	"github.com/bougou/go-ipmi/pkg/types"

	"github.com/nodefence/nodefence/test/lab"
)

// Privilege is what an account may do at most.
type Privilege int

const (
	// ReadOnly is IPMI's level "user": it reads the power state and no more.
	ReadOnly Privilege = iota
	// Operator may also control the power.
	Operator
	// Administrator may do everything.
	Administrator
)

// User is an account of the controller.
type User struct {
	Name      string // at most 16 bytes
	Password  string // at most 20 bytes
	Privilege Privilege
}

// DefaultUsers are the accounts of a controller whose Config names none.
func DefaultUsers() []User {
	return []User{
		{Name: "admin", Password: "adminpass", Privilege: Administrator},
		{Name: "operator", Password: "operatorpass", Privilege: Operator},
		{Name: "reader", Password: "readerpass", Privilege: ReadOnly},
	}
}

// Config describes a controller; the zero value is usable.
type Config struct {
	Users        []User        // DefaultUsers when nil
	CipherSuites []uint8       // 3 and 17 when nil
	CycleOff     time.Duration // how long a power cycle reads off; 1 s when 0
	// DiesWithMains: the controller has no supply of its own and falls silent
	// while the machine has no mains.
	DiesWithMains bool
}

// BMC is a running controller. Start it with [Start].
type BMC struct {
	machine *lab.Machine
	cfg     Config
	conn    *faultyConn
	bmc     *bmc.BMC
	srv     *server.Server
	cancel  context.CancelFunc
	served  chan struct{}

	mu     sync.Mutex
	faults Faults
}

// Start runs a controller for a machine.
func Start(m *lab.Machine, cfg Config) (*BMC, error) {
	if cfg.Users == nil {
		cfg.Users = DefaultUsers()
	}
	if cfg.CipherSuites == nil {
		cfg.CipherSuites = []uint8{3, 17}
	}
	if cfg.CycleOff == 0 {
		cfg.CycleOff = time.Second
	}
	suites := make([]types.CipherSuiteID, 0, len(cfg.CipherSuites))
	for _, s := range cfg.CipherSuites {
		if !bmc.SupportedCipherSuite(types.CipherSuiteID(s)) {
			return nil, fmt.Errorf("ipmibmc: cipher suite %d is not supported", s)
		}
		suites = append(suites, types.CipherSuiteID(s))
	}
	// The first three fields of a UUID travel byte-swapped, as SMBIOS holds them.
	guid := m.UUID().Swapped()
	b := &BMC{machine: m, cfg: cfg, served: make(chan struct{})}
	b.bmc = bmc.New(bmc.DeviceInfo{
		DeviceID: 0x20, DeviceRevision: 1, FirmwareMajor: 9, FirmwareMinor: 0x08, IPMIVersion: 0x02,
		ManufacturerID: 0x1291, ProductID: 0x0f02,
	}, guid, mock.New(), bmc.WithCipherSuites(suites), bmc.WithV15Disabled())
	if err := b.addUsers(); err != nil {
		return nil, err
	}
	udp, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, fmt.Errorf("ipmibmc: %w", err)
	}
	b.conn = &faultyConn{UDPConn: udp, bmc: b, closed: make(chan struct{})}
	reg := handlers.NewRegistry()
	handlers.RegisterAllHandlers(reg)
	b.register(reg)
	b.srv = server.NewServer(b.bmc, b.conn, server.WithHandlerRegistry(reg))
	ctx, cancel := context.WithCancel(context.Background())
	b.cancel = cancel
	go func() {
		defer close(b.served)
		_ = b.srv.Serve(ctx)
	}()
	return b, nil
}

func (b *BMC) addUsers() error {
	// Slot 1 is the anonymous user; a controller of ours has none.
	if err := b.bmc.Users.Update(1, func(u *bmc.User) error { u.Enabled = false; return nil }); err != nil {
		return fmt.Errorf("ipmibmc: %w", err)
	}
	for i, u := range b.cfg.Users {
		if len(u.Name) > bmc.MaxUserNameLen || len(u.Password) > bmc.MaxPasswordLen {
			return fmt.Errorf("ipmibmc: user %q: a name has at most %d bytes and a password %d",
				u.Name, bmc.MaxUserNameLen, bmc.MaxPasswordLen)
		}
		user, err := b.bmc.Users.Add(uint8(i+2), u.Name)
		if err != nil {
			return fmt.Errorf("ipmibmc: user %q: %w", u.Name, err)
		}
		user.SetPassword([]byte(u.Password))
		user.Enabled = true
		user.ChannelAccess[lanChannel] = bmc.UserChannelAccess{MaxPrivilege: u.Privilege.level(), Enabled: true}
	}
	return nil
}

// lanChannel is the number of the controller's network channel.
const lanChannel = 1

func (p Privilege) level() bmc.PrivilegeLevel {
	switch p {
	case Administrator:
		return bmc.PrivilegeLevelAdministrator
	case Operator:
		return bmc.PrivilegeLevelOperator
	}
	return bmc.PrivilegeLevelUser
}

// Addr is the controller's host:port.
func (b *BMC) Addr() string { return b.conn.LocalAddr().String() }

// Host is the controller's address without the port.
func (b *BMC) Host() string { h, _, _ := net.SplitHostPort(b.Addr()); return h }

// Port is the controller's UDP port.
func (b *BMC) Port() int {
	_, p, _ := net.SplitHostPort(b.Addr())
	n, _ := strconv.Atoi(p)
	return n
}

// Sessions is the number of sessions that are open or being opened.
func (b *BMC) Sessions() int { return b.bmc.Sessions.Count() }

// SetFaults replaces the controller's faults.
func (b *BMC) SetFaults(f Faults) {
	b.mu.Lock()
	b.faults = f
	b.mu.Unlock()
	for i, u := range b.cfg.Users {
		pass := u.Password
		if f.WrongPassword {
			pass = "changed by somebody"
		}
		// The slot exists since Start, and its only error is that it does not.
		_ = b.bmc.Users.Update(uint8(i+2), func(u *bmc.User) error { u.SetPassword([]byte(pass)); return nil })
	}
}

// Faults returns the controller's present faults.
func (b *BMC) Faults() Faults {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.faults
}

// Close stops the controller and frees its port. It may be called again.
func (b *BMC) Close() error {
	b.cancel()
	err := b.srv.Close()
	<-b.served
	b.conn.writers.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
