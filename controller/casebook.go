package controller

import (
	"sync"

	"github.com/nodefence/nodefence/config/v1alpha1"
	"github.com/nodefence/nodefence/fencing"
)

// casebook holds the open cases as they were last stored. The leader is the only
// writer, so that its own copies are newer than any watch; what others do to the
// objects (a person deletes one) comes in through forget.
type casebook struct {
	mu     sync.Mutex
	byNode map[string]*page
	// blocked are the nodes whose case cannot be read, with the object's UID.
	blocked map[string]string
	// doubtful are the newest decisions whose storing failed, by node: perhaps only
	// the answer was lost.
	doubtful map[string]fencing.Decision
}

// page is one open case.
type page struct {
	// stored is the object as the API server has it.
	stored *v1alpha1.FencingCase
	// kase is the same as a value for decisions.
	kase fencing.Case
	// reserved is set from the decision to act until it is stored, so that two
	// nodes decided at the same moment cannot both take the budget's last place.
	reserved bool
}

func newCasebook() *casebook {
	return &casebook{byNode: map[string]*page{}, blocked: map[string]string{}, doubtful: map[string]fencing.Decision{}}
}

// get gives the node's open case, or the zero values.
func (b *casebook) get(node string) (fencing.Case, *v1alpha1.FencingCase) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p := b.byNode[node]; p != nil && p.stored != nil {
		return p.kase, p.stored
	}
	return fencing.Case{}, nil
}

// decide calls decide with the number of other cases in action, and reserves the
// node's place if the decision needs one.
func (b *casebook) decide(node string, decide func(inAction int) fencing.Decision) fencing.Decision {
	b.mu.Lock()
	defer b.mu.Unlock()
	inAction := 0
	for n, p := range b.byNode {
		if n != node && (p.reserved || p.kase.InAction()) {
			inAction++
		}
	}
	dec := decide(inAction)
	p := b.byNode[node]
	if p == nil && dec.Case.InAction() {
		p = &page{}
		b.byNode[node] = p
	}
	if p != nil {
		p.reserved = dec.Case.InAction()
	}
	return dec
}

// put records what was stored. A closed case leaves the book.
func (b *casebook) put(kase fencing.Case, stored *v1alpha1.FencingCase) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.doubtful, kase.Node)
	if !kase.Open() {
		delete(b.byNode, kase.Node)
		return
	}
	b.byNode[kase.Node] = &page{stored: stored, kase: kase}
}

// doubt keeps a decision of which it is not known whether it was stored.
func (b *casebook) doubt(node string, dec fencing.Decision) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.doubtful[node] = dec
}

// doubted gives the node's decision of which that is not known, or the zero value.
func (b *casebook) doubted(node string) fencing.Decision {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.doubtful[node]
}

// unreserve gives back what decide reserved for a decision that was not stored.
func (b *casebook) unreserve(node string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.byNode[node]
	if p == nil {
		return
	}
	p.reserved = false
	if p.stored == nil {
		delete(b.byNode, node)
	}
}

// forget drops the node's case when the object with that UID was deleted, and
// tells whether it did.
func (b *casebook) forget(node, uid string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.blocked[node] == uid {
		delete(b.blocked, node)
		return true
	}
	p := b.byNode[node]
	if p == nil || p.stored == nil || string(p.stored.UID) != uid {
		return false
	}
	delete(b.byNode, node)
	return true
}

// open lists the open cases.
func (b *casebook) open() []fencing.Case {
	b.mu.Lock()
	defer b.mu.Unlock()
	cases := make([]fencing.Case, 0, len(b.byNode))
	for _, p := range b.byNode {
		if p.stored != nil {
			cases = append(cases, p.kase)
		}
	}
	return cases
}

// reset replaces everything.
func (b *casebook) reset(pages map[string]*page) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.byNode = pages
}

// block forbids everything about a node until its unreadable case is deleted.
func (b *casebook) block(node, uid string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.byNode, node)
	b.blocked[node] = uid
}

func (b *casebook) isBlocked(node string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, blocked := b.blocked[node]
	return blocked
}
