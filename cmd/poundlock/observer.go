package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/user"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/poundlock/poundlock"
	"github.com/poundlock/poundlock/internal/cli"
	"github.com/poundlock/poundlock/internal/devcluster"
	"github.com/poundlock/poundlock/server"
	"github.com/poundlock/poundlock/server/status"
)

// observerFlags are the flags of commands that ask the servers of a cluster.
type observerFlags struct {
	clusterFlags
	timeout time.Duration
}

func (f *observerFlags) register(s *pflag.FlagSet, dev string) {
	f.clusterFlags.register(s)
	f.registerDev(s, dev)
	s.DurationVar(&f.timeout, "timeout", 3*time.Second, "how long to wait for a server that does not answer")
}

// An observer may be one of the development cluster, whose last client it must not
// seem to be.
type observer struct {
	*server.Observer
	dev *devcluster.Client
}

func (o *observer) close() {
	o.Observer.Close()
	o.dev.Leave()
}

func (f *observerFlags) observe(cmd *cobra.Command) (*observer, error) {
	if err := f.fillDev(cmd); err != nil {
		return nil, err
	}
	if f.timeout <= 0 {
		return nil, cli.Usagef("--timeout %v: want more than 0", f.timeout)
	}
	var c poundlock.Config
	var dev *devcluster.Client
	var err error
	if f.dev {
		ctx, cancel := context.WithTimeout(cmd.Context(), f.timeout)
		defer cancel()
		if dev, err = devcluster.Join(ctx, nil); err != nil {
			return nil, err
		}
		c = dev.Config
	} else if c, err = f.config(cmd); err != nil {
		return nil, err
	}
	o, err := observe(c, f.timeout)
	if err != nil {
		dev.Leave()
		return nil, cli.Exit(cli.ExitUsage, err)
	}
	return &observer{o, dev}, nil
}

// observe starts to ask the servers of a cluster.
func observe(c poundlock.Config, timeout time.Duration) (*server.Observer, error) {
	return server.Observe(server.AskConfig{
		Servers: c.Servers, NoAmnesia: c.NoAmnesia, Epoch: c.Epoch, ClockBound: c.ClockBound, TLS: c.TLS,
		Timeout: timeout, Label: operator(),
	})
}

// unreachable is the end of a command that asked a cluster some shard of which has no quorum.
func unreachable(c *status.Cluster) error {
	if err := c.Unreachable(); err != nil {
		return noQuorum(c, err)
	}
	return nil
}

func noQuorum(c *status.Cluster, err error) error {
	return &cli.Status{Code: cli.ExitNoQuorum, Err: err, Hint: cmp.Or(tlsHint(c.Failures), serversHint)}
}

// one is the state of one lock, by those servers that serve it.
func one(ctx context.Context, o *server.Observer, name string) (status.Lock, error) {
	l, c, err := status.One(ctx, o, name)
	if err == nil {
		return l, nil
	}
	for _, why := range status.Reasons(c.Servers) {
		err = fmt.Errorf("%w; %s", err, why)
	}
	return l, noQuorum(c, err)
}

// operator is who asks, for the logs of others.
func operator() string {
	name := "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	host, _ := os.Hostname()
	return fmt.Sprintf("%s@%s/%d", name, cmp.Or(host, "localhost"), os.Getpid())
}
