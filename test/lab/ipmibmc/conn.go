package ipmibmc

import (
	"errors"
	"net"
	"sync"
	"time"
)

// faultyConn is the controller's network: what it loses, delays and spoils.
type faultyConn struct {
	*net.UDPConn
	bmc     *BMC
	once    sync.Once
	closed  chan struct{}
	writers sync.WaitGroup
}

// ReadFrom returns the next packet that reaches the controller.
func (c *faultyConn) ReadFrom(buf []byte) (int, net.Addr, error) {
	for {
		n, addr, err := c.UDPConn.ReadFrom(buf)
		if err != nil || !c.silent() {
			return n, addr, err
		}
	}
}

func (c *faultyConn) silent() bool {
	if c.bmc.Faults().Dead {
		return true
	}
	return c.bmc.cfg.DiesWithMains && !c.bmc.machine.State().Mains
}

// WriteTo sends a packet, or what the faults leave of it.
func (c *faultyConn) WriteTo(data []byte, addr net.Addr) (int, error) {
	c.writers.Add(1)
	defer c.writers.Done()
	f := c.bmc.Faults()
	if f.Delay > 0 {
		t := time.NewTimer(f.Delay)
		defer t.Stop()
		select {
		case <-t.C:
		case <-c.closed:
			return 0, net.ErrClosed
		}
	}
	switch {
	case c.silent(), f.Hang && inSession(data):
		return len(data), nil
	case f.Garbage:
		data = noise(len(data))
	case f.Truncated:
		data = data[:len(data)/2]
	}
	n, err := c.UDPConn.WriteTo(data, addr)
	return n, err
}

// inSession tells a command's answer from the packets that set up a session:
// the session ID lies behind the RMCP header, the authentication type and the
// payload type, and is zero before a session exists.
func inSession(pkt []byte) bool {
	return len(pkt) >= 10 && (pkt[6]|pkt[7]|pkt[8]|pkt[9]) != 0
}

// noise is the same at every run, so that a failure can be repeated.
func noise(n int) []byte {
	b := make([]byte, n)
	x := uint32(2463534242)
	for i := range b {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		b[i] = byte(x)
	}
	return b
}

// Close frees the port.
func (c *faultyConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	if err := c.UDPConn.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}
