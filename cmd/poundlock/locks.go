package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/poundlock/poundlock/internal/cli"
	"github.com/poundlock/poundlock/server"
	"github.com/poundlock/poundlock/server/status"
	"github.com/poundlock/poundlock/transport"
)

const locksLong = `Locks lists the locks that somebody holds or waits for, by name: all, or those whose
names begin with PREFIX. The servers search for them, and the list is printed as it
comes, so that it may be long.

With --json each line is one object, as in the list of locks of poundlock status.

Exit status: 0, 69 when no quorum can be reached (what is known is shown) or no
development cluster runs, 64 when called wrongly, 70 when the result cannot be written.`

// locksFlags are the flags of locks.
type locksFlags struct {
	observerFlags
	json  bool
	limit int
}

func locksCommand() *cobra.Command {
	var f locksFlags
	cmd := &cobra.Command{
		Use:     "locks [PREFIX]",
		Short:   "List locks, those whose names begin with a prefix",
		Long:    locksLong,
		Example: "  poundlock locks deploy/\n  poundlock locks --json | jq -r 'select(.waiting > 10) | .name'",
		RunE: func(cmd *cobra.Command, args []string) error {
			prefix := ""
			switch len(args) {
			case 0:
			case 1:
				prefix = args[0]
			default:
				return cli.Usagef("locks takes one prefix: what is %q?", args[1])
			}
			return f.run(cmd, prefix)
		},
	}
	s := cmd.Flags()
	cmd.ValidArgsFunction = f.lockNames
	f.register(s, "list those of this user's development cluster, if there is one")
	s.BoolVar(&f.json, "json", false, "print one JSON object a line")
	s.IntVar(&f.limit, "limit", 0, "list `NUMBER` locks at most (default all)")
	return cmd
}

func (f *locksFlags) run(cmd *cobra.Command, prefix string) error {
	if f.limit < 0 || f.limit == 0 && cmd.Flags().Changed("limit") {
		return cli.Usagef("--limit %d: want 1 or more", f.limit)
	}
	if prefix != "" {
		if err := transport.CheckName(prefix); err != nil { // no lock's name begins so
			return cli.Exit(cli.ExitUsage, err)
		}
	}
	o, err := f.observe(cmd)
	if err != nil {
		return err
	}
	defer o.close()
	out := bufio.NewWriter(cmd.OutOrStdout())
	list := f.lister(out)
	lines, failed := 0, error(nil)
	c := status.Ask(cmd.Context(), o.Observer, server.LockQuery{Prefix: prefix, Few: f.limit}, func(l status.Lock) bool {
		failed = list(lines, &l)
		lines++
		return failed == nil && lines != f.limit
	})
	if err := errors.Join(failed, list(lines, nil), out.Flush()); err != nil {
		return cli.Exit(cli.ExitInternal, err)
	}
	for _, x := range c.Servers {
		if x.Error != "" {
			fmt.Fprintf(cmd.ErrOrStderr(), "poundlock: %s: %s\n", x.Name, status.Printable(x.Error))
		}
	}
	return unreachable(c)
}

// lister prints the k-th of many locks as it comes, and nil behind the last one. Columns are
// aligned among so many lines, so that a long list needs no memory.
func (f *locksFlags) lister(out io.Writer) func(k int, l *status.Lock) error {
	const alignedLines = 1000
	lines, table := json.NewEncoder(out), tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	return func(k int, l *status.Lock) error {
		switch {
		case l == nil:
			return table.Flush()
		case f.json:
			return lines.Encode(l)
		case k == 0:
			fmt.Fprintln(table, l.Heading())
		case k%alignedLines == 0:
			if err := table.Flush(); err != nil {
				return err
			}
		}
		_, err := fmt.Fprintf(table, "%s\t%d\n", l.Columns(), l.Waiting)
		return err
	}
}
