package consensustest

import (
	"github.com/poundlock/poundlock/algo/algotest"
	"github.com/poundlock/poundlock/protocol"
)

// A Cost is what one decision takes, where each message takes one step.
type Cost struct {
	Messages int
	First    int // steps until some process hears of it
	All      int // steps until all do
}

// Measure lets a process of n propose, where all but process 0 itself suspect some of the first
// ones.
func Measure[F any](with func(protocol.Algorithm[uint64]) protocol.Algorithm[F], n int, who protocol.ID, suspected int) (c Cost) {
	decided := 0
	s := algotest.NewSystem(with(askers(&decided)), protocol.Config{N: n}, 0)
	for a := range protocol.ID(n) {
		for b := range protocol.ID(suspected) {
			if a >= protocol.ID(suspected) {
				s.Step(a, protocol.NewSuspect(b))
			}
		}
	}
	s.Settle()
	s.Sent = 0 // that was the price of suspicions
	s.Try(who)
	for step := 0; ; step++ {
		if c.First == 0 && decided > 0 {
			c.First = step
		}
		if decided == n {
			c.All = step
			s.Settle()
			c.Messages = s.Sent
			return c
		}
		var due []protocol.Channel
		for a := range protocol.ID(n) {
			for b := range protocol.ID(n) {
				for range s.InFlight(a, b) {
					due = append(due, protocol.Channel{From: a, To: b})
				}
			}
		}
		for _, ch := range due {
			s.Deliver(ch.From, ch.To, 0)
		}
	}
}

// An asker proposes when its user tries.
type asker struct {
	id      protocol.ID
	decided *int
}

func askers(decided *int) protocol.Algorithm[uint64] {
	a := tellers(nil)
	a.New = func(id protocol.ID, _ protocol.Config) protocol.Process[uint64] { return &asker{id, decided} }
	return a
}

// Step implements protocol.Process.
func (p *asker) Step(ev protocol.Event[uint64], out *protocol.Out[uint64]) {
	switch ev.Kind {
	case protocol.Try:
		out.Propose(0, uint64(p.id))
	case protocol.Decide:
		*p.decided++
	}
}

// State implements protocol.Process.
func (p *asker) State(c *protocol.Codec) {}
