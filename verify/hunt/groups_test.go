package hunt

import (
	"slices"
	"testing"

	"github.com/poundlock/poundlock/algo/algotest/toys/chamber"
	"github.com/poundlock/poundlock/algo/sigma"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
)

// The chamber is hunted with groups that are drawn: the one that is right survives, and each
// mistake is found, as the checker sees it too, by a shortest run, or nearly.
func TestChambers(t *testing.T) {
	r := mustRun(t, chamber.Algorithm(chamber.Sound), Config{Seed: 1, Runs: 200, Workers: 2})
	for _, v := range r.Violations {
		t.Errorf("run %d: %s: %s %q", v.Run, v.Property, v.Reason, v.Trace)
	}
	if r.Entries < 10*r.Runs {
		t.Errorf("%d entries in %d runs: do they do anything?", r.Entries, r.Runs)
	}
	for _, c := range []struct {
		form     chamber.Form
		property string
		steps    int // as many as the checker needs
	}{
		{chamber.IgnoresGroups, check.Exclusion, 4},
		{chamber.AloneTogether, check.Exclusion, 4},
		{chamber.Unwanted, check.WellFormed, 3},
		{chamber.OneByOne, check.ConcurrentEntry, 3},
	} {
		for _, n := range []int{0, 3} {
			v := finding(t, chamber.Algorithm(c.form), Config{Config: protocol.Config{N: n}, Seed: 1, Runs: 400, Workers: 2})
			slack := 0
			if n > 0 && c.property == check.ConcurrentEntry {
				slack = 2 // for it is somebody else's grant that is on its way
			}
			if v.Property != c.property || !v.Replayed || len(v.Trace) > c.steps+slack || v.Timed {
				t.Errorf("%s, n=%d: %s after %d steps, replayed %v: %s %q; want %s after %d", c.form, n, v.Property, len(v.Trace), v.Replayed,
					v.Reason, v.Trace, c.property, c.steps)
			}
		}
	}
}

// A hunt that goes on past what is known finds what is not.
func TestKnown(t *testing.T) {
	known := chamber.Algorithm(chamber.OneByOne)
	known.Lacks = []string{check.ConcurrentEntry}
	c := Config{Seed: 1, Runs: 100, Workers: 2, Known: true}
	if r := mustRun(t, known, c); len(r.Violations) > 0 || r.Runs != c.Runs {
		t.Errorf("%d runs, %v", r.Runs, r.Violations)
	}
	known.Lacks, known.Refuted = nil, []string{check.ConcurrentEntry}
	if r := mustRun(t, known, c); len(r.Violations) > 0 || r.Runs != c.Runs {
		t.Errorf("refuted: %d runs, %v", r.Runs, r.Violations)
	}
	for _, form := range []chamber.Form{chamber.OneByOne, chamber.IgnoresGroups} {
		news := chamber.Algorithm(form)
		if form != chamber.OneByOne {
			news.Lacks = []string{check.ConcurrentEntry}
		}
		if r := mustRun(t, news, c); len(r.Violations) == 0 {
			t.Errorf("%s: nothing in %d runs", form, r.Runs)
		}
	}
}

// What runs and simulations do with groups is what the checker's model does.
func TestGroupRunsAreTheCheckers(t *testing.T) {
	t.Run("chamber", func(t *testing.T) { retaken(t, chamber.Algorithm(chamber.Sound), 3) })
	t.Run("sigma", func(t *testing.T) {
		a := sigma.Algorithm
		a.Share(true)
		retaken(t, a, 4)
	})
}

// Timed runs come down where somebody may, and only there.
func TestTimedDowngrade(t *testing.T) {
	i, down, other := sigma.Algorithm.Info, 0, 0
	i.Share(true)
	for run := range int64(100) {
		c := Config{Seed: 1}
		p := c.draw(i, true, run, 0)
		switch may := slices.ContainsFunc(p.config.Wants, protocol.Groups.Lowers); {
		case may != (p.config.Downgrade > 0):
			t.Errorf("run %d: users want %q, and come down with probability %v", run, p.config.Wants, p.config.Downgrade)
		case may:
			down++
		case p.timed:
			other++
		}
	}
	if down < 5 || other < 5 {
		t.Errorf("%d runs with and %d without", down, other)
	}
}

// With no group that can be shared nobody has to be let in beside others.
func TestExclusiveGroups(t *testing.T) {
	r := mustRun(t, chamber.Algorithm(chamber.OneByOne), Config{Seed: 1, Runs: 50, Workers: 2, Wants: [][]protocol.Groups{{"!w"}}})
	for _, v := range r.Violations {
		t.Errorf("%s: %s %q", v.Property, v.Reason, v.Trace)
	}
}
