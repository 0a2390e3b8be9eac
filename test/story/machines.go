package story

import (
	"fmt"
	"time"

	"github.com/nodefence/nodefence/test/lab"
	"github.com/nodefence/nodefence/test/lab/ipmibmc"
	"github.com/nodefence/nodefence/test/lab/redfishbmc"
)

// Kind is a kind of BMC.
type Kind string

// The kinds.
const (
	IPMI    Kind = "ipmi"
	Redfish Kind = "redfish"
)

// BMC is what the stories do with a machine's BMC.
type BMC interface {
	Kind() Kind
	// Address is what the configuration names it by.
	Address() string
	// Unreachable takes it off the network, or brings it back.
	Unreachable(bool)
	// AnswersForAnother makes it answer for another machine, or for its own again.
	AnswersForAnother(bool)
	// PowerCycle is a power cycle as a person or a tool orders it at the BMC.
	PowerCycle(off time.Duration) error
	Close() error
}

// Fallible BMC passwords of the lab, which hold nothing worth stealing.
const (
	userName = "admin"
	password = "adminpass"
)

func (w *World) addNode(name string, kind Kind) (*Node, error) {
	os := &kubelet{cluster: w.Cluster, lease: w.Timing.Lease}
	m := lab.New(lab.Config{Name: name, UUID: lab.NewUUID(), Serial: "LAB-" + name, BootTime: w.Timing.Boot, Restore: lab.AlwaysOff, OS: os, Running: true})
	n := &Node{Name: name, Machine: m, os: os}
	var err error
	switch kind {
	case IPMI:
		var b *ipmibmc.BMC
		if b, err = ipmibmc.Start(m, ipmibmc.Config{CycleOff: w.Timing.CycleOff}); err == nil {
			n.BMC = &ipmiBMC{BMC: b, machine: m}
		}
	case Redfish:
		var b *redfishbmc.BMC
		if b, err = redfishbmc.Start(redfishbmc.Config{Systems: []redfishbmc.System{{Machine: m}}, CycleOff: w.Timing.CycleOff}); err == nil {
			n.BMC = &redfishBMC{BMC: b, machine: m}
		}
	default:
		err = fmt.Errorf("no such kind of BMC: %q", kind)
	}
	if err != nil {
		m.Close()
		return nil, err
	}
	return n, nil
}

type ipmiBMC struct {
	*ipmibmc.BMC
	machine *lab.Machine
}

func (b *ipmiBMC) Kind() Kind      { return IPMI }
func (b *ipmiBMC) Address() string { return b.Addr() }
func (b *ipmiBMC) Unreachable(on bool) {
	b.SetFaults(ipmibmc.Faults{Dead: on})
}
func (b *ipmiBMC) AnswersForAnother(bool) {}
func (b *ipmiBMC) PowerCycle(off time.Duration) error {
	return b.machine.PowerCycle("an operator", off)
}

type redfishBMC struct {
	*redfishbmc.BMC
	machine *lab.Machine
}

func (b *redfishBMC) Kind() Kind      { return Redfish }
func (b *redfishBMC) Address() string { return b.URL() }
func (b *redfishBMC) Unreachable(on bool) {
	if on {
		b.Set(redfishbmc.HangForever)
		return
	}
	b.Clear()
}
func (b *redfishBMC) AnswersForAnother(on bool) {
	if on {
		b.Set(redfishbmc.WrongMachine())
		return
	}
	b.Clear()
}
func (b *redfishBMC) PowerCycle(off time.Duration) error {
	return b.machine.PowerCycle("an operator", off)
}
