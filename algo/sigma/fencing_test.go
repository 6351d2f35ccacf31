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

// sure ends the pause in which a client that has a quorum waits for a smaller report.
func (w *world) sure(c protocol.ID) { w.timeout(c, retryTimer) }

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
	{"fast path: a REQUEST that arrives twice is answered by the same report", func() {
		w := fenced(1)
		c := w.client(1)
		w.try(c)
		w.repeat(c, s1, Request)
		w.deliver(c, s1, Request)
		first, again := w.flights[w.find(s1, c, Response)].msg, w.flights[len(w.flights)-1].msg
		want(first == again && first.Token < first.Time, "answers %v and %v", text(first), text(again))
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
			w.run(6*eps + 5*time.Duration(hop))
			want(w.users[c] == protocol.InCrit, "eps %v: %v, %q", eps, w.users[c], w.reason[c])
		}
	}},
	{"slow path: before it has a token recorded, a client waits for T for a server that may know less", func() {
		w, c := slow()
		w.ask(c, s4)
		got := w.timers[c][retryTimer] - w.now
		want(got == hop, "waits for %d, want %d", got, hop)
		w.now += hop / 2
		w.receive(s1, c, Message{Kind: Response, Owner: 77, Time: 1, Inc: w.lives[s1]})
		_, set := w.timers[c][tokenTimer]
		want(set, "still waits, though all have answered")

		w = newWorld(Algorithm, 7, 1, withClock, option("delay", hop), option("fence", FenceOn))
		c = w.client(1)
		w.try(c)
		t := w.procs[c].(*Client).time
		for j := range protocol.ID(5) {
			w.receive(j, c, Message{Kind: Response, Owner: c, Time: t, Serial: 1, Token: t + 1, Inc: w.lives[j]})
		}
		w.now += hop / 2
		w.receive(5, c, Message{Kind: Response, Owner: 77, Time: 1, Inc: w.lives[5]})
		got = w.timers[c][retryTimer] - w.now
		want(got == hop/2, "one more answer makes it wait for %d", got)

		w, c = slow()
		w.receive(s1, c, Message{Kind: Refused, Time: w.procs[c].(*Client).time, Token: uint64(w.now)})
		w.ask(c, s4)
		_, set = w.timers[c][tokenTimer]
		want(set, "waits for a server that refused it")
	}},
	{"slow path: the timestamp after a token that was refused is above it", func() {
		w, c := slow()
		w.ask(c, s4)
		w.sure(c)
		token := w.procs[c].(*Client).token
		w.timeout(c, tokenTimer) // much too early: it is refused
		for _, j := range []protocol.ID{s2, s3, s4} {
			w.deliver(c, j, SetToken)
		}
		w.deliver(s2, c, Refused)
		w.timeout(c, retryTimer)
		got := w.procs[c].(*Client).time
		want(got == token+1, "asks again with %d, want the time after %d", got, token)
		w.run(time.Duration(10 * fenceEps))
		w.inside(c)
	}},
	{"slow path: a late refusal by a server that is not asked is nothing to it", func() {
		w, c := slow()
		w.ask(c, s4)
		w.sure(c)
		token := w.procs[c].(*Client).token
		want(token != 0 && !w.procs[c].(*Client).servers[s1].asked, "asks s1 to record %d", token)
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
		want(!set, "does not wait for a fourth support")
		w.sure(c)
		_, set = w.timers[c][tokenTimer]
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
			w.sure(c)
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
		w.sure(c)
		token := w.procs[c].(*Client).token
		w.timeout(c, tokenTimer)
		w.ask(c, s1)
		got := w.procs[c].(*Client)
		want(got.token == token, "token %d, then %d", token, got.token)
		asked := got.count(func(s *view) bool { return s.asked })
		want(asked == 3, "asked %d", asked)
	}},
	{"slow path: a clock that is past the token waits for nothing", func() {
		w, c := slow()
		w.drop(c, s4, Request)
		w.deliver(c, s1, Request)
		w.now += 10 * fenceEps
		w.deliver(s1, c, Response)
		w.sure(c)
		for _, j := range []protocol.ID{s1, s2, s3} {
			want(w.find(c, j, SetToken) >= 0, "no SETTOKEN to s%d", j+1)
		}
	}},
	{"slow path: a refusal by a server whose clock is behind is not about our clock", func() {
		w, c := slow()
		w.ask(c, s4)
		w.sure(c)
		w.timeout(c, tokenTimer)
		first := w.procs[c].(*Client).time
		w.receive(s2, c, Message{Kind: Refused, Time: first, Token: first - 1})
		w.timeout(c, retryTimer)
		want(w.procs[c].(*Client).time > first, "does not begin anew")
	}},
	{"slow path: RECORDED counts for the epoch and the token that it names only", func() {
		w, c := slow()
		w.ask(c, s4)
		w.sure(c)
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
			w.sure(c)
			set := "SETTOKEN(1 serial=1 token=2)"
			w.wantFlying(c, set, set, set, "REQUEST(1)")
			w.settle()
			w.inside(c)
			want(w.token[c] == 2 && w.procs[c].(*Client).time == 1, "token %d, after a refusal", w.token[c])
			got := w.server(s1).report(request{client: 77, time: 3}, 0)
			want(got == 2, "s1 reports %d", got)
		}
	}},
	{"slow path: what the last epoch asked for and got recorded is over", func() {
		w, c := slow()
		w.ask(c, s4)
		w.sure(c)
		w.now += 4*fenceEps + 1
		w.timeout(c, tokenTimer)
		client := w.procs[c].(*Client)
		for _, j := range []protocol.ID{s2, s3} {
			w.deliver(c, j, SetToken)
			w.deliver(j, c, Recorded)
		}
		w.receive(s4, c, Message{Kind: Refused, Time: client.time, Token: uint64(w.now)})
		w.timeout(c, retryTimer)
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
		w.sure(c)
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
	{"clocks: of 2^63 ns and more, or of a second more than is allowed, a server takes nothing from anybody", func() {
		w := fenced(2)
		c, other := w.client(1), w.client(2)
		w.try(other)
		w.run(2 * time.Duration(hop))
		w.exit(other)
		w.run(2 * time.Duration(hop))
		for _, x := range []uint64{uint64(w.now + 3*fenceEps), 1<<63 - 1, 1 << 63, 1<<64 - 2, 1<<64 - 1} {
			for stage := First; stage <= Inside; stage++ {
				before := protocol.AppendState(nil, w.procs[s1])
				w.receive(c, s1, Message{Kind: Request, Time: x, Stage: stage})
				want(slices.Equal(protocol.AppendState(nil, w.procs[s1]), before), "a REQUEST of %d changes s1", x)
				want(w.find(s1, c, Refused) >= 0, "a REQUEST of %d is answered %q", x, w.flying(s1, c))
				w.lose(s1, c)
			}
		}
		w.try(c)
		w.run(2 * time.Duration(hop))
		w.inside(c)
		for _, x := range []uint64{1<<63 - 1, 1 << 63, 1<<64 - 1} {
			before := protocol.AppendState(nil, w.procs[s1])
			w.receive(c, s1, Message{Kind: SetToken, Time: w.procs[c].(*Client).time, Serial: 1, Token: x})
			want(slices.Equal(protocol.AppendState(nil, w.procs[s1]), before), "a SETTOKEN of %d changes s1", x)
		}
	}},
	{"clocks: n-m servers that are wrong are no obstacle, whichever answers first", func() {
		for _, step := range []time.Duration{time.Second, 10 * time.Minute, 2 * time.Hour, -time.Second, -10 * time.Minute, -2 * time.Hour} {
			w := fenced(2)
			w.latency = func(from, to protocol.ID) int64 {
				if from == s1 || to == s1 {
					return hop / 2
				}
				return hop
			}
			w.skew[s1] = int64(step)
			last := uint64(0)
			for k := range 4 {
				c := w.client(1 + k%2)
				w.try(c)
				w.run(2 * time.Duration(hop))
				want(w.users[c] == protocol.InCrit && w.token[c] > last, "s1 is off by %v: %v, token %d after %d", step, w.users[c], w.token[c], last)
				last = w.token[c]
				w.exit(c)
				w.run(2 * time.Duration(hop))
			}
		}
	}},
	{"clocks: more than n-m that are wrong let nobody in, with few messages, and nothing of it stays", func() {
		for _, step := range []time.Duration{time.Second, 30 * time.Second, 2 * time.Hour, -time.Second, -10 * time.Minute, -2 * time.Hour} {
			w := fenced(3)
			c := w.client(1)
			w.try(c)
			w.run(2 * time.Duration(hop))
			want(w.users[c] == protocol.InCrit, "not inside")
			last := w.token[c]
			w.exit(c)
			w.run(2 * time.Duration(hop))
			w.skew[s1], w.skew[s2] = int64(step), int64(step)
			sent := w.sent
			w.try(w.client(2))
			w.try(w.client(3))
			w.run(3 * time.Second)
			want(w.sent-sent < 1000, "off by %v: %d messages in 3 s", step, w.sent-sent)
			w.skew[s1], w.skew[s2] = 0, 0
			for range 3 {
				w.run(2 * time.Second)
				want(len(w.grants) > 1, "off by %v until just now: nobody is inside", step)
				in := w.grants[len(w.grants)-1]
				want(w.users[in] == protocol.InCrit && w.token[in] > last, "off by %v: %v, token %d after %d", step, w.users[in], w.token[in], last)
				want(w.token[in] <= uint64(w.now+4*fenceEps), "token %d at %d", w.token[in], w.now)
				last = w.token[in]
				w.exit(in)
				w.try(in)
			}
		}
	}},
	{"clocks: a client that is wrong as its server's machine is gets in without that server", func() {
		for _, by := range []time.Duration{2 * time.Second, -2 * time.Second, 10 * time.Minute, -10 * time.Minute, 2 * time.Hour, -2 * time.Hour} {
			w := fenced(2)
			c, other := w.client(1), w.client(2)
			w.skew[s1], w.skew[c] = int64(by), int64(by)
			w.try(c)
			sent := w.sent
			w.run(5 * time.Second)
			want(w.users[c] == protocol.InCrit, "off by %v: %v", by, w.users[c])
			want(w.sent-sent < 200, "off by %v: %d messages", by, w.sent-sent)
			last := w.token[c]
			w.exit(c)
			w.run(time.Second)
			w.try(other)
			w.run(time.Second)
			want(w.users[other] == protocol.InCrit && w.token[other] > last, "off by %v: the next one: %v", by, w.users[other])
		}
	}},
	{"clocks: a server that refused is asked again, and is needed once another one is down", func() {
		w := fenced(2)
		c, h := w.client(1), w.client(2)
		w.try(h)
		w.run(10 * time.Duration(hop))
		w.inside(h)
		w.skew[s1] = -int64(10 * time.Minute)
		w.try(c)
		w.run(time.Second)
		w.skew[s1] = 0
		w.procs[s2], w.timers[s2] = nil, nil
		w.suspect(c, s2)
		w.suspect(h, s2)
		w.exit(h)
		w.run(5 * time.Second)
		w.inside(c)
	}},
	{"clocks: two servers that were behind for a while have not forgotten a token", func() {
		w := fenced(3)
		c, d, e := w.client(1), w.client(2), w.client(3)
		w.try(e)
		w.now += 5 * hop
		w.try(c)
		for j := s1; j <= s3; j++ {
			w.ask(c, j)
		}
		w.ask(e, s4)
		w.inside(c)
		last := w.token[c]
		w.exit(c)
		w.cancel(e)
		w.settle()
		w.run(time.Second)
		w.skew[s2], w.skew[s3], w.skew[d] = -int64(10*time.Minute), -int64(10*time.Minute), -int64(10*time.Minute)
		w.try(d)
		w.run(2 * time.Second)
		w.skew[s2], w.skew[s3] = 0, 0
		w.run(5 * time.Second)
		want(w.users[d] == protocol.InCrit && w.token[d] > last, "%v, token %d after %d", w.users[d], w.token[d], last)
	}},
	{"clocks: a server that started by a wrong one is as good as any once its clock is right", func() {
		for _, step := range []time.Duration{10 * time.Minute, 2 * time.Hour, -2 * time.Hour} {
			w := fenced(1)
			c := w.client(1)
			w.skew[s1] = int64(step)
			w.amnesia(1)
			w.restore(c, 0)
			w.skew[s1] = 0
			w.suspect(c, s4)
			w.try(c)
			w.lose(c, s4)
			w.run(time.Duration(6*fenceEps + 10*hop))
			want(w.users[c] == protocol.InCrit, "started %v off: %v", step, w.users[c])
		}
	}},
	{"clocks: what was recorded from the future is passed over, and leaves room for others", func() {
		w := fenced(3)
		server, out := w.server(s1), &protocol.Out[Message]{}
		c1, c2, c3 := w.client(1), w.client(2), w.client(3)
		now := w.now
		future := uint64(now + int64(time.Hour))
		server.raise(c1, uint64(now-5), now, out)
		server.raise(c2, future, int64(future), out) // by a clock that was an hour ahead
		want(server.report(request{c3, uint64(now)}, now) == uint64(now-5), "reports %d", server.report(request{c3, uint64(now)}, now))
		server.raise(c3, future+1, int64(future), out)
		server.raise(c3, uint64(now-3), now, out)
		server.raise(c1, uint64(now-1), now, out)
		got := server.report(request{c2, uint64(now)}, now)
		want(got == uint64(now-1), "reports %d, want %d", got, now-1)
		server.raise(c1, uint64(now+10*fenceEps), now, out) // by a clock that is behind now
		server.raise(c2, uint64(now+9*fenceEps), now, out)
		got = server.report(request{c3, uint64(now)}, now+20*fenceEps)
		want(got == uint64(now+10*fenceEps), "reports %d, want %d", got, now+10*fenceEps)
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
