package algotest

import (
	"fmt"

	"github.com/poundlock/poundlock/history"
	"github.com/poundlock/poundlock/protocol"
)

// A System is all processes of one system, stepped by hand: for tests that tell
// a story from a paper, in which each message arrives when the story says so.
// What the story or the algorithm gets wrong panics.
type System[M any] struct {
	Procs   []protocol.Process[M] // by id; nil where crashed
	Users   history.Users         // by id
	Sent    int                   // messages so far, also to who has crashed
	Kinds   []int                 // these by kind
	Leaders []protocol.Act        // by id: the last effect Leader; in this life

	alg     protocol.Algorithm[M]
	config  protocol.Config
	members int
	flights map[protocol.Channel][]M
	out     protocol.Out[M]
}

// NewSystem starts the members, and clients with the ids after theirs.
func NewSystem[M any](a protocol.Algorithm[M], c protocol.Config, clients int) *System[M] {
	s := &System[M]{
		Users: make(history.Users, c.N+clients), Kinds: make([]int, len(a.Messages)), Leaders: make([]protocol.Act, c.N),
		alg: a, config: c, members: c.N, flights: map[protocol.Channel][]M{},
	}
	for id := range protocol.ID(c.N + clients) {
		s.Procs = append(s.Procs, a.New(id, c))
	}
	for id := range protocol.ID(c.N + clients) {
		s.Step(id, protocol.Input{Kind: protocol.Start})
	}
	return s
}

// Try makes user id try to enter.
func (s *System[M]) Try(id protocol.ID) { s.Step(id, protocol.Input{Kind: protocol.Try}) }

// Exit makes user id leave.
func (s *System[M]) Exit(id protocol.ID) { s.Step(id, protocol.Input{Kind: protocol.Exit}) }

// InFlight returns the messages on their way from one process to another, in
// the order in which they were sent.
func (s *System[M]) InFlight(from, to protocol.ID) []M {
	return s.flights[protocol.Channel{From: from, To: to}]
}

// Deliver delivers the k-th message on its way from one process to another: 0
// is the one sent first.
func (s *System[M]) Deliver(from, to protocol.ID, k int) {
	m := s.take(from, to, k)
	s.step(to, protocol.Event[M]{Input: protocol.Input{Kind: protocol.Receive, From: from}, Msg: m})
}

// Drop loses the k-th message on its way from one process to another.
func (s *System[M]) Drop(from, to protocol.ID, k int) { s.take(from, to, k) }

func (s *System[M]) take(from, to protocol.ID, k int) M {
	c := protocol.Channel{From: from, To: to}
	flight := s.flights[c]
	if k >= len(flight) {
		panic(fmt.Sprintf("algotest: %d messages are in flight from %d to %d, none is number %d", len(flight), from, to, k))
	}
	m := flight[k]
	s.flights[c] = append(flight[:k:k], flight[k+1:]...)
	return m
}

// Settle delivers messages, channel after channel, until none is in flight.
func (s *System[M]) Settle() {
	for again := true; again; {
		again = false
		for from := range s.Procs {
			for to := range s.Procs {
				for len(s.InFlight(protocol.ID(from), protocol.ID(to))) > 0 {
					s.Deliver(protocol.ID(from), protocol.ID(to), 0)
					again = true
				}
			}
		}
	}
}

// Crash stops a process. What is on its way to it is lost.
func (s *System[M]) Crash(id protocol.ID) {
	s.Procs[id], s.Leaders[id] = nil, protocol.Act{}
	for c := range s.flights {
		if c.To == id {
			delete(s.flights, c)
		}
	}
}

// Recover starts a member that crashed as a new incarnation.
func (s *System[M]) Recover(id protocol.ID, incarnation uint64) {
	s.Procs[id] = s.alg.New(id, s.config)
	s.Step(id, protocol.Input{Kind: protocol.Start, Arg: incarnation})
}

// Inside returns the users in the critical section.
func (s *System[M]) Inside() (ids []protocol.ID) {
	for id, section := range s.Users {
		if section == protocol.InCrit {
			ids = append(ids, protocol.ID(id))
		}
	}
	return ids
}

// Step gives any other event without a message to process id.
func (s *System[M]) Step(id protocol.ID, in protocol.Input) { s.step(id, protocol.Event[M]{Input: in}) }

func (s *System[M]) step(id protocol.ID, ev protocol.Event[M]) {
	if err := s.Users.Input(id, ev.Input); err != nil {
		panic(err)
	}
	s.out.Reset()
	s.Procs[id].Step(ev, &s.out)
	for _, e := range s.out.Effects {
		switch e.Do {
		case protocol.Send:
			s.send(id, e.To, e.Msg)
		case protocol.Broadcast:
			for to := range protocol.ID(s.members) {
				if to != id {
					s.send(id, to, e.Msg)
				}
			}
		case protocol.SetTimer, protocol.StopTimer: // the story fires timers, by Step
		case protocol.Read, protocol.Write, protocol.Await: // the story ends accesses, by Step
		case protocol.Owner:
		case protocol.Leader:
			s.Leaders[id] = e.Act
		default:
			if err := s.Users.Act(id, e.Act); err != nil {
				panic(err)
			}
		}
	}
}

func (s *System[M]) send(from, to protocol.ID, m M) {
	s.Sent++
	s.Kinds[s.alg.KindOf(m)]++
	if c := (protocol.Channel{From: from, To: to}); s.Procs[to] != nil {
		s.flights[c] = append(s.flights[c], m)
	}
}
