package mutant

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// gate is the configuration of TestGate but for its checks, which are those of
// the test of that name in testdata/gate.
var gate = Config{
	Dir:     filepath.Join("testdata", "gate"),
	Outside: map[string]string{"Gate.Same": "the checks use it", "Sign": "another machine"},
	Replace: []Replacement{
		{"Enter does not count", "g.inside++\n\t\treturn true", "return true"},
		{"Leave forgets nobody", "g.inside--", ""},
		{"Drain counts double", "n++", "n += 2"},
		{"Drain counts double and Leave forgets", "n++", "n += 2"},
		{"Drain counts double and Leave forgets", "g.inside--", ""},
		{"Drain forgets to leave", "g.Leave()\n\t\tn++", "n++"},
	},
	Patience: 3 * time.Second, // to fill a stack takes a while on a busy machine
}

func TestGate(t *testing.T) {
	results, err := gate.run(t.Name(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"Gate.Enter: g.inside < g.most -> true":        "tickets",
		"Gate.Enter: g.inside < g.most -> false":       "tickets",
		"Gate.Enter: staff || ticket && room -> true":  "tickets",
		"Gate.Enter: staff || ticket && room -> false": "tickets",
		"Gate.Enter: staff dropped":                    "staff",
		"Gate.Enter: ticket && room dropped":           "tickets",
		"Gate.Enter: ticket dropped":                   "", // no check tries to enter with room and no ticket
		"Gate.Enter: room dropped":                     "tickets",
		"Gate.Leave: g.inside == 0 -> true":            "panic: gate: nobody is inside",
		"Gate.Leave: g.inside == 0 -> false":           "",
		"Gate.Leave: g.inside > 0 -> true":             "",
		"Gate.Leave: g.inside > 0 -> false":            "leave",
		"Gate.Drain: g.inside == 0 -> true":            "drain",
		"Gate.Drain: g.inside == 0 -> false":           "panic: gate: nobody is inside",
		"Gate.Depth: k >= g.inside -> true":            "depth",
		"Gate.Depth: k >= g.inside -> false":           "crash: runtime: goroutine stack exceeds 67108864-byte limit",
		"Enter does not count":                         "tickets",
		"Leave forgets nobody":                         "leave",
		"Drain counts double":                          "", // no check asks how many
		"Drain counts double and Leave forgets":        "leave",
		"Drain forgets to leave":                       "endless: not done after 3s",
	}
	for _, r := range results {
		fault, known := want[r.name]
		if !known {
			t.Errorf("unexpected mutant %q", r.name)
		} else if r.fault != fault {
			t.Errorf("%s: caught by %q, want %q", r.name, r.fault, fault)
		}
		delete(want, r.name)
	}
	for name := range want {
		t.Errorf("no mutant %q", name)
	}
}

// What a survivor needs, and what an argument needs.
func TestJudge(t *testing.T) {
	results := []result{{"a", "exclusion"}, {"b", ""}, {"c", ""}, {"d", ""}}
	got := judge(results, map[string]string{"a": "was needed once", "b": "harmless", "c": " ", "e": "gone"},
		[]string{"exclusion", "deadlock"})
	want := []string{`survives: "c"`, `survives: "d"`, `lists "a"`, `lists "e"`, `caught by "deadlock"`}
	if len(got) != len(want) {
		t.Fatalf("got %q", got)
	}
	for i, w := range want {
		if !strings.Contains(got[i], w) {
			t.Errorf("got %q, want it to contain %q", got[i], w)
		}
	}
}

// A run of mutants that cannot mean anything is an error.
func TestErrors(t *testing.T) {
	with := func(change func(c *Config)) Config {
		c := gate
		c.Replace = slices.Clone(c.Replace[:1])
		change(&c)
		return c
	}
	for _, test := range []struct {
		name   string
		config Config
		want   string
	}{
		{"BrokenCheck", gate, "no such model"},
		{"RedHerring", gate, "the checks fail on the algorithm as written: exclusion, 3 steps"},
		{"Silent", gate, "without an outcome"},
		{"no such text", with(func(c *Config) { c.Replace[0].Old = "g.count++" }), "stands 0 times"},
		{"ambiguous text", with(func(c *Config) { c.Replace[0].Old = "g.inside" }), "times in the package, want once"},
		{"text of two functions", with(func(c *Config) {
			c.Replace[0].Old = "return *g == h }\n\n// Split is outside.\nfunc (g *Gate) Split() {"
		}), "not inside one function"},
		{"does not compile", with(func(c *Config) { c.Replace[0].New = "g.count++; return true" }), "g.count undefined"},
		{"unknown function", with(func(c *Config) { c.Outside = map[string]string{"Gate.Samee": ""} }), `"Gate.Samee"`},
		{"no package", Config{Dir: "testdata"}, "nothing to mutate"},
	} {
		t.Run(test.name, func(t *testing.T) {
			// A process of its own runs the test of this name.
			_, err := test.config.run("Test"+test.name, t.TempDir())
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
}
