package sigma

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/sim"
)

// tryLater is try where some servers are asked later, given by their names.
func (w *world) tryLater(c protocol.ID, arg uint64, servers ...protocol.ID) {
	var later uint64
	for _, j := range servers {
		later |= 1 << j
	}
	w.input(c, protocol.Input{Kind: protocol.Try, Arg: protocol.WithLater(arg, later)})
}

// support has server j answer c1, whose timestamp is 1, that it supports it.
func (w *world) support(j protocol.ID) {
	c := w.client(1)
	w.receive(j, c, Message{Kind: Response, Owner: c, Time: 1, Inc: 1, Serial: 1})
}

// thrifts are stories of tries that ask a quorum first.
var thrifts = []story{
	{"a quorum is asked, and lets the client in; the other server hears nothing at all", func() {
		w := newWorld(Algorithm, 4, 1)
		c := w.client(1)
		w.tryLater(c, protocol.TryWait, s4)
		for j := s1; j <= s3; j++ {
			want(w.flying(c, j) == "REQUEST(1)", "s%d is sent %q", j+1, w.flying(c, j))
			w.support(j)
		}
		w.inside(c)
		w.exit(c)
		for j := s1; j <= s3; j++ {
			want(w.flying(c, j) == "REQUEST(1) RELEASE(1)", "s%d is sent %q", j+1, w.flying(c, j))
		}
		want(w.flying(c, s4) == "", "s4 is sent %q", w.flying(c, s4))
		want(len(w.timers[c]) == 0, "the timers are %v", w.timers[c])
		w.suspect(c, s1)
		w.restore(c, int(s1))
		want(w.flying(c, s4) == "", "after that s4 is sent %q", w.flying(c, s4))
		w.try(c)
		w.cancel(c)
		want(w.flying(c, s4) == "REQUEST(2) RELEASE(2)", "by the next try s4 is sent %q", w.flying(c, s4))
	}},
	{"after a while everybody is asked, as one that waits or is inside", func() {
		for supports, stage := range map[protocol.ID]string{0: "", 1: "", 3: " inside"} {
			w := newWorld(Algorithm, 4, 1, option("delay", hop))
			c := w.client(1)
			w.tryLater(c, protocol.TryWait, s4)
			due := w.timers[c][retryTimer]
			want(due-w.now == askAfter*hop, "the timer is set for %v", time.Duration(due-w.now))
			for j := range supports {
				w.support(j)
			}
			want(w.timers[c][retryTimer] == due, "%d answers move the timer", supports)
			w.timeout(c, retryTimer)
			want(w.flying(c, s4) == "REQUEST(1"+stage+")", "s4 is sent %q after %d answers", w.flying(c, s4), supports)
			_, set := w.timers[c][retryTimer]
			want(set == (supports == 1), "the timers are %v after %d answers", w.timers[c], supports)
			w.flights = nil
			w.support(s4)
			w.exitOrCancel(c)
			want(w.flying(c, s4) == "RELEASE(1)", "s4 is sent %q in the end", w.flying(c, s4))
		}
	}},
	{"everybody is asked as soon as one of the quorum is sure not to support the client", func() {
		for name, event := range map[string]func(w *world, c protocol.ID){
			"it supports somebody else": func(w *world, c protocol.ID) {
				w.receive(s2, c, Message{Kind: Response, Owner: w.client(2), Time: 1, Inc: 1})
			},
			"it has promised its next support": func(w *world, c protocol.ID) {
				w.receive(s2, c, Message{Kind: Promise, Owner: w.client(2), After: 1, Time: 1, Inc: 1, Serial: 1})
			},
			"it has a new life":    func(w *world, c protocol.ID) { w.lives[s2]++; w.restore(c, int(s2)) },
			"the lease has lapsed": func(w *world, c protocol.ID) { w.suspect(c, s2) },
			"it drains":            func(w *world, c protocol.ID) { w.receive(s2, c, Message{Kind: Draining, Inc: 1}) },
			"its clock is wrong":   func(w *world, c protocol.ID) { w.receive(s2, c, Message{Kind: Refused, Time: 1, Token: 5}) },
		} {
			for refresh := range int64(2) {
				w := newWorld(Algorithm, 4, 2, option("promise", 1), option("refresh", refresh))
				c := w.client(1)
				w.tryLater(c, protocol.TryWait, s4)
				w.support(s1)
				event(w, c)
				want(w.flying(c, s4) == "REQUEST(1)", "where %s s4 is sent %q", name, w.flying(c, s4))
			}
		}
	}},
	{"a holder asks everybody as soon as it loses a support, with the mark inside", func() {
		for refresh := range int64(2) {
			w := newWorld(Algorithm, 4, 1, option("refresh", refresh))
			c := w.client(1)
			w.tryLater(c, protocol.TryWait, s4)
			for j := s1; j <= s3; j++ {
				w.support(j)
			}
			w.suspect(c, s2)
			want(w.flying(c, s4) == []string{"", "REQUEST(1 inside)"}[refresh], "s4 is sent %q", w.flying(c, s4))
			want(len(w.timers[c]) == 0, "the timers are %v", w.timers[c])
		}
	}},
	{"a server that is to be asked later, and lives a new life, is asked at once and once", func() {
		w := newWorld(Algorithm, 4, 1)
		c := w.client(1)
		w.tryLater(c, protocol.TryWait, s4)
		w.lives[s4]++
		w.restore(c, int(s4))
		want(w.flying(c, s4) == "REQUEST(1 again)", "s4 is sent %q", w.flying(c, s4))
		want(len(w.timers[c]) == 0, "the timers are %v", w.timers[c])
	}},
	{"where one has no lease everybody is asked at once, unless it is to be asked later", func() {
		for lapsed, asked := range map[protocol.ID]string{s2: "REQUEST(1)", 5: ""} {
			w := newWorld(Algorithm, 7, 1)
			c := w.client(1)
			w.suspect(c, lapsed)
			w.tryLater(c, protocol.TryWait, 5, 6)
			for j := range protocol.ID(7) {
				sent := "REQUEST(1)"
				if j > 4 {
					sent = asked
				}
				want(w.flying(c, j) == sent, "without s%d s%d is sent %q", lapsed+1, j+1, w.flying(c, j))
			}
		}
	}},
	{"one that drains is not asked later, and the others are at once", func() {
		w := newWorld(Algorithm, 7, 1)
		c := w.client(1)
		w.tryLater(c, protocol.TryWait, 5, 6)
		w.receive(5, c, Message{Kind: Draining, Inc: 1})
		want(w.flying(c, 5)+w.flying(c, 6) == "REQUEST(1)", "s6 and s7 are sent %q and %q", w.flying(c, 5), w.flying(c, 6))
	}},
	{"who wants any one of several groups asks everybody", func() {
		w := newWorld(Algorithm, 4, 1)
		c := w.client(1)
		in := protocol.NewTry("a,b")
		in.Arg = protocol.WithLater(protocol.TryWait, 1<<s4)
		w.input(c, in)
		want(w.flying(c, s4) == w.flying(c, s1), "s4 is sent %q", w.flying(c, s4))
	}},
	{"too many that are to be asked later are asked at once", func() {
		w := newWorld(Algorithm, 4, 1)
		c := w.client(1)
		w.tryLater(c, protocol.TryWait, s3, s4)
		want(w.flying(c, s4) == "REQUEST(1)", "s4 is sent %q", w.flying(c, s4))
	}},
	{"a token that has to be recorded waits for those that were to be asked later", func() {
		w := newWorld(Algorithm, 4, 1, option("fence", FenceOn))
		c := w.client(1)
		w.tryLater(c, protocol.TryWait, s4)
		for j := s1; j <= s3; j++ {
			w.receive(j, c, Message{Kind: Response, Owner: c, Time: 1, Inc: 1, Serial: 1, Token: 7})
		}
		want(w.flying(c, s4) == "REQUEST(1)", "s4 is sent %q", w.flying(c, s4))
		w.receive(s4, c, Message{Kind: Response, Owner: c, Time: 1, Inc: 1, Serial: 1})
		want(w.flying(c, s4) == "REQUEST(1) SETTOKEN(1 serial=1 token=8)", "s4 is sent %q", w.flying(c, s4))
	}},
	{"a TryOnce asks everybody before it gives up", func() {
		w := newWorld(Algorithm, 4, 2)
		c := w.client(1)
		w.tryLater(c, protocol.TryOnce, s4)
		for j := s1; j <= s2; j++ {
			want(w.users[c] == protocol.InTry, "it gives up after %d answers", j)
			w.receive(j, c, Message{Kind: Response, Owner: w.client(2), Time: 1, Inc: 1})
		}
		want(w.users[c] == protocol.InRem, "it does not give up where no quorum is left")
		want(w.flying(c, s4) == "REQUEST(1) RELEASE(1)", "s4 is sent %q", w.flying(c, s4))
	}},
	{"another epoch of the same try asks everybody", func() {
		w := newWorld(Algorithm, 4, 1, option("fence", FenceOn))
		c := w.client(1)
		w.tryLater(c, protocol.TryWait, s4)
		for j := s1; j <= s2; j++ {
			w.receive(j, c, Message{Kind: Refused, Time: 1, Token: 5})
		}
		w.flights = nil
		w.timeout(c, retryTimer)
		want(w.flying(c, s4) == "REQUEST(5)", "s4 is sent %q", w.flying(c, s4))
	}},
	{"the option gives each client other servers to ask later, and a head start is beside it", func() {
		w := newWorld(Algorithm, 4, 4, option("thrifty", 1))
		for k := range 4 {
			c := w.client(1 + k)
			w.tryEarly(c, "", protocol.MaxHeadStart)
			for j := s1; j <= s4; j++ {
				want((w.flying(c, j) == "") == (int(j) == (3+k)%4), "c%d sends s%d %q", 1+k, j+1, w.flying(c, j))
			}
		}
		want(protocol.Later(protocol.WithLater(protocol.WithHeadStart(protocol.TryOnce, protocol.MaxHeadStart), 1<<26)) == 1<<26, "other members are asked later")
	}},
}

func TestThrift(t *testing.T) { test(t, thrifts) }

// thrifty has each client ask all servers but one at first.
func thrifty(c *check.Config) {
	c.Options = maps.Clone(c.Options)
	if c.Options == nil {
		c.Options = map[string]int64{}
	}
	c.Options["thrifty"] = 1
}

func single(c *check.Config) { c.Clients = 1 }

// Thrift costs nothing that the lock promises.
func TestThriftExplored(t *testing.T) {
	for _, x := range []struct {
		n       int
		changes []func(*check.Config)
	}{
		{3, []func(*check.Config){never, thrifty, fair}},
		{3, []func(*check.Config){never, thrifty, fifo, fair, twice}},
		{3, []func(*check.Config){promising, never, thrifty}},
		{3, []func(*check.Config){tokens, never, thrifty}},
		{3, []func(*check.Config){lapses, never, thrifty}},
		{3, []func(*check.Config){crashes, never, thrifty}},
		{3, []func(*check.Config){thrifty, fifo}},
		{3, []func(*check.Config){thrifty}},
		{3, []func(*check.Config){promising, thrifty, fifo}},
		{4, []func(*check.Config){after("thrifty.txt"), thrifty, spaced}},
		{4, []func(*check.Config){after("thrifty.txt"), thrifty, oneLoss, lapses, spaced}},
		{3, []func(*check.Config){never, thrifty, fifo, cancels}},
		{4, []func(*check.Config){never, thrifty, fifo}},
		{3, []func(*check.Config){thrifty, oneLoss, single}},
		{3, []func(*check.Config){thrifty, oneLoss, lapses, single}},
	} {
		c := model(x.n, nil)
		for _, change := range x.changes {
			change(&c)
		}
		t.Run(fmt.Sprint(x.n, c.Options, c.FIFO, c.Cancel, c.Suspect, c.Crash), func(t *testing.T) {
			holds(t, c)
		})
	}
}

// Without contention a thrifty try costs 3m messages in place of 3n, and as long. With contention it costs no more than another one.
func TestThriftyMessages(t *testing.T) {
	run := func(thrifty int64, clients int, think sim.Dist) sim.Result {
		r, err := sim.Run(Algorithm, sim.Config{
			Config:  protocol.Config{N: 4, Options: map[string]int64{"thrifty": thrifty}},
			Clients: clients, Entries: []int{50}, Seed: 1, Think: think, Hold: sim.Constant(delay), Delay: sim.Constant(delay),
		})
		if err != nil || r.ViolationCount > 0 || r.Entries != uint64(50*clients) {
			t.Fatal(err, r.Entries, r.Violations)
		}
		return r
	}
	if alone := run(1, 1, sim.Constant(delay)); alone.MessagesPerEntry != 9 || alone.Waiting.Max > 2 {
		t.Errorf("alone: %v messages an entry, after %v T at most", alone.MessagesPerEntry, alone.Waiting.Max)
	}
	if long, err := sim.Run(Algorithm, sim.Config{
		Config:  protocol.Config{N: 4, Options: map[string]int64{"thrifty": 1}},
		Clients: 1, Entries: []int{50}, Seed: 1, Think: sim.Constant(delay), Hold: sim.Constant(askAfter * delay), Delay: sim.Constant(delay),
	}); err != nil || long.MessagesPerEntry != 12 {
		t.Errorf("a long hold: %v messages an entry, %v", long.MessagesPerEntry, err)
	}
	for _, clients := range []int{2, 10} {
		with, without := run(1, clients, sim.Constant(0)), run(0, clients, sim.Constant(0))
		t.Logf("%d clients: %.2f messages an entry, %.2f without thrift; %.2f T from one to the next, %.2f without", clients,
			with.MessagesPerEntry, without.MessagesPerEntry, with.SyncDelay.Mean, without.SyncDelay.Mean)
		if with.MessagesPerEntry > without.MessagesPerEntry || with.SyncDelay.Mean > without.SyncDelay.Mean {
			t.Errorf("%d clients: thrift costs something", clients)
		}
	}
}
