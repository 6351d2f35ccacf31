package sigma

import (
	"strings"
	"testing"

	"github.com/poundlock/poundlock/algo/algotest/mutant"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
)

// A claim that is false is refuted, and one that says less reduces less.
func TestMutantsOfClaims(t *testing.T) {
	reduced := func(a protocol.Algorithm[Message], states int64, changes ...func(*check.Config)) mutant.Check {
		c := model(2, nil)
		c.Reduce, c.Timers = []string{check.ReduceOrder}, check.NeverFire
		for _, f := range changes {
			f(&c)
		}
		return mutant.Reduced(a, c, states)
	}
	symmetric := func(c *check.Config) { c.Reduce = []string{check.ReduceSymmetry} }
	loses := func(c *check.Config) { c.Amnesia = 1 }
	single := func(c *check.Config) { c.N = 1 }
	servers := func(c *check.Config) { c.N = 3 }
	mutant.Test(t, mutant.Config{
		Checks: []mutant.Check{
			reduced(Literal, 2280),
			reduced(Literal, 231, single, twice),
			reduced(Literal, 1728, symmetric),
			reduced(Algorithm, 365),
			reduced(Algorithm, 147, single, twice),
			reduced(Algorithm, 10702, lapses),
			reduced(Algorithm, 142833, loses),
			reduced(Algorithm, 219, symmetric),
			reduced(Algorithm, 614, tokens, symmetric),
			reduced(Algorithm, 236, promising, symmetric),
			reduced(Algorithm, 2521, servers, thrifty, symmetric),
		},
		Inside: []string{"late", "anyway", "unfenced", "rename", "renamed"},
		Survivors: map[string]string{
			"late: m.Inc <= c.servers[from].inc dropped": "who is inside asks a life that it did not know again; in no run of two " +
				"servers does it learn of one from a RESPONSE about somebody else",
			"late: request{m.Owner, m.Time} != request{c.id, c.timestamp} dropped": "the client ignores it all the same; but " +
				"sigma/token counts it, and is stable only because such a RESPONSE is not taken away first",
		},
	})
}

// holds decides a model, in which nothing may be violated.
func holds(t *testing.T, c check.Config) {
	t.Helper()
	v, err := check.Run(Algorithm, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: %d states, %s", v.Verdict, v.States, v.Bounds)
	if v.Verdict != check.Holds {
		t.Errorf("%s is %s\n%s", v.Property, v.Verdict, strings.Join(v.Trace, "\n"))
	}
}
