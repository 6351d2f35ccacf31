package tokengme

import (
	"testing"

	"github.com/poundlock/poundlock/protocol"
)

// A session of the form with bounded numbers gives a process one token, and who asks for
// another one waits for the next session, or there would be no bound on the tokens of one.
func TestServed(t *testing.T) { test(t, servedByStory) }

func servedByStory() {
	for _, a := range []protocol.Algorithm[Message]{Algorithm, Bounded} {
		again := []protocol.ID{0, 1}
		if a.Variant == Bounded.Variant {
			again = again[:1]
		}
		s := begin(a, members(4), 0)
		s.want(0, "a")
		s.Settle()
		s.want(1, "a")
		s.Settle()
		s.inside(0, 1)
		s.want(2, "b")
		s.Settle()
		s.Exit(1)
		s.want(1, "a")
		s.Settle()
		s.inside(again...)
	}
	s := begin(Bounded, members(4), 0)
	s.want(0, "a")
	s.Settle()
	s.want(1, "b")
	s.want(2, "b")
	s.Settle()
	s.Exit(0)
	s.Settle()
	s.inside(1, 2)
	s.want(3, "c")
	s.Settle()
	s.Exit(2)
	s.want(2, "b")
	s.Settle()
	s.inside(1) // the batch counts, too
}

// Section 5.2: each kind of reset takes 2(n-1) messages, and comes after smax requests of a
// process, or after smax sessions, and not before.
func TestResets(t *testing.T) { test(t, resetsByStory) }

func resetsByStory() {
	const n, smax, rounds = 3, 3, 12
	c := members(n)
	c.Options = map[string]int64{"smax": smax}
	s := begin(Bounded, c, 0)
	for k := range rounds {
		id := protocol.ID(k % 2)
		s.want(id, string(rune('a'+k%2)))
		s.Settle()
		s.inside(id)
		s.Exit(id)
	}
	// Two processes have made six requests each, and a reset begins sessions 4, 7 and 10.
	for kind, want := range map[uint8]int{ResetRSN: 4 * (n - 1), AckRSN: 4 * (n - 1), ResetSSN: 3 * (n - 1), AckSSN: 3 * (n - 1)} {
		if got := s.Kinds[kind]; got != want {
			wrong("%d messages %s, want %d", got, messages[kind].Name, want)
		}
	}
	s.want(2, "!w")
	s.Settle()
	s.inside(2)
	s.unfenced(n)
}
