package mutant

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/poundlock/poundlock/internal/lane"
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

// mutants runs those of c by means of the test called test.
func mutants(t *testing.T, c Config, test string) ([]result, error) {
	s, err := mutate(c)
	if err != nil {
		return nil, err
	}
	return c.run(s, test, t.TempDir())
}

func TestGate(t *testing.T) {
	lane.CI.Need(t, "this breaks a package in all ways")
	results, err := mutants(t, gate, t.Name())
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

// A share of the mutants is always the same one, and a table has the order of the checks.
func TestShare(t *testing.T) {
	lane.CI.Need(t, "this breaks a package in all ways")
	c := gate
	c.Replace = c.Replace[:3] // except those without end
	c.Outside = map[string]string{"Gate.Same": "", "Sign": "", "Gate.Depth": "one has no end"}
	c.Survivors = map[string]string{"Drain counts double": "no check asks how many"}
	*tables = t.TempDir()
	defer func() { *tables = "" }()
	results, err := mutants(t, c, "TestGate")
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(results, func(r result) bool { return r.name == "Gate.Drain: g.inside == 0 -> true" })
	if got := rowOf(results[i]); got.check != 2 || got.property != "drain" || got.by != "test" {
		t.Errorf("row %+v, want property drain by check 2", got)
	}
	*tables = ""

	c.Share = 3
	some, err := mutants(t, c, "TestGate")
	if err != nil {
		t.Fatal(err)
	}
	if len(some) == 0 || len(some) > len(results)/2 {
		t.Errorf("a third of %d mutants: %d of them", len(results), len(some))
	}
	for i, r := range results {
		if got, want := c.passes(i, r.name), r.name == "Drain counts double" || i%3 > 0; got != want {
			t.Errorf("mutant %d, %s, is left out: %v, want %v", i, r.name, got, want)
		}
		*only = r.name
		if c.passes(i, r.name) {
			t.Errorf("mutant %d, %s, is left out, and was asked for", i, r.name)
		}
		*only = ""
	}
}

// The checks come in the order that is asked for, until one finds a fault; that it ran out of
// memory counts only where no other says more.
func TestReport(t *testing.T) {
	var asked []int
	check := func(k int, fault string) Check {
		return func() (string, error) { asked = append(asked, k); return fault, nil }
	}
	for _, c := range []struct {
		order []int
		want  string
	}{
		{[]int{1, 2, 3, 4}, "[1 2] 2"}, {[]int{3, 1, 2, 4}, "[3] 3"}, {[]int{4, 5, 1}, "[4 5 1] 5"}, {nil, "[1 2] 2"},
	} {
		asked = nil
		var b strings.Builder
		report(&b, []Check{check(1, ""), check(2, "x"), check(3, "y"), check(4, ""), check(5, undecided+" by check")}, c.order)
		_, line, _ := strings.Cut(b.String(), outcomeMark)
		var o outcome
		if err := json.Unmarshal([]byte(line), &o); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%v %d", asked, o.Check); got != c.want || o.Err != "" {
			t.Errorf("order %v: asked and caught by %s, want %s; %s", c.order, got, c.want, o.Err)
		}
	}
}

// The cheap checks come first, until others prove to catch more for their time.
func TestOdds(t *testing.T) {
	o := newOdds([]time.Duration{time.Second, 10 * time.Millisecond, 0})
	if got := fmt.Sprint(o.order("f: a")); got != "[3 2 1]" {
		t.Errorf("at first %s", got)
	}
	for range 40 {
		o.note("f: a", 2)
		o.note("f: b", 0)
	}
	if got := fmt.Sprint(o.order("f: c"), o.order("g: d")); got != "[2 3 1] [2 3 1]" {
		t.Errorf("after forty of the second %s", got)
	}
	for range 1000 {
		o.note("g: d", 1)
	}
	if got := fmt.Sprint(o.order("f: c"), o.order("g: e")); got != "[2 3 1] [1 3 2]" {
		t.Errorf("after a thousand of the first in another function %s", got)
	}
}

func TestRowOf(t *testing.T) {
	for fault, want := range map[string]row{
		"exclusion by check, 10 steps":               {property: "exclusion", by: "check", length: "10"},
		"model by check, 2 steps: panic: a, 3 steps": {property: "model", by: "check", length: "2"},
		"order by hunt, 13 steps, run 7":             {property: "order", by: "hunt", length: "13"},
		"undecided by check, after 70 states":        {property: "undecided", by: "check", length: "-"},
		Simulated("30ms exclusion: c1 entered"):      {property: "exclusion", by: "simulation", length: "-"},
		"claim by story, 7 steps by hand":            {property: "claim", by: "story", length: "-"},
		"endless: not done after 3s":                 {property: "endless", by: "process", length: "-"},
		"panic: integer divide by zero":              {property: "panic", by: "process", length: "-"},
		"tickets":                                    {property: "tickets", by: "test", length: "-"},
	} {
		if got := rowOf(result{fault: fault}); got != want {
			t.Errorf("%q: %+v, want %+v", fault, got, want)
		}
	}
}

// What a survivor needs, and what an argument needs.
func TestJudge(t *testing.T) {
	results := []result{{name: "a", fault: "exclusion by check, 3 steps"}, {name: "b"}, {name: "c"}, {name: "d"}}
	got := judge(results, map[string]string{"a": "was needed once", "b": "harmless"},
		[]string{"exclusion", "deadlock"})
	want := []string{`lists "a"`, `survives: "c"`, `survives: "d"`, `caught by "deadlock"`}
	if len(got) != len(want) {
		t.Fatalf("got %q", got)
	}
	for i, w := range want {
		if !strings.Contains(got[i], w) {
			t.Errorf("got %q, want it to contain %q", got[i], w)
		}
	}
}

// What the page says, and that an argument is about a mutant that exists, is known without any run.
func TestRecorded(t *testing.T) {
	got := recorded(t.Name(), []string{"a", "b"}, map[string]string{"b": " ", "c": "gone"})
	want := []string{`lists "b" without`, `lists "c", which does not exist`, "| `algo/algotest/mutant` TestRecorded | 2 | 2 |"}
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
	lane.CI.Need(t, "this builds packages that are broken")
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
		{"two of one function", with(func(c *Config) {
			c.Replace = append(c.Replace, Edit("Enter does not count", "g.most", "1"))
		}), `"Enter does not count": two replacements in one function, of which only one would live: "g.inside++`},
		{"one of a function within the other's", with(func(c *Config) {
			c.Replace = []Replacement{
				Edit("Split", "g.inside /= 2", ""),
				Edit("Split", "\thalve()", ""),
			}
		}), `of which only one would live: "g.inside /= 2" and "\thalve()"`},
		{"does not compile", with(func(c *Config) { c.Replace[0].New = "g.count++; return true" }), "g.count undefined"},
		{"unknown function", with(func(c *Config) { c.Outside = map[string]string{"Gate.Samee": ""} }), `"Gate.Samee"`},
		{"no package", Config{Dir: "testdata"}, "nothing to mutate"},
	} {
		t.Run(test.name, func(t *testing.T) {
			// A process of its own runs the test of this name.
			_, err := mutants(t, test.config, "Test"+test.name)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
}
