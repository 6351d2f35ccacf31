package reliable

import (
	"testing"

	"github.com/poundlock/poundlock/algo/ricartagrawala"
	"github.com/poundlock/poundlock/algo/sigma"
	"github.com/poundlock/poundlock/algo/suzukikasami"
	"github.com/poundlock/poundlock/internal/lane"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/causal"
	"github.com/poundlock/poundlock/verify/check"
)

// A model is a configuration in which every property holds.
type model struct {
	name string
	run  func(check.Config) (check.Verdict, error)
	c    check.Config
	full bool // only with TEST_LANE=long
}

func of[M any](a protocol.Algorithm[M]) func(check.Config) (check.Verdict, error) {
	return func(c check.Config) (check.Verdict, error) { return check.Run(Wrap(a), c) }
}

func members(n int, entries ...int) check.Config {
	return check.Config{Config: protocol.Config{N: n}, Entries: entries}
}

func servers(n, clients int) check.Config {
	return check.Config{Config: protocol.Config{N: n}, Clients: clients}
}

func with(c check.Config, change func(*check.Config)) check.Config {
	change(&c)
	return c
}

func loss(k int) func(*check.Config) { return func(c *check.Config) { c.Loss, c.Dup = k, k } }

// fair asks whether each try ends in the critical section, as long as what is sent again
// and again arrives, though one message of a run is lost.
func fair(c *check.Config) { c.Loss, c.Properties = 1, []string{check.Starvation, check.MakesProgress} }

func models() []model {
	ra, sk := of(ricartagrawala.Algorithm), of(suzukikasami.Algorithm)
	order := of(causal.Of(ricartagrawala.Algorithm))
	si, li := of(sigma.Algorithm), of(sigma.Literal)
	return []model{
		{"ricart-agrawala", ra, with(members(2, check.Unlimited), loss(1)), false},
		{"ricart-agrawala", ra, with(members(2, 1), loss(2)), false},
		{"ricart-agrawala, order", order, with(members(2, 2, 1), loss(1)), false},
		{"ricart-agrawala", ra, with(members(3, 1, 1, 0), loss(1)), true},
		{"ricart-agrawala", ra, members(3, 1), true},
		{"ricart-agrawala, starvation", ra, with(members(2, 1), fair), false},
		{"suzuki-kasami", sk, with(members(2, check.Unlimited), loss(1)), false},
		{"suzuki-kasami, starvation", sk, with(members(2, 1), fair), false},
		{"suzuki-kasami", sk, with(members(2, 1), loss(2)), false},
		{"suzuki-kasami", sk, with(members(3, 1), loss(1)), true},
		{"sigma", si, servers(1, 2), false},
		{"sigma, starvation", si, with(servers(2, 1), fair), false},
		{"sigma", si, with(servers(1, 2), loss(1)), true},
		{"sigma", si, with(servers(2, 1), loss(1)), false},
		{"sigma", si, with(servers(1, 1), func(c *check.Config) { c.Loss, c.Suspect = 1, 1 }), false},
		{"sigma", si, with(servers(1, 1), func(c *check.Config) { c.Loss, c.Amnesia = 1, 1 }), false},
		{"sigma", si, with(servers(1, 1), func(c *check.Config) { c.Loss, c.Crash = 1, 1 }), false},
		{"sigma", si, with(servers(1, 2), func(c *check.Config) { c.Loss, c.Crash = 1, 1 }), true},
		{"sigma", si, with(servers(2, 1), func(c *check.Config) { c.Loss, c.Amnesia, c.Suspect = 1, 1, 1 }), true},
		{"sigma", si, servers(2, 2), true},
		{"sigma literal", li, servers(1, 2), true},
		{"sigma literal", li, with(servers(1, 2), loss(1)), true},
		{"sigma literal", li, with(servers(2, 1), func(c *check.Config) {
			// What a server has not acknowledged before it forgets is lost, and then it is
			// as good as silent to its sender: at n=2 none may be.
			c.Loss, c.Amnesia, c.Properties = 1, 1, []string{check.Exclusion, check.WellFormed, "sigma/p1", "sigma/p2"}
		}), false},
		{"sigma literal", li, with(servers(1, 2), func(c *check.Config) { c.Loss, c.Crash = 1, 1 }), true},
	}
}

// Behind the wrapper every property of every algorithm holds, though channels lose
// messages and repeat them.
func TestModels(t *testing.T) {
	for i, m := range models() {
		if m.full && !lane.Long.Runs() {
			t.Logf("SHORTENED: %s with n=%d, loss=%d takes long; TEST_LANE=long explores it", m.name, m.c.N, m.c.Loss)
			continue
		}
		m.c.MaxMemory, m.c.Workers = 3<<30, 1+i%2
		v, err := m.run(m.c)
		if err != nil {
			t.Errorf("%s: %v", m.name, err)
			continue
		}
		t.Logf("%s: %s in %d states, %.1f s: %s", m.name, v.Verdict, v.States, v.Seconds, v.Bounds)
		if v.Verdict != check.Holds {
			t.Errorf("%s: %s is %s: %s", m.name, v.Property, v.Verdict, v.Reason)
			for _, e := range v.Run.Steps {
				t.Log(e.Line, e.Did())
			}
		}
	}
}
