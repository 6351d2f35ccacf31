package tokengme_test

import (
	"fmt"
	"time"

	"github.com/poundlock/poundlock/algo/tokengme"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/sim"
)

// Twenty processes that each want one of two groups: a new session begins one message delay after
// the one before.
func Example() {
	r, err := sim.Run(tokengme.Algorithm, sim.Config{
		Config: protocol.Config{N: 20}, Entries: []int{50}, Groups: 2,
		Think: sim.Constant(0),
		Delay: sim.Constant(time.Millisecond),
	})
	fmt.Printf("%v ms from session to session, up to %v inside, violations %v, %v\n",
		r.SyncDelay.P50, r.Concurrency.Max, r.Violations, err)
	// Output: 1 ms from session to session, up to 18 inside, violations [], <nil>
}
