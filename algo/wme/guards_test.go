package wme

import (
	"fmt"
	"slices"
	"testing"

	"github.com/poundlock/poundlock/algotest"
	"github.com/poundlock/poundlock/history"
	"github.com/poundlock/poundlock/protocol"
)

// Each story tells what a guard is for that no property needs: which messages are not sent, who
// is to own the next epoch, what is kept.
var guards = []func(protocol.Algorithm[Message]) string{quiet, keptQueue, nextOwners, lagging, dropped}

func TestGuards(t *testing.T) {
	for _, story := range guards {
		tell(t, story)
	}
}

// spends says what is wrong unless a part sends so many messages of each kind.
func spends(s *algotest.System[Message], what string, part func(), want map[uint8]int) string {
	before := slices.Clone(s.Kinds)
	part()
	for k, w := range kinds(want) {
		if got := s.Kinds[k] - before[k]; got != w {
			return fmt.Sprintf("cost by story, %s: %d of %s, want %d", what, got, messages[k].Name, w)
		}
	}
	return ""
}

func suspects(s *algotest.System[Message], id, of protocol.ID) {
	s.Step(id, protocol.Input{Kind: protocol.Suspect, From: of})
}

// first is the first fault.
func first(faults ...string) string {
	for _, f := range faults {
		if f != "" {
			return f
		}
	}
	return ""
}

// Nothing is sent at the start, nor because somebody else than the owner is suspected, nor twice; nor
// by who tries while the epoch ends.
func quiet(a protocol.Algorithm[Message]) string {
	s, other := system(a, 3), system(a, 3)
	if s.Sent > 0 {
		return fmt.Sprintf("cost by story, %d messages at the start", s.Sent)
	}
	s.Try(0)
	return first(
		spends(other, "a suspicion of who owns nothing", func() { suspects(other, 2, 1) }, nil),
		spends(s, "an end", func() { suspects(s, 2, 0); s.Deliver(2, 1, 0) }, map[uint8]int{NewEp: 4}),
		spends(s, "a suspicion when it has voted", func() { suspects(s, 1, 0) }, nil),
		spends(s, "a try when it has voted", func() { s.Try(1) }, nil),
		func() string {
			s.Crash(0)
			s.Settle()
			if got := len(s.Proposals(0)); got != 2 {
				return fmt.Sprintf("cost by story, %d proposals, want 2", got)
			}
			return ""
		}(),
	)
}

// Who waits in the queue when an epoch ends waits on, and nobody asks for anything.
func keptQueue(a protocol.Algorithm[Message]) string {
	s := system(a, 4)
	for id := range protocol.ID(3) {
		s.Try(id)
		s.Settle()
	}
	return first(
		spends(s, "an end", func() { s.Crash(0); suspects(s, 1, 0); s.Settle() }, map[uint8]int{NewEp: 9}),
		spends(s, "an exit", func() { s.Exit(1); s.Settle() }, map[uint8]int{Grant: 3}),
		spends(s, "the last exit", func() { s.Exit(2); s.Settle() }, nil),
	)
}

// next is whom the last proposal of the first epoch wants to own the second.
func next(s *algotest.System[Message], want protocol.ID, what string) string {
	list := s.Proposals(0)
	if len(list) == 0 || list[len(list)-1].More.Owner != want {
		return fmt.Sprintf("service by story, %s: proposed %v", what, list)
	}
	return ""
}

// The owner stays, unless who proposes suspects it or it comes back as a new life: then it is one that
// has voted and is fit.
func nextOwners(a protocol.Algorithm[Message]) string {
	vote := func(s *algotest.System[Message], from, to protocol.ID) {
		s.Deliver(from, to, len(s.InFlight(from, to))-1)
	}
	keeps := system(a, 3)
	suspects(keeps, 2, 0)
	vote(keeps, 2, 1)
	finds := system(a, 5)
	suspects(finds, 3, 0)
	vote(finds, 3, 2)
	vote(finds, 3, 4)
	suspects(finds, 2, 0)
	vote(finds, 4, 2)
	passes := system(a, 5)
	suspects(passes, 3, 0)
	vote(passes, 3, 2)
	vote(passes, 3, 1)
	suspects(passes, 2, 0)
	suspects(passes, 2, 1)
	vote(passes, 1, 2)
	returns := system(a, 3)
	returns.Crash(0)
	returns.Recover(0, 2)
	returns.Deliver(0, 2, 0)
	vote(returns, 2, 1)
	return first(
		next(keeps, 0, "who proposes trusts the owner"),
		next(finds, 2, "who proposes suspects the owner, and lacks a vote of the next one"),
		next(passes, 2, "who proposes suspects the owner, and the next one that has voted"),
		next(returns, 1, "the owner comes back"),
	)
}

// A process that lacks operations does not enter before it has them, and passes the token on if its
// user gives up.
func lagging(a protocol.Algorithm[Message]) string {
	for _, gives := range []bool{false, true} {
		s := frugal(a, 3, 8)
		s.Try(0)
		for _, op := range []string{"a", "b"} {
			s.Issue(0, op)
			exchange(s, 0, 2)
		}
		for _, id := range []protocol.ID{1, 2} {
			s.Try(id)
			for range s.InFlight(id, 3-id) {
				s.Deliver(id, 3-id, 0)
			}
		}
		for len(s.InFlight(1, 0)) > 0 {
			s.Drop(1, 0, 0)
		}
		suspects(s, 1, 0)
		s.Deliver(1, 2, len(s.InFlight(1, 2))-1)
		s.Deliver(2, 1, len(s.InFlight(2, 1))-1)
		s.Decide(0, len(s.Proposals(0))-1)
		s.Decided(1)
		if s.Users[1] == protocol.InCrit {
			return fmt.Sprintf("%s by story, a process enters with a copy that lacks operations", history.Fresh)
		}
		if gives {
			s.Step(1, protocol.Input{Kind: protocol.Cancel})
		}
		s.Settle()
		if in, want := s.Inside(), map[bool]protocol.ID{false: 1, true: 2}[gives]; !slices.Equal(in, []protocol.ID{want}) {
			return fmt.Sprintf("service by story, inside are %v, want %d", in, want)
		}
	}
	return ""
}

// What everybody has executed is dropped, where that is asked for; else as many are kept as that is.
func dropped(a protocol.Algorithm[Message]) string {
	for _, c := range []struct{ stability, kept, most, least int64 }{{1, 1024, 2, 0}, {0, 1024, 6, 6}, {0, 3, 3, 3}} {
		s := algotest.NewSystem(a, protocol.Config{N: 3, Options: map[string]int64{stability.Name: c.stability, keep.Name: c.kept}}, 0)
		s.Try(0)
		for k := range 6 {
			s.Issue(0, fmt.Sprint(k))
			s.Settle()
		}
		for id, p := range s.Procs {
			if k := int64(len(own(p).log)); k < c.least || k > c.most {
				return fmt.Sprintf("cost by story, process %d keeps %d operations, want %d to %d", id, k, c.least, c.most)
			}
		}
		if c.stability == 1 { // one that does not execute keeps them all
			s.Crash(2)
			for k := range 4 {
				s.Issue(0, fmt.Sprint("more", k))
				s.Settle()
			}
			if k := len(own(s.Procs[0]).log); k < 4 {
				return fmt.Sprintf("cost by story, process 0 keeps %d operations that 2 lacks", k)
			}
		}
	}
	return ""
}
