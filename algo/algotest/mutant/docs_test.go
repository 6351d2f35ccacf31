package mutant

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// docs/verification.md has the summary of every table in the repository.
func TestDocs(t *testing.T) {
	docs, err := os.ReadFile("../../../docs/verification.md")
	if err != nil {
		t.Fatal(err)
	}
	var tables []string
	for _, dir := range []string{"../../*", "../../../wrap/registers", "../../../wrap/membership"} {
		found, err := filepath.Glob(dir + "/testdata/*mutants*.txt")
		if err != nil || len(found) == 0 {
			t.Fatalf("found the tables %q of %s, %v", found, dir, err)
		}
		tables = append(tables, found...)
	}
	for _, path := range tables {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		line, _, _ := strings.Cut(string(text), "\n")
		link := "../" + filepath.ToSlash(filepath.Join("algo/algotest/mutant", path))
		if row := "](" + link + ") | " + line + " |"; !strings.Contains(string(docs), row) {
			t.Errorf("docs/verification.md lacks a row that ends with\n%s", row)
		}
	}
}
