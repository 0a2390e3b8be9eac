package controller_test

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/nodefence/nodefence/config/v1alpha1"
)

var (
	oneSeed = flag.Int("seed", -1, "play only this seed of TestSeeds, and tell its story")
	seeds   = flag.Int("seeds", 0, "how many seeds TestSeeds plays; 0 for its own choice")
)

// TestSeeds plays lives of a cluster in which everything goes wrong, each drawn
// from a seed, and holds them against the rules of safety and the truth about the
// machines. A failing life is played again by -seed.
func TestSeeds(t *testing.T) {
	from, to := 0, 300
	switch {
	case *oneSeed >= 0:
		from, to = *oneSeed, *oneSeed+1
	case *seeds > 0:
		to = *seeds
	case testing.Short():
		to = 30
	}
	for seed := from; seed < to; seed++ {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(w *world) { playSeed(w, uint64(seed)) })
		})
	}
}

// playSeed is ten minutes of chaos, then peace, in which all must come to rest,
// and then one plain power loss, to see that nodefence still does its work.
func playSeed(w *world, seed uint64) {
	c := newChaos(w, seed)
	budget := 1 + c.random.IntN(3)
	w.config = baseConfig
	if c.chance(70) {
		w.config = fenceConfig
	}
	w.config = strings.Replace(w.config, "every: 0s", "every: 2m", 1)
	w.config += fmt.Sprintf("budget: {maxConcurrent: %d, maxUnhealthy: 60%%}\n", budget)
	for n := 4; n <= 4+c.random.IntN(6); n++ {
		w.addNode(fmt.Sprintf("node-%d", n))
	}
	w.start()
	w.start()
	defer func() {
		if w.t.Failed() || len(w.violations) > 0 || *oneSeed >= 0 {
			w.t.Logf("the story of -seed %d:\n%s", seed, strings.Join(c.story, "\n"))
		}
	}()
	for end := time.Now().Add(10 * time.Minute); time.Now().Before(end); {
		if c.chance(12) {
			c.wreak()
		}
		w.run(time.Second)
		c.keepTwo()
		c.checkBudget(budget)
	}
	c.heal()
	w.run(13 * time.Minute)
	c.checkRest()
	c.checkService()
}

// keepTwo starts controllers anew, as a Deployment of two does.
func (c *chaos) keepTwo() {
	alive := 0
	for _, p := range c.processes {
		if !p.ended() && !p.isDead() {
			alive++
		}
	}
	for ; alive < 2; alive++ {
		c.tell("a controller starts")
		c.start()
	}
}

// checkBudget: never more cases in action than the budget allows (S6), and none is
// held of which nobody was told (S14). It is asked each second: nothing is decoded.
func (c *chaos) checkBudget(budget int) {
	newest := c.api.cases.newest(v1alpha1.FencingCases)
	if newest == c.looked {
		return
	}
	c.looked = newest
	inAction := 0
	for _, u := range c.rawCases() {
		has := func(path ...string) bool {
			_, found, err := unstructured.NestedFieldNoCopy(u.Object, append([]string{"status"}, path...)...)
			return found && err == nil
		}
		state, _, _ := unstructured.NestedString(u.Object, "status", "state")
		switch state {
		case "PoweringOff", "Tainting":
			inAction++
		case "Tainted", "Recovering", "Untainting":
			if !has("taint", "evacuatedAt") {
				inAction++
			}
		}
		if has("hold") && !has("hold", "alertedAt") {
			c.violate("S14: case %s is held, and nobody was told", u.GetName())
		}
	}
	if inAction > budget {
		c.violate("S6: %d cases are in action, the budget is %d\n%s", inAction, budget, c.describe())
	}
}

// checkRest: in peace no taint of ours stays, nobody else's was touched, and each
// case comes to its end, unless a BMC's lie was found out (S10, S11).
func (c *chaos) checkRest() {
	for _, n := range c.nodes {
		if err := c.clean(n); err != nil {
			c.violate("S10: %v\n%s", err, c.describeNode(n))
		}
	}
	for _, fc := range c.cases() {
		if s := fc.Status.State; s != "Closed" && s != "Distrusted" {
			c.violate("S9: case %s is %s still\n%s", fc.Name, s, describe(fc))
		}
	}
}

// checkService: a plain power loss is proved, and its node tainted in time; and
// the taint goes when the machine is back.
func (c *chaos) checkService() {
	node := c.nodes[c.random.IntN(len(c.nodes))]
	for _, fc := range c.cases() {
		if fc.Status.State == "Distrusted" {
			c.remove(v1alpha1.FencingCases, "", fc.Name) // a person has looked
		}
	}
	c.run(time.Minute)
	c.peace = false
	c.tell("%s loses its power, and all else is well", node)
	c.powerOff(node)
	c.await(65*time.Second, node+" tainted", func() bool { return c.tainted(node) })
	c.powerOn(node)
	c.await(4*time.Minute, node+" closed", func() bool { return c.state(node) == "Closed" })
	if err := c.clean(node); err != nil {
		c.violate("S10: %v", err)
	}
}

func (c *chaos) describeNode(node string) string {
	var b strings.Builder
	for _, fc := range c.cases() {
		if fc.Spec.NodeName == node {
			b.WriteString(describe(fc))
		}
	}
	return b.String()
}

func describe(fc *v1alpha1.FencingCase) string {
	var b strings.Builder
	fmt.Fprintf(&b, "case %s is %s\n", fc.Name, fc.Status.State)
	for _, e := range fc.Status.Timeline {
		fmt.Fprintf(&b, "\t%s %s %s\n", e.At.Format("15:04:05"), e.Reason, e.Message)
	}
	return b.String()
}
