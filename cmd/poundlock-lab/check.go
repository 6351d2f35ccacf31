package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	"github.com/dustin/go-humanize"
	"github.com/prometheus/procfs"
	"github.com/spf13/cobra"

	"github.com/poundlock/poundlock/internal/cli"
	"github.com/poundlock/poundlock/verify/catalog"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/diagram"
	"github.com/poundlock/poundlock/verify/scenario"
)

type checkFlags struct {
	modelFlags
	drawings
	swarm    swarmFlags
	scenario string
	trace    string
	json     bool
}

func checkCommand() *cobra.Command {
	f := &checkFlags{}
	c := &cobra.Command{
		Use:   "check ALGORITHM",
		Short: "Explore every run of an algorithm within bounds",
		Long: `Explore every run of an algorithm within bounds, breadth first, and print the
shortest one that violates a property.

Messages arrive in any order, an armed timer may fire at any moment, and faults
happen at any moment within their budgets: a member loses its memory (amnesia), a
client stops for ever (crash), a client's lease lapses at a live server (suspect),
a user gives up (cancel), a server grants nothing new (drain), and with --link a
message is lost (loss) or arrives twice (dup). The verdict is
holds, violated or undecided (the memory cap was reached, or ^C), always with the
bounds within which it was found. The search ends at the first violation; other
properties are then undecided.

Where a model has too many states, --swarm looks for violations depth-first, with
two bits a state: what it finds is a run, not the shortest one; when it finds
nothing, the verdict is undecided and nobody knows what was covered.

Exit status: 0 holds, 1 violated, 3 undecided, 64 usage, 70 when the algorithm's
claims about itself are false or a result cannot be written.`,
		Example: `  poundlock-lab check ricart-agrawala -n 3 --entries unlimited
  poundlock-lab check sigma --variant literal -n 3 --clients 2 \
    --faults amnesia=1 --trace two-holders.txt
  poundlock-lab check sigma -n 7 --clients 3 --faults amnesia=3 --swarm --for 1m`,
		Args: oneAlgorithm,
		RunE: func(c *cobra.Command, args []string) error { return f.run(c, args[0]) },
	}
	s := c.Flags()
	f.modelFlags.register(s)
	s.StringVar(&f.scenario, "scenario", "", "`file` with the steps to start from")
	s.IntVar(&f.config.Workers, "workers", 0, "`number` of goroutines that explore (default as many as processors)")
	s.StringSliceVar(&f.config.Reduce, "reduce", nil, "`reductions`: order, symmetry, or none (default none)")
	s.BoolVar(&f.config.Exact, "exact", false, "compare whole states, not fingerprints: more memory, no chance of a collision")
	f.swarm.register(s)
	s.Func("max-memory", fmt.Sprintf("`SIZE` at which to stop undecided, such as 500MiB (default %dGiB)", check.DefaultMaxMemory>>30),
		func(text string) (err error) { f.config.MaxMemory, err = size(text); return err })
	s.StringVar(&f.trace, "trace", "", "`file` to write the trace of a violation to, as a scenario")
	f.drawings.register(s)
	s.BoolVar(&f.json, "json", false, "print one JSON object")
	return c
}

func (f *checkFlags) run(c *cobra.Command, name string) error {
	e, err := f.find(name)
	if err != nil {
		return err
	}
	if err := f.fill(e); err != nil {
		return err
	}
	if err := differ(append(f.files(), fileFlag{"--trace", f.trace}, fileFlag{"--scenario", f.scenario})...); err != nil {
		return err
	}
	if err := writable(append(f.files(), fileFlag{"--trace", f.trace})...); err != nil {
		return err
	}
	// The garbage of growing tables must not take the process beyond its cap.
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(f.config.MaxMemory))
	ctx, stop := interruptible(c)
	defer stop()
	f.config.Done = ctx.Done()
	bar := cli.NewProgress()
	if bar != nil {
		f.config.Progress = showCheck(bar)
	}
	v, err := e.Check(f.config)
	bar.Finish()
	if errors.Is(err, check.ErrClaim) {
		return cli.Exit(cli.ExitInternal, err)
	}
	if err != nil {
		return refused(err)
	}
	// What took hours to find is printed, also where it cannot be written.
	written := f.write(e, v, modelCommand(name, c.Flags()))
	err = errors.Join(written, f.print(c.OutOrStdout(), v))
	if err == nil && v.Verdict == check.Undecided {
		return &cli.Status{Code: cli.ExitUndecided}
	}
	return ended(err, v.Verdict == check.Violated)
}

// reductionNames are the values of --reduce.
var reductionNames = []string{check.ReduceOrder, check.ReduceSymmetry, "none"}

func (f *checkFlags) fill(e catalog.Entry) (err error) {
	if err := f.model(e); err != nil {
		return err
	}
	k := &f.config
	if f.given("workers") && k.Workers < 1 {
		return cli.AtLeast("--workers", k.Workers, 1)
	}
	for _, name := range k.Reduce {
		if !slices.Contains(reductionNames, name) {
			return cli.Unknown(fmt.Errorf("--reduce %q: want order, symmetry, both, or none", name), name, reductionNames, "")
		}
	}
	if slices.Contains(k.Reduce, "none") {
		if len(k.Reduce) > 1 {
			return cli.Usagef("--reduce %s: want order, symmetry, both, or none alone", strings.Join(k.Reduce, ","))
		}
		k.Reduce = nil
	}
	if k.Swarm, err = f.swarm.config(f.given); err != nil {
		return err
	}
	if !f.given("max-memory") {
		k.MaxMemory = check.DefaultMaxMemory
		if a := availableMemory(); a > 0 {
			k.MaxMemory = min(k.MaxMemory, a/2) // where a machine has less than the default
		}
	}
	if f.scenario != "" {
		k.Prefix, err = readScenario(f.scenario, f.names(e.Info()))
	}
	return err
}

// interruptible is a context that ^C or SIGTERM ends. A second one kills.
func interruptible(c *cobra.Command) (ctx context.Context, stop func()) {
	ctx, stop = signal.NotifyContext(c.Context(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

func showCheck(bar *cli.Progress) func(check.Progress) {
	return func(p check.Progress) {
		bar.Show(fmt.Sprintf("%s states, %s/s, depth %d, frontier %s, %d MiB",
			check.Group(p.States), check.Group(int64(float64(p.States)/p.Elapsed.Seconds())), p.Depth,
			check.Group(p.Frontier), p.Memory>>20), -1)
	}
}

func (f *checkFlags) print(w io.Writer, v check.Verdict) error {
	if f.json {
		return cli.JSON(w, v)
	}
	wide := 14
	for _, p := range v.Properties {
		if p.Property == check.ConcurrentEntry {
			wide = len(p.Property)
		}
	}
	l := newListing(w, wide)
	switch v.Verdict {
	case check.Violated:
		fmt.Fprintf(l, "%s\n\n", cli.Fit(w, fmt.Sprintf("violated: %s, after %s: %s", v.Property, check.Plural(int64(len(v.Trace)), "step"),
			strings.TrimPrefix(v.Reason, v.Property+": "))))
		if err := diagram.Text(l, *v.Run, width(w)); err != nil {
			return err
		}
		fmt.Fprintln(l)
	default:
		fmt.Fprintln(l, verdictLine(v))
	}
	for _, p := range v.Properties {
		bound := ""
		if p.Bound != nil {
			bound = fmt.Sprintf(": while one tries, others enter %s at most, and one of them %s",
				check.Plural(int64(p.Bound.All), "time"), check.Plural(int64(p.Bound.One), "time"))
		}
		l.row(p.Property, "%s%s", p.Verdict, bound)
	}
	l.list("bounds", v.Bounds)
	explored := check.Plural(v.States, "state") + ", " + check.Plural(v.Transitions, "transition")
	if v.Searches == 0 { // no depth is covered by a swarm
		explored += fmt.Sprintf(", depth %d", v.Depth)
	}
	l.list("explored", explored+fmt.Sprintf(", %.1f s, %s states/s", v.Seconds, check.Group(int64(v.StatesPerS))))
	return l.Flush()
}

// write writes the trace of v as a scenario that --scenario and replay read, and the
// drawings. Without a violation they have no steps: what an earlier check left there
// would mislead.
func (f *checkFlags) write(e catalog.Entry, v check.Verdict, command string) error {
	form := e.Info().Name
	if e.Info().Variant != "" {
		form += " (" + e.Info().Variant + ")"
	}
	title, head, reason := command+": no violation", []string{command, form + ": no violation"}, ""
	run := scenario.Run{Loop: scenario.NoLoop}
	if v.Verdict == check.Violated {
		verdict := fmt.Sprintf("%s is violated after %s", v.Property, check.Plural(int64(len(v.Trace)), "step"))
		title, head, run = command, []string{command, form + ": " + verdict, v.Reason}, *v.Run
		reason = verdict + ": " + strings.TrimPrefix(v.Reason, v.Property+": ")
	}
	return errors.Join(f.drawings.write(run, title, reason),
		create(f.trace, func(w io.Writer) error { return scenario.WriteRun(w, append(head, v.Bounds), run) }))
}

// size reads bytes, or a number with a unit.
func size(text string) (int64, error) {
	n, err := humanize.ParseBytes(text)
	if err != nil || n == 0 || n > math.MaxInt64/2 {
		return 0, fmt.Errorf("%q is not a size: want bytes, or a number with KiB, MiB or GiB", text)
	}
	return int64(n), nil
}

// availableMemory is what this machine can still give, 0 where unknown.
func availableMemory() int64 {
	proc, err := procfs.NewDefaultFS()
	if err != nil {
		return 0
	}
	m, err := proc.Meminfo()
	if err != nil || m.MemAvailableBytes == nil {
		return 0
	}
	return int64(*m.MemAvailableBytes)
}
