package hunt

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/poundlock/poundlock/algo/ricartagrawala"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/causal"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/history"
)

type (
	raEvent = protocol.Event[ricartagrawala.Message]
	raOut   = protocol.Out[ricartagrawala.Message]
	raBad   = broken[ricartagrawala.Message]
)

// after lets each process do something more after some events.
func after(kind protocol.Kind, more func(p raBad, ev raEvent, out *raOut)) protocol.Algorithm[ricartagrawala.Message] {
	return breaking(ricartagrawala.Algorithm, func(p raBad, ev raEvent, out *raOut) {
		if p.Process.Step(ev, out); ev.Kind == kind {
			more(p, ev, out)
		}
	})
}

// tokens gives each grant the token that of says.
func tokens(of func(now int64) uint64) protocol.Algorithm[ricartagrawala.Message] {
	return breaking(ricartagrawala.Algorithm, func(p raBad, ev raEvent, out *raOut) {
		p.Process.Step(ev, out)
		for i := range out.Effects {
			if e := &out.Effects[i]; e.Do == protocol.Crit {
				e.Arg = of(ev.Now)
			}
		}
	})
}

// restless is an algorithm that answers nobody and is never idle.
var restless = breaking(ricartagrawala.Algorithm, func(p raBad, ev raEvent, out *raOut) {
	const timer, often = 9, 1e6
	switch ev.Kind {
	case protocol.Receive:
	case protocol.Timeout:
		out.SetTimer(timer, often, 0)
	default:
		p.Process.Step(ev, out)
		out.SetTimer(timer, often, 0)
	}
})

// crowded has an invariant that two users who wait at once violate.
func crowded() protocol.Algorithm[ricartagrawala.Message] {
	a := ricartagrawala.Algorithm
	a.Invariants = []protocol.Invariant{{
		Name: "ricart-agrawala/alone",
		Err: func(v *protocol.View) error {
			k := 0
			for _, s := range v.Users {
				if s == protocol.InTry {
					k++
				}
			}
			if k > 1 {
				return errors.New("two users wait")
			}
			return nil
		},
	}}
	return a
}

// A plant is a fault that one monitor sees and no other: what runs without and with time
// find.
type plant struct {
	name           string
	untimed, timed string // "": nothing
	find           func(timed bool) (map[string]bool, error)
}

// finds makes some runs of a, with time or without, and says which properties fell in
// them.
func finds[M any](a protocol.Algorithm[M], c Config) func(timed bool) (map[string]bool, error) {
	return func(timed bool) (map[string]bool, error) {
		const runs, enough = 60, 3
		found, h := map[string]bool{}, &hunter{alg: protocol.Erase(a), cfg: c}
		simulators, k := newSimulators(protocol.Erase(a)), 0
		for run := c.First; run < c.First+runs && k < enough; run++ {
			if p := c.draw(a.Info, a.Unsettled != nil, run, 0); p.timed != timed {
				continue
			}
			o := h.one(simulators, run, 0)
			if o.err != nil {
				return nil, o.err
			}
			if o.found != nil {
				found[o.found.Property] = true
				k++
			}
		}
		return found, nil
	}
}

func plants() []plant {
	three := Config{Config: protocol.Config{N: 3}}
	unclocked := three
	unclocked.First = 3295 // the first run that shows it
	return []plant{
		{"answers while inside", check.Exclusion, check.Exclusion + ", " + history.Inversion, finds(generous, three)}, // who waited longer comes later
		{
			"leaves twice", check.WellFormed, check.WellFormed,
			finds(after(protocol.Exit, func(_ raBad, _ raEvent, out *raOut) { out.Rem() }), three),
		},
		{
			"panics", check.Model, check.Model,
			finds(after(protocol.Exit, func(raBad, raEvent, *raOut) { panic("planted") }), three),
		},
		{
			"sends to nobody", check.Model, check.WellFormed,
			finds(after(protocol.Exit, func(_ raBad, _ raEvent, out *raOut) { out.Send(99, ricartagrawala.Message{}) }), three),
		},
		{
			"asks for what there is not", check.Model, check.Model,
			finds(after(protocol.Exit, func(_ raBad, _ raEvent, out *raOut) {
				out.Effects = append(out.Effects, protocol.Effect[ricartagrawala.Message]{Act: protocol.Act{Do: 99}})
			}), three),
		},
		{"answers nobody", check.Deadlock, Stuck, finds(deaf(ricartagrawala.Algorithm, true, protocol.Receive), three)},
		{"answers nobody and is never idle", Stuck, Stuck, finds(restless, three)},
		{"violates an invariant", "ricart-agrawala/alone", "", finds(crowded(), three)},
		{"replies without a clock", causal.Order, "", finds(causal.Of(ricartagrawala.Printed), unclocked)},
		{"gives one token to all", "", history.Reuse, finds(tokens(func(int64) uint64 { return 7 }), three)},
		{
			"gives smaller and smaller tokens", "", history.Inversion,
			finds(tokens(func(now int64) uint64 { return 1<<62 - uint64(now) }), three),
		},
	}
}

// unseen says what is wrong with the findings of the plants.
func unseen(all []plant) (wrong []string, err error) {
	for _, p := range all {
		for _, timed := range []bool{false, true} {
			found, err := p.find(timed)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", p.name, err)
			}
			want := p.untimed
			if timed {
				want = p.timed
			}
			if got := strings.Join(slices.Sorted(maps.Keys(found)), ", "); got != want {
				wrong = append(wrong, fmt.Sprintf("%s, timed %t: found %q, want %q", p.name, timed, got, want))
			}
		}
	}
	return wrong, nil
}

// Each monitor sees a fault that no other one does.
func TestMonitors(t *testing.T) {
	wrong, err := unseen(plants())
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range wrong {
		t.Error(w)
	}
}

// Unseen is for the tests that take monitors away.
func Unseen() ([]string, error) { return unseen(plants()) }
