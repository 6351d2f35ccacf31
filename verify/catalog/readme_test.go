package catalog_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/poundlock/poundlock/verify/catalog"
)

// The README has each algorithm in one row, that of its family.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	const head = "| family | algorithms |\n|---|---|\n"
	_, rest, found := strings.Cut(string(text), head)
	if !found {
		t.Fatalf("README.md has no table that begins with\n%s", head)
	}
	table, _, _ := strings.Cut(rest, "\n\n")
	rows := map[string]int{}
	for _, link := range regexp.MustCompile(`\[([^]]*)\]`).FindAllStringSubmatch(table, -1) {
		for name := range strings.SplitSeq(link[1], ", ") {
			rows[name]++
		}
	}
	for _, e := range catalog.All {
		if i := e.Info(); i.Variant == "" && rows[i.Name] != 1 {
			t.Errorf("README.md names %s %d times in the table of algorithms, want once", i.Name, rows[i.Name])
		}
		delete(rows, e.Info().Name)
	}
	for name := range rows {
		t.Errorf("README.md has the algorithm %q, which is not in the catalog", name)
	}
}
