package bakery

import (
	"fmt"

	"github.com/poundlock/poundlock/protocol"
)

// FirstCome is Algorithm with a history, for the checker: nobody enters before a process
// that had left its doorway when the doorway of the one that enters began.
//
// That is a property of runs, and the checker judges states. So each process says in a
// register of its own, once for each try, that it has left its doorway, and reads these
// registers of all others before it begins with a doorway. What it finds there did happen
// before; and what happened before it can find, since in some run nothing else happens
// between. A register is written once, so that a safe one tells no lies either: a read that
// overlaps the write may find that the doorway is left, and then it is.
var FirstCome = protocol.Silent(protocol.Algorithm[struct{}]{
	Info: protocol.Info{
		Name:    "bakery",
		Variant: "first-come",
		Title:   "the same, and who left the doorway first",
		Source:  source,
		Family:  protocol.SharedMemory,
		Users:   protocol.Members,
		Options: tries,
		Registers: func(c protocol.Config) []protocol.Register {
			list := registers(c)
			for i := range c.N {
				for k := range recorded(c) {
					list = append(list, protocol.Register{Name: fmt.Sprintf("left[%d,%d]", i+1, k+1), Owner: protocol.ID(i), Most: 1})
				}
			}
			return list
		},
	},
	New: func(id protocol.ID, c protocol.Config) protocol.Process[struct{}] {
		return &historian{Process: Process{id: int(id), n: c.N}, tries: recorded(c), known: make([]uint64, c.N)}
	},
	Model: protocol.Model[struct{}]{
		Bounds:     []protocol.Bound{protocol.NewBound("num", maxTicket, func(h *historian) uint64 { return h.num })},
		Invariants: []protocol.Invariant{{Name: "first-come", Err: firstCome}},
	},
})

var tries = []protocol.Option{{
	Name:    "tries",
	Default: func(protocol.Config) int64 { return 2 },
	Range:   func(protocol.Config) (least, most int64) { return 1, 8 },
	Doc:     "of each process that are recorded (default 2)",
}}

func recorded(c protocol.Config) int { return int(protocol.Info{Options: tries}.Option(c, "tries")) }

// historian is a process with its history.
type historian struct {
	Process
	tries int

	asks   int      // 1 + whose doorways it reads of before its own; 0: of nobody's
	writes bool     // that it has left its doorway
	said   bool     // that it has, in this try
	known  []uint64 // by process: how many of its doorways were left before the own one; the own ones
}

// left is the register that says that j has left its doorway for the k-th time, from 0.
func (h *historian) left(j int, k uint64) int { return 2*h.n + j*h.tries + int(k) }

// Step implements protocol.Process.
func (h *historian) Step(ev protocol.Event[struct{}], out *protocol.Out[struct{}]) {
	switch {
	case ev.Kind == protocol.Try:
		h.ask(0, out)
	case ev.Kind == protocol.Exit:
		h.said = false
		h.Process.Step(ev, out)
	case h.asks != 0:
		j := h.asks - 1
		if ev.Arg == 0 {
			j++
		} else {
			h.known[j]++
		}
		h.ask(j, out)
	case h.writes:
		h.writes = false
		h.forAll(waits, out)
	case h.at == chosen && !h.said && h.known[h.id] < uint64(h.tries):
		out.Write(h.left(h.id, h.known[h.id]), 1)
		h.said, h.writes = true, true
		h.known[h.id]++
	default:
		h.Process.Step(ev, out)
	}
}

// ask reads the first register of j, or of those after it, that is not known to be
// written. When there is none the doorway begins.
func (h *historian) ask(j int, out *protocol.Out[struct{}]) {
	for ; j < h.n; j++ {
		if j != h.id && h.known[j] < uint64(h.tries) {
			h.asks = 1 + j
			out.Read(h.left(j, h.known[j]))
			return
		}
	}
	h.asks = 0
	h.Process.Step(protocol.Event[struct{}]{Input: protocol.Input{Kind: protocol.Try}}, out)
}

// firstCome looks for a process that is inside while one waits that came before it.
func firstCome(v *protocol.View) error {
	for i, in := range protocol.Procs[*historian](v) {
		for j, o := range protocol.Procs[*historian](v) {
			if i != j && in.at == inside && o.said && o.at == waits && in.known[j] >= o.known[j] {
				return fmt.Errorf("#%d is inside, and #%d waits, who had left its doorway before #%d began", i, j, i)
			}
		}
	}
	return nil
}
