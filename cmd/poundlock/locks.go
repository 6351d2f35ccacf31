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
			return &cli.Status{Code: cli.ExitUsage, Err: err}
		}
	}
	o, err := f.observe(cmd)
	if err != nil {
		return err
	}
	defer o.close()
	answers := o.Sessions(cmd.Context())
	s := statusOf(answers)
	list := newLister(cmd.OutOrStdout(), f.json, s)
	var failed error
	o.Locks(cmd.Context(), answers, server.LockQuery{Prefix: prefix, Few: f.limit}, func(same []*server.Lock) bool {
		for _, l := range s.add(same) {
			if failed = list.add(l); failed != nil {
				return false
			}
		}
		return f.limit == 0 || s.LockCount < f.limit
	})
	if err := errors.Join(failed, list.end()); err != nil {
		return &cli.Status{Code: cli.ExitInternal, Err: err}
	}
	s.conclude(answers)
	for _, x := range s.Servers {
		if x.Error != "" {
			fmt.Fprintf(cmd.ErrOrStderr(), "poundlock: %s: %s\n", x.Name, printable(x.Error))
		}
	}
	return s.unreachable(answers)
}

// A lister prints locks as they come. Columns are aligned among so many lines, so
// that a long list needs no memory.
type lister struct {
	out     *bufio.Writer
	json    *json.Encoder // nil: for people
	table   *tabwriter.Writer
	cluster *clusterStatus
	lines   int
}

const alignedLines = 1000

func newLister(out io.Writer, asJSON bool, s *clusterStatus) *lister {
	l := &lister{out: bufio.NewWriter(out), cluster: s}
	if asJSON {
		l.json = json.NewEncoder(l.out)
		return l
	}
	l.table = tabwriter.NewWriter(l.out, 0, 0, 2, ' ', 0)
	return l
}

func (l *lister) add(x lockStatus) error {
	if l.json != nil {
		return l.json.Encode(x)
	}
	if l.lines == 0 {
		fmt.Fprintln(l.table, l.cluster.grouped("GROUP")+"LOCK\tKIND\tHOLDER\tSUPPORT\tBUDGET\tAGE\tWAITERS")
	}
	fmt.Fprintf(l.table, "%s\t%d\n", l.cluster.columns(&x), x.Waiting)
	if l.lines++; l.lines%alignedLines == 0 {
		return l.table.Flush()
	}
	return nil
}

func (l *lister) end() error {
	if l.table != nil {
		if err := l.table.Flush(); err != nil {
			return err
		}
	}
	return l.out.Flush()
}
