package mutant_test

import (
	"fmt"

	"github.com/poundlock/poundlock/algo/algotest/mutant"
	"github.com/poundlock/poundlock/algo/ricartagrawala"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
)

// A check returns how it found a fault. Here is an algorithm that is broken by
// hand: it takes every message for a REPLY.
func ExampleModel() {
	broken := ricartagrawala.Algorithm
	broken.MapState = nil // which expects no wrapper
	broken.New = func(id protocol.ID, c protocol.Config) protocol.Process[ricartagrawala.Message] {
		return deaf{ricartagrawala.Algorithm.New(id, c)}
	}
	for _, a := range []protocol.Algorithm[ricartagrawala.Message]{ricartagrawala.Algorithm, broken} {
		fault, err := mutant.Model(a, check.Config{Config: protocol.Config{N: 2}})()
		fmt.Printf("%q %v\n", fault, err)
	}
	// Output:
	// "" <nil>
	// "model by check, 2 steps: panic: ricartagrawala: a REPLY that nobody waits for" <nil>
}

type deaf struct {
	protocol.Process[ricartagrawala.Message]
}

func (d deaf) Step(ev protocol.Event[ricartagrawala.Message], out *protocol.Out[ricartagrawala.Message]) {
	if ev.Kind == protocol.Receive {
		ev.Msg.Kind = ricartagrawala.Reply
	}
	d.Process.Step(ev, out)
}
