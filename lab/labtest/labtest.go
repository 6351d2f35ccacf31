// Package labtest has what the tests of all experiments need: that the documents describe what they write, and that what is
// committed is what comes out.
package labtest

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/poundlock/poundlock/lab"
)

// Figures is where the committed results lie, and page describes them: seen from the packages of experiments.
const (
	Figures = "../../docs/figures"
	page    = "../../docs/experiments.md"
)

// Section is what docs/experiments.md says of an experiment.
func Section(t *testing.T, e lab.Experiment) string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "\n## "+e.Name+"\n")
	if !found {
		t.Fatalf("docs/experiments.md has no section %q", e.Name)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	return section
}

// Documented fails unless the section of an experiment describes each column of its tables.
func Documented(t *testing.T, e lab.Experiment, tables ...lab.Table) {
	t.Helper()
	section := Section(t, e)
	for _, table := range tables {
		for _, c := range table.Columns {
			if !strings.Contains(section, "`"+c.Name+"`") {
				t.Errorf("docs/experiments.md does not describe the column %q of %s", c.Name, table.Name)
			}
		}
	}
}

// Stale lists the committed files that differ from those of a report.
func Stale(t *testing.T, r lab.Report) (names []string) {
	t.Helper()
	out := t.TempDir()
	if err := r.Write(out); err != nil {
		t.Fatal(err)
	}
	for _, name := range r.Files {
		want, err := os.ReadFile(filepath.Join(out, name))
		if err != nil {
			t.Fatal(err)
		}
		if have, err := os.ReadFile(filepath.Join(Figures, name)); err != nil || !bytes.Equal(have, want) {
			names = append(names, name)
		}
	}
	return names
}

// Recomputed is the report that the replications in a directory give.
func Recomputed(t *testing.T, e lab.Experiment, dir string) lab.Report {
	t.Helper()
	r, err := lab.Recompute(t.Context(), e, dir)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
