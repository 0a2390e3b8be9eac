package redfishbmc

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/nodefence/nodefence/test/lab"
)

// System is one ComputerSystem of the service.
type System struct {
	ID      string // last part of its URI; "1", "2", … when empty
	Name    string // "System" when empty, for all alike, as on real devices
	Machine *lab.Machine
}

// Config describes a service. Only Systems is needed.
type Config struct {
	Systems     []System
	Accounts    []Account     // DefaultAccounts when nil
	MaxSessions int           // 16 when 0; one more is answered 503 RAC0218
	CycleOff    time.Duration // how long a PowerCycle reads Off; 1 s when 0
	// DiesWithMains: the controller is silent while its first machine has no
	// mains.
	DiesWithMains bool
}

// BMC is a running service. Start it with [Start].
type BMC struct {
	cfg      Config
	systems  []*system
	uuid     lab.UUID // the manager's own
	rootUUID lab.UUID
	certs    *certificates
	listener net.Listener
	server   *http.Server
	served   chan struct{}
	ctx      context.Context // ends with the service, and every request with it
	cancel   context.CancelFunc
	later    sync.WaitGroup

	mu        sync.Mutex // guards all below
	quirks    []Quirk
	sessions  map[string]*session // by token
	opened    int
	requests  []*Request
	panics    []string
	downUntil time.Time // a restarting controller
	offUntil  time.Time // reads Off after its restart
}

// system is a System and what the controller remembers of it.
type system struct {
	System
	mu          sync.Mutex
	staleUntil  time.Time // reads On until then
	offAccepted bool      // a shutdown was accepted and has not been done
}

// StartOne runs a service for one machine, at /redfish/v1/Systems/1.
func StartOne(m *lab.Machine) (*BMC, error) {
	return Start(Config{Systems: []System{{Machine: m}}})
}

// Start runs a service.
func Start(cfg Config) (*BMC, error) {
	if len(cfg.Systems) == 0 {
		return nil, errors.New("redfishbmc: no system")
	}
	if cfg.Accounts == nil {
		cfg.Accounts = DefaultAccounts()
	}
	if cfg.MaxSessions == 0 {
		cfg.MaxSessions = 16
	}
	if cfg.CycleOff == 0 {
		cfg.CycleOff = time.Second
	}
	b := &BMC{
		cfg: cfg, uuid: lab.NewUUID(), rootUUID: lab.NewUUID(),
		sessions: map[string]*session{}, served: make(chan struct{}),
	}
	for i, s := range cfg.Systems {
		if s.Machine == nil {
			return nil, fmt.Errorf("redfishbmc: system %d has no machine", i)
		}
		if s.ID == "" {
			s.ID = strconv.Itoa(i + 1)
		}
		if s.Name == "" {
			s.Name = "System"
		}
		b.systems = append(b.systems, &system{System: s})
	}
	var err error
	if b.certs, err = newCertificates(); err != nil {
		return nil, err
	}
	if b.listener, err = net.Listen("tcp4", "127.0.0.1:0"); err != nil { //nolint:noctx // it does not block
		return nil, fmt.Errorf("redfishbmc: %w", err)
	}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	b.server = &http.Server{
		Handler:           http.HandlerFunc(b.serve),
		BaseContext:       func(net.Listener) context.Context { return b.ctx },
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          log.New(io.Discard, "", 0), // handshakes that a client gave up, as some tests want
		// HTTP/1.1 only, as controllers speak it; a connection can be cut then.
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){},
	}
	go func() {
		defer close(b.served)
		_ = b.server.Serve(tls.NewListener(b.listener, &tls.Config{
			GetCertificate: b.certs.get, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
		}))
	}()
	return b, nil
}

// URL is the service's base, without the path.
func (b *BMC) URL() string { return "https://" + b.Addr() }

// Addr is the service's host:port.
func (b *BMC) Addr() string { return b.listener.Addr().String() }

// SystemURI is the path of a system.
func (b *BMC) SystemURI(id string) string { return systemsPath + "/" + id }

// Set replaces all quirks. The first in the list that answers a request wins;
// those that change an answer are applied in order.
func (b *BMC) Set(quirks ...Quirk) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.quirks = append([]Quirk(nil), quirks...)
}

// Add adds quirks to those that are set.
func (b *BMC) Add(quirks ...Quirk) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.quirks = append(append([]Quirk(nil), b.quirks...), quirks...)
}

// Clear makes the service healthy.
func (b *BMC) Clear() { b.Set() }

// active are the quirks that concern an area.
func (b *BMC) active(a Area) []Quirk {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []Quirk
	for _, q := range b.quirks {
		if q.area&a != 0 {
			out = append(out, q)
		}
	}
	return out
}

// SetCertificate changes what the service shows to new connections.
func (b *BMC) SetCertificate(kind Certificate) error {
	return b.certs.use(kind)
}

// RestartBMC restarts the controller, not the machines: it is silent for down,
// forgets its sessions, and says Off of every system for readsOff more, though
// they run. OpenBMC does so until it has looked at the host.
func (b *BMC) RestartBMC(down, readsOff time.Duration) {
	b.mu.Lock()
	now := time.Now()
	b.downUntil = now.Add(down)
	b.offUntil = b.downUntil.Add(readsOff)
	b.sessions = map[string]*session{}
	b.mu.Unlock()
	reapplies := false
	for _, q := range b.active(AreaAction) {
		reapplies = reapplies || q.reapplies
	}
	if reapplies {
		b.afterwards(down, func() {
			for _, s := range b.systems {
				if s.machine().Power() == lab.Off {
					_ = s.machine().PowerOn("bmc restart")
				}
			}
		})
	}
}

func (s *system) machine() *lab.Machine { return s.System.Machine }

// afterwards does something later, unless the service is closed before.
func (b *BMC) afterwards(d time.Duration, do func()) {
	b.later.Add(1)
	go func() {
		defer b.later.Done()
		if b.sleep(b.ctx, d) {
			do()
		}
	}()
}

// sleep waits, and says whether it waited to the end.
func (b *BMC) sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
	case <-b.ctx.Done():
	}
	return false
}

// Close ends the service and every request that hangs in it. It may be called
// again. The machines are not touched.
func (b *BMC) Close() error {
	b.cancel()
	err := b.server.Close()
	<-b.served
	b.later.Wait()
	if errors.Is(err, net.ErrClosed) {
		err = nil
	}
	if p := b.Panics(); len(p) > 0 {
		return fmt.Errorf("redfishbmc: a handler panicked: %s", p[0])
	}
	return err
}
