package mutant

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
)

// A row is what a table says about one mutant.
type row struct {
	name     string
	property string // that fell, "" if the mutant survives
	by       string // what found that
	length   string // of the shortest trace, "-" where it was not found by a search
	check    int    // that caught it, from 1
}

// ownFaults are what happens to the process of a mutant.
var ownFaults = []string{"panic", "crash", "endless"}

// rowOf takes a fault apart: PROPERTY by MEANS, DETAIL. Other texts are those of a
// test of the package itself, and of what happens to its process.
func rowOf(r result) row {
	w := row{name: r.name, length: "-", check: r.check}
	property, rest, found := strings.Cut(r.fault, " by ")
	first := r.fault[:strings.IndexAny(r.fault+",", ",:")]
	switch {
	case slices.Contains(ownFaults, first): // whatever its text says
		w.property, w.by = first, "process"
		return w
	case !found:
		w.property, w.by = first, "test"
		return w
	}
	w.property = property
	var detail string
	w.by, detail, _ = strings.Cut(rest, ", ")
	if steps, _, ok := strings.Cut(detail, " steps"); ok && (w.by == "check" || w.by == "hunt" || w.by == "replay") {
		if n, err := strconv.Atoi(steps); err == nil {
			w.length = strconv.Itoa(n)
		}
	}
	return w
}

const survives = "SURVIVES"

// summary is one line that counts how mutants were caught.
func summary(results []result) string {
	by, caught := map[string]int{}, 0
	for _, r := range results {
		if r.fault != "" {
			by[rowOf(r).by]++
			caught++
		}
	}
	var parts []string
	for _, means := range slices.SortedFunc(maps.Keys(by), func(a, b string) int {
		return cmp.Or(cmp.Compare(by[b], by[a]), cmp.Compare(a, b))
	}) {
		parts = append(parts, fmt.Sprintf("%s %d", means, by[means]))
	}
	how := ""
	if len(parts) > 0 {
		how = " (" + strings.Join(parts, ", ") + ")"
	}
	return fmt.Sprintf("%d mutants: %d caught%s, %d survive", len(results), caught, how, len(results)-caught)
}

// table shows each mutant with the property that fell, what found that, the length
// of the shortest trace, and the number of the check; with full also what else the
// check told.
func table(results []result, full bool) string {
	head := row{name: "variant", property: "property", by: "found by", length: "steps"}
	rows := []row{head}
	for _, r := range results {
		w := rowOf(r)
		if r.fault == "" {
			w = row{name: r.name, property: survives, by: "-", length: "-"}
		}
		rows = append(rows, w)
	}
	var name, property, by int
	for _, w := range rows {
		name, property, by = max(name, len(w.name)), max(property, len(w.property)), max(by, len(w.by))
	}
	var b strings.Builder
	b.WriteString(summary(results) + "\n\n")
	for i, w := range rows {
		check := "check"
		if i > 0 {
			check = "#" + strconv.Itoa(w.check)
		}
		fmt.Fprintf(&b, "%-*s  %-*s  %-*s  %5s  %s", name, w.name, property, w.property, by, w.by, w.length, check)
		if full && i > 0 && results[i-1].fault != "" {
			b.WriteString("  " + results[i-1].fault)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// readTable reads what table wrote. A file that is missing is an empty one.
func readTable(path string) (map[string]row, error) {
	text, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("mutant: %w", err)
	}
	rows := map[string]row{}
	lines := strings.Split(string(text), "\n")
	for _, line := range lines[min(3, len(lines)):] {
		words := columns(line)
		if len(words) == 0 {
			continue
		}
		if len(words) != 5 || !strings.HasPrefix(words[4], "#") {
			return nil, fmt.Errorf("mutant: %s: %q has %d columns, want 5", path, line, len(words))
		}
		w := row{name: words[0], property: words[1], by: words[2], length: words[3]}
		if w.check, err = strconv.Atoi(words[4][1:]); err != nil {
			return nil, fmt.Errorf("mutant: %s: %q: %w", path, line, err)
		}
		rows[w.name] = w
	}
	return rows, nil
}

// columns splits a line where there are at least two spaces.
func columns(line string) (words []string) {
	for _, word := range strings.Split(line, "  ") {
		if word = strings.TrimSpace(word); word != "" {
			words = append(words, word)
		}
	}
	return words
}

// among are the rows of those mutants that have a result.
func among(known map[string]row, results []result) map[string]row {
	rows := map[string]row{}
	for _, r := range results {
		if w, ok := known[r.name]; ok {
			rows[r.name] = w
		}
	}
	return rows
}

// compare says where the table of a file is no longer right. How long a search is
// cut off, or a process is waited for, is not in it.
func compare(results []result, known map[string]row) (complaints []string) {
	seen := map[string]bool{}
	for _, r := range results {
		w := rowOf(r)
		if r.fault == "" {
			w = row{name: r.name, property: survives, by: "-", length: "-"}
		}
		seen[r.name] = true
		if known[r.name] != w {
			complaints = append(complaints, fmt.Sprintf("the table says of %q %+v, found now: %+v (%s); read the difference of "+
				"go test -run TestMutants -mutant-table before you commit it", r.name, known[r.name], w, r.fault))
		}
	}
	for name := range known {
		if !seen[name] {
			complaints = append(complaints, fmt.Sprintf("the table knows %q, which does not exist", name))
		}
	}
	slices.Sort(complaints)
	return complaints
}
