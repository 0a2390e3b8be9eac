package controller

import (
	"sync"

	"github.com/nodefence/nodefence/fencing"
)

// mailbox keeps, for each node, what its machine last answered until a decision
// that took it in has been stored, and knows which questions are under way.
type mailbox struct {
	mu    sync.Mutex
	boxes map[string]*box
}

type box struct {
	reading  *fencing.Reading
	powerOff *fencing.PowerOffResult
	asking   bool
	fencing  bool
}

func newMailbox() *mailbox { return &mailbox{boxes: map[string]*box{}} }

func (m *mailbox) box(node string) *box {
	b := m.boxes[node]
	if b == nil {
		b = &box{}
		m.boxes[node] = b
	}
	return b
}

// beginReading tells whether a reading may begin: one at a time for each machine,
// and none while a power-off is under way, whose outcome it could mistake.
func (m *mailbox) beginReading(node string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.box(node)
	if b.asking || b.fencing {
		return false
	}
	b.asking = true
	return true
}

func (m *mailbox) endReading(node string, r fencing.Reading) {
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.box(node)
	b.asking, b.reading = false, &r
}

// endSurvey ends a reading that no case has asked for: it is kept only for a case
// that was opened meanwhile.
func (m *mailbox) endSurvey(node string, r fencing.Reading, open func() bool) {
	if open() {
		m.endReading(node, r)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.box(node)
	b.asking = false
	if *b == (box{}) {
		delete(m.boxes, node)
	}
}

// beginPowerOff tells whether a power-off may begin: one at a time.
func (m *mailbox) beginPowerOff(node string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.box(node)
	if b.fencing {
		return false
	}
	b.fencing = true
	return true
}

func (m *mailbox) endPowerOff(node string, r fencing.PowerOffResult) {
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.box(node)
	b.fencing, b.powerOff = false, &r
}

// peek gives what lies in the node's box and leaves it there.
func (m *mailbox) peek(node string) (*fencing.Reading, *fencing.PowerOffResult) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if b := m.boxes[node]; b != nil {
		return b.reading, b.powerOff
	}
	return nil, nil
}

// take removes what a stored decision took in, unless something newer has come.
func (m *mailbox) take(node string, r *fencing.Reading, p *fencing.PowerOffResult) {
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.boxes[node]
	if b == nil {
		return
	}
	if b.reading == r {
		b.reading = nil
	}
	if b.powerOff == p {
		b.powerOff = nil
	}
	if *b == (box{}) {
		delete(m.boxes, node)
	}
}

// planner remembers for which nodes a later look is planned.
type planner struct {
	mu    sync.Mutex
	nodes map[string]bool
}

func newPlanner() *planner { return &planner{nodes: map[string]bool{}} }

func (p *planner) set(node string, planned bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if planned {
		p.nodes[node] = true
	} else {
		delete(p.nodes, node)
	}
}

func (p *planner) has(node string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.nodes[node]
}
