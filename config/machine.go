package config

import (
	"fmt"

	"github.com/nodefence/nodefence/fencing"
	"github.com/nodefence/nodefence/providers"
	"k8s.io/apimachinery/pkg/labels"
)

// NodeView is what the configuration sees of a Node. Templates use its fields.
type NodeView struct {
	Name        string
	Labels      map[string]string
	Annotations map[string]string
	// ProviderID is spec.providerID.
	ProviderID string
	// SystemUUID is status.nodeInfo.systemUUID.
	SystemUUID string
}

// Group gives the group that a node belongs to, or nil when it belongs to none.
// A node that two groups claim belongs to none of them either: whose policy holds
// would be a guess, so it is an error that names both.
func (c *Configuration) Group(node NodeView) (*Group, error) {
	var found *Group
	for i := range c.Groups {
		g := &c.Groups[i]
		switch {
		case !g.selector.Matches(labels.Set(node.Labels)):
		case found != nil:
			return nil, fmt.Errorf("node %s: the groups %s (%s.selector) and %s (%s.selector) both select it; nothing is done for it until only one does",
				node.Name, found.Name, found.path, g.Name, g.path)
		default:
			found = g
		}
	}
	return found, nil
}

// SelectsNothing names the groups that select none of the nodes: probably a
// mistake, and certainly no protection.
func (c *Configuration) SelectsNothing(nodes []NodeView) []string {
	var names []string
	for i := range c.Groups {
		g, matches := &c.Groups[i], false
		for _, n := range nodes {
			matches = matches || g.selector.Matches(labels.Set(n.Labels))
		}
		if !matches {
			names = append(names, g.Name)
		}
	}
	return names
}

// Provider gives the provider of a name, or nil.
func (c *Configuration) Provider(name string) *Provider {
	for i := range c.Providers {
		if c.Providers[i].Name == name {
			return &c.Providers[i]
		}
	}
	return nil
}

// Driver gives the driver that Parse made for this provider.
func (p *Provider) Driver() providers.Driver { return p.driver }

// Provider gives the provider that speaks to the group's machines.
func (g *Group) Provider() *Provider { return g.provider }

// Policy gives what may be done for the group's nodes.
func (g *Group) Policy() fencing.Policy { return g.policy }

// Machine gives the machine of a node of this group: all of providers.Machine
// but the credentials, which Provider().Credentials gives, and
// Expected.SharedUUID, which only who sees all Nodes can know.
func (g *Group) Machine(node NodeView) (providers.Machine, error) {
	m := providers.Machine{Node: node.Name, AllowUnproved: g.Identity.AllowUnproved}
	entry, path, err := g.locate(node)
	if err != nil {
		return providers.Machine{}, fmt.Errorf("node %s: %s: %w", node.Name, path, err)
	}
	m.Address, m.System, m.Fingerprint = entry.Address, entry.System, entry.Fingerprint
	if err := checkAddress(m.Address, g.address.allowed); err != nil {
		return providers.Machine{}, fmt.Errorf("node %s: %s: %w", node.Name, path, err)
	}
	if m.System == "" && g.address.system != nil {
		if m.System, err = execute(g.address.system, node); err != nil {
			return providers.Machine{}, fmt.Errorf("node %s: %s.machine.system: %w", node.Name, g.path, err)
		}
	}
	m.Expected.Identity = fencing.Identity{UUID: node.SystemUUID, Serial: entry.Serial, InstanceID: entry.InstanceID}
	if entry.UUID != "" {
		// The configured UUID wins over one that the Node lacks or that is a
		// vendor's filler. Over a real one it must not: then one of the two is
		// about another machine.
		if fencing.UsableUUID(node.SystemUUID) && !fencing.SameUUID(entry.UUID, node.SystemUUID) {
			return providers.Machine{}, fmt.Errorf("node %s: %s.uuid: is %s, but the Node's system UUID is %s: one of them belongs to another machine",
				node.Name, path, entry.UUID, node.SystemUUID)
		}
		m.Expected.UUID = entry.UUID
	}
	return m, nil
}

// locate finds what the group says of a node's machine, and where it says so.
func (g *Group) locate(node NodeView) (NodeMachine, string, error) {
	a := &g.Addressing
	path := g.path + ".machine"
	switch {
	case a.Annotation != "":
		path += ".annotation"
		address, ok := node.Annotations[a.Annotation]
		if !ok {
			return NodeMachine{}, path, fmt.Errorf("the Node has no annotation %s", a.Annotation)
		}
		return NodeMachine{Address: address}, path, nil
	case g.address.template != nil:
		address, err := execute(g.address.template, node)
		return NodeMachine{Address: address}, path + ".template", err
	}
	path += ".nodes"
	entry, ok := a.Nodes[node.Name]
	if !ok {
		return NodeMachine{}, path, fmt.Errorf("has no entry for this node, though group %s selects it", g.Name)
	}
	return entry, key(path, node.Name), nil
}
