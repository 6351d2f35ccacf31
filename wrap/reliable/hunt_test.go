package reliable

import (
	"slices"
	"strings"
	"testing"

	"github.com/poundlock/poundlock/algo/ricartagrawala"
	"github.com/poundlock/poundlock/algo/sigma"
	"github.com/poundlock/poundlock/algo/suzukikasami"
	"github.com/poundlock/poundlock/internal/lane"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/hunt"
	"github.com/poundlock/poundlock/verify/sim"
)

// A variant is a process that does something else with some events.
type variant[M any] struct {
	*Process[M]
	step reaction[M]
}

type reaction[M any] func(p *Process[M], ev protocol.Event[Frame[M]], out *protocol.Out[Frame[M]])

func (v variant[M]) Step(ev protocol.Event[Frame[M]], out *protocol.Out[Frame[M]]) {
	v.step(v.Process, ev, out)
}

// varied wraps a with another reaction. What looks into a process is left out, but for what
// a hunt needs.
func varied[M any](a protocol.Algorithm[M], step reaction[M]) protocol.Algorithm[Frame[M]] {
	w := Wrap(a)
	create, stale := w.New, w.Stale
	bare := func(p protocol.Process[Frame[M]]) protocol.Process[Frame[M]] {
		if v, ok := p.(variant[M]); ok {
			return v.Process
		}
		return p
	}
	w.New = func(id protocol.ID, c protocol.Config) protocol.Process[Frame[M]] {
		return variant[M]{create(id, c).(*Process[M]), step}
	}
	w.Stale = func(from, to protocol.Process[Frame[M]], ch protocol.Channel, f Frame[M]) bool {
		return stale(bare(from), bare(to), ch, f)
	}
	w.MapState, w.MapMsg, w.Bounds, w.Invariants, w.Unsettled = nil, nil, nil, nil, nil
	return w
}

// gullible takes what comes twice.
func gullible[M any](p *Process[M], ev protocol.Event[Frame[M]], out *protocol.Out[Frame[M]]) {
	if ev.Kind == protocol.Receive && !ev.Msg.Ack {
		q, f := p.peer(ev.From), ev.Msg
		if f.To == p.mine(q) && f.From == q.theirs && !q.closed && q.has(f.Number) {
			p.give(ev.Input, f.Msg, out)
			p.ack(q, f.Number, out)
			return
		}
	}
	p.Step(ev, out)
}

// nameless puts no incarnation into its frames.
func nameless[M any](p *Process[M], ev protocol.Event[Frame[M]], out *protocol.Out[Frame[M]]) {
	p.Step(ev, out)
	p.life = 0
}

// A hunt finds what is broken in the wrapper, and what it leaves is replayed: by the checker,
// or by the simulator with the same loss and repetition.
func TestHunted(t *testing.T) {
	three := hunt.Config{Config: protocol.Config{N: 3}}
	t.Run("repeated tokens are taken", func(t *testing.T) {
		hunted(t, varied(suzukikasami.Algorithm, gullible), three, check.Model, check.Exclusion, hunt.Stuck)
	})
	t.Run("repeated replies are taken", func(t *testing.T) {
		hunted(t, varied(ricartagrawala.Algorithm, gullible), three, check.Model, check.Exclusion)
	})
	t.Run("no incarnation in frames", func(t *testing.T) {
		hunted(t, varied(sigma.Literal, nameless), hunt.Config{Config: protocol.Config{N: 4}, Clients: 2}, check.Model)
	})
	t.Run("no link", func(t *testing.T) { // an algorithm that says it bears loss, and does not
		a := ricartagrawala.Algorithm
		a.Tolerates |= protocol.Loss
		hunted(t, a, three, check.Deadlock, hunt.Stuck)
	})
}

// hunted hunts, and wants each of some seeds to find one of some properties.
func hunted[M any](t *testing.T, a protocol.Algorithm[M], c hunt.Config, properties ...string) {
	t.Helper()
	seeds := uint64(3)
	if !lane.Long.Runs() {
		t.Log("SHORTENED to one seed: TEST_LANE=long hunts with three")
		seeds = 1
	}
	for c.Seed = range seeds {
		c.Runs, c.Workers = 300, 2
		r, err := hunt.Run(a, c)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Violations) == 0 {
			t.Errorf("seed %d: nothing in %d runs", c.Seed, r.Runs)
			continue
		}
		v := r.Violations[0]
		t.Logf("seed %d: %s in run %d, %d steps of %d: %s", c.Seed, v.Property, v.Run, len(v.Trace), v.Found, v.Reason)
		if !slices.Contains(properties, v.Property) || !v.Replayed {
			t.Errorf("seed %d: %s, replayed %t\n%s", c.Seed, v.Property, v.Replayed, strings.Join(v.Trace, "\n"))
		}
		if v.Timed {
			again, err := sim.Run(a, v.Simulation)
			if err != nil || again.ViolationCount == 0 {
				t.Errorf("seed %d: the simulation has %v, %v", c.Seed, again.Violations, err)
			}
		}
	}
}
