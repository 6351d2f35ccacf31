package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/poundlock/poundlock/internal/cli"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/catalog"
	"github.com/poundlock/poundlock/verify/hunt"
)

type huntFlags struct {
	algorithmFlags
	config    hunt.Config
	run       int64
	trace     string
	json      bool
	unwritten error // what was found is printed nevertheless
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
few steps and printed; with --trace these are also written as a scenario, for
poundlock-lab replay.

--break looks for the first budget of memory losses at which something breaks: from
one member more than the model has. The argument "all" hunts each algorithm, and
each variant, for an equal part of the time. There a violation is no news of a form that
is known not to have the property. Of one form it ends the hunt, unless --known is given.

Exit status: 0 without a violation, 1 with one, 64 usage, 70 when a result cannot be
written.`,
		Example: `  poundlock-lab hunt sigma -n 7 --clients 20 --for 5m
  poundlock-lab hunt sigma -n 7 --clients 20 --break
  poundlock-lab hunt all --for 30m --trace found/`,
		Args: oneAlgorithm,
		RunE: func(c *cobra.Command, args []string) error { return f.hunt(c, args[0]) },
	}
	s := c.Flags()
	f.registerRuns(s)
	s.Lookup("n").DefValue = "drawn"
	s.Lookup("clients").DefValue = "drawn"
	s.Lookup("fence").DefValue = "drawn"
	s.Lookup("registers").Usage = "`kind` of the shared memory, if there is one: atomic or safe (default drawn)"
	s.DurationVar(&f.config.For, "for", time.Minute, "begin no run after this `duration`; 0: until ^C")
	s.Int64Var(&f.config.Runs, "runs", 0, "`number` of runs; with it and without --for there is no limit of time")
	s.IntVar(&f.config.Workers, "workers", runtime.GOMAXPROCS(0), "`number` of runs at a time (default as many as processors)")
	s.Lookup("workers").DefValue = "0" // help says where it is from
	s.BoolVar(&f.config.Break, "break", false, "look for the first budget of memory losses that violates something")
	s.BoolVar(&f.config.Known, "known", false, "go on where a property is violated that the form is known not to have")
	s.StringVar(&f.trace, "trace", "", "`file` for the scenario of a violation, or a directory for hunt-ALGORITHM-SEED-RUN.txt (default none)")
	s.BoolVar(&f.json, "json", false, "print one JSON object, or with \"all\" a list of them")
	return c
}

func (f *huntFlags) registerRuns(s *pflag.FlagSet) {
	f.drawn = true
	f.registerSystem(s)
	f.registerWants(s, "(default drawn)",
		"`SET|..` of groups, among which each try of all users chooses, such as a,b|!w; ! before a group that is exclusive (default drawn)")
	f.registerOperations(s, "at most (default drawn)")
	s.IntVar(&f.config.Beyond, "beyond", 0,
		"by what `number` of members memory losses exceed the model's budget; with --break, at most")
	s.Uint64Var(&f.config.Seed, "seed", 1, "`number` from which every random number follows")
	s.Int64Var(&f.run, "run", 0, "`number` of the only run to be made")
}

// A target is one form of one algorithm, on reliable channels or behind package reliable on
// lossy ones.
type target struct {
	catalog.Entry
	link   bool
	weight int // its part of the time
}

// targets are what "all" stands for. What is behind package reliable has a quarter of the time
// of its form.
func (f *huntFlags) targets() (all []target) {
	for _, e := range catalog.All {
		if !f.link {
			all = append(all, target{e, false, 3})
		}
		if catalog.Linkable(e) == nil {
			all = append(all, target{e.Link(), true, 1})
		}
	}
	return all
}

func (f *huntFlags) hunt(c *cobra.Command, name string) error {
	targets := f.targets()
	if name != everything {
		e, err := f.find(name)
		if err != nil {
			return err
		}
		targets = []target{{e, f.link, 1}}
	} else if err := f.forAll(); err != nil {
		return err
	}
	if strings.HasSuffix(f.trace, "/") {
		if err := os.MkdirAll(f.trace, 0o755); err != nil {
			return cli.Usagef("--trace: %w", err)
		}
	}
	if !isDirectory(f.trace) {
		if name == everything && f.trace != "" {
			return cli.Usagef("--trace %s: with %q name a directory: %s/", f.trace, everything, f.trace)
		}
		if err := writable(fileFlag{"--trace", f.trace}); err != nil {
			return err
		}
	}
	if err := f.end(); err != nil {
		return err
	}
	ctx, stop := interruptible(c)
	defer stop()
	f.config.Done = ctx.Done()
	total, weights := f.config.For, 0
	for _, t := range targets {
		weights += t.weight
	}
	results := []huntResult{}
	for k, t := range targets {
		f.config.For = total * time.Duration(t.weight) / time.Duration(weights)
		r, err := f.one(c, t, k, len(targets))
		if err != nil {
			return err
		}
		results = append(results, r)
		if ctx.Err() != nil {
			break
		}
	}
	news := slices.ContainsFunc(results, func(r huntResult) bool { return r.isNews(name) })
	return ended(errors.Join(f.unwritten, f.print(c.OutOrStdout(), name, results)), news)
}

func (f *huntFlags) end() error {
	for _, flag := range []string{"runs", "for"} {
		if f.given("run") && f.given(flag) {
			return cli.Usagef("--run %d is one run: leave out --%s", f.run, flag)
		}
	}
	switch {
	case f.given("run"):
		f.config.First, f.config.Runs, f.config.For = f.run, 1, 0
	case f.given("runs") && f.config.Runs < 1:
		return cli.Usagef("--runs %d: want at least 1; --for 0 is a hunt until ^C", f.config.Runs)
	case f.given("runs") && !f.given("for"):
		f.config.For = 0
	}
	return nil
}

// forAll refuses what does not make sense for every algorithm.
func (f *huntFlags) forAll() error {
	for _, flag := range []string{
		"variant", "clients", "quorum", "fence", "option", "selection", "admission", "groups", "wants", "operations", "break", "beyond", "run",
	} {
		if f.given(flag) {
			return cli.Usagef("--%s: not with %q: name one algorithm", flag, everything)
		}
	}
	if f.given("for") && f.config.For == 0 && f.config.Runs == 0 {
		return cli.Usagef("--for 0s: not with %q: the first algorithm would take it all", everything)
	}
	return nil
}

// one hunts one target, the k-th of several.
func (f *huntFlags) one(c *cobra.Command, t target, k, several int) (huntResult, error) {
	i, cfg := t.Info(), f.config
	s, err := f.read(i)
	if err != nil {
		return huntResult{}, err
	}
	if !f.given("n") {
		if f.given("quorum") {
			return huntResult{}, cli.Usagef("--quorum %s: want -n too", *f.short["quorum"])
		}
		s.N = 0
	}
	if err := cfg.Use(s); err != nil {
		return huntResult{}, cli.Exit(cli.ExitUsage, err)
	}
	if err := cli.AtLeast("--workers", cfg.Workers, 1); err != nil {
		return huntResult{}, err
	}
	bar := cli.NewProgress()
	if bar != nil {
		what := t.name()
		if several > 1 {
			what = fmt.Sprintf("%s (%d of %d)", what, k+1, several)
		}
		cfg.Progress = showHunt(bar, what, cfg)
	}
	r, err := t.Hunt(cfg)
	bar.Finish()
	if errors.Is(err, hunt.ErrConfig) {
		return huntResult{}, refused(err)
	}
	if err != nil {
		return huntResult{}, cli.Exit(cli.ExitInternal, err)
	}
	out := huntResult{Result: r, Link: t.link}
	for _, v := range r.Violations {
		out.Known = slices.Contains(i.Refuted, v.Property) || slices.Contains(i.Lacks, v.Property)
		if !v.Timed && !(out.Known && several > 1) {
			out.Scenario = f.trace
			if isDirectory(f.trace) {
				out.Scenario = filepath.Join(f.trace, fmt.Sprintf("hunt-%s-%d-%d.txt", strings.ReplaceAll(t.name(), " ", "-"), r.Seed, v.Run))
			}
		}
		var again, replay error
		out.Repeat, again = f.repeatCommand(i, t.link, c.Flags(), r.Beyond, v)
		out.Replay, replay = commandOf(i, t.link, v)
		if err := errors.Join(again, replay); err != nil {
			return out, cli.Exit(cli.ExitInternal, err)
		}
		f.unwritten = errors.Join(f.unwritten, out.write(t.name(), v))
	}
	return out, nil
}

func isDirectory(path string) bool {
	s, err := os.Stat(path)
	return err == nil && s.IsDir()
}

// name names what is hunted, for people.
func (t target) name() string {
	if t.link {
		return form(t.Info()) + " link"
	}
	return form(t.Info())
}

// form names one form of an algorithm.
func form(i protocol.Info) string {
	if i.Variant == "" {
		return i.Name
	}
	return i.Name + " " + i.Variant
}
