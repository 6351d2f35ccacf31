package wme

import (
	"fmt"
	"slices"
	"testing"

	"github.com/poundlock/poundlock/algo/algotest"
	"github.com/poundlock/poundlock/algo/algotest/mutant"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/history"
)

// Each story tells what a guard is for that no property needs: which messages are not sent, who
// is to own the next epoch, what is kept.
var guards = []func(protocol.Algorithm[Message]) string{quiet, keptQueue, nextOwners, lagging, dropped, lateAcks, ends, served, order, overtakes}

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

// A process that waits in the queue when an epoch ends waits on, and nobody asks for anything.
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
		if !gives {
			none := map[uint8]int{Sync: 1, Ahead: 1}
			if fault := spends(s, "the owner, which waits", func() { trusts(s, 2, 1); brings(s, 2, 1, Sync) }, none); fault != "" {
				return fault
			}
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
		s := optioned(a, 3, map[string]int64{stability.Name: c.stability, keep.Name: c.kept})
		s.Try(0)
		for k := range 6 {
			s.Issue(0, fmt.Sprint(k))
			s.Settle()
		}
		for id, p := range s.Procs {
			if k := int64(len(own(p).opHist)); k < c.least || k > c.most {
				return fmt.Sprintf("cost by story, process %d keeps %d operations, want %d to %d", id, k, c.least, c.most)
			}
		}
		if c.stability == 1 { // one that does not execute keeps them all
			s.Crash(2)
			for k := range 4 {
				s.Issue(0, fmt.Sprint("more", k))
				s.Settle()
			}
			if k := len(own(s.Procs[0]).opHist); k < 4 {
				return fmt.Sprintf("cost by story, process 0 keeps %d operations that 2 lacks", k)
			}
		}
	}
	return ""
}

// brings delivers the latest message of a kind.
func brings(s *algotest.System[Message], from, to protocol.ID, kind uint8) {
	list := s.InFlight(from, to)
	for k := len(list) - 1; k >= 0; k-- {
		if list[k].Kind == kind {
			s.Deliver(from, to, k)
			return
		}
	}
	panic(fmt.Sprintf("no %s is on its way from %d to %d", messages[kind].Name, from, to))
}

// An acknowledgement of an operation before the last one counts for none that is open.
func lateAcks(a protocol.Algorithm[Message]) string {
	s := system(a, 5)
	s.Try(0)
	s.Issue(0, "a")
	for id := range protocol.ID(4) {
		brings(s, 0, id+1, Invoke)
	}
	brings(s, 1, 0, Ack)
	brings(s, 2, 0, Ack) // it has an outcome
	s.Issue(0, "b")
	brings(s, 3, 0, Ack)
	brings(s, 4, 0, Ack)
	brings(s, 0, 1, Invoke)
	brings(s, 1, 0, Ack)
	if s.Users[0] != protocol.InIssue {
		return fmt.Sprintf("%s by story, two of five have logged an operation that has one", history.Outcome)
	}
	return ""
}

// An owner that has voted does nothing with the token: it lets nobody in, grants nothing, and makes no operation a record.
func ends(a protocol.Algorithm[Message]) string {
	voted := func(inside bool) *algotest.System[Message] {
		s := system(a, 3)
		if inside {
			s.Try(0)
		}
		suspects(s, 2, 0)
		brings(s, 2, 0, NewEp)
		return s
	}
	leaves, issues, tries := system(a, 3), voted(true), voted(false)
	leaves.Try(0)
	leaves.Try(1)
	brings(leaves, 1, 0, Request)
	suspects(leaves, 2, 0)
	brings(leaves, 2, 0, NewEp)
	tries.Try(0)
	if tries.Users[0] != protocol.InTry {
		return "service by story, a user enters though the epoch ends"
	}
	return first(
		spends(leaves, "an exit when it has voted", func() { leaves.Exit(0) }, nil),
		spends(issues, "an operation when it has voted", func() { issues.Issue(0, "a") }, nil),
	)
}

// A user that was ejected and has not called exit yet keeps nobody from the token.
func served(a protocol.Algorithm[Message]) string {
	s := system(a, 3)
	s.Try(0)
	suspects(s, 2, 0)
	brings(s, 2, 1, NewEp)
	brings(s, 1, 2, NewEp)
	s.Decide(0, 1)
	for id := range protocol.ID(3) {
		s.Decided(2 - id)
	}
	for e := uint64(1); own(s.Procs[0]).curOwner != 0 && e < 9; e++ { // until it is the owner again
		from := own(s.Procs[0]).curOwner
		suspects(s, 3-from, from)
		trusts(s, 2, 0)
		brings(s, 3-from, 0, NewEp)
		brings(s, 0, 3-from, NewEp)
		s.Decide(e, len(s.Proposals(e))-1)
		for id := range protocol.ID(3) {
			s.Decided(id)
		}
		trusts(s, 3-from, from)
	}
	if s.Users[0] != protocol.InLost {
		return fmt.Sprintf("service by story, the user is in section %d", s.Users[0])
	}
	s.Try(1)
	s.Settle()
	if in := s.Inside(); !slices.Equal(in, []protocol.ID{1}) {
		return fmt.Sprintf("service by story, inside are %v", in)
	}
	return ""
}

// A request that comes twice keeps its place, and one that was given up has lost it: a grant for it passes on.
func order(a protocol.Algorithm[Message]) string {
	twice, gives := system(a, 3), system(a, 3)
	for _, s := range []*algotest.System[Message]{twice, gives} {
		s.Try(0)
		for id := range protocol.ID(2) {
			s.Try(id + 1)
			exchange(s, 1, 2)
			exchange(s, 0, id+1)
		}
	}
	trusts(twice, 0, 1)
	exchange(twice, 0, 1)
	gives.Step(1, protocol.Input{Kind: protocol.Cancel})
	gives.Try(1)
	exchange(gives, 1, 2)
	for _, s := range []*algotest.System[Message]{twice, gives} {
		s.Exit(0)
		s.Settle()
	}
	for _, c := range []struct {
		s    *algotest.System[Message]
		want protocol.ID
	}{{twice, 1}, {gives, 2}} {
		if in := c.s.Inside(); !slices.Equal(in, []protocol.ID{c.want}) {
			return fmt.Sprintf("service by story, inside are %v, want %d", in, c.want)
		}
	}
	return ""
}

// A grant that comes when its record is logged already, with others after it, is no news.
func overtakes(a protocol.Algorithm[Message]) string {
	s := system(a, 3)
	s.Try(1)
	brings(s, 1, 0, Request)
	brings(s, 0, 1, Grant)
	s.Try(0)
	exchange(s, 0, 1)
	s.Exit(1) // and back
	exchange(s, 0, 1)
	trusts(s, 2, 0)
	brings(s, 2, 0, Sync)
	brings(s, 0, 2, Records)
	brings(s, 0, 2, Grant)
	s.Issue(0, "a")
	s.Settle()
	return alike(s, "a")
}

// What consensus cannot do is refused.
func outOfOrder() {
	p := started(First)
	decided(p, 0)
	fed(p, protocol.Input{Kind: protocol.Decide, Arg: 0}, Message{Kind: NewEp, More: bulk(1)})
}

func TestRefusal(t *testing.T) {
	if fault, err := mutant.Panics("wme: a decision out of order", outOfOrder)(); fault != "" || err != nil {
		t.Error(fault, err)
	}
}
