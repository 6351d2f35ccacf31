package sigma

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/poundlock/poundlock/protocol"
)

// restart restarts server s1, s2, .. empty, and tells all clients.
func (w *world) restart(server int) {
	w.amnesia(server)
	for c := w.config.N; c < len(w.procs); c++ {
		w.restore(protocol.ID(c), server-1)
	}
}

// supported is how many servers a client counts on.
func (w *world) supported(c protocol.ID) int {
	return len(w.procs[c].(protocol.Inspector).Inspect().Supports)
}

// rival restarts s1 under holder c1, of four servers, and lets it support c2,
// which waits, before c1 has asked it again.
func rival(change ...func(*world)) (w *world, c1, c2 protocol.ID) {
	w, c1 = holder(change...)
	c2 = w.client(2)
	w.try(c2)
	w.settle()
	w.restart(1)
	w.deliver(c2, s1, Request)
	return w, c1, c2
}

// refreshes are the stories of holders that rebuild their supports.
var refreshes = []story{
	{"a holder asks a server that restarted again, in its old epoch, and counts the answer", func() {
		w, c := holder()
		w.restart(1)
		want(w.flying(c, s1) == "REQUEST(1 inside)", "to the new life of s1: %q", w.flying(c, s1))
		want(w.supported(c) == 2, "%d supports before the answer", w.supported(c))
		w.deliver(c, s1, Request)
		want(w.flying(s1, c) == "RESPONSE(#4@1 inc=2 serial=1)", "from it: %q", w.flying(s1, c))
		want(w.supported(c) == 2, "%d supports before the answer has arrived", w.supported(c))
		w.deliver(s1, c, Response)
		want(w.supported(c) == 3, "%d supports, want 3", w.supported(c))
		w.inside(c)
	}},
	{"one hold survives any number of restarts, one after the other", func() {
		for _, n := range []int{4, 7} {
			for _, refresh := range []int64{1, 0} {
				w := newWorld(Algorithm, n, 1, option("refresh", refresh))
				c := w.client(1)
				w.try(c)
				w.settle()
				for k := range 10 * n {
					w.restart(k%n + 1)
					w.settle()
				}
				want((w.users[c] == protocol.InCrit) == (refresh == 1), "n=%d refresh=%d: %v", n, refresh, w.users[c])
			}
		}
	}},
	{"a new lease in the same life of a server is asked for too", func() {
		w, c := holder()
		w.suspect(c, s1)
		w.suspect(s1, c)
		w.restore(c, 0)
		want(w.supported(c) == 2, "%d supports", w.supported(c))
		w.ask(c, s1)
		want(w.supported(c) == 3, "%d supports, want 3", w.supported(c))
	}},
	{"an answer of the life before does not count", func() {
		w, c := holder()
		w.repeat(c, s4, Request)
		w.restart(4)
		w.deliver(s4, c, Response)
		want(w.supported(c) == 3, "%d supports, want 3", w.supported(c))
		w.restart(1)
		w.amnesia(1)
		w.deliver(c, s1, Request)
		w.restart(1)
		w.deliver(s1, c, Response) // of its third life, and it is in its fourth
		want(w.supported(c) == 2, "%d supports, want 2", w.supported(c))
	}},
	{"an answer tells of a new life, too: the old support goes as the new one comes", func() {
		w, c := holder()
		w.amnesia(1)
		w.receive(c, s1, Message{Kind: Request, Time: 1}) // the first REQUEST once more
		w.deliver(s1, c, Response)
		want(w.supported(c) == 3, "%d supports, want 3", w.supported(c))
		want(w.flying(c, s1) == "REQUEST(1 inside)", "c asks again: %q", w.flying(c, s1))
		w.ask(c, s1)
		want(w.supported(c) == 3, "%d supports, want 3", w.supported(c))
	}},
	{"who is ejected does not ask", func() {
		w, c := holder()
		w.amnesia(1)
		w.restore(c, 0)
		w.amnesia(2)
		w.lose(c, s2)
		w.restore(c, 1)
		want(w.users[c] == protocol.InLost, "one support is left, and the holder is not told")
		want(w.flying(c, s2) == "", "who is ejected asks %q", w.flying(c, s2))
		w.amnesia(3)
		w.lose(c, s3)
		w.restore(c, 2)
		want(w.flying(c, s3) == "", "who was ejected asks %q", w.flying(c, s3))
	}},
	{"a waiter that was there first gives the support back, and gets it after the holder", func() {
		w, c1, c2 := rival()
		w.deliver(c1, s1, Request)
		got := w.flying(s1, c2)
		want(got == "RESPONSE(#5@1 inc=2 serial=1) RECALL(1 inc=2 serial=1)", "s1 tells the waiter %q", got)
		w.deliver(s1, c2, Response)
		w.deliver(s1, c2, Recall)
		want(w.flying(c2, s1) == "YIELD(1 serial=1)", "the waiter sends %q", w.flying(c2, s1))
		w.settle()
		want(w.supported(c1) == 4, "the holder has %d supports, want 4", w.supported(c1))
		w.inside(c1)
		w.exit(c1)
		w.settle()
		w.inside(c2)
	}},
	{"a RECALL that overtakes the support is obeyed, and the support then comes too late", func() {
		w, c1, c2 := rival()
		w.deliver(c1, s1, Request)
		w.deliver(s1, c2, Recall)
		w.deliver(c2, s1, Yield)
		w.deliver(s1, c2, Response) // the support that it gave back
		want(!w.procs[c2].(*Client).servers[0].supports(), "it counts what it gave back")
		w.settle()
		want(w.supported(c1) == 4, "the holder has %d supports, want 4", w.supported(c1))
		w.exit(c1)
		w.settle()
		w.inside(c2)
	}},
	{"a RECALL that comes twice is obeyed once", func() {
		w, c1, c2 := rival()
		w.deliver(c1, s1, Request)
		w.deliver(s1, c2, Response)
		w.repeat(s1, c2, Recall)
		w.deliver(s1, c2, Recall)
		want(w.flying(c2, s1) == "YIELD(1 serial=1)", "the waiter sends %q", w.flying(c2, s1))
	}},
	{"a RECALL of a life that is over, of another epoch, or without a lease changes nothing", func() {
		w, c1, c2 := rival()
		w.deliver(c1, s1, Request)
		w.deliver(s1, c2, Response)
		m := w.flights[w.find(s1, c2, Recall)].msg
		w.drop(s1, c2, Recall)
		w.same(c2, func() { w.receive(s1, c2, Message{Kind: Recall, Time: m.Time, Inc: 1, Serial: m.Serial}) })
		w.same(c2, func() { w.receive(s1, c2, Message{Kind: Recall, Time: 2, Inc: 2, Serial: m.Serial}) })
		w.suspect(c2, s1)
		w.same(c2, func() { w.receive(s1, c2, m) })
		want(w.flying(c2, s1) == "", "the waiter sends %q", w.flying(c2, s1))
	}},
	{"a RECALL tells of a new life, and the waiter asks there again", func() {
		w, c1 := holder()
		c2 := w.client(2)
		w.try(c2)
		w.settle()
		w.amnesia(1)
		w.receive(c2, s1, Message{Kind: Request, Time: 1}) // a late one
		w.restore(c1, 0)
		w.deliver(c1, s1, Request)
		w.deliver(s1, c2, Recall)
		want(w.flying(c2, s1) == "REQUEST(1 again) YIELD(1 serial=1)", "the waiter sends %q", w.flying(c2, s1))
		w.settle()
		want(w.supported(c1) == 4, "the holder has %d supports, want 4", w.supported(c1))
	}},
	{"who is inside gives nothing back", func() {
		w, c := holder()
		w.same(c, func() { w.receive(s1, c, Message{Kind: Recall, Time: 1, Inc: 1, Serial: 1}) })
		want(w.flying(c, s1) == "", "a holder sends %q", w.flying(c, s1))
	}},
	{"who is getting its token recorded keeps those who record it, and gives a further one back", func() {
		w, c := slow()
		w.ask(c, s4)
		w.ask(c, s1)
		w.flights = nil
		client := w.procs[c].(*Client)
		for j := s1; j <= s4; j++ {
			m := Message{Kind: Recall, Time: client.time, Inc: client.servers[j].inc, Serial: client.servers[j].serial}
			w.receive(j, c, m)
			want((w.flying(c, j) == "") == client.servers[j].asked, "s%d: %q", j+1, w.flying(c, j))
		}
	}},
	{"a holder comes first also when its request is not the earliest one", func() {
		w, c1, c2 := rival()
		for c := protocol.ID(7); c < 10; c++ { // of clients with slow clocks
			w.server(s1).insert(waiter{entry: entry{request{c, 0}, 0}})
		}
		w.deliver(c1, s1, Request)
		w.deliver(s1, c2, Recall)
		w.deliver(c2, s1, Yield)
		want(w.server(s1).owner.client == c1, "s1 supports %d", w.server(s1).owner.client)
		want(w.server(s1).queue.all()[0].client == 7, "next is %d", w.server(s1).queue.all()[0].client)
	}},
	{"a late REQUEST from before does not put a holder back in the queue", func() {
		for _, order := range [][]Stage{{Inside, First}, {First, Inside}, {Again, Inside, First}} {
			w, c1, c2 := rival()
			for _, stage := range order {
				w.receive(c1, s1, Message{Kind: Request, Time: 1, Stage: stage})
			}
			waiters := w.server(s1).queue.all()
			want(len(waiters) == 1 && waiters[0].inside(), "%v: s1 has %+v", order, waiters)
			want(w.find(s1, c2, Recall) >= 0, "%v: the waiter is told nothing", order)
		}
	}},
	{"a waiter that asks twice still waits its turn", func() {
		w, c1 := holder()
		c2 := w.client(2)
		w.try(c2)
		for _, stage := range []Stage{Again, First} { // the first one was on its way when s1 restarted
			w.receive(c2, s1, Message{Kind: Request, Time: 1, Stage: stage})
		}
		waiters := w.server(s1).queue.all()
		want(len(waiters) == 1 && !waiters[0].inside(), "s1 has %+v", waiters)
		want(w.find(s1, c1, Recall) < 0, "s1 recalls a support for a waiter")
	}},
	{"of two that say that they are inside the owner keeps what it has", func() {
		w, c1, c2 := rival()
		w.receive(c2, s1, Message{Kind: Request, Time: 1, Stage: Inside})
		w.deliver(c1, s1, Request)
		want(w.server(s1).owner.client == c2, "s1 supports %d", w.server(s1).owner.client)
	}},
	{"hand-overs without a restart ask nobody for anything", func() {
		w := newWorld(Algorithm, 4, 3)
		for k := 1; k <= 3; k++ {
			w.loop(w.client(k), 5)
		}
		w.latency = func(from, to protocol.ID) int64 {
			for _, s := range w.flights {
				want(s.msg.Kind != Recall && s.msg.Stage != Inside, "%s", text(s.msg))
			}
			return hop
		}
		w.run(time.Minute)
		want(len(w.grants) == 15, "%d entries", len(w.grants))
	}},
	{"timestamps: a holder and a waiter are not refused for the age of their requests", func() {
		w := newWorld(Algorithm, 4, 2, withClock, option("delay", hop), option("oldest", int64(time.Second)))
		c1, c2 := w.client(1), w.client(2)
		w.try(c1)
		w.run(time.Second)
		w.try(c2)
		w.run(5 * time.Second)
		for k := range 8 {
			w.restart(k%4 + 1)
			w.run(time.Second)
			want(w.supported(c1) == 3+min(1, w.supported(c1)-3), "the holder has %d supports", w.supported(c1))
			want(w.find(s1, c2, Refused) < 0, "refused")
		}
		w.inside(c1)
		asked := w.procs[c2].(*Client).time
		w.exit(c1)
		w.run(time.Second)
		w.inside(c2)
		want(w.procs[c2].(*Client).time == asked, "the waiter lost its place")
	}},
	{"timestamps: a first request is refused for its age, a later one for the future only", func() {
		const oldest = int64(time.Minute)
		w := newWorld(Algorithm, 4, 1, withClock, option("oldest", oldest))
		now, ahead := uint64(w.now), uint64(w.now)+2*uint64(50*time.Millisecond)
		for _, x := range []struct {
			stage   Stage
			time    uint64
			refused bool
		}{
			{First, now - uint64(oldest), false},
			{First, now - uint64(oldest) - 1, true},
			{Again, 1, false},
			{Inside, 1, false},
			{First, ahead, false},
			{First, ahead + 1, true},
			{Again, ahead + 1, true},
			{Inside, ahead + 1, true},
		} {
			w.amnesia(1)
			w.flights = nil
			w.receive(w.client(1), s1, Message{Kind: Request, Time: x.time, Stage: x.stage})
			got := w.find(s1, w.client(1), Refused) >= 0
			want(got == x.refused, "stage %d, time %d: refused %t", x.stage, x.time, got)
		}
	}},
	{"fencing: a grant that shares only refreshed servers with the holder has a larger token", func() {
		for _, slow := range []bool{false, true} {
			w := fenced(2)
			c1, c2 := w.client(1), w.client(2)
			if slow {
				for j := 1; j <= 4; j++ {
					w.restart(j)
				}
			}
			w.try(c1)
			w.run(time.Duration(10 * fenceEps))
			w.inside(c1)
			first := w.token[c1]
			want((first > w.procs[c1].(*Client).time) == slow, "token %d of request %d", first, w.procs[c1].(*Client).time)
			for j := 1; j <= 4; j++ { // each one, so that none of them recorded the token
				w.restart(j)
				w.run(time.Duration(hop) * 3)
				want(w.supported(c1) >= 3, "%d supports", w.supported(c1))
			}
			w.inside(c1)
			w.exit(c1)
			w.try(c2)
			w.run(time.Duration(10 * fenceEps))
			w.inside(c2)
			want(w.token[c2] > first, "the next token is %d after %d", w.token[c2], first)
		}
	}},
	{"a hold through forty restarts, while others come and go, is never lost", func() {
		for _, n := range []int{4, 7} {
			for seed := range uint64(5) {
				random := rand.New(rand.NewPCG(seed, uint64(n)))
				w := newWorld(Algorithm, n, 6, withClock, option("delay", hop), option("fence", FenceOn))
				w.latency = func(protocol.ID, protocol.ID) int64 { return 1 + random.Int64N(2*hop) }
				w.run(time.Second)
				c := w.client(1)
				w.try(c)
				w.run(time.Second)
				w.inside(c)
				for range 40 {
					j := 1 + random.IntN(n)
					w.amnesia(j)
					for _, i := range random.Perm(6) { // news travels at its own pace
						if random.IntN(2) == 0 {
							w.restore(w.client(1+i), j-1)
						}
						w.run(time.Duration(random.Int64N(hop)))
					}
					for k := 1; k <= 6; k++ {
						w.restore(w.client(k), j-1)
					}
					for k := 2; k <= 6; k++ {
						switch other := w.client(k); {
						case w.users[other] == protocol.InRem:
							w.try(other)
						case random.IntN(3) == 0:
							w.cancel(other)
						}
					}
					w.run(20 * time.Duration(hop))
					w.inside(c)
				}
				last := w.token[c]
				w.exit(c)
				w.run(time.Second)
				want(len(w.grants) > 1, "nobody enters after the holder")
				want(w.token[w.grants[1]] > last, "token %d after %d", w.token[w.grants[1]], last)
			}
		}
	}},
}

// servers are the stories of what a server keeps and tells.
var servers = []story{
	{"a queue of any length is in the order of service, holders first, and finds everybody", func() {
		random := rand.New(rand.NewPCG(1, 1))
		q := &queue{}
		var known []waiter // in order
		for step, most := range []int{10, 0, long, long + 1, long / 2, 3 * long, long/2 + 1, long/2 + 9, long / 2, 2 * long, 0} {
			for len(known) != most {
				if len(known) < most {
					e := entry{request{protocol.ID(random.Uint64()), random.Uint64N(50)}, 1}
					w := newWaiter(e, choice{}, random.Uint64N(20), random.IntN(10) == 0)
					q.insert(w)
					known = append(known, w)
					slices.SortFunc(known, func(v, w waiter) int {
						if v.inside() != w.inside() {
							return map[bool]int{true: -1, false: 1}[v.inside()]
						}
						return cmp.Or(cmp.Compare(int64(v.time-v.head), int64(w.time-w.head)), cmp.Compare(v.client, w.client))
					})
				} else {
					i := random.IntN(len(known)) * random.IntN(2)
					want(q.remove(i) == known[i], "another one than waiter %d is removed", i)
					known = slices.Delete(known, i, i+1)
				}
				want(slices.Equal(q.all(), known), "step %d: the queue is %v, want %v", step, q.all(), known)
				for i, w := range known {
					want(q.find(w.client) == i, "step %d: client %d is at %d, want %d", step, w.client, q.find(w.client), i)
				}
				want(q.find(nobody) == -1, "it finds nobody")
				if len(known) > long {
					want(q.index != nil, "%d waiters without an index", len(known))
				}
				if len(known) <= long/2 {
					want(q.index == nil, "%d waiters with an index", len(known))
					want(cap(q.waiters) <= 4*long, "%d waiters in memory for %d", len(known), cap(q.waiters))
				}
			}
		}
	}},
	{"the first one of a long queue leaves without moving the others", func() {
		q := &queue{}
		for c := range protocol.ID(3 * long) {
			q.insert(waiter{entry: entry{request{c, 1}, 0}})
		}
		second := &q.waiters[1]
		q.remove(0)
		want(&q.waiters[0] == second, "it moved the others")
	}},
	{"a short queue stays where it is in memory", func() {
		q := &queue{}
		for c := range protocol.ID(10) {
			q.insert(waiter{entry: entry{request{c, 1}, 0}})
		}
		first := &q.waiters[0]
		q.remove(0)
		want(&q.waiters[0] == first, "it moved")
	}},
	{"a server tells whom it supports, once for each change", func() {
		w, c1 := holder()
		c2 := w.client(2)
		owner := func(c protocol.ID, time uint64) {
			got, told := w.owner[s1]
			want(told && got.To == c && got.Arg == time, "s1 tells of owner %d@%d, want %d@%d", got.To, got.Arg, c, time)
			delete(w.owner, s1)
		}
		owner(c1, 1)
		w.try(c2)
		w.receive(c1, s1, Message{Kind: Request, Time: 1}) // the same support again
		w.deliver(c2, s1, Request)
		_, told := w.owner[s1]
		want(!told, "s1 tells of an owner that is the same")
		w.exit(c1)
		w.deliver(c1, s1, Release)
		owner(c2, 1)
		w.receive(c2, s1, Message{Kind: Release, Time: 1})
		owner(0, 0)
	}},
	{"a first REQUEST that comes again, late, is not refused", func() {
		w := newWorld(Algorithm, 4, 2, withClock, option("oldest", int64(time.Second)))
		first := uint64(w.now)
		for _, c := range []protocol.ID{w.client(1), w.client(2)} { // the owner, and one who waits
			w.receive(c, s1, Message{Kind: Request, Time: first})
		}
		w.now += 5 * int64(time.Second)
		for _, c := range []protocol.ID{w.client(1), w.client(2)} {
			w.receive(c, s1, Message{Kind: Request, Time: first})
			want(w.find(s1, c, Refused) < 0, "client %d is told %q", c, w.flying(s1, c))
		}
	}},
}

// drains are the stories of servers that are about to stop.
var drains = []story{
	{"a draining server keeps its owner until it leaves, and then supports nobody", func() {
		w, c1 := holder()
		c2 := w.client(2)
		w.try(c2)
		w.settle()
		w.input(s1, protocol.Input{Kind: protocol.Drain})
		want(w.flying(s1, c2) == "DRAINING(inc=1)", "s1 tells the waiter %q", w.flying(s1, c2))
		w.settle()
		w.inside(c1)
		want(w.supported(c1) == 4, "the holder has %d supports", w.supported(c1))
		w.exit(c1)
		w.settle()
		w.inside(c2)
		want(w.server(s1).owner == (entry{}), "s1 supports %v", w.server(s1).owner)
		want(w.supported(c2) == 3, "the next holder has %d supports, want 3", w.supported(c2))
	}},
	{"who asks or polls a draining server is told so, and does not blame its clock", func() {
		w := newWorld(Algorithm, 4, 1, withClock)
		c := w.client(1)
		w.input(s1, protocol.Input{Kind: protocol.Drain})
		w.receive(c, s1, Message{Kind: Inquiry, Time: uint64(w.now)})
		want(w.find(s1, c, Draining) >= 0, "an INQUIRY is answered by %q", w.flying(s1, c))
		w.drop(s1, c, Draining)
		w.try(c)
		first := w.procs[c].(*Client).time
		w.settle()
		w.inside(c)
		want(w.procs[c].(*Client).time == first, "a new timestamp")
		want(w.supported(c) == 3, "%d supports", w.supported(c))
	}},
	{"an INQUIRY of the owner is not answered while draining either", func() {
		w, c := holder()
		w.input(s1, protocol.Input{Kind: protocol.Drain})
		w.receive(c, s1, Message{Kind: Inquiry, Time: 1})
		want(w.flying(s1, c) == "", "the owner is told %q", w.flying(s1, c))
		w.receive(c, s1, Message{Kind: Request, Time: 1})
		want(w.flying(s1, c) == "RESPONSE(#4@1 inc=1 serial=1)", "the owner is told %q", w.flying(s1, c))
	}},
	{"a support given back to a draining server goes to nobody", func() {
		for _, kind := range []uint8{Yield, Request} { // a REQUEST may tell of a YIELD that was lost
			w := newWorld(Algorithm, 4, 2)
			c1, c2 := w.client(1), w.client(2)
			w.try(c1)
			w.try(c2)
			w.ask(c1, s1)
			w.ask(c2, s1)
			w.input(s1, protocol.Input{Kind: protocol.Drain})
			w.receive(c1, s1, Message{Kind: kind, Time: 1, Serial: 1})
			want(w.flying(s1, c1) == "DRAINING(inc=1)", "c1 is told %q", w.flying(s1, c1))
			want(w.flying(s1, c2) == "DRAINING(inc=1)", "c2 is told %q", w.flying(s1, c2))
			want(w.server(s1).owner == (entry{}), "s1 supports %v", w.server(s1).owner)
		}
	}},
	{"a new epoch of its owner is turned away too", func() {
		w, c := holder()
		w.input(s1, protocol.Input{Kind: protocol.Drain})
		w.exit(c)
		w.try(c)
		w.lose(s1, s1)
		w.deliverNewest(c, s1, Request) // before the RELEASE
		want(w.flying(s1, c) == "DRAINING(inc=1)", "it is told %q", w.flying(s1, c))
		w.settle()
		w.inside(c)
	}},
	{"an owner that gets its token recorded may finish", func() {
		w, c := slow()
		w.ask(c, s4)
		w.input(s4, protocol.Input{Kind: protocol.Drain})
		w.run(time.Duration(10 * fenceEps))
		w.inside(c)
	}},
	{"a holder that a draining server does not support loses nothing", func() {
		w, c := holder()
		w.input(s4, protocol.Input{Kind: protocol.Drain})
		w.settle()
		w.inside(c)
		want(w.supported(c) == 3, "%d supports", w.supported(c))
		w.restart(1)
		w.settle()
		want(w.supported(c) == 3, "%d supports after a restart", w.supported(c))
	}},
	{"who waited says whether too few servers give", func() {
		for draining := range 3 {
			w, _ := holder()
			c := w.client(2)
			for j := range draining {
				w.input(s3+protocol.ID(j), protocol.Input{Kind: protocol.Drain})
			}
			reason := protocol.Reason(0)
			if draining == 2 {
				reason = protocol.TooFew
			}
			w.try(c)
			w.settle()
			w.cancel(c)
			want(w.users[c] == protocol.InRem && w.reason[c] == reason, "%d drain: %q", draining, w.reason[c])
		}
		w, holds := holder()
		c := w.client(2)
		w.try(c)
		w.settle()
		w.suspect(c, s3)
		w.suspect(c, s4)
		w.cancel(c)
		want(w.reason[c] == protocol.TooFew, "without two leases: %q", w.reason[c])
		w.suspect(holds, s3)
		w.suspect(holds, s4)
		w.inside(holds)
		w.exit(holds)
		want(w.reason[holds] == 0, "who was inside leaves with %q", w.reason[holds])
	}},
	{"when it is back, those who wait ask again", func() {
		w, c1 := holder()
		c2 := w.client(2)
		w.try(c2)
		w.settle()
		for j := s1; j <= s4; j++ {
			w.input(j, protocol.Input{Kind: protocol.Drain})
		}
		w.settle()
		w.inside(c1)
		w.exit(c1)
		w.settle()
		w.inside()
		want(w.users[c2] == protocol.InTry, "the waiter gave up: %s", w.reason[c2])
		for j := 1; j <= 4; j++ {
			w.restart(j)
			w.settle()
		}
		w.inside(c2)
		want(w.supported(c2) >= 3, "%d supports", w.supported(c2))
	}},
	{"each server drained and restarted while idle costs a holder nothing", func() {
		w := newWorld(Algorithm, 4, 2, option("refresh", 0))
		c := w.client(1)
		w.input(s1, protocol.Input{Kind: protocol.Drain})
		w.try(c)
		w.settle()
		w.inside(c)
		want(w.supported(c) == 3, "%d supports", w.supported(c))
		for range 5 {
			w.restart(1)
			w.input(s1, protocol.Input{Kind: protocol.Drain})
			w.settle()
		}
		want(w.supported(c) == 3, "%d supports after five restarts", w.supported(c))
	}},
	{"a DRAINING of the life before says nothing about this one", func() {
		w, c := holder()
		w.restart(4)
		w.settle()
		w.same(c, func() { w.receive(s4, c, Message{Kind: Draining, Inc: 1}) })
		want(w.supported(c) == 4, "%d supports", w.supported(c))
		w.suspect(c, s4)
		w.same(c, func() { w.receive(s4, c, Message{Kind: Draining, Inc: 2}) })
	}},
	{"who has left knows nothing of a server that drains, and hears it again the next time", func() {
		w := newWorld(Algorithm, 4, 1, withClock)
		c := w.client(1)
		w.input(s4, protocol.Input{Kind: protocol.Drain})
		for range 2 {
			w.try(c)
			w.settle()
			w.inside(c)
			w.exit(c)
			w.run(time.Second)
			w.initial(c)
		}
		w.receive(s4, c, Message{Kind: Draining, Inc: w.lives[s4]}) // too late
		w.initial(c)
		w.try(c)
		w.ask(c, s1)
		w.deliver(c, s4, Request)
		w.deliver(s4, c, Draining)
		w.cancel(c)
		w.run(time.Second)
		w.initial(c)
	}},
	{"what a draining server said before comes too late", func() {
		w := newWorld(Algorithm, 4, 2)
		c, other := w.client(1), w.client(2)
		w.try(c)
		w.receive(s4, c, Message{Kind: Draining, Inc: 1})
		w.same(c, func() { w.receive(s4, c, Message{Kind: Response, Owner: other, Time: 1, Inc: 1}) })
	}},
	{"a DRAINING may be the first that is heard of a life", func() {
		w, c := holder(withClock)
		other := w.client(2)
		w.try(other)
		w.settle()
		w.amnesia(1)
		w.input(s1, protocol.Input{Kind: protocol.Drain})
		for _, who := range []protocol.ID{c, other} {
			w.receive(s1, who, Message{Kind: Draining, Inc: w.lives[s1]})
			w.restore(who, 0)
			want(w.flying(who, s1) == "", "%d asks the draining server: %q", who, w.flying(who, s1))
		}
		want(w.supported(c) == 3, "%d supports", w.supported(c))
		w.exit(c)
		w.settle()
		w.inside(other)
		w.run(time.Second)
		w.initial(c)
		w.restart(1)
		w.settle()
		want(w.supported(other) == 4, "%d supports when it is back", w.supported(other))
	}},
	{"TryOnce: gives up when too few servers grant anything", func() {
		w := newWorld(Algorithm, 4, 1)
		c := w.client(1)
		w.input(s1, protocol.Input{Kind: protocol.Drain})
		w.tryOnce(c)
		w.settle()
		w.inside(c)
		w.exit(c)
		w.settle()
		w.input(s2, protocol.Input{Kind: protocol.Drain})
		w.tryOnce(c)
		w.settle()
		want(w.users[c] == protocol.InRem && w.reason[c] == protocol.TooFew, "%v, %q", w.users[c], w.reason[c])
	}},
	{"a split among those who still grant is resolved", func() {
		w := newWorld(Algorithm, 4, 3, option("delay", hop))
		w.input(s4, protocol.Input{Kind: protocol.Drain})
		w.split()
		for k := 1; k <= 3; k++ {
			w.run(30 * time.Duration(hop))
			w.inside(w.client(k))
			w.exit(w.client(k))
		}
	}},
	{"idle and draining is a state of its own, and the same for all", func() {
		w, c := holder()
		w.input(s1, protocol.Input{Kind: protocol.Drain})
		w.input(s4, protocol.Input{Kind: protocol.Drain})
		w.exit(c)
		w.settle()
		fresh := Algorithm.New(s1, w.config)
		fresh.Step(protocol.Event[Message]{Input: protocol.Input{Kind: protocol.Start, Arg: 1}}, &w.out)
		fresh.Step(protocol.Event[Message]{Input: protocol.Input{Kind: protocol.Drain}}, &w.out)
		for _, j := range []protocol.ID{s1, s4} {
			got := protocol.AppendState(nil, w.procs[j])
			want(slices.Equal(got, protocol.AppendState(nil, fresh)), "the state of s%d is %x", j+1, got)
		}
	}},
}

// What a server shows of its owner.
func TestRecordedToken(t *testing.T) {
	w := fenced(2)
	c1, c2 := w.client(1), w.client(2)
	token := func(j protocol.ID) uint64 { return w.procs[j].(protocol.Inspector).Inspect().Holders[0].Token }
	w.try(c1)
	w.try(c2)
	w.settle()
	w.inside(c1)
	if got := token(s1); got != w.token[c1] {
		t.Errorf("s1 recorded %d, want %d", got, w.token[c1])
	}
	w.restart(1)
	w.settle()
	if got := token(s1); got != 0 {
		t.Errorf("s1 is new and has recorded %d, want 0: it does not know", got)
	}
}
