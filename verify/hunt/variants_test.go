package hunt

import (
	"slices"
	"testing"

	"github.com/poundlock/poundlock/algo/ricartagrawala"
	"github.com/poundlock/poundlock/algo/sigma"
	"github.com/poundlock/poundlock/algo/suzukikasami"
	"github.com/poundlock/poundlock/internal/lane"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/causal"
	"github.com/poundlock/poundlock/verify/check"
)

// A broken process does something else with some events.
type broken[M any] struct {
	protocol.Process[M]
	member bool
	step   reaction[M]
}

func (p broken[M]) Unwrap() any { return p.Process }

type reaction[M any] func(p broken[M], ev protocol.Event[M], out *protocol.Out[M])

func (p broken[M]) Step(ev protocol.Event[M], out *protocol.Out[M]) { p.step(p, ev, out) }

// breaking returns a with another reaction. What looks into the state of a process
// is left out, for it does not know this one.
func breaking[M any](a protocol.Algorithm[M], step reaction[M]) protocol.Algorithm[M] {
	create := a.New
	a.New = func(id protocol.ID, c protocol.Config) protocol.Process[M] {
		return broken[M]{create(id, c), id < protocol.ID(c.N), step}
	}
	a.Moot = nil
	a.MapState, a.MapMsg, a.Bounds, a.Invariants, a.Unsettled = nil, nil, nil, nil, nil
	return a
}

// deaf is an algorithm whose clients, or whose members, never hear of some events.
func deaf[M any](a protocol.Algorithm[M], members bool, kind protocol.Kind) protocol.Algorithm[M] {
	return breaking(a, func(p broken[M], ev protocol.Event[M], out *protocol.Out[M]) {
		if ev.Kind != kind || p.member != members {
			p.Process.Step(ev, out)
		}
	})
}

// generous answers each REQUEST at once, whatever it wants itself.
var generous = breaking(ricartagrawala.Algorithm,
	func(p broken[ricartagrawala.Message], ev protocol.Event[ricartagrawala.Message], out *protocol.Out[ricartagrawala.Message]) {
		if ev.Kind == protocol.Receive && ev.Msg.Kind == ricartagrawala.Request {
			out.Send(ev.From, ricartagrawala.Message{Kind: ricartagrawala.Reply, Time: ev.Msg.Time})
			return
		}
		p.Process.Step(ev, out)
	})

// forging sends the token twice.
var forging = breaking(suzukikasami.Algorithm,
	func(p broken[suzukikasami.Message], ev protocol.Event[suzukikasami.Message], out *protocol.Out[suzukikasami.Message]) {
		p.Process.Step(ev, out)
		for _, e := range out.Effects {
			if e.Do == protocol.Send && e.Msg.Kind == suzukikasami.Token {
				out.Send(e.To, e.Msg)
				return
			}
		}
	})

// A hunt finds what is broken, and what it leaves of a run is nearly as short as the
// shortest one there is, which breadth-first search finds.
func TestBrokenVariants(t *testing.T) {
	three := []uint64{0, 1, 2}[:lane.Of(t, "seeds", 1, 3, 3)]
	one, two := protocol.Config{N: 1}, protocol.Config{N: 2}
	quorum := func(n, m int64) protocol.Config {
		return protocol.Config{N: int(n), Options: map[string]int64{"quorum": m}}
	}
	t.Run("answers while inside", func(t *testing.T) {
		caught(t, three, generous, Config{}, check.Config{Config: two}, check.Exclusion)
	})
	t.Run("answers nobody", func(t *testing.T) {
		caught(t, three, deaf(ricartagrawala.Algorithm, true, protocol.Receive), Config{}, check.Config{Config: two}, check.Deadlock)
	})
	t.Run("replies without a clock", func(t *testing.T) {
		three := protocol.Config{N: 3}
		a := causal.Of(ricartagrawala.Printed)
		caught(t, []uint64{0}, a, Config{Config: three, Runs: 20_000}, check.Config{Config: three, Entries: []int{2, 1, 0}}, causal.Order)
	})
	t.Run("two tokens", func(t *testing.T) {
		caught(t, three, forging, Config{}, check.Config{Config: two}, check.Model)
	})
	t.Run("quorums that do not intersect", func(t *testing.T) {
		c := quorum(4, 2)
		c.Options["fence"] = sigma.FenceOff // else tokens may fall first
		caught(t, three, sigma.Algorithm, Config{Config: c}, check.Config{Config: c}, check.Exclusion)
	})
	t.Run("servers that never suspect", func(t *testing.T) {
		a := deaf(sigma.Literal, true, protocol.Suspect)
		caught(t, []uint64{1}, a, Config{Config: one, Clients: 2}, check.Config{Config: one, Crash: 1}, check.MakesProgress)
		spared(t, a, Config{Config: one, Clients: 2, without: crashes})
	})
	t.Run("clients that ignore their leases", func(t *testing.T) {
		a := deaf(sigma.Algorithm, false, protocol.Suspect)
		caught(t, []uint64{0}, a, Config{Config: two, Clients: 2}, check.Config{Config: two, Suspect: 2, Pause: 1}, check.MakesProgress, check.Exclusion)
		caught(t, []uint64{0}, a, Config{Config: two, Clients: 2, without: lapses}, check.Config{Config: two, Pause: 1}, check.MakesProgress, check.Exclusion)
		spared(t, a, Config{Config: two, Clients: 2, without: lapses | pauses})
	})
}

// caught hunts, for one of some properties, and compares what is found with a check.
func caught[M any](t *testing.T, seeds []uint64, a protocol.Algorithm[M], c Config, k check.Config, properties ...string) {
	t.Helper()
	for _, seed := range seeds {
		if c.Seed, c.Workers = seed, 2; c.Runs == 0 {
			c.Runs = 400
		}
		v := finding(t, a, c)
		if !slices.Contains(properties, v.Property) {
			t.Errorf("seed %d: %s, want %v", seed, v.Property, properties)
		}
		if v.Property == check.MakesProgress {
			if !v.Replayed {
				t.Errorf("seed %d: the checker finds no loop", seed)
			}
			continue // whose beginning is not the shortest one
		}
		k.Properties = []string{v.Property}
		shortest, err := check.Run(a, k)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("the shortest one there is: %d steps", len(shortest.Trace))
		const slack = 5
		if !v.Replayed || shortest.Verdict != check.Violated || len(v.Trace) > len(shortest.Trace)+slack {
			t.Errorf("seed %d: %d steps, replayed %t; the check has %s after %d", seed, len(v.Trace), v.Replayed,
				shortest.Verdict, len(shortest.Trace))
		}
	}
}

// spared hunts without what it takes, and must find nothing: the hunt above owes its
// finding to those faults.
func spared[M any](t *testing.T, a protocol.Algorithm[M], c Config) {
	t.Helper()
	c.Seed, c.Runs, c.Workers = 0, 100, 2
	if r := mustRun(t, a, c); len(r.Violations) > 0 {
		t.Errorf("without its faults: %s in run %d", r.Violations[0].Property, r.Violations[0].Run)
	}
}
