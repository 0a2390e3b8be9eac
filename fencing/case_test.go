package fencing_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nodefence/nodefence/fencing"
)

func TestCaseBounds(t *testing.T) {
	p := policy()
	p.Hold = time.Hour // so that the streak goes on and on
	c := feed(p, fencing.Case{}, offReadings(15, 1000)...)
	if len(c.Readings) != fencing.MaxReadings {
		t.Errorf("%d readings", len(c.Readings))
	}
	if !c.Readings[0].AskedAt.Equal(at(15)) || !c.Readings[1].AskedAt.Equal(at(910)) || !c.Readings[19].AskedAt.Equal(at(1000)) {
		t.Errorf("kept are %s, %s … %s", c.Readings[0].AskedAt, c.Readings[1].AskedAt, c.Readings[19].AskedAt)
	}
	if c.Streak.Count != 198 {
		t.Errorf("streak %d", c.Streak.Count)
	}
	// Without a streak the oldest goes first.
	for s := 1005.0; s < 1200; s += 5 {
		c = feed(p, c, reading(s, fencing.On))
	}
	if len(c.Readings) != fencing.MaxReadings || !c.Readings[0].AskedAt.Equal(at(1100)) {
		t.Errorf("%d readings, the first of %s", len(c.Readings), c.Readings[0].AskedAt)
	}
}

func TestTimelineBounds(t *testing.T) {
	p := policy()
	c := fencing.Case{}
	for i := range 300 {
		power := fencing.On
		if i%2 == 0 {
			power = fencing.PoweringOff
		}
		c = feed(p, c, reading(float64(15+5*i), power))
	}
	if len(c.Timeline) != fencing.MaxTimeline {
		t.Errorf("%d entries", len(c.Timeline))
	}
	if c.Timeline[0].Reason != fencing.ReasonOpened {
		t.Errorf("the first entry is %s", c.Timeline[0].Reason)
	}
	for i := 1; i < len(c.Timeline); i++ {
		if c.Timeline[i].At.Before(c.Timeline[i-1].At) {
			t.Errorf("entry %d is older than the one before it", i)
		}
	}
}

func TestCaseName(t *testing.T) {
	node := fencing.NodeFacts{Name: "n1", UID: "u", BootID: "b"}
	lease := fencing.LeaseFacts{RenewedAt: at(0)}
	name := fencing.CaseName(node, lease)
	if !strings.HasPrefix(name, "n1-") || name != fencing.CaseName(node, lease) {
		t.Errorf("name %q", name)
	}
	seen := map[string]string{name: "the first"}
	other := func(what string, n fencing.NodeFacts, l fencing.LeaseFacts) {
		t.Helper()
		got := fencing.CaseName(n, l)
		if was, dup := seen[got]; dup {
			t.Errorf("%s has the name of %s", what, was)
		}
		seen[got] = what
	}
	n2, n3, n4 := node, node, node
	n2.UID, n3.BootID, n4.Name = "u2", "b2", "n2"
	other("another Node", n2, lease)
	other("another boot", n3, lease)
	other("another name", n4, lease)
	other("another renewal", node, fencing.LeaseFacts{RenewedAt: at(0.000001)})

	// What does not tell two incidents apart: who looks, when, and in which zone.
	same := fencing.LeaseFacts{Exists: true, RenewedAt: at(0).In(time.FixedZone("X", 3600)).Add(100), SeenAt: at(99)}
	ready := node
	ready.Ready = fencing.ReadyFalse
	if got := fencing.CaseName(ready, same); got != name {
		t.Errorf("another controller calls it %s", got)
	}
	long := node
	long.Name = strings.Repeat("a", 239) + "." + strings.Repeat("b", 13)
	if got := fencing.CaseName(long, lease); len(got) > 253 || strings.Contains(got, ".-") || strings.Contains(got, "--") {
		t.Errorf("%d characters: %s", len(got), got)
	}
}

func TestInAction(t *testing.T) {
	for s := fencing.NoCase; s <= fencing.Closed; s++ {
		for _, evacuated := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s evacuated %t", s, evacuated), func(t *testing.T) {
				c := fencing.Case{State: s}
				if evacuated {
					c.Taint.EvacuatedAt = at(1)
				}
				want := false
				switch s {
				case fencing.PoweringOffMachine, fencing.Tainting:
					want = true
				case fencing.Tainted, fencing.Recovering, fencing.Untainting:
					want = !evacuated
				}
				if got := c.InAction(); got != want {
					t.Errorf("%t", got)
				}
				if got, want := c.Open(), s != fencing.NoCase && s != fencing.Closed; got != want {
					t.Errorf("open %t", got)
				}
			})
		}
	}
}
