package lab

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// kept is a toy whose report has its replications.
func kept(y *toy) Experiment {
	e := y.experiment()
	plan := e.Plan
	e.Plan = func(s Scale) Plan {
		p := plan(s)
		p.Report = func(r *Results) Report {
			return Report{Tables: []Table{r.Compare("all", "All"), r.Replications()}}
		}
		return p
	}
	return e
}

// A report that is made from replications is that of the run, and has made no trial. What is not
// the table of this experiment is refused, and a number that was changed changes the report.
func TestRecompute(t *testing.T) {
	dir := t.TempDir()
	y := &toy{}
	r, err := Run(t.Context(), kept(y), Options{Scale: Quick})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Write(dir); err != nil {
		t.Fatal(err)
	}
	tried := y.tried.Load()
	files, err := r.contents()
	if err != nil {
		t.Fatal(err)
	}
	same := func() bool {
		t.Helper()
		again, err := Recompute(t.Context(), kept(y), dir)
		if err != nil {
			t.Fatal(err)
		}
		texts, err := again.contents()
		if err != nil {
			t.Fatal(err)
		}
		for name, text := range files {
			if string(texts[name]) != string(text) {
				return false
			}
		}
		return again.Scale == Quick && len(texts) == len(files)
	}
	if !same() {
		t.Error("from replications there is another report")
	}
	if made := y.tried.Load() - tried; made != 0 {
		t.Errorf("%d trials were made", made)
	}

	table := filepath.Join(dir, "toys-dice-replications.csv")
	text := string(files["toys-dice-replications.csv"])
	put := func(text string) {
		t.Helper()
		if err := os.WriteFile(table, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	lines := strings.SplitAfter(text, "\n")
	if lines[1] != "two,sums,2,1,2,2,1,\n" {
		t.Fatalf("the first row is %q", lines[1])
	}
	put(strings.Replace(text, lines[1], "two,sums,2,1,2,3,1,\n", 1))
	if same() {
		t.Error("a sum that was changed does not show")
	}
	for want, spoilt := range map[string]string{
		"sides=2, seed 1: the table of replications has it not": strings.Replace(text, lines[1], "", 1),
		"is there twice":         text + lines[1],
		"has 33 replications":    text + "two,sums,2,9,2,4,2,\n",
		"row 33: ":               text + "two,sums,two,9,2,4,2,\n",
		"row 33: strconv":        text + "two,sums,2,9,2,4,many,\n",
		"want a table with the ": strings.Replace(text, "sides", "faces", 1),
	} {
		put(spoilt)
		if _, err := Recompute(t.Context(), kept(y), dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "toys-dice.json"), []byte(`{"scale": "huge"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err = Recompute(t.Context(), kept(y), dir)
	if err == nil || !strings.Contains(err.Error(), "toys-dice.json has no scale") {
		t.Errorf("error %v, want that there is no such scale", err)
	}
}
