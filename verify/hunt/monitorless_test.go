package hunt_test

import (
	"strings"
	"testing"

	"github.com/poundlock/poundlock/algo/algotest/mutant"
	"github.com/poundlock/poundlock/internal/lane"
	"github.com/poundlock/poundlock/verify/hunt"
)

// A hunt without one of its monitors misses what this one sees.
func TestWithoutMonitor(t *testing.T) {
	timed := func(property string) mutant.Replacement {
		const judged = "if r.ViolationsOf[w] == 0 {"
		return mutant.Edit(property+", in time", judged, strings.Replace(judged, " {", " || w == "+property+" {", 1))
	}
	mutant.Test(t, mutant.Config{
		Lane: lane.Long,
		Checks: []mutant.Check{func() (string, error) {
			wrong, err := hunt.Unseen()
			return strings.Join(wrong, "; "), err
		}},
		Inside: []string{"newSimulators"}, // it has no guard: only what is named is broken
		Replace: []mutant.Replacement{
			mutant.Edit("exclusion", "m.Report(check.Exclusion, text)", "_ = text"),
			mutant.Edit("deadlock", "w.Report(check.Deadlock,", "func(string, string) {}(check.Deadlock,"),
			mutant.Edit("stuck", "w.Report(Stuck, fmt.Sprintf(\"stuck: %s %s,", "func(string, string) {}(Stuck, fmt.Sprintf(\"stuck: %s %s,"),
			mutant.Edit("invariants", "\t\t\tw.judge(\"\")\n", ""),
			timed("history.Exclusion"),
			timed(`"panic"`),
			timed("history.WellFormed"),
			timed("history.Inversion"),
			timed("history.Reuse"),
			timed("Stuck"),
		},
	})
}
