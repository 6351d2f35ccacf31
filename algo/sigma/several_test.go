package sigma

import (
	"slices"
	"testing"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/sim"
)

// either lets two users want any of two groups, each the other one first, or to be alone, at two servers. Whoever has
// chosen one of them waits for it, also while another one is inside.
func either(c *check.Config) {
	rooms(c)
	c.Wants, c.Properties = [][]protocol.Groups{{"r,s", "s,r", "!w"}}, nil
}

// choosers are two of those, and one that is alone.
func choosers(c *check.Config) {
	readers(c)
	c.Wants = [][]protocol.Groups{{"r,s"}, {"s,r"}, {"!w"}}
}

// torn are four servers: s1 and s2 support c1, which wants r or s, in s, where c2 and c3 are, and s3 in r. s4 supports c4, which
// is alone. What they said to others, and what others sent them, is on its way.
func torn() (w *world, c protocol.ID) {
	w = newWorld(Algorithm, 4, 4)
	w.unsound = true
	c = w.client(1)
	for k, g := range []protocol.Groups{"s", "s", "!w"} {
		w.tryIn(w.client(2+k), g)
		w.deliver(w.client(2+k), []protocol.ID{s1, s2, s4}[k], Request)
	}
	w.tryIn(c, "r,s")
	for j := s1; j <= s3; j++ {
		w.ask(c, j)
	}
	return w, c
}

// drawnTwice lets users want any of two of three groups.
func drawnTwice(c *sim.Config) { c.Groups, c.PerRequest = 3, 2 }

// severals are stories of those who want any one of several groups.
var severals = []story{
	{"an idle server gives the first group, and one in a session of another group that one, at once", func() {
		w := newWorld(Algorithm, 4, 4)
		w.unsound = true
		c := func(k int) protocol.ID { return w.client(k) }
		w.tryIn(c(1), "s,r")
		w.settle()
		w.tryIn(c(2), "r,s")
		w.settle()
		w.inside(c(1), c(2))
		w.tryIn(c(3), "r")
		w.settle()
		w.inside(c(1), c(2))
		w.exit(c(1))
		w.exit(c(2))
		w.settle()
		w.inside(c(3))
		w.tryIn(c(4), "t,s,r")
		w.settle()
		w.inside(c(3), c(4))
		for _, x := range []struct {
			c protocol.ID
			g protocol.Group
		}{{c(1), ""}, {c(3), "r"}, {c(4), "r"}} {
			got := protocol.Group(w.procs[x.c].(*Client).groups)
			want(got == x.g, "%d is in group %q, want %q", x.c, got, x.g)
		}
		want(w.sent == 52, "%d messages", w.sent) // three for each server and client that left; two of c1 and c2 hear of c3, and c3 waits
		w.exit(c(3))
		w.exit(c(4))
		w.settle()
		for j := range protocol.ID(4) {
			want(w.server(j).owner == (entry{}) && w.server(j).queue.len() == 0, "s%d knows somebody", j+1)
		}
	}},
	{"a session that begins is of the first group of the first one that waits, and takes in all who want it among others", func() {
		w := newWorld(Algorithm, 4, 5)
		w.unsound = true
		for k, g := range []protocol.Groups{"!w", "s,r", "r", "t,r,s", "r,s"} {
			w.tryIn(w.client(1+k), g)
			w.settle()
		}
		want(w.server(s1).queue.waiters[1].others == nil, "who wants one group takes memory for more")
		w.exit(w.client(1))
		w.settle()
		w.inside(w.client(2), w.client(4), w.client(5))
	}},
	{"a session lets nobody in behind one who wants none of its groups", func() {
		w := newWorld(Algorithm, 1, 3)
		w.unsound = true
		w.tryIn(w.client(1), "r")
		w.settle()
		w.tryIn(w.client(2), "s,t")
		w.settle()
		w.tryIn(w.client(3), "t,r")
		w.settle()
		w.inside(w.client(1))
		w.exit(w.client(1))
		w.settle()
		w.inside(w.client(2))
		w.exit(w.client(2))
		w.settle()
		w.inside(w.client(3))
		want(w.procs[w.client(3)].(*Client).groups == "t", "c3 is in %q", w.procs[w.client(3)].(*Client).groups)
	}},
	{"supports in two groups are no quorum of one: the client chooses, gives the others back, and tells servers that know better", func() {
		w, c := torn()
		p := w.procs[c].(*Client)
		want(p.supporters() == 2 && p.answers() == 3 && !p.resting, "%d supports in one group of %d answers, resting: %v", p.supporters(), p.answers(), p.resting)
		w.ask(c, s4)
		want(p.resting && p.groups == "r,s", "it rests: %v, and wants %q", p.resting, p.groups)
		w.timeout(c, retryTimer)
		want(p.groups == "s" && !p.resting, "it wants %q, and rests: %v", p.groups, p.resting)
		w.wantFlying(c, "", "", "DOWNGRADE(1 group=s)", "DOWNGRADE(1 group=s)")
		w.deliver(c, s3, Downgrade) // where nobody else is
		want(w.flying(s3, c) == "RESPONSE(#4@1 inc=1 serial=2 group=s)", "s3 answers %q", w.flying(s3, c))
		w.deliver(c, s4, Downgrade)
		want(w.server(s4).queue.waiters[0].groups() == choice{share("s")}, "at s4 it wants %v", w.server(s4).queue.waiters[0].groups())
		w.deliver(s3, c, Response)
		w.inside(c)
		w.settle()
		w.inside(c, w.client(2), w.client(3))
	}},
	{"of two groups with as many supports it chooses the one that an idle server would not have given", func() {
		w := newWorld(Algorithm, 4, 3)
		c := w.client(1)
		for k, g := range []protocol.Groups{"s", "!w"} {
			w.tryIn(w.client(2+k), g)
			w.deliver(w.client(2+k), protocol.ID(k), Request)
		}
		w.tryIn(c, "r,s")
		for j := s1; j <= s3; j++ {
			w.ask(c, j)
		}
		w.timeout(c, retryTimer)
		want(w.procs[c].(*Client).groups == "s", "it has chosen %q", w.procs[c].(*Client).groups)
	}},
	{"where its request waits it wants no other group any more, also if it preferred the one that it has chosen", func() {
		w := newWorld(Algorithm, 4, 3)
		c := w.client(1)
		for k, g := range []protocol.Groups{"r", "!w"} {
			w.tryIn(w.client(2+k), g)
			w.deliver(w.client(2+k), []protocol.ID{s3, s4}[k], Request)
		}
		w.tryIn(c, "s,r")
		for j := s1; j <= s4; j++ {
			w.ask(c, j)
		}
		w.timeout(c, retryTimer)
		for _, j := range []protocol.ID{s3, s4} {
			w.deliver(c, j, Downgrade)
			waits := w.server(j).queue.all()
			want(len(waits) == 1 && waits[0].groups() == choice{share("s")}, "at s%d wait %v", j+1, waits)
		}
	}},
	{"a client that enters gives back what it has in other groups, and what comes later", func() {
		for _, late := range []bool{false, true} {
			w := newWorld(Algorithm, 4, 2)
			w.unsound = true
			other, c := w.client(2), w.client(1)
			w.tryIn(other, "s")
			w.deliver(other, s1, Request)
			w.tryIn(c, "r,s")
			w.deliver(c, s1, Request)
			if !late {
				w.deliver(s1, c, Response)
			}
			for j := s2; j <= s4; j++ {
				w.ask(c, j)
			}
			w.inside(c)
			p := w.procs[c].(*Client)
			if late {
				w.wantFlying(c, "", "", "", "")
				w.repeat(s1, c, Response)
				w.same(c, func() { w.deliver(s1, c, Response) })
			}
			want(p.servers[s1].given == 1, "it gave back %d", p.servers[s1].given)
			want(p.supporters() == 3 && p.groups == "r", "%d support it in %q", p.supporters(), p.groups)
			for w.find(c, s1, Downgrade) >= 0 {
				w.deliver(c, s1, Downgrade)
			}
			want(w.server(s1).owner.client == other && len(w.server(s1).sharers()) == 0 && w.server(s1).queue.len() == 1, "s1 supports %v and %v", w.server(s1).owner, w.server(s1).sharers())
			w.exit(c)
			w.settle()
			want(w.server(s1).queue.len() == 0, "s1 lets somebody wait who has left")
		}
	}},
	{"what a client has chosen may come before its request, or after its RELEASE", func() {
		w, c := torn()
		w.ask(c, s4)
		w.timeout(c, retryTimer)
		w.amnesia(3) // it knows nothing of c1 now
		w.same(s3, func() { w.deliver(c, s3, Downgrade) })
		w.restore(c, 2)
		want(w.flying(c, s3) == "REQUEST(1 serial=1 group=s again)", "it asks %q", w.flying(c, s3))
		w.cancel(c)
		w.deliver(c, s4, Release)
		w.same(s4, func() { w.deliver(c, s4, Downgrade) })
		w.drop(c, s3, Request)
		w.settle()
		want(!w.server(s1).supports(request{c, 1}) && w.server(s4).queue.find(c) < 0, "somebody knows c1")
	}},
	{"a request from before the choice is answered by it, whatever the answer", func() {
		w := newWorld(Algorithm, 4, 2)
		c, other := w.client(1), w.client(2)
		w.unsound = true
		w.tryIn(other, "s")
		for j := s1; j <= s3; j++ {
			w.deliver(other, j, Request)
		}
		w.tryIn(c, "r,s")
		for j := s1; j <= s3; j++ {
			w.ask(c, j)
		}
		w.inside(c)
		w.ask(c, s4) // in r
		w.deliver(c, s4, Downgrade)
		want(w.server(s4).group() == share("s"), "s4 is in %s", named(w.server(s4).group()))
		w.settle()
		want(w.procs[c].(*Client).supporters() == 4, "%d servers support it", w.procs[c].(*Client).supporters())
	}},
	{"a support that is recalled is one of the group in which it was given", func() {
		w, c := torn()
		w.receive(s1, c, Message{Kind: Recall, Time: 1, Inc: 1, Serial: 1})
		w.deliver(c, s1, Yield)
		want(w.server(s1).supports(request{c, 1}) && w.server(s1).group() == share("s"), "s1 supports %v", w.server(s1).owner)
		w.receive(s3, c, Message{Kind: Recall, Time: 1, Inc: 1, Serial: 1})
		w.deliver(c, s3, Yield)
		want(w.server(s3).group() == share("r"), "s3 is in %s", named(w.server(s3).group()))
	}},
	{"who asks an owner again, and gave its support back, wants what it says", func() {
		w, c := torn()
		w.receive(c, s1, Message{Kind: Request, Time: 1, Serial: 1, Stage: Again, Group: share("t"), Token: share("r")})
		waits := w.server(s1).queue.all()
		want(len(waits) == 1 && waits[0].groups() == choice{share("t"), share("r")}, "at s1 wait %v", waits)
	}},
	{"an owner that chooses another group waits for it with its head start, and not in the session", func() {
		w := newWorld(Algorithm, 1, 4, option("promise", 1))
		w.unsound = true
		c, heir := w.client(2), w.client(3)
		w.receive(w.client(1), s1, Message{Time: 1})
		w.receive(heir, s1, Message{Time: 7, After: 3})
		w.receive(c, s1, Message{Time: 8, Group: share("a"), Token: share("b"), After: 6})
		w.receive(w.client(4), s1, Message{Time: 5})
		w.receive(w.client(1), s1, Message{Kind: Downgrade, Time: 1, Group: share("a")})
		want(w.server(s1).supports(request{c, 8}), "c2 waits")
		w.receive(c, s1, Message{Kind: Downgrade, Time: 8, Group: share("b"), After: 6})
		want(w.server(s1).owned(c) == nil && w.server(s1).group() == share("a"), "c2 is in %s", named(w.server(s1).group()))
		want(slices.Equal(w.queued(), []protocol.ID{heir, c, w.client(4)}), "%v wait", w.queued())
	}},
	{"whoever chooses says its head start", func() {
		w := newWorld(Algorithm, 2, 2)
		c, other := w.client(1), w.client(2)
		w.tryIn(other, "s")
		w.deliver(other, s1, Request)
		w.tryEarly(c, "r,s", 5)
		w.ask(c, s1)
		w.ask(c, s2)
		w.timeout(c, retryTimer)
		want(w.flying(c, s2) == "DOWNGRADE(1 head=5 group=s)", "to s2 goes %q", w.flying(c, s2))
	}},
	{"one attempt chooses, too, and gives up when the one group cannot be had", func() {
		w := newWorld(Algorithm, 4, 3)
		c := w.client(1)
		for k, g := range []protocol.Groups{"s", "!w"} {
			w.tryIn(w.client(2+k), g)
			w.deliver(w.client(2+k), protocol.ID(3*k), Request)
		}
		w.input(c, protocol.Input{Kind: protocol.Try, Arg: protocol.TryOnce, Data: "r,s"})
		for _, j := range []protocol.ID{s4, s1, s2, s3} {
			w.ask(c, j)
		}
		p := w.procs[c].(*Client)
		w.timeout(c, retryTimer)
		want(p.groups == "r" && p.section == protocol.InTry, "it is in section %v, and has chosen %q", p.section, p.groups)
		for k := 0; p.section == protocol.InTry && k < 4; k++ {
			w.settle()
			if _, set := w.timers[c][retryTimer]; set {
				w.timeout(c, retryTimer)
			}
		}
		want(p.section == protocol.InRem && p.groups == "", "it is in section %v", p.section)
	}},
	{"a request names three groups at most, and none of who is alone if there are others", func() {
		for wanted, asks := range map[protocol.Groups]string{
			"a,b,c,d": "group=a,b,c", "!w,b,!v,a": "group=b,a", "!w,b": "group=b", "!!w,!v": "group=~0000", "!w,!v": "", "!v": "", "d": "group=d",
		} {
			w := newWorld(Algorithm, 1, 1)
			w.tryIn(w.client(1), wanted)
			got := w.flights[0].msg
			if asks != "" && asks[len(asks)-1] != '0' {
				asks = " " + asks
				want(text(got) == "REQUEST(1"+asks+")", "%q: it sends %s", wanted, text(got))
			}
			want(asks != "" || got.Group == 0, "%q: it sends %s", wanted, text(got))
			want(keeps(got.Group) == (wanted == "!!w,!v"), "%q: it sends %s", wanted, text(got))
		}
	}},
	{"a client that begins again wants what it has chosen, and the next try what it says", func() {
		w, c := torn()
		w.ask(c, s4)
		w.timeout(c, retryTimer)
		w.cancel(c)
		w.tryIn(c, "r,s")
		want(w.flights[w.find(c, s2, Request)].msg.Group == share("r"), "it asks %q", w.flying(c, s2))
	}},
}

func TestSeverals(t *testing.T) { test(t, severals) }

// Whoever waits for one of several groups is shown with them.
func TestStandingOfSeveral(t *testing.T) {
	w := newWorld(Algorithm, 4, 2)
	w.tryIn(w.client(1), "!w")
	w.tryIn(w.client(2), "s,r,rooms-of-many")
	w.deliver(w.client(1), s1, Request)
	w.deliver(w.client(2), s1, Request)
	if got := w.procs[s1].(protocol.Inspector).Inspect().Waiters[0].Group; got != "s,r,~01911b3b" {
		t.Errorf("it waits for %q", got)
	}
}

// Two that want any of two groups, each the other one first, are served, and are not given back for ever.
func TestEither(t *testing.T) {
	for _, x := range []struct {
		name string
		n    int
		with []func(*check.Config)
	}{
		{"n=2", 2, []func(*check.Config){either, func(c *check.Config) {
			c.Properties = []string{check.Exclusion, check.Deadlock, check.WellFormed, check.MakesProgress, check.Starvation, "sigma/token"}
		}}},
		{"n=2, and one that is alone", 2, []func(*check.Config){choosers}},
	} {
		t.Run(x.name, func(t *testing.T) {
			k := model(x.n, nil)
			for _, change := range x.with {
				change(&k)
			}
			holds(t, k)
		})
	}
}
