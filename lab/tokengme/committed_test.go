package tokengme

import (
	"bytes"
	"encoding/csv"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/poundlock/poundlock/internal/lane"
	"github.com/poundlock/poundlock/lab"
)

// figuresDir has the results that are committed.
const figuresDir = "../../docs/figures"

// replicationsOf is the file of an experiment's replications, relative to its directory.
func replicationsOf(e lab.Experiment) string {
	return strings.ReplaceAll(e.Name, "/", "-") + "-replications.csv"
}

// stale lists the files of a committed report that do not follow from its replications.
func stale(t *testing.T, e lab.Experiment, dir string) (names []string) {
	t.Helper()
	r, err := lab.Recompute(t.Context(), e, dir)
	if err != nil {
		t.Fatal(err)
	}
	out := t.TempDir()
	if err := r.Write(out); err != nil {
		t.Fatal(err)
	}
	for _, name := range r.Files {
		want, err := os.ReadFile(filepath.Join(out, name))
		if err != nil {
			t.Fatal(err)
		}
		if have, err := os.ReadFile(filepath.Join(figuresDir, name)); err != nil || !bytes.Equal(have, want) {
			names = append(names, name)
		}
	}
	return names
}

// Every committed table and figure follows from the committed replications, byte for byte, and
// docs/experiments.md says what they count.
func TestCommitted(t *testing.T) {
	for _, e := range []lab.Experiment{All, Selection} {
		if names := stale(t, e, figuresDir); names != nil {
			t.Errorf("%v do not follow from the replications: poundlock-lab lab report %s --from docs/figures --out docs/figures",
				names, e.Name)
		}
	}
	page := section(t, All)
	r, err := lab.Recompute(t.Context(), All, figuresDir)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(page, r.Summary()) {
		t.Errorf("docs/experiments.md does not say %q", r.Summary())
	}
	r, err = lab.Recompute(t.Context(), Selection, figuresDir)
	if err != nil {
		t.Fatal(err)
	}
	page = section(t, Selection)
	for _, note := range r.Notes {
		if !strings.Contains(page, note) {
			t.Errorf("docs/experiments.md does not say %q", note)
		}
	}

	// One replication that gave something else shows.
	dir := t.TempDir()
	for _, name := range []string{"tokengme-all.json", replicationsOf(All)} {
		text, err := os.ReadFile(filepath.Join(figuresDir, name))
		if err != nil {
			t.Fatal(err)
		}
		spoilt := bytes.Replace(text, []byte("fig7b,TokenGME,90,5,"), []byte("fig7b,TokenGME,90,5,1"), 1)
		if err := os.WriteFile(filepath.Join(dir, name), spoilt, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	names := stale(t, All, dir)
	if !slices.Contains(names, "tokengme-all.csv") || !slices.Contains(names, "tokengme-all-fig7b.svg") {
		t.Errorf("a replication with other messages changes only %v", names)
	}
}

// Committed replications are what simulations give: of those that are cheap the first one of each
// configuration and point. TEST_LANE=long repeats more.
func TestCommittedTrials(t *testing.T) {
	most := 150 * time.Millisecond
	if lane.Long.Runs() {
		most = 2500 * time.Millisecond
	} else {
		t.Log("SHORTENED: TEST_LANE=long repeats larger simulations")
	}
	for e, s := range map[*lab.Experiment]lab.Scale{&All: lab.Full, &Selection: lab.Default} {
		file, err := os.Open(filepath.Join(figuresDir, replicationsOf(*e)))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		rows, err := csv.NewReader(file).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		first := map[string][]string{}
		for _, row := range rows {
			if row[3] == "1" {
				first[strings.Join(row[:3], "/")] = row[4:]
			}
		}
		repeated := 0
		for _, c := range e.Plan(s).Configurations {
			for _, x := range c.Points {
				if c.Cost(x) > most {
					continue
				}
				sample, err := c.Try(t.Context(), x, 1)
				if err != nil {
					t.Fatal(err)
				}
				repeated++
				name := strings.Join(c.Labels, "/") + "/" + strconv.Itoa(x)
				if have := first[name]; !slices.Equal(have, written(sample)) {
					t.Errorf("%s of %s, seed 1: the table has %v, and a simulation gives %v", name, e.Name, have, written(sample))
				}
				if repeated > 1 {
					continue
				}
				other, err := c.Try(t.Context(), x, 2)
				if err != nil {
					t.Fatal(err)
				}
				if slices.Equal(first[name], written(other)) {
					t.Errorf("%s: another seed gives the same", name)
				}
			}
		}
		if repeated < 10 {
			t.Errorf("%s: %d replications are repeated, want 10 at least", e.Name, repeated)
		}
		t.Logf("%s: %d replications are the same", e.Name, repeated)
	}
}

// written are the values of a sample as the table has them.
func written(s lab.Sample) (cells []string) {
	for _, m := range measures {
		cells = append(cells, strconv.FormatFloat(s.Values[m.Name], 'g', -1, 64))
	}
	return cells
}

// section is that of an experiment in docs/experiments.md.
func section(t *testing.T, e lab.Experiment) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/experiments.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "\n## "+e.Name+"\n")
	text, _, _ = strings.Cut(text, "\n## ")
	return text
}
