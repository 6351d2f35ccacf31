package main

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/poundlock/poundlock/lab"
)

// docs/cli.md has every flag of lab run and report and every field of its JSON, and
// docs/experiments.md every experiment.
func TestLabDocs(t *testing.T) {
	text, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## poundlock-lab lab\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for _, c := range []*cobra.Command{labRunCommand(), labReportCommand()} {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if !strings.Contains(section, "| `--"+f.Name) {
				t.Errorf("poundlock-lab lab %s: --%s is not described", c.Name(), f.Name)
			}
		})
	}
	// Help names every verdict.
	for _, v := range []lab.Verdict{
		lab.Equal, lab.Within, lab.Differs, lab.AsClaimed, lab.Violated, lab.Refuted, lab.NotFound, lab.Undecided,
		lab.Reproduced, lab.Partly, lab.NotReproduced,
	} {
		if !strings.Contains(strings.ReplaceAll(labRunCommand().Long, "\n", " "), string(v)) {
			t.Errorf("poundlock-lab lab run --help does not name the verdict %q", v)
		}
	}
	var out bytes.Buffer
	if err := (&lab.Report{Tables: []lab.Table{{}}}).JSON(&out); err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(out.Bytes(), &fields); err != nil {
		t.Fatal(err)
	}
	for name := range fields["tables"].([]any)[0].(map[string]any) {
		fields[name] = nil
	}
	for name := range fields {
		if !strings.Contains(section, "`"+name+"`") {
			t.Errorf("poundlock-lab lab run: the JSON field %q is not described", name)
		}
	}
	page, err := os.ReadFile("../../docs/experiments.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range experiments {
		if !strings.Contains(string(page), "\n## "+e.Name+"\n") {
			t.Errorf("docs/experiments.md has no section %q", e.Name)
		}
	}
}
