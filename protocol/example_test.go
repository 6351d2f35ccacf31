package protocol_test

import (
	"fmt"

	"github.com/poundlock/poundlock/algo/ricartagrawala"
	"github.com/poundlock/poundlock/protocol"
)

// A process is stepped by hand, as each driver does it: one event goes in, effects come out.
func ExampleProcess() {
	a := ricartagrawala.Algorithm
	p := a.New(0, protocol.Config{N: 3})
	var out protocol.Out[ricartagrawala.Message]
	step := func(what string, in protocol.Input, m ricartagrawala.Message) {
		out.Reset()
		p.Step(protocol.Event[ricartagrawala.Message]{Input: in, Msg: m}, &out)
		fmt.Print(what, ":")
		for _, e := range out.Effects {
			switch e.Do {
			case protocol.Broadcast:
				fmt.Print(" to all others ", a.Text(e.Msg))
			case protocol.Send:
				fmt.Printf(" to process %d %s", e.To, a.Text(e.Msg))
			case protocol.Crit:
				fmt.Print(" enters")
			}
		}
		fmt.Println()
	}
	reply := ricartagrawala.Message{Kind: ricartagrawala.Reply}
	step("start", protocol.NewStart(0), ricartagrawala.Message{})
	step("try", protocol.NewTry(""), ricartagrawala.Message{})
	step("reply of process 1", protocol.NewReceive(1), reply)
	step("reply of process 2", protocol.NewReceive(2), reply)
	// Output:
	// start:
	// try: to all others REQUEST(1)
	// reply of process 1:
	// reply of process 2: enters
}
