package sigma

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/poundlock/poundlock/algo/algotest/mutant"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/sim"
)

// rooms lets two users want a group or to be alone, at two servers.
func rooms(c *check.Config) {
	c.N, c.Entries, c.Down = 2, nil, nil
	c.Wants = [][]protocol.Groups{{"r", "!w"}}
	c.Properties = []string{"all"}
}

// readers are two that share, and one that does not.
func readers(c *check.Config) {
	c.N, c.Clients, c.Entries, c.Down = 2, 3, nil, nil
	c.Wants = [][]protocol.Groups{{"r"}, {"r"}, {"!w"}}
	c.Timers = check.NeverFire
}

// sharing begins with two inside who share, and one that waits for them: servers forget one after the other.
func sharing(c *check.Config) {
	after("shared.txt")(c)
	c.Clients, c.Entries, c.Down = 3, nil, nil
	c.Wants = [][]protocol.Groups{{"r"}, {"r"}, {"!w"}}
	c.Spaced = 1
}

// drawn lets users want one of three groups.
func drawn(c *sim.Config) { c.Groups = 3 }

// sharings are stories of those who share.
var sharings = []story{
	{"groups have codes of their own", func() {
		for _, g := range []protocol.Group{"r", "rr", "readers", "readers-1", "readers-2", "1-readers", "2-readers"} {
			for _, h := range []protocol.Group{"", "!w", "r", "rr", "readers", "readers-1", "readers-2", "1-readers", "2-readers"} {
				want((share(g) == share(h)) == (g == h), "%q and %q: %x and %x", g, h, share(g), share(h))
			}
			want(share(g) <= most, "%q: %x", g, share(g))
		}
		want(named(share("readers")) == "readers" && share("!w") == 0 && share("") == 0, "%q, %x, %x", named(share("readers")), share("!w"), share(""))
	}},
	{"each owner is asked by CHECK, and by RECALL to give way to a holder that comes back", func() {
		w := newWorld(Algorithm, 4, 4, option("check", 1e9))
		c := []protocol.ID{w.client(1), w.client(2), w.client(3), w.client(4)}
		w.unsound = true
		w.tryIn(c[0], "!w")
		for j := s1; j <= s3; j++ {
			w.ask(c[0], j)
		}
		w.inside(c[0])
		w.amnesia(1)
		for _, r := range c[1:] {
			w.tryIn(r, "r")
			w.ask(r, s1)
		}
		w.timeout(s1, checkTimer)
		for _, r := range c[1:] {
			want(w.find(s1, r, Check) >= 0, "no CHECK to %d", r)
		}
		w.restore(c[0], 0)
		w.deliver(c[0], s1, Request)
		for _, r := range c[1:] {
			want(w.find(s1, r, Recall) >= 0, "no RECALL to %d", r)
			w.deliver(s1, r, Recall)
			w.deliver(r, s1, Yield)
		}
		want(w.server(s1).owner.client == c[0], "s1 supports %d", w.server(s1).owner.client)
	}},
	{"many owners are asked by CHECK in turns", func() {
		for _, x := range []struct{ owners, turns int }{{1, 1}, {crowd + 1, 1}, {crowd + 2, 2}, {3*crowd + 1, 3}, {3*crowd + 10, 4}} {
			w := newWorld(Algorithm, 4, x.owners, option("check", int64(time.Minute)))
			for k := range x.owners {
				w.tryIn(w.client(k+1), "r")
				w.ask(w.client(k+1), s1)
			}
			for round := range 2 {
				asked := map[protocol.ID]int{}
				for turn := range x.turns {
					after := w.timers[s1][checkTimer] - w.now
					want(round+turn == 0 || after == int64(time.Minute)/int64(x.turns), "%d owners: turn %d after %d", x.owners, turn, after)
					w.timeout(s1, checkTimer)
					before := len(asked)
					for k := range x.owners {
						if c := w.client(k + 1); w.find(s1, c, Check) >= 0 {
							w.drop(s1, c, Check)
							asked[c]++
						}
					}
					want(len(asked) > before && len(asked) <= before+crowd+1, "%d owners: turn %d has %d", x.owners, turn, len(asked)-before)
				}
				for k := range x.owners {
					want(asked[w.client(k+1)] == 1, "of %d owners %d is asked %d times", x.owners, k, asked[w.client(k+1)])
				}
			}
		}
	}},
	{"CHECK begins anew where fewer are left than have been asked", func() {
		const many = 3*crowd + 1
		w := newWorld(Algorithm, 4, many, option("check", int64(time.Minute)))
		for k := range many {
			w.tryIn(w.client(k+1), "r")
			w.ask(w.client(k+1), s1)
		}
		w.timeout(s1, checkTimer)
		w.timeout(s1, checkTimer)
		for k := range crowd + crowd/2 {
			w.cancel(w.client(many - k))
			w.deliver(w.client(many-k), s1, Release)
		}
		w.drop(s1, w.client(1), Check)
		w.timeout(s1, checkTimer)
		want(w.find(s1, w.client(1), Check) >= 0, "the earliest owner is not asked")
	}},
	{"whoever is alone waits for a group that can have a quorum, whomever of it servers name", func() {
		w := newWorld(Algorithm, 4, 3)
		c1, c2, alone := w.client(1), w.client(2), w.client(3)
		w.tryIn(c1, "r")
		w.tryIn(c2, "r")
		w.tryIn(alone, "!w")
		w.ask(alone, s4)
		w.ask(c1, s1)
		w.ask(c2, s2)
		w.ask(c1, s3)
		for j := s1; j <= s3; j++ {
			w.ask(alone, j)
		}
		p := w.procs[alone].(*Client)
		want(p.answers() == 4 && p.supporters() == 1 && !p.resting, "it has %d answers, and takes them for a split: %v", p.answers(), p.resting)
	}},
	{"whoever is alone does not wait for two groups that have a quorum together", func() {
		w := newWorld(Algorithm, 4, 4)
		alone := w.client(4)
		for k, g := range []protocol.Groups{"r", "s", "s"} {
			w.tryIn(w.client(k+1), g)
			w.ask(w.client(k+1), protocol.ID(k))
		}
		w.tryIn(alone, "!w")
		for j := range protocol.ID(4) {
			w.ask(alone, j)
		}
		p := w.procs[alone].(*Client)
		want(p.answers() == 4 && p.supporters() == 1 && p.resting, "it has %d answers, and takes them for a split: %v", p.answers(), p.resting)
	}},
	{"whoever shares waits for the server that may support it", func() {
		w := newWorld(Algorithm, 4, 2)
		w.tryIn(w.client(1), "!w")
		w.deliver(w.client(1), s1, Request)
		c := w.client(2)
		w.tryIn(c, "r")
		for j := s1; j <= s3; j++ {
			w.ask(c, j)
		}
		p := w.procs[c].(*Client)
		want(p.answers() == 3 && p.supporters() == 2 && !p.resting, "it has %d answers, and takes them for a split: %v", p.answers(), p.resting)
		w.ask(c, s4)
		w.inside(c)
	}},
	{"whoever shares does not wait for a server that refuses it", func() {
		w := newWorld(Algorithm, 4, 2)
		w.tryIn(w.client(1), "!w")
		w.deliver(w.client(1), s1, Request)
		c := w.client(2)
		w.tryIn(c, "r")
		w.receive(s4, c, Message{Kind: Refused, Time: 1, Token: 1})
		for j := s1; j <= s3; j++ {
			w.ask(c, j)
		}
		p := w.procs[c].(*Client)
		want(p.answers() == 3 && p.resting, "it has %d answers, and rests: %v", p.answers(), p.resting)
	}},
	{"a token that comes with a support is no group", func() {
		w := newWorld(Algorithm, 4, 1, option("fence", FenceOn))
		c := w.client(1)
		w.try(c)
		p := w.procs[c].(*Client)
		for j, token := range []uint64{7, 8} {
			w.receive(protocol.ID(j), c, Message{Kind: Response, Owner: c, Time: p.time, Inc: w.lives[j], Serial: 1, Token: token})
		}
		w.receive(s3, c, Message{Kind: Response, Owner: 77, Time: 1, Inc: w.lives[s3]})
		want(p.answers() == 3 && p.supporters() == 2 && !p.resting, "it has %d answers, %d of them supports, and takes them for a split: %v", p.answers(), p.supporters(), p.resting)
	}},
	{"who shares hears of the first one that waits and does not, and who comes in later hears of it with its support", func() {
		w := newWorld(Algorithm, 1, 6)
		w.unsound = true
		c := func(k int) protocol.ID { return w.client(k) }
		for k, g := range []protocol.Groups{"r", "r", "!w", "r", "!w", "r"} {
			w.tryIn(c(k+1), g)
		}
		ask := func(k int, told ...protocol.ID) {
			w.deliver(c(k), s1, Request)
			for w.find(s1, c(1), Response) >= 0 {
				w.deliver(s1, c(1), Response)
			}
			for w.find(s1, c(2), Response) >= 0 {
				w.deliver(s1, c(2), Response)
			}
			want(slices.Equal(w.heard, told), "after the request of c%d: %v were told, want %v", k, w.heard, told)
		}
		ask(1)
		ask(2)
		ask(3, c(1), c(2))
		ask(4, c(1), c(2))
		ask(5, c(1), c(2))
		w.exit(c(1))
		w.exit(c(2))
		w.settle()
		want(len(w.heard) == 2, "told are %v: a holder that is alone needs not hear of it", w.heard)
		w.exit(c(3)) // a session begins for c4 and c6, and c5 waits
		w.settle()
		w.inside(c(4), c(6))
		want(slices.Equal(w.heard[2:], []protocol.ID{c(4), c(6)}), "told are %v", w.heard)
		w.exit(c(4))
		w.exit(c(6))
		w.settle()
		w.inside(c(5))
		w.heard = nil
		w.tryIn(c(1), "r")
		w.tryIn(c(2), "r")
		w.settle()
		w.exit(c(5))
		w.settle()
		w.inside(c(1), c(2))
		want(len(w.heard) == 0, "told are %v, and nobody waits", w.heard)
	}},
	{"who waits in place of a request before is told of once, and an old word counts for nobody", func() {
		w := newWorld(Algorithm, 1, 2)
		a, b := w.client(1), w.client(2)
		w.tryIn(a, "r")
		w.settle()
		w.tryIn(b, "!w")
		w.deliver(b, s1, Request)
		i := w.find(s1, a, Response)
		old := w.flights[i].msg
		w.settle()
		want(len(w.heard) == 1, "told are %v", w.heard)
		w.exit(a)
		w.settle()
		w.receive(s1, a, old)
		want(len(w.heard) == 1, "told are %v, one of them after it has left", w.heard)
		w.settle()
		w.exit(b)
		w.tryIn(a, "r")
		w.same(a, func() {
			w.receive(s1, a, Message{Kind: Response, Stage: Wanted, Owner: a, Time: w.procs[a].(*Client).time, Inc: 1})
		})
		want(len(w.heard) == 2, "told are %v", w.heard)
	}},
	{"a request made before a session began shares it, wherever others wait, and a later one does not", func() {
		const eps = int64(50 * time.Millisecond)
		for _, ahead := range []int64{0, int64(10 * time.Second)} { // of the clock of the server, before that of clients
			w := newWorld(Algorithm, 1, 5, withClock, func(w *world) { w.skew[0], w.unsound = ahead, true })
			writer, reader, next, early, late := w.client(1), w.client(2), w.client(3), w.client(4), w.client(5)
			asks := func(c protocol.ID, g protocol.Groups) {
				w.now += hop
				w.tryIn(c, g)
			}
			asks(writer, "!w")
			w.settle()
			asks(reader, "r")
			asks(next, "!w")
			w.settle()
			newest := w.now
			w.exit(writer)
			if w.now += hop; ahead > 0 {
				w.now = newest + 2*eps
			}
			w.tryIn(early, "r")
			w.deliver(writer, s1, Release)
			w.now++
			w.tryIn(late, "r")
			w.settle()
			w.inside(reader, early)
			w.exit(reader)
			w.exit(early)
			w.settle()
			w.inside(next)
			w.exit(next)
			w.settle()
			w.inside(late)
		}
	}},
	{"who keeps is alone, hears who waits, and nobody has one of its tokens", func() {
		const tokens = protocol.KeptTokens
		w := newWorld(Algorithm, 4, 3, withClock, option("fence", FenceOn), option("delay", hop))
		w.latency = func(_, _ protocol.ID) int64 { return hop / 10 }
		w.now += int64(time.Second) // past the floor of servers that have just started
		a, b, c := w.client(1), w.client(2), w.client(3)
		in := func(x protocol.ID, g protocol.Groups) uint64 {
			w.tryIn(x, g)
			for range 10_000 {
				if w.run(time.Duration(hop / 10)); w.users[x] == protocol.InCrit {
					break
				}
			}
			w.inside(x)
			return w.token[x]
		}
		began := uint64(w.now)
		first := in(a, "!!w")
		want(first == began-tokens+1, "its first token is %d, of a request at %d", first, began)
		holders := w.procs[0].(*Server).Inspect().Holders
		want(len(holders) == 1 && holders[0].Group == "" && holders[0].Token == first, "s1 tells of %+v", holders)
		w.tryIn(b, "!!w")
		w.tryIn(c, "r")
		w.run(2 * time.Millisecond)
		w.inside(a)
		want(slices.Contains(w.heard, a), "told are %v", w.heard)
		w.exit(a)
		w.run(20 * time.Millisecond)
		w.inside(b)
		want(w.token[b] > first+tokens-1, "b has token %d beside those from %d on", w.token[b], first)
		w.exit(b)
		w.run(20 * time.Millisecond)
		w.inside(c)
		want(w.token[c] > w.token[b]+tokens-1, "c has token %d beside those from %d on", w.token[c], w.token[b])
		w.exit(c)
		w.run(20 * time.Millisecond)
		again := in(a, "!!w")
		w.exit(a)
		w.settle()
		// Sooner than its tokens are over, and by a clock that was set back, which has forgotten them.
		once := in(a, "!!w")
		want(once > again+tokens-1, "its token is %d, after those from %d on", once, again)
		w.exit(a)
		w.run(2 * time.Millisecond)
		w.skew[a] = -int64(time.Second)
		twice := in(a, "!!w")
		want(twice > once+tokens-1, "its token is %d, after those from %d on", twice, once)
	}},
	{"a server tells who shares its support, and who is alone", func() {
		w := newWorld(Algorithm, 4, 4)
		a, b, c, d := w.client(1), w.client(2), w.client(3), w.client(4)
		owners := func(all ...protocol.ID) {
			var told []protocol.ID // in the order of the requests, which step compares
			for _, r := range w.told[s1] {
				told = append(told, r.client)
			}
			slices.Sort(told)
			want(slices.Equal(told, all), "s1 tells of %v, want %v", told, all)
		}
		w.tryIn(a, "!w")
		w.deliver(a, s1, Request)
		owners(a)
		for _, r := range []protocol.ID{b, c} {
			w.tryIn(r, "r")
			w.deliver(r, s1, Request)
		}
		owners(a)
		w.receive(a, s1, Message{Kind: Release, Time: 1})
		owners(b, c)
		w.tryIn(d, "r")
		w.deliver(d, s1, Request)
		owners(b, c, d)
		w.receive(c, s1, Message{Kind: Yield, Time: 1, Serial: 1}) // it gets it again
		owners(b, c, d)
		w.receive(b, s1, Message{Kind: Release, Time: 1})
		owners(c, d)
		w.receive(c, s1, Message{Kind: Request, Time: 2}) // alone
		owners(d)
		w.receive(d, s1, Message{Kind: Release, Time: 1})
		owners(c)
		w.receive(b, s1, Message{Kind: Request, Time: 3, Group: share("r")})
		w.receive(c, s1, Message{Kind: Release, Time: 2})
		owners(b)
		w.receive(b, s1, Message{Kind: Release, Time: 3})
		owners()
	}},
	{"a token from clocks that were ahead is none of those who share", func() {
		for _, g := range []protocol.Groups{"r", "s", ""} {
			w := newWorld(Algorithm, 4, 3, withClock, option("delay", hop), option("fence", FenceOn), option("eps", fenceEps))
			w.unsound = true
			w.run(20 * time.Second)
			ahead := w.client(1)
			w.skew[ahead], w.skew[s1], w.skew[s2] = int64(2*time.Hour), int64(2*time.Hour), int64(2*time.Hour)
			w.tryIn(ahead, g)
			w.run(time.Second)
			w.cancel(ahead)
			w.run(time.Second)
			w.skew[ahead], w.skew[s1], w.skew[s2] = 0, 0, 0
			late, early := w.client(2), w.client(3)
			w.latency = func(from, _ protocol.ID) int64 { // the request that was made first arrives last
				if from == early {
					return 3 * hop
				}
				return hop
			}
			w.tryIn(early, "r")
			w.run(time.Millisecond)
			w.tryIn(late, "r")
			w.run(10 * time.Millisecond)
			w.inside(late, early)
			for _, c := range []protocol.ID{early, late} {
				want(w.token[c] == w.procs[c].(*Client).time || w.procs[c].(*Client).time == 0, "%d has token %d", c, w.token[c])
			}
		}
	}},
	{"a token that was too large for a clock that was behind counts again when it is right", func() {
		w := newWorld(Algorithm, 4, 3, withClock, option("delay", hop), option("fence", FenceOn), option("eps", fenceEps))
		w.unsound = true
		w.run(20 * time.Second)
		writer, behind, right := w.client(1), w.client(2), w.client(3)
		w.try(writer)
		w.run(time.Second)
		token := w.token[writer]
		w.exit(writer)
		w.run(100 * time.Millisecond)
		w.skew[behind], w.skew[s1] = -int64(time.Minute), -int64(time.Minute)
		w.tryIn(behind, "r")
		w.deliver(behind, s1, Request)
		w.skew[behind], w.skew[s1] = 0, 0
		w.tryIn(right, "r")
		w.deliver(right, s1, Request)
		m := w.flights[w.find(s1, right, Response)].msg
		want(m.Serial == 1 && m.Token >= token, "the reader is told %d, and the writer had %d", m.Token, token)
	}},
	{"the next try wants what it says", func() {
		w := newWorld(Algorithm, 4, 1)
		c := w.client(1)
		w.tryIn(c, "r")
		w.settle()
		w.exit(c)
		w.settle()
		want(w.procs[c].(*Client).groups == "", "it remembers a group")
		w.try(c)
		want(w.flights[w.find(c, s1, Request)].msg.Group == 0, "it wants a group")
	}},
}

// Holders and waiters are shown with their groups, and holders that share with a token that is no larger than theirs.
func TestStandingOfGroups(t *testing.T) {
	for _, x := range []struct{ group, shown string }{
		{"r", "r"},
		{"readers", "readers"},
		{"a,b", "a,b"},
		{"!w", ""},
		{"", ""},
		{"readers-1", "~5f6f691c"},
		{"readers-2", "~5f6f6879"},
	} {
		if got := named(share(protocol.Group(x.group))); got != x.shown {
			t.Errorf("%q is shown as %q, want %q", x.group, got, x.shown)
		}
	}
	if got := named(0x07206e); got != "~0007206e" {
		t.Errorf("a name that cannot be printed is shown as %q", got)
	}
	w := newWorld(Algorithm, 4, 4, option("fence", FenceNoFloor))
	for k, g := range []protocol.Groups{"r", "r", "!w", "rooms-of-many"} {
		w.tryIn(w.client(k+1), g)
		w.deliver(w.client(k+1), s1, Request)
	}
	got := w.procs[s1].(protocol.Inspector).Inspect()
	want := protocol.Standing{
		Holders: []protocol.Request{{User: w.client(1), Since: 1, Token: 1, Group: "r"}, {User: w.client(2), Since: 1, Token: 1, Group: "r"}},
		Waiters: []protocol.Request{{User: w.client(3), Since: 1}, {User: w.client(4), Since: 1, Group: "~01911b3b"}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("it knows %+v, want %+v", got, want)
	}
}

func TestSharings(t *testing.T) { test(t, sharings) }

// tryIn is try for a group.
func (w *world) tryIn(c protocol.ID, g protocol.Groups) { w.input(c, protocol.NewTry(g)) }

// paced says how long twenty users take, how many messages they send, and how many grants take one more round for their
// token, and is right to 2 %.
func paced() (string, error) {
	for _, p := range []struct {
		groups                  int // 0: eighteen readers and two writers
		fence                   int64
		delay                   sim.Dist
		seconds, messages, slow float64
	}{
		{4, FenceOff, sim.Constant(time.Millisecond), 0.959, 15.19, 0},
		{4, FenceOff, sim.Exponential(time.Millisecond), 1.563, 20.82, 0},
		{0, FenceOff, sim.Constant(time.Millisecond), 1.057, 15.97, 0},
		{0, FenceOn, sim.Constant(time.Millisecond), 1.263, 16.08, 0},
		{0, FenceOn, sim.Exponential(time.Millisecond), 1.361, 17.21, 0},
	} {
		c := sim.Config{
			Config: protocol.Config{N: 4, Options: map[string]int64{"fence": p.fence}}, Clients: 20, Entries: []int{50}, Seed: 1,
			Think: sim.Constant(0), Hold: sim.Constant(5 * time.Millisecond), Delay: p.delay, Patience: 50_000, Groups: p.groups,
		}
		if p.groups == 0 {
			c.Wants = slices.Concat(slices.Repeat([]protocol.Groups{"readers"}, 18), slices.Repeat([]protocol.Groups{"!w"}, 2))
		}
		r, err := sim.Run(Algorithm, c)
		if err != nil {
			return "", err
		}
		if r.ViolationCount > 0 {
			return mutant.Simulated(r.Violations[0]), nil
		}
		off := func(got, want float64) bool { return math.Abs(got-want) > 0.02*want }
		if off(r.VirtualSeconds, p.seconds) || off(r.MessagesPerEntry, p.messages) || off(r.SlowPathShare, p.slow) {
			return fmt.Sprintf("pace by simulation, %+v: %.3f s, %.2f messages an entry, %.4f slow", p, r.VirtualSeconds, r.MessagesPerEntry, r.SlowPathShare), nil
		}
	}
	return "", nil
}

func TestPaceOfGroups(t *testing.T) {
	if fault, err := paced(); fault != "" || err != nil {
		t.Error(fault, err)
	}
}

// Two inside who share outlive as many losses as one alone does, and not more.
func TestSharedLosses(t *testing.T) {
	for _, test := range []struct {
		name     string
		changes  []func(*check.Config)
		violated string
	}{
		{"one", []func(*check.Config){sharing, oneLoss}, ""},
		{"two at once eject", []func(*check.Config){sharing, unspaced}, check.Kept},
		{"two at once let two in that do not share", []func(*check.Config){sharing, unspaced, exclusive}, check.Exclusion},
	} {
		t.Run(test.name, func(t *testing.T) {
			k := model(3, nil)
			for _, change := range test.changes {
				change(&k)
			}
			v, err := check.Run(Algorithm, k)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s: %d states, %s", v.Verdict, v.States, v.Bounds)
			if test.violated == "" && v.Verdict != check.Holds || test.violated != "" && v.Property != test.violated {
				t.Errorf("%s: %s is %s, want violated: %q\n%v", v.Bounds, v.Property, v.Verdict, test.violated, v.Trace)
			}
		})
	}
}

func unspaced(c *check.Config) { c.Spaced = 0 }

// Ten thousand who share one lock take a server little memory.
func TestManyOwners(t *testing.T) {
	const n = 10_000
	s, out := newServer(0, protocol.Config{N: 4}), protocol.Out[Message]{}
	for k := range protocol.ID(n) {
		c := 4 + k*7919%n // in no order
		s.Step(protocol.Event[Message]{Input: protocol.Input{Kind: protocol.Receive, From: c}, Msg: Message{Kind: Request, Time: uint64(c), Group: share("r")}}, &out)
		out.Reset()
	}
	owners := slices.Collect(s.owners())
	bytes := cap(s.sharers()) * int(unsafe.Sizeof(entry{}))
	if len(owners) != n || owners[0].time != 4 || s.queue.len() > 0 || bytes > 40*n {
		t.Errorf("%d owners in %d bytes, the first one is %v; %d wait", len(owners), bytes, owners[0], s.queue.len())
	}
}
