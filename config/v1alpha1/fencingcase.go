package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FencingCase is one incident of one node: why nodefence suspects its machine,
// what the machine said, what was concluded and done, and why nothing was done.
// It is written by nodefence alone. Deleting the case of a distrusted provider is
// how a person says that the provider may be believed again.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=fcase,categories=nodefence
// +kubebuilder:printcolumn:name="Node",type=string,JSONPath=`.spec.nodeName`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Verdict",type=string,JSONPath=`.status.verdict.kind`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.verdict.reason`
// +kubebuilder:printcolumn:name="Held",type=string,JSONPath=`.status.hold.reason`
// +kubebuilder:printcolumn:name="Since",type=date,JSONPath=`.status.openedAt`
// +kubebuilder:printcolumn:name="Why",type=string,priority=1,JSONPath=`.status.verdict.message`
// +kubebuilder:printcolumn:name="Closed",type=date,priority=1,JSONPath=`.status.closedAt`
type FencingCase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Which incident this is. It does not change.
	Spec FencingCaseSpec `json:"spec"`
	// Where the case stands, and everything that led there.
	// +optional
	Status FencingCaseStatus `json:"status,omitempty"`
}

// FencingCaseList is a list of cases.
//
// +kubebuilder:object:root=true
type FencingCaseList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []FencingCase `json:"items"`
}

// FencingCaseSpec says which node's incident this is.
//
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a case is about one incident of one node for good"
type FencingCaseSpec struct {
	// Name of the Node.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	NodeName string `json:"nodeName"`
	// UID of the Node, so that another Node of the same name is another matter.
	// +kubebuilder:validation:MinLength=1
	NodeUID string `json:"nodeUID"`
	// Boot ID that the node had when it fell silent.
	// +optional
	BootID string `json:"bootID,omitempty"`
}

// FencingCaseStatus is where a case stands.
type FencingCaseStatus struct {
	// Where the case stands.
	// +kubebuilder:validation:Enum=Suspected;PoweringOff;Tainting;Tainted;Recovering;Untainting;Distrusted;Closed
	// +optional
	State string `json:"state,omitempty"`
	// Group of the configuration whose policy is in force.
	// +optional
	Group string `json:"group,omitempty"`
	// When the first doubt arose.
	// +optional
	OpenedAt *metav1.MicroTime `json:"openedAt,omitempty"`
	// When the case ended.
	// +optional
	ClosedAt *metav1.MicroTime `json:"closedAt,omitempty"`
	// The Lease's renewal time when the case was opened.
	// +optional
	LeaseRenewedAt *metav1.MicroTime `json:"leaseRenewedAt,omitempty"`
	// Since when the node has not been Ready without a break, by the controller's clock.
	// +optional
	NotReadySince *metav1.MicroTime `json:"notReadySince,omitempty"`
	// Since when the node has been Ready without a break, by the controller's clock.
	// +optional
	ReadySince *metav1.MicroTime `json:"readySince,omitempty"`
	// What the evidence says of the machine.
	// +optional
	Verdict *Verdict `json:"verdict,omitempty"`
	// Why the case may not go on; absent when it may.
	// +optional
	Hold *Hold `json:"hold,omitempty"`
	// Since when the case has waited for a verdict that lasts, while it is not held.
	// +optional
	WaitingSince *metav1.MicroTime `json:"waitingSince,omitempty"`
	// The unbroken run of Off readings.
	// +optional
	Streak *Streak `json:"streak,omitempty"`
	// How many readings in a row had their credentials refused.
	// +optional
	Refusals int32 `json:"refusals,omitempty"`
	// What was done to the machine's power.
	// +optional
	PowerOff *PowerOff `json:"powerOff,omitempty"`
	// What was done to the node's out-of-service taint.
	// +optional
	Taint *Taint `json:"taint,omitempty"`
	// The newest readings, the one that began the streak among them.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Readings []Reading `json:"readings,omitempty"`
	// What happened, oldest first: the first entry and the newest ones.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	Timeline []TimelineEntry `json:"timeline,omitempty"`
	// Proved: the machine is proved off. Held: the case may not go on. Tainted:
	// the node carries the case's taint. Evacuated: nothing that had to leave is left.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Verdict is a conclusion about a machine.
type Verdict struct {
	// +kubebuilder:validation:Enum=Unverifiable;Running;Rebooting;"Off";Suspended;Misidentified;Contradicted
	Kind string `json:"kind"`
	// Reason in one word; docs/reasons.md explains each.
	// +optional
	Reason string `json:"reason,omitempty"`
	// Reason in a sentence, with the evidence.
	// +optional
	Message string `json:"message,omitempty"`
	// Since when kind and reason have been so.
	// +optional
	Since *metav1.MicroTime `json:"since,omitempty"`
}

// Hold says why a case may not go on.
type Hold struct {
	// Reason in one word; docs/reasons.md explains each.
	Reason string `json:"reason"`
	// +optional
	Message string `json:"message,omitempty"`
	// What a person can do.
	// +optional
	Remedy string `json:"remedy,omitempty"`
	// +optional
	Since *metav1.MicroTime `json:"since,omitempty"`
	// When people were last told.
	// +optional
	AlertedAt *metav1.MicroTime `json:"alertedAt,omitempty"`
}

// Streak is an unbroken run of Off readings of one provider.
type Streak struct {
	Provider string `json:"provider"`
	// +kubebuilder:validation:Minimum=1
	Count int32 `json:"count"`
	// When the first answer was complete.
	First metav1.MicroTime `json:"first"`
	// When the newest answer was asked for.
	Last metav1.MicroTime `json:"last"`
	// When the newest answer was complete.
	LastAnswered metav1.MicroTime `json:"lastAnswered"`
	// The Lease's renewal time when the run began.
	// +optional
	LeaseRenewedAt *metav1.MicroTime `json:"leaseRenewedAt,omitempty"`
	// The machine's last reset time when the run began.
	// +optional
	LastReset *metav1.MicroTime `json:"lastReset,omitempty"`
}

// PowerOff is what was done to the machine's power.
type PowerOff struct {
	Attempts int32 `json:"attempts"`
	// When the newest attempt was decided and stored, before it was sent.
	// +optional
	IntendedAt *metav1.MicroTime `json:"intendedAt,omitempty"`
	// When the newest attempt ended.
	// +optional
	EndedAt *metav1.MicroTime `json:"endedAt,omitempty"`
	// When the first reading after it said Off.
	// +optional
	FirstOffAt *metav1.MicroTime `json:"firstOffAt,omitempty"`
	// Why the newest attempt was not accepted; absent when it was.
	// +optional
	Failure *Failure `json:"failure,omitempty"`
}

// Taint is what was done to the node's out-of-service taint.
type Taint struct {
	// When the first reading of the proof was answered.
	// +optional
	OffSince *metav1.MicroTime `json:"offSince,omitempty"`
	// The machine's last reset time in the proof.
	// +optional
	LastReset *metav1.MicroTime `json:"lastReset,omitempty"`
	// When the taint was decided and stored, before it was set.
	// +optional
	IntendedAt *metav1.MicroTime `json:"intendedAt,omitempty"`
	// When it was first seen on the Node.
	// +optional
	AppliedAt *metav1.MicroTime `json:"appliedAt,omitempty"`
	// When everything that had to leave had left.
	// +optional
	EvacuatedAt *metav1.MicroTime `json:"evacuatedAt,omitempty"`
	// When its removal was decided and stored.
	// +optional
	UntaintIntendedAt *metav1.MicroTime `json:"untaintIntendedAt,omitempty"`
	// When it was first seen to be gone.
	// +optional
	RemovedAt *metav1.MicroTime `json:"removedAt,omitempty"`
}

// Failure is why a provider could not do what it was asked to.
type Failure struct {
	// +kubebuilder:validation:Enum=Unreachable;TimedOut;Untrusted;Unauthorized;Forbidden;Busy;NotFound;Ambiguous;Malformed;WrongMachine;Misconfigured;Failed
	Kind string `json:"kind"`
	// +optional
	Message string `json:"message,omitempty"`
	// How long the provider asked to be left alone.
	// +optional
	RetryAfter *metav1.Duration `json:"retryAfter,omitempty"`
}

// Reading is one observation of the machine by one provider.
type Reading struct {
	Provider string           `json:"provider"`
	Driver   string           `json:"driver,omitempty"`
	Address  string           `json:"address,omitempty"`
	AskedAt  metav1.MicroTime `json:"askedAt"`
	// +optional
	AnsweredAt *metav1.MicroTime `json:"answeredAt,omitempty"`
	// +kubebuilder:validation:Enum=Unknown;"On";"Off";PoweringOn;PoweringOff;Suspended
	Power string `json:"power"`
	// What the machine says of itself.
	// +optional
	UUID string `json:"uuid,omitempty"`
	// +optional
	Serial string `json:"serial,omitempty"`
	// +optional
	InstanceID string `json:"instanceID,omitempty"`
	// How that compares with the Node: Unproved, Proved or Mismatch.
	// +kubebuilder:validation:Enum=Unproved;Proved;Mismatch
	Identity string `json:"identity"`
	// +optional
	IdentityReason string `json:"identityReason,omitempty"`
	// +optional
	LastReset *metav1.MicroTime `json:"lastReset,omitempty"`
	// +optional
	BootProgress string `json:"bootProgress,omitempty"`
	// +optional
	RestorePolicy string `json:"restorePolicy,omitempty"`
	// Which second witness disagrees.
	// +optional
	Conflict string `json:"conflict,omitempty"`
	// +optional
	Failure *Failure `json:"failure,omitempty"`
	// The part of the answer that counted.
	// +optional
	Raw string `json:"raw,omitempty"`
}

// TimelineEntry is one line of what happened.
type TimelineEntry struct {
	At metav1.MicroTime `json:"at"`
	// +kubebuilder:validation:Enum=Info;Warning;Critical
	Severity string `json:"severity"`
	Reason   string `json:"reason"`
	// +optional
	Message string `json:"message,omitempty"`
}
