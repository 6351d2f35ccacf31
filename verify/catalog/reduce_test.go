package catalog_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/poundlock/poundlock/internal/lane"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/catalog"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/scenario"
)

// The reductions that tests compare with none.
var reductions = []struct {
	name   string
	reduce []string
}{
	{"order", []string{check.ReduceOrder}},
	{"symmetry", []string{check.ReduceSymmetry}},
	{"both", []string{check.ReduceOrder, check.ReduceSymmetry}},
}

// TestReductions compares searches with and without reductions over the catalog: the
// same verdict for each property, and never more states. The table that it logs is that
// of docs/verification.md.
func TestReductions(t *testing.T) {
	const ( // how often something takes place
		always = iota
		inFull // too long for every day
		never  // Sigma without moved counters has 28 million states with three servers, and in larger models more than fifty
	)
	type row struct {
		name, variant string
		change        func(c *check.Config)
		when, unmoved int // the row, and in it a search without moved counters
	}
	rows := []row{
		{"ricart-agrawala", "", func(c *check.Config) { c.N = 3 }, always, always},
		{"ricart-agrawala", "", func(c *check.Config) { c.N, c.Entries = 3, []int{check.Unlimited} }, always, always},
		{"ricart-agrawala", "", func(c *check.Config) { c.N = 4 }, inFull, always},
		{"ricart-agrawala", "printed", func(c *check.Config) { c.N, c.Entries = 3, []int{2, 1, 1} }, always, always},
		{"suzuki-kasami", "", func(c *check.Config) { c.N, c.Entries = 3, []int{2, 1, 1} }, always, always},
		{"suzuki-kasami", "", func(c *check.Config) { c.N, c.Entries = 4, []int{1} }, inFull, always},
		{"sigma", "literal", func(c *check.Config) { c.N, c.Cancel = 2, 1 }, always, always},
		{"sigma", "literal", func(c *check.Config) { c.N, c.Crash = 2, 1 }, always, always},
		{"sigma", "literal", func(c *check.Config) { c.N = 3 }, inFull, never},
		{"sigma", "literal", func(c *check.Config) { c.N, c.Amnesia, c.Properties = 3, 1, []string{check.Exclusion} }, inFull, never},
		{"sigma", "", func(c *check.Config) { c.N, c.Crash = 2, 1 }, always, always},
		{"sigma", "", func(c *check.Config) { c.N, c.FIFO, c.Timers = 3, true, check.NeverFire }, always, inFull},
		{"sigma", "", func(c *check.Config) { c.N, c.FIFO = 3, true }, inFull, inFull},
		{"sigma", "", func(c *check.Config) { c.N, c.Amnesia, c.Timers, c.FIFO = 2, 1, check.NeverFire, true }, always, inFull},
		{"sigma", "", func(c *check.Config) { c.N, c.Amnesia, c.Timers = 2, 1, check.NeverFire }, inFull, inFull},
		{"sigma", "", func(c *check.Config) { c.N, c.Suspect = 2, 1 }, inFull, never},
		{"sigma", "", func(c *check.Config) { c.N, c.Down = 3, []protocol.ID{2} }, inFull, never},
		{"sigma", "", func(c *check.Config) { c.N = 3 }, inFull, never},
		{"sigma", "", func(c *check.Config) { c.N, c.Amnesia, c.Properties = 3, 1, []string{check.Exclusion} }, inFull, never},
	}
	full := lane.Long.Runs()
	t.Logf("%-72s %12s %12s %8s %7s", "", "states", "transitions", "s", "factor")
	for _, r := range rows {
		if r.when == inFull && !full {
			continue
		}
		e := catalog.Find(r.name, r.variant)
		c := check.Config{MaxMemory: 4 << 30}
		if e.Info().Users == protocol.Clients {
			c.Clients = 2
		}
		r.change(&c)
		unmoved := r.unmoved == always || r.unmoved == inFull && full
		t.Run(strings.TrimSpace(r.name+" "+r.variant), func(t *testing.T) { compareReductions(t, e, c, unmoved) })
	}
	if !full {
		t.Log("SHORTENED: TEST_LANE=long compares models of millions of states")
	}
}

// compareReductions searches one model without and with each reduction. It logs each line
// of the table as soon as it is known: the last ones take long.
func compareReductions(t *testing.T, e catalog.Entry, c check.Config, unmoved bool) {
	line := func(what string, v, base check.Verdict) {
		t.Logf("%-72s %12s %12s %8.1f %7.1f %s", what, check.Group(v.States), check.Group(v.Transitions),
			v.Seconds, float64(base.States)/float64(v.States), v.Verdict)
	}
	c.Verify = true // of the full search: claims are true in every state
	base, err := e.Check(c)
	c.Verify = false
	if err != nil {
		t.Fatal(err)
	}
	name := e.Info().Name + " " + e.Info().Variant
	bounds, _, _ := strings.Cut(base.Bounds, ", no timers")
	bounds, _, _ = strings.Cut(bounds, ", timers")
	bounds, _, _ = strings.Cut(bounds, ", an armed")
	line(name+" "+bounds, base, base)
	for _, reduction := range reductions {
		k := c
		k.Reduce = reduction.reduce
		v, err := e.Check(k)
		if err != nil {
			t.Fatalf("%s, %s: %v", base.Bounds, reduction.name, err)
		}
		if strings.Contains(v.Bounds, "not reduced by "+reduction.reduce[len(reduction.reduce)-1]) {
			if v.States != base.States && reduction.name != "both" {
				t.Errorf("%s: not reduced by %s, and %d states, want %d", base.Bounds, reduction.name, v.States, base.States)
			}
			continue
		}
		line("  "+reduction.name, v, base)
		same(t, base, v)
		if base.Verdict == check.Holds && v.States >= base.States {
			t.Errorf("%s: with %s %d states, without %d", base.Bounds, reduction.name, v.States, base.States)
		}
		if v.Verdict == check.Violated {
			replays(t, e, c, v)
		}
	}
	shifted := strings.Contains(base.Bounds, "counters shifted") && !slices.Contains(c.Entries, check.Unlimited)
	if shifted && !unmoved {
		t.Log("SKIPPED: without counters shifted, which takes seconds to hours")
	} else if shifted {
		k := c
		k.NoShift = true
		v, err := e.Check(k)
		if err != nil {
			t.Fatal(err)
		}
		line("  without counters shifted", v, base)
		same(t, v, base)
	}
}

// same compares the verdicts of a search without and one with reductions.
func same(t *testing.T, without, with check.Verdict) {
	t.Helper()
	if with.Verdict != without.Verdict || with.Property != without.Property {
		t.Errorf("%s: %s of %s, without reductions %s of %s\n%s", with.Bounds, with.Verdict, with.Property,
			without.Verdict, without.Property, strings.Join(with.Trace, "\n"))
	}
	for i, p := range with.Properties {
		if q := without.Properties[i]; p.Property != q.Property || p.Verdict != q.Verdict {
			t.Errorf("%s: %s %s, without reductions %s %s", with.Bounds, p.Property, p.Verdict, q.Property, q.Verdict)
		}
	}
}

// replays takes the steps of a violation without reductions, and wants it at the end.
func replays(t *testing.T, e catalog.Entry, c check.Config, v check.Verdict) {
	t.Helper()
	names := scenario.Names{Members: c.N, Clients: e.Info().Users == protocol.Clients}
	steps, err := names.Parse(strings.NewReader(strings.Join(v.Trace, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	c.Prefix, c.Reduce = steps, nil
	again, err := e.Check(c)
	if err != nil {
		t.Fatalf("the trace is no run: %v\n%s", err, strings.Join(v.Trace, "\n"))
	}
	if again.Verdict != check.Violated || again.Property != v.Property || len(again.Trace) != len(v.Trace) {
		t.Errorf("replayed: %s of %s after %d steps, want %s of %s after %d\n%s", again.Verdict, again.Property,
			len(again.Trace), v.Verdict, v.Property, len(v.Trace), strings.Join(v.Trace, "\n"))
	}
}
