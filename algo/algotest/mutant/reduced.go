package mutant

import (
	"errors"
	"fmt"
	"testing"

	"github.com/poundlock/poundlock/internal/lane"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
)

// compared is whether this process looked for a violation a second time, with reductions.
var compared bool

// reduced is again for an algorithm, where it makes claims that allow reductions.
func reduced[M any](a protocol.Algorithm[M], c check.Config) error {
	if !lane.Long.Runs() || len(c.Reduce) > 0 || c.Swarm != nil || a.Confluent == nil && a.Interchangeable == nil {
		return nil
	}
	compared = true
	return again(func(c check.Config) (check.Verdict, error) { return check.Run(a, c) }, c)
}

// again makes a search that found a violation with reductions. It returns an error when
// these hide it: when the search finds no violation, nor a claim that is false.
func again(run func(check.Config) (check.Verdict, error), c check.Config) error {
	c.Reduce = []string{check.ReduceOrder, check.ReduceSymmetry}
	v, err := run(c)
	switch {
	case errors.Is(err, check.ErrClaim) || err == nil && v.Verdict == check.Violated:
		return nil
	case err != nil:
		return err
	}
	return fmt.Errorf("reductions hide a violation: %s", v.Bounds)
}

// logReduced says how many violations were found a second time.
func logReduced(t *testing.T, results []result) {
	n := 0
	for _, r := range results {
		if r.reduced {
			n++
		}
	}
	if lane.Long.Adds(t, "each violation is looked for a second time, with reductions") {
		t.Logf("reductions keep the violations of %d mutants", n)
	}
}
