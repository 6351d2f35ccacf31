package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/poundlock/poundlock/internal/cli"
	"github.com/poundlock/poundlock/internal/demo"
)

const demoLong = `Demo shows what the locks are for. It starts a cluster of four server processes
and some workers, which count in one file under one lock: each reads the number,
waits for a moment and writes the next one, so that two that do so at once lose a
count. Meanwhile it kills the servers with SIGKILL, one after the other, and
starts each again with an empty memory, as often as the cluster is made for: the
next one when everybody who waited for or held the lock at the last kill is done.

At the end it compares what the workers have counted with the number in the file.
^C ends it earlier. It needs nothing and leaves nothing behind.

Exit status: 0 when nothing was lost; 1 when something was, or it could not run;
64 when it was called wrongly; 70 when the result cannot be written.`

// demoFlags are the flags of poundlock demo.
type demoFlags struct {
	demo.Config
	json bool
}

func demoCommand() *cobra.Command {
	f := &demoFlags{}
	c := &cobra.Command{
		Use:   "demo",
		Short: "Kill servers under a lock and count what is lost: nothing",
		Long:  demoLong,
		Example: `  poundlock demo
  poundlock demo --without-lock`,
		Args: cli.NoArguments,
		RunE: func(c *cobra.Command, _ []string) error { return f.run(c) },
	}
	s := c.Flags()
	s.IntVar(&f.Workers, "workers", 8, "`number` of worker processes, 1 to 64")
	s.DurationVar(&f.Duration, "duration", 20*time.Second, "how long it goes on, 500ms to 24h")
	s.Uint64Var(&f.Seed, "seed", 1, "`number` that the order of the kills and the pauses between them follow from")
	s.BoolVar(&f.Unlocked, "without-lock", false, "let the workers count without the lock, to see what is lost then")
	s.StringVar(&f.History, "history", "", "new or empty `directory` for the events of each worker, for poundlock-lab judge")
	s.BoolVar(&f.json, "json", false, "print one JSON object, the verdict, and nothing else")
	return c
}

func (f *demoFlags) run(c *cobra.Command) error {
	if err := cmp.Or(
		cli.Within("--workers", f.Workers, 1, 64),
		cli.Within("--duration", f.Duration, 500*time.Millisecond, 24*time.Hour),
	); err != nil {
		return err
	}
	if f.History != "" {
		if err := emptyDirectory(f.History); err != nil {
			return cli.Usagef("--history: %w", err)
		}
	}
	out := c.OutOrStdout()
	if !f.json {
		f.Out = out
		_, _, f.Terminal = cli.TerminalSize(out)
	}
	f.By = "poundlock demo " + cli.Version()
	f.Server = []string{tetherName, "serve", "--log-level", "error", "--clock-bound", demo.ClockBound.String()}
	f.Worker = demoWorkerName
	ctx, stop := signal.NotifyContext(c.Context(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	r, err := demo.Run(ctx, f.Config)
	if err != nil {
		return cli.Exit(cli.ExitError, fmt.Errorf("demo: %w", err))
	}
	if f.json {
		err = cli.JSON(out, r)
	} else {
		_, err = io.WriteString(out, r.Text())
	}
	if err == nil && r.Lost != 0 {
		return &cli.Status{Code: cli.ExitViolated}
	}
	return cli.Exit(cli.ExitInternal, err)
}

// emptyDirectory makes a directory, which may be there if nothing is in it.
func emptyDirectory(path string) error {
	if err := os.MkdirAll(path, 0o777); err != nil {
		return err
	}
	files, err := os.ReadDir(path)
	if err == nil && len(files) > 0 {
		err = fmt.Errorf("%s is not empty: what another run has left would be judged with this one", path)
	}
	return err
}
