package sigma

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/poundlock/poundlock/algo/algotest"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/sim"
)

// A predetermined order serves everybody only if it is bounded-time fair: after a
// request, only finitely many come before it. Chen et al. 2005, section 3. What
// follows breaks that, and each time somebody waits for ever.
//
// The order of requests is that of their timestamps, which clients take from their
// clocks. So clocks that tell each client its own time make any order.

// ordered is the literal form in which the clock of client id shows at(id).
func ordered(at func(id protocol.ID) int64) protocol.Algorithm[Message] {
	a := Literal
	a.Invariants = nil // they know the processes themselves only
	a.New = func(id protocol.ID, c protocol.Config) protocol.Process[Message] {
		p := Literal.New(id, c)
		if id < protocol.ID(c.N) {
			return p
		}
		return told{p, at(id)}
	}
	return a
}

// told is a client whose clock stands still.
type told struct {
	protocol.Process[Message]
	now int64
}

func (t told) Step(ev protocol.Event[Message], out *protocol.Out[Message]) {
	ev.Now = t.now
	t.Process.Step(ev, out)
}

// band is the first timestamp of a client whose requests are ordered by its id.
func band(id protocol.ID) int64 { return int64(id) << 32 }

// byID orders requests by the ids of clients alone. Timestamps of one client still
// tell its epochs apart; they are compared with those of no other client, so that
// the checker may move them.
func byID() protocol.Algorithm[Message] {
	a := ordered(band)
	counter := func(c protocol.ID) protocol.Counter {
		return protocol.Counter{User: c, Least: uint64(band(c))}
	}
	move := func(r *request, f func(protocol.Counter, uint64) uint64) {
		if *r != (request{}) {
			r.time = f(counter(r.client), r.time)
		}
	}
	a.MapState = func(p protocol.Process[Message], f func(protocol.Counter, uint64) uint64) {
		switch p := p.(type) {
		case told:
			c := p.Process.(*LiteralClient)
			if c.timestamp != 0 {
				c.timestamp = f(counter(c.id), c.timestamp)
			}
			for j := range c.resp {
				move(&c.resp[j], f)
			}
		case *LiteralServer:
			move(&p.owner, f)
			for i := range p.queue {
				move(&p.queue[i], f)
			}
		}
	}
	a.MapMsg = func(ch protocol.Channel, m *Message, f func(protocol.Counter, uint64) uint64) {
		client := ch.From
		switch m.Kind {
		case Response:
			client = m.Owner
		case Check:
			client = ch.To
		}
		m.Time = f(counter(client), m.Time)
	}
	// What is said of a client may stay on its way while it goes through any number of
	// epochs.
	a.Bounds = []protocol.Bound{protocol.NewBound("epochs at once", 2, func(c told) uint64 {
		return max(c.Process.(*LiteralClient).timestamp, uint64(c.now)) - uint64(c.now)
	})}
	return a
}

// Ordered by client id only, two clients that come again and again are always before
// the third one: a run without end, in which every message arrives.
func TestStarvationByID(t *testing.T) {
	c := check.Config{
		Config: protocol.Config{N: 1}, Clients: 3, Entries: []int{check.Unlimited, check.Unlimited, 1}, FIFO: true,
		Properties: []string{check.Starvation}, MaxMemory: 512 << 20,
	}
	v, err := check.Run(byID(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: %s: %d steps, %d of them again and again, %d states: %s",
		v.Verdict, v.Property, len(v.Trace), len(v.Trace)-int(v.Loop), v.States, v.Reason)
	if v.Verdict != check.Violated || v.Property != check.Starvation || v.Loop < 0 || int(v.Loop) >= len(v.Trace) {
		t.Errorf("%s is %s, loop at %d of %d steps", v.Property, v.Verdict, v.Loop, len(v.Trace))
	}
	want := check.Repeated{Property: check.Starvation, Reason: "c3 waits for ever"}
	if got := algotest.Repeat(t, byID(), c, v); got != want {
		t.Errorf("taken again: %+v; want %+v", got, want)
	}

	// Without the other one, whoever leaves comes too late to be before the one that
	// waits. (Clocks are cut off, so that this is not decided for all runs.)
	c.Clients, c.Entries = 2, []int{check.Unlimited, 1}
	if v, err = check.Run(byID(), c); err != nil || v.Verdict == check.Violated {
		t.Errorf("two clients: %s, %v: %s", v.Verdict, err, v.Reason)
	}
	t.Logf("two clients: %s, %d states: %s", v.Verdict, v.States, v.Bounds)
}

// New clients come without end, each once. If a later one comes before all that
// wait, the first that has to wait is overtaken by everybody who comes meanwhile,
// however many that are; in the order of time nearly nobody overtakes it.
func TestStarvationOfNewClients(t *testing.T) {
	latest := ordered(func(id protocol.ID) int64 { return int64(1<<40) - int64(id)<<20 })
	for _, clients := range []int{10, 20, 40} {
		c := sim.Config{
			Config: protocol.Config{N: 4}, Clients: clients, Entries: []int{1}, Seed: 1,
			// A new one every 3 ms, while one needs at least 4 ms to enter and leave.
			Think: sim.Constant(time.Duration(clients) * 3 * time.Millisecond), Hold: sim.Constant(2 * time.Millisecond),
		}
		late, fair := overtakers(t, latest, c), overtakers(t, Literal, c)
		t.Logf("%d clients: latest first %d overtake one, in the order of time %d", clients, late, fair)
		if late != clients-2 { // the first one enters at once
			t.Errorf("%d clients, latest first: %d overtake one", clients, late)
		}
		if fair > 0 {
			t.Errorf("%d clients, in the order of time: %d overtake one", clients, fair)
		}
	}
}

// overtakers simulates a, and returns how many at most entered before a client that
// had tried before them.
func overtakers(t *testing.T, a protocol.Algorithm[Message], c sim.Config) int {
	t.Helper()
	var log strings.Builder
	c.Trace = &log
	if r, err := sim.Run(a, c); err != nil || r.ViolationCount != 0 {
		t.Fatal(err, r.Violations)
	}
	var waiting []string // in the order of their tries
	passed := map[string]int{}
	for line := range strings.Lines(log.String()) {
		words := strings.Fields(line)
		switch k := len(words); {
		case words[k-2] == "try":
			waiting = append(waiting, words[k-1])
		case words[k-1] == "crit":
			i := slices.Index(waiting, words[k-2])
			for _, earlier := range waiting[:i] {
				passed[earlier]++
			}
			waiting = slices.Delete(waiting, i, i+1)
		}
	}
	if len(waiting) > 0 {
		t.Fatalf("at the end %v wait", waiting)
	}
	most := 0
	for _, k := range passed {
		most = max(most, k)
	}
	return most
}
