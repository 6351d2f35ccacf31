package wme

import (
	"fmt"
	"slices"
	"testing"

	"github.com/poundlock/poundlock/algo/algotest"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/history"
)

// Each story tells what becomes of messages that were lost, or come where they are of no use any more.
var healings = []func(protocol.Algorithm[Message]) string{
	abstains, oldAnswer, staleAhead, asksAnother, returnCosts, comesLate, nothingLost, behindEpoch, repeated, lostAck,
	behindMany, lastGoesAlong, otherEpoch, votedAlready, loggedTwice, lateState, inOrder,
}

func TestHealing(t *testing.T) {
	for _, story := range healings {
		tell(t, story)
	}
}

func under(s *algotest.System[Message], from, to protocol.ID, kind uint8) bool {
	return slices.ContainsFunc(s.InFlight(from, to), func(m Message) bool { return m.Kind == kind })
}

// trusts lets a process hear that a session with another one begins.
func trusts(s *algotest.System[Message], id, of protocol.ID) {
	s.Step(id, protocol.Input{Kind: protocol.Restore, From: of, Arg: 1})
}

// without is a system without option heal, whose members otherwise take the defaults.
func without(a protocol.Algorithm[Message], n int) *algotest.System[Message] {
	return optioned(a, n, map[string]int64{heal.Name: 0})
}

// returned lets a process that was up come back.
func returned(s *algotest.System[Message], id protocol.ID) {
	s.Crash(id)
	s.Recover(id, 2)
}

// A process that comes back takes no part: it does not vote, whoever is suspected, votes or comes back, and asks for no token.
func abstains(a protocol.Algorithm[Message]) string {
	s := system(a, 5)
	s.Crash(4)
	returned(s, 3)
	s.Recover(4, 2)
	suspects(s, 3, 0)
	brings(s, 4, 3, Sync)
	suspects(s, 1, 0)
	brings(s, 1, 3, NewEp)
	s.Try(3)
	if under(s, 3, 0, NewEp) || under(s, 3, 0, Request) {
		return fmt.Sprintf("%s by story, a process that takes no part votes, or asks for the token", history.OneCopy)
	}
	trusts(s, 1, 0)
	trusts(s, 3, 0)
	s.Settle()
	if in := s.Inside(); !slices.Equal(in, []protocol.ID{3}) {
		return fmt.Sprintf("service by story, inside are %v", in)
	}
	for id, p := range s.Procs {
		if k := len(own(p).early); k > 0 {
			return fmt.Sprintf("cost by story, process %d keeps %d messages of epochs that are over", id, k)
		}
	}
	return ""
}

// An answer to the life before is of no use, and answered by nothing.
func oldAnswer(a protocol.Algorithm[Message]) string {
	s := system(a, 3)
	s.Try(0)
	s.Issue(0, "a")
	lose(s, 0, 2, Invoke)
	brings(s, 0, 1, Invoke)
	brings(s, 1, 0, Ack)
	trusts(s, 2, 0)
	returned(s, 2)
	s.Deliver(2, 0, 0) // SYNC of the life before
	return first(
		spends(s, "operations for the life before", func() { brings(s, 0, 2, Records) }, nil),
		func() string { s.Settle(); return alike(s, "a") }(),
	)
}

// An offer of the life before is taken where the next one has nothing to give yet. It says so, and another one is asked.
func staleAhead(a protocol.Algorithm[Message]) string {
	s := frugal(a, 5, 1)
	s.Try(0)
	for _, op := range []string{"a", "b", "c"} {
		s.Issue(0, op)
		exchange(s, 0, 2)
		exchange(s, 0, 3)
	}
	for _, kind := range []uint8{Invoke, Ack, DoInvoke} {
		for id := range protocol.ID(5) {
			lose(s, id, 1, kind)
		}
	}
	trusts(s, 1, 2)
	brings(s, 1, 2, Sync)
	s.Crash(2)
	s.Recover(2, 2)
	s.Step(1, protocol.Input{Kind: protocol.Restore, From: 2, Arg: 2})
	brings(s, 2, 1, Sync)
	brings(s, 2, 1, Ahead)
	brings(s, 1, 2, Fetch)
	s.Settle()
	return alike(s, "a", "b", "c")
}

// A process that is asked for the state and crashes is not waited for, by who comes back nor by who lacks operations.
func asksAnother(a protocol.Algorithm[Message]) string {
	s := system(a, 5)
	returned(s, 4)
	for id := range protocol.ID(4) {
		brings(s, 4, id, Sync)
	}
	for i := range protocol.ID(4) {
		for j := range i {
			exchange(s, i, j)
		}
	}
	s.Decide(0, 0)
	for id := range protocol.ID(4) {
		s.Decided(id)
		brings(s, id, 4, Ahead)
	}
	lacks := frugal(a, 5, 1)
	lacks.Try(0)
	for _, op := range []string{"a", "b", "c"} {
		lacks.Issue(0, op)
		for id := range protocol.ID(3) {
			exchange(lacks, 0, id+1)
		}
	}
	for id := range protocol.ID(4) {
		for _, kind := range []uint8{Invoke, Ack, DoInvoke} {
			lose(lacks, id, 4, kind)
		}
	}
	for id := range protocol.ID(2) { // 1 offers the state first, and is asked; 0 is not
		trusts(lacks, 4, 1-id)
		brings(lacks, 4, 1-id, Sync)
		brings(lacks, 1-id, 4, Ahead)
	}
	if fault := spends(lacks, "a suspicion of who was not asked", func() { suspects(lacks, 4, 3) }, nil); fault != "" {
		return fault
	}
	for id := range protocol.ID(5) {
		if id == 0 {
			s.Crash(id)
			lacks.Crash(1)
			continue
		}
		suspects(s, id, 0)
		if id > 1 {
			suspects(lacks, id, 1)
		}
	}
	s.Settle()
	lacks.Settle()
	s.Try(4)
	s.Settle()
	if in := s.Inside(); !slices.Equal(in, []protocol.ID{4}) {
		return fmt.Sprintf("service by story, inside are %v", in)
	}
	return alike(lacks, "a", "b", "c")
}

// A return costs one end of an epoch, one copy of the object, and two messages to each other.
func returnCosts(a protocol.Algorithm[Message]) string {
	for n := 3; n <= 5; n++ {
		s := system(a, n)
		s.Try(0)
		s.Issue(0, "a")
		s.Settle()
		id := protocol.ID(n - 1)
		want := map[uint8]int{NewEp: (n - 1) * (n - 1), Sync: 2 * (n - 1), Ahead: n - 1, Fetch: 1, State: 1}
		if fault := spends(s, fmt.Sprintf("a return of %d", n), func() { returned(s, id); s.Settle() }, want); fault != "" {
			return fault
		}
	}
	return ""
}

// A process that hears late of a return that the epoch has begun with offers the state, once, and ends no further epoch. One that
// has voted does not vote again.
func comesLate(a protocol.Algorithm[Message]) string {
	s := system(a, 3)
	returned(s, 2)
	brings(s, 2, 1, Sync)
	exchange(s, 0, 1)
	s.Decide(0, 0)
	voted := system(a, 3)
	suspects(voted, 1, 0)
	returned(voted, 2)
	return first(
		spends(s, "a decision, to who was asked", func() { s.Decided(1) }, map[uint8]int{Ahead: 1}),
		spends(s, "a decision, to who was not asked", func() { s.Decided(0) }, nil),
		spends(s, "the question, later", func() { brings(s, 2, 0, Sync) }, map[uint8]int{Ahead: 1}),
		spends(voted, "a question to who has voted", func() { brings(voted, 2, 1, Sync) }, nil),
	)
}

// Where a session begins anew and nothing was lost nothing follows; without option heal nothing is asked.
func nothingLost(a protocol.Algorithm[Message]) string {
	s, bare := system(a, 3), without(a, 3)
	s.Try(0)
	s.Issue(0, "a")
	s.Settle()
	open := system(a, 3)
	open.Try(0)
	open.Issue(0, "a")
	brings(open, 0, 1, Invoke)
	brings(open, 0, 2, Invoke)
	again := map[uint8]int{Sync: 1, Ack: 1}
	if a.Name == Second.Name { // the owner alone counts them
		again[Ack] = 0
	}
	return first(
		spends(s, "a new session", func() { trusts(s, 1, 2); trusts(s, 2, 1); s.Settle() }, map[uint8]int{Sync: 2}),
		spends(s, "a new session with the owner", func() { trusts(s, 1, 0); trusts(s, 0, 1); s.Settle() }, map[uint8]int{Sync: 2}),
		spends(bare, "a new session, without heal", func() { trusts(bare, 1, 2); trusts(bare, 2, 1); bare.Settle() }, nil),
		spends(open, "an operation is open", func() { trusts(open, 2, 1); brings(open, 2, 1, Sync) }, again),
	)
}

// A process that has not heard of the decision is offered the state, in case it never does, and not sent records of a later epoch. Who
// has voted sends its vote, not what it has voted for.
func behindEpoch(a protocol.Algorithm[Message]) string {
	s := system(a, 3)
	suspects(s, 1, 0)
	brings(s, 1, 0, NewEp)
	brings(s, 0, 1, NewEp)
	trusts(s, 1, 0)
	s.Decide(0, 0)
	s.Decided(0)
	s.Decided(1)
	for id := range protocol.ID(2) { // the token goes from one to the other
		s.Try(id)
		exchange(s, 0, 1)
		s.Exit(id)
		exchange(s, 0, 1)
	}
	trusts(s, 2, 0)
	voted := system(a, 3)
	voted.Try(1)
	brings(voted, 1, 0, Request)
	suspects(voted, 0, 1)
	trusts(voted, 2, 0)
	return first(
		spends(s, "a question of an epoch before", func() { brings(s, 2, 0, Sync) }, map[uint8]int{Ahead: 1}),
		spends(voted, "a question to who has voted", func() { brings(voted, 2, 0, Sync) }, map[uint8]int{NewEp: 1}),
	)
}

// What was lost is sent again: a request, a grant, a vote.
func repeated(a protocol.Algorithm[Message]) string {
	asked := system(a, 3)
	asked.Try(1)
	lose(asked, 1, 0, Request)
	granted := system(a, 3)
	granted.Try(1)
	brings(granted, 1, 0, Request)
	lose(granted, 0, 1, Grant)
	voted := system(a, 3)
	suspects(voted, 2, 0)
	brings(voted, 2, 1, NewEp)
	lose(voted, 2, 0, NewEp)
	lose(voted, 1, 0, NewEp)
	fault := first(
		spends(asked, "a request", func() { trusts(asked, 0, 1); brings(asked, 0, 1, Sync) }, map[uint8]int{Sync: 1, Request: 1}),
		spends(granted, "a grant", func() { trusts(granted, 1, 0); exchange(granted, 0, 1) }, map[uint8]int{Sync: 1, Records: 1}),
		spends(voted, "a vote", func() { trusts(voted, 0, 1); brings(voted, 0, 1, Sync) }, map[uint8]int{Sync: 1, NewEp: 1}),
	)
	for _, s := range []*algotest.System[Message]{asked, granted} {
		s.Settle()
		if in := s.Inside(); fault == "" && !slices.Equal(in, []protocol.ID{1}) {
			fault = fmt.Sprintf("service by story, inside are %v", in)
		}
	}
	for j, v := range own(voted.Procs[1]).votes {
		if fault == "" && v.More != nil && j != 1 {
			fault = "cost by story, votes are kept that are counted"
		}
	}
	return fault
}

// An acknowledgement is sent again to each that counts it.
func lostAck(a protocol.Algorithm[Message]) string {
	s := system(a, 3)
	s.Crash(2)
	s.Try(0)
	s.Issue(0, "a")
	brings(s, 0, 1, Invoke)
	lose(s, 0, 1, Ack)
	lose(s, 1, 0, Ack)
	trusts(s, 0, 1)
	trusts(s, 1, 0)
	s.Settle()
	return alike(s, "a")
}

// Who lacks more operations than one message carries asks for the next ones, as often as it needs, and only then.
func behindMany(a protocol.Algorithm[Message]) string {
	s := frugal(a, 3, 8)
	s.Try(0)
	for _, op := range []string{"a", "b", "c", "d"} {
		s.Issue(0, op)
		exchange(s, 0, 1)
	}
	for id := range protocol.ID(2) {
		for _, kind := range []uint8{Invoke, Ack, DoInvoke} {
			lose(s, id, 2, kind)
		}
	}
	s.Crash(1)
	want := map[uint8]int{Sync: 5, Records: 4} // the first answer may be all that its sender has: both others are asked then
	return first(spends(s, "four operations", func() {
		trusts(s, 2, 0)
		for len(s.InFlight(2, 0)) > 0 {
			s.Deliver(2, 0, 0)
			for _, m := range s.InFlight(0, 2) {
				if m.More != nil && len(m.More.Records) > 1 {
					panic("more operations than option carry says")
				}
				s.Deliver(0, 2, 0)
			}
		}
	}, want), alike(s, "a", "b", "c", "d"))
}

// A process that is told of the last record has it, though not all before it: its vote says so.
func lastGoesAlong(a protocol.Algorithm[Message]) string {
	s := frugal(a, 3, 8)
	s.Try(0)
	for _, op := range []string{"a", "b"} {
		s.Issue(0, op)
		exchange(s, 0, 2)
	}
	s.Issue(0, "c")
	brings(s, 0, 2, Invoke)
	for _, kind := range []uint8{Invoke, Ack, DoInvoke} {
		lose(s, 0, 1, kind)
		lose(s, 2, 1, kind)
	}
	trusts(s, 1, 2)
	brings(s, 1, 2, Sync)
	brings(s, 2, 1, Records)
	brings(s, 2, 0, Ack) // c has an outcome
	s.Crash(0)
	suspects(s, 1, 0)
	suspects(s, 2, 0)
	s.Settle()
	return alike(s, "a", "b", "c")
}

// Operations of an epoch that is over are none of this one.
func otherEpoch(a protocol.Algorithm[Message]) string {
	s := system(a, 3)
	s.Try(0)
	trusts(s, 2, 0)
	s.Issue(0, "a")
	brings(s, 2, 0, Sync)
	suspects(s, 1, 0)
	brings(s, 1, 2, NewEp)
	s.Decide(0, 0)
	s.Decided(2)
	s.Decided(1)
	brings(s, 0, 2, Records)
	trusts(s, 1, 0)
	s.Settle()
	s.Try(1)
	s.Settle()
	s.Issue(1, "b")
	s.Settle()
	return alike(s, "b")
}

// A process that has voted logs nothing, and acknowledges nothing.
func votedAlready(a protocol.Algorithm[Message]) string {
	s := system(a, 3)
	s.Try(0)
	trusts(s, 2, 0)
	s.Issue(0, "a")
	brings(s, 2, 0, Sync)
	suspects(s, 2, 0)
	brings(s, 0, 2, Records)
	if under(s, 2, 0, Ack) {
		return fmt.Sprintf("%s by story, a process logs an operation for which it has not voted", history.Failed)
	}
	return ""
}

// What is logged here is not logged again, and a record that comes twice counts once.
func loggedTwice(a protocol.Algorithm[Message]) string {
	s := frugal(a, 3, 8)
	s.Try(0)
	s.Issue(0, "a")
	s.Settle()
	s.Issue(0, "b")
	brings(s, 0, 2, Invoke)
	exchange(s, 0, 1)
	s.Issue(0, "c")
	exchange(s, 0, 1)
	trusts(s, 2, 0)
	brings(s, 2, 0, Sync)
	brings(s, 0, 2, Records)
	log := own(s.Procs[2]).opHist
	for k := range log[1:] {
		if log[k].Number >= log[k+1].Number {
			return "model by story, an operation is logged twice: " + fmt.Sprint(log)
		}
	}
	s.Settle()
	if fault := alike(s, "a", "b", "c"); fault != "" {
		return fault
	}
	s = system(a, 3) // of a grant it hears by an answer first
	s.Try(1)
	brings(s, 1, 0, Request)
	trusts(s, 2, 0)
	brings(s, 2, 0, Sync)
	brings(s, 0, 2, Records)
	brings(s, 0, 1, Grant)
	s.Issue(1, "d")
	brings(s, 1, 2, Invoke)
	brings(s, 0, 2, Grant)
	s.Settle()
	s.Issue(1, "e")
	s.Settle()
	return alike(s, "d", "e")
}

// Who takes over a state with an operation that is open acknowledges it: the record itself counts no more.
func lateState(a protocol.Algorithm[Message]) string {
	s := system(a, 3)
	s.Try(0)
	returned(s, 2)
	brings(s, 2, 0, Sync)
	brings(s, 2, 1, Sync)
	exchange(s, 0, 1)
	s.Decide(0, 0)
	s.Decided(0)
	s.Decided(1)
	s.Crash(1)
	brings(s, 0, 2, Ahead)
	s.Issue(0, "a")
	brings(s, 2, 0, Fetch)
	brings(s, 0, 2, State)
	s.Settle()
	return alike(s, "a")
}

// Who lacks an operation executes none after it before it has got it, though that is committed.
func inOrder(a protocol.Algorithm[Message]) string {
	s := gapped(a, false)
	s.Issue(0, "c")
	last(s, 0, 2, Invoke)
	exchange(s, 0, 1)
	for _, kind := range []uint8{Ack, DoInvoke} {
		last(s, 0, 2, kind)
		last(s, 1, 2, kind)
	}
	if p := own(s.Procs[2]); p.committed <= p.executed {
		return "model by story, it lacks nothing"
	}
	s.Settle()
	return alike(s, "a", "b", "c")
}
