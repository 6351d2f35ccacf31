package maekawa_test

import (
	"fmt"
	"time"

	"github.com/poundlock/poundlock/algo/maekawa"
	"github.com/poundlock/poundlock/algo/quorum"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/sim"
)

// Seven processes, each with two others in its voting set: 3(K-1) messages an entry. A grid
// takes more of them for the same.
func Example() {
	for _, form := range []quorum.Form{quorum.Plane, quorum.Grid} {
		r, err := sim.Run(maekawa.Algorithm, sim.Config{
			Config: protocol.Config{N: 7, Options: map[string]int64{"sets": int64(form)}},
			Delay:  sim.Constant(time.Millisecond),
			Think:  sim.Constant(time.Second),
		})
		fmt.Printf("%.1f messages an entry, %g ms from try to crit, %v\n", r.MessagesPerEntry, r.Waiting.Mean, err)
	}
	// Output:
	// 6.0 messages an entry, 2 ms from try to crit, <nil>
	// 9.4 messages an entry, 2 ms from try to crit, <nil>
}
