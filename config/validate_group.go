package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/nodefence/nodefence/fencing"
	"github.com/nodefence/nodefence/providers"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func validateGroup(c *Configuration, g *Group, p *problems) {
	validateSelector(g, p)
	at := join(g.path, "provider")
	switch g.provider = c.Provider(g.ProviderName); {
	case g.ProviderName == "":
		g.provider = nil
		p.add(at, "is missing")
	case g.provider == nil:
		var names []string
		for i := range c.Providers {
			if c.Providers[i].Name != "" {
				names = append(names, c.Providers[i].Name)
			}
		}
		p.add(at, "is %q, which is no provider of this file%s; they are %s", clip(g.ProviderName), suggest(g.ProviderName, names), quoteAll(names))
	}
	validateAddressing(g, p)
	g.policy = makePolicy(g, c.Budget)
	validatePolicy(g.policy, g.path, p)
}

// validateSelector makes the selector. A group of all nodes must be meant: only
// `selector: {}` says so, not a selector that lost its content.
func validateSelector(g *Group, p *problems) {
	at := join(g.path, "selector")
	s := g.Selector
	switch {
	case s == nil:
		p.add(at, "is missing; `selector: {}` selects all nodes")
		return
	case len(s.MatchLabels) == 0 && len(s.MatchExpressions) == 0 && (s.MatchLabels != nil || s.MatchExpressions != nil):
		p.add(at, "selects all nodes because its parts are empty; if that is meant, write `selector: {}`")
		return
	}
	root := field.NewPath(at)
	before := len(p.found)
	for _, e := range metav1validation.ValidateLabelSelector(s, metav1validation.LabelSelectorValidationOptions{}, root) {
		// The library ends with examples and a regular expression.
		problem, _, _ := strings.Cut(e.ErrorBody(), " (e.g. ")
		p.add(e.Field, "%s", problem)
	}
	if len(p.found) > before {
		return
	}
	var err error
	if g.selector, err = metav1.LabelSelectorAsSelector(s); err != nil {
		p.add(at, "%v", err)
	}
}

// validateAddressing makes the templates of the machine section.
func validateAddressing(g *Group, p *problems) {
	a := &g.Addressing
	path := join(g.path, "machine")
	g.address = &addressTemplates{}
	for i, s := range a.AllowedHosts {
		rule, err := parseHostRule(s)
		if err != nil {
			p.add(index(join(path, "allowedHosts"), i), "%v", err)
		}
		g.address.allowed = append(g.address.allowed, rule)
	}
	n := 0
	for _, set := range []bool{a.Annotation != "", a.Template != "", a.Nodes != nil} {
		if set {
			n++
		}
	}
	if n != 1 {
		p.add(path, "must have exactly one of %s, but has %d", quoteAll([]string{"annotation", "template", "nodes"}), n)
	}
	if a.Annotation != "" {
		if errs := validation.IsQualifiedName(strings.ToLower(a.Annotation)); len(errs) > 0 {
			problem, _, _ := strings.Cut(errs[0], " (e.g. ")
			p.add(join(path, "annotation"), "is %q, which is no annotation's key: %s", clip(a.Annotation), problem)
		}
	}
	validateTemplates(g, path, p)
	if a.Nodes != nil && len(a.Nodes) == 0 {
		p.add(join(path, "nodes"), "is empty")
	}
	for _, name := range slices.Sorted(maps.Keys(a.Nodes)) {
		validateNode(name, a.Nodes[name], g, key(join(path, "nodes"), name), p)
	}
}

func validateTemplates(g *Group, path string, p *problems) {
	a := &g.Addressing
	usesNode := false
	var err error
	if a.System != "" {
		if g.address.system, usesNode, err = parseTemplate(a.System); err != nil {
			p.add(join(path, "system"), "%v", err)
		}
	}
	if a.Template == "" {
		return
	}
	at := join(path, "template")
	var uses bool
	g.address.template, uses, err = parseTemplate(a.Template)
	switch {
	case err != nil:
		p.add(at, "%v", err)
	case !uses && !usesNode:
		p.add(at, "gives every node the same machine: use something of the Node, such as {{ .Name }}")
	}
}

func validateNode(name string, m NodeMachine, g *Group, path string, p *problems) {
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		p.add(path, "is no name of a Node")
	}
	if m.Address == "" {
		p.add(join(path, "address"), "is missing")
	} else if err := checkAddress(m.Address, g.address.allowed); err != nil {
		p.add(join(path, "address"), "%v", err)
	}
	if m.Fingerprint != "" {
		if _, err := providers.ParseFingerprint(m.Fingerprint); err != nil {
			p.add(join(path, "fingerprint"), notFingerprint)
		}
	}
	if m.UUID != "" && !fencing.UsableUUID(m.UUID) {
		p.add(join(path, "uuid"), "is %q, which identifies no machine: it is no UUID, or a vendor's default", clip(m.UUID))
	}
	for field, v := range map[string]string{"serial": m.Serial, "instanceID": m.InstanceID} {
		if v != "" && !fencing.UsableSerial(v) {
			p.add(join(path, field), "is %q, which identifies no machine: it is blank or a vendor's default", clip(v))
		}
	}
}

// validateDistinct finds machines that were given to two nodes. A copied line
// whose address was not changed would have the wrong machine powered off; the
// identity would stop that, but here it is found before anything happens.
func validateDistinct(c *Configuration, p *problems) {
	type owner struct{ what, path string }
	taken := map[string]owner{}
	claim := func(kind, id, path string) {
		if id == "" {
			return
		}
		if other, ok := taken[kind+"\x00"+id]; ok {
			p.add(path, "has the same %s as %s (line %d): two nodes cannot have one machine", kind, other.path, p.at(other.path))
			return
		}
		taken[kind+"\x00"+id] = owner{kind, path}
	}
	for i := range c.Groups {
		g := &c.Groups[i]
		nodes := g.Addressing.Nodes
		for _, name := range slices.Sorted(maps.Keys(nodes)) {
			m, path := nodes[name], key(g.path+".machine.nodes", name)
			if m.Address != "" && (m.System != "" || g.Addressing.System == "") {
				claim("address and system", fmt.Sprintf("%s %q", strings.ToLower(m.Address), m.System), path)
			}
			claim("uuid", fencing.UUIDKey(m.UUID), path)
			claim("serial", strings.ToLower(strings.TrimSpace(m.Serial)), path)
			claim("instanceID", m.InstanceID, path)
		}
	}
}
