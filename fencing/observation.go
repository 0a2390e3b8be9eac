package fencing

import "time"

// Observation is everything that is known at one moment: what the API server
// says, what the machine said last, and the time. Whoever calls Decide gathers
// it; a fact that could not be gathered is left at its zero value, which never
// permits anything.
type Observation struct {
	// Now is the controller's clock.
	Now time.Time
	// Node is the Node object.
	Node NodeFacts
	// Lease is the node's Lease in kube-node-lease.
	Lease LeaseFacts
	// Workloads are what still holds on to the node.
	Workloads Workloads
	// Cluster is what the budget needs.
	Cluster ClusterFacts
	// Expected is the identity that the machine must have.
	Expected Expectation
	// Unaddressed, when not empty, says why the machine cannot be asked at all:
	// no group, two groups, no address, no credentials.
	Unaddressed string
	// Reading is the newest reading since the last decision, or nil.
	Reading *Reading
	// PowerOff is how the power-off that the case intends ended, or nil.
	PowerOff *PowerOffResult
}

// NodeFacts are what the Node object says.
type NodeFacts struct {
	Name   string
	Exists bool
	UID    string
	// Ready is the status of the Ready condition.
	Ready ReadyStatus
	// BootID and SystemUUID are those of status.nodeInfo.
	BootID, SystemUUID string
	// ControlPlane is set for nodes that run the control plane.
	ControlPlane bool
	// Taint is the out-of-service taint.
	Taint TaintFacts
	// Paused, when not empty, says who or what asked to leave the node alone.
	Paused string
}

// TaintFacts are what the Node says of the out-of-service taint.
type TaintFacts struct {
	Present bool
	// Case is the name of the case that put it there, from our own mark on the
	// Node; empty for a taint that is not ours (S10).
	Case string
	// BootID is the boot ID that the node had when we put the taint there.
	BootID string
}

// ReadyStatus is the status of a Node's Ready condition.
type ReadyStatus uint8

// The statuses. The zero value is a Node that has no such condition.
const (
	ReadyMissing ReadyStatus = iota
	// ReadyTrue: the kubelet says that all is well.
	ReadyTrue
	// ReadyFalse: the kubelet said that something is wrong.
	ReadyFalse
	// ReadyUnknown: the control plane says that the kubelet is silent.
	ReadyUnknown
)

var readyNames = [...]string{"missing", "True", "False", "Unknown"}

// String gives the condition's status as the API has it.
func (r ReadyStatus) String() string { return enumName(readyNames[:], uint8(r), "ReadyStatus") }

// UnmarshalText takes exactly the names above.
func (r *ReadyStatus) UnmarshalText(text []byte) error {
	v, err := enumParse(readyNames[:], string(text), "status of the Ready condition")
	*r = ReadyStatus(v)
	return err
}

// NotReady tells whether the node has a Ready condition that is not True: the
// precondition of everything that touches it (S4).
func (n NodeFacts) NotReady() bool {
	return n.Exists && (n.Ready == ReadyFalse || n.Ready == ReadyUnknown)
}

// LeaseFacts are what the node's Lease says.
type LeaseFacts struct {
	Exists bool
	// RenewedAt is the renewal time that the kubelet wrote, by its clock. It is
	// compared for equality only: clocks differ.
	RenewedAt time.Time
	// SeenAt is when the controller first saw this renewal, by its own clock.
	SeenAt time.Time
}

// Age is how long ago the last renewal was seen.
func (l LeaseFacts) Age(now time.Time) time.Duration { return now.Sub(l.SeenAt) }

// Workloads are the pods and volumes of a node.
type Workloads struct {
	// Known is set when both lists could be made. Without it nothing counts as
	// gone.
	Known bool
	// Leaving names the pods bound to the node that do not tolerate the taint.
	Leaving []string
	// Staying names the pods that tolerate it: they stay, and so do their
	// volumes.
	Staying []string
	// Attachments names the VolumeAttachments that must go: those of the node
	// that no staying pod uses.
	Attachments []string
}

// Gone tells whether nothing that had to leave is left (S10).
func (w Workloads) Gone() bool { return w.Known && len(w.Leaving) == 0 && len(w.Attachments) == 0 }

// ClusterFacts are what the budget needs to know (S6).
type ClusterFacts struct {
	// Nodes is how many there are; zero means unknown.
	Nodes int
	// NotReady is how many are not Ready, this one included.
	NotReady int
	// InAction is how many other cases are being powered off or tainted and
	// still have workloads on them.
	InAction int
}

// PowerOffResult is how a power-off command ended.
type PowerOffResult struct {
	// Attempt is the attempt that this is the result of.
	Attempt int
	// StartedAt and EndedAt are the controller's clock around the command.
	StartedAt, EndedAt time.Time
	// Failure is why it was not accepted; the zero value means it was.
	Failure Failure
}
