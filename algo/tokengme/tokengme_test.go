package tokengme

import (
	"testing"
	"time"

	"github.com/poundlock/poundlock/algo/algotest"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/sim"
)

// conforms are the options of the suite, with small models.
func conforms(models ...check.Config) algotest.Options {
	return algotest.Options{
		Allocations: 0.2, // a TOKEN is an object, its vectors are cut from blocks
		Exhaustive:  models,
	}
}

func TestConformance(t *testing.T) {
	algotest.Run(t, Algorithm, conforms(model(1, twoGroups, 3), model(2, twoGroups, 2), model(2, readWrite, 2), model(3, twoGroups, 1)))
}

func TestConformanceLiteral(t *testing.T) {
	o := conforms(model(1, twoGroups, 3), model(2, twoGroups, 2), model(2, readWrite, 2), model(3, twoGroups, 1))
	o.Allocations = 1 // it is written to be read
	algotest.Run(t, Literal, o)
}

func TestConformanceSeveral(t *testing.T) {
	algotest.Run(t, Several, conforms(model(2, sets, 2)))
}

func TestConformanceBounded(t *testing.T) {
	o := conforms(model(1, twoGroups, unlimited), model(2, twoGroups, 3))
	o.Options = map[string]int64{"smax": 2}
	o.Skip = map[string]string{"Claims": "they are for a default of 1000, and a reset after every second request costs more"}
	algotest.Run(t, Bounded, o)
}

func TestConformanceClients(t *testing.T) {
	o := conforms(clients(readWrite, readWrite, readWrite))
	// A writer elsewhere gives up while a reader is inside, and another reader waits.
	givesUp := clients(readWrite[1:], readWrite[:1], readWrite[1:])
	givesUp.Cancel = 1
	o.Lacking = []check.Config{givesUp}
	algotest.Run(t, WithClients, o)
}

func FuzzRead(f *testing.F) { algotest.FuzzRead(f, WithClients, conforms(clients(readWrite))) }
func FuzzLoadState(f *testing.F) {
	algotest.FuzzLoadState(f, WithClients, conforms(clients(readWrite)))
}

// A run with contention of each form, event by event.
func TestGolden(t *testing.T) {
	for name, a := range map[string]protocol.Algorithm[Message]{
		"run": Algorithm, "several": Several, "bounded": Bounded, "clients": WithClients,
	} {
		t.Run(name, func(t *testing.T) {
			c := sim.Config{Config: protocol.Config{N: 3}, Entries: []int{2}, Think: sim.Exponential(2 * time.Millisecond)}
			switch name {
			case "several":
				c.Groups, c.PerRequest = 3, 2
			case "bounded":
				c.Options = map[string]int64{"smax": 2}
			case "clients":
				c.N, c.Clients, c.Wants = 2, 3, []protocol.Groups{"r", "r", "!w"}
			}
			algotest.Golden(t, a, name, c)
		})
	}
}
