package reliable

import (
	"strings"
	"testing"

	"github.com/poundlock/poundlock/algo/ricartagrawala"
	"github.com/poundlock/poundlock/algo/sigma"
	"github.com/poundlock/poundlock/algo/suzukikasami"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
)

// reckless runs an algorithm, without the wrapper, on channels that its model excludes.
func reckless[M any](a protocol.Algorithm[M], c check.Config) (check.Verdict, error) {
	a.Tolerates |= protocol.Loss | protocol.Duplication
	return check.Run(a, c)
}

// Why there is a wrapper: one lost message stops every algorithm, and one that arrives
// twice is impossible for those that count replies or own a token. Sigma bears it, at
// this size.
func TestWithout(t *testing.T) {
	lost := func(c check.Config) check.Config {
		c.Loss, c.Properties = 1, []string{check.Deadlock}
		return c
	}
	twice := func(c check.Config) check.Config {
		c.Dup, c.Properties = 1, []string{check.Exclusion, check.Deadlock}
		return c
	}
	ra, sk, si, li := ricartagrawala.Algorithm, suzukikasami.Algorithm, sigma.Algorithm, sigma.Literal
	for _, test := range []struct {
		name  string
		run   func() (check.Verdict, error)
		want  string
		trace string
	}{
		{
			"ricart-agrawala, lost", func() (check.Verdict, error) { return reckless(ra, lost(members(2, 1))) },
			check.Deadlock, "try p1; lose p1 p2 REQUEST(1)",
		},
		{
			"suzuki-kasami, lost", func() (check.Verdict, error) { return reckless(sk, lost(members(2, 1))) },
			check.Deadlock, "try p1; lose p1 p2 REQUEST(1)",
		},
		{
			"sigma, lost", func() (check.Verdict, error) { return reckless(si, lost(servers(1, 1))) },
			check.Deadlock, "try c1; lose c1 s1 REQUEST(1)",
		},
		{
			"literal, lost", func() (check.Verdict, error) { return reckless(li, lost(servers(1, 1))) },
			check.Deadlock, "try c1; lose c1 s1 REQUEST(1)",
		},
		{
			"ricart-agrawala, twice", func() (check.Verdict, error) { return reckless(ra, twice(members(2, 1))) },
			check.Model, "try p1; deliver p1 p2 REQUEST(1); duplicate p2 p1 REPLY(1); deliver p2 p1 REPLY(1); deliver p2 p1 REPLY(1)",
		},
		{
			"suzuki-kasami, twice", func() (check.Verdict, error) { return reckless(sk, twice(members(2, 1))) },
			check.Model, "try p1; deliver p1 p2 REQUEST(1); duplicate p2 p1 TOKEN([0,0],[],0); " +
				"deliver p2 p1 TOKEN([0,0],[],0); deliver p2 p1 TOKEN([0,0],[],0)",
		},
		{
			// A REQUEST that comes once more after the RELEASE leaves a support for nobody, which
			// CHECKs would mend: there are none here.
			"sigma, twice", func() (check.Verdict, error) { return reckless(si, twice(servers(1, 2))) },
			check.Deadlock, "try c1; try c2; duplicate c1 s1 REQUEST(1); deliver c1 s1 REQUEST(1); " +
				"deliver s1 c1 RESPONSE(c1@1 inc=1 serial=1); exit c1; deliver c1 s1 RELEASE(1); deliver c1 s1 REQUEST(1); " +
				"deliver c2 s1 REQUEST(1); deliver s1 c2 RESPONSE(c1@1 inc=1); deliver s1 c1 RESPONSE(c1@1 inc=1 serial=1)",
		},
		{
			"sigma, twice, exclusion alone", func() (check.Verdict, error) {
				c := twice(servers(1, 2))
				c.Properties = []string{check.Exclusion}
				return reckless(si, c)
			}, "", "",
		},
		{"literal, twice", func() (check.Verdict, error) { return reckless(li, twice(servers(1, 2))) }, "", ""},
	} {
		v, err := test.run()
		if err != nil {
			t.Fatal(test.name, err)
		}
		trace := strings.Join(v.Trace, "; ")
		t.Logf("%s: %s %s, %d steps: %s: %s", test.name, v.Property, v.Verdict, len(v.Trace), trace, v.Reason)
		if want := test.want; want == "" && v.Verdict != check.Holds || want != "" && v.Property != want || trace != test.trace {
			t.Errorf("%s: want %q by %q", test.name, test.want, test.trace)
		}
	}
}
