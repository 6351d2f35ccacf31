package sigma

import (
	"os"
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
// clocks, unless the option order says otherwise. So clocks that tell each client its own time make any order.

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

// Ordered by client id only, two clients that come again and again are always before
// the third one: a run without end, in which every message arrives.
func TestStarvationByID(t *testing.T) {
	c := check.Config{
		Config: protocol.Config{N: 1, Options: map[string]int64{"order": byID}}, Clients: 3, Entries: []int{check.Unlimited, check.Unlimited, 1}, FIFO: true,
		Properties: []string{check.Starvation}, MaxMemory: 512 << 20,
	}
	v, err := check.Run(Literal, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: %s: %d steps, %d of them again and again, %d states: %s",
		v.Verdict, v.Property, len(v.Trace), len(v.Trace)-int(v.Loop), v.States, v.Reason)
	if v.Verdict != check.Violated || v.Property != check.Starvation || v.Loop < 0 || int(v.Loop) >= len(v.Trace) {
		t.Errorf("%s is %s, loop at %d of %d steps", v.Property, v.Verdict, v.Loop, len(v.Trace))
	}
	want := check.Repeated{Property: check.Starvation, Reason: "c3 waits for ever"}
	if got := algotest.Repeat(t, Literal, c, v); got != want {
		t.Errorf("taken again: %+v; want %+v", got, want)
	}

	// Without the other one, whoever leaves comes too late to be before the one that
	// waits. (Clocks are cut off, so that this is not decided for all runs.)
	c.Clients, c.Entries = 2, []int{check.Unlimited, 1}
	if v, err = check.Run(Literal, c); err != nil || v.Verdict == check.Violated {
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

// Theorem 3 excludes a server that restarts infinitely often, and says that it may block others: each time it may first hear of
// somebody new. Here is such a run without end, in which one of four servers is faulty and the order of requests is fair to c1,
// which comes before all others. Whenever m servers have answered c1, one of them is s4, which supports c2; so c1 gives
// two supports back, and the third one is still on its way.
func TestStarvationByRestarts(t *testing.T) {
	text, err := os.ReadFile("testdata/restarts.txt")
	if err != nil {
		t.Fatal(err)
	}
	prefix, loop, _ := strings.Cut(string(text), "loop\n")
	lines := func(text string) (list []string) {
		for line := range strings.Lines(text) {
			if !strings.HasPrefix(line, "#") {
				list = append(list, strings.TrimSpace(line))
			}
		}
		return list
	}
	v := check.Verdict{Trace: append(lines(prefix), lines(loop)...), Loop: check.Mark(len(lines(prefix)))}
	c := check.Config{
		Config: protocol.Config{N: 4, Options: map[string]int64{"order": byID}}, Clients: 2, Entries: []int{1, check.Unlimited}, FIFO: true,
		Amnesia: check.Unlimited, Cancel: check.Unlimited, Properties: []string{check.Starvation}, MaxMemory: 64 << 20,
	}
	want := check.Repeated{Property: check.Starvation, Reason: "c1 waits for ever"}
	if got := algotest.Repeat(t, Literal, c, v); got != want {
		t.Errorf("it is %+v, want %+v", got, want)
	}
}

// The default form gives nothing back there: as long as s3 has not answered, c1 may have a quorum.
func TestNoStarvationByRestarts(t *testing.T) {
	for _, a := range []protocol.Algorithm[Message]{Literal, Algorithm} {
		s := algotest.NewSystem(a, protocol.Config{N: 4}, 2)
		const c1, c2 = protocol.ID(4), protocol.ID(5)
		for j := range protocol.ID(4) {
			s.Step(j, protocol.NewStart(1))
			for c := c1; c <= c2 && a.Detector == protocol.LeaseDetector; c++ {
				s.Step(c, protocol.Input{Kind: protocol.Restore, From: j, Arg: 1})
			}
		}
		s.Try(c1)
		s.Try(c2)
		s.Deliver(c2, 3, 0)
		for j := range protocol.ID(4) {
			s.Deliver(c1, j, 0)
		}
		for _, j := range []protocol.ID{0, 1, 3} {
			s.Deliver(j, c1, 0)
		}
		if got, want := s.Kinds[Yield], map[string]int{"literal": 2}[a.Variant]; got != want {
			t.Errorf("%q: c1 gives %d supports back, want %d", a.Variant, got, want)
		}
		s.Deliver(2, c1, 0)
		if got := len(s.Inside()) == 1; got != (a.Variant == "") {
			t.Errorf("%q: with the last answer c1 is inside: %v", a.Variant, got)
		}
	}
}

// An order by a number of each client lets a client that is new come before one that waits, and an order by ids one with a small id;
// neither changes who may be inside.
func TestOrders(t *testing.T) {
	for order, text := range orderOption.Values {
		c := check.Config{
			Config: protocol.Config{N: 2, Options: map[string]int64{"order": int64(order)}}, Clients: 2, Timers: check.NeverFire, MaxMemory: 256 << 20,
		}
		v, err := check.Run(Literal, c)
		if err != nil || v.Verdict != check.Holds {
			t.Errorf("%s: %s is %s (%s): %v", text, v.Property, v.Verdict, v.Bounds, err)
		}
	}
	for order, want := range []bool{byClock: true, bySequence: false, byID: true} {
		old := newLiteralClient(2, protocol.Config{N: 2, Options: map[string]int64{"order": int64(order)}})
		fresh := newLiteralClient(3, protocol.Config{N: 2, Options: map[string]int64{"order": int64(order)}})
		var first, later request
		for range 3 {
			first = request{2, old.fresh(100)}
			old.timestamp = first.time
		}
		later = request{3, fresh.fresh(200)}
		if got := first.before(later); got != want {
			t.Errorf("%s: a request of a client that has made others comes before a later one of a new client: %v, want %v",
				orderOption.Values[order], got, want)
		}
	}
}
