package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/poundlock/poundlock"
	"github.com/poundlock/poundlock/api"
	"github.com/poundlock/poundlock/internal/cli"
	"github.com/poundlock/poundlock/metrics"
	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/server"
	"github.com/poundlock/poundlock/transport"
)

// A serving is a server and what runs beside it: an API, whose locks are those of this
// process's client of the cluster, and an admin port, which asks that client whether there
// is a quorum. They are nil where they are not wanted.
type serving struct {
	*serveFlags
	server   *server.Server
	client   *poundlock.Client
	service  *api.Service
	listener net.Listener // of the API
	apiTLS   *tls.Config
	port     *server.Admin // nil, too, while a predecessor may still have it
}

// open listens. The caller runs what it returns.
func (f *serveFlags) open(ctx context.Context, cluster poundlock.Config) (*serving, error) {
	x := &serving{serveFlags: f}
	var err error
	if x.server, err = server.New(f.c); err != nil {
		return nil, err
	}
	if f.api != "" || f.admin != "" {
		cluster.Lease, cluster.Label = f.c.Lease, "server "+f.c.Name
		cluster.Outlived = true                         // by those who call the API
		cluster.KeepSessions = true                     // its metrics watch every shard
		cluster.Log = f.log.With("component", "client") // its sessions are not the server's
		x.client, err = poundlock.Connect(cluster)
	}
	if err == nil && f.api != "" {
		err = x.listenAPI(ctx)
	}
	if err == nil && f.admin != "" {
		if err = x.listenAdmin(); f.c.Handover != "" && inUse(err) {
			err = nil
		}
	}
	if err == nil {
		return x, nil
	}
	if x.listener != nil {
		err = errors.Join(err, x.listener.Close())
	}
	if x.client != nil {
		err = errors.Join(err, x.client.Close())
	}
	return nil, errors.Join(err, x.server.Close())
}

func (x *serving) listenAPI(ctx context.Context) (err error) {
	if x.apiTLS, err = x.serverTLS(api.Protocols...); err != nil {
		return cli.Usagef("--api: %w", err)
	}
	addr, err := net.ResolveTCPAddr("tcp", x.api)
	if err != nil {
		return cli.Usagef("--api: address %q: want HOST:PORT: %w", x.api, err)
	}
	if x.apiTLS == nil && !x.c.Insecure && !addr.IP.IsLoopback() {
		return fmt.Errorf("--api: address %q: %w", x.api, server.ErrInsecure)
	}
	if x.listener, err = api.Listen(ctx, x.api); err != nil {
		return cannotServe("--api", err)
	}
	if x.service, err = api.New(api.Config{Client: x.client, Addr: x.api, Log: x.log}); err == nil {
		x.log.Info("serving the API", "addr", x.listener.Addr().String())
	}
	return err
}

func (x *serving) listenAdmin() error {
	if err := transport.CheckListen(x.admin); err != nil {
		return cli.Usagef("--admin: %w", err)
	}
	config, err := x.serverTLS()
	if err != nil {
		return cli.Usagef("--admin: %w", err)
	}
	x.port, err = server.NewAdmin(x.server, server.AdminConfig{
		Listen: x.admin, TLS: config, ClientCerts: x.tlsCA != "", Insecure: x.c.Insecure,
		Quorum:     x.client.Available,
		Collectors: []prometheus.Collector{metrics.Client(x.client), certMetrics(x.store)},
		Log:        x.log,
	})
	switch {
	case errors.Is(err, server.ErrAdminInsecure):
		return cli.Usagef("--admin: %w", err).WithHint("give --tls-cert, --tls-key and --tls-ca, or --insecure on a network that you trust")
	case err != nil:
		return cannotServe("--admin", err)
	}
	x.log.Info("serving metrics and health", "addr", x.port.Addr().String())
	return nil
}

// run runs the server with all that is beside it: the admin port to the very end, so
// that one can watch how it ends.
func (x *serving) run(e ending) error {
	watched, stop := context.WithCancel(context.Background())
	var watching sync.WaitGroup
	if x.admin != "" {
		watching.Go(func() { x.runAdmin(watched) })
	}
	err := x.runLocks(e)
	stop()
	watching.Wait()
	if x.client != nil {
		err = errors.Join(err, x.client.Close())
	}
	return err
}

// runAdmin runs the admin port, once a predecessor has given it up.
func (x *serving) runAdmin(ctx context.Context) {
	for x.port == nil {
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return
		}
		if err := x.listenAdmin(); err != nil && !inUse(err) {
			x.log.Error("no metrics and health", "error", err)
			return
		}
	}
	if err := x.port.Run(ctx); err != nil { // locks do not depend on it
		x.log.Error("no metrics and health any more", "error", err)
	}
}

// runLocks runs the server at least as long as the API, which holds its locks there,
// and until it is drained. Beside an API, which has to end first, it drains in any case: also
// to tell load balancers.
func (x *serving) runLocks(e ending) error {
	ctx, failed := context.WithCancel(e.asked)
	defer failed()
	locks, stop := context.WithCancel(context.Background())
	defer stop()
	ended, served := make(chan error, 1), make(chan error, 1)
	go func() {
		ended <- x.server.Run(locks)
		failed()
	}()
	if x.service == nil {
		close(served)
	} else {
		go func() { served <- x.service.Serve(ctx, x.listener, x.apiTLS, x.c.Lease) }()
	}
	<-ctx.Done()
	if e.asked.Err() != nil && (x.drain > 0 || x.service != nil) {
		draining, over := context.WithTimeout(e.now, x.drain)
		x.server.Drain(draining)
		over()
	}
	var err error
	select {
	case err = <-served:
	case <-e.now.Done(): // its clients' locks go with their leases
	}
	stop()
	return errors.Join(err, <-ended)
}

// reloadTable is reload. Without a file that is worth no word if the signal had another purpose.
func (x *serving) reloadTable(read func() (uint64, []node.Peer, error)) {
	if x.file != "" || x.c.Audit == nil {
		x.reload(read, x.server.SetTable)
	}
}

// cannotServe is the end of a server that cannot do what a flag says.
func cannotServe(flag string, err error) error {
	return &cli.Status{Code: cli.ExitError, Err: fmt.Errorf("%s: %w", flag, err), Hint: portHint(err)}
}

// portHint says what to do when an address is taken.
func portHint(err error) string {
	if inUse(err) {
		return "another process listens there: perhaps this server, which runs already; ss -lp says who"
	}
	return ""
}

// inUse reports whether an address is taken: by the predecessor, until it has ended.
func inUse(err error) bool {
	return errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, syscall.EWOULDBLOCK)
}
