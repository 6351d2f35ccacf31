package tokengme

import (
	"fmt"
	"slices"
	"testing"

	"github.com/poundlock/poundlock/algo/algotest"
	"github.com/poundlock/poundlock/protocol"
)

// A story is a system stepped by hand. What it finds wrong panics with a fault.
type story struct {
	*algotest.System[Message]
}

type fault string

// told returns what is wrong in a story, "" if nothing is.
func told(tell func()) (wrong string) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case fault:
			wrong = string(r)
		default:
			wrong = fmt.Sprintf("model by story, %v", r)
		}
	}()
	tell()
	return ""
}

func test(t *testing.T, tell func()) {
	t.Helper()
	if wrong := told(tell); wrong != "" {
		t.Error(wrong)
	}
}

func wrong(format string, args ...any) {
	panic(fault("service by story, " + fmt.Sprintf(format, args...)))
}

func begin(a protocol.Algorithm[Message], c protocol.Config, clients int) story {
	return story{algotest.NewSystem(a, c, clients)}
}

func (s story) want(id protocol.ID, groups string) {
	s.Step(id, protocol.Input{Kind: protocol.Try, Data: groups})
}

func (s story) inside(ids ...protocol.ID) {
	if got := s.Inside(); !slices.Equal(got, ids) {
		wrong("inside are %v, want %v", got, ids)
	}
}

// costs says how many messages it takes until nothing is on its way any more.
func (s story) costs(want int, what string, do func()) {
	before := s.Sent
	do()
	s.Settle()
	if got := s.Sent - before; got != want {
		wrong("%s took %d messages, want %d", what, got, want)
	}
}

func members(n int) protocol.Config { return protocol.Config{N: n} }

// Mittal & Mohan 2007, theorem 8: at most 2n-1 messages an entry. Without contention it is
// n, n-1 for the holder of the primary token, and 0 with a token of the group.
func TestMessages(t *testing.T) { test(t, messagesByStory) }

func messagesByStory() {
	const n = 5
	s := begin(Algorithm, members(n), 0)
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
func TestExclusive(t *testing.T) { test(t, exclusiveByStory) }

func exclusiveByStory() {
	for _, group := range []string{"!w", ""} {
		s := begin(Algorithm, members(3), 0)
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

// Sections 3.2 and 5.1: while the holder of the primary token is inside, it issues secondary
// ones though a conflicting request waits, or not. Either way it stops when it leaves.
func TestAdmission(t *testing.T) { test(t, admissionByStory) }

func admissionByStory() {
	for admission := range int64(2) {
		c := members(4)
		c.Options = map[string]int64{"admission": admission}
		s := begin(Algorithm, c, 0)
		s.want(0, "a")
		s.Settle()
		s.want(1, "b")
		s.Settle()
		s.want(2, "a")
		s.Settle()
		if admission == Open {
			s.inside(0, 2)
			s.Exit(2)
		}
		s.inside(0)
		s.Exit(0)
		s.want(3, "a")
		s.Settle()
		s.inside(1)
	}
}

// Section 5.1: a request for several groups is served by any of them, and who holds a token
// of one of them does not take it for a conflict.
func TestSeveral(t *testing.T) { test(t, severalByStory) }

func severalByStory() {
	const n = 4
	s := begin(Several, members(n), 0)
	s.want(0, "a")
	s.costs(n, "a request for a or b", func() { s.want(1, "a,b") })
	s.inside(0, 1)
	s.want(2, "b") // from now on nobody gets a token of a
	s.costs(n-1, "a request for a or c", func() { s.want(3, "a,c") })
	s.inside(0, 1)
	s.costs(n-1, "the exit of who knows of b", func() { s.Exit(1) })
	s.costs(1, "the exit of who holds the primary token", func() { s.Exit(0) })
	s.inside(2)
}

// A process that waits behind somebody else at its process does not when that one gives up. A
// LEAVE may overtake its ASK, and a GRANT may find that its try is over.
func TestClients(t *testing.T) { test(t, clientsByStory) }

func clientsByStory() {
	c := members(2)
	c.Options = map[string]int64{"per": 3}
	s := begin(WithClients, c, 6) // 2, 3 and 4 at 0; 5, 6 and 7 at 1
	s.want(2, "r")
	s.Settle()
	s.want(3, "!w")
	s.Settle()
	s.want(4, "r") // comes after a writer
	s.Settle()
	s.inside(2)
	s.Exit(2)
	s.Settle()
	s.inside(3)
	s.Exit(3)
	s.Settle()
	s.inside(4)
	s.costs(2, "an entry beside it", func() { s.want(2, "r") }) // ASK, GRANT
	s.inside(2, 4)
	s.want(6, "r")
	s.Settle()
	s.inside(2, 4, 6)
	s.want(5, "!w") // waits for 6, who holds a secondary token
	s.want(7, "r")
	s.Settle()
	s.inside(2, 4, 6)
	s.Step(5, protocol.Input{Kind: protocol.Cancel})
	s.Settle()
	s.inside(2, 4, 6, 7)
	s.want(5, "!w")
	s.Step(5, protocol.Input{Kind: protocol.Cancel})
	s.Deliver(5, 1, 1) // before the ASK
	s.Settle()
	s.want(5, "r")
	s.Deliver(5, 1, 0)
	s.Step(5, protocol.Input{Kind: protocol.Cancel})
	s.Settle()
	s.inside(2, 4, 6, 7)
	for id, p := range s.Procs[:2] {
		if p := p.(*Process); len(p.waiting)+len(p.left) > 0 {
			wrong("member %d still knows of %d who wait, %d who left", id, len(p.waiting), len(p.left))
		}
	}
	s.unfenced(2)
}

// unfenced says where one of n members counts fencing tokens.
func (s story) unfenced(n protocol.ID) {
	for id := range n {
		if got := s.member(id).token.Fence; got != 0 {
			wrong("member %d has come to fencing token %d", id, got)
		}
	}
}

// The model excludes these, and a process that meets them panics.
func refusals() []func() {
	type event = protocol.Event[Message]
	meets := func(a protocol.Algorithm[Message], id protocol.ID, events ...event) func() {
		return func() {
			p := a.New(id, members(2))
			var out protocol.Out[Message]
			for _, e := range events {
				p.Step(e, &out)
			}
		}
	}
	input := func(kind protocol.Kind) event { return event{Input: protocol.Input{Kind: kind, Data: "a"}} }
	message := func(from protocol.ID, m Message) event {
		return event{Input: protocol.Input{Kind: protocol.Receive, From: from}, Msg: m}
	}
	token := func(from protocol.ID, n int) event {
		return message(from, Message{Kind: Pass, Token: &Token{Fulfilled: make([]uint64, n)}})
	}
	kind := func(from protocol.ID, k uint8) event { return message(from, Message{Kind: k}) }
	ask := func(number uint64, groups protocol.Groups) event {
		return message(2, Message{Kind: Ask, Number: number, Groups: groups})
	}
	resetting := func() {
		p := newProcess(0, members(2), form{bounded: true, Info: Bounded.Info})
		p.missing = 1
		var out protocol.Out[Message]
		p.Step(kind(1, AckRSN), &out)
	}
	return []func(){
		meets(Algorithm, 0, token(1, 2)), meets(Algorithm, 1, token(0, 2)), meets(Algorithm, 1, input(protocol.Try), token(0, 1)),
		meets(WithClients, 0, ask(1, "r"), ask(2, "!w"), token(1, 2)),
		meets(Algorithm, 0, kind(1, AckRSN)), meets(Algorithm, 0, kind(1, ResetRSN)), meets(Algorithm, 0, kind(1, ResetSSN)),
		meets(Bounded, 0, kind(1, AckRSN)), meets(Bounded, 0, kind(1, AckSSN)), resetting,
		meets(Bounded, 0, message(1, Message{Kind: ResetSSN, Number: 9}), message(1, Message{Kind: ResetSSN, Number: 9})),
		meets(Algorithm, 0, kind(1, Ask)), meets(Algorithm, 0, kind(1, Grant)),
		meets(WithClients, 0, message(2, Message{Kind: Request, Number: 1})),
		meets(WithClients, 2, kind(0, Ask)), meets(WithClients, 0, input(protocol.Try)),
		meets(Algorithm, 0, input(protocol.Exit)), meets(Algorithm, 0, input(protocol.Drain)),
		meets(Algorithm, 0, input(protocol.Try), input(protocol.Drain)), meets(WithClients, 2, input(protocol.Drain)),
	}
}

func TestRefusals(t *testing.T) {
	for i, f := range refusals() {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("number %d happens without a panic", i)
				}
			}()
			f()
		}()
	}
}
