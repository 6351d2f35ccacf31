package mutant

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
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
	var b strings.Builder
	b.WriteString(summary(results) + "\n\n")
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "variant\tproperty\tfound by\tsteps\tcheck")
	for _, r := range results {
		m := rowOf(r)
		if r.fault == "" {
			m = row{name: r.name, property: survives, by: "-", length: "-"}
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%5s\t#%d", m.name, m.property, m.by, m.length, m.check)
		if full && r.fault != "" {
			fmt.Fprintf(w, "  %s", strings.ReplaceAll(r.fault, "\n", " "))
		}
		fmt.Fprintln(w)
	}
	w.Flush()
	return b.String()
}
