package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/poundlock/poundlock"
	"github.com/poundlock/poundlock/bench/load"
	"github.com/poundlock/poundlock/internal/cli"
	"github.com/poundlock/poundlock/internal/faultnet"
)

const benchClientName = "bench-client"

// benchClientCommand is a client process of bench: it obeys its standard input.
func benchClientCommand() *cobra.Command {
	var f clusterFlags
	var delay, jitter time.Duration
	c := &cobra.Command{
		Use:    benchClientName,
		Hidden: true,
		Args:   cli.NoArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			config, err := f.config(c)
			if err != nil {
				return err
			}
			open := func(ctx context.Context) (load.Client, error) {
				return openBenchClient(ctx, config, delay, jitter)
			}
			if err := load.Work(c.Context(), open); err != nil {
				return &cli.Status{Code: cli.ExitError} // its parent has been told
			}
			return nil
		},
	}
	f.register(c.Flags())
	c.Flags().DurationVar(&delay, "delay", 0, "")
	c.Flags().DurationVar(&jitter, "jitter", 0, "")
	return c
}

// clientArgs start a client process with the settings of the cluster that c was
// given.
func (b *benchFlags) clientArgs(c *cobra.Command) []string {
	args := []string{benchClientName, "--delay=" + b.delay.String(), "--jitter=" + b.jitter.String()}
	var f clusterFlags
	cluster := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.register(cluster)
	cluster.VisitAll(func(known *pflag.Flag) {
		if given := c.Flags().Lookup(known.Name); given.Name != "config" && given.Value.String() != known.DefValue {
			args = append(args, "--"+given.Name+"="+given.Value.String())
		}
	})
	return args
}

// A benchClient is a client behind proxies of its own, one a server, if there is a
// delay.
type benchClient struct {
	*poundlock.Client
	net *faultnet.Net
}

func openBenchClient(ctx context.Context, c poundlock.Config, delay, jitter time.Duration) (load.Client, error) {
	b := &benchClient{}
	if delay+jitter > 0 {
		const me = "client"
		var servers []faultnet.Server
		for _, s := range c.Servers {
			servers = append(servers, faultnet.Server(s))
		}
		var err error
		if b.net, err = faultnet.NewNet([]string{me}, servers); err != nil {
			return nil, err
		}
		b.net.SetDelay(delay, jitter)
		c.Servers = nil
		for _, s := range b.net.Servers(me) {
			c.Servers = append(c.Servers, poundlock.Server(s))
		}
	}
	var err error
	if b.Client, err = poundlock.Dial(ctx, c); err != nil {
		b.closeNet()
		return nil, err
	}
	return b, nil
}

// Lock implements load.Client.
func (b *benchClient) Lock(ctx context.Context, name string) (load.Held, error) {
	return held(b.Mutex(name).Lock(ctx))
}

// RLock implements load.Sharer.
func (b *benchClient) RLock(ctx context.Context, name string) (load.Held, error) {
	return held(b.RWMutex(name).RLock(ctx))
}

func held(g *poundlock.Grant, err error) (load.Held, error) {
	if err != nil {
		return load.Held{}, err
	}
	return load.Held{Token: g.Token(), Group: g.Group(), Unlock: g.Unlock}, nil
}

// Traffic implements load.Client.
func (b *benchClient) Traffic() (bytes int64) {
	for _, s := range b.Stats().Servers {
		bytes += int64(s.BytesSent + s.BytesReceived)
	}
	return bytes
}

// Close implements load.Client.
func (b *benchClient) Close() error {
	defer b.closeNet()
	return b.Client.Close()
}

func (b *benchClient) closeNet() {
	if b.net != nil {
		b.net.Close()
	}
}
