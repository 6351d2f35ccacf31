package mutant

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/poundlock/poundlock/internal/lane"
)

// Every row of docs/verification.md is that of a test, which holds it true, and every test of
// mutants has one.
func TestDocs(t *testing.T) {
	root, err := lane.Root()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	var rows, tests []string
	for _, m := range regexp.MustCompile("\\| `([^`]+)` (Test\\w+) \\| \\d+ \\| \\d+ \\|").FindAllStringSubmatch(string(text), -1) {
		rows = append(rows, m[1]+" "+m[2])
	}
	begins := regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)|\tmutant\.Test\(t`)
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == "testdata":
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		name := ""
		for _, m := range begins.FindAllStringSubmatch(string(text), -1) {
			if m[1] != "" {
				name = m[1]
			} else {
				tests = append(tests, filepath.ToSlash(dir)+" "+name)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(rows)
	slices.Sort(tests)
	if len(tests) == 0 || !slices.Equal(rows, slices.Compact(tests)) {
		t.Errorf("%s has the rows\n%s\nand there are the tests\n%s", page, strings.Join(rows, "\n"), strings.Join(tests, "\n"))
	}
}
