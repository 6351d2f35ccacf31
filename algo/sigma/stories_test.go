package sigma

import (
	"slices"
	"testing"
	"time"

	"github.com/poundlock/poundlock/algo/algotest/mutant"
	"github.com/poundlock/poundlock/protocol"
)

// Servers by their names in stories. Clients come after them: see world.client.
const (
	s1 = protocol.ID(iota)
	s2
	s3
	s4
)

func TestStories(t *testing.T) {
	t.Run("literal", func(t *testing.T) { test(t, common(Literal)) })
	t.Run("default", func(t *testing.T) { test(t, common(Algorithm)) })
	t.Run("extensions", func(t *testing.T) { test(t, extensions) })
	t.Run("fencing", func(t *testing.T) { test(t, fencing) })
	t.Run("refresh", func(t *testing.T) { test(t, refreshes) })
	t.Run("servers", func(t *testing.T) { test(t, servers) })
	t.Run("drain", func(t *testing.T) { test(t, drains) })
}

// poll lets a client that waits poll its servers, as it does by itself in the
// literal form as soon as m of them have answered.
func (w *world) poll(c protocol.ID) {
	if w.leases() {
		w.timeout(c, retryTimer)
	}
}

// split lets servers s1, s2 and s3 of four support c1, c2 and c3, of timestamp 1
// each, so that nobody can have three, and tells all three clients of them. s4
// has answered nobody.
func (w *world) split() {
	for k := 1; k <= 3; k++ {
		w.try(w.client(k))
	}
	for j := s1; j <= s3; j++ {
		first := w.client(int(j) + 1)
		w.deliver(first, j, Request)
		for k := 1; k <= 3; k++ {
			if c := w.client(k); c != first {
				w.deliver(c, j, Request)
			}
		}
	}
	for j := s1; j <= s3; j++ {
		for k := 1; k <= 3; k++ {
			w.deliver(j, w.client(k), Response)
		}
	}
}

// common are the stories of Figure 1, which both forms tell. Line numbers are
// those of the figure.
func common(a protocol.Algorithm[Message]) []story {
	literal := a.Variant == "literal"
	// serial is how a message shows the number of a support.
	serial := func(text, number string) string {
		if literal {
			return text + ")"
		}
		return text + " serial=" + number + ")"
	}
	response := func(text string) string {
		if literal {
			return text + ")"
		}
		return text + " inc=1)"
	}
	return []story{
		{"lines 1-13: m supports of n let a client in, and one fewer does not", func() {
			w := newWorld(a, 4, 1)
			c := w.client(1)
			w.try(c)
			w.wantFlying(c, "REQUEST(1)", "REQUEST(1)", "REQUEST(1)", "REQUEST(1)")
			w.ask(c, s1)
			w.ask(c, s2)
			w.inside()
			w.ask(c, s4)
			w.inside(c)
		}},
		{"line 4: answers of a former epoch do not count", func() {
			w := newWorld(a, 4, 1)
			c := w.client(1)
			w.try(c)
			w.ask(c, s1)
			w.ask(c, s2)
			w.cancel(c)
			w.settle()
			w.try(c)
			request := w.flying(c, s1)
			w.ask(c, s3)
			w.inside()
			w.wantFlying(c, request, request, "", request)
		}},
		{"lines 14-18: a client polls only those who answered, each by what it said", func() {
			w := newWorld(a, 4, 3)
			w.split()
			c := w.client(2)
			w.poll(c)
			again := "REQUEST(1)"
			if !literal {
				again = "INQUIRY(1)" // that life of s3 has the REQUEST already
			}
			// The REQUEST to s4 is still the first one.
			w.wantFlying(c, "INQUIRY(1)", serial("YIELD(1", "1"), again, "REQUEST(1)")
			for k := 1; k <= 3; k++ {
				w.run(20 * time.Duration(hop))
				w.inside(w.client(k))
				w.exit(w.client(k))
			}
		}},
		{"lines 19-23: an exit releases at every server, and what was there is gone", func() {
			w := newWorld(a, 4, 1)
			c := w.client(1)
			w.try(c)
			for j := s1; j <= s3; j++ {
				w.ask(c, j)
			}
			w.inside(c)
			w.deliver(c, s4, Request)
			w.exit(c)
			w.wantFlying(c, "RELEASE(1)", "RELEASE(1)", "RELEASE(1)", "RELEASE(1)")
			w.settle()
			for j := s1; j <= s4; j++ {
				w.initial(j)
			}
		}},
		{"lines 24-25: a CHECK of a former epoch is answered by RELEASE, in any section", func() {
			w := newWorld(a, 4, 1, option("check", 1))
			c := w.client(1)
			check := func(releases string) {
				w.timeout(s1, checkTimer)
				w.deliver(s1, c, Check)
				got := w.flying(c, s1)
				want(got == releases, "answer to CHECK: %q, want %q", got, releases)
			}
			w.try(c)
			w.ask(c, s1)
			check("")
			w.ask(c, s2)
			w.ask(c, s3)
			w.inside(c)
			check("")
			w.exit(c)
			w.lose(c, s1)
			check("RELEASE(1)")
			w.lose(c, s1)
			w.try(c)
			w.lose(c, s1)
			check("RELEASE(1)")
			w.deliver(c, s1, Release)
			w.initial(s1)
		}},
		{"line 28: a message of a former epoch that comes late changes nothing", func() {
			w := newWorld(a, 4, 2)
			c1, c2 := w.client(1), w.client(2)
			w.try(c1) // its REQUEST to s4 comes late
			for j := s1; j <= s3; j++ {
				w.ask(c1, j)
			}
			w.exit(c1) // and so does the RELEASE
			w.try(c1)
			w.deliverNewest(c1, s4, Request)
			before := protocol.AppendState(nil, w.procs[s4])
			w.deliver(c1, s4, Request)
			w.deliver(c1, s4, Release)
			want(slices.Equal(protocol.AppendState(nil, w.procs[s4]), before), "the late messages changed s4")
			w.try(c2)
			w.settle()
			w.inside(c1)
			w.exit(c1)
			w.settle()
			w.inside(c2)
		}},
		{"line 29: a new REQUEST replaces a queued one of a former epoch", func() {
			w := newWorld(a, 1, 2)
			c1, c2 := w.client(1), w.client(2)
			w.try(c1)
			w.settle()
			w.try(c2)
			w.ask(c2, s1)
			w.cancel(c2)
			w.try(c2)
			w.deliver(c2, s1, Request) // before the RELEASE
			w.settle()
			w.exit(c1)
			w.settle()
			w.inside(c2)
			w.exit(c2)
			w.settle()
			w.initial(s1)
		}},
		{"line 29: a new REQUEST replaces the owner's former one", func() {
			w := newWorld(a, 1, 1)
			c := w.client(1)
			w.try(c)
			w.settle()
			w.exit(c)
			w.try(c)
			w.deliver(c, s1, Request)
			w.settle()
			w.inside(c)
		}},
		{"lines 30-35, 55: requests are served in the order of their timestamps, then ids", func() {
			w := newWorld(a, 1, 5)
			for k := 1; k <= 5; k++ {
				w.try(w.client(k))
			}
			// All have timestamp 1. c2 is there first.
			for _, k := range []int{2, 4, 1, 5, 3} {
				w.deliver(w.client(k), s1, Request)
			}
			w.settle()
			for _, k := range []int{2, 1, 3, 4} {
				w.inside(w.client(k))
				w.exit(w.client(k))
				w.settle()
			}
			// c2 has used its clock: its next timestamp is larger than that of c5.
			w.try(w.client(2))
			w.try(w.client(1))
			w.settle()
			w.inside(w.client(5))
		}},
		{"lines 36-41: a YIELD passes the support on to the earliest, and both are told", func() {
			w := newWorld(a, 4, 3)
			w.split()
			c1, c3 := w.client(1), w.client(3)
			if w.leases() {
				w.poll(c3)
			}
			w.deliver(c3, s3, Yield)
			got := []string{w.flying(s3, c1), w.flying(s3, c3)}
			grant := "RESPONSE(#4@1)"
			if !literal {
				grant = "RESPONSE(#4@1 inc=1 serial=1)"
			}
			want(slices.Equal(got, []string{grant, response("RESPONSE(#4@1")}), "s3 sends %q", got)
		}},
		{"line 45: an INQUIRY at an idle server, or of the owner, is not answered", func() {
			w := newWorld(a, 4, 1)
			c := w.client(1)
			inquiry := Message{Kind: Inquiry, Time: 1}
			w.receive(c, s1, inquiry)
			want(w.flying(s1, c) == "", "an idle server answers %q", w.flying(s1, c))
			w.try(c)
			w.ask(c, s1)
			w.receive(c, s1, inquiry)
			want(w.flying(s1, c) == "", "the owner is answered %q", w.flying(s1, c))
		}},
		{"lines 46-47: a dead owner is replaced, and a dead client that comes up later too", func() {
			w := newWorld(a, 1, 3)
			c1, c2, c3 := w.client(1), w.client(2), w.client(3)
			for _, c := range []protocol.ID{c1, c2, c3} {
				w.try(c)
				w.deliver(c, s1, Request)
			}
			w.crash(c1)
			w.crash(c2)
			w.suspect(s1, c2) // waits
			w.suspect(s1, c1) // is the owner
			w.settle()
			w.inside(c3)
			w.exit(c3)
			w.settle()
			w.initial(s1)
		}},
		{"lines 48-49: an owner is CHECKed once a period, however many messages come", func() {
			const period = 10 * hop
			w := newWorld(a, 4, 2, withClock, option("check", period), option("delay", hop))
			c := w.client(1)
			w.initial(s1)
			w.try(c)
			for j := s1; j <= s4; j++ {
				w.ask(c, j)
			}
			w.inside(c)
			checks := 0
			for k := range 40 {
				w.run(time.Duration(period) / 4)
				w.receive(w.client(2), s1, Message{Kind: Inquiry, Time: uint64(epoch)})
				if w.find(s1, c, Check) >= 0 {
					checks++
					w.deliver(s1, c, Check)
				}
				_, set := w.timers[s1][checkTimer]
				want(set, "no CHECK is to come, after %d quarters of a period", k)
			}
			want(checks >= 9, "%d CHECKs in ten periods", checks)
			w.exit(c)
			w.run(time.Duration(hop))
			_, set := w.timers[s1][checkTimer]
			want(!set, "an idle server is to send a CHECK")
		}},
		{"lines 48-49: the next owner has a period of its own, and 0 means never", func() {
			for period, set := range map[int64]bool{0: false, hop: true} {
				w := newWorld(a, 1, 2, option("check", period))
				for k := 1; k <= 2; k++ {
					c := w.client(k)
					w.try(c)
					w.settle()
					_, got := w.timers[s1][checkTimer]
					want(got == set, "period %d: the timer is set: %t", period, got)
				}
				w.exit(w.client(1))
				w.deliver(w.client(1), s1, Release)
				_, got := w.timers[s1][checkTimer]
				want(got == set, "period %d: the timer is set for the second owner: %t", period, got)
			}
		}},
		{"section 4: giving up is an exit, and a support on its way is lost on us", func() {
			w := newWorld(a, 4, 2)
			c1, c2 := w.client(1), w.client(2)
			w.try(c1)
			for j := s1; j <= s3; j++ {
				w.deliver(c1, j, Request)
			}
			w.cancel(c1) // races with three supports
			w.try(c1)
			w.deliver(s1, c1, Response)
			w.deliver(s2, c1, Response)
			w.deliver(s3, c1, Response)
			w.inside()
			w.cancel(c1)
			w.settle()
			w.try(c2)
			w.settle()
			w.inside(c2)
			w.exit(c2)
			w.settle()
			for j := s1; j <= s4; j++ {
				w.initial(j)
			}
		}},
		{"what the model excludes panics", func() {
			w := newWorld(a, 1, 1)
			for id := range w.procs {
				for _, ev := range []protocol.Event[Message]{
					{Input: protocol.Input{Kind: 255}},
					{Input: protocol.Input{Kind: protocol.Timeout, Timer: 99}},
					{Input: protocol.Input{Kind: protocol.Receive}, Msg: Message{Kind: [2]uint8{Response, Request}[id]}},
				} {
					fault, _ := mutant.Panics("sigma: ", func() { w.procs[id].Step(ev, &w.out) })()
					want(fault == "", "%+v at process %d: %s", ev, id, fault)
				}
			}
		}},
		{"the minority's server is always first, and still everybody enters", func() {
			for n := 3; n <= 5; n++ {
				const entries = 20
				w := newWorld(a, n, n, withClock, option("delay", hop))
				w.latency = func(from, to protocol.ID) int64 {
					// Client k is nearest to server k, and s1 is far from everybody.
					j, c := min(from, to), max(from, to)
					away := (int64(c-j) + int64(n)) % int64(n)
					if j == s1 {
						away += 3
					}
					return hop/4 + away*hop/2
				}
				for k := 1; k <= n; k++ {
					w.loop(w.client(k), entries)
				}
				w.run(time.Minute)
				want(len(w.grants) == n*entries, "n=%d: %d of %d entries", n, len(w.grants), n*entries)
			}
		}},
	}
}
