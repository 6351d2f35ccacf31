package tokenring

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/poundlock/poundlock/algo/algotest"
	"github.com/poundlock/poundlock/algo/algotest/mutant"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/causal"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/sim"
)

// of are models in which every process enters without end, as often as it likes.
func of(property string, sizes ...int) (o algotest.Options) {
	for _, n := range sizes {
		o.Exhaustive = append(o.Exhaustive, check.Config{
			Config: protocol.Config{N: n}, Entries: []int{check.Unlimited}, Properties: []string{property},
		})
	}
	return o
}

var options = of("all", 1, 2, 3, 4, 5)

func TestConformance(t *testing.T)        { algotest.Run(t, Algorithm, options) }
func TestConformanceResting(t *testing.T) { algotest.Run(t, Resting, options) }
func TestConformanceBidirectional(t *testing.T) {
	o := of("all", 1, 2, 3, 4, 5) // but starvation
	o.Lacking = of(check.Starvation, 3).Exhaustive
	algotest.Run(t, Bidirectional, o)
}
func FuzzRead(f *testing.F)      { algotest.FuzzRead(f, Bidirectional) }
func FuzzReadOne(f *testing.F)   { algotest.FuzzRead(f, Algorithm) }
func FuzzReadRests(f *testing.F) { algotest.FuzzRead(f, Resting, options) }
func FuzzLoadState(f *testing.F) { algotest.FuzzLoadState(f, Resting, options) }

// A run with contention of each form, event by event.
func TestGolden(t *testing.T) {
	for name, a := range map[string]protocol.Algorithm[Message]{
		"run": Algorithm, "resting": Resting, "bidirectional": Bidirectional,
	} {
		t.Run(name, func(t *testing.T) {
			algotest.Golden(t, a, name, sim.Config{
				Config: protocol.Config{N: 3}, Entries: []int{2}, Think: sim.Exponential(2 * time.Millisecond),
			})
		})
	}
}

func system(a protocol.Algorithm[Message], n int) *algotest.System[Message] {
	return algotest.NewSystem(a, protocol.Config{N: n}, 0)
}

// hop moves the one message of a perpetual ring, from process at on.
func hop(s *algotest.System[Message], at protocol.ID) (to protocol.ID) {
	to = (at + 1) % protocol.ID(len(s.Procs))
	s.Deliver(at, to, 0)
	return to
}

// With nobody in the critical section the token goes round for ever, one message after
// the other. It is up to n-1 messages away from who tries, or n if it has just left.
func TestPerpetual(t *testing.T) {
	const n = 5
	for d := range protocol.ID(n) {
		s := system(Algorithm, n)
		at := protocol.ID(n - 1) // who sent it last
		for range 3 * n {
			at = hop(s, at)
		}
		if s.Sent != 3*n+1 {
			t.Fatalf("%d messages in %d hops of an idle token", s.Sent, 3*n)
		}
		user := (at + 1 + d) % n
		before := s.Sent
		s.Try(user)
		hops := 0
		for ; len(s.Inside()) == 0; hops++ {
			at = hop(s, at)
		}
		if got := s.Sent - before; got != int(d) || hops != int(d)+1 {
			t.Errorf("d=%d: %d messages and %d hops to enter, want %d and %d", d, got, hops, d, d+1)
		}
	}
}

// Who stands d places after the holder of a token that rests enters with 2d messages, d of
// which are REQUESTs, and an exit without anybody who waits sends none.
func TestDistances(t *testing.T) {
	const n = 7
	s := system(Resting, n)
	holder := protocol.ID(n - 1)
	for d := range protocol.ID(n) {
		user := (holder + d) % n
		before := s.Sent
		s.Try(user)
		s.Settle()
		if got := s.Inside(); !slices.Equal(got, []protocol.ID{user}) {
			t.Fatalf("inside: %v, want %d", got, user)
		}
		s.Exit(user)
		s.Settle()
		if got := s.Sent - before; got != 2*int(d) {
			t.Errorf("d=%d: %d messages, want %d", d, got, 2*d)
		}
		holder = user
	}
}

// The token reaches the one who waits after as many hops as it stands behind who leaves.
func TestSynchronizationDelay(t *testing.T) {
	const n = 5
	for _, a := range []protocol.Algorithm[Message]{Algorithm, Resting} {
		for d := protocol.ID(1); d < n; d++ {
			s := system(a, n)
			s.Try(0)
			if a.Variant == "resting" {
				s.Settle()
			} else {
				hop(s, n-1)
			}
			s.Try(d)
			if a.Variant == "resting" {
				s.Settle() // the REQUEST waits at the holder
			}
			before := s.Sent
			s.Exit(0)
			for at := protocol.ID(0); len(s.Inside()) == 0; {
				at = hop(s, at)
			}
			if got := s.Sent - before; got != int(d) || s.Inside()[0] != d {
				t.Errorf("%q: %d hops from exit to the entry of %v, want %d", a.Variant, got, s.Inside(), d)
			}
		}
	}
}

// A REQUEST that meets somebody who waits goes no further: one token serves both, in the
// order of the ring.
func TestRequestsMerge(t *testing.T) {
	const n = 5
	s := system(Resting, n) // 4 has the token
	s.Try(1)
	s.Deliver(1, 0, 0) // 0 hands it on
	s.Try(3)
	s.Deliver(3, 2, 0)
	s.Deliver(2, 1, 0) // 1 waits itself
	if got := s.InFlight(1, 0); len(got) != 0 {
		t.Errorf("1 asks a second time: %v", got)
	}
	s.Try(0)
	if got := s.InFlight(0, n-1); len(got) != 1 {
		t.Errorf("0 asks again for itself: %v", got)
	}
	for _, id := range []protocol.ID{0, 1, 3} {
		s.Settle()
		if got := s.Inside(); !slices.Equal(got, []protocol.ID{id}) {
			t.Fatalf("inside: %v, want %d", got, id)
		}
		s.Exit(id)
	}
	s.Settle()
	if s.Sent != 4+4 {
		t.Errorf("%d messages, want 4 REQUESTs and the token 4 times", s.Sent)
	}
}

// Starvation freedom is "guaranteed if the ring is unidirectional". Where the token may go
// both ways, two of three processes exchange it for ever, and the third one starves.
func TestStarvation(t *testing.T) {
	if fault, err := starvation(); err != nil || fault != "" {
		t.Error(err, fault)
	}
}

func starvation() (fault string, err error) {
	for _, x := range []struct {
		form  protocol.Algorithm[Message]
		n     int
		trace []string
	}{
		{Algorithm, 3, nil},
		{Resting, 3, nil},
		{Bidirectional, 2, nil}, // each is next to the other both ways
		{Bidirectional, 3, []string{
			"deliver p3 p1 TOKEN", "try p1", "deliver p1 p2 TOKEN", // it has just passed p1
			"try p3", "deliver p2 p3 TOKEN", "try p2", "exit p3", "deliver p3 p2 TOKEN(back)", "exit p2",
		}},
	} {
		v, err := check.Run(x.form, check.Config{
			Config: protocol.Config{N: x.n}, Entries: []int{check.Unlimited}, Properties: []string{check.Starvation},
		})
		if err != nil {
			return "", err
		}
		if (v.Verdict == check.Holds) != (x.trace == nil) || !slices.Equal(v.Trace, x.trace) || x.trace != nil && v.Loop != 3 {
			return fmt.Sprintf("starvation by check, %q with %d is %s, %s %s",
				x.form.Variant, x.n, v.Verdict, v.Reason, strings.Join(v.Trace, ", ")), nil
		}
	}
	return "", nil
}

// Entries follow the ring, not the order of tries: in the resting form a process hears of
// a try, tries afterwards and enters first. Without REQUESTs nobody hears of a try.
func TestOrder(t *testing.T) {
	for _, a := range []protocol.Algorithm[Message]{Algorithm, Resting, Bidirectional} {
		v, err := check.Run(causal.Of(a), check.Config{
			Config: protocol.Config{N: 3}, Entries: []int{3}, Properties: []string{causal.Order},
		})
		if err != nil {
			t.Fatal(err)
		}
		if a.Variant != "resting" {
			if v.Verdict != check.Holds {
				t.Errorf("%q: %s\n%s", a.Variant, v.Reason, strings.Join(v.Trace, "\n"))
			}
			continue
		}
		want := []string{
			"try p2", "deliver p2 p1 REQUEST", "try p1", "deliver p1 p3 REQUEST", "deliver p3 p1 TOKEN",
		}
		if v.Verdict != check.Violated || !slices.Equal(v.Trace, want) {
			t.Errorf("%s: %s\n%s", v.Verdict, v.Reason, strings.Join(v.Trace, "\n"))
		}
	}
}

// Every text in one place, so that traces can be read.
func TestText(t *testing.T) {
	for want, m := range map[string]Message{
		"TOKEN": {}, "TOKEN(back)": {Back: true}, "REQUEST": {Kind: Request},
	} {
		if got := Algorithm.Text(m); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestMutants(t *testing.T) {
	model := func(a protocol.Algorithm[Message], n int) mutant.Check {
		return mutant.Decided(a, check.Config{
			Config: protocol.Config{N: n}, Entries: []int{check.Unlimited}, Properties: []string{"all"}, MaxMemory: 16 << 20,
		})
	}
	refuse := func(a protocol.Algorithm[Message], n int, messages ...Message) mutant.Check {
		return mutant.Panics("tokenring: a ", func() {
			s := system(a, n)
			for _, m := range messages {
				var out protocol.Out[Message]
				s.Procs[0].Step(protocol.Event[Message]{Input: protocol.Input{Kind: protocol.Receive}, Msg: m}, &out)
			}
		})
	}
	// Every mutant is caught, so that there is no list of survivors.
	mutant.Test(t, mutant.Config{
		Checks: []mutant.Check{
			model(Algorithm, 1),
			model(Algorithm, 3),
			model(Resting, 3),
			starvation,
			refuse(Algorithm, 1, Message{Kind: Token}),
			refuse(Algorithm, 2, Message{Kind: Token, Back: true}),
			refuse(Algorithm, 2, Message{Kind: Request}),
			refuse(Resting, 2, Message{Kind: Token}),
			refuse(Resting, 2, Message{Kind: Request}, Message{Kind: Request}),
		},
		Outside: map[string]string{
			"Keeper": "TestRegeneratingMutants", "Number": "of Keeper",
			"regenerating": "of Keeper",
		},
		Replace: []mutant.Replacement{
			mutant.Edit("onToken forgets where it came from", "p.back = back", ""),
			mutant.Edit("onToken may ask again only once", "p.token, p.asked = true, false", "p.token = true"),
			mutant.Edit("onRequest forgets", "p.wanted = true", ""),
			mutant.Edit("ask asks again and again", "p.asked = true\n", "\n"),
			mutant.Edit("pass keeps the token", "p.token, p.back, p.wanted = false", "_, p.back, p.wanted = false"),
			mutant.Edit("pass remembers where it came from", "p.token, p.back, p.wanted = false", "p.token, _, p.wanted = false"),
			mutant.Edit("pass remembers who asked", "p.token, p.back, p.wanted = false", "p.token, p.back, _ = false"),
			mutant.Edit("exit stays inside", "p.section = protocol.InRem", ""),
		},
	})
}

// BenchmarkStep measures a step of an idle token, the simulator included.
func BenchmarkStep(b *testing.B) {
	const n = 10
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r, err := sim.Run(Algorithm, sim.Config{
		Config:  protocol.Config{N: n},
		Entries: []int{1 + b.N/(3*n)},
		Think:   sim.Constant(0),
	})
	if err != nil {
		b.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	allocations := float64(after.Mallocs-before.Mallocs) / float64(r.Events)
	b.ReportMetric(allocations, "allocs/step")
	if r.Events > 100_000 && allocations > 0.01 {
		b.Errorf("%.4f allocations a step, want below 0.01", allocations)
	}
}
