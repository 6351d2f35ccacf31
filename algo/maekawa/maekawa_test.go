package maekawa

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/poundlock/poundlock/algo/algotest"
	"github.com/poundlock/poundlock/algo/quorum"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/causal"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/sim"
)

// model is one of n processes that enter so often each.
func model(n int, properties string, entries ...int) check.Config {
	return check.Config{
		Config: protocol.Config{N: n}, Entries: entries, Properties: strings.Split(properties, ","), MaxMemory: 512 << 20,
	}
}

const unlimited = check.Unlimited

var options = algotest.Options{Exhaustive: []check.Config{
	model(1, "all", 3),
	model(2, "all", unlimited),
	model(3, "all", unlimited),
	model(4, "all", unlimited, unlimited, 0, 0),
}}

// basicOptions: exclusion is what the basic form has.
var basicOptions = algotest.Options{
	Exhaustive: []check.Config{
		model(1, "all", unlimited),
		model(2, "exclusion,well-formed", unlimited),
		model(3, "exclusion,well-formed", unlimited),
	},
	Lacking: []check.Config{model(3, "deadlock,progress,starvation", 1)},
	Skip:    map[string]string{"Allocations": "it deadlocks before there is a steady state"},
}

// printedOptions: with the sets of three processes two enter at once, and nobody waits for
// ever. A circle takes four processes.
func printedOptions() algotest.Options {
	o := basicOptions
	o.Exhaustive = o.Exhaustive[:1]
	o.Lacking = []check.Config{model(3, check.Exclusion, 1), model(4, "deadlock,progress,starvation", 1)}
	return o
}

func TestConformance(t *testing.T)        { algotest.Run(t, Algorithm, options) }
func TestConformanceBasic(t *testing.T)   { algotest.Run(t, Basic, basicOptions) }
func TestConformancePrinted(t *testing.T) { algotest.Run(t, PrintedVote, printedOptions()) }
func FuzzRead(f *testing.F)               { algotest.FuzzRead(f, Algorithm, options) }
func FuzzLoadState(f *testing.F)          { algotest.FuzzLoadState(f, Algorithm, options) }
func FuzzReadBasic(f *testing.F)          { algotest.FuzzRead(f, Basic, basicOptions) }
func FuzzLoadStateBasic(f *testing.F)     { algotest.FuzzLoadState(f, Basic, basicOptions) }

// A run with contention of each form, event by event. The basic forms have one without a
// deadlock, and without two holders.
func TestGolden(t *testing.T) {
	c := sim.Config{Config: protocol.Config{N: 3}, Entries: []int{2}, Seed: 1, Think: sim.Exponential(4 * time.Millisecond)}
	for name, a := range map[string]protocol.Algorithm[Message]{"basic": Basic, "printed-vote": PrintedVote} {
		t.Run(name, func(t *testing.T) { algotest.Golden(t, a, name, c) })
	}
	c.N, c.FIFO, c.Delay = 4, true, sim.Exponential(time.Millisecond)
	t.Run("run", func(t *testing.T) { algotest.Golden(t, Algorithm, "run", c) })
}

// with is c with voting sets of some form.
func with(f quorum.Form, c check.Config) check.Config {
	c.Options = map[string]int64{"sets": int64(f)}
	return c
}

func run[M any](t *testing.T, a protocol.Algorithm[M], c check.Config) check.Verdict {
	t.Helper()
	v, err := check.Run(a, c)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// trace fails unless v is a violation by these steps.
func trace(t *testing.T, v check.Verdict, property string, steps ...string) {
	t.Helper()
	if v.Property != property || v.Verdict != check.Violated || !slices.Equal(v.Trace, steps) {
		t.Errorf("%s is %s (%s):\n%s\nwant %s violated by\n%s",
			v.Property, v.Verdict, v.Bounds, strings.Join(v.Trace, "\n"), property, strings.Join(steps, "\n"))
	}
}

// Three processes with V_1 = {1, 2}, V_2 = {2, 3}, V_3 = {3, 1} ask at once: each votes for
// itself and waits for the next one. Nobody enters any more; in the other form somebody does.
func TestDeadlockOfTheLecture(t *testing.T) {
	circle := []string{
		"try p1", "try p2", "try p3", "deliver p1 p2 REQUEST", "deliver p2 p3 REQUEST", "deliver p3 p1 REQUEST",
	}
	trace(t, run(t, Basic, with(quorum.Slides, model(3, "all", 1))), check.Deadlock, circle...)

	// Progress and starvation fall with it.
	for _, property := range []string{check.MakesProgress, check.Starvation} {
		v := run(t, Basic, with(quorum.Slides, model(3, property, 1)))
		if v.Verdict != check.Violated {
			t.Errorf("%s is %s (%s)", property, v.Verdict, v.Bounds)
		}
		algotest.Repeat(t, Basic, with(quorum.Slides, model(3, property, 1)), v)
	}

	if v := run(t, Algorithm, with(quorum.Slides, model(3, "all", 2))); v.Verdict != check.Holds {
		t.Errorf("with votes that can be asked back %s is %s (%s)", v.Property, v.Verdict, v.Bounds)
	}
}

// It is not the sets: the basic form deadlocks with each of them.
func TestDeadlockOfAllSets(t *testing.T) {
	for f, n := range map[quorum.Form]int{quorum.Cyclic: 2, quorum.Majorities: 3, quorum.Grid: 4, quorum.Plane: 3} {
		if v := run(t, Basic, with(f, model(n, check.Deadlock, 1))); v.Verdict != check.Violated {
			t.Errorf("form %d, n=%d: %s (%s)", f, n, v.Verdict, v.Bounds)
		}
	}
}

// "Upon receiving a request from p_j (j != i)" read literally: the own request takes no
// vote, p1 votes for nobody when it enters with those of itself and p2, and p2 does so with
// those of itself and p3.
func TestPrintedVote(t *testing.T) {
	trace(t, run(t, PrintedVote, with(quorum.Slides, model(3, check.Exclusion, 1))), check.Exclusion,
		"try p1", "try p2", "deliver p1 p2 REQUEST", "deliver p2 p3 REQUEST", "deliver p2 p1 REPLY", "deliver p3 p2 REPLY")
	if v := run(t, Basic, with(quorum.Slides, model(3, check.Exclusion, 2))); v.Verdict != check.Holds {
		t.Errorf("with the own vote exclusion is %s (%s)", v.Verdict, v.Bounds)
	}
}

// What the form holds that can ask votes back: everything, with three processes that enter
// without end, and with some of four.
func TestProperties(t *testing.T) {
	algotest.Holds(t, Algorithm, []check.Config{
		model(4, "all", 1, 1, 1, 0),
		model(4, "all", unlimited, unlimited, 0, 0),
		with(quorum.Grid, model(4, "all", unlimited, 1, 1, 0)),
		with(quorum.Majorities, model(3, "all", unlimited)),
	}, []check.Config{
		model(4, "all", 1),
		model(4, "all", unlimited, unlimited, unlimited, 0),
		with(quorum.Slides, model(7, "all", 1, 1, 1, 0, 0, 0, 0)),
	})
}

// Entries do not follow the order of tries: p3 tries, p1 hears of it and then lets p2
// know that it has left, p2 tries again, and enters before p3.
func TestOrder(t *testing.T) {
	v := run(t, causal.Of(Algorithm), model(3, causal.Order, 1, 2, 1))
	trace(t, v, causal.Order,
		"try p1", "try p2", "deliver p1 p2 REQUEST(1)", "deliver p2 p3 REQUEST(1)", "try p3", "deliver p3 p1 REQUEST(2)",
		"deliver p1 p3 FAILED", "deliver p3 p2 REPLY", "exit p2", "deliver p2 p1 REPLY", "exit p1", "deliver p1 p2 RELEASE",
		"try p2", "deliver p2 p3 RELEASE", "deliver p2 p3 REQUEST(2)", "deliver p3 p2 REPLY(2)")
}

// Nor do they in the basic form, which has no timestamps at all.
func TestOrderOfBasic(t *testing.T) {
	v := run(t, causal.Of(Basic), model(3, causal.Order, 2))
	if v.Property != causal.Order || v.Verdict != check.Violated || len(v.Trace) != 18 {
		t.Errorf("%s is %s (%s) after %d steps, want order violated after 18", v.Property, v.Verdict, v.Bounds, len(v.Trace))
	}
}

// Channels must keep their order. An INQUIRE that overtakes the vote that it asks for finds
// none to give back, and nobody asks again: p2 waits for the vote of itself, which p1 has,
// and p1 for that of p3, which p2 has.
func TestChannels(t *testing.T) {
	for _, overtakes := range []bool{false, true} {
		s := asked()
		if overtakes {
			s.Deliver(2, 1, 1)
		}
		s.Settle()
		want := []protocol.ID{0}
		if overtakes {
			want = nil
		}
		if got := s.Inside(); !slices.Equal(got, want) {
			t.Errorf("INQUIRE overtakes REPLY: %v, inside %v, want %v", overtakes, got, want)
		}
	}
	a := Algorithm
	a.FIFO = false
	trace(t, run(t, a, model(3, check.Exclusion, 1)), check.Model,
		"try p1", "try p3", "deliver p1 p2 REQUEST(1)", "deliver p3 p1 REQUEST(1)", "deliver p2 p1 REPLY", "exit p1",
		"deliver p1 p3 REPLY", "deliver p1 p3 FAILED")
}

// asked is a system of four, V_i = {i, i+1, i+2}, in which 2 has voted for 1, and asks that
// vote back for 0, which comes before. Both messages are on their way.
func asked() *algotest.System[Message] {
	s := algotest.NewSystem(Algorithm, protocol.Config{N: 4}, 0)
	s.Try(0)
	s.Deliver(0, 1, 0) // 1 votes for 0
	s.Try(1)           // with a later timestamp, and without its own vote
	s.Deliver(1, 2, 0)
	s.Deliver(0, 2, 0)
	return s
}

// A vote is asked back by INQUIRE for who comes first. A process that has a FAILED cannot enter soon,
// and gives it back. Maekawa 1985, section 3.
func TestInquire(t *testing.T) {
	s := asked()
	step := func(from, to protocol.ID, want string) {
		t.Helper()
		if m := s.InFlight(from, to); len(m) == 0 || text(m[0]) != want {
			t.Fatalf("from %d to %d there is %v on its way, want first %s", from, to, m, want)
		}
		s.Deliver(from, to, 0)
	}
	step(2, 1, "REPLY")
	step(2, 1, "INQUIRE")
	step(1, 2, "YIELD")
	step(2, 0, "REPLY(2)") // 1 waits there, with timestamp 2
	step(1, 0, "REPLY")
	if got := s.Inside(); !slices.Equal(got, []protocol.ID{0}) {
		t.Fatalf("inside is %v, want 0", got)
	}
	s.Exit(0)
	s.Settle()
	if got := s.Inside(); !slices.Equal(got, []protocol.ID{1}) {
		t.Fatalf("inside is %v after 0 left, want 1", got)
	}
	s.Exit(1)
	s.Try(0)
	if got := text(s.InFlight(0, 1)[0]); got != "REQUEST(3)" {
		t.Errorf("0 asks again with %s, want it later than what waited", got)
	}
}

// forEach does something for each form of voting sets, with those sizes that are wanted and
// for which it is defined. k is the mean size of a set.
func forEach(sizes func(n int) bool, do func(f quorum.Form, n int, k float64)) {
	for f := quorum.Cyclic; f <= quorum.Slides; f++ {
		for n := 2; n <= 57; n++ {
			if f.Defined(n) && sizes(n) {
				c := protocol.Config{N: n, Options: map[string]int64{"sets": int64(f)}}
				do(f, n, 1+others(1)(c))
			}
		}
	}
}

// Without contention an entry takes exactly 2(K-1) messages to enter and 3(K-1) in all, and
// two message delays. On planes K(K-1)+1 is N.
func TestMessages(t *testing.T) {
	forEach(func(n int) bool { return n < 8 || slices.Contains([]int{13, 16, 21, 31, 57}, n) }, func(f quorum.Form, n int, k float64) {
		if f == quorum.Plane && k*(k-1)+1 != float64(n) {
			t.Errorf("n=%d: sets of %g on a plane", n, k)
		}
		for _, a := range []protocol.Algorithm[Message]{Algorithm, Basic, PrintedVote} {
			r := simulate(t, a, f, sim.Config{Config: protocol.Config{N: n}, Entries: []int{2}, Think: sim.Constant(time.Second)})
			const rounding = 1e-9
			for _, m := range []struct {
				what      string
				got, want float64
			}{
				{"messages to enter", r.MessagesToEnter, 2 * (k - 1)},
				{"messages", r.MessagesPerEntry, 3 * (k - 1)},
				{"hops from try to crit", r.Waiting.Mean, 2},
			} {
				if m.got < m.want-rounding || m.got > m.want+rounding {
					t.Errorf("%s %q, form %d, n=%d: %g %s, want %g", a.Name, a.Variant, f, n, m.got, m.what, m.want)
				}
			}
		}
	})
}

// Under contention it is 3(K-1) to 6(K-1), whatever the delays, and from an exit to the next
// entry about two of them.
func TestContention(t *testing.T) {
	least, most := 6.0, 3.0
	forEach(func(n int) bool { return slices.Contains([]int{2, 3, 4, 7, 10, 13, 21}, n) }, func(f quorum.Form, n int, k float64) {
		for seed := range uint64(3) {
			for _, delay := range []sim.Dist{sim.Constant(time.Millisecond), sim.Skewed(time.Microsecond, 100*time.Millisecond)} {
				r := simulate(t, Algorithm, f, sim.Config{
					Config: protocol.Config{N: n}, Entries: []int{10}, Seed: seed, Delay: delay, Think: sim.Constant(0),
				})
				times := r.MessagesPerEntry / (k - 1)
				if times < 3 || times > 6 {
					t.Errorf("form %d, n=%d, seed %d: %.2f(K-1) messages an entry, want 3 to 6", f, n, seed, times)
				}
				least, most = min(least, times), max(most, times)
				if hops := r.SyncDelay.Mean; delay == sim.Constant(time.Millisecond) && (hops < 1 || hops > 2.5) {
					t.Errorf("form %d, n=%d, seed %d: %.2f hops from an exit to the next entry, want 1 to 2.5", f, n, seed, hops)
				}
			}
		}
	})
	t.Logf("%.2f(K-1) to %.2f(K-1) messages an entry", least, most)
}

func simulate(t *testing.T, a protocol.Algorithm[Message], f quorum.Form, c sim.Config) sim.Result {
	t.Helper()
	c.Options = map[string]int64{"sets": int64(f)}
	c.FIFO = a.FIFO
	r, err := sim.Run(a, c)
	if err != nil || len(r.Violations) > 0 {
		t.Fatalf("%s, form %d, n=%d, seed %d: %v %v", a.Name, f, c.N, c.Seed, err, r.Violations)
	}
	return r
}

// Sets that are not defined for a number of processes are refused, by the range of the option.
func TestSets(t *testing.T) {
	for n, most := range map[int]int64{1: 2, 3: 4, 4: 2, 7: 4, 13: 3, 57: 3, 1000: 2} {
		for v := range int64(6) {
			err := Algorithm.CheckOptions(protocol.Config{N: n, Options: map[string]int64{"sets": v}})
			if (err == nil) != (v <= most) {
				t.Errorf("n=%d, sets=%d: %v", n, v, err)
			}
			want := fmt.Sprintf("option sets=%d: want 0 to %d with n=%d (%s)", v, most, n, sets.Doc)
			if err != nil && err.Error() != want {
				t.Errorf("%q, want %q", err, want)
			}
		}
	}
}
