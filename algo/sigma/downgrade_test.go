package sigma

import (
	"slices"
	"testing"
	"time"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
)

// lowering begins with one inside who is alone and may come down to r, and another one who waits for r.
func lowering(c *check.Config) {
	after("downgrade.txt")(c)
	c.Entries, c.Down = nil, nil
	c.Wants = [][]protocol.Groups{{"!r"}, {"r"}}
	c.Downgrade, c.Spaced = true, 1
}

// falling lets holders in !r come down to r.
func falling(c *check.Config) {
	rooms(c)
	c.Wants, c.Downgrade = [][]protocol.Groups{{"r", "!r"}}, true
}

// downgrade lets c, who is inside alone, share with those of a group.
func (w *world) downgrade(c protocol.ID, g protocol.Group) { w.input(c, protocol.NewDowngrade(g)) }

// lone is a world in which c1 is inside, alone: of four servers s1, s2 and s3 support it, and its request to s4 is on
// its way.
func lone(clients int, change ...func(*world)) (*world, protocol.ID) {
	w := newWorld(Algorithm, 4, clients, change...)
	w.unsound = true
	c := w.client(1)
	w.tryIn(c, "!w")
	for j := s1; j <= s3; j++ {
		w.ask(c, j)
	}
	w.inside(c)
	return w, c
}

// downgrades are stories of those who were alone and share.
var downgrades = []story{
	{"who waits for the group comes in, also behind somebody who waits to be alone, and who was alone hears of the latter", func() {
		w, c := lone(4)
		w.settle()
		for k, g := range []protocol.Groups{"r", "!w", "r"} {
			w.tryIn(w.client(2+k), g)
		}
		w.settle()
		w.inside(c)
		w.downgrade(c, "r")
		w.settle()
		w.inside(c, w.client(2), w.client(4))
		want(slices.Contains(w.heard, c), "told are %v, and not c1", w.heard)
		w.exit(w.client(2))
		w.tryIn(w.client(2), "r") // later than the writer
		w.settle()
		w.inside(c, w.client(4))
		w.exit(c)
		w.settle()
		w.inside(w.client(4))
		w.exit(w.client(4))
		w.settle()
		w.inside(w.client(3))
		w.exit(w.client(3))
		w.settle()
		w.inside(w.client(2))
		w.exit(w.client(2))
		w.settle()
		for j := range protocol.ID(4) {
			want(w.server(j).owner == (entry{}), "s%d supports somebody", j+1)
		}
	}},
	{"a client that keeps comes down, also where its request waits, and then does no more", func() {
		w := newWorld(Algorithm, 4, 3)
		keeper, reader, writer := w.client(1), w.client(2), w.client(3)
		w.unsound = true
		w.tryIn(keeper, "!!w")
		for j := range protocol.ID(3) {
			w.ask(keeper, j)
		}
		w.tryIn(writer, "!w")
		w.deliver(writer, s4, Request)
		w.deliver(keeper, s4, Request) // it waits there, earlier or not
		w.tryIn(reader, "r")
		w.settle()
		w.inside(keeper)
		w.downgrade(keeper, "r")
		w.settle()
		w.inside(keeper, reader)
		for j := range protocol.ID(4) {
			w.server(j).group() // whoever it supports
			for _, x := range w.server(j).queue.all() {
				want(!keeps(x.group()), "at s%d a request waits alone", j+1)
			}
		}
		w.exit(keeper)
		w.exit(reader)
		w.settle()
		w.inside(writer)
	}},
	{"nobody waits: nobody is told, and whoever comes for the group is let in at once", func() {
		w, c := lone(3)
		w.settle()
		w.downgrade(c, "r")
		w.wantFlying(c, "DOWNGRADE(1 group=r)", "DOWNGRADE(1 group=r)", "DOWNGRADE(1 group=r)", "DOWNGRADE(1 group=r)")
		w.settle()
		want(len(w.heard) == 0, "told are %v", w.heard)
		want(w.owner[s1] == protocol.Act{}, "s1 tells that it is alone")
		w.tryIn(w.client(2), "r")
		w.tryIn(w.client(3), "!w")
		w.settle()
		w.inside(c, w.client(2))
		want(slices.Contains(w.heard, c), "told are %v", w.heard)
		w.receive(s1, c, Message{Kind: Response, Stage: Wanted, Owner: c, Time: 1, Inc: 1})
		want(w.flying(c, s1) == "", "it tells a server %q that knows", w.flying(c, s1))
	}},
	{"those who watch a server hear who goes on, and who does not", func() {
		w := newWorld(Algorithm, 4, 2)
		earlier, later := w.client(1), w.client(2)
		w.tryIn(later, "!w")
		w.settle()
		w.tryIn(earlier, "r")
		w.settle()
		w.downgrade(later, "r")
		w.unsound = true
		w.settle() // each step compares
		w.inside(earlier, later)
		w = newWorld(Algorithm, 4, 1)
		w.receive(w.client(1), s1, Message{Kind: Request, Time: 1})
		w.receive(w.client(1), s1, Message{Kind: Request, Time: 2, Group: share("r")})
	}},
	{"a server that heard of it before the request hears of it again, in answer to whatever it says then", func() {
		w, c := lone(2)
		w.downgrade(c, "r")
		w.deliver(c, s4, Downgrade) // it knows nothing of c1: that would be a support for nobody when RELEASE came first
		want(w.server(s4).owner == (entry{}), "s4 supports %v", w.server(s4).owner)
		w.ask(c, s4)
		want(w.flying(c, s4) == "DOWNGRADE(1 group=r)", "to s4: %q", w.flying(c, s4))
		w.settle()
		want(w.server(s4).group() == share("r"), "s4 thinks that it is alone")
		want(w.procs[c].(*Client).supporters() == 4, "%d servers support it", w.procs[c].(*Client).supporters())
	}},
	{"what a server gave a client that keeps counts when it has come down", func() {
		w := newWorld(Algorithm, 4, 1)
		c := w.client(1)
		w.tryIn(c, "!!w")
		for j := s1; j <= s3; j++ {
			w.ask(c, j)
		}
		w.deliver(c, s4, Request)
		w.downgrade(c, "r")
		w.deliver(s4, c, Response)
		want(w.procs[c].(*Client).supporters() == 4, "%d servers support it", w.procs[c].(*Client).supporters())
		w.settle()
		want(w.server(s4).group() == share("r"), "s4 is in %s", named(w.server(s4).group()))
	}},
	{"a request that waits at a server that has restarted does not wait for its own group", func() {
		w, c := lone(2)
		w.settle()
		w.amnesia(1)
		w.restore(c, 0) // it asks again, and is alone still
		w.tryIn(w.client(2), "r")
		w.ask(w.client(2), s1)
		w.downgrade(c, "r")
		w.deliver(c, s1, Downgrade)
		w.settle()
		w.inside(c, w.client(2))
		want(w.supported(c) == 4, "%d supports", w.supported(c))
		want(!slices.ContainsFunc(w.procs[:4], func(p protocol.Process[Message]) bool { return p.(*Server).queue.len() > 0 }), "it waits")
	}},
	{"a server where its request waits answers it once", func() {
		w, c := lone(2)
		w.tryIn(w.client(2), "!w")
		w.ask(w.client(2), s4)
		w.ask(c, s4)
		w.downgrade(c, "r")
		w.repeat(c, s4, Downgrade)
		want(w.flying(s4, c) == "RESPONSE(#5@1 inc=1)", "s4 answers %q", w.flying(s4, c))
		w.deliver(c, s4, Downgrade)
		want(w.flying(s4, c) == "RESPONSE(#5@1 inc=1)", "s4 answers %q", w.flying(s4, c))
	}},
	{"of those who wait only the one that came down joins", func() {
		w, c := lone(3)
		w.settle()
		w.amnesia(1)
		w.tryIn(w.client(2), "r")
		w.ask(w.client(2), s1)
		w.tryIn(w.client(3), "!w")
		w.deliver(w.client(3), s1, Request)
		w.restore(c, 0)
		w.deliver(c, s1, Request)
		w.downgrade(c, "r")
		w.deliver(c, s1, Downgrade)
		waiters := w.server(s1).queue.all()
		want(len(waiters) == 1 && waiters[0].client == w.client(3), "at s1 wait %v", waiters)
		sent := w.sent
		w.receive(c, s1, Message{Kind: Downgrade, Time: 1, Group: share("r")})
		want(w.sent == sent, "it answers one that comes again")
	}},
	{"one that RELEASE has overtaken, or of another request, changes nothing", func() {
		w, c := lone(2)
		w.settle()
		w.tryIn(w.client(2), "r")
		w.settle()
		w.downgrade(c, "r")
		w.exit(c)
		w.deliver(c, s1, Release)
		w.same(s1, func() { w.deliver(c, s1, Downgrade) })
		w.settle()
		w.tryIn(c, "!w")
		w.same(s1, func() { w.receive(c, s1, Message{Kind: Downgrade, Time: 1, Group: share("s")}) })
		w.exit(w.client(2))
		w.settle()
		w.inside(c)
		w.same(s1, func() { w.receive(c, s1, Message{Kind: Downgrade, Time: 1, Group: share("s")}) })
	}},
	{"whoever shares already, or would be alone again, stays as it is", func() {
		w, c := lone(1)
		w.settle()
		for _, g := range []protocol.Group{"", "!r"} {
			w.same(c, func() { w.downgrade(c, g) })
		}
		w.downgrade(c, "r")
		w.settle()
		for _, g := range []protocol.Group{"r", "s", "", "!r"} {
			w.same(c, func() { w.downgrade(c, g) })
		}
		want(len(w.flights) == 0, "it sends %d messages", len(w.flights))
		w.exit(c)
		w.settle()
		w.tryIn(c, "r")
		w.settle()
		w.same(c, func() { w.downgrade(c, "s") })
		sent := w.sent
		w.receive(s1, c, Message{Kind: Response, Owner: 77, Time: 1, Inc: 1})
		w.suspect(c, s1)
		w.restore(c, 0)
		w.ask(c, s1)
		want(w.sent == sent+2, "it tells its group once more") // REQUEST and RESPONSE
	}},
	{"a server that drains keeps it, and lets nobody in beside it", func() {
		w, c := lone(2)
		w.settle()
		w.input(s1, protocol.Input{Kind: protocol.Drain})
		w.downgrade(c, "r")
		w.settle()
		w.tryIn(w.client(2), "r")
		w.settle()
		w.inside(c, w.client(2))
		want(w.supported(c) == 4 && w.supported(w.client(2)) == 3, "%d and %d supports", w.supported(c), w.supported(w.client(2)))
	}},
	{"whoever comes in beside it has a larger token, and so has whoever comes after them", func() {
		for _, behind := range []bool{false, true} {
			w := newWorld(Algorithm, 4, 4, withClock, option("delay", hop), option("fence", FenceOn), option("eps", fenceEps))
			w.unsound = true
			w.run(20 * time.Second)
			first, second, third, writer := w.client(1), w.client(2), w.client(3), w.client(4)
			w.latency = func(from, _ protocol.ID) int64 { // its request was made before, and arrives last
				if from == third {
					return 30 * hop
				}
				return hop
			}
			w.tryIn(third, "r")
			w.run(time.Millisecond)
			w.tryIn(first, "!w")
			w.run(10 * time.Millisecond)
			w.inside(first)
			token := w.token[first]
			w.downgrade(first, "r")
			if behind {
				w.run(10 * time.Millisecond)
			}
			w.tryIn(second, "r")
			w.run(time.Second)
			w.inside(first, second, third)
			for _, c := range []protocol.ID{second, third} {
				want(w.token[c] > token, "%d has token %d beside %d", c, w.token[c], token)
			}
			largest := max(w.token[second], w.token[third])
			w.tryIn(writer, "!w")
			for _, c := range []protocol.ID{first, second, third} {
				w.exit(c)
			}
			w.run(time.Second)
			w.inside(writer)
			want(w.token[writer] > largest, "the writer has token %d after %d", w.token[writer], largest)
		}
	}},
}

func TestDowngrades(t *testing.T) { test(t, downgrades) }

// Whoever has come down to a group outlives a loss as before, whatever it has been told and has told meanwhile.
func TestLossesWhileComingDown(t *testing.T) {
	k := model(4, nil)
	lowering(&k)
	oneLoss(&k)
	holds(t, k)
}
