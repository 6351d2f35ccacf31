package main

import (
	"context"
	"flag"

	"github.com/poundlock/poundlock"
	"github.com/poundlock/poundlock/bench/load"
	"github.com/poundlock/poundlock/internal/freeaddr"
	"github.com/poundlock/poundlock/internal/slots"
	"github.com/poundlock/poundlock/server"
)

// startPoundlock starts four servers, which need no directory, and so many client processes.
func startPoundlock(processes int) starter {
	return startFour(processes, poundlockServer, poundlockClient)
}

// startFour starts four servers of one role, and client processes of another one.
func startFour(processes int, server, client string) starter {
	return func(ctx context.Context, name, _ string) (crew *load.Crew, stop func(), err error) {
		stop = func() {}
		addrs, err := freeaddr.Find(4)
		if err != nil {
			return nil, stop, err
		}
		servers, err := load.StartServers(ctx, addrs, server)
		if err != nil {
			return nil, stop, err
		}
		stop = servers.Close
		crew, err = load.StartCrew(ctx, name, processes, servers.Processes(), client, servers.Table)
		if err != nil {
			return nil, stop, err
		}
		return crew, func() { crew.Close(); servers.Close() }, nil
	}
}

func servePoundlock(args []string) error {
	config, err := serverArgs(args)
	if err != nil {
		return err
	}
	s, err := server.New(config)
	if err != nil {
		return err
	}
	return s.Run(context.Background())
}

// serverArgs are those that load.StartServers gives to a server.
func serverArgs(args []string) (server.Config, error) {
	f := flag.NewFlagSet("server", flag.ContinueOnError)
	name, table := f.String("name", "", ""), f.String("servers", "", "")
	if err := f.Parse(args); err != nil {
		return server.Config{}, err
	}
	servers, err := slots.Parse(*table)
	return server.Config{Name: *name, Servers: servers}, err
}

type client struct{ *poundlock.Client }

func openPoundlock(ctx context.Context, table string) (load.Client, error) {
	servers, err := slots.Parse(table)
	if err != nil {
		return nil, err
	}
	cl, err := poundlock.Dial(ctx, poundlock.Config{Servers: servers})
	if err != nil {
		return nil, err
	}
	return client{cl}, nil
}

func (c client) Lock(ctx context.Context, name string) (load.Held, error) {
	return held(c.Mutex(name).Lock(ctx))
}

// RLock implements load.Sharer.
func (c client) RLock(ctx context.Context, name string) (load.Held, error) {
	return held(c.RWMutex(name).RLock(ctx))
}

func held(g *poundlock.Grant, err error) (load.Held, error) {
	if err != nil {
		return load.Held{}, err
	}
	return load.Held{Token: g.Token(), Group: g.Group(), Unlock: g.Unlock}, nil
}

func (c client) Traffic() (bytes int64) {
	for _, s := range c.Stats().Servers {
		bytes += int64(s.BytesSent + s.BytesReceived)
	}
	return bytes
}
