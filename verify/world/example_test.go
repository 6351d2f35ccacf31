package world_test

import (
	"fmt"

	"github.com/poundlock/poundlock/algo/ricartagrawala"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/scenario"
	"github.com/poundlock/poundlock/verify/world"
)

// A system is driven by hand: p1 tries, its request reaches p2, and the reply lets p1 in. Each line says
// whether the step was possible, how many messages are on their way, and whether p1 is inside.
func ExampleState_Do() {
	a := protocol.Erase(ricartagrawala.Algorithm)
	s := world.NewState(a, world.System{Config: protocol.Config{N: 2}})
	for id, step := range []world.Action{
		{Verb: scenario.Try, A: 0},
		{Verb: scenario.Deliver, A: 0, B: 1},
		{Verb: scenario.Deliver, A: 1, B: 0, Kind: 1}, // the reply
	} {
		step.ID = int32(id)
		fmt.Println(step.Verb, s.Do(&step), len(s.Flight), s.Section(0) == protocol.InCrit)
	}
	// Output:
	// try true 1 false
	// deliver true 1 false
	// deliver true 0 true
}
