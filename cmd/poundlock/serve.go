package main

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

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

// serveFlags are the flags of serve.
type serveFlags struct {
	clusterFlags
	c     server.Config
	api   string
	admin string
	audit string
	drain time.Duration
	level slog.Level
}

const defaultDrain = 10 * time.Second

func serveCommand() *cobra.Command {
	f := &serveFlags{}
	cmd := &cobra.Command{
		Use:     "serve --name NAME --servers NAME=HOST:PORT,...",
		Short:   "Run one server of a cluster",
		Long:    serveLong,
		Example: "  poundlock serve --config poundlock.yaml --name s1",
		Args:    cli.NoArguments,
		RunE:    func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	s := cmd.Flags()
	f.register(s)
	s.StringVar(&f.api, "api", "", "serve locks over gRPC and HTTP with JSON at `HOST:PORT`, with the TLS of --tls-cert")
	s.StringVar(&f.admin, "admin", "", "answer /metrics, /healthz and /debug/pprof/ at `HOST:PORT` or unix:/path, with the TLS of --tls-cert")
	s.StringVar(&f.audit, "audit", "", "append a line of JSON for each support given or ended to this `FILE`, - for standard output; SIGHUP opens it again")
	s.DurationVar(&f.drain, "drain-timeout", defaultDrain,
		"after SIGTERM or SIGINT, how long to wait until nobody holds a lock here; 0: not at all")
	s.StringVar(&f.c.Handover, "handover", "",
		"take the table over at `unix:/path` from the process that serves under this name, and later hand it over there")
	s.DurationVar(&f.c.SitOut, "sit-out", 0,
		"stay mute for so long after a start without a hand-over: longer than all waits and holds, it is no loss of memory")
	s.StringVar(&f.c.Name, "name", "", "`NAME` of this one among --servers")
	s.StringVar(&f.c.Listen, "listen", "", "where to accept connections, `HOST:PORT` or unix:/path (default its address in --servers)")
	s.BoolVar(&f.c.Insecure, "insecure", false, "allow to listen off loopback without TLS: anybody can take and release locks")
	s.DurationVar(&f.c.Lease, "lease", slots.DefaultLease, "the longest lease that a client gets, 20ms to 10m")
	s.IntVar(&f.c.MaxLocks, "max-locks", 1<<21, "`number` of locks that it keeps for all clients together; new names are refused beyond")
	s.IntVar(&f.c.MaxSessions, "max-sessions", 1<<14, "`number` of clients that may have a session")
	s.IntVar(&f.c.MaxSessionsOfOne, "max-sessions-per-host", 0, "`number` of these from one address, or with one certificate; 0: no more than are left for others")
	s.IntVar(&f.c.MaxWaiters, "max-waiters", 1<<22, "`number` of clients that may hold or wait for a lock, each counted once for each lock")
	s.BoolVar(&f.c.RequireClockSync, "require-clock-sync", false, "refuse to serve when the kernel's clock is not synchronised")
	s.Var(logLevel{&f.level}, "log-level", "lowest `LEVEL` that is logged: debug, info, warn or error")
	return cmd
}

// run runs a server and what is wanted beside it.
func (f *serveFlags) run(cmd *cobra.Command) (err error) {
	c := &f.c
	f.log = slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: &f.level}))
	readTable := f.tableReader(cmd, "servers", func(table []node.Peer) ([]node.Peer, error) { return slots.Check(table, f.noAmnesia) })
	cluster, err := f.config(cmd)
	if err != nil {
		return err
	}
	if c.TLS, err = f.serverTLS(); err != nil {
		return cli.Exit(cli.ExitUsage, err)
	}
	c.Servers, c.Epoch, c.ClockBound, c.NoAmnesia = cluster.Servers, cluster.Epoch, cluster.ClockBound, cluster.NoAmnesia
	c.Log = f.log
	if err := f.check(); err != nil {
		return err
	}
	if f.store != nil {
		ctx, stop := context.WithCancel(cmd.Context())
		defer stop()
		go f.store.Watch(ctx)
	}
	end, stop := awaitSignals(cmd.Context())
	defer stop()
	if f.audit != "" {
		if c.Audit, err = server.OpenAudit(c.Name, f.audit, c.Log); err != nil {
			return cannotServe("--audit", err)
		}
		defer func() { err = errors.Join(err, c.Audit.Close()) }()
	}
	x, err := f.open(end.asked, cluster)
	if err == nil {
		defer onHangup(c.Audit.Reopen, func() { x.reloadTable(readTable) })()
		err = x.run(end)
	}
	status := new(cli.Status)
	switch {
	case err == nil, errors.As(err, &status):
		return err
	case errors.Is(err, server.ErrMoved): // as it was told to; the log says so
		return nil
	case errors.Is(err, server.ErrInsecure):
		status = &cli.Status{Code: cli.ExitUsage, Hint: "give --tls-cert and --tls-key, or --insecure on a network that you trust"}
	case errors.Is(err, server.ErrClock):
		status = &cli.Status{Code: cli.ExitError, Hint: "start a time service such as chrony, or leave out --require-clock-sync"}
	case errors.Is(err, server.ErrHandover):
		status = &cli.Status{Code: cli.ExitError, Hint: "the predecessor goes on serving; to replace it all the same, stop it first"}
	default:
		status = &cli.Status{Code: cli.ExitError, Hint: portHint(err)}
	}
	status.Err = err
	return status
}

func (f *serveFlags) check() error {
	c := &f.c
	var names []string
	for _, p := range c.Servers {
		names = append(names, p.Name)
	}
	switch {
	case c.Name == "":
		return cli.Usagef("no name given").WithHint("say with --name which of --servers this one is")
	case !slices.Contains(names, c.Name):
		return cli.Usagef("--name: %q is not in --servers, which has %s", c.Name, strings.Join(names, ", "))
	}
	if err := cmp.Or(
		cli.Within("--lease", c.Lease, node.MinLease, node.MaxLease),
		cli.AtLeast("--max-locks", c.MaxLocks, 1),
		cli.AtLeast("--max-sessions", c.MaxSessions, 1),
		cli.AtLeast("--max-sessions-per-host", c.MaxSessionsOfOne, 0),
		cli.AtLeast("--max-waiters", c.MaxWaiters, 1),
		cli.AtLeast("--drain-timeout", f.drain, 0),
		cli.AtLeast("--sit-out", c.SitOut, 0),
	); err != nil {
		return err
	}
	if c.Listen != "" {
		if err := transport.CheckListen(c.Listen); err != nil {
			return cli.Usagef("--listen: %w", err)
		}
	}
	if c.Handover == "" {
		return nil
	}
	if err := server.CheckHandover(c.Handover); err != nil {
		return cli.Usagef("--handover: %w", err)
	}
	if f.api != "" {
		return cli.Usagef("--api and --handover exclude each other: the locks of the API end with their process").
			WithHint("serve the API from a process that is another server, and drain that one")
	}
	return nil
}

// An ending is how a server is told to end.
type ending struct {
	asked context.Context // ends with the first signal
	now   context.Context // ends with the second one
}

// awaitSignals listens for SIGTERM and SIGINT until stop is called.
func awaitSignals(ctx context.Context) (e ending, stop func()) {
	now, atOnce := context.WithCancel(ctx)
	asked, ask := context.WithCancel(now)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		for _, cancel := range []func(){ask, atOnce} {
			select {
			case <-signals:
				cancel()
			case <-now.Done():
				return
			}
		}
	}()
	return ending{asked, now}, func() { signal.Stop(signals); atOnce() }
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
