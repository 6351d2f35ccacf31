package classics

import (
	"slices"
	"strings"
	"testing"

	"github.com/poundlock/poundlock/lab"
	"github.com/poundlock/poundlock/lab/labtest"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/catalog"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/scenario"
)

// only leaves the rows of some forms in the matrix.
func only(e lab.Experiment, forms ...string) lab.Experiment {
	plan := e.Plan
	e.Plan = func(s lab.Scale) lab.Plan {
		p := plan(s)
		p.Configurations = slices.DeleteFunc(p.Configurations, func(c lab.Configuration) bool {
			return !slices.Contains(forms, c.Labels[0]+" "+c.Labels[1])
		})
		return p
	}
	return e
}

// rowsOf are the rows of the first table, as text by the names of columns.
func rowsOf(r lab.Report) (rows []map[string]any) {
	for _, row := range r.Tables[0].Rows {
		fields := map[string]any{}
		for i, c := range r.Tables[0].Columns {
			fields[c.Name] = row[i]
		}
		rows = append(rows, fields)
	}
	return rows
}

// Each kind of row: what is claimed and holds, what is claimed and does not, what is
// violated as everybody says, by a run that ends and by one that does not.
func TestProperties(t *testing.T) {
	r, err := lab.Run(t.Context(), only(Properties, "centralised ", "maekawa-basic ", "ricart-agrawala printed", "token-ring bidirectional"),
		lab.Options{Scale: lab.Quick})
	if err != nil {
		t.Fatal(err)
	}
	labtest.Documented(t, Properties, r.Tables[0])
	var got []string
	for _, row := range rowsOf(r) {
		line := strings.Join([]string{
			row["algorithm"].(string), row["variant"].(string), row["property"].(string),
			row["claimed"].(string), row["verdict"].(string), string(row["comparison"].(lab.Verdict)),
		}, ",")
		got = append(got, line)
		file, _ := row["counterexample"].(string)
		text, found := r.Attached[strings.TrimPrefix(file, "classics-properties/")]
		switch violated := row["verdict"] == "violated"; {
		case violated != found:
			t.Errorf("%s: counterexample %q", line, file)
		case violated:
			replayed(t, line, text, row["steps"].(int))
		}
		if !strings.Contains(row["bounds"].(string), "n=3, ") || row["states"].(int) == 0 {
			t.Errorf("%s: bounds %q, states %v", line, row["bounds"], row["states"])
		}
	}
	want := []string{
		"centralised,,exclusion,holds,holds,as claimed",
		"centralised,,no deadlock,holds,holds,as claimed",
		"centralised,,no starvation,holds,holds,as claimed",
		"centralised,,order,violated,holds,violation not found",
		"maekawa-basic,,exclusion,holds,holds,as claimed",
		"maekawa-basic,,no deadlock,violated,violated,violated as expected",
		"maekawa-basic,,no starvation,violated,violated,violated as expected",
		"maekawa-basic,,order,violated,violated,violated as expected",
		"ricart-agrawala,printed,exclusion,holds,holds,as claimed",
		"ricart-agrawala,printed,no deadlock,holds,holds,as claimed",
		"ricart-agrawala,printed,no starvation,holds,holds,as claimed",
		"ricart-agrawala,printed,order,holds,violated,refuted",
		"token-ring,bidirectional,exclusion,holds,holds,as claimed",
		"token-ring,bidirectional,no deadlock,holds,holds,as claimed",
		"token-ring,bidirectional,no starvation,violated,violated,violated as expected",
		"token-ring,bidirectional,order,violated,holds,violation not found",
	}
	if !slices.Equal(got, want) {
		t.Errorf("decided\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if r.Differs() != 0 {
		t.Errorf("verdicts: %s", r.Summary())
	}
}

// Order where memory is shared: Dijkstra's starves one while others enter again and again.
// Where progress is lost that says nothing.
func TestSharedOrder(t *testing.T) {
	r, err := lab.Run(t.Context(), only(Properties, "dijkstra "), lab.Options{Scale: lab.Quick})
	if err != nil {
		t.Fatal(err)
	}
	var under []string
	for _, row := range rowsOf(r) {
		if row["property"] != order {
			continue
		}
		under = append(under, row["under"].(string))
		file, _ := row["counterexample"].(string)
		text := r.Attached[strings.TrimPrefix(file, "classics-properties/")]
		if _, loop, _ := strings.Cut(text, "\nloop\n"); !strings.Contains(loop, "\nexit ") || row["note"] == "" {
			t.Errorf("nobody overtakes in the loop, or no note says so: %v\n%s", row, text)
		}
	}
	if !slices.Equal(under, []string{atomic}) {
		t.Errorf("order is decided under %q, want %q only", under, atomic)
	}
	m := models(catalog.Find("dijkstra", ""))[1]
	m.config.N, m.config.Entries, m.config.Properties = 2, usual.more, overtaken
	if _, err := m.decide(t.Context(), order); err == nil {
		t.Error("a loop without any entry passes for a violation of order")
	}
}

// The deadlock of the slides: three processes, of whom each has its own vote and waits for
// that of the next, as short as it can be.
func TestSlidesDeadlock(t *testing.T) {
	m, _ := models(catalog.Find("maekawa-basic", ""))[0].bounded(noDeadlock, lab.Quick)
	s, err := m.decide(t.Context(), noDeadlock)
	if err != nil {
		t.Fatal(err)
	}
	text := s.Files["maekawa-basic-no-deadlock.txt"]
	tries := strings.Count(text, "\ntry p")
	if s.Values["steps"] != 6 || tries != 3 || !strings.Contains(s.Texts["reason"], "deadlock") {
		t.Errorf("%s in %g steps, with %d tries:\n%s", s.Texts["reason"], s.Values["steps"], tries, text)
	}
	for i, next := range []string{"p1 p2", "p2 p3", "p3 p1"} {
		if !strings.Contains(text, "\ndeliver "+next) {
			t.Errorf("no request of p%d waits at the next one:\n%s", i+1, text)
		}
	}
}

// replayed fails unless the steps of a file are those of a run that the checker can take.
func replayed(t *testing.T, what, text string, steps int) {
	t.Helper()
	words := scenario.Command(text)
	if len(words) == 0 || words[0] != "check" {
		t.Errorf("%s: its file does not say what it is a run of:\n%s", what, text)
		return
	}
	list, err := scenario.Names{Members: members}.Parse(strings.NewReader(text))
	if err != nil {
		t.Errorf("%s: %v", what, err)
	}
	list = slices.DeleteFunc(list, func(s scenario.Step) bool { return s.Verb == scenario.Loop })
	if len(list) != steps {
		t.Errorf("%s: %d steps in the file, want %d", what, len(list), steps)
	}
}

// proud is a form that takes back nothing of what it claims.
type proud struct{ catalog.Entry }

func (p proud) Info() protocol.Info {
	i := p.Entry.Info()
	i.Lacks, i.Refuted = nil, nil
	return i
}

// A property that an algorithm claims and has not differs.
func TestPropertiesDiffer(t *testing.T) {
	m, ok := models(proud{catalog.Find("token-ring", "bidirectional")})[0].bounded(noStarvation, lab.Quick)
	if !ok {
		t.Fatal("starvation is no question")
	}
	s, err := m.decide(t.Context(), noStarvation)
	if err != nil {
		t.Fatal(err)
	}
	if got := check.Result(s.Texts["verdict"]); got != check.Violated || compare(got, known(m.entry.Info(), "", noStarvation), "") != lab.Differs {
		t.Errorf("%s is not said to differ", got)
	}
}

func TestCompare(t *testing.T) {
	const holds, violated = check.Holds, check.Violated
	for _, test := range []struct {
		found, known, claimed check.Result
		want                  lab.Verdict
	}{
		{holds, holds, holds, lab.AsClaimed},
		{holds, holds, "", lab.AsClaimed},
		{holds, "", "", ""},
		{holds, "", violated, lab.NotFound},
		{violated, "", "", ""},
		{violated, "", violated, lab.Violated},
		{violated, "", holds, lab.Refuted},
		{violated, violated, violated, lab.Violated},
		{violated, violated, holds, lab.Refuted},
		{violated, holds, holds, lab.Differs},
		{violated, holds, violated, lab.Differs},
		{holds, violated, violated, lab.NotFound},
		{check.Undecided, holds, holds, lab.Undecided},
	} {
		if got := compare(test.found, test.known, test.claimed); got != test.want {
			t.Errorf("%q where %q is known and %q claimed: %q, want %q", test.found, test.known, test.claimed, got, test.want)
		}
	}
}
