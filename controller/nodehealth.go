package controller

import (
	"sync"

	"github.com/nodefence/nodefence/fencing"
)

// nodeHealth counts nodes and those that are not Ready, and how many share a
// UUID, without a scan at each decision.
type nodeHealth struct {
	mu    sync.Mutex
	nodes map[string]nodeState
	// byUUID counts the nodes by their UUID, the same for all its byte orders.
	byUUID   map[string]int
	notReady int
}

type nodeState struct {
	notReady bool
	uuidKey  string
}

func newNodeHealth() *nodeHealth {
	return &nodeHealth{nodes: map[string]nodeState{}, byUUID: map[string]int{}}
}

func (h *nodeHealth) set(n fencing.NodeFacts) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.drop(n.Name)
	s := nodeState{notReady: n.NotReady(), uuidKey: fencing.UUIDKey(n.SystemUUID)}
	h.nodes[n.Name] = s
	if s.notReady {
		h.notReady++
	}
	if s.uuidKey != "" {
		h.byUUID[s.uuidKey]++
	}
}

func (h *nodeHealth) remove(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.drop(name)
}

func (h *nodeHealth) drop(name string) {
	s, ok := h.nodes[name]
	if !ok {
		return
	}
	delete(h.nodes, name)
	if s.notReady {
		h.notReady--
	}
	if s.uuidKey == "" {
		return
	}
	if h.byUUID[s.uuidKey]--; h.byUUID[s.uuidKey] == 0 {
		delete(h.byUUID, s.uuidKey)
	}
}

func (h *nodeHealth) counts() (total, notReady int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.nodes), h.notReady
}

// shared tells whether more than one node has the UUID, in any byte order.
func (h *nodeHealth) shared(uuid string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.byUUID[fencing.UUIDKey(uuid)] > 1
}
