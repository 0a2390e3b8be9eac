package config

import (
	"github.com/nodefence/nodefence/fencing"
	"github.com/nodefence/nodefence/providers"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// What every configuration file begins with.
const (
	APIVersion = "nodefence.io/v1alpha1"
	Kind       = "Configuration"
)

// Configuration is one configuration file, complete with its defaults. Only
// Parse and Load make one; it never changes afterwards, so it may be shared.
type Configuration struct {
	// APIVersion is always nodefence.io/v1alpha1. Required.
	APIVersion string `json:"apiVersion"`
	// Kind is always Configuration. Required.
	Kind string `json:"kind"`
	// Providers are the ways to machines. Required: at least one.
	Providers []Provider `json:"providers"`
	// Groups say which nodes are looked after, and how. A node that is in no
	// group is left alone; for one that is in two nothing is done, and people are
	// told. Required: at least one.
	Groups []Group `json:"groups"`
	// Budget bounds what happens at once in the whole cluster.
	Budget Budget `json:"budget"`

	digest  string   // of the file and of the files that it names
	caFiles []string // the files that it names
}

// Provider is a driver with its settings.
type Provider struct {
	// Name is how groups refer to it: a DNS label, unique. Required.
	Name string `json:"name"`
	// DriverName says what speaks to the machines: redfish, ipmi or bmc. Required.
	DriverName string `json:"driver"`
	// From says where the user name and the password come from. Required.
	From CredentialSource `json:"credentials"`
	// TLS says how endpoints prove themselves. Default: by the system's roots.
	TLS TLS `json:"tls,omitzero"`
	// Options are the driver's own; its page describes them. Default: none.
	Options Options `json:"options,omitempty"`

	path   string
	driver providers.Driver
}

// CredentialSource is where credentials are read from: exactly one field is set.
// They are read whenever they are needed, so that a rotation needs no restart.
type CredentialSource struct {
	// Secret is a Secret with the keys username and password. Default: none.
	Secret *SecretReference `json:"secret,omitempty"`
	// File is the absolute path of a YAML file with the keys username and
	// password. Default: none.
	File string `json:"file,omitempty"`
	// Directory is the absolute path of a directory with the files username and
	// password, such as a mounted Secret. Default: none.
	Directory string `json:"directory,omitempty"`
}

// SecretReference names a Secret.
type SecretReference struct {
	// Namespace is the Secret's namespace. Required.
	Namespace string `json:"namespace"`
	// Name is the Secret's name. Required.
	Name string `json:"name"`
}

// TLS says how an endpoint proves that it is the right one. At most one field is
// set; without any, the system's roots decide.
type TLS struct {
	// CAFile is the absolute path of a PEM bundle that is used instead of the
	// system's roots. It is read again when it changes. Default: none.
	CAFile string `json:"caFile,omitempty"`
	// Fingerprint pins the SHA-256 of the certificate: 64 hexadecimal digits,
	// colons allowed. Default: none.
	Fingerprint string `json:"fingerprint,omitempty"`
	// InsecureSkipVerify turns verification off: whoever can answer in the
	// endpoint's place gets the password. Default: false.
	InsecureSkipVerify bool `json:"insecureSkipVerify,omitempty"`
}

// Group is a set of nodes that are treated alike.
type Group struct {
	// Name is how cases, logs and metrics refer to the group: a DNS label, unique.
	// Required.
	Name string `json:"name"`
	// Selector says which nodes belong to the group, by their labels; `{}` selects
	// all. Required.
	Selector *metav1.LabelSelector `json:"selector"`
	// ProviderName is the name of the provider that speaks to the machines. Required.
	ProviderName string `json:"provider"`
	// Mode is how far nodefence may go. Observe: decide and report, change
	// nothing. Confirm: taint the Node of a machine that is proved off. Fence: also
	// power the machine off. Default: Confirm.
	Mode fencing.Mode `json:"mode"`
	// Addressing says where the machine of a node is. Required.
	Addressing Addressing `json:"machine"`
	// Proof is what proves a machine off.
	Proof Proof `json:"proof"`
	// Identity is what proves that a machine is the Node's.
	Identity Identity `json:"identity"`
	// Alerts say when people are told.
	Alerts Alerts `json:"alerts"`
	// Survey says how the machines of healthy nodes are watched.
	Survey Survey `json:"survey"`
	// PowerOff says when and how a machine is powered off. Mode Fence only.
	PowerOff PowerOff `json:"powerOff"`
	// Untaint says when the taint goes.
	Untaint Untaint `json:"untaint"`

	path     string
	selector labels.Selector
	address  *addressTemplates
	provider *Provider
	policy   fencing.Policy
}

// Addressing says where the machine of a node is: exactly one of Annotation,
// Template and Nodes is set.
type Addressing struct {
	// Annotation is the key of the Node's annotation that holds the address.
	// Default: none.
	Annotation string `json:"annotation,omitempty"`
	// Template is a Go template that gives the address. It sees Name, Labels,
	// Annotations, ProviderID and SystemUUID of the Node; what the Node lacks is
	// an error. Default: none.
	Template string `json:"template,omitempty"`
	// Nodes are the machines by the Node's name. Default: none.
	Nodes map[string]NodeMachine `json:"nodes,omitempty"`
	// System names the machine behind an endpoint that has several, for nodes
	// whose entry names none: a Go template like Template. Default: the one that
	// has the identity.
	System string `json:"system,omitempty"`
	// AllowedHosts are the only hosts that an address may have: networks
	// (10.0.0.0/24), names, or names below a domain (*.bmc.example.com). A
	// kubelet may write its own Node's labels and annotations; this list keeps it
	// from sending the credentials elsewhere. Default: every host.
	AllowedHosts []string `json:"allowedHosts,omitempty"`
}

// NodeMachine is the machine of one node.
type NodeMachine struct {
	// Address is the endpoint, as the driver's page says. Required.
	Address string `json:"address"`
	// System names the machine behind an endpoint that has several. Default: the
	// group's machine.system.
	System string `json:"system,omitempty"`
	// Fingerprint pins the endpoint's certificate; it comes before the
	// provider's tls. Default: none.
	Fingerprint string `json:"fingerprint,omitempty"`
	// Serial is the serial number that the machine must have. Default: not
	// compared.
	Serial string `json:"serial,omitempty"`
	// UUID is the system UUID that the machine must have, in any byte order.
	// Default: the one in the Node's status.
	UUID string `json:"uuid,omitempty"`
	// InstanceID is the cloud's or hypervisor's identifier that the machine must
	// have. Default: not compared.
	InstanceID string `json:"instanceID,omitempty"`
}

// Proof is what proves a machine off.
type Proof struct {
	// Readings is how many consecutive Off readings prove Off. Default: 3.
	Readings int `json:"readings"`
	// Hold is how long these readings must span: longer than a power cycle reads as
	// Off. Default: 30s.
	Hold metav1.Duration `json:"hold"`
	// HoldAfterPowerOff takes the place of Hold after a power-off of our own.
	// Default: 10s.
	HoldAfterPowerOff metav1.Duration `json:"holdAfterPowerOff"`
	// Freshness is how old the newest Off reading may be when it is used.
	// Default: 10s.
	Freshness metav1.Duration `json:"freshness"`
	// Interval is the time between two readings of one machine. It must be less
	// than freshness, or a proof is stale before it is complete. Default: 5s.
	Interval metav1.Duration `json:"interval"`
	// Timeout is the deadline of one reading. It must not be longer than
	// freshness, or a slow answer never counts. Default: 8s.
	Timeout metav1.Duration `json:"timeout"`
	// SuspectAfter is how long a node's Lease may go without a renewal before
	// its machine is read. Default: 15s.
	SuspectAfter metav1.Duration `json:"suspectAfter"`
}

// Identity is what proves that a machine is the Node's.
type Identity struct {
	// AllowUnproved accepts a machine whose identity cannot be proved. One that
	// mismatches is never accepted. Default: false.
	AllowUnproved bool `json:"allowUnproved"`
}

// Alerts say when people are told.
type Alerts struct {
	// HoldAfter is how long nothing may be possible before the case is held and
	// people are told. Default: 15s.
	HoldAfter metav1.Duration `json:"holdAfter"`
	// Every is how often a held case is announced again. Default: 5m.
	Every metav1.Duration `json:"every"`
}

// Survey says how the machines of healthy nodes are watched, so that one that
// could not be fenced is known before it has to be.
type Survey struct {
	// Every is how often each of them is read; 0s for never. Default: 15m.
	Every metav1.Duration `json:"every"`
}

// PowerOff says when and how a machine is powered off.
type PowerOff struct {
	// After is how long the node must have been not Ready before its machine is
	// powered off: time for a crash dump and for watchdogs. Default: 1m.
	After metav1.Duration `json:"after"`
	// Timeout is the deadline of one command. Default: 15s.
	Timeout metav1.Duration `json:"timeout"`
	// RetryAfter is how long a power-off may take to show before it is tried
	// again. Default: 30s.
	RetryAfter metav1.Duration `json:"retryAfter"`
	// Attempts is how often it is tried before the case is held. Default: 3.
	Attempts int `json:"attempts"`
}

// Untaint says when the taint goes.
type Untaint struct {
	// StableFor is how long the node must have been Ready before the taint goes.
	// It must not be longer than maxWait. Default: 30s.
	StableFor metav1.Duration `json:"stableFor"`
	// MaxWait is how long the taint may stay on a Ready node that something has
	// not left; then it goes with an alert. Default: 5m.
	MaxWait metav1.Duration `json:"maxWait"`
}

// Budget bounds what happens at once in the whole cluster.
type Budget struct {
	// MaxConcurrent is how many cases may be in action at once. Default: 1.
	MaxConcurrent int `json:"maxConcurrent"`
	// MaxUnhealthy is how many nodes may be not Ready before everything is held:
	// a number of nodes or a percentage of all. Default: 40%.
	MaxUnhealthy Amount `json:"maxUnhealthy"`
}
