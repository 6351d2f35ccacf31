package algotest

import (
	"strings"
	"testing"

	"github.com/poundlock/poundlock/internal/lane"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
)

// Holds checks that a has what is asked for in each model. Those of large take long: they
// are left out, which it says, unless the long lane runs.
func Holds[M any](t *testing.T, a protocol.Algorithm[M], models, large []check.Config) {
	t.Helper()
	if lane.Long.Runs() {
		models = append(models[:len(models):len(models)], large...)
	} else {
		for _, c := range large {
			t.Logf("SHORTENED: n=%d, entries %v, %v takes long; TEST_LANE=long explores it", c.N, c.Entries, c.Faults())
		}
	}
	for _, c := range models {
		v, err := check.Run(a, c)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s in %d states, %.1f s: %s", v.Verdict, v.States, v.Seconds, v.Bounds)
		if v.Verdict != check.Holds {
			t.Errorf("%s is %s: %s\n%s", v.Property, v.Verdict, v.Reason, strings.Join(v.Trace, "\n"))
		}
	}
}
