package tokengme

import (
	"slices"
	"testing"

	"github.com/poundlock/poundlock/algotest"
	"github.com/poundlock/poundlock/protocol"
)

// A story is a system stepped by hand.
type story struct {
	*algotest.System[Message]
	t *testing.T
}

func begin(t *testing.T, a protocol.Algorithm[Message], n, clients int) story {
	return story{algotest.NewSystem(a, protocol.Config{N: n}, clients), t}
}

func (s story) want(id protocol.ID, groups string) {
	s.Step(id, protocol.Input{Kind: protocol.Try, Data: groups})
}

func (s story) inside(ids ...protocol.ID) {
	s.t.Helper()
	if got := s.Inside(); !slices.Equal(got, ids) {
		s.t.Fatalf("inside are %v, want %v", got, ids)
	}
}

// costs says how many messages it takes until nothing is on its way any more.
func (s story) costs(want int, what string, do func()) {
	s.t.Helper()
	before := s.Sent
	do()
	s.Settle()
	if got := s.Sent - before; got != want {
		s.t.Errorf("%s took %d messages, want %d", what, got, want)
	}
}

// Mittal & Mohan 2007, theorem 8: at most 2n-1 messages an entry. Without contention it is
// n, n-1 for the holder of the primary token, and 0 with a token of the group.
func TestMessages(t *testing.T) {
	const n = 5
	s := begin(t, Algorithm, n, 0)
	s.costs(n-1, "the first entry of the holder of the primary token", func() { s.want(0, "a") })
	s.costs(n, "an entry into the group of the primary token", func() { s.want(1, "a") })
	s.inside(0, 1)
	s.costs(0, "two exits", func() { s.Exit(0); s.Exit(1) })
	s.costs(0, "entries with tokens that are held", func() { s.want(0, "a"); s.want(1, "a") })
	s.costs(0, "two exits", func() { s.Exit(0); s.Exit(1) })
	s.costs(n+n-1, "an entry that ends a session with one secondary token", func() { s.want(2, "b") })
	s.inside(2)
	s.Exit(2)
	s.costs(n, "an entry of another group", func() { s.want(3, "c") })
	s.Exit(3)
	s.costs(n-1, "an entry of the holder of the primary token into another group", func() { s.want(3, "d") })
	s.inside(3)
}

// An exclusive group is for one: the next one waits, also for the same name, and the empty
// group makes the algorithm that of Suzuki and Kasami.
func TestExclusive(t *testing.T) {
	for _, group := range []string{"!w", ""} {
		s := begin(t, Algorithm, 3, 0)
		s.want(0, group)
		s.want(1, group)
		s.Settle()
		s.inside(0)
		s.want(2, group)
		s.Settle()
		s.Exit(0)
		s.Settle()
		s.inside(1)
		s.Exit(1)
		s.Settle()
		s.inside(2)
		s.Exit(2)
		s.costs(0, "an entry with the token", func() { s.want(2, group); s.Exit(2) })
		s.costs(3, "an entry without it", func() { s.want(0, group) })
	}
}
