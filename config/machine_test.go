package config

import (
	"slices"
	"strings"
	"testing"

	"github.com/nodefence/nodefence/fencing"
)

// twoGroups overlap in nodes that have both labels.
const twoGroups = good + `
- name: databases
  selector: {matchLabels: {pool: db}}
  provider: bmcs
  machine: {template: "{{ .Name }}.example.com"}
`

func labelled(name string, pairs ...string) NodeView {
	n := NodeView{Name: name, Labels: map[string]string{}}
	for i := 0; i < len(pairs); i += 2 {
		n.Labels[pairs[i]] = pairs[i+1]
	}
	return n
}

func TestGroupOfANode(t *testing.T) {
	c := mustParse(t, twoGroups)
	for _, x := range []struct {
		node  NodeView
		group string
		err   string
	}{
		{labelled("n1", "role", "worker"), "workers", ""},
		{labelled("n2", "pool", "db", "other", "x"), "databases", ""},
		{labelled("n3", "role", "controller"), "", ""},
		{labelled("n4"), "", ""},
		{labelled("n5", "role", "worker", "pool", "db"), "", "node n5: the groups workers (groups[0].selector) and databases (groups[1].selector) both select it; nothing is done for it until only one does"},
	} {
		g, err := c.Group(x.node)
		name, message := "", ""
		if g != nil {
			name = g.Name
		}
		if err != nil {
			message = err.Error()
		}
		if name != x.group || message != x.err {
			t.Errorf("node %s: group %q, error %q; want %q, %q", x.node.Name, name, message, x.group, x.err)
		}
	}
}

func TestGroupsThatSelectNothing(t *testing.T) {
	c := mustParse(t, twoGroups)
	worker, database, both := labelled("n1", "role", "worker"), labelled("n2", "pool", "db"), labelled("n3", "role", "worker", "pool", "db")
	for _, x := range []struct {
		nodes []NodeView
		want  []string
	}{
		{nil, []string{"workers", "databases"}},
		{[]NodeView{labelled("n0")}, []string{"workers", "databases"}},
		{[]NodeView{worker}, []string{"databases"}},
		{[]NodeView{labelled("n0"), database}, []string{"workers"}},
		{[]NodeView{worker, database}, nil},
		{[]NodeView{both}, nil},
	} {
		if got := c.SelectsNothing(x.nodes); !slices.Equal(got, x.want) {
			t.Errorf("%v: %q, want %q", x.nodes, got, x.want)
		}
	}
	if got := mustParse(t, with(t, "{matchLabels: {role: worker}}", "{}")).SelectsNothing([]NodeView{labelled("n0")}); got != nil {
		t.Errorf("a selector of everything selects nothing: %q", got)
	}
}

func TestMachineOfANode(t *testing.T) {
	const own, otherOrder, other = "4c4c4544-0039-5910-804a-b9c04f4c3632", "44454C4C-3900-1059-804A-B9C04F4C3632", "4c4c4544-0039-5910-804a-b9c04f4c3699"
	const filler = "03000200-0400-0500-0006-000700080009"
	byHand := func(entry string) string {
		return with(t, "{annotation: nodefence.io/bmc-address}", "{system: 'Systems/{{ .Name }}', nodes: {n1: {address: 10.0.0.1"+entry+"}}}")
	}
	for name, x := range map[string]struct {
		file string
		node NodeView
		want string // address, system and identity, or the error
	}{
		"annotation":         {good, NodeView{Name: "n1", Annotations: map[string]string{"nodefence.io/bmc-address": "10.0.0.9"}, SystemUUID: own}, "10.0.0.9  " + own},
		"no annotation":      {good, NodeView{Name: "n1"}, "node n1: groups[0].machine.annotation: the Node has no annotation nodefence.io/bmc-address"},
		"empty annotation":   {good, NodeView{Name: "n1", Annotations: map[string]string{"nodefence.io/bmc-address": " "}}, "node n1: groups[0].machine.annotation: the address is empty"},
		"password in it":     {good, NodeView{Name: "n1", Annotations: map[string]string{"nodefence.io/bmc-address": "https://root:" + canary + "@10.0.0.9"}}, "node n1: groups[0].machine.annotation: the address must not hold a user name or a password"},
		"by hand":            {byHand(""), NodeView{Name: "n1", SystemUUID: own}, "10.0.0.1 Systems/n1 " + own},
		"own system":         {byHand(`, system: "7"`), NodeView{Name: "n1"}, "10.0.0.1 7 "},
		"serial":             {byHand(", serial: ABC"), NodeView{Name: "n1", SystemUUID: own}, "10.0.0.1 Systems/n1 " + own + "ABC"},
		"same UUID":          {byHand(", uuid: " + otherOrder), NodeView{Name: "n1", SystemUUID: own}, "10.0.0.1 Systems/n1 " + otherOrder},
		"UUID for a filler":  {byHand(", uuid: " + own), NodeView{Name: "n1", SystemUUID: filler}, "10.0.0.1 Systems/n1 " + own},
		"UUID of another":    {byHand(", uuid: " + other), NodeView{Name: "n1", SystemUUID: own}, `node n1: groups[0].machine.nodes["n1"].uuid: is ` + other + ", but the Node's system UUID is " + own + ": one of them belongs to another machine"},
		"no entry":           {byHand(""), NodeView{Name: "n2"}, "node n2: groups[0].machine.nodes: has no entry for this node, though group workers selects it"},
		"host not allowed":   {with(t, "bmc-address}", "bmc-address, allowedHosts: [10.0.0.0/24]}"), NodeView{Name: "n1", Annotations: map[string]string{"nodefence.io/bmc-address": "10.0.1.9"}}, "node n1: groups[0].machine.annotation: the host 10.0.1.9 is not in machine.allowedHosts"},
		"missing label":      {with(t, "{annotation: nodefence.io/bmc-address}", `{template: 'bmc-{{ index .Labels "rack" }}'}`), NodeView{Name: "n1"}, `the Node has no "rack" there`},
		"template of labels": {with(t, "{annotation: nodefence.io/bmc-address}", `{template: '{{ .Name | trimPrefix "node-" }}.{{ index .Labels "rack" | lower }}.example.com'}`), labelled("node-7", "rack", "R2"), "7.r2.example.com  "},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := mustParse(t, x.file).Groups[0].Machine(x.node)
			got := m.Address + " " + m.System + " " + m.Expected.UUID + m.Expected.Serial
			if err != nil {
				got = err.Error()
			}
			if got != x.want && (err == nil || !strings.HasSuffix(got, x.want)) {
				t.Errorf("got  %s\nwant %s", got, x.want)
			}
			if strings.Contains(got, canary) {
				t.Error("a password shows")
			}
		})
	}
	if fencing.UsableUUID(filler) {
		t.Error("the vendor's filler is taken for an identity")
	}
}
