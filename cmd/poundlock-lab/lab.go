package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/poundlock/poundlock/internal/cli"
	"github.com/poundlock/poundlock/lab"
	"github.com/poundlock/poundlock/lab/classics"
	"github.com/poundlock/poundlock/lab/groups"
	"github.com/poundlock/poundlock/lab/network"
	"github.com/poundlock/poundlock/lab/statistics"
	"github.com/poundlock/poundlock/lab/tokengme"
	"github.com/poundlock/poundlock/lab/wme"
)

var experiments = slices.Concat(classics.Experiments, groups.Experiments, network.Experiments, statistics.Experiments, tokengme.Experiments, wme.Experiments)

// recomputable are those whose reports have the table of what each trial gave.
var recomputable = slices.Concat(tokengme.Experiments, groups.Experiments)

// labMemory is where garbage is collected however little of it there is.
const labMemory = 1 << 30

const noCache = "none"

type labFlags struct {
	lab.Options
	quick, full bool
	out         string
	json        bool
}

func labCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "lab",
		Short: "Run experiments: tables and figures beside what was expected",
		Args:  cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cli.Usagef("lab wants a command: list, run or report")
			}
			err := fmt.Errorf("lab has no command %q: it has list, run and report", args[0])
			return cli.Unknown(err, args[0], cli.CommandNames(c), "poundlock-lab lab --help lists them")
		},
	}
	c.AddCommand(labListCommand(), labRunCommand(), labReportCommand())
	return c
}

func labListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the experiments",
		Args:  cli.NoArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			w := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "EXPERIMENT\tWHAT")
			columns, _, terminal := cli.TerminalSize(c.OutOrStdout())
			for _, e := range experiments {
				name, title := e.Name, e.Title
				if terminal && columns > 0 {
					title = cli.Fill(title, max(1, columns-len("statistics/coverage  ")))
				}
				for line := range strings.Lines(title) {
					fmt.Fprintf(w, "%s\t%s\n", name, strings.TrimSuffix(line, "\n"))
					name = ""
				}
			}
			return cli.Exit(cli.ExitInternal, w.Flush())
		},
	}
}

func labRunCommand() *cobra.Command {
	f := &labFlags{}
	c := &cobra.Command{
		Use:   "run NAME",
		Short: "Run one experiment",
		Long: `Run one experiment, print its tables, and write them as text, CSV and JSON, with
figures in SVG, into a directory.

What is measured stands beside what was expected, with a verdict. Of a formula:
equal, within interval, or differs. Of what a paper has measured: reproduced, partly
reproduced, or not reproduced. Of a property that is decided: as claimed, violated as
expected, refuted, violation not found, differs, or undecided.

Trials run in parallel, and the result is the same for any number of workers. Each
trial is kept as soon as it is done, so that a run that was interrupted goes on where
it was; another executable starts anew.

Exit status: 0 when every verdict is fine, 1 when some are not, 3 when it was
interrupted, 64 usage, 70 when an experiment fails or a result cannot be written.`,
		Example: `  poundlock-lab lab list
  poundlock-lab lab run classics/costs --quick
  poundlock-lab lab run wme/table1 -n 5 --json`,
		Args: oneOf("experiment", "poundlock-lab lab list lists them"),
		RunE: func(c *cobra.Command, args []string) error { return f.run(c, args[0]) },
	}
	s := c.Flags()
	s.BoolVar(&f.quick, "quick", false, "try little: seconds, and with tokengme/all and tokengme/selection minutes")
	s.BoolVar(&f.full, "full", false, "try all")
	f.addOutput(s)
	s.StringVar(&f.Cache, "cache", "", "`directory` that keeps trials, or none (default one of this user)")
	s.IntVarP(&f.Point, "n", "n", 0, "`number` of processes, the only one to try, where an experiment can (wme/table1)")
	s.IntVar(&f.Workers, "workers", 0, "`number` of trials at a time (default as many as processors)")
	return c
}

func labReportCommand() *cobra.Command {
	f, from := &labFlags{}, ""
	c := &cobra.Command{
		Use:   "report NAME --from DIRECTORY",
		Short: "Make the report of an earlier run again, from what its trials gave",
		Long: `Make the tables and figures of an experiment again from what each trial of an earlier
run gave, without a trial: from NAME-replications.csv, at the scale that NAME.json
says. Only experiments that write such a table can have this.

Exit status: 0 when every verdict is fine, 1 when some are not, 64 usage, 70 when the
table is not that of the experiment, or a result cannot be written.`,
		Example: `  poundlock-lab lab report tokengme/all --from docs/figures --out again`,
		Args:    oneOf("experiment", "poundlock-lab lab list lists them"),
		RunE: func(c *cobra.Command, args []string) error {
			if from == "" {
				return cli.Usagef("--from: want the directory of an earlier run")
			}
			e, err := findExperiment(args[0])
			if err != nil {
				return err
			}
			var names []string
			for _, x := range recomputable {
				names = append(names, x.Name)
			}
			if !slices.Contains(names, e.Name) {
				return cli.Usagef("%s keeps no table of what its trials gave: only %s do", e.Name, strings.Join(names, ", "))
			}
			if err := f.makeOut(e.Name); err != nil {
				return err
			}
			r, err := lab.Recompute(c.Context(), e, from)
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return cli.Usagef("--from: %w", err)
			case err != nil:
				return cli.Exit(cli.ExitInternal, err)
			}
			return f.write(c, r)
		},
	}
	s := c.Flags()
	s.StringVar(&from, "from", "", "`directory` to which the earlier run wrote")
	f.addOutput(s)
	return c
}

func (f *labFlags) addOutput(s *pflag.FlagSet) {
	s.StringVar(&f.out, "out", "", "`directory` to write to (default out/NAME)")
	s.BoolVar(&f.json, "json", false, "print one JSON object instead of the tables")
}

func (f *labFlags) run(c *cobra.Command, name string) error {
	e, err := findExperiment(name)
	if err != nil {
		return err
	}
	if err := f.complete(c.Flags().Changed, e); err != nil {
		return err
	}
	if err := f.makeOut(name); err != nil { // before what may take minutes
		return err
	}
	bar := cli.NewProgress()
	f.Progress = showLab(bar, os.Stderr, name)
	ctx, stop := interruptible(c)
	defer stop()
	// The garbage of searches must not take the process beyond what they may need.
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(labMemory))
	r, err := lab.Run(ctx, e, f.Options)
	bar.Finish()
	switch {
	case errors.Is(err, lab.ErrInterrupted) && f.Cache == "":
		return &cli.Status{Code: cli.ExitUndecided, Err: err, Hint: "with --cache none nothing of it is kept"}
	case errors.Is(err, lab.ErrInterrupted):
		return &cli.Status{Code: cli.ExitUndecided, Err: err, Hint: "the same command goes on from there"}
	case errors.Is(err, lab.ErrCache) && r.Experiment == "":
		return &cli.Status{Code: cli.ExitUsage, Err: err, Hint: "--cache DIR keeps trials elsewhere, --cache none nowhere"}
	case errors.Is(err, lab.ErrCache):
		fmt.Fprintln(os.Stderr, "poundlock-lab: warning:", err) // the report is whole
	case err != nil:
		return cli.Exit(cli.ExitInternal, err)
	}
	return f.write(c, r)
}

func (f *labFlags) makeOut(name string) error {
	if f.out == "" {
		f.out = filepath.Join("out", filepath.FromSlash(name))
	}
	if err := os.MkdirAll(f.out, 0o755); err != nil {
		return cli.Usagef("--out: %w", err)
	}
	return nil
}

func (f *labFlags) write(c *cobra.Command, r lab.Report) error {
	return ended(errors.Join(r.Write(f.out), f.print(c.OutOrStdout(), r)), r.Differs() > 0)
}

func findExperiment(name string) (lab.Experiment, error) {
	var names []string
	for _, e := range experiments {
		if e.Name == name {
			return e, nil
		}
		names = append(names, e.Name)
	}
	return lab.Experiment{}, cli.Unknown(fmt.Errorf("there is no experiment %q", name), name, names, "poundlock-lab lab list lists them")
}

func (f *labFlags) complete(given func(flag string) bool, e lab.Experiment) (err error) {
	f.Scale = lab.Default
	switch {
	case f.quick && f.full:
		return cli.Usagef("--quick and --full exclude each other")
	case f.quick:
		f.Scale = lab.Quick
	case f.full:
		f.Scale = lab.Full
	}
	if given("workers") {
		err = cli.Within("--workers", f.Workers, 1, lab.MaxWorkers)
	}
	if given("n") && err == nil {
		if err := e.CheckPoint(f.Point); err != nil {
			return cli.Usagef("-n: %w", err)
		}
	}
	switch f.Cache {
	case noCache:
		f.Cache = ""
	case "":
		user, err := os.UserCacheDir()
		if err != nil {
			return cli.Usagef("where to keep trials: %w", err).WithHint("--cache DIR keeps them there, --cache none nowhere")
		}
		f.Cache = filepath.Join(user, "poundlock", "lab")
	}
	return err
}

func (f *labFlags) print(w io.Writer, r lab.Report) error {
	if f.json {
		return r.JSON(w)
	}
	r.Notes = slices.Clone(r.Notes)
	for i, note := range r.Notes {
		r.Notes[i] = cli.Fit(w, note)
	}
	if err := r.Text(w); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "written to %s\n", f.out)
	return err
}

// betweenLines is how often progress is a line where there is no terminal.
const betweenLines = 10 * time.Second

// showLab shows how far an experiment is: on a terminal, or without one in a line once in a
// while, both with the time that is left where that is known.
func showLab(bar *cli.Progress, w io.Writer, what string) func(lab.Progress) {
	start := time.Now()
	var last time.Time
	return func(p lab.Progress) {
		now := time.Now()
		left := labLeft(p, now.Sub(start))
		if bar != nil {
			bar.Show(fmt.Sprintf("%s: %d of %d trials%s", what, p.Done, p.Total, left), float64(p.Done)/float64(max(1, p.Total)))
		} else if now.Sub(last) >= betweenLines {
			last = now
			fmt.Fprintf(w, "%s: %d of %d trials, %d of them kept from earlier runs%s\n", what, p.Done, p.Total, p.Cached, left)
		}
	}
}

// enoughMade is how much must have been made until the speed of that is believed rather
// than the estimate.
const enoughMade = 10 * time.Second

// labLeft says how long a run still takes, or nothing where its costs are unknown.
func labLeft(p lab.Progress, took time.Duration) string {
	if p.Left <= 0 {
		return ""
	}
	left := p.Left / time.Duration(p.Workers)
	if p.Made >= enoughMade {
		left = time.Duration(float64(p.Left) * took.Seconds() / p.Made.Seconds())
	}
	return fmt.Sprintf(", about %v left", left.Round(time.Second))
}
