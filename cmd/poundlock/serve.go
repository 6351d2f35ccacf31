package main

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/poundlock/poundlock"
	"github.com/poundlock/poundlock/internal/cli"
	"github.com/poundlock/poundlock/internal/slots"
	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/server"
	"github.com/poundlock/poundlock/transport"
)

const serveLong = `Serve is one server of a cluster. It holds locks in memory only: a server that
is killed may be started again at once, empty, under the same name. Of four
servers one may do so while somebody waits for or holds a lock, of seven two, of
ten three.

All servers and clients need the same --servers, --epoch and --clock-bound. Every
flag can also stand in the environment (POUNDLOCK_CLOCK_BOUND for --clock-bound)
or in the YAML file of --config (clock-bound: 50ms); a flag beats the
environment, which beats the file.

On SIGHUP it reads --servers and --epoch from the file of --config again, where the
addresses may have changed and the epoch must have grown. When its own address is
another one then, it ends: its slot has moved.

On SIGTERM or SIGINT it drains: it gives nothing to anybody any more, and ends when
nobody holds a lock here, or after --drain-timeout; a second signal ends it at once.
With --handover a process that is started beside it, with the same flags, takes its
table over, and it ends: that costs nobody anything.

It logs to stderr and ends with status 0 on SIGTERM or SIGINT, when its slot has
moved, or when it has handed its table over. Other statuses: 1 when it cannot serve, 64 when it was called wrongly.`

func serveCommand() *cobra.Command {
	var f clusterFlags
	var c server.Config
	var b beside
	var life lifeFlags
	level := slog.LevelInfo
	cmd := &cobra.Command{
		Use:     "serve --name NAME --servers NAME=HOST:PORT,...",
		Short:   "Run one server of a cluster",
		Long:    serveLong,
		Example: "  poundlock serve --config poundlock.yaml --name s1",
		Args:    cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.log = slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: &level}))
			source := newTableSource(cmd, &f)
			cluster, err := f.config(cmd)
			if err != nil {
				return err
			}
			if c.TLS, err = f.serverTLS(); err != nil {
				return &cli.Status{Code: cli.ExitUsage, Err: err}
			}
			c.Servers = peers(cluster)
			c.Epoch, c.ClockBound, c.NoAmnesia = cluster.Epoch, cluster.ClockBound, cluster.NoAmnesia
			c.Log = f.log
			if f.store != nil {
				ctx, stop := context.WithCancel(cmd.Context())
				defer stop()
				go f.store.Watch(ctx)
			}
			b.flags, b.cluster = &f, cluster
			return serve(cmd.Context(), c, source, &b, &life)
		},
	}
	s := cmd.Flags()
	f.register(s)
	b.api.register(s)
	b.admin.register(s)
	life.register(s)
	s.StringVar(&c.Name, "name", "", "`NAME` of this one among --servers")
	s.StringVar(&c.Listen, "listen", "", "where to accept connections, `HOST:PORT` or unix:/path (default its address in --servers)")
	s.BoolVar(&c.Insecure, "insecure", false, "allow to listen off loopback without TLS: anybody can take and release locks")
	s.DurationVar(&c.Lease, "lease", slots.DefaultLease, "the longest lease that a client gets, 20ms to 10m")
	s.IntVar(&c.MaxLocks, "max-locks", 1<<21, "`number` of locks that it keeps for all clients together; new names are refused beyond")
	s.IntVar(&c.MaxSessions, "max-sessions", 1<<14, "`number` of clients that may have a session")
	s.IntVar(&c.MaxSessionsOfOne, "max-sessions-per-host", 0, "`number` of these from one address, or with one certificate; 0: no more than are left for others")
	s.IntVar(&c.MaxWaiters, "max-waiters", 1<<22, "`number` of clients that may hold or wait for a lock, each counted once for each lock")
	s.BoolVar(&c.RequireClockSync, "require-clock-sync", false, "refuse to serve when the kernel's clock is not synchronised")
	s.Var(logLevel{&level}, "log-level", "lowest `LEVEL` that is logged: debug, info, warn or error")
	return cmd
}

// serve runs a server and what is wanted beside it.
func serve(
	ctx context.Context, c server.Config, source *tableSource, b *beside, life *lifeFlags,
) (err error) {
	if c.Name == "" {
		return &cli.Status{
			Code: cli.ExitUsage,
			Err:  errors.New("no name given"),
			Hint: "say with --name which of --servers this one is",
		}
	}
	var names []string
	for _, p := range c.Servers {
		names = append(names, p.Name)
	}
	if !slices.Contains(names, c.Name) {
		return cli.Usagef("--name: %q is not in --servers, which has %s", c.Name, strings.Join(names, ", "))
	}
	if c.Lease < node.MinLease || c.Lease > node.MaxLease {
		return cli.Usagef("--lease %v: want %v to %v", c.Lease, node.MinLease, node.MaxLease)
	}
	if c.MaxLocks < 1 {
		return cli.Usagef("--max-locks %d: want at least 1", c.MaxLocks)
	}
	if c.MaxSessions < 1 {
		return cli.Usagef("--max-sessions %d: want at least 1", c.MaxSessions)
	}
	if c.MaxSessionsOfOne < 0 {
		return cli.Usagef("--max-sessions-per-host %d: want at least 0", c.MaxSessionsOfOne)
	}
	if c.MaxWaiters < 1 {
		return cli.Usagef("--max-waiters %d: want at least 1", c.MaxWaiters)
	}
	if c.Listen != "" {
		if err := transport.CheckListen(c.Listen); err != nil {
			return cli.Usagef("--listen: %w", err)
		}
	}
	if err := life.configure(&c, b.api.addr); err != nil {
		return err
	}
	end, stop := life.awaitSignals(ctx)
	defer stop()
	if c.Audit, err = b.admin.openAudit(c); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Audit.Close()) }()
	s, err := server.New(c)
	var x *annex
	if err == nil {
		if x, err = b.open(end.asked, s, c); err != nil {
			err = errors.Join(err, s.Close())
		}
	}
	switch {
	case errors.Is(err, server.ErrInsecure):
		return &cli.Status{
			Code: cli.ExitUsage,
			Err:  err,
			Hint: "give --tls-cert and --tls-key, or --insecure on a network that you trust",
		}
	case errors.Is(err, server.ErrClock):
		return &cli.Status{
			Code: cli.ExitError,
			Err:  err,
			Hint: "start a time service such as chrony, or leave out --require-clock-sync",
		}
	case err == nil:
		defer onHangup(c.Audit.Reopen, source.reload(c.Log, s.SetTable, c.Audit != nil))()
		err = x.run(end, s, c)
	}
	if status := new(cli.Status); errors.As(err, &status) {
		return err
	}
	if errors.Is(err, server.ErrMoved) { // as it was told to; the log says so
		return nil
	}
	if errors.Is(err, server.ErrHandover) {
		return &cli.Status{
			Code: cli.ExitError,
			Err:  err,
			Hint: "the predecessor goes on serving; to replace it all the same, stop it first",
		}
	}
	if err != nil {
		return &cli.Status{Code: cli.ExitError, Err: err, Hint: portHint(err)}
	}
	return nil
}

// peers is the slot table of c.
func peers(c poundlock.Config) []node.Peer {
	table := make([]node.Peer, len(c.Servers))
	for i, s := range c.Servers {
		table[i] = node.Peer(s)
	}
	return table
}

// A logLevel is a flag.
type logLevel struct{ *slog.Level }

func (l logLevel) Set(text string) error {
	if l.UnmarshalText([]byte(text)) != nil {
		return errors.New("want debug, info, warn or error")
	}
	return nil
}

func (l logLevel) Type() string { return "level" }
