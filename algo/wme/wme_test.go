package wme

import (
	"fmt"
	"slices"
	"testing"

	"github.com/poundlock/poundlock/algo/algotest"
	"github.com/poundlock/poundlock/protocol"
)

var forms = []protocol.Algorithm[Message]{First, Second}

// told is what is wrong in a story of both forms.
func told(story func(protocol.Algorithm[Message]) string) (fault string) {
	defer func() {
		if v := recover(); v != nil {
			fault = fmt.Sprintf("model by story, %v", v)
		}
	}()
	for _, a := range forms {
		if fault := story(a); fault != "" {
			return fmt.Sprintf("%s (%s)", fault, a.Name)
		}
	}
	return ""
}

func tell(t *testing.T, story func(protocol.Algorithm[Message]) string) {
	t.Helper()
	if fault := told(story); fault != "" {
		t.Error(fault)
	}
}

func system(a protocol.Algorithm[Message], n int) *algotest.System[Message] {
	return optioned(a, n, nil)
}

// optioned is a system whose members have options. A story takes a few hundred steps.
func optioned(a protocol.Algorithm[Message], n int, options map[string]int64) *algotest.System[Message] {
	s := algotest.NewSystem(a, protocol.Config{N: n, Options: options}, 0)
	s.Most = 10_000
	return s
}

// sent is how many messages of each kind a part of a story sends.
func sent(s *algotest.System[Message], part func()) []int {
	before := slices.Clone(s.Kinds)
	part()
	s.Settle()
	for k := range before {
		before[k] = s.Kinds[k] - before[k]
	}
	return before
}

func kinds(counts map[uint8]int) []int {
	list := make([]int, len(messages))
	for k, v := range counts {
		list[k] = v
	}
	return list
}

// What enter, operation and exit cost by message: Table 1 of the paper, made exact.
func TestCosts(t *testing.T) { tell(t, costs) }

func costs(a protocol.Algorithm[Message]) (fault string) {
	for n := 2; n <= 9; n++ {
		s := system(a, n)
		want := func(what string, got []int, want map[uint8]int) {
			if w := kinds(want); fault == "" && !slices.Equal(got, w) {
				fault = fmt.Sprintf("cost by story, N=%d, %s: %v, want %v", n, what, got, w)
			}
		}
		want("enter with the token", sent(s, func() { s.Try(0) }), nil)
		ops := map[uint8]int{Invoke: n - 1, Ack: n * (n - 1)}
		if a.Name == Second.Name {
			ops = map[uint8]int{Invoke: n - 1, Ack: n - 1, DoInvoke: n - 1}
		}
		want("operation", sent(s, func() { s.Issue(0, "a") }), ops)
		want("exit, nobody waits", sent(s, func() { s.Exit(0) }), nil)
		want("enter, token elsewhere", sent(s, func() { s.Try(1) }), map[uint8]int{Request: n - 1, Grant: n - 1})
		want("another waits", sent(s, func() { s.Try(0) }), map[uint8]int{Request: n - 1})
		want("exit, somebody waits", sent(s, func() { s.Exit(1) }), map[uint8]int{Grant: n - 1})
		if in := s.Inside(); fault == "" && !slices.Equal(in, []protocol.ID{0}) {
			fault = fmt.Sprintf("service by story, N=%d: %v are inside", n, in)
		}
	}
	return fault
}

// A process that waits and owns the next epoch needs no grant.
func TestNextOwner(t *testing.T) { tell(t, nextOwner) }

func nextOwner(a protocol.Algorithm[Message]) string {
	s := system(a, 3)
	s.Try(0)
	s.Try(1)
	s.Settle()
	s.Crash(0)
	s.Step(1, protocol.Input{Kind: protocol.Suspect, From: 0})
	s.Settle()
	if in := s.Inside(); !slices.Equal(in, []protocol.ID{1}) {
		return fmt.Sprintf("service by story, %v are inside", in)
	}
	if got := sent(s, func() { s.Exit(1) }); !slices.Equal(got, kinds(nil)) {
		return fmt.Sprintf("cost by story, exit of the next owner: %v", got)
	}
	return ""
}

// alike says what is wrong unless all live copies have executed these operations.
func alike(s *algotest.System[Message], ops ...string) string {
	for id, c := range s.Copies {
		if s.Procs[id] != nil && !slices.Equal(c, ops) {
			return fmt.Sprintf("copies by story, process %d has executed %q, want %q", id, c, ops)
		}
	}
	return ""
}

// A falsely suspected owner: what it has open is in the decision, and then it has an outcome
// before it is ejected; or it is not, and is never executed.
func TestEjected(t *testing.T) { tell(t, ejected) }

func ejected(a protocol.Algorithm[Message]) string {
	for _, logged := range []bool{true, false} {
		s := system(a, 3)
		s.Try(0)
		s.Issue(0, "a")
		ops := []string(nil)
		if logged {
			s.Deliver(0, 1, 0)
			ops = []string{"a"}
		}
		s.Step(1, protocol.Input{Kind: protocol.Suspect, From: 0})
		s.Deliver(1, 2, len(s.InFlight(1, 2))-1)
		s.Deliver(2, 1, 0)
		s.Settle()
		if got := s.Users[0]; got != protocol.InLost {
			return fmt.Sprintf("service by story, logged %v: the old owner is in section %d", logged, got)
		}
		if fault := alike(s, ops...); fault != "" {
			return fault
		}
	}
	return ""
}

// A process that comes back takes part once it has got the object, and counts for no majority
// before.
func TestReturn(t *testing.T) { tell(t, returns) }

func returns(a protocol.Algorithm[Message]) string {
	s := system(a, 3)
	s.Try(0)
	s.Issue(0, "a")
	s.Settle()
	s.Crash(2)
	s.Issue(0, "b")
	s.Settle()
	s.Recover(2, 2)
	s.Settle()
	if fault := alike(s, "a", "b"); fault != "" {
		return fault
	}
	s.Crash(1)
	s.Issue(0, "c")
	s.Settle()
	if fault := alike(s, "a", "b", "c"); fault != "" {
		return fault
	}
	s.Exit(0)
	s.Try(2)
	s.Settle()
	if in := s.Inside(); !slices.Equal(in, []protocol.ID{2}) {
		return fmt.Sprintf("service by story, %v are inside", in)
	}
	return ""
}

// frugal is a system whose messages carry one operation each, and whose members keep so many.
func frugal(a protocol.Algorithm[Message], n int, kept int64) *algotest.System[Message] {
	return optioned(a, n, map[string]int64{carry.Name: 1, keep.Name: kept, stability.Name: 0})
}

// wavers lets a process suspect another one by mistake, for a moment.
func wavers(s *algotest.System[Message], id, of protocol.ID) {
	s.Step(id, protocol.Input{Kind: protocol.Suspect, From: of})
	s.Step(id, protocol.Input{Kind: protocol.Restore, From: of, Arg: 1})
}

// exchange delivers all messages between two processes.
func exchange(s *algotest.System[Message], a, b protocol.ID) {
	for some := true; some; {
		some = false
		for _, c := range []protocol.Channel{{From: a, To: b}, {From: b, To: a}} {
			for len(s.InFlight(c.From, c.To)) > 0 {
				s.Deliver(c.From, c.To, 0)
				some = true
			}
		}
	}
}

// An answer to what a process lacked long ago overtakes an operation, which is then no record that it waits for.
// It asks for it.
func TestOvertaken(t *testing.T) { tell(t, overtaken) }

func overtaken(a protocol.Algorithm[Message]) string {
	s := frugal(a, 3, 8)
	wavers(s, 2, 1)
	s.Try(0)
	for _, op := range []string{"a", "b"} {
		s.Issue(0, op)
		exchange(s, 0, 1)
	}
	s.Deliver(0, 2, 0)
	s.Deliver(0, 2, 0) // 2 has executed a
	s.Deliver(2, 1, 0) // SYNC, from before
	s.Deliver(1, 2, len(s.InFlight(1, 2))-1)
	s.Settle()
	return alike(s, "a", "b")
}

// A process that asks for operations may be the first to hear of a decision. Those that have them execute them once they have
// heard, too, and answer then.
func TestAskedEarly(t *testing.T) { tell(t, askedEarly) }

func askedEarly(a protocol.Algorithm[Message]) string {
	s := frugal(a, 3, 8)
	s.Try(0)
	s.Issue(0, "a")
	s.Deliver(0, 1, 0)
	s.Deliver(1, 0, 0) // 0 and 1 have logged it, and 0 has executed it
	s.Issue(0, "b")
	s.Step(2, protocol.Input{Kind: protocol.Suspect, From: 0})
	s.Deliver(2, 0, len(s.InFlight(2, 0))-1)
	s.Deliver(0, 2, len(s.InFlight(0, 2))-1)
	s.Decide(0, 1) // the vote of 0, which carries b alone; 2 is to own the token
	s.Decided(2)
	s.Crash(0)
	s.Deliver(2, 1, len(s.InFlight(2, 1))-1)
	for _, id := range []protocol.ID{1, 2} {
		s.Step(id, protocol.Input{Kind: protocol.Suspect, From: 0})
	}
	s.Settle()
	return alike(s, "a", "b")
}

// lose loses the messages of a kind from one process to another.
func lose(s *algotest.System[Message], from, to protocol.ID, kind uint8) {
	for k := len(s.InFlight(from, to)) - 1; k >= 0; k-- {
		if s.InFlight(from, to)[k].Kind == kind {
			s.Drop(from, to, k)
		}
	}
}

// A process that has voted has no use for a state with more than that, and waits for the decision without
// asking again and again.
func TestVotedWaits(t *testing.T) { tell(t, votedWaits) }

func votedWaits(a protocol.Algorithm[Message]) string {
	s := frugal(a, 3, 1)
	s.Try(0)
	for _, op := range []string{"a", "b"} {
		s.Issue(0, op)
		exchange(s, 0, 1)
	}
	s.Step(2, protocol.Input{Kind: protocol.Suspect, From: 0})
	s.Deliver(2, 1, 0)
	s.Decide(0, 0)
	for id := range protocol.ID(3) {
		s.Decided(id) // 2 lacks a, and ends the next epoch, too
	}
	exchange(s, 0, 1)
	s.Issue(0, "c")
	exchange(s, 0, 1)
	s.Step(2, protocol.Input{Kind: protocol.Restore, From: 0, Arg: 1})
	for _, kind := range []uint8{Invoke, Ack, NewEp} { // still on their way
		lose(s, 0, 2, kind)
		lose(s, 2, 0, kind)
	}
	before := s.Kinds[State]
	for k := 0; k < 100 && len(s.InFlight(0, 2))+len(s.InFlight(2, 0)) > 0; k++ {
		from, to := protocol.ID(0), protocol.ID(2)
		if len(s.InFlight(from, to)) == 0 {
			from, to = to, from
		}
		s.Deliver(from, to, 0)
	}
	if got := s.Kinds[State] - before; got != 1 {
		return fmt.Sprintf("cost by story, %d states are sent, want 1", got)
	}
	return ""
}
