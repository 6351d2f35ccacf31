package suzukikasami_test

import (
	"fmt"
	"time"

	"github.com/poundlock/poundlock/algo/suzukikasami"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/sim"
)

// Ten processes that try again at once: n messages an entry, but for the first
// one, and one message delay from one holder to the next.
func Example() {
	r, err := sim.Run(suzukikasami.Algorithm, sim.Config{
		Config: protocol.Config{N: 10},
		Delay:  sim.Constant(time.Millisecond),
		Think:  sim.Constant(0),
	})
	fmt.Println(r.MessagesPerEntry, "messages an entry,", r.SyncDelay.Mean, "ms from exit to crit,", err)
	// Output: 9.99 messages an entry, 1 ms from exit to crit, <nil>
}
