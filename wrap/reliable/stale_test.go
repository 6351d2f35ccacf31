package reliable

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/poundlock/poundlock/algo/algotest/mutant"
	"github.com/poundlock/poundlock/algo/ricartagrawala"
	"github.com/poundlock/poundlock/algo/sigma"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/scenario"
	"github.com/poundlock/poundlock/verify/world"
)

// inside is the algorithm's own process.
func inside(p any) protocol.Stateful {
	return p.(interface{ Unwrap() any }).Unwrap().(interface{ Unwrap() any }).Unwrap().(protocol.Stateful)
}

// reached returns what the algorithm's processes can be together, behind the wrapper:
// their states and who is inside, whatever the wrapper remembers.
func reached[M any](a protocol.Algorithm[Frame[M]], c check.Config) (map[string]bool, check.Verdict, error) {
	states := map[string]bool{}
	a.Invariants = []protocol.Invariant{{Name: "watch", Err: func(v *protocol.View) error {
		var b []byte
		for i, p := range v.Procs {
			b = append(b, byte(v.Users[i]), protocol.AppendBool(nil, p == nil)[0])
			if p != nil {
				b = protocol.AppendState(b, inside(p))
			}
		}
		states[string(b)] = true
		return nil
	}}}
	c.Properties, c.NoShift, c.MaxMemory, c.Workers = []string{"watch"}, true, 512<<20, 1
	v, err := check.Run(a, c)
	return states, v, err
}

// forgetful compares what the checker reaches when it forgets stale frames, and lets all
// others stay, with what it reaches when it forgets nothing and each frame may come once
// or more often.
func forgetful[M any](t *testing.T, a protocol.Algorithm[M], c check.Config) mutant.Check {
	return func() (string, error) {
		quick, v, err := reached(Wrap(a), c)
		if err != nil {
			return "", err
		}
		w := Wrap(a)
		w.Stale = nil
		slow, all, err := reached(w, c)
		switch {
		case err != nil:
			return "", err
		case v.Verdict != check.Holds || all.Verdict != check.Holds:
			return "undecided: " + v.Bounds + "; " + all.Bounds, nil
		case !maps.Equal(quick, slow):
			return "what is forgotten hides something", nil
		}
		if t != nil {
			t.Logf("%s, n=%d: %d states instead of %d, with the same %d of the algorithm", a.Name, c.N, v.States, all.States, len(slow))
		}
		return "", nil
	}
}

func staleModels(t *testing.T) []mutant.Check {
	return []mutant.Check{
		forgetful(t, ricartagrawala.Algorithm, members(2, 1)),
		forgetful(t, ricartagrawala.Algorithm, with(members(2, 1, 0), loss(1))),
		forgetful(t, sigma.Algorithm, with(servers(1, 1), func(c *check.Config) { c.Crash, c.Amnesia = 1, 1 })),
		forgetful(t, sigma.Algorithm, with(servers(1, 1), func(c *check.Config) { c.Suspect = 1 })),
		forgetful(t, sigma.Literal, with(servers(1, 1), func(c *check.Config) { c.Crash, c.Amnesia = 1, 1 })),
		forgetful(t, sigma.Algorithm, with(servers(1, 1), func(c *check.Config) { c.Amnesia = 2 })),
		forgetful(t, sigma.Literal, with(servers(1, 1), func(c *check.Config) { c.Amnesia = 2 })),
	}
}

// remains walks at random, and returns a message that was stale and is no more.
func remains[M any](a protocol.Algorithm[M], seed uint64) error {
	const steps = 3000
	s := world.NewState(protocol.Erase(Wrap(a)), world.System{Config: protocol.Config{N: 2}, Clients: 2})
	r, once := rand.New(rand.NewPCG(seed, 0)), map[[2]int32]bool{}
	verbs := []scenario.Verb{
		scenario.Try, scenario.Exit, scenario.Timeout, scenario.Amnesia, scenario.Lapse, scenario.Suspect, scenario.Restore,
	}
	for k := range int32(steps) {
		c := world.Action{ID: k, Verb: verbs[r.IntN(len(verbs))], A: r.Int32N(4), B: r.Int32N(4), Keep: r.IntN(2) == 0}
		if n := len(s.Flight); n > 0 && r.IntN(3) > 0 {
			m := &s.Flight[r.IntN(n)]
			c.Verb, c.A, c.B, c.Kind, c.Sent, c.Part = scenario.Deliver, m.From, m.To, m.Kind, m.Sent, m.Part
		}
		if e := s.Ends[c.A]; c.Verb == scenario.Timeout && len(e.Timers) > 0 {
			c.Timer = e.Timers[0]
		}
		if s.Do(&c); s.Found != nil {
			return errors.New(s.Found.Text)
		}
		for k := range s.Flight {
			m := &s.Flight[k]
			switch name := [2]int32{m.Sent, m.Part}; {
			case s.Stale(k):
				once[name] = true
			case once[name]:
				return fmt.Errorf("%s from %d to %d is stale no more after %s %d", s.Text(m.Msg), m.From, m.To, c.Verb, c.A)
			}
		}
	}
	return nil
}

// What is stale once can do nothing in a later life or lease either.
func TestStaleRemains(t *testing.T) {
	for seed := range uint64(10) {
		if err := errors.Join(remains(sigma.Algorithm, seed), remains(sigma.Literal, seed)); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
}

// What the checker forgets hides nothing of the algorithm.
func TestStale(t *testing.T) {
	for i, model := range staleModels(t) {
		if fault, err := model(); fault != "" || err != nil {
			t.Errorf("model %d: %s %v", i, fault, err)
		}
	}
}
