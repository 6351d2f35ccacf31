package sigma

import (
	"slices"
	"time"

	"github.com/poundlock/poundlock/protocol"
)

// fenceEps is the bound of clocks in stories of fencing.
const fenceEps = int64(10 * time.Millisecond)

// fenced is a world with fencing and clocks, in which servers have run for a while.
func fenced(clients int) *world {
	w := newWorld(Algorithm, 4, clients, withClock, option("delay", hop),
		option("fence", FenceOn), option("eps", fenceEps))
	w.run(time.Second)
	return w
}

// slow lets a client hold supports of s2 and s3, while all servers have restarted.
func slow() (*world, protocol.ID) {
	w := fenced(1)
	c := w.client(1)
	for j := 1; j <= 4; j++ {
		w.amnesia(j)
		w.restore(c, j-1)
	}
	w.try(c)
	w.ask(c, s2)
	w.ask(c, s3)
	return w, c
}

func (w *world) server(j protocol.ID) *Server { return w.procs[j].(*Server) }

// fencing are the stories of fencing tokens.
var fencing = []story{
	{"fast path: the token is the timestamp, which m servers recorded with their support", func() {
		w := fenced(2)
		c := w.client(1)
		w.try(c)
		first := uint64(w.now)
		w.run(time.Duration(hop) * 2)
		w.inside(c)
		want(w.token[c] == first, "token %d, want the timestamp %d", w.token[c], first)
		for j := s1; j <= s4; j++ {
			want(w.server(j).tokens[0] == first, "s%d recorded %d", j+1, w.server(j).tokens[0])
		}
		w.exit(c)
		w.run(time.Duration(hop) * 2)
		w.try(w.client(2))
		w.run(time.Duration(hop) * 2)
		w.inside(w.client(2))
		want(w.token[w.client(2)] > first, "the next token is %d after %d", w.token[w.client(2)], first)
	}},
	{"fast path: who asks again is not held up by the token that it had", func() {
		w := fenced(1)
		c := w.client(1)
		for range 3 {
			w.try(c)
			w.run(time.Duration(hop) * 2)
			w.inside(c)
			w.exit(c)
		}
	}},
	{"slow path: after a restart a token beyond all reports is recorded by m, once the clock is there", func() {
		w := fenced(1)
		c := w.client(1)
		for j := 1; j <= 4; j++ {
			w.amnesia(j)
			w.restore(c, j-1)
		}
		floor := uint64(w.now + 4*fenceEps)
		w.try(c)
		w.run(time.Duration(4*fenceEps) - 1)
		for j := s1; j <= s4; j++ {
			want(w.find(c, j, SetToken) < 0, "SETTOKEN before the clock is there")
		}
		w.run(2)
		asked := 0
		for j := s1; j <= s4; j++ {
			if w.find(c, j, SetToken) >= 0 {
				asked++
				w.deliver(c, j, SetToken)
				want(w.server(j).tokens[0] == floor+1 && w.server(j).largest == c, "s%d: %v", j+1, w.server(j).tokens)
				w.inside()
				w.deliver(j, c, Recorded)
			}
		}
		want(asked == 3, "%d servers are asked, want m=3", asked)
		w.inside(c)
		want(w.token[c] == floor+1, "token %d, want %d", w.token[c], floor+1)
		w.exit(c)
		w.try(c)
		w.run(time.Duration(fenceEps))
		w.inside(c)
		want(w.token[c] > floor+1, "token %d after %d", w.token[c], floor+1)
	}},
	{"slow path: the first lock of fresh servers comes whatever the bound of clocks is", func() {
		for _, eps := range []time.Duration{
			0, time.Millisecond, 50 * time.Millisecond, 199 * time.Millisecond,
			201 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond, time.Second,
		} {
			for _, fast := range []int64{-1, 0, 1} { // who is eps ahead: the servers, nobody, the client
				w := newWorld(Algorithm, 4, 1, withClock, option("delay", hop), option("fence", FenceOn),
					option("eps", int64(eps)), func(w *world) {
						w.skew[s1], w.skew[s2], w.skew[s3], w.skew[s4] = -fast*int64(eps), 0, -fast*int64(eps), 0
						w.skew[w.client(1)] = fast * int64(eps)
					})
				c := w.client(1)
				w.try(c)
				first := w.procs[c].(*Client).time
				w.run(6*eps + 5*time.Duration(hop))
				want(w.users[c] == protocol.InCrit, "eps %v, client %+d: %v, %q", eps, fast, w.users[c], w.reason[c])
				want(w.procs[c].(*Client).time == first, "eps %v, client %+d: refused in between", eps, fast)
			}
		}
	}},
	{"slow path: a clock that is far behind is not waited for", func() {
		for _, eps := range []time.Duration{time.Millisecond, time.Second} {
			w := newWorld(Algorithm, 4, 1, withClock, option("delay", hop),
				option("fence", FenceOn), option("eps", int64(eps)))
			c := w.client(1)
			w.skew[c] = -int64(30 * time.Minute)
			w.try(c)
			w.run(max(safetyDelay*time.Duration(hop), 6*eps) + 5*time.Duration(hop))
			want(w.users[c] == protocol.InCrit, "eps %v: %v, %q", eps, w.users[c], w.reason[c])
		}
	}},
	{"slow path: a token that was refused does not count as one that the client had", func() {
		w, c := slow()
		w.ask(c, s4)
		first := w.procs[c].(*Client).time
		w.timeout(c, tokenTimer) // much too early: it is refused
		for _, j := range []protocol.ID{s2, s3, s4} {
			w.deliver(c, j, SetToken)
		}
		w.deliver(s2, c, Refused)
		got := w.procs[c].(*Client).time
		want(got == first+1, "asks again with %d, want the time after %d", got, first)
		w.run(time.Duration(10 * fenceEps))
		w.inside(c)
	}},
	{"slow path: a late refusal by a server that is not asked is nothing to it", func() {
		w, c := slow()
		w.ask(c, s4)
		token := w.procs[c].(*Client).token
		want(token != 0 && !w.procs[c].(*Client).asked[s1], "asks s1 to record %d", token)
		w.receive(s1, c, Message{Kind: Refused, Time: w.procs[c].(*Client).time, Token: uint64(w.now)})
		want(w.procs[c].(*Client).token == token, "begins anew")
		w.run(time.Duration(10 * fenceEps))
		w.inside(c)
	}},
	{"slow path: a fourth support that knows less makes it needless", func() {
		w := fenced(1)
		c := w.client(1)
		w.amnesia(4)
		w.restore(c, 3)
		w.try(c)
		w.ask(c, s4)
		w.ask(c, s1)
		w.ask(c, s2)
		w.inside()
		_, set := w.timers[c][tokenTimer]
		want(set, "does not wait to record a token")
		w.deliver(c, s3, Request)
		w.now += 5 * fenceEps
		w.input(c, protocol.Input{Kind: protocol.Timeout, Timer: tokenTimer})
		w.deliver(c, s4, SetToken)
		w.deliver(s3, c, Response)
		w.inside(c)
		want(w.token[c] == w.procs[c].(*Client).time, "token %d is not the timestamp", w.token[c])
		_, set = w.timers[c][tokenTimer]
		want(!set, "the timer of the slow path is still set")
		for _, j := range []protocol.ID{s1, s2} {
			w.deliver(c, j, SetToken)
		}
		for _, j := range []protocol.ID{s1, s2, s4} {
			w.deliver(j, c, Recorded) // too late
		}
		w.inside(c)
	}},
	{"slow path: a refusal, or a restart, begins anew", func() {
		for _, news := range []bool{false, true} {
			w := fenced(1)
			c := w.client(1)
			for j := 1; j <= 3; j++ {
				w.amnesia(j)
				w.restore(c, j-1)
			}
			w.try(c)
			for j := s1; j <= s3; j++ {
				w.ask(c, j)
			}
			w.lose(c, s4)
			first := w.procs[c].(*Client).time
			if news {
				w.amnesia(1)
				w.restore(c, 0)
			}
			w.run(time.Duration(4*fenceEps) - 5)
			if news {
				want(w.procs[c].(*Client).time != first, "stays in the epoch that lost a support")
			} else {
				w.amnesia(1) // and nobody tells
			}
			w.run(time.Duration(20 * fenceEps))
			w.inside(c)
			want(w.token[c] > first, "token %d", w.token[c])
		}
	}},
	{"slow path: a fourth support that knows as much changes nothing", func() {
		w, c := slow()
		w.ask(c, s4)
		token := w.procs[c].(*Client).token
		w.timeout(c, tokenTimer)
		w.ask(c, s1)
		got := w.procs[c].(*Client)
		want(got.token == token, "token %d, then %d", token, got.token)
		want(countTrue(got.asked) == 3, "asked %v", got.asked)
	}},
	{"slow path: a clock that is past the token waits for nothing", func() {
		w, c := slow()
		w.drop(c, s4, Request)
		w.deliver(c, s1, Request)
		w.now += 10 * fenceEps
		w.deliver(s1, c, Response)
		for _, j := range []protocol.ID{s1, s2, s3} {
			want(w.find(c, j, SetToken) >= 0, "no SETTOKEN to s%d", j+1)
		}
	}},
	{"slow path: a refusal by a server whose clock is behind is not about our clock", func() {
		w, c := slow()
		w.ask(c, s4)
		w.timeout(c, tokenTimer)
		first := w.procs[c].(*Client).time
		w.receive(s2, c, Message{Kind: Refused, Time: first, Token: first - 1})
		want(w.procs[c].(*Client).time > first, "does not begin anew")
	}},
	{"slow path: RECORDED counts for the epoch and the token that it names only", func() {
		w, c := slow()
		w.ask(c, s4)
		w.timeout(c, tokenTimer)
		client := w.procs[c].(*Client)
		late := Message{Kind: Recorded, Time: client.time, Token: client.token}
		for j := s1; j <= s4; j++ {
			w.receive(j, c, Message{Kind: Recorded, Time: late.Time - 1, Token: late.Token})
		}
		w.inside()
		for range 3 {
			w.receive(s2, c, late)
		}
		w.inside()
	}},
	{"without a clock nothing is refused, and the floor is the incarnation", func() {
		for _, eps := range []int64{0, fenceEps} {
			w := newWorld(Algorithm, 4, 1, option("fence", FenceOn), option("eps", eps))
			c := w.client(1)
			w.try(c)
			for j := s1; j <= s3; j++ {
				w.ask(c, j)
			}
			set := "SETTOKEN(1 serial=1 token=2)"
			w.wantFlying(c, set, set, set, "REQUEST(1)")
			w.settle()
			w.inside(c)
			want(w.token[c] == 2 && w.procs[c].(*Client).time == 1, "token %d, after a refusal", w.token[c])
		}
	}},
	{"slow path: what the last epoch asked for and got recorded is over", func() {
		w, c := slow()
		w.ask(c, s4)
		w.now += 4*fenceEps + 1
		w.timeout(c, tokenTimer)
		client := w.procs[c].(*Client)
		for _, j := range []protocol.ID{s2, s3} {
			w.deliver(c, j, SetToken)
			w.deliver(j, c, Recorded)
		}
		w.receive(s4, c, Message{Kind: Refused, Time: client.time, Token: uint64(w.now)})
		again := client.time
		w.suspect(c, s2)
		w.restore(c, 1)
		want(client.time == again, "a lapsed lease ends an epoch in which nothing is being recorded")
		for j := 1; j <= 4; j++ {
			w.amnesia(j)
			w.restore(c, j-1)
		}
		w.flights = nil
		for j := s1; j <= s4; j++ {
			w.receive(c, j, Message{Kind: Request, Time: client.time})
			w.deliver(j, c, Response)
		}
		w.now += 4*fenceEps + 1
		w.timeout(c, tokenTimer)
		for j := s1; j <= s4; j++ {
			if w.find(c, j, SetToken) >= 0 {
				w.inside()
				w.deliver(c, j, SetToken)
				w.deliver(j, c, Recorded)
			}
		}
		w.inside(c)
	}},
	{"slow path: giving up leaves nothing", func() {
		w, c := slow()
		w.ask(c, s4)
		w.cancel(c)
		_, set := w.timers[c][tokenTimer]
		want(!set, "the timer of the slow path is still set")
		w.run(time.Minute)
		for id := range w.procs {
			w.initial(protocol.ID(id))
		}
	}},
	{"unsound, no-floor: a restarted server knows of no token", func() {
		w := newWorld(Algorithm, 4, 1, withClock, option("fence", FenceNoFloor))
		c := w.client(1)
		w.try(c)
		w.settle()
		w.inside(c)
		want(w.token[c] == uint64(epoch), "token %d is not the timestamp", w.token[c])
		want(w.server(s1).tokens[0] == uint64(epoch), "it is not recorded: %d", w.server(s1).tokens)
	}},
	{"unsound, piggybacked: each grant counts one more than its supporters knew", func() {
		w := newWorld(Algorithm, 4, 1, withClock, option("fence", FencePiggyback))
		c := w.client(1)
		for token := uint64(1); token <= 3; token++ {
			w.try(c)
			w.settle()
			w.inside(c)
			want(w.token[c] == token, "token %d, want %d", w.token[c], token)
			w.exit(c)
			w.settle()
		}
	}},
	{"SETTOKEN: recorded for the current support, above all others' and at most 2 eps ahead", func() {
		w := fenced(2)
		c, other := w.client(1), w.client(2)
		w.try(other)
		w.run(time.Duration(hop))
		old := w.server(s1).tokens[0]
		w.exitOrCancel(other)
		w.run(time.Duration(hop))
		w.try(c)
		w.run(time.Duration(hop))
		t, now := w.procs[c].(*Client).time, uint64(w.now)
		for _, x := range []struct {
			what         string
			time, serial uint64
			token        uint64
			kind         uint8
		}{
			{"a support of another epoch", t + 1, 1, t + 1, Refused},
			{"another number", t, 2, t + 1, Refused},
			{"who waits, though the owner has that number", 0, 1, t + 1, Refused},
			{"another's token", t, 1, old, Refused},
			{"beyond the clock", t, 1, now + 2*uint64(fenceEps) + 1, Refused},
			{"at the bound of the clock", t, 1, now + 2*uint64(fenceEps), Recorded},
			{"above others' and below its own", t, 1, old + 1, Recorded},
		} {
			w.lose(c, s1)
			before := w.server(s1).tokens
			if x.time == 0 {
				w.receive(other, s1, Message{Kind: Request, Time: t})
				w.receive(other, s1, Message{Kind: SetToken, Time: t, Serial: x.serial, Token: x.token})
				want(w.find(s1, other, x.kind) >= 0, "%s: %q", x.what, w.flying(s1, other))
				want(w.server(s1).tokens == before, "%s: recorded all the same", x.what)
				continue
			}
			w.receive(c, s1, Message{Kind: SetToken, Time: x.time, Serial: x.serial, Token: x.token})
			want(w.find(s1, c, x.kind) >= 0, "%s: %q", x.what, w.flying(s1, c))
			want(x.kind == Recorded || w.server(s1).tokens == before, "%s: recorded all the same", x.what)
			if x.what == "a support of another epoch" {
				w.lose(c, s1)
				w.receive(c, s1, Message{Kind: Request, Time: t})
			}
		}
		got := w.server(s1).tokens
		want(got[0] == now+2*uint64(fenceEps), "the largest token is forgotten: %v", got)
	}},
	{"a server reports the largest token of others, and forgets all after D", func() {
		w := fenced(3)
		server := w.server(s1)
		out := &protocol.Out[Message]{}
		c1, c2, c3 := w.client(1), w.client(2), w.client(3)
		now := w.now
		floor := server.others(c1, now)
		want(floor == server.inc+4*uint64(fenceEps), "the floor is %d, started at %d", floor, server.inc)
		server.raise(c1, floor+10, now, out)
		reports := func(wanted ...uint64) {
			var got []uint64
			for _, c := range []protocol.ID{c1, c2, c3} {
				got = append(got, server.others(c, now)-floor)
			}
			want(slices.Equal(got, wanted), "reports above the floor: %d, want %d", got, wanted)
		}
		reports(0, 10, 10)
		server.raise(c2, floor+5, now, out)
		reports(5, 10, 10)
		server.raise(c3, floor+20, now, out)
		reports(20, 20, 10)
		server.raise(c3, floor+15, now, out)
		reports(20, 20, 10)
		server.raise(c3, floor+30, now, out)
		reports(30, 30, 10)
		server.raise(c1, floor+3, now, out)
		reports(30, 30, 10)
		w.timers[s1][forgetTimer] = now
		w.timeout(s1, forgetTimer)
		w.initial(s1)
		later := now + 2*server.terms.Value().memory
		got := server.others(c1, later)
		want(got == uint64(later-server.terms.Value().memory+4*fenceEps), "the floor of an old server is %d", got)
	}},
	{"the idle state is the initial one, once the token is forgotten", func() {
		w := fenced(3)
		for k := 1; k <= 3; k++ {
			w.loop(w.client(k), 10)
		}
		w.run(5 * time.Second)
		want(len(w.grants) == 30, "%d of 30 entries", len(w.grants))
		want(w.server(s1).tokens[0] != 0, "the token is forgotten too early")
		w.run(20 * time.Second)
		for id := range w.procs {
			w.initial(protocol.ID(id))
		}
	}},
}

// exitOrCancel leaves, whatever came first.
func (w *world) exitOrCancel(c protocol.ID) {
	if w.users[c] == protocol.InCrit {
		w.exit(c)
	} else {
		w.cancel(c)
	}
}
