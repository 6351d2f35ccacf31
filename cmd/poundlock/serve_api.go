package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/spf13/pflag"

	"github.com/poundlock/poundlock"
	"github.com/poundlock/poundlock/api"
	"github.com/poundlock/poundlock/internal/cli"
	"github.com/poundlock/poundlock/server"
)

// apiFlags are those of the API that serve offers beside the lock service's own
// protocol.
type apiFlags struct {
	addr string
}

func (f *apiFlags) register(s *pflag.FlagSet) {
	s.StringVar(&f.addr, "api", "", "serve locks over gRPC and HTTP with JSON at `HOST:PORT`, with the TLS of --tls-cert")
}

// An apiServer is the API of this process, whose locks are those of its client of the
// cluster.
type apiServer struct {
	listener net.Listener
	tls      *tls.Config
	service  *api.Service
	grace    time.Duration
}

// listen returns nil when no API is wanted. The caller runs what it returns.
func (f *apiFlags) listen(ctx context.Context, client *poundlock.Client, cluster *clusterFlags, s server.Config) (*apiServer, error) {
	if f.addr == "" {
		return nil, nil
	}
	usage := func(err error) error {
		return &cli.Status{Code: cli.ExitUsage, Err: fmt.Errorf("--api: %w", err)}
	}
	config, err := cluster.serverTLS(api.Protocols...)
	if err != nil {
		return nil, usage(err)
	}
	addr, err := net.ResolveTCPAddr("tcp", f.addr)
	if err != nil {
		return nil, usage(fmt.Errorf("address %q: want HOST:PORT: %w", f.addr, err))
	}
	if config == nil && !s.Insecure && !addr.IP.IsLoopback() {
		return nil, fmt.Errorf("--api: address %q: %w", f.addr, server.ErrInsecure)
	}
	l, err := api.Listen(ctx, f.addr)
	if err != nil {
		return nil, &cli.Status{Code: cli.ExitError, Err: fmt.Errorf("--api: %w", err), Hint: portHint(err)}
	}
	service, err := api.New(api.Config{Client: client, Addr: f.addr, Log: s.Log})
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	s.Log.Info("serving the API", "addr", l.Addr().String())
	return &apiServer{listener: l, tls: config, service: service, grace: s.Lease}, nil
}

// run serves until ctx ends. It returns when what its clients were promised is
// over, and their locks are released.
func (a *apiServer) run(ctx context.Context) error {
	return a.service.Serve(ctx, a.listener, a.tls, a.grace)
}

// close gives up the listener of an API that was never run. a may be nil.
func (a *apiServer) close() error {
	if a == nil {
		return nil
	}
	return a.listener.Close()
}
