package tokengme

import (
	"slices"
	"testing"

	"github.com/poundlock/poundlock/protocol"
)

func (s story) member(id protocol.ID) *Process { return s.Procs[id].(*Process) }

// Section 3.2: the next session takes all requests for its group, and the first of them
// gets the primary token. The others go along in the token, in their order and older.
func TestBatch(t *testing.T) { test(t, batchByStory) }

func batchByStory() {
	c := members(5)
	c.Options = map[string]int64{"selection": FirstCome}
	s := begin(Algorithm, c, 0)
	for _, x := range []struct {
		id    protocol.ID
		group string
	}{{0, "a"}, {1, "b"}, {2, "b"}, {4, "d"}, {3, "c"}} {
		s.want(x.id, x.group)
		s.Settle()
	}
	s.inside(0)
	s.Exit(0)
	s.Settle()
	s.inside(1, 2)
	if !s.member(1).token.Primary {
		wrong("the primary token is not at 1, whose request came first")
	}
	for _, e := range s.member(1).token.Queue {
		if e.Age != 1 {
			wrong("a request that has waited for one session has an age of %d", e.Age)
		}
	}
	s.Exit(2)
	s.Exit(1)
	s.Settle()
	s.inside(4)
	s.Exit(4)
	s.Settle()
	s.inside(3)
}

// A secondary token is kept as long as nobody is known to want another group, whether it is
// in use or not.
func TestKept(t *testing.T) { test(t, keptByStory) }

func keptByStory() {
	const n = 4
	s := begin(Algorithm, members(n), 0)
	s.want(0, "a")
	s.Settle()
	s.want(1, "a")
	s.Settle()
	s.Exit(1)
	s.costs(n, "another request for the group of an idle token", func() { s.want(2, "a") })
	s.inside(0, 2)
	// The token of 1 does not say that 2 has been served.
	s.costs(0, "another entry of 1", func() { s.want(1, "a"); s.Exit(1) })
	s.costs(n-1+n-1, "a request for another group, which ends the session of 1", func() { s.want(3, "b") })
}

// A secondary token that is issued late says that it is safe, if it is, so that its holder
// does not wait for RELEASEs that have not come.
func TestLatecomer(t *testing.T) { test(t, latecomerByStory) }

func latecomerByStory() {
	s := begin(Algorithm, members(4), 0)
	s.want(0, "a")
	s.Settle()
	s.want(1, "a")
	s.Settle()
	s.want(2, "b")
	s.Settle()
	s.Exit(0)
	s.Deliver(0, 2, 0)
	s.inside(1)
	s.Exit(1)
	s.Deliver(1, 2, 0)
	s.inside(2)
	s.want(3, "b")
	s.Deliver(3, 2, 0)
	s.Deliver(2, 3, 0) // before the RELEASE of 1
	s.inside(2, 3)
}

// A user inside hears of each request for which its session ends: the first that comes, with either token, and that which came with its
// token. It hears nothing of those who share.
func TestWanted(t *testing.T) { test(t, wantedByStory) }

func wantedByStory() {
	s := begin(Algorithm, members(4), 0)
	told := func(who ...protocol.ID) {
		slices.Sort(s.Wanted)
		if got := slices.Compact(s.Wanted); !slices.Equal(got, who) {
			wrong("%v are told that somebody waits, want %v", got, who)
		}
		s.Wanted = nil
	}
	for id := range protocol.ID(3) {
		s.want(id, "a")
		s.Settle()
	}
	s.inside(0, 1, 2)
	told()
	s.want(3, "b")
	s.Settle()
	told(0, 1, 2)
	for id := range protocol.ID(3) {
		s.Exit(id)
	}
	s.want(0, "a")
	s.Deliver(0, 3, 0)
	s.Settle()
	s.inside(3)
	told(3)
	c := begin(WithClients, members(1), 2)
	c.want(1, "a")
	c.Settle()
	c.want(2, "b")
	c.Settle()
	if len(c.Wanted) > 0 {
		wrong("a member with clients tells itself that somebody waits")
	}
}

// A RELEASE of a session overtakes one of the session before, and both of them the token.
func TestOvertaken(t *testing.T) { test(t, overtakenByStory) }

func overtakenByStory() {
	s := begin(Algorithm, members(5), 0)
	s.want(0, "a")
	s.Settle()
	s.want(1, "a")
	s.Settle()
	for id := range protocol.ID(3) {
		s.want(2+id, "b")
		s.Settle()
	}
	s.Exit(0)
	s.Deliver(0, 2, 0)
	s.Deliver(0, 4, 0)
	s.Exit(1)
	s.Deliver(1, 2, 0)
	s.Deliver(1, 4, 0)
	s.inside(2, 4)
	s.want(0, "c")
	s.Deliver(0, 4, 0)
	s.Exit(4)
	s.Deliver(4, 3, 0) // RELEASE of session 2
	s.Deliver(1, 3, 0) // RELEASE of session 1
	s.Deliver(0, 3, 0) // TOKEN of session 2
	s.inside(2, 3)
}

// What a TOKEN says is not changed once it is sent, and has the size that the paper gives.
func TestTokens(t *testing.T) { test(t, tokensByStory) }

func tokensByStory() {
	const n = 3
	sent := func(m Message, fulfilled []uint64, size int) {
		if got := m.Token.Fulfilled; !slices.Equal(got, fulfilled) || ints(m) != size {
			wrong("a TOKEN of %v with %d integers, want %v with %d", got, ints(m), fulfilled, size)
		}
	}
	s := begin(Algorithm, members(n), 0)
	s.want(0, "a")
	s.Settle()
	s.want(1, "a")
	s.Deliver(1, 0, 0)
	s.want(2, "a")
	s.Deliver(2, 0, 0)
	sent(s.InFlight(0, 1)[0], []uint64{1, 1, 0}, n+4)
	sent(s.InFlight(0, 2)[0], []uint64{1, 1, 1}, n+4)

	s = begin(Algorithm, members(n), 0)
	s.want(0, "a")
	s.Settle()
	s.want(1, "b")
	s.Settle()
	s.want(2, "c")
	s.Settle()
	s.Exit(0)
	sent(s.InFlight(0, 1)[0], []uint64{1, 1, 0}, n+5+4)
}

// A request that came with the token, and not yet by itself, is as good a reason to let
// nobody else in. A writer asks at once beside readers with the primary token.
func TestKnownByToken(t *testing.T) { test(t, knownByTokenByStory) }

func knownByTokenByStory() {
	const n = 3
	c := members(n)
	c.Options = map[string]int64{"per": 2}
	s := begin(WithClients, c, 2*n) // 3 and 4 at 0; 5 and 6 at 1; 7 and 8 at 2
	s.want(3, "r")
	s.Settle()
	s.want(7, "x")
	s.Deliver(7, 2, 0)
	s.Deliver(2, 0, 0)
	s.want(5, "w")
	s.Deliver(5, 1, 0)
	s.Deliver(1, 0, 0)
	s.Exit(3)
	s.Deliver(3, 0, 0)
	s.Deliver(0, 2, 0)
	s.Deliver(2, 7, 0)
	s.inside(7)
	s.want(8, "x")
	s.Deliver(8, 2, 0)
	if len(s.InFlight(2, 8)) > 0 {
		wrong("8 is let in though the token says that 1 waits")
	}
	s.Settle()
	s.inside(7)
	s.Exit(7)
	s.Settle()
	s.inside(5)
	s.costs(1+n-1, "a writer beside a reader with the primary token", func() { s.want(6, "!w") })
	s.Exit(5)
	s.Settle()
	s.Exit(8)
	s.Settle()
	s.inside(6)
}

// A writer gives up whose request is known. Then the readers wait for each other to leave, and
// for a session in which nobody is inside. A process that waits behind it at its member does not.
func TestGivesUp(t *testing.T) { test(t, givesUpByStory) }

func givesUpByStory() {
	c := members(2)
	c.Options = map[string]int64{"per": 2}
	s := begin(WithClients, c, 4) // 2 and 3 at 0; 4 and 5 at 1
	s.want(2, "r")
	s.Settle()
	s.want(4, "!w")
	s.Settle()
	s.want(5, "r")
	s.Step(4, protocol.Input{Kind: protocol.Cancel})
	s.Settle()
	s.want(3, "r")
	s.Settle()
	s.inside(2)
	// LEAVE; TOKEN to 1 for the writer, who is gone; REQUESTs of 0 and 1; TOKEN to 0; two GRANTs.
	s.costs(7, "the session that nobody wants", func() { s.Exit(2) })
	s.inside(3, 5)
}
