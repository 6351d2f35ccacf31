package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/poundlock/poundlock/api"
	"github.com/poundlock/poundlock/internal/cli"
	listening "github.com/poundlock/poundlock/internal/listen"
	"github.com/poundlock/poundlock/internal/members"
	"github.com/poundlock/poundlock/internal/slots"
	"github.com/poundlock/poundlock/metrics"
	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/peers"
	"github.com/poundlock/poundlock/server"
	"github.com/poundlock/poundlock/transport"
)

const peerLong = `Peer is one of a few processes that lock among themselves, without servers: one on
each host, and no others. Commands of its host lock through it:

  poundlock lock --peer unix:/run/poundlock.sock NAME -- COMMAND
  poundlock elect --peer unix:/run/poundlock.sock NAME -- COMMAND

The first time all of them are started with --bootstrap, and begin when all have met.
Later each one that was restarted joins the others, without --bootstrap. As long as a
majority of them has connections with each other, it goes on. Whoever is without loses
its locks before the others go on without it.

--algorithm names another one. Those without "recovery" in their name need every peer:
while one is down, nobody gets a lock; and when it comes back as another process, all of
them have to be restarted.

A peer that moves to another address is restarted there. The new address goes into the file of
--config of all peers, with a higher epoch, and each gets a SIGHUP: it reads --peers and --epoch there again.

It logs to stderr and ends with status 0 on SIGTERM or SIGINT. Other statuses: 1 when it
cannot serve, 64 when it was called wrongly.`

// peerFlags are the flags of peer.
type peerFlags struct {
	clusterFlags
	c       peers.Config
	options []string
	peers   string
	listen  string
	api     string
	admin   string
	level   slog.Level

	readTable func() (uint64, []node.Peer, error) // of --peers, again
}

func peerCommand() *cobra.Command {
	f := &peerFlags{}
	cmd := &cobra.Command{
		Use:     "peer --name NAME --peers NAME=HOST:PORT,... --api unix:/path",
		Short:   "Run one of some peers that lock without servers",
		Long:    peerLong,
		Example: "  poundlock peer --config peer.yaml --name p1 --api unix:/run/poundlock.sock",
		Args:    cli.NoArguments,
		RunE:    func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	s := cmd.Flags()
	f.register(s, "serve locks to this host at `unix:/path`, or over gRPC and HTTP with JSON at HOST:PORT")
	s.StringVar(&f.c.Algorithm, "algorithm", peers.Default, "`NAME` of what the peers run, the same at all")
	s.StringArrayVar(&f.options, "option", nil, "`NAME=VALUE` of an option of the algorithm, the same at all; docs/algorithms.md#options has them")
	s.DurationVar(&f.c.Patience, "patience", 0, "how long whoever wants a lock waits while too few peers can be reached (default, and at least: two leases)")
	return cmd
}

// register has the flags of a process that is one of a few, whatever they do.
func (f *peerFlags) register(s *pflag.FlagSet, api string) {
	f.registerFile(s)
	f.registerTLS(s)
	s.StringVar(&f.c.Name, "name", "", "`NAME` of this one among --peers")
	s.StringVar(&f.peers, "peers", "", "all peers: `NAME=HOST:PORT,...` or NAME=unix:/path")
	s.Uint64Var(&f.epoch, "epoch", 0, "`number` of the addresses in --peers, which grows with each change of one")
	s.BoolVar(&f.c.Bootstrap, "bootstrap", false, "the peers begin: the first time, all of them")
	s.StringVar(&f.api, "api", "", api)
	s.StringVar(&f.admin, "admin", "", "answer /metrics, /healthz and /debug/pprof/ at `HOST:PORT` or unix:/path")
	s.StringVar(&f.listen, "listen", "", "where to accept connections, `HOST:PORT` or unix:/path (default its address in --peers)")
	s.BoolVar(&f.c.Insecure, "insecure", false, "allow to listen off loopback without TLS: anybody can take and release locks")
	s.DurationVar(&f.c.Lease, "lease", 2*time.Second, "how long the others wait for a peer that is silent, 20ms to 10m")
	s.Var(logLevel{&f.level}, "log-level", "lowest `LEVEL` that is logged: debug, info, warn or error")
}

func (f *peerFlags) run(cmd *cobra.Command) error {
	if err := f.open(cmd); err != nil {
		return err
	}
	defer f.watchFiles(cmd.Context())()
	end, stop := awaitSignals(cmd.Context())
	defer stop()
	return f.serve(end)
}

// open fills the flags in, and listens for the others.
func (f *peerFlags) open(cmd *cobra.Command) error {
	f.log = slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: &f.level}))
	f.readTable = f.tableReader(cmd, "peers", func(table []node.Peer) ([]node.Peer, error) { return table, nil })
	if err := f.fill(cmd); err != nil {
		return err
	}
	c := &f.c
	c.Log, c.Epoch = f.log, f.epoch
	var err error
	if c.Members, err = slots.Parse(f.peers); err != nil {
		return cli.Usagef("--peers: %w", err)
	}
	if err := f.setOptions(); err != nil {
		return err
	}
	if c.TLS, err = f.clientTLS(); err != nil {
		return cli.Exit(cli.ExitUsage, err)
	}
	accepting, err := f.serverTLS()
	if err != nil {
		return cli.Exit(cli.ExitUsage, err)
	}
	if err := cli.Within("--lease", c.Lease, node.MinLease, node.MaxLease); err != nil {
		return err
	}
	if f.api == "" {
		return cli.Usagef("no --api given").WithHint("name a socket for the commands of this host: --api unix:/run/poundlock.sock")
	}
	if err := transport.CheckListen(f.api); err != nil {
		return cli.Usagef("--api: %w", err)
	}
	if f.admin != "" {
		if err := transport.CheckListen(f.admin); err != nil {
			return cli.Usagef("--admin: %w", err)
		}
	}
	id, err := members.Find(c.Members, c.Name)
	if err != nil {
		return cli.Usagef("--name: %w", err)
	}
	door := listening.Door{Addr: f.listen, TLS: accepting, Insecure: c.Insecure}
	if c.Listener, err = door.Open(c.Members[id].Addr); err != nil {
		return f.cannot(err)
	}
	return nil
}

// setOptions gives the algorithm its options. Of one that there is not, Join says that.
func (f *peerFlags) setOptions() (err error) {
	if !slices.Contains(peers.Algorithms(), f.c.Algorithm) {
		return nil
	}
	chosen := make([]cli.Option, len(f.options))
	for k, text := range f.options {
		if chosen[k], err = cli.OptionFlag(text); err != nil {
			return err
		}
	}
	f.c.Options = map[string]int64{}
	return cli.SetOptions(f.c.Options, f.c.Algorithm, peers.Options(f.c.Algorithm), chosen)
}

// watchFiles takes over certificates that are renewed, until it is stopped.
func (f *peerFlags) watchFiles(ctx context.Context) (stop func()) {
	ctx, stop = context.WithCancel(ctx)
	if f.store != nil {
		go f.store.Watch(ctx)
	}
	return stop
}

// serve takes part until it is told to end.
func (f *peerFlags) serve(end ending) error {
	l, err := f.listenAPI(end.asked)
	if err != nil {
		return errors.Join(cannotServe("--api", err), f.c.Listener.Close())
	}
	waiting := joining{f: f}
	defer onHangup(waiting.reload)()
	stop, err := f.runAdmin(&waiting)
	if err != nil {
		return errors.Join(err, l.Close(), f.c.Listener.Close())
	}
	defer stop()
	f.log.Info("waiting for the other peers", "peer", f.c.Name, "addr", f.c.Listener.Addr().String())
	m, err := peers.Join(end.asked, f.c)
	if err != nil {
		l.Close()
		if end.asked.Err() != nil {
			return nil
		}
		return f.cannot(err)
	}
	waiting.joined(metrics.Peer(m), m.Healthy, m.SetTable)
	service, err := api.New(api.Config{Client: m.Client(), Addr: f.api, Log: f.log})
	if err == nil {
		f.log.Info("serving", "peer", f.c.Name, "api", l.Addr().String())
		err = service.Serve(end.asked, l, nil, f.c.Lease)
	}
	return errors.Join(err, m.Close())
}

// runAdmin answers about a process until stop is called.
func (f *peerFlags) runAdmin(j *joining) (stop func(), err error) {
	if f.admin == "" {
		return func() {}, nil
	}
	config, err := f.serverTLS()
	if err != nil {
		return nil, cli.Usagef("--admin: %w", err)
	}
	port, err := server.NewAdmin(nil, server.AdminConfig{
		Peer: f.c.Name, Listen: f.admin, TLS: config, ClientCerts: f.tlsCA != "", Insecure: f.c.Insecure, Quorum: j.healthy,
		Collectors: []prometheus.Collector{j, certMetrics(f.store)}, Log: f.log,
	})
	switch {
	case errors.Is(err, server.ErrAdminInsecure):
		return nil, cli.Usagef("--admin: %w", err).WithHint("give --tls-cert, --tls-key and --tls-ca, or --insecure on a network that you trust")
	case err != nil:
		return nil, cannotServe("--admin", err)
	}
	f.log.Info("serving metrics and health", "addr", port.Addr().String())
	ctx, cancel := context.WithCancel(context.Background())
	var answering sync.WaitGroup
	answering.Go(func() {
		if err := port.Run(ctx); err != nil { // locks do not depend on it
			f.log.Error("no metrics and health any more", "error", err)
		}
	})
	return func() { cancel(); answering.Wait() }, nil
}

// listenAPI listens where commands lock: without TLS, at a socket of this user or on loopback.
func (f *peerFlags) listenAPI(ctx context.Context) (net.Listener, error) {
	if _, err := listening.Allowed(f.api, nil, false); err != nil {
		return nil, err
	}
	return api.Listen(ctx, f.api)
}

// cannot gives an error its status.
func (f *peerFlags) cannot(err error) error {
	status := &cli.Status{Code: cli.ExitError, Err: trimPrefix(err), Hint: portHint(err)}
	switch {
	case errors.Is(err, peers.ErrConfig):
		status.Code = cli.ExitUsage
	case errors.Is(err, peers.ErrInsecure):
		status.Code, status.Hint = cli.ExitUsage, "give --tls-cert, --tls-key and --tls-ca, or --insecure on a network that you trust"
	}
	return status
}
