package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/poundlock/poundlock/internal/cli"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/diagram"
	"github.com/poundlock/poundlock/verify/hunt"
	"github.com/poundlock/poundlock/verify/scenario"
)

// A huntResult is what a hunt found, with what to do next.
type huntResult struct {
	hunt.Result
	Link     bool   `json:"link"`               // behind package reliable, on lossy channels
	Known    bool   `json:"known,omitempty"`    // the form is known not to have the property that is violated
	Repeat   string `json:"repeat,omitempty"`   // the command that makes the violating run again
	Scenario string `json:"scenario,omitempty"` // the file of the minimised run
	Replay   string `json:"replay,omitempty"`   // the command that replays it
}

// write writes the trace of v as a scenario.
func (r *huntResult) write(what string, v hunt.Violation) error {
	if r.Scenario == "" {
		if !v.Timed {
			r.Replay = "" // of a check, which would look for another run
		}
		return nil
	}
	run := scenario.Run{Loop: scenario.NoLoop}
	if v.History != nil {
		run = *v.History
	} else {
		for _, line := range v.Trace { // too many steps for what each of them does
			run.Steps = append(run.Steps, scenario.Event{Line: line})
		}
	}
	head := []string{
		r.Replay,
		fmt.Sprintf("%s: %s is violated after %s", what, v.Property, check.Plural(int64(len(v.Trace)), "step")),
		v.Reason,
		"found by " + r.Repeat,
	}
	r.Replay = "poundlock-lab replay " + r.Scenario
	err := create(r.Scenario, func(w io.Writer) error { return scenario.WriteRun(w, head, run) })
	if err != nil {
		r.Scenario, r.Replay = "", "" // there is nothing to replay
	}
	return err
}

func showHunt(bar *cli.Progress, what string, c hunt.Config) func(hunt.Progress) {
	return func(p hunt.Progress) {
		part := float64(p.Runs) / float64(max(1, c.Runs))
		if c.For > 0 {
			part = p.Elapsed.Seconds() / c.For.Seconds()
		} else if c.Runs == 0 {
			part = -1
		}
		text := fmt.Sprintf("%s: %s runs, %s entries", what, check.Group(p.Runs), check.Group(p.Entries))
		if p.Beyond > 0 {
			text += fmt.Sprintf(", %d beyond the budget", p.Beyond)
		}
		if p.Reducing {
			text = what + ": a violation, being minimised"
		}
		bar.Show(text, part)
	}
}

func (f *huntFlags) print(w io.Writer, name string, results []huntResult) error {
	if f.json {
		if name == everything {
			return cli.JSON(w, results)
		}
		return cli.JSON(w, results[0])
	}
	l := newListing(w, 10)
	for _, r := range results {
		if name != everything || r.isNews(name) {
			if err := r.print(l); err != nil {
				return err
			}
		}
	}
	if name == everything {
		summary(l, results)
	}
	return l.Flush()
}

// isNews reports whether a hunt of name found what it looks for: "all" leaves out what is
// known.
func (r huntResult) isNews(name string) bool {
	return len(r.Violations) > 0 && !(name == everything && r.Known)
}

func (r huntResult) print(l listing) error {
	for _, v := range r.Violations {
		if v.Timed {
			fmt.Fprintf(l, "%s\n\n", cli.Fit(l.out, fmt.Sprintf("violated: %s, in simulated time: %s", v.Property, v.Reason)))
		} else {
			fmt.Fprintf(l, "%s\n\n", cli.Fit(l.out, fmt.Sprintf("violated: %s, after %s (%s as found): %s", v.Property,
				check.Plural(int64(len(v.Trace)), "step"), check.Group(int64(v.Found)), strings.TrimPrefix(v.Reason, v.Property+": "))))
			if v.History != nil {
				if err := diagram.Text(l, *v.History, width(l.out)); err != nil {
					return err
				}
				fmt.Fprintln(l)
			}
		}
		l.rowIf(r.Known, "known", "this form lacks %s; --known goes on", v.Property)
		l.rowIf(r.Beyond > 0, "budget", "%d unsettled members, %d more than the model has", v.Budget, r.Beyond)
		l.rowIf(r.Scenario != "", "scenario", "%s", r.Scenario)
		l.rowIf(r.Scenario == "" && !v.Timed, "scenario", "--trace FILE writes it")
		again := "replay"
		if !v.Replayed {
			again = "not replayed"
		}
		l.rowIf(r.Replay != "", again, "%s", r.Replay)
		l.row("found by", "%s", r.Repeat)
	}
	if len(r.Violations) == 0 {
		fmt.Fprintln(l, "no violation found")
	}
	l.list("hunted", fmt.Sprintf("%s from number %d of seed %d, %s entries, %s events, %.1f s, %.0f runs/s",
		check.Plural(r.Runs, "run"), r.First, r.Seed, check.Group(r.Entries), check.Group(r.Events), r.Seconds, r.RunsPerS))
	return nil
}

// summary is one line for each algorithm.
func summary(w io.Writer, results []huntResult) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "ALGORITHM\tVARIANT\tCHANNELS\tSEED\tRUNS\tENTRIES\tEVENTS\tSECONDS\tVIOLATION")
	for _, r := range results {
		found, channels := "none", "reliable"
		if r.Link {
			channels = "lossy"
		}
		for _, v := range r.Violations {
			if found = v.Property + ", " + r.Repeat; r.Known {
				found = v.Property + ", as is known, " + r.Repeat
			}
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%s\t%s\t%s\t%.1f\t%s\n", r.Algorithm, r.Variant, channels, r.Seed, check.Group(r.Runs),
			check.Group(r.Entries), check.Group(r.Events), r.Seconds, found)
	}
	_ = t.Flush() // w keeps its errors
}
