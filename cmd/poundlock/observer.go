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
	"github.com/poundlock/poundlock/server"
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
	dev *devClient
}

func (o *observer) close() {
	o.Observer.Close()
	o.dev.leave()
}

func (f *observerFlags) observe(cmd *cobra.Command) (*observer, error) {
	if err := f.fillDev(cmd); err != nil {
		return nil, err
	}
	if f.timeout <= 0 {
		return nil, cli.Usagef("--timeout %v: want more than 0", f.timeout)
	}
	var c poundlock.Config
	var dev *devClient
	var err error
	if f.dev {
		ctx, cancel := context.WithTimeout(cmd.Context(), f.timeout)
		defer cancel()
		if dev, err = findDev(ctx); err != nil {
			return nil, err
		}
		c = dev.config
	} else if c, err = f.config(cmd); err != nil {
		return nil, err
	}
	o, err := server.Observe(server.AskConfig{
		Servers: peers(c), NoAmnesia: c.NoAmnesia, Epoch: c.Epoch, ClockBound: c.ClockBound, TLS: c.TLS,
		Timeout: f.timeout, Label: operator(),
	})
	if err != nil {
		dev.leave()
		return nil, &cli.Status{Code: cli.ExitUsage, Err: err}
	}
	return &observer{o, dev}, nil
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
