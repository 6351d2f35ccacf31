package catalog_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/poundlock/poundlock/verify/catalog"
)

// The README lists the algorithms; it must not fall behind.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	const head = "| algorithm | variant | what | source |\n|---|---|---|---|\n"
	before, rest, found := strings.Cut(string(text), head)
	if !found {
		t.Fatalf("README.md has no table that begins with\n%s", head)
	}
	got, after, _ := strings.Cut(rest, "\n\n")
	var want []string
	for _, e := range catalog.All {
		i := e.Info()
		want = append(want, fmt.Sprintf("| `%s` | %s | %s | %s |", i.Name, i.Variant, i.Title, i.Source))
	}
	w := strings.Join(want, "\n")
	if *write {
		got = w
		if err := os.WriteFile("../../README.md", []byte(before+head+w+"\n\n"+after), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got != w {
		t.Errorf("the table of algorithms in README.md should be\n%s%s\n\ngo test ./verify/catalog -write", head, w)
	}
}
