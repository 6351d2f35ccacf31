package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/poundlock/poundlock/internal/cli"
	"github.com/poundlock/poundlock/server"
	"github.com/poundlock/poundlock/server/status"
)

const statusLong = `Status asks every server what it knows and shows it together: the servers, and
the locks that somebody holds or waits for.

SUPPORT is how many servers support a holder and have a session with it. A client
needs a quorum of them to get in and then stays in while a few are left; BUDGET is how
many more of them may lose their memory before it must stop. Of several that share a lock these
are of the one that has the least. Ages count from the request, of the one that asked
first, and are as exact as clocks agree. Below the servers a line says whether one of
them may be restarted now without harm to any holder, and without two clients getting
in because one of them has not heard of an earlier restart.

With --watch it shows that again and again: on a terminal in the same place. With --json
each time is one line then. ^C ends it.

With --dev it shows the development cluster of this user, and starts none.

Exit status: 0, also when ^C ends --watch; 69 when no quorum can be reached (what is
known is shown) or no development cluster runs, 64 when called wrongly, 70 when the
result cannot be written.`

// statusFlags are the flags of status.
type statusFlags struct {
	observerFlags
	json  bool
	limit int
	watch time.Duration
}

const (
	shownLocks    = 100 // without --limit, for people
	watchInterval = "2s"
)

func statusCommand() *cobra.Command {
	var f statusFlags
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the servers of a cluster, and who holds and waits for locks",
		Long:  statusLong,
		Example: "  poundlock status --dev\n" +
			"  until poundlock status --json --limit 0 | jq -e .settled; do sleep 1; done",
		RunE: func(cmd *cobra.Command, args []string) error {
			// A flag with an optional value takes it after an equal sign only.
			if len(args) == 1 && cmd.Flags().Changed("watch") && cmd.Flags().Set("watch", args[0]) == nil {
				args = nil
			}
			if err := cli.NoArguments(cmd, args); err != nil {
				return err
			}
			return f.run(cmd)
		},
	}
	s := cmd.Flags()
	f.register(s, "show this user's development cluster, if there is one")
	s.BoolVar(&f.json, "json", false, "print one JSON object")
	s.IntVar(&f.limit, "limit", -1, "list `NUMBER` locks at most (default 100, with --json all)")
	s.Lookup("limit").DefValue = "0" // help says what it is
	s.DurationVar(&f.watch, "watch", 0, "show it again and again, each `INTERVAL`")
	s.Lookup("watch").NoOptDefVal = watchInterval
	return cmd
}

func (f *statusFlags) run(cmd *cobra.Command) error {
	o, err := f.observe(cmd)
	if err != nil {
		return err
	}
	defer o.close()
	switch watch := cmd.Flags().Changed("watch"); {
	case cmd.Flags().Changed("limit") && f.limit < 0:
		return cli.Usagef("--limit %d: want 0 or more", f.limit)
	case watch && f.watch < 100*time.Millisecond:
		return cli.Usagef("--watch %v: want 100ms or more", f.watch)
	case watch:
		return f.repeat(cmd, o)
	}
	c := f.ask(cmd.Context(), o, f.most(cmd.OutOrStdout()))
	return cmp.Or(cli.Exit(cli.ExitInternal, f.print(cmd.OutOrStdout(), c)), unreachable(c))
}

// repeat shows the status until a signal comes.
func (f *statusFlags) repeat(cmd *cobra.Command, o *observer) error {
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	tick := time.NewTicker(f.watch)
	defer tick.Stop()
	out := cmd.OutOrStdout()
	for {
		c := f.ask(ctx, o, f.most(out))
		if ctx.Err() != nil {
			return nil
		}
		if err := f.print(out, c); err != nil {
			return cli.Exit(cli.ExitInternal, err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// most is how many locks are listed: on a terminal that is watched, as many as fit.
func (f *statusFlags) most(out io.Writer) int {
	switch {
	case f.limit >= 0:
		return f.limit
	case f.json:
		return int(^uint(0) >> 1)
	}
	if _, height, _ := cli.TerminalSize(out); f.watch > 0 && height > 0 {
		const others = 20 // lines: servers, headings, errors
		return max(1, min(shownLocks, height-others))
	}
	return shownLocks
}

// ask reads about all locks, because the budget is of all, and keeps as many as are
// to be shown.
func (f *statusFlags) ask(ctx context.Context, o *observer, most int) *status.Cluster {
	locks := []status.Lock{}
	c := status.Ask(ctx, o.Observer, server.LockQuery{}, func(l status.Lock) bool {
		if len(locks) < most {
			locks = append(locks, l)
		}
		return true
	})
	c.Locks = locks
	return c
}

// print prints one, or one of many: over the last one on a terminal, else after it.
func (f *statusFlags) print(out io.Writer, c *status.Cluster) error {
	if f.json {
		e := json.NewEncoder(out)
		if f.watch == 0 {
			e.SetIndent("", "  ")
		}
		return e.Encode(c)
	}
	fill := func(line string) string { return cli.Fit(out, line) }
	if f.watch == 0 {
		return c.Text(out, fill)
	}
	var b bytes.Buffer
	if _, _, terminal := cli.TerminalSize(out); terminal {
		b.WriteString("\x1b[H\x1b[2J") // home, and clear
	}
	fmt.Fprintln(&b, time.Now().Format(time.DateTime))
	_ = c.Text(&b, fill) // to memory
	fmt.Fprintln(&b)
	_, err := b.WriteTo(out)
	return err
}
