// Command algorithm is a whole algorithm of one register, and a run of the model checker that finds two
// processes inside. An algorithm needs no place in the catalog to be checked: copy this one.
package main

import (
	"fmt"
	"log"
	"strings"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
)

// door is one register that all processes read and write: 1 while somebody is inside.
const door = 0

// A guest is a process. All its state is which access it has open.
type guest byte

const (
	away guest = iota
	looks
	shuts
	opens
)

func (at *guest) Step(ev protocol.Event[struct{}], out *protocol.Out[struct{}]) {
	switch {
	case ev.Kind == protocol.Start:
	case ev.Kind == protocol.Try, *at == looks && ev.Arg == 1:
		*at = looks
		out.Read(door)
	case *at == looks:
		*at = shuts
		out.Write(door, 1)
	case *at == shuts:
		*at = away
		out.Crit(0)
	case ev.Kind == protocol.Exit:
		*at = opens
		out.Write(door, 0)
	case *at == opens:
		*at = away
		out.Rem()
	}
}

// State implements protocol.Process.
func (at *guest) State(c *protocol.Codec) { protocol.Upto(c, at, opens) }

// The algorithm waits until a door is open, and shuts it behind itself: two processes can find it open.
func main() {
	algorithm := protocol.Silent(protocol.Algorithm[struct{}]{
		Info: protocol.Info{
			Name: "door",
			Registers: func(protocol.Config) []protocol.Register {
				return []protocol.Register{{Name: "door", Owner: protocol.Shared, Most: 1}}
			},
		},
		New: func(protocol.ID, protocol.Config) protocol.Process[struct{}] { return new(guest) },
	})
	v, err := check.Run(algorithm, check.Config{Config: protocol.Config{N: 2}, Entries: []int{1}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(v.Verdict, v.Reason)
	fmt.Println(strings.Join(v.Trace, "\n"))
}
