package sigma

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/poundlock/poundlock/internal/lane"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/sim"
)

// tryEarly is try with a head start.
func (w *world) tryEarly(c protocol.ID, g protocol.Groups, head uint64) {
	in := protocol.NewTry(g)
	in.Arg = protocol.WithHeadStart(in.Arg, head)
	w.input(c, in)
}

// queued are the clients that wait at s1, in the order of service.
func (w *world) queued() (clients []protocol.ID) {
	for _, x := range w.server(s1).queue.all() {
		clients = append(clients, x.client)
	}
	return clients
}

// heads are stories of requests that count as made earlier.
var heads = []story{
	{"a head start of d comes before who asked up to d earlier, and not before who asked earlier than that", func() {
		w := newWorld(Algorithm, 4, 4, withClock, option("delay", hop))
		d := 10 * hop
		w.try(w.client(1))
		w.run(ms(5))
		asked := []struct {
			at   time.Duration
			head int64
		}{{0, 0}, {ms(4), d}, {ms(7), d}} // of c2, c3 and c4
		for k, x := range asked {
			if w.run(x.at); x.head == 0 {
				w.try(w.client(2 + k))
			} else {
				w.tryEarly(w.client(2+k), "", uint64(x.head))
			}
		}
		w.run(ms(5))
		for j := s1; j <= s4; j++ {
			got := []protocol.ID{}
			for _, x := range w.server(j).queue.all() {
				got = append(got, x.client)
			}
			want(slices.Equal(got, []protocol.ID{w.client(3), w.client(2), w.client(4)}), "at %d wait %v", j, got)
		}
		for _, k := range []int{1, 3, 2, 4} {
			w.inside(w.client(k))
			w.exit(w.client(k))
			w.run(ms(5))
		}
	}},
	{"of those that count as made at one time the smaller client comes first", func() {
		w := newWorld(Algorithm, 1, 5)
		for k, m := range []Message{
			{Time: 1}, {Time: 6, After: 2}, {Time: 4}, {Time: 5, After: 1}, {Time: 3, After: protocol.MaxHeadStart},
		} {
			w.receive(w.client(1+k), s1, m)
		}
		want(slices.Equal(w.queued(), []protocol.ID{w.client(5), w.client(2), w.client(3), w.client(4)}), "%v wait", w.queued())
	}},
	{"a support that is given back keeps the place of its request", func() {
		for head := range uint64(2) {
			for _, m := range []Message{{Kind: Yield, Serial: 1}, {Kind: Request, Serial: 1, Stage: Again}} {
				w := newWorld(Algorithm, 1, 2)
				c1, c2 := w.client(1), w.client(2)
				m.Time, m.After = 9, 4*head
				w.receive(c1, s1, Message{Time: 9, After: m.After})
				w.receive(c2, s1, Message{Time: 6})
				w.receive(c1, s1, m)
				want(w.server(s1).owned(c1) != nil == (head == 1), "after %s s1 supports %v", text(m), w.server(s1).owner)
			}
		}
	}},
	{"each REQUEST and YIELD of a try says it, also after a restart and in another epoch; the next try has none", func() {
		w := newWorld(Algorithm, 4, 1, option("fence", FenceOn))
		c := w.client(1)
		w.tryEarly(c, "", 7)
		want(w.flying(c, s1) == "REQUEST(1 head=7)", "%s", w.flying(c, s1))
		w.receive(s1, c, Message{Kind: Response, Owner: c, Time: 1, Inc: 1, Serial: 1})
		w.receive(s1, c, Message{Kind: Recall, Time: 1, Inc: 1, Serial: 1})
		want(w.flying(c, s1) == "REQUEST(1 head=7) YIELD(1 head=7 serial=1)", "%s", w.flying(c, s1))
		w.amnesia(2)
		w.restore(c, 1)
		want(w.flying(c, s2) == "REQUEST(1 head=7) REQUEST(1 head=7 again)", "%s", w.flying(c, s2))
		for j := s1; j <= s2; j++ {
			w.receive(j, c, Message{Kind: Refused, Time: 1, Token: 5})
		}
		w.flights = nil
		w.timeout(c, retryTimer)
		want(w.flying(c, s3) == "REQUEST(5 head=7)", "%s", w.flying(c, s3))
		w.cancel(c)
		want(w.procs[c].(*Client).head == 0, "in the remainder section it has a head start")
		w.flights = nil
		w.try(c)
		want(!strings.Contains(w.flying(c, s1), "head"), "%s", w.flying(c, s1))
	}},
	{"nobody reads a head start of more than a minute, and one of 0 has no bytes", func() {
		for _, kind := range []uint8{Request, Yield} {
			bare := len(Algorithm.Append(nil, Message{Kind: kind, Time: 5, Serial: 3}))
			for _, head := range []uint64{0, 1, protocol.MaxHeadStart, protocol.MaxHeadStart + 1} {
				m := Message{Kind: kind, Time: 5, Serial: 3, After: head}
				b := Algorithm.Append(nil, m)
				got, rest, err := Algorithm.Read(b)
				want((err == nil && got == m && len(rest) == 0) == (head <= protocol.MaxHeadStart), "%s is read as %s, %v", text(m), text(got), err)
				want((len(b) == bare) == (head == 0), "%s has %d bytes, and %d without a head start", text(m), len(b), bare)
			}
			b := Algorithm.Append(nil, Message{Kind: kind, Time: 5, Serial: 3, After: 1})
			b[len(b)-1] = 0
			got, _, err := Algorithm.Read(b)
			want(err != nil, "% x is read as %s", b, text(got))
		}
	}},
	{"one that does not wait has a head start, too", func() {
		w := newWorld(Algorithm, 4, 2)
		w.input(w.client(1), protocol.Input{Kind: protocol.Try, Arg: protocol.WithHeadStart(protocol.TryOnce, 7)})
		p := w.procs[w.client(1)].(*Client)
		want(p.once && p.head == 7, "once is %v, its head start %d", p.once, p.head)
		w.tryEarly(w.client(2), "", 7)
		want(!w.procs[w.client(2)].(*Client).once, "one that waits does not")
	}},
	{"a REQUEST that comes again, and a downgrade, leave the place in the queue", func() {
		w := newWorld(Algorithm, 1, 3)
		c2, c3 := w.client(2), w.client(3)
		w.receive(w.client(1), s1, Message{Time: 1})
		w.receive(c2, s1, Message{Time: 5})
		w.receive(c3, s1, Message{Time: 9, After: 6})
		want(slices.Equal(w.queued(), []protocol.ID{c3, c2}), "%v wait", w.queued())
		w.receive(c3, s1, Message{Time: 9, Stage: Again, After: 6})
		want(slices.Equal(w.queued(), []protocol.ID{c3, c2}), "%v wait", w.queued())
		w.receive(c3, s1, Message{Kind: Downgrade, Time: 9, Group: share("r")})
		want(slices.Equal(w.queued(), []protocol.ID{c3, c2}), "%v wait", w.queued())
	}},
	{"a promise is asked back for a request that comes before by its head start, and not for one that does not", func() {
		for head := range uint64(3) {
			w := newWorld(Algorithm, 1, 3, option("promise", 1))
			c2 := w.client(2)
			w.receive(w.client(1), s1, Message{Time: 1})
			w.receive(c2, s1, Message{Time: 7, After: 2})
			w.receive(w.client(3), s1, Message{Time: 6, After: head}) // 6, 5 and 4, after 5
			want(w.find(s1, c2, Recall) >= 0 == (head == 2), "to c2 goes %s", w.flying(s1, c2))
			w.receive(c2, s1, Message{Kind: Yield, Time: 7, Serial: 1, After: 2})
			w.receive(w.client(1), s1, Message{Kind: Release, Time: 1})
			want(w.server(s1).owned(c2) != nil == (head < 2), "s1 supports %v", w.server(s1).owner)
		}
	}},
	{"a session takes in a reader whose head start brings it before a writer, and not another one", func() {
		w := newWorld(Algorithm, 1, 4)
		w.unsound = true
		w.receive(w.client(1), s1, Message{Time: 1, Group: share("r")})
		w.receive(w.client(2), s1, Message{Time: 5})
		w.receive(w.client(3), s1, Message{Time: 8, Group: share("r"), After: 2})
		w.receive(w.client(4), s1, Message{Time: 9, Group: share("r"), After: 5})
		want(w.server(s1).owned(w.client(4)) != nil && w.server(s1).owned(w.client(3)) == nil, "s1 supports %v", w.told[s1])
	}},
	{"a session that began before a request was made does not take it in for its head start", func() {
		w := newWorld(Algorithm, 1, 3, withClock)
		at := uint64(w.now)
		w.receive(w.client(1), s1, Message{Time: at, Group: share("r")})
		w.now += 9
		w.receive(w.client(2), s1, Message{Time: at - 5})
		w.receive(w.client(3), s1, Message{Time: at + 9, Group: share("r"), After: 12})
		want(w.server(s1).owned(w.client(3)) == nil, "s1 supports %v", w.told[s1])
	}},
	{"tokens: who is passed by a larger timestamp has a larger token than that one", func() {
		w := fenced(3)
		w.try(w.client(1))
		w.run(ms(5))
		w.try(w.client(2))
		w.run(ms(5))
		w.tryEarly(w.client(3), "", uint64(10*hop))
		w.run(ms(5))
		for i, k := range []int{1, 3, 2} {
			w.inside(w.client(k))
			p := w.procs[w.client(k)].(*Client)
			want(w.token[w.client(k)] == p.time == (i < 2), "c%d has token %d, and asked at %d", k, w.token[w.client(k)], p.time)
			w.exit(w.client(k))
			w.run(10 * time.Millisecond)
		}
		want(w.token[w.client(2)] > w.token[w.client(3)], "%d after %d", w.token[w.client(2)], w.token[w.client(3)])
	}},
	{"an owner that gives its support back while nobody waits gets it again, whatever its head start", func() {
		w := newWorld(Algorithm, 1, 1, option("promise", 1))
		c := w.client(1)
		w.receive(c, s1, Message{Time: 3, After: 5})
		w.receive(c, s1, Message{Kind: Yield, Time: 3, Serial: 1, After: 5})
		want(w.server(s1).owner == entry{request{c, 3}, 2}, "s1 supports %v", w.server(s1).owner)
	}},
	{"the option gives every other client a head start", func() {
		w := newWorld(Algorithm, 4, 3, option("head", 3))
		for k, request := range []string{"REQUEST(1)", "REQUEST(1 head=3)", "REQUEST(1)"} {
			w.try(w.client(1 + k))
			want(w.flying(w.client(1+k), s1) == request, "c%d sends %s", 1+k, w.flying(w.client(1+k), s1))
		}
		w = newWorld(Algorithm, 4, 2, option("head", 3))
		w.tryEarly(w.client(2), "", 5)
		want(w.flying(w.client(2), s1) == "REQUEST(1 head=5)", "%s", w.flying(w.client(2), s1))
	}},
}

func TestHeadStarts(t *testing.T) { test(t, heads) }

// ahead gives c2 a head start, and the other one so many entries that it matters: both ask for the first at one time.
func ahead(c *check.Config) {
	if c.Options == nil {
		c.Options = map[string]int64{}
	}
	c.Options["head"], c.Entries = 2, []int{2, 1, 1}[:c.Clients]
}

// Nobody is passed by more than those that asked within the head start after it: with equal delays each server
// gets the requests in the order of their timestamps.
func TestPassedByHeadStart(t *testing.T) {
	const d = 20 * time.Millisecond
	for _, promise := range []int64{0, 1} {
		var trace strings.Builder
		c := sim.Config{
			Config:  protocol.Config{N: 4, Options: map[string]int64{"head": int64(d), "promise": promise}},
			Clients: 8, Entries: []int{100}, Seed: 1, Trace: &trace,
			Think: sim.Exponential(ms(40)), Hold: sim.Constant(ms(3)), Delay: sim.Constant(ms(1)),
		}
		r, err := sim.Run(Algorithm, c)
		if err != nil || r.ViolationCount > 0 || r.Entries != 800 {
			t.Fatal(err, r.Entries, r.Violations)
		}
		passes, longest := 0, time.Duration(0)
		asked := map[string]time.Duration{}
		for line := range strings.Lines(trace.String()) {
			var at, who, what string
			if words := strings.Fields(line); words[len(words)-1] == "crit" {
				who, what = words[len(words)-2], "crit"
			} else if words[len(words)-2] == "try" {
				who, what = words[len(words)-1], "try"
				if words[0] == "at" {
					at = words[1]
				}
			}
			switch what {
			case "try":
				asked[who], _ = time.ParseDuration(at)
			case "crit":
				for other, since := range asked {
					if later := asked[who] - since; other != who && later > 0 {
						passes, longest = passes+1, max(longest, later)
						if even := (who[len(who)-1]-'0')%2 == 0; !even || later > d {
							t.Errorf("%s, who asked %v later, passes %s", who, later, other)
						}
					}
				}
				delete(asked, who)
			}
		}
		t.Logf("promise=%d: %d are passed, by one that asked %v later at most", promise, passes, longest)
		if passes < 100 || longest < d/2 {
			t.Errorf("promise=%d: %d are passed, by one that asked %v later at most", promise, passes, longest)
		}
	}
}

// A head start changes the order of service and nothing else.
func TestHeadStartsExplored(t *testing.T) {
	for _, x := range []struct {
		n       int
		changes []func(*check.Config)
	}{
		{2, []func(*check.Config){ahead, fair}},
		{2, []func(*check.Config){promising, ahead, fifo, fair}},
		{2, []func(*check.Config){tokens, ahead, never}},
		{2, []func(*check.Config){rooms, ahead, fifo}},
		{2, []func(*check.Config){promising, third, never, fifo, fair, ahead}},
	} {
		c := model(x.n, nil)
		for _, change := range x.changes {
			change(&c)
		}
		t.Run(fmt.Sprint(x.n, c.Options), func(t *testing.T) {
			if c.Clients == 3 {
				lane.CI.Need(t, "hundreds of thousands of states")
			}
			holds(t, c)
		})
	}
}
