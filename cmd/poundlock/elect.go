package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/poundlock/poundlock"
	"github.com/poundlock/poundlock/internal/cli"
	"github.com/poundlock/poundlock/internal/supervise"
	"github.com/poundlock/poundlock/server/status"
	"github.com/poundlock/poundlock/transport"
)

const electLong = `Elect campaigns in the election NAME and runs COMMAND while this process is the
leader. When COMMAND ends by itself, or by a signal, the leader resigns and exits as
COMMAND did. When the leadership is lost, or --max-hold is over, COMMAND is ended as
poundlock lock does it, and elect campaigns again.

At most one leads at a time: the leader holds the lock NAME. COMMAND finds the same
variables as under poundlock lock, and is watched over in the same way: when elect is
killed the next one leads as soon as COMMAND has ended. While no
quorum of the servers can be reached elect goes on campaigning, once it has reached
one.

With --peer it goes through a peer of this host, and there are no servers: see
poundlock peer.

With --observe it runs nothing and does not campaign: it prints who leads, now and
after each change, until it is ended by a signal. Lines are "leader LABEL ID TOKEN"
(the token "-" where it is not known), "nobody", or "unknown" while no
quorum of the servers answers. With --json each line is an object.

Exit status: that of COMMAND, or 128 + the number of the signal that ended it or the
campaign; 64 when called wrongly or without servers, 69 when no quorum of the
servers can be reached at the start, 70 when a line cannot be written, 126 when
COMMAND cannot be run, 127 when it is not found.`

// electFlags are the flags of elect.
type electFlags struct {
	holdFlags
	observe bool
	json    bool
}

func electCommand() *cobra.Command {
	var f electFlags
	cmd := &cobra.Command{
		Use:   "elect NAME [flags] -- COMMAND [ARGUMENT...]",
		Short: "Run a command while this process is the elected leader",
		Long:  electLong,
		Example: "  poundlock elect scheduler -- ./scheduler\n" +
			"  poundlock elect --observe scheduler",
		RunE: func(cmd *cobra.Command, args []string) error {
			dash := cmd.ArgsLenAtDash()
			if f.observe && dash < 0 && len(args) == 1 {
				return f.run(cmd, args[0], nil)
			}
			if f.observe || dash != 1 || len(args) == 1 {
				return cli.Usagef("elect wants a name, two dashes and a command, or --observe and a name").
					WithHint("for example: " + cmd.CommandPath() + " --dev hello -- echo leading")
			}
			return f.run(cmd, args[0], args[1:])
		},
	}
	s := cmd.Flags()
	f.register(s, supervise.Term, supervise.Kill)
	s.BoolVar(&f.observe, "observe", false, "print who leads, now and after each change")
	s.BoolVar(&f.json, "json", false, "with --observe: print JSON objects, one a line")
	return cmd
}

// run returns an *cli.Status with the command's status, or what went wrong.
func (f *electFlags) run(cmd *cobra.Command, name string, command []string) error {
	if err := transport.CheckName(name); err != nil {
		return cli.Exit(cli.ExitUsage, err)
	}
	if err := f.fillPeer(cmd); err != nil {
		return err
	}
	if f.json && !f.observe {
		return cli.Usagef("--json is for --observe")
	}
	if err := f.check(cmd); err != nil {
		return err
	}
	return f.while(cmd, func(waiting *interruption, signals chan os.Signal) (supervise.Result, error) {
		return f.elect(cmd, waiting, signals, name, command)
	})
}

func (f *electFlags) elect(
	cmd *cobra.Command, waiting *interruption, signals chan os.Signal, name string, command []string,
) (result supervise.Result, err error) {
	e, err := f.electorate(cmd, waiting, name)
	if err != nil {
		return result, err
	}
	defer e.close()
	if f.observe {
		return result, cli.Exit(cli.ExitInternal, f.follow(e.observe(waiting), name, cmd.OutOrStdout()))
	}
	for {
		var lost error
		result, lost, err = f.term(waiting, e, name, command, signals)
		switch {
		case err != nil:
			return result, err
		case lost == nil, result.Asked != 0, result.Interrupted:
			return result, &cli.Status{Code: result.Status}
		}
		f.say("%v: campaigning again", lost)
		waiting = listen(cmd.Context(), signals)
	}
}

// An electorate is those among whom there is an election: the clients of a cluster, or peers. Who leads holds the lock of
// the election's name.
type electorate struct {
	lock    func(context.Context) (grant, error)
	why     func(context.Context) string // who leads; "" where that is not known
	observe func(context.Context) iter.Seq2[poundlock.Leader, error]
	goodbye func() farewell
	close   func()
}

// electorate reaches those that the flags name.
func (f *electFlags) electorate(cmd *cobra.Command, ctx context.Context, name string) (e electorate, err error) {
	if f.peer != "" {
		r, err := f.dialPeer(ctx)
		if err != nil {
			return e, err
		}
		c := &candidate{f: f, name: name, remote: r}
		why := func(context.Context) string { return "" }
		return electorate{c.lock, why, c.observe, func() farewell { return c.remote.farewell() }, c.close}, nil
	}
	h, err := f.join(cmd, ctx)
	if err != nil {
		return e, err
	}
	if err := f.dial(cmd, ctx, h); err != nil {
		h.close()
		return e, err
	}
	m := h.Mutex(name)
	return electorate{
		lock: func(ctx context.Context) (grant, error) {
			g, err := m.Lock(ctx)
			if err != nil {
				return nil, err
			}
			return g, nil
		},
		why:     func(ctx context.Context) string { return inside(ctx, h.config, []string{name}, 0, "leads") },
		observe: h.Election(name).Observe,
		goodbye: func() farewell { return f.farewell(h) },
		close:   h.close,
	}, nil
}

// A candidate campaigns through a peer, by a new session where the last one was of no use: the peer may have
// restarted.
type candidate struct {
	f    *electFlags
	name string
	*remote
}

func (c *candidate) lock(ctx context.Context) (grant, error) {
	if c.remote == nil {
		var err error
		if c.remote, err = c.f.dialPeer(ctx); err != nil {
			return nil, err
		}
	}
	g, err := c.remote.lock(ctx, []string{c.name}, nil, false)
	if err != nil {
		c.close()
		c.remote = nil
	}
	return g, err
}

func (c *candidate) observe(ctx context.Context) iter.Seq2[poundlock.Leader, error] {
	return c.remote.observe(ctx, c.name)
}

func (c *candidate) close() {
	if c.remote != nil {
		c.remote.close()
	}
}

// term is one campaign and what follows. A signal that ends the campaign is an error.
func (f *electFlags) term(
	waiting *interruption, e electorate, name string, command []string, signals chan os.Signal,
) (result supervise.Result, lost, err error) {
	return f.runUnder(waiting, []string{name}, command, signals, e.goodbye, func() (grant, error) {
		stop := f.sayWhy(waiting, fmt.Sprintf("to lead %q", name), e.why)
		g, err := f.campaign(waiting, e.lock)
		stop()
		if err != nil {
			return nil, f.explain(err)
		}
		return g, nil
	})
}

// campaign goes on for as long as that may help: who stands by is to be there when
// the servers, or the peers, are again.
func (f *electFlags) campaign(ctx context.Context, lock func(context.Context) (grant, error)) (grant, error) {
	for said := false; ; said = true {
		g, err := lock(ctx)
		again := errors.Is(err, poundlock.ErrNoQuorum) || errors.Is(err, poundlock.ErrNotAcquired)
		if !again || ctx.Err() != nil {
			return g, err
		}
		if !said {
			f.say("%v: campaigning on", trimPrefix(err))
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
	}
}

// A leaderLine is what elect --observe --json prints. Its token is text, because
// JSON readers round numbers beyond 2^53.
type leaderLine struct {
	Name   string      `json:"name"`
	Leader *leaderJSON `json:"leader"` // null: nobody, or unknown
	Error  string      `json:"error,omitempty"`
}

type leaderJSON struct {
	ID    string `json:"id"`
	Label string `json:"label"`
	Token uint64 `json:"token,string,omitempty"`
}

// follow prints who leads.
func (f *electFlags) follow(observed iter.Seq2[poundlock.Leader, error], name string, out io.Writer) error {
	for l, err := range observed {
		if !f.json {
			err = f.printLeader(out, l, err)
		} else {
			line := leaderLine{Name: name}
			if l != (poundlock.Leader{}) {
				line.Leader = &leaderJSON{l.ID, l.Label, l.Token}
			}
			if err != nil {
				line.Error = trimPrefix(err).Error()
			}
			err = json.NewEncoder(out).Encode(line)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (f *electFlags) printLeader(out io.Writer, l poundlock.Leader, why error) error {
	line := "nobody"
	switch {
	case why != nil:
		f.say("%v", trimPrefix(why))
		line = "unknown"
	case l.ID != "":
		token := "-"
		if l.Token != 0 {
			token = strconv.FormatUint(l.Token, 10)
		}
		line = fmt.Sprintf("leader %s %s %s", status.Printable(cmp.Or(l.Label, "-")), l.ID, token)
	}
	_, err := fmt.Fprintln(out, line)
	return err
}
