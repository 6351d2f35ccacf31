package sim_test

import (
	"testing"
	"time"

	"github.com/poundlock/poundlock/algo/lamport"
	"github.com/poundlock/poundlock/algo/statemachine"
	"github.com/poundlock/poundlock/verify/sim"
)

// What nodes would measure is an option's value, where there is one, it is not given, and it is more than the default of 1 ms.
func TestByNodes(t *testing.T) {
	i := statemachine.Memory.Info
	for _, x := range []struct {
		given, mean, want time.Duration // 0: nothing
	}{{0, 20 * time.Millisecond, 20 * time.Millisecond}, {5, 20 * time.Millisecond, 5}, {0, time.Microsecond, 0}} {
		c := sim.Config{Delay: sim.Constant(x.mean)}
		if x.given > 0 {
			c.Options = map[string]int64{i.Delay: int64(x.given)}
		}
		if n := c.ByNodes(i); n.Options[i.Delay] != int64(x.want) || !n.FIFO || c.Options[i.Delay] != int64(x.given) {
			t.Errorf("%v: %v of %v, FIFO %v", x, n.Options, c.Options, n.FIFO)
		}
	}
	c := sim.Config{Delay: sim.Constant(time.Second)}
	if n := c.ByNodes(lamport.Algorithm.Info); len(n.Options) > 0 {
		t.Errorf("an algorithm without such an option: %v", n.Options)
	}
}
