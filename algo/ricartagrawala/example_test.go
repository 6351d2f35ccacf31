package ricartagrawala_test

import (
	"fmt"
	"time"

	"github.com/poundlock/poundlock/algo/ricartagrawala"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/sim"
)

// Ten processes that try once a second: 2(n-1) messages and two message delays
// an entry.
func Example() {
	r, err := sim.Run(ricartagrawala.Algorithm, sim.Config{
		Config: protocol.Config{N: 10},
		Delay:  sim.Constant(time.Millisecond),
		Think:  sim.Constant(time.Second),
	})
	fmt.Println(r.MessagesPerEntry, "messages an entry,", r.Waiting.Mean, "ms from try to crit,", err)
	// Output: 18 messages an entry, 2 ms from try to crit, <nil>
}
