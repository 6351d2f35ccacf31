package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/poundlock/poundlock/catalog"
	"github.com/poundlock/poundlock/check"
	"github.com/poundlock/poundlock/diagram"
	"github.com/poundlock/poundlock/hunt"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/scenario"
)

// huntFlags are the flags of poundlock hunt.
type huntFlags struct {
	algorithmFlags
	config hunt.Config
	run    int64
	trace  string
	json   bool
}

// everything is the argument that stands for each form of each algorithm.
const everything = "all"

func huntCommand() *cobra.Command {
	f := &huntFlags{}
	c := &cobra.Command{
		Use:   "hunt ALGORITHM",
		Short: "Look for violations at random, and make what is found short",
		Long: `Look for violations at random, and make what is found short.

Each run draws its size, its workload, how messages overtake each other, and its
faults: a subset of the kinds that the algorithm's model has, never beyond its
budget. Run i of a seed is a value: --seed S --run I repeats it, whatever the number
of workers. The first run that violates a property ends the hunt. It is reduced to a
few steps, which are written as a scenario, with the command that replays them.

--break looks for the first budget of memory losses at which something breaks: from
one member more than the model has. The argument "all" hunts each algorithm, and
each variant, for an equal part of the time.

Exit status: 0 without a violation, 1 with one, 64 usage, 70 when a result cannot be
written.`,
		Example: `  poundlock hunt sigma -n 7 --clients 20 --for 5m
  poundlock hunt sigma -n 7 --clients 20 --break
  poundlock hunt all --for 30m`,
		Args: oneAlgorithm,
		RunE: func(c *cobra.Command, args []string) error { return f.hunt(c, args[0]) },
	}
	s := c.Flags()
	f.registerSystem(s)
	s.Lookup("n").DefValue = "drawn"
	s.Lookup("clients").DefValue = "drawn"
	s.Lookup("fence").DefValue = "drawn"
	s.DurationVar(&f.config.For, "for", time.Minute, "begin no run after this `duration`")
	s.Int64Var(&f.config.Runs, "runs", 0, "`number` of runs; with it and without --for there is no limit of time")
	s.Uint64Var(&f.config.Seed, "seed", 1, "`number` from which every random number follows")
	s.Int64Var(&f.run, "run", 0, "`number` of the only run to be made")
	s.IntVar(&f.config.Workers, "workers", runtime.GOMAXPROCS(0), "`number` of runs at a time")
	s.BoolVar(&f.config.Break, "break", false, "look for the first budget of memory losses that violates something")
	s.IntVar(&f.config.Beyond, "beyond", 0,
		"by what `number` of members memory losses exceed the model's budget; with --break, at most")
	s.StringVar(&f.trace, "trace", "", "`file` for the scenario of a violation (default hunt-ALGORITHM-SEED-RUN.txt)")
	s.BoolVar(&f.json, "json", false, "print one JSON object, or with \"all\" a list of them")
	return c
}

// A huntResult is what a hunt found, with what to do next.
type huntResult struct {
	hunt.Result
	Repeat   string `json:"repeat,omitempty"`   // the command that makes the violating run again
	Scenario string `json:"scenario,omitempty"` // the file of the minimised run
	Replay   string `json:"replay,omitempty"`   // the command that replays it
}

func (f *huntFlags) hunt(c *cobra.Command, name string) error {
	entries := catalog.All
	if name != everything {
		e, err := f.find(name)
		if err != nil {
			return err
		}
		entries = []catalog.Entry{e}
	} else if err := f.forAll(c); err != nil {
		return err
	}
	if err := writable(f.trace); err != nil {
		return usagef("--trace: %w", err)
	}
	if given := c.Flags().Changed; given("run") {
		f.config.First, f.config.Runs, f.config.For = f.run, 1, 0
	} else if given("runs") && !given("for") {
		f.config.For = 0
	}
	done, stop := interrupted()
	defer stop()
	f.config.Done = done
	total := f.config.For
	results := []huntResult{}
	for k, e := range entries {
		f.config.For = total / time.Duration(len(entries))
		r, err := f.one(c, e, k, len(entries))
		if err != nil {
			return err
		}
		results = append(results, r)
		if ended(done) {
			break
		}
	}
	return f.report(c.OutOrStdout(), name, results)
}

func ended(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// forAll refuses what does not make sense for every algorithm.
func (f *huntFlags) forAll(c *cobra.Command) error {
	for _, flag := range []string{"variant", "clients", "quorum", "fence", "option", "link", "break", "beyond", "run", "trace"} {
		if c.Flags().Changed(flag) {
			return usagef("--%s: not with %q: name one algorithm", flag, everything)
		}
	}
	return nil
}

// one hunts one form of one algorithm, the k-th of several.
func (f *huntFlags) one(c *cobra.Command, e catalog.Entry, k, several int) (huntResult, error) {
	i, given := e.Info(), c.Flags().Changed
	cfg := f.config
	var err error
	if cfg.Config, err = f.drawn(i, given); err != nil {
		return huntResult{}, err
	}
	if cfg.Clients = f.clients; given("clients") && f.clients < 1 {
		return huntResult{}, usagef("--clients %d: want at least 1", f.clients)
	}
	if cfg.FIFO, err = f.isFIFO(i, given); err != nil {
		return huntResult{}, err
	}
	if cfg.Workers < 1 {
		return huntResult{}, usagef("--workers %d: want at least 1", cfg.Workers)
	}
	finish := func() {}
	if term.IsTerminal(int(os.Stderr.Fd())) {
		what := form(i)
		if several > 1 {
			what = fmt.Sprintf("%s (%d of %d)", what, k+1, several)
		}
		cfg.Progress, finish = huntProgress(what, cfg)
	}
	r, err := e.Hunt(cfg)
	finish()
	if errors.Is(err, hunt.ErrConfig) {
		return huntResult{}, &exitStatus{code: exitUsage, err: err}
	}
	if err != nil {
		return huntResult{}, &exitStatus{code: exitInternal, err: err}
	}
	out := huntResult{Result: r}
	for _, v := range r.Violations {
		out.Repeat = f.repeat(i, given, r, v)
		if !v.Timed {
			out.Scenario = f.trace
			if out.Scenario == "" {
				out.Scenario = fmt.Sprintf("hunt-%s-%d-%d.txt", strings.ReplaceAll(form(i), " ", "-"), r.Seed, v.Run)
			}
		}
		out.Replay = v.Command(i)
		if err := out.write(i, v); err != nil {
			return out, &exitStatus{code: exitInternal, err: err}
		}
	}
	return out, nil
}

// form names one form of an algorithm.
func form(i protocol.Info) string {
	if i.Variant == "" {
		return i.Name
	}
	return i.Name + " " + i.Variant
}

// drawn returns what all processes share, without what is not given.
func (f *huntFlags) drawn(i protocol.Info, given func(string) bool) (protocol.Config, error) {
	if !given("n") && given("quorum") {
		return protocol.Config{}, usagef("--quorum %s: want -n too", f.quorum)
	}
	c, err := f.system(i, given)
	if !given("n") {
		c.N = 0
	}
	if !given("fence") && !given("option") {
		delete(c.Options, "fence") // system turns it off unless it is asked for
	}
	return c, err
}

// repeat is the command that makes the run of v again.
func (f *huntFlags) repeat(i protocol.Info, given func(string) bool, r hunt.Result, v hunt.Violation) string {
	words := []string{"poundlock hunt", i.Name}
	add := func(flag string, value any) { words = append(words, flag, fmt.Sprint(value)) }
	if i.Variant != "" {
		add("--variant", i.Variant)
	}
	if f.link {
		words = append(words, "--link")
	}
	for _, flag := range []struct{ name, value string }{
		{"n", fmt.Sprint(f.n)},
		{"clients", fmt.Sprint(f.clients)},
		{"quorum", f.quorum},
		{"fence", f.fence},
		{"channels", f.fifo},
	} {
		if given(flag.name) {
			add(strings.Replace("--"+flag.name, "--n", "-n", 1), flag.value)
		}
	}
	for _, o := range f.options {
		add("--option", o)
	}
	if r.Beyond > 0 {
		add("--beyond", r.Beyond)
	}
	add("--seed", r.Seed)
	add("--run", v.Run)
	return strings.Join(words, " ")
}

// write writes the trace of v as a scenario.
func (r *huntResult) write(i protocol.Info, v hunt.Violation) error {
	if r.Scenario == "" {
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
		fmt.Sprintf("%s: %s is violated after %s", form(i), v.Property, check.Plural(int64(len(v.Trace)), "step")),
		v.Reason,
		"found by " + r.Repeat,
	}
	r.Replay = "poundlock replay " + r.Scenario
	return create(r.Scenario, func(w io.Writer) error { return scenario.WriteRun(w, head, run) })
}

// huntProgress shows a bar. finish removes it.
func huntProgress(what string, c hunt.Config) (show func(hunt.Progress), finish func()) {
	most := c.Runs
	if c.For > 0 {
		most = c.For.Milliseconds()
	}
	bar := progressbar.NewOptions64(max(1, most), progressbar.OptionSetWriter(os.Stderr),
		progressbar.OptionSetPredictTime(false), progressbar.OptionClearOnFinish(), progressbar.OptionThrottle(100*time.Millisecond))
	show = func(p hunt.Progress) {
		done := p.Runs
		if c.For > 0 {
			done = p.Elapsed.Milliseconds()
		}
		text := fmt.Sprintf("%s: %s runs, %s entries", what, check.Group(p.Runs), check.Group(p.Entries))
		if p.Reducing {
			text = what + ": a violation, being minimised"
		}
		bar.Describe(text)
		_ = bar.Set64(min(done, most-1)) // only for the eye
	}
	return show, func() { _ = bar.Finish() }
}

func (f *huntFlags) report(w io.Writer, name string, results []huntResult) error {
	if err := f.print(w, name, results); err != nil {
		return &exitStatus{code: exitInternal, err: err}
	}
	for _, r := range results {
		if len(r.Violations) > 0 {
			return &exitStatus{code: exitViolated}
		}
	}
	return nil
}

func (f *huntFlags) print(w io.Writer, name string, results []huntResult) error {
	if f.json {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		if name == everything {
			return enc.Encode(results)
		}
		return enc.Encode(results[0])
	}
	b := bufio.NewWriter(w)
	for _, r := range results {
		if name != everything || len(r.Violations) > 0 {
			if err := r.print(b); err != nil {
				return err
			}
		}
	}
	if name == everything {
		summary(b, results)
	}
	return b.Flush()
}

func (r huntResult) print(w io.Writer) error {
	for _, v := range r.Violations {
		if v.Timed {
			fmt.Fprintf(w, "violated: %s, in simulated time: %s\n\n", v.Property, v.Reason)
		} else {
			fmt.Fprintf(w, "violated: %s, after %d steps (%s as found): %s\n\n", v.Property, len(v.Trace),
				check.Group(int64(v.Found)), v.Reason)
			if v.History != nil {
				if err := diagram.Text(w, *v.History); err != nil {
					return err
				}
				fmt.Fprintln(w)
			}
		}
		if r.Beyond > 0 {
			fmt.Fprintf(w, "budget     %d unsettled members, %d more than the model has\n", v.Budget, r.Beyond)
		}
		if r.Scenario != "" {
			fmt.Fprintf(w, "scenario   %s\n", r.Scenario)
		}
		again := "replay"
		if !v.Replayed {
			again = "not replayed"
		}
		fmt.Fprintf(w, "%-10s %s\nfound by   %s\n", again, r.Replay, r.Repeat)
	}
	if len(r.Violations) == 0 {
		fmt.Fprintln(w, "no violation found")
	}
	fmt.Fprintf(w, "hunted     %s runs from number %d of seed %d, %s entries, %s events, %.1f s, %.0f runs/s\n",
		check.Group(r.Runs), r.First, r.Seed, check.Group(r.Entries), check.Group(r.Events), r.Seconds, r.RunsPerS)
	return nil
}

// summary is one line for each algorithm.
func summary(w io.Writer, results []huntResult) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "ALGORITHM\tVARIANT\tSEED\tRUNS\tENTRIES\tEVENTS\tSECONDS\tVIOLATION")
	for _, r := range results {
		found := "none"
		for _, v := range r.Violations {
			found = v.Property + ", " + r.Repeat
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%s\t%s\t%s\t%.1f\t%s\n", r.Algorithm, r.Variant, r.Seed, check.Group(r.Runs),
			check.Group(r.Entries), check.Group(r.Events), r.Seconds, found)
	}
	_ = t.Flush() // w keeps its errors
}
