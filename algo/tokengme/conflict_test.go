package tokengme

import (
	"fmt"
	"testing"
	"time"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/sim"
)

// While a secondary token is held, what is remembered of conflicting requests is what a look
// at all requests says, after every step of every member.
func TestConflicts(t *testing.T) {
	if fault, err := conflictsByRun(); fault != "" || err != nil {
		t.Error(fault, err)
	}
}

func conflictsByRun() (fault string, err error) {
	for _, f := range []form{{}, {several: true}, {bounded: true}, {clients: true}, {clients: true, several: true, bounded: true}} {
		for seed := range uint64(6) {
			a, s := watched(f.algorithm())
			c := sim.Config{
				Config: protocol.Config{N: 6}, Groups: 2 + int(seed%2), Entries: []int{60}, Seed: seed,
				Delay: sim.Exponential(time.Millisecond), Hold: sim.Exponential(4 * time.Millisecond),
				Think: sim.Exponential(time.Duration(seed%3) * 3 * time.Millisecond),
			}
			if f.bounded {
				c.Options = map[string]int64{"smax": 3}
			}
			if f.several {
				c.PerRequest = 2
			}
			if f.clients {
				c.Clients = 15
			}
			r, err := sim.Run(a, c)
			if err != nil || r.ViolationCount > 0 {
				return fmt.Sprint("run by simulation, ", err, r.Violations), nil
			}
			if s.forgot != "" {
				return "conflicts by simulation, " + s.forgot, nil
			}
		}
	}
	return "", nil
}
