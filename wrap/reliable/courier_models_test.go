package reliable

import (
	"testing"

	"github.com/poundlock/poundlock/algo/algotest/mutant"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
)

var (
	leased = protocol.Info{
		Users: protocol.Clients, Detector: protocol.LeaseDetector,
		Tolerates: protocol.Crash | protocol.Amnesia,
	}
	pals      = couriers(2, protocol.Info{})
	queues    = couriers(2, protocol.Info{FIFO: true})
	pal       = couriers(1, protocol.Info{})
	tenants   = couriers(2, leased)
	tenant    = couriers(1, leased)
	strangers = couriers(2, protocol.Info{
		Users: protocol.Clients, Detector: protocol.PerfectDetector,
		Tolerates: protocol.Crash | protocol.Amnesia,
	})
)

// channels are the properties of couriers: not exclusion.
var channels = []string{check.Model, check.WellFormed, check.Deadlock}

// A courier finds nothing wrong with the channels behind the wrapper.
func courierModels() []mutant.Check {
	of := func(a protocol.Algorithm[letter], c check.Config) mutant.Check {
		if c.Properties = channels; a.Detector == protocol.PerfectDetector && c.Amnesia > 0 {
			c.Properties = channels[:2] // who hears of no new life asks nobody again
		}
		c.MaxMemory = 64 << 20
		return mutant.Decided(Wrap(a), c)
	}
	// Where nothing is forgotten a wrong frame violates a property, and not the claim that
	// it is stale.
	raw := func(a protocol.Algorithm[letter], c check.Config) mutant.Check {
		w := Wrap(a)
		w.Stale, c.Properties, c.MaxMemory = nil, channels, 64<<20
		return mutant.Decided(w, c)
	}
	faults := func(loss, amnesia, suspect, crash int) check.Config {
		c := servers(1, 1)
		c.Loss, c.Amnesia, c.Suspect, c.Crash = loss, amnesia, suspect, crash
		return c
	}
	return []mutant.Check{
		raw(pals, members(2, 1, 0)),
		raw(tenant, faults(0, 1, 0, 0)),
		of(pals, with(members(2, 1, 0), loss(1))),
		of(queues, with(members(2, 1, 0), loss(1))),
		of(tenants, faults(1, 0, 0, 0)),
		of(tenants, faults(1, 0, 1, 0)),
		of(tenants, faults(1, 1, 0, 0)),
		of(tenants, faults(0, 1, 1, 0)),
		of(tenants, faults(0, 2, 0, 0)),
		of(strangers, faults(1, 1, 0, 0)),
		of(strangers, faults(1, 0, 0, 1)),
		of(queues, with(members(2, 2, 0), loss(2))),
		of(tenant, servers(1, 2)),
		of(pal, members(2, 1)),
	}
}

func TestCouriers(t *testing.T) {
	for i, check := range courierModels() {
		if fault, err := check(); fault != "" || err != nil {
			t.Errorf("model %d: %s %v", i, fault, err)
		}
	}
}
