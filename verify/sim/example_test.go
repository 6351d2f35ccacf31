package sim_test

import (
	"fmt"
	"time"

	"github.com/poundlock/poundlock/algo/ricartagrawala"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/sim"
)

func ExampleRun() {
	r, err := sim.Run(ricartagrawala.Algorithm, sim.Config{
		Config: protocol.Config{N: 10},
		Think:  sim.Constant(time.Second), // nobody competes
		Seed:   1,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%v messages an entry, %v hops to wait, violations %v\n",
		r.MessagesPerEntry, r.Waiting.Mean, r.Violations)
	// Output: 18 messages an entry, 2 hops to wait, violations []
}
