package wme

import (
	"fmt"
	"slices"
	"testing"

	"github.com/poundlock/poundlock/algotest"
	"github.com/poundlock/poundlock/protocol"
)

var forms = []protocol.Algorithm[Message]{First, Second}

func system(a protocol.Algorithm[Message], n int) *algotest.System[Message] {
	return algotest.NewSystem(a, protocol.Config{N: n}, 0)
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
func TestCosts(t *testing.T) {
	for _, a := range forms {
		for n := 2; n <= 9; n++ {
			s := system(a, n)
			want := func(what string, got []int, want map[uint8]int) {
				t.Helper()
				if w := kinds(want); !slices.Equal(got, w) {
					t.Errorf("%s, N=%d, %s: %v, want %v", a.Name, n, what, got, w)
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
			if in := s.Inside(); !slices.Equal(in, []protocol.ID{0}) {
				t.Errorf("%s, N=%d: %v are inside", a.Name, n, in)
			}
		}
	}
}

// alike says what is wrong unless all live copies have executed these operations.
func alike(s *algotest.System[Message], ops ...string) string {
	for id, c := range s.Copies {
		if s.Procs[id] != nil && !slices.Equal(c, ops) {
			return fmt.Sprintf("process %d has executed %q, want %q", id, c, ops)
		}
	}
	return ""
}

// A falsely suspected owner: what it has open is in the decision, and then it has an outcome
// before it is ejected; or it is not, and is never executed.
func TestEjected(t *testing.T) {
	for _, a := range forms {
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
				t.Errorf("%s, logged %v: the old owner is in section %d", a.Name, logged, got)
			}
			if fault := alike(s, ops...); fault != "" {
				t.Errorf("%s, logged %v: %s", a.Name, logged, fault)
			}
		}
	}
}

// A process that comes back takes part once it has got the object, and counts for no majority
// before.
func TestReturn(t *testing.T) {
	for _, a := range forms {
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
			t.Errorf("%s: %s", a.Name, fault)
		}
		s.Crash(1)
		s.Issue(0, "c")
		s.Settle()
		if fault := alike(s, "a", "b", "c"); fault != "" {
			t.Errorf("%s: %s", a.Name, fault)
		}
		s.Exit(0)
		s.Try(2)
		s.Settle()
		if in := s.Inside(); !slices.Equal(in, []protocol.ID{2}) {
			t.Errorf("%s: %v are inside", a.Name, in)
		}
	}
}
