package hunt

import (
	"reflect"

	"github.com/poundlock/poundlock/verify/sim"
)

// simplify makes a simulation whose violation takes time simpler: it leaves out
// kinds of faults, and then users, entries and clocks, as long as the same property
// falls.
func (h *hunter) simplify(v *Violation, p *plan) error {
	timed, clocks := newSimulators(h.alg), true
	violates := func(c sim.Config) (bool, error) {
		q := *p
		q.config, q.clocks = c, clocks
		r, found, err := timed.simulate(&q)
		good := found != nil && found.Property == v.Property
		if good {
			v.Found, v.Reason = int(r.Events), found.Text
		}
		return good, err
	}
	best := p.config
	good, err := violates(best)
	if !good && err == nil { // clocks that show 0 are for hunts only
		clocks = false
		_, err = violates(best)
	}
	if err != nil {
		return err
	}
	for changed := true; changed && !h.interrupted(); {
		changed = false
		for _, change := range simpler {
			c := best
			change(&c)
			if reflect.DeepEqual(c, best) || c.Clients < 0 || c.Entries[0] < min(1, best.Entries[0]) || p.Clients > 0 && c.Clients < 1 {
				continue
			}
			// An error says that the simplification makes no sense.
			if good, _ := violates(c); good {
				best, changed = c, true
			}
		}
	}
	v.Timed, v.Simulation, v.N, v.Clients = true, best, best.N, best.Clients
	v.Replayed = clocks
	return nil
}

// simpler are the ways to make a simulation simpler.
var simpler = []func(*sim.Config){
	func(c *sim.Config) { c.PartitionEvery = 0 },
	func(c *sim.Config) { c.PauseEvery = 0 },
	func(c *sim.Config) { c.RecoverEvery = 0 },
	func(c *sim.Config) { c.CrashEvery, c.RecoverEvery = 0, 0 },
	func(c *sim.Config) { c.AmnesiaEvery, c.Spaced = 0, 0 },
	func(c *sim.Config) { c.Down = nil },
	func(c *sim.Config) { c.Downgrade = 0 },
	func(c *sim.Config) { c.Loss = 0 },
	func(c *sim.Config) { c.Dup = 0 },
	func(c *sim.Config) { c.ClockOffset = 0 },
	func(c *sim.Config) { c.Lease = sim.DefaultLease },
	func(c *sim.Config) { c.Clients /= 2 },
	func(c *sim.Config) { c.Clients-- },
	func(c *sim.Config) { c.Entries = []int{c.Entries[0] / 2} },
	func(c *sim.Config) { c.Entries = []int{c.Entries[0] - 1} },
	func(c *sim.Config) {
		if len(c.Operations) > 0 {
			c.Operations = []int{max(0, c.Operations[0]-1)}
		}
	},
	func(c *sim.Config) { c.Delay = sim.DefaultDelay },
	func(c *sim.Config) { c.Hold = sim.DefaultHold },
	func(c *sim.Config) { c.Think = sim.Constant(0) },
}
