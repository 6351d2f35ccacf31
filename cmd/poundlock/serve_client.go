package main

import (
	"context"
	"errors"
	"time"

	"github.com/poundlock/poundlock"
	"github.com/poundlock/poundlock/server"
)

// beside are the flags of what serve offers beside the lock service's own protocol,
// and how to reach the cluster for it.
type beside struct {
	flags   *clusterFlags
	cluster poundlock.Config
	api     apiFlags
	admin   adminFlags
}

// An annex is what runs beside a server. Its parts share one client of the cluster,
// and are nil where they are not wanted.
type annex struct {
	client *poundlock.Client
	api    *apiServer
	admin  *server.Admin
	later  func() (*server.Admin, error) // where a predecessor may still have the admin port
}

// open listens. The caller runs what it returns.
func (b *beside) open(ctx context.Context, s *server.Server, c server.Config) (x *annex, err error) {
	x = &annex{}
	if b.api.addr == "" && b.admin.addr == "" {
		return x, nil
	}
	if x.client, err = embeddedClient(b.cluster, c); err != nil {
		return nil, err
	}
	x.api, err = b.api.listen(ctx, x.client, b.flags, c)
	if err == nil {
		listen := func() (*server.Admin, error) { return b.admin.listen(s, x.client, c, b.flags) }
		if x.admin, err = listen(); c.Handover != "" && inUse(err) {
			x.later, err = listen, nil
		}
	}
	if err != nil {
		return nil, errors.Join(err, x.api.close(), x.client.Close())
	}
	return x, nil
}

// embeddedClient is the client of the cluster that a server is, too.
func embeddedClient(cluster poundlock.Config, s server.Config) (*poundlock.Client, error) {
	cluster.Lease, cluster.Label = s.Lease, "server "+s.Name
	cluster.Log = s.Log.With("component", "client") // its sessions are not the server's
	return poundlock.Connect(cluster)
}

// run runs the server with all that is beside it: the admin port to the very end, so
// that one can watch how it ends.
func (x *annex) run(e ending, s *server.Server, c server.Config) error {
	watched, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if x.admin == nil && !x.listenLater(watched, c) {
			return
		}
		if err := x.admin.Run(watched); err != nil { // locks do not depend on it
			c.Log.Error("no metrics and health any more", "error", err)
		}
	}()
	err := runBoth(e, s, x.api)
	stop()
	<-ended
	if x.client != nil {
		err = errors.Join(err, x.client.Close())
	}
	return err
}

// listenLater waits until the predecessor has given its admin port up.
func (x *annex) listenLater(ctx context.Context, c server.Config) (ok bool) {
	for x.later != nil {
		var err error
		switch x.admin, err = x.later(); {
		case err == nil:
			return true
		case !inUse(err):
			c.Log.Error("no metrics and health", "error", err)
			return false
		}
		select {
		case <-time.After(adminRetry):
		case <-ctx.Done():
			return false
		}
	}
	return false
}
