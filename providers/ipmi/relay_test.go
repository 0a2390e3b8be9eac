package ipmi_test

import (
	"net"
	"sync"
	"testing"
	"time"
)

// relay is a network between driver and controller that loses, delays and spoils
// what the controller answers, and counts what the driver asks.
type relay struct {
	front  *net.UDPConn
	back   *net.UDPAddr
	wg     sync.WaitGroup
	closed chan struct{}

	mu     sync.Mutex
	dead   bool
	spoil  func(pkt []byte) []byte // nil result: lost
	delay  time.Duration
	logins int
	last   *net.UDPAddr
	conns  map[string]*net.UDPConn
}

func newRelay(t testing.TB, to string) *relay {
	t.Helper()
	front, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	return newRelayOn(t, front, to)
}

func newRelayOn(t testing.TB, front *net.UDPConn, to string) *relay {
	t.Helper()
	back, err := net.ResolveUDPAddr("udp", to)
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{front: front, back: back, closed: make(chan struct{}), conns: map[string]*net.UDPConn{}}
	r.wg.Go(r.forward)
	t.Cleanup(r.close)
	return r
}

func (r *relay) addr() string { return r.front.LocalAddr().String() }

// forward takes the driver's packets to the controller.
func (r *relay) forward() {
	const rakp1 = 0x12
	buf := make([]byte, 2048)
	for {
		n, from, err := r.front.ReadFromUDP(buf)
		if err != nil {
			return
		}
		r.mu.Lock()
		if n > 5 && buf[5]&0x3f == rakp1 {
			r.logins++
		}
		up, ok := r.conns[from.String()]
		if !ok {
			if up, err = net.DialUDP("udp4", nil, r.back); err != nil {
				r.mu.Unlock()
				return
			}
			r.conns[from.String()] = up
			r.wg.Go(func() { r.backward(up, from) })
		}
		r.last = from
		dead := r.dead
		r.mu.Unlock()
		if !dead {
			_, _ = up.Write(buf[:n])
		}
	}
}

// backward takes the controller's packets to the driver, one after the other.
func (r *relay) backward(up *net.UDPConn, to *net.UDPAddr) {
	buf := make([]byte, 2048)
	for {
		n, err := up.Read(buf)
		if err != nil {
			return
		}
		r.mu.Lock()
		spoil, delay := r.spoil, r.delay
		r.mu.Unlock()
		if delay > 0 {
			timer := time.NewTimer(delay)
			select {
			case <-timer.C:
			case <-r.closed:
				timer.Stop()
				return
			}
		}
		pkt := buf[:n]
		if spoil != nil {
			pkt = spoil(append([]byte(nil), pkt...))
		}
		if pkt != nil {
			_, _ = r.front.WriteToUDP(pkt, to)
		}
	}
}

func (r *relay) set(dead bool, spoil func([]byte) []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dead, r.spoil = dead, spoil
}

func (r *relay) setDelay(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.delay = d
}

func (r *relay) logIns() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.logins
}

func (r *relay) close() {
	select {
	case <-r.closed:
		return
	default:
	}
	close(r.closed)
	_ = r.front.Close()
	r.mu.Lock()
	for _, c := range r.conns {
		_ = c.Close()
	}
	r.mu.Unlock()
	r.wg.Wait()
}

// inSession tells a command's answer from those of the session's setup.
func inSession(pkt []byte) bool {
	return len(pkt) >= 10 && (pkt[6]|pkt[7]|pkt[8]|pkt[9]) != 0
}

func loseSession(pkt []byte) []byte {
	if inSession(pkt) {
		return nil
	}
	return pkt
}

func half(pkt []byte) []byte { return pkt[:len(pkt)/2] }

func noise(pkt []byte) []byte {
	x := uint32(2463534242)
	for i := range pkt {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		pkt[i] = byte(x)
	}
	return pkt
}

// toDriver sends a packet to the driver that asked last.
func (r *relay) toDriver(pkt []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last != nil {
		_, _ = r.front.WriteToUDP(pkt, r.last)
	}
}
