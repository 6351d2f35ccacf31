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
	"github.com/poundlock/poundlock/lab/labtest"
)

// replicationsOf is the file of an experiment's replications, relative to its directory.
func replicationsOf(e lab.Experiment) string {
	return strings.ReplaceAll(e.Name, "/", "-") + "-replications.csv"
}

// Every committed table and figure follows from the committed replications, byte for byte, and
// docs/experiments.md says what they count.
func TestCommitted(t *testing.T) {
	for _, e := range []lab.Experiment{All, Selection} {
		if names := labtest.Stale(t, labtest.Recomputed(t, e, labtest.Figures)); names != nil {
			t.Errorf("%v do not follow from the replications: poundlock-lab lab report %s --from docs/figures --out docs/figures",
				names, e.Name)
		}
	}
	all := labtest.Recomputed(t, All, labtest.Figures)
	if !strings.Contains(labtest.Section(t, All), all.Summary()) {
		t.Errorf("docs/experiments.md does not say %q", all.Summary())
	}
	for _, note := range labtest.Recomputed(t, Selection, labtest.Figures).Notes {
		if !strings.Contains(labtest.Section(t, Selection), note) {
			t.Errorf("docs/experiments.md does not say %q", note)
		}
	}

	// One replication that gave something else shows.
	dir := t.TempDir()
	for _, name := range []string{"tokengme-all.json", replicationsOf(All)} {
		text, err := os.ReadFile(filepath.Join(labtest.Figures, name))
		if err != nil {
			t.Fatal(err)
		}
		spoilt := bytes.Replace(text, []byte("fig7b,TokenGME,90,5,"), []byte("fig7b,TokenGME,90,5,1"), 1)
		if err := os.WriteFile(filepath.Join(dir, name), spoilt, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	names := labtest.Stale(t, labtest.Recomputed(t, All, dir))
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
		file, err := os.Open(filepath.Join(labtest.Figures, replicationsOf(*e)))
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
