package controller

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	typedcoordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	typedstoragev1 "k8s.io/client-go/kubernetes/typed/storage/v1"

	"github.com/nodefence/nodefence/fencing"
	"github.com/nodefence/nodefence/providers"
)

// Names that nodefence writes on Nodes. They are part of the API: docs and
// admission policies name them.
const (
	// OutOfServiceTaint is Kubernetes' own (KEP-2268).
	OutOfServiceTaint = corev1.TaintNodeOutOfService
	// OutOfServiceValue is the taint's value in the Kubernetes documentation.
	OutOfServiceValue = "nodeshutdown"
	// CaseAnnotation marks the taint as ours: it names the case (S10).
	CaseAnnotation = "nodefence.io/out-of-service-case"
	// BootIDAnnotation keeps the boot ID that the node had when it was tainted,
	// so that a taint whose case was deleted can still be judged.
	BootIDAnnotation = "nodefence.io/out-of-service-boot-id"
	// SinceAnnotation repeats the taint's timeAdded: marks that were left when
	// somebody removed the taint do not make a later one ours.
	SinceAnnotation = "nodefence.io/out-of-service-since"
	// PausedAnnotation on a Node makes nodefence leave it alone; its value says
	// who asked and why.
	PausedAnnotation = "nodefence.io/paused"
	// ControlPlaneLabel marks the nodes that run the control plane.
	ControlPlaneLabel = "node-role.kubernetes.io/control-plane"
)

// API is what the controller asks of the API server: three of its groups. A
// clientset has it, too; but a program that holds one holds the code of all groups.
type API interface {
	CoreV1() typedcorev1.CoreV1Interface
	CoordinationV1() typedcoordinationv1.CoordinationV1Interface
	StorageV1() typedstoragev1.StorageV1Interface
}

// Fleet says how each node is to be handled. It is asked anew at each decision,
// so that a changed configuration is in force at once.
type Fleet interface {
	Assign(node *corev1.Node) Assignment
}

// Assignment is how one node is to be handled.
type Assignment struct {
	// Managed is false for a node that no group selects.
	Managed bool
	// Policy is in force for the node, also when Problem is set.
	Policy fencing.Policy
	// Problem, when not empty, says why the node's machine cannot be asked.
	Problem string
	// Provider is the provider's name in the configuration.
	Provider string
	// Expected is the identity that the machine must have.
	Expected fencing.Expectation
	// Driver asks the machine; nil when Problem is set.
	Driver providers.Driver
	// Machine resolves the address and the credentials, which are read on demand.
	Machine func(context.Context) (providers.Machine, error)
}

// Leadership tells whether this controller is the one that acts (S8).
type Leadership interface {
	// Remaining is how long the leader's lease is certain to last if it is not
	// renewed again; zero or less for one that does not lead.
	Remaining() time.Duration
}
