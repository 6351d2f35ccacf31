package mutant

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/poundlock/poundlock/internal/lane"
)

// page has a row for each test of mutants.
const page = "docs/verification.md"

// recorded compares what is known of a test before a mutant lives with the row of the page: how
// many mutants there are, and that those which are argued to survive exist.
func recorded(test string, names []string, arguments map[string]string) (complaints []string) {
	for _, name := range slices.Sorted(maps.Keys(arguments)) {
		if !slices.Contains(names, name) {
			complaints = append(complaints, fmt.Sprintf("Survivors lists %q, which does not exist: remove it", name))
		}
		if strings.TrimSpace(arguments[name]) == "" {
			complaints = append(complaints, fmt.Sprintf("Survivors lists %q without an argument", name))
		}
	}
	root, err := lane.Root()
	if err != nil {
		return append(complaints, err.Error())
	}
	text, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		return append(complaints, err.Error())
	}
	if row := fmt.Sprintf("| `%s` %s | %d | %d |\n", place(), test, len(names), len(arguments)); !strings.Contains(string(text), row) {
		complaints = append(complaints, fmt.Sprintf("%s lacks a row that ends with %s", page, row))
	}
	return complaints
}
