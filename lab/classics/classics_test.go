package classics

import (
	"os"
	"strings"
	"testing"

	"github.com/poundlock/poundlock/lab"
)

// documented fails unless docs/experiments.md describes each column of a table, in the
// section of its experiment.
func documented(t *testing.T, experiment string, table lab.Table) {
	t.Helper()
	page, err := os.ReadFile("../../docs/experiments.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## "+experiment+"\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for _, c := range table.Columns {
		if !strings.Contains(section, "`"+c.Name+"`") {
			t.Errorf("docs/experiments.md does not describe the column %q of %s", c.Name, experiment)
		}
	}
}
