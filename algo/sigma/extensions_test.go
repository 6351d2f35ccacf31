package sigma

import (
	"slices"
	"strings"
	"time"

	"github.com/poundlock/poundlock/protocol"
)

// threeRivals lets c1, c2 and c3 hold s3, s1 and s2 of three servers. c1 comes
// first in the order of requests but is not yet known at s1 and s2; the other
// two are known at all three.
func threeRivals(a protocol.Algorithm[Message]) (w *world, c1, c2, c3 protocol.ID) {
	w = newWorld(a, 3, 3)
	c1, c2, c3 = w.client(1), w.client(2), w.client(3)
	w.unsound = true
	w.try(c1)
	w.try(c2)
	w.try(c3)
	w.ask(c1, s3)
	w.ask(c2, s1)
	w.ask(c3, s2)
	if w.leases() {
		w.ask(c2, s3)
		w.ask(c3, s3)
	}
	return w, c1, c2, c3
}

// duplicateYield lets the YIELD of c2 arrive at s1 twice, the second time when c2
// is inside by the support that it got in return, and c1 waits for it.
func duplicateYield(a protocol.Algorithm[Message]) (w *world, c1, c2 protocol.ID) {
	w, c1, c2, c3 := threeRivals(a)
	w.deliver(c3, s1, Request)
	w.ask(c2, s2)
	w.poll(c2)
	w.repeat(c2, s1, Yield)
	w.deliver(s1, c3, Response)
	w.poll(c3)
	w.deliver(c3, s2, Yield)
	w.deliver(s1, c2, Response)
	w.deliver(s2, c2, Response)
	w.inside(c2)
	w.deliver(c1, s1, Request)
	w.deliver(c2, s1, Yield)
	w.deliverNewest(s1, c1, Response)
	return w, c1, c2
}

// duplicateResponse lets the support of s1 arrive at c2 twice, the second time
// when c2 has given it back and c1 is inside with it.
func duplicateResponse(a protocol.Algorithm[Message]) (w *world, c1, c2 protocol.ID) {
	w = newWorld(a, 3, 3)
	c1, c2, c3 := w.client(1), w.client(2), w.client(3)
	w.unsound = true
	for _, c := range []protocol.ID{c1, c2, c3} {
		w.try(c)
	}
	w.ask(c1, s3)
	w.deliver(c2, s1, Request)
	w.repeat(s1, c2, Response)
	w.ask(c3, s2)
	w.deliver(c1, s1, Request)
	if w.leases() {
		w.ask(c2, s3)
	}
	w.ask(c2, s2)
	w.poll(c2)
	copied := w.flights[w.find(s1, c2, Response)].msg
	w.drop(s1, c2, Response)
	w.deliver(c2, s1, Yield)
	w.deliverNewest(s1, c1, Response)
	w.inside(c1)
	w.deliver(c3, s1, Request)
	w.deliver(s1, c3, Response)
	if w.leases() {
		w.ask(c3, s3)
	}
	w.receive(s1, c2, copied)
	if w.leases() {
		w.cancel(c3) // it would not give s2 back while c1 may have a quorum
		w.deliver(c3, s2, Release)
	} else {
		w.deliver(c3, s2, Yield)
	}
	w.deliver(s2, c2, Response)
	return w, c1, c2
}

// restarts lets n-m+1 servers restart while c2 waits for c1, who then leaves.
func restarts(a protocol.Algorithm[Message]) (w *world, c2 protocol.ID) {
	w = newWorld(a, 4, 2)
	c1, c2 := w.client(1), w.client(2)
	w.try(c1)
	w.settle()
	w.try(c2)
	w.settle()
	w.inside(c1)
	w.amnesia(1)
	w.amnesia(2)
	w.restore(c2, 0)
	w.restore(c2, 1)
	w.settle()
	w.inside(c1)
	w.exit(c1)
	w.settle()
	return w, c2
}

// holder is a client inside with supports of s1, s2 and s3 of four.
func holder(change ...func(*world)) (*world, protocol.ID) {
	w := newWorld(Algorithm, 4, 2, change...)
	c := w.client(1)
	w.try(c)
	for j := s1; j <= s3; j++ {
		w.ask(c, j)
	}
	w.inside(c)
	return w, c
}

// extensions are the stories of what Algorithm adds, but for fencing.
var extensions = []story{
	{"numbered supports: a YIELD that arrives twice gives nothing away; in Figure 1 it lets two in", func() {
		w, c1, c2 := duplicateYield(Literal)
		w.inside(c1, c2)
		w, _, c2 = duplicateYield(Algorithm)
		w.inside(c2)
	}},
	{"numbered supports: a RESPONSE that arrives twice counts once; in Figure 1 it lets two in", func() {
		w, c1, c2 := duplicateResponse(Literal)
		w.inside(c1, c2)
		w, c1, _ = duplicateResponse(Algorithm)
		w.inside(c1)
	}},
	{"numbered supports: a server that forgot numbers on from what the client gave back", func() {
		w := newWorld(Algorithm, 4, 3)
		w.split()
		c := w.client(2)
		w.poll(c)
		w.amnesia(2)
		w.lose(s2, c)
		w.restore(c, 1)
		got := w.flying(c, s2)
		want(got == "REQUEST(1 serial=1 again)", "to the new life of s2: %q", got)
		w.deliver(c, s2, Request)
		got = w.flying(s2, c)
		want(got == "RESPONSE(#5@1 inc=2 serial=2)", "from the new life of s2: %q", got)
		w.deliver(s2, c, Response)
		// The YIELD of the first support comes at last.
		w.receive(c, s2, Message{Kind: Yield, Time: 1, Serial: 1})
		want(w.flying(s2, c) == "", "the new life of s2 obeys an old YIELD: %q", w.flying(s2, c))
	}},
	{"numbered supports: so does a server at which the client waits by an old REQUEST", func() {
		w := newWorld(Algorithm, 4, 3)
		w.split()
		c1, c := w.client(1), w.client(2)
		w.poll(c)
		w.amnesia(2)
		w.receive(c1, s2, Message{Kind: Request, Time: 1})
		w.receive(c, s2, Message{Kind: Request, Time: 1}) // the first REQUEST once more
		w.receive(c, s2, Message{Kind: Request, Time: 1, Serial: 1})
		w.receive(c, s2, Message{Kind: Request, Time: 1})
		w.receive(c1, s2, Message{Kind: Release, Time: 1})
		got := w.flying(s2, c)
		want(strings.HasSuffix(got, "RESPONSE(#5@1 inc=2 serial=2)"), "from the new life of s2: %q", got)
		want(strings.Count(got, "RESPONSE(#4@1 inc=2)") == 3, "three REQUESTs are answered: %q", got)
	}},
	{"numbered supports: so does a server that supports the client by an old REQUEST", func() {
		w := newWorld(Algorithm, 4, 1)
		c := w.client(1)
		w.receive(c, s1, Message{Kind: Request, Time: 1})
		w.receive(c, s1, Message{Kind: Request, Time: 1, Serial: 3})
		got := w.flying(s1, c)
		want(got == "RESPONSE(#4@1 inc=1 serial=1) RESPONSE(#4@1 inc=1 serial=4)", "s1 answers %q", got)
	}},
	{"numbered supports: a REQUEST of the owner is answered by the same support again", func() {
		w := newWorld(Algorithm, 4, 2)
		c := w.client(1)
		w.try(c)
		w.repeat(c, s1, Request)
		w.deliver(c, s1, Request)
		got := w.flying(s1, c)
		want(got == "RESPONSE(#4@1 inc=1 serial=1) RESPONSE(#4@1 inc=1 serial=1)", "s1 answers %q", got)
		w.deliver(s1, c, Response)
		w.deliver(s1, c, Response)
		w.ask(c, s2)
		w.inside()
		w.ask(c, s3)
		w.inside(c)
	}},
	{"numbered supports: a REQUEST tells of a YIELD that was lost with its lease", func() {
		w := newWorld(Algorithm, 4, 3)
		w.split()
		c1, c := w.client(1), w.client(2)
		w.poll(c)
		w.suspect(c, s2)
		w.lose(c, s2)
		w.restore(c, 1)
		w.deliver(c, s2, Request)
		got := w.flying(s2, c1)
		want(got == "RESPONSE(#4@1 inc=1 serial=1)", "s2 tells c1 %q", got)
		want(w.flying(s2, c) == "RESPONSE(#4@1 inc=1)", "s2 tells c2 %q", w.flying(s2, c))
	}},
	{"re-request: more than n-m restarts do not starve who waits; in Figure 1 they do", func() {
		w, _ := restarts(Literal)
		w.inside()
		w, c := restarts(Algorithm)
		w.inside(c)
	}},
	{"re-request: a support of a dead incarnation does not count, and its late RESPONSE is ignored", func() {
		w := newWorld(Algorithm, 4, 1)
		c := w.client(1)
		w.try(c)
		w.ask(c, s1)
		w.deliver(c, s2, Request)
		w.amnesia(1)
		w.amnesia(2)
		w.restore(c, 0)
		w.restore(c, 1)
		w.deliver(s2, c, Response)
		w.ask(c, s3)
		w.ask(c, s4)
		w.inside()
		w.ask(c, s1)
		w.inside(c)
	}},
	{"re-request: a RESPONSE too tells of a new incarnation, once", func() {
		w := newWorld(Algorithm, 4, 2)
		c, other := w.client(1), w.client(2)
		w.try(c)
		w.ask(c, s1)
		w.amnesia(1)
		w.try(other)
		w.deliver(other, s1, Request)
		w.receive(c, s1, Message{Kind: Inquiry, Time: 1})
		w.deliver(s1, c, Response)
		want(w.flying(c, s1) == "REQUEST(1 again)", "c1 asks again: %q", w.flying(c, s1))
		w.restore(c, 0)
		want(w.flying(c, s1) == "REQUEST(1 again)", "c1 asks again only once: %q", w.flying(c, s1))
		w.ask(c, s2)
		w.ask(c, s3)
		w.inside()
		w.ask(c, s4)
		w.inside(c)
	}},
	{"refresh: a waiter does not count a support that it gave back", func() {
		w := newWorld(Algorithm, 4, 1)
		c := w.client(1)
		w.try(c)
		w.ask(c, s1)
		w.receive(s1, c, Message{Kind: Recall, Time: 1, Inc: 1, Serial: 1})
		want(w.flying(c, s1) == "YIELD(1 serial=1)", "to s1: %q", w.flying(c, s1))
		w.ask(c, s2)
		w.ask(c, s3)
		w.inside()
		w.ask(c, s4)
		w.inside(c)
	}},
	{"leases: a lapsed lease takes a support away from who waits, and Restore asks for it", func() {
		w := newWorld(Algorithm, 4, 1)
		c := w.client(1)
		w.try(c)
		w.ask(c, s1)
		w.suspect(c, s1)
		w.receive(s1, c, Message{Kind: Response, Owner: c, Time: 1, Inc: 1, Serial: 1}) // from before
		w.ask(c, s2)
		w.ask(c, s3)
		w.inside()
		w.restore(c, 0)
		w.ask(c, s1)
		w.inside(c)
	}},
	{"leases: n-m servers that gave a holder up cannot make another quorum, and one more can", func() {
		w, c := holder()
		other := w.client(2)
		w.try(other)
		for j := s1; j <= s4; j++ {
			w.ask(other, j)
		}
		giveUp := func(j protocol.ID) {
			w.suspect(c, j) // the client knows first
			w.suspect(j, c)
			w.deliver(j, other, Response)
		}
		giveUp(s1)
		w.inside(c)
		giveUp(s2)
		w.inside(other)
	}},
	{"leases: a holder stays inside with n-m+1 live supports, and is ejected with fewer", func() {
		for n, fewest := range map[int]int{4: 2, 5: 2, 7: 3, 10: 4} {
			w := newWorld(Algorithm, n, 1)
			c := w.client(1)
			m := int(Algorithm.Option(w.config, "quorum"))
			w.try(c)
			for j := range m {
				w.ask(c, protocol.ID(j))
			}
			for live := m - 1; live >= fewest; live-- {
				w.suspect(c, protocol.ID(live))
				w.inside(c)
			}
			w.suspect(c, s1)
			w.inside()
			want(w.users[c] == protocol.InLost, "n=%d: the holder is not told", n)
		}
	}},
	{"leases: a restart costs a holder a support as well, and a late support counts", func() {
		w, c := holder()
		w.ask(c, s4)
		w.amnesia(1)
		w.restore(c, 0)
		w.amnesia(2)
		w.restore(c, 1)
		w.inside(c)
		w.amnesia(3)
		w.restore(c, 2)
		want(w.users[c] == protocol.InLost, "one support is left, and the holder is not told")
	}},
	{"leases: what a holder hears of others does not count", func() {
		w, c := holder()
		other := w.client(2)
		w.try(other)
		w.deliver(other, s4, Request)
		w.same(c, func() { w.ask(c, s4) })
		w.suspect(c, s1)
		w.inside(c)
		w.suspect(c, s2)
		w.inside()
	}},
	{"leases: what a client knew of others when it entered, or hears in the remainder, is forgotten", func() {
		var states [][]byte
		for _, known := range []bool{false, true} {
			w := newWorld(Algorithm, 4, 2)
			c := w.client(1)
			w.try(c)
			if known {
				w.receive(s4, c, Message{Kind: Response, Owner: w.client(2), Time: 1, Inc: 1})
			}
			for j := s1; j <= s3; j++ {
				w.ask(c, j)
			}
			w.inside(c)
			states = append(states, protocol.AppendState(nil, w.procs[c]))
			w.exit(c)
			w.same(c, func() {
				w.receive(s4, c, Message{Kind: Response, Owner: w.client(2), Time: 1, Inc: 1})
			})
		}
		want(slices.Equal(states[0], states[1]), "inside the state is %x or %x", states[0], states[1])
	}},
	{"leases: of what a holder knew nothing is left when it is ejected", func() {
		var states [][]byte
		for _, lost := range [][]protocol.ID{{s1, s2}, {s2, s3}} {
			w, c := holder()
			for _, j := range lost {
				w.suspect(c, j)
			}
			want(w.users[c] == protocol.InLost, "the holder is not ejected")
			for _, j := range lost {
				w.restore(c, int(j))
			}
			states = append(states, protocol.AppendState(nil, w.procs[c]))
		}
		want(slices.Equal(states[0], states[1]), "the state is %x or %x", states[0], states[1])
	}},
	{"leases: who was ejected releases nothing until it exits, and then everything", func() {
		w, c := holder(option("check", 1))
		w.suspect(c, s1)
		w.suspect(c, s2)
		want(w.users[c] == protocol.InLost, "the holder is not ejected")
		w.lose(c, s4)
		w.timeout(s3, checkTimer)
		w.deliver(s3, c, Check)
		w.restore(c, 0)
		w.restore(c, 1)
		w.same(c, func() {
			w.receive(s1, c, Message{Kind: Response, Owner: c, Time: 1, Inc: 1, Serial: 1})
			w.receive(s1, c, Message{Kind: Response, Owner: 9, Time: 1, Inc: 1})
		})
		w.suspect(c, s3)
		w.wantFlying(c, "", "", "", "")
		w.exit(c)
		w.wantFlying(c, "RELEASE(1)", "RELEASE(1)", "RELEASE(1)", "RELEASE(1)")
		w.restore(c, 2)
		w.settle()
		w.try(c)
		w.settle()
		w.inside(c)
	}},
	{"deferral: who waits for a holder, and is supported by nobody, is silent", func() {
		w, c1 := holder(option("delay", hop))
		c2 := w.client(2)
		w.try(c2)
		sent := w.sent
		w.run(20 * time.Duration(safetyDelay*hop))
		want(w.sent == sent+5, "%d messages but four answers, and one more to c1", w.sent-sent)
		w.exit(c1)
		w.run(10 * time.Duration(hop))
		w.inside(c2)
	}},
	{"deferral: who has a support polls after 400T, and then half as often each time", func() {
		w, c1 := holder(option("delay", hop))
		c2 := w.client(2)
		w.drop(c1, s4, Request)
		w.try(c2)
		w.run(2 * time.Duration(hop))
		sent := w.sent
		for round, rest := range []int64{400, 800, 1600, 3200, 6400, 12800, 25600, 25600} {
			w.run(time.Duration(rest*hop - 1 - int64(min(round, 1))))
			want(w.sent == sent, "%d messages before round %d", w.sent-sent, round)
			w.run(2*time.Duration(hop) + 1)
			want(w.sent == sent+8, "%d messages in round %d, want a YIELD, three INQUIRYs and four answers", w.sent-sent, round)
			sent = w.sent
		}
		w.exit(c1)
		w.run(10 * time.Duration(hop))
		w.inside(c2)
	}},
	{"deferral: a support of another server makes it poll as often as at first, and one that it gave back does not", func() {
		w := newWorld(Algorithm, 7, 2, option("delay", hop))
		c := w.client(1)
		w.try(c)
		w.run(0)
		w.flights = nil
		answer := func(j protocol.ID) {
			w.receive(j, c, Message{Kind: Response, Owner: w.client(2), Time: 1, Inc: 1})
		}
		serial := uint64(0)
		support := func(j protocol.ID) {
			serial++
			w.receive(j, c, Message{Kind: Response, Owner: c, Time: 1, Inc: 1, Serial: serial})
		}
		for j := range protocol.ID(5) {
			answer(j)
		}
		want(len(w.timers[c]) == 0, "waits for something without a support: %v", w.timers[c])
		for _, j := range []protocol.ID{5, 6} {
			for _, rest := range []int64{400, 800} {
				support(j)
				got := w.timers[c][retryTimer] - w.now
				want(got == rest*hop, "polls after %d, want %d", got, rest*hop)
				w.timeout(c, retryTimer)
				w.flights = nil
				for j := range protocol.ID(5) {
					answer(j)
				}
			}
		}
	}},
	{"deferral: who loses its only support asks nobody any more", func() {
		for _, lose := range []func(w *world, c protocol.ID){
			func(w *world, c protocol.ID) { w.suspect(c, s1) },
			func(w *world, c protocol.ID) { w.receive(s1, c, Message{Kind: Recall, Time: 1, Inc: 1, Serial: 1}) },
		} {
			w := newWorld(Algorithm, 4, 3, option("delay", hop))
			c := w.client(1)
			w.try(c)
			w.receive(s1, c, Message{Kind: Response, Owner: c, Time: 1, Inc: 1, Serial: 1})
			for j := s2; j <= s4; j++ {
				w.receive(j, c, Message{Kind: Response, Owner: w.client(2), Time: 1, Inc: 1})
			}
			lose(w, c)
			w.flights = nil
			w.timeout(c, retryTimer)
			want(len(w.flights) == 0 && len(w.timers[c]) == 0, "%d messages, timers %v", len(w.flights), w.timers[c])
		}
	}},
	{"deferral: a split that leaves nothing to give back is for others to settle, and ends a TryOnce", func() {
		for _, once := range []bool{false, true} {
			w := newWorld(Algorithm, 4, 4)
			c := w.client(1)
			if once {
				w.tryOnce(c)
			} else {
				w.try(c)
			}
			for j := s1; j <= s3; j++ {
				w.receive(j, c, Message{Kind: Response, Owner: w.client(2 + int(j)), Time: 1, Inc: 1})
			}
			want((w.users[c] == protocol.InRem) == once, "once %t: %v", once, w.users[c])
			want(len(w.timers[c]) == 0, "waits for %v", w.timers[c])
		}
	}},
	{"deferral: a server that refused a client cannot help it to a quorum, but may help others", func() {
		for supports, splits := range map[int]bool{2: true, 1: false} {
			w := newWorld(Algorithm, 4, 3, withClock)
			c, other := w.client(1), w.client(2)
			w.try(c)
			t := w.procs[c].(*Client).time
			w.receive(s4, c, Message{Kind: Refused, Time: t, Token: t - 1})
			for j := s1; j <= s3; j++ {
				m := Message{Kind: Response, Owner: other, Time: 1, Inc: w.lives[j]}
				if int(j) < supports {
					m.Owner, m.Time, m.Serial = c, t, 1
				}
				w.receive(j, c, m)
			}
			want(w.procs[c].(*Client).resting == splits, "with %d supports: a split is %t", supports, !splits)
		}
	}},
	{"deferral: a server that answers nobody, and has leases, is no obstacle", func() {
		w := newWorld(Algorithm, 4, 2, option("delay", hop))
		c1, c2 := w.client(1), w.client(2)
		w.try(c1)
		w.try(c2)
		w.lose(c1, s4)
		w.lose(c2, s4)
		w.ask(c1, s1)
		w.ask(c1, s2)
		w.ask(c2, s3)
		w.run(time.Duration((safetyDelay + 10) * hop))
		w.inside(c1)
	}},
	{"deferral: a client polls after a pause, and only if there still is a split", func() {
		w := newWorld(Algorithm, 4, 3)
		w.split()
		c := w.client(1)
		w.lose(c, s4)
		w.wantFlying(c, "", "", "", "")
		for k := 2; k <= 3; k++ {
			w.cancel(w.client(k))
		}
		w.deliver(w.client(2), s2, Release)
		w.deliver(s2, c, Response)
		w.timeout(c, retryTimer)
		w.wantFlying(c, "", "", "", "") // s4 may support it too
		rest := w.timers[c][retryTimer] - w.now
		want(rest == safetyDelay*w.procs[c].(*Client).delay, "rests for %d then", rest)
		w.deliver(w.client(3), s3, Release)
		w.deliver(s3, c, Response)
		w.inside(c)
	}},
	{"deferral: the pause doubles from T to 8T, and begins anew with each try", func() {
		w := newWorld(Algorithm, 4, 4, option("delay", hop))
		c := w.client(1)
		for range 2 {
			w.try(c)
			t := w.procs[c].(*Client).time
			for round, least := range []int64{1, 2, 4, 8, 8} {
				// One server supports it, and two others two others.
				w.receive(s1, c, Message{Kind: Response, Owner: c, Time: t, Inc: 1, Serial: uint64(round) + 1})
				for j := s2; j <= s3; j++ {
					w.receive(j, c, Message{Kind: Response, Owner: w.client(2 + int(j)), Time: 1, Inc: 1})
				}
				// The world fires a timer in the middle of its range.
				got := w.timers[c][retryTimer] - w.now
				want(got == least*hop*3/2, "pause %d is about %v, want %v", round+1, got, least*hop*3/2)
				w.now += hop / 4
				w.receive(s4, c, Message{Kind: Response, Owner: c, Time: t, Inc: 1, Serial: uint64(round) + 1})
				want(w.timers[c][retryTimer]-w.now == got-hop/4, "one more support makes the pause longer")
				w.timeout(c, retryTimer)
			}
			w.cancel(c)
			w.flights = nil
		}
	}},
	{"deferral: with fewer than m answers there is nothing to resolve", func() {
		w := newWorld(Algorithm, 4, 1)
		c := w.client(1)
		w.try(c)
		w.ask(c, s1)
		w.ask(c, s2)
		w.timeout(c, retryTimer)
		w.wantFlying(c, "", "", "REQUEST(1)", "REQUEST(1)")
		w.ask(c, s3)
		w.inside(c)

		// One of seven servers supports it, and three others three others: a split, but
		// fewer than m=5 answers.
		w = newWorld(Algorithm, 7, 1, option("delay", hop))
		c = w.client(1)
		w.try(c)
		w.receive(s1, c, Message{Kind: Response, Owner: c, Time: 1, Inc: 1, Serial: 1})
		for j := s2; j <= s4; j++ {
			w.receive(j, c, Message{Kind: Response, Owner: 20 + j, Time: 1, Inc: 1})
		}
		got := w.timers[c][retryTimer] - w.now
		want(got == safetyDelay*hop, "looks again after %d, want %d", got, safetyDelay*hop)
		w.flights = nil
		w.timeout(c, retryTimer)
		want(len(w.flights) == 0, "asks again before they have answered: %d messages", len(w.flights))
		got = w.timers[c][retryTimer] - w.now
		want(got == 2*safetyDelay*hop, "looks again after %d, want %d", got, 2*safetyDelay*hop)
	}},
	{"TryOnce: enters a free lock, also with n-m servers silent", func() {
		w := newWorld(Algorithm, 4, 1)
		c := w.client(1)
		for range 2 {
			w.tryOnce(c)
			w.lose(c, s2)
			w.settle()
			w.inside(c)
			w.exit(c)
			w.lose(c, s2)
			w.settle()
		}
	}},
	{"TryOnce: gives up on a held lock as soon as m supports are out of reach", func() {
		w, c1 := holder()
		c2 := w.client(2)
		w.tryOnce(c2)
		w.ask(c2, s1)
		want(w.users[c2] == protocol.InTry, "gives up after one answer")
		w.ask(c2, s2)
		want(w.users[c2] == protocol.InRem, "does not give up")
		w.settle()
		w.inside(c1)
		w.try(c2)
		w.settle()
		want(w.users[c2] == protocol.InTry, "the next try does not wait")
		w.exit(c1)
		w.settle()
		w.inside(c2)
	}},
	{"TryOnce: gives up when too few servers are left to ask", func() {
		w := newWorld(Algorithm, 4, 1)
		c := w.client(1)
		w.tryOnce(c)
		w.suspect(c, s1)
		want(w.users[c] == protocol.InTry, "gives up with three servers left")
		w.suspect(c, s2)
		want(w.users[c] == protocol.InRem, "waits with two servers left")
	}},
	{"TryOnce: of two that split the servers one enters, and the other gives up", func() {
		w := newWorld(Algorithm, 4, 2, option("delay", hop))
		c1, c2 := w.client(1), w.client(2)
		for range 2 {
			w.tryOnce(c1)
			w.tryOnce(c2)
			w.ask(c1, s1)
			w.ask(c1, s2)
			w.ask(c2, s3)
			w.ask(c2, s4)
			w.run(50 * time.Duration(hop))
			w.inside(c1)
			want(w.users[c2] == protocol.InRem, "the other one still waits")
			w.exit(c1)
			w.run(50 * time.Duration(hop))
		}
	}},
	{"TryOnce: who meets a second split gives up", func() {
		w := newWorld(Algorithm, 4, 1)
		c := w.client(1)
		for _, enters := range []bool{true, false, false} {
			w.tryOnce(c)
			t, serial := w.procs[c].(*Client).time, uint64(1)
			support := func() Message {
				return Message{Kind: Response, Owner: c, Time: t, Inc: 1, Serial: serial}
			}
			round := func() {
				w.receive(s1, c, support())
				w.receive(s2, c, Message{Kind: Response, Owner: 10, Time: 1, Inc: 1})
				w.receive(s3, c, Message{Kind: Response, Owner: 11, Time: 1, Inc: 1})
				want(w.users[c] == protocol.InTry, "gives up at the split %d without a pause", serial)
				w.timeout(c, retryTimer)
				serial++
			}
			round()
			want(w.users[c] == protocol.InTry, "gives up after one split")
			if enters {
				for j := s1; j <= s3; j++ {
					w.receive(j, c, support())
				}
				w.inside(c)
				w.exit(c)
				continue
			}
			round()
			want(w.users[c] == protocol.InRem, "tries on")
		}
	}},
	{"TryOnce: once inside, or out, it is a try like any other", func() {
		var inside, out [][]byte
		for _, how := range []uint64{protocol.TryWait, protocol.TryOnce} {
			w := newWorld(Algorithm, 4, 1)
			c := w.client(1)
			w.input(c, protocol.Input{Kind: protocol.Try, Arg: how})
			support := Message{Kind: Response, Owner: c, Time: 1, Inc: 1, Serial: 1}
			w.receive(s1, c, support)
			w.receive(s2, c, Message{Kind: Response, Owner: 10, Time: 1, Inc: 1})
			w.receive(s3, c, Message{Kind: Response, Owner: 11, Time: 1, Inc: 1})
			w.timeout(c, retryTimer)
			support.Serial = 2
			for j := s1; j <= s3; j++ {
				w.receive(j, c, support)
			}
			w.inside(c)
			inside = append(inside, protocol.AppendState(nil, w.procs[c]))
			w.exit(c)
			w.input(c, protocol.Input{Kind: protocol.Try, Arg: how})
			w.cancel(c)
			out = append(out, protocol.AppendState(nil, w.procs[c]))
		}
		want(slices.Equal(inside[0], inside[1]), "inside it is %x or %x", inside[0], inside[1])
		want(slices.Equal(out[0], out[1]), "outside it is %x or %x", out[0], out[1])
	}},
	{"timestamps: without a clock Lamport's rule, with one no foreign clock drags ours along", func() {
		for _, clock := range []bool{false, true} {
			change := func(*world) {}
			if clock {
				change = withClock
			}
			w := newWorld(Algorithm, 1, 2, change)
			heard := uint64(epoch) + uint64(hop)
			w.receive(s1, w.client(1), Message{Kind: Response, Owner: w.client(2), Time: heard, Inc: w.lives[0]})
			w.try(w.client(1))
			got := w.flights[0].msg.Time
			want((got > heard) == !clock, "clock %t: heard of %d, asks at %d", clock, heard, got)
		}
	}},
	{"timestamps: one server whose clock is behind is no obstacle", func() {
		w := newWorld(Algorithm, 4, 1, withClock, func(w *world) { w.skew[0] = -int64(time.Second) })
		c := w.client(1)
		w.try(c)
		w.ask(c, s2)
		w.deliver(c, s1, Request)
		got := w.flying(s1, c)
		want(strings.HasPrefix(got, "REFUSED("), "s1 answers %q", got)
		w.deliver(s1, c, Refused)
		w.settle()
		w.inside(c)
	}},
	{"timestamps: a refusal counts in its epoch", func() {
		w := newWorld(Algorithm, 4, 1, withClock)
		c := w.client(1)
		for j := s1; j <= s4; j++ {
			w.try(c)
			t := w.procs[c].(*Client).time
			w.receive(j, c, Message{Kind: Refused, Time: t, Token: t - 1})
			want(w.procs[c].(*Client).time == t, "one refusal of s%d ends the epoch", j+1)
			w.cancel(c)
		}
	}},
	{"timestamps: a clock more than 2 eps ahead, or far behind, asks again by the servers' clock, until it is right", func() {
		const eps, oldest = int64(50 * time.Millisecond), int64(time.Minute)
		for ahead, again := range map[int64]bool{
			2*eps + hop: false, 2*eps + hop + 1: true, int64(time.Hour): true, // a hop later it is that much less
			-oldest + hop: false, -oldest + hop - 1: true, -int64(time.Hour): true,
		} {
			w := newWorld(Algorithm, 4, 2, withClock, option("delay", hop), option("fence", FenceOn),
				option("eps", eps), option("oldest", oldest))
			w.run(time.Minute)
			c, other := w.client(1), w.client(2)
			enter := func(c protocol.ID) uint64 {
				began := w.token[c]
				w.try(c)
				w.run(time.Second)
				want(w.users[c] == protocol.InCrit && w.token[c] > began, "ahead by %d: %v, token %d", ahead, w.users[c], w.token[c])
				return w.procs[c].(*Client).time
			}
			last := uint64(0)
			step := func(c protocol.ID) {
				enter(c)
				want(w.token[c] > last, "ahead by %d: token %d after %d", ahead, w.token[c], last)
				last = w.token[c]
				w.exit(c)
				w.run(time.Duration(hop))
			}
			step(c)
			w.skew[c] = ahead
			for range 2 {
				asked := w.now
				at := int64(enter(c))
				off := at - asked
				want(ahead < 0 && !again || (off != ahead) == again, "ahead by %d it enters with a time that is ahead by %d", ahead, off)
				want(w.token[c] > last, "ahead by %d: token %d after %d", ahead, w.token[c], last)
				last = w.token[c]
				w.exit(c)
				w.run(time.Duration(hop))
				step(other)
			}
			w.skew[c] = 0
			w.try(c)
			if at := int64(w.procs[c].(*Client).time); ahead > 0 {
				want(at == w.now, "asks with a time that is %d off, though its clock is right", at-w.now)
			}
			w.run(2 * time.Duration(hop))
			want(w.users[c] == protocol.InCrit, "was ahead by %d: %v, though its clock is right", ahead, w.users[c])
			w.exit(c)
			w.run(time.Minute)
			w.initial(c)
		}
	}},
	{"timestamps: between two epochs a client says nothing, and hears of servers only", func() {
		w := newWorld(Algorithm, 4, 2, withClock)
		c := w.client(1)
		pause := func(try func(protocol.ID)) {
			try(c)
			t := w.procs[c].(*Client).time
			w.receive(s1, c, Message{Kind: Refused, Time: t, Token: t - 1})
			w.receive(s2, c, Message{Kind: Refused, Time: t, Token: t - 1})
			want(w.procs[c].(*Client).time == 0 && w.users[c] == protocol.InTry, "makes no pause")
			w.flights = nil
		}
		pause(w.try)
		w.suspect(c, s3)
		w.restore(c, 2)
		w.receive(s4, c, Message{Kind: Response, Owner: w.client(2), Time: 1, Inc: w.lives[s4]})
		w.receive(s4, c, Message{Kind: Recall, Time: 1, Serial: 1, Inc: w.lives[s4]})
		want(len(w.flights) == 0, "%d messages in the pause", len(w.flights))
		w.cancel(c)
		want(len(w.flights) == 0 && len(w.timers[c]) == 0, "after it gave up: %d messages, timers %v", len(w.flights), w.timers[c])
		pause(w.tryOnce)
		w.timeout(c, retryTimer)
		t := w.procs[c].(*Client).time
		w.receive(s1, c, Message{Kind: Refused, Time: t, Token: t - 1})
		w.receive(s2, c, Message{Kind: Refused, Time: t, Token: t - 1})
		want(w.users[c] == protocol.InRem, "a TryOnce that was refused twice goes on")
	}},
	{"timestamps: a server that refused is asked again at the end of a rest, if there is a lease, and its refusal is forgotten", func() {
		for _, lease := range []bool{true, false} {
			w := newWorld(Algorithm, 4, 1, withClock)
			c := w.client(1)
			w.try(c)
			t := w.procs[c].(*Client).time
			w.ask(c, s3)
			w.lose(c, s1)
			w.lose(c, s2)
			w.receive(s1, c, Message{Kind: Refused, Time: t, Token: t - 1})
			if !lease {
				w.suspect(c, s1)
			}
			w.timeout(c, retryTimer)
			want((w.find(c, s1, Request) >= 0) == lease, "lease %t: to s1: %q", lease, w.flying(c, s1))
			if lease {
				w.receive(s2, c, Message{Kind: Refused, Time: t, Token: t - 1})
				want(w.procs[c].(*Client).time == t, "a refusal of s1, and later one of s2, end the epoch")
			}
		}
	}},
	{"timestamps: a RELEASE of an epoch with a larger timestamp takes nothing from the present one", func() {
		w := newWorld(Algorithm, 4, 2, withClock, option("eps", int64(10*time.Millisecond)), option("check", int64(time.Second)))
		c, d := w.client(1), w.client(2)
		w.skew[s1], w.skew[s2], w.skew[c] = 9*hop, 9*hop, 25*hop
		w.try(c)
		w.ask(c, s1)
		w.ask(c, s2)
		w.timeout(s1, checkTimer)
		w.timeout(s2, checkTimer)
		for _, j := range []protocol.ID{s3, s4} {
			w.deliver(c, j, Request)
			w.deliver(j, c, Refused)
		}
		w.timeout(c, retryTimer)
		for j := s1; j <= s3; j++ { // in the order of sending, as all that follows
			w.deliver(c, j, Release)
			w.deliver(c, j, Request)
		}
		for _, j := range []protocol.ID{s1, s2} {
			w.deliver(j, c, Check)
			w.deliver(j, c, Response)
		}
		w.deliver(s3, c, Response)
		w.inside(c)
		w.now += hop
		w.try(d)
		for _, j := range []protocol.ID{s1, s2} {
			w.deliver(c, j, Release)
		}
		for _, j := range []protocol.ID{s1, s2, s4} {
			w.ask(d, j)
		}
		w.inside(c)
	}},
	{"timestamps: who waits longer than a first request may be old is not refused", func() {
		w := newWorld(Algorithm, 4, 2, withClock, option("delay", hop), option("oldest", int64(time.Second)))
		c1, c2 := w.client(1), w.client(2)
		w.try(c1)
		w.run(time.Second)
		w.try(c2)
		w.run(5 * time.Second)
		w.lose(c2, s1)
		w.suspect(c2, s1)
		w.restore(c2, 0) // REQUEST again
		w.deliver(c2, s1, Request)
		want(w.find(s1, c2, Refused) < 0, "s1 refuses who has waited")
		w.inside(c1)
		w.exit(c1)
		w.run(time.Second)
		w.inside(c2)
	}},
	{"the idle state is the initial one, of a server and of a client", func() {
		w := newWorld(Algorithm, 4, 3, withClock, option("delay", hop))
		for k := 1; k <= 3; k++ {
			w.loop(w.client(k), 10)
		}
		w.run(time.Minute)
		want(len(w.grants) == 30, "%d of 30 entries", len(w.grants))
		w.try(w.client(1))
		w.run(time.Duration(hop))
		w.cancel(w.client(1))
		w.run(time.Minute)
		for id := range w.procs {
			w.initial(protocol.ID(id))
		}
	}},
	{"timestamps: a refusal that comes late, inside or in the next epoch, changes nothing", func() {
		w := newWorld(Algorithm, 4, 1, withClock)
		c := w.client(1)
		w.try(c)
		first := w.procs[c].(*Client).time
		w.settle()
		w.inside(c)
		for j := s1; j <= s4; j++ {
			w.receive(j, c, Message{Kind: Refused, Time: first, Token: first - 1})
		}
		w.inside(c)
		w.exit(c)
		w.try(c)
		for j := s1; j <= s4; j++ {
			w.receive(j, c, Message{Kind: Refused, Time: first, Token: first - 1})
		}
		w.settle()
		w.inside(c)
	}},
}
