package story

import (
	"context"
	"fmt"
	"time"

	"github.com/nodefence/nodefence/test/lab"
	"github.com/nodefence/nodefence/test/lab/ipmibmc"
	"github.com/nodefence/nodefence/test/lab/ipmisim"
	"github.com/nodefence/nodefence/test/lab/redfishbmc"
)

// Kind is a kind of BMC.
type Kind string

// The kinds.
const (
	IPMI    Kind = "ipmi"
	Redfish Kind = "redfish"
	// OpenIPMI is an IPMI BMC that neither nodefence nor its library's author
	// wrote: OpenIPMI's ipmi_sim, which has to be installed.
	OpenIPMI Kind = "openipmi"
)

// BMC is what the stories do with a machine's BMC.
type BMC interface {
	Kind() Kind
	// Address is what the configuration names it by.
	Address() string
	// Unreachable takes it off the network, or brings it back.
	Unreachable(bool)
	// Driver is the provider that speaks to it.
	Driver() string
	// AnswersForAnother makes it answer for another machine, or for its own again.
	AnswersForAnother(bool) error
	// PowerCycle is a power cycle as a person or a tool orders it at the BMC.
	PowerCycle(off time.Duration) error
	Close() error
}

// The account of the lab's BMCs, which hold nothing worth stealing.
const (
	userName = "admin"
	password = "adminpass"
)

func (w *World) addNode(ctx context.Context, name string, kind Kind) (*Node, error) {
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
	case OpenIPMI:
		var b *ipmisim.Sim
		if b, err = ipmisim.Start(ctx, m, ipmisim.Config{CycleOff: w.Timing.CycleOff}); err == nil {
			n.BMC = &openIPMI{Sim: b, machine: m}
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
func (b *ipmiBMC) AnswersForAnother(on bool) error {
	b.SetFaults(ipmibmc.Faults{OtherMachine: on})
	return nil
}
func (b *ipmiBMC) Driver() string { return "ipmi" }
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
func (b *redfishBMC) AnswersForAnother(on bool) error {
	b.Clear()
	if on {
		b.Set(redfishbmc.WrongMachine())
	}
	return nil
}
func (b *redfishBMC) Driver() string { return "redfish" }
func (b *redfishBMC) PowerCycle(off time.Duration) error {
	return b.machine.PowerCycle("an operator", off)
}

type openIPMI struct {
	*ipmisim.Sim
	machine *lab.Machine
}

func (b *openIPMI) Kind() Kind      { return OpenIPMI }
func (b *openIPMI) Driver() string  { return "ipmi" }
func (b *openIPMI) Address() string { return b.Addr() }
func (b *openIPMI) Unreachable(on bool) {
	signal := b.Continue
	if on {
		signal = b.Stop
	}
	_ = signal() // it fails when the simulator has ended, which is unreachable, too
}
func (b *openIPMI) AnswersForAnother(bool) error {
	return wrong("ipmi_sim takes its GUID at its start and cannot answer for another machine")
}
func (b *openIPMI) PowerCycle(off time.Duration) error {
	return b.machine.PowerCycle("an operator", off)
}
func (b *openIPMI) Close() error { b.Sim.Close(); return nil }
