package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"time"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	"github.com/poundlock/poundlock/bench/load"
	"github.com/poundlock/poundlock/internal/freeaddr"
)

const redisServers = 5

// startRedsync starts Redis servers that know nothing of each other and write nothing to a
// disk, and clients that want a lock at most of them: the algorithm Redlock.
func startRedsync(ctx context.Context, name, dir string) (crew *load.Crew, stop func(), err error) {
	var stops stops
	program, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, stops.all, fmt.Errorf("%w: no program redis-server", errAbsent)
	}
	data, err := os.MkdirTemp(dir, "poundlock-bench-redis")
	if err != nil {
		return nil, stops.all, err
	}
	stops.add(func() { os.RemoveAll(data) })
	addrs, err := freeaddr.Find(redisServers)
	if err != nil {
		return nil, stops.all, err
	}
	var servers []*load.Process
	for i, a := range addrs {
		host, port, err := net.SplitHostPort(a)
		if err != nil {
			return nil, stops.all, err
		}
		p, end, err := startGuest(fmt.Sprintf("%s, server %d", name, i+1), data, program,
			"--bind", host, "--port", port, "--save", "", "--appendonly", "no", "--loglevel", "warning")
		stops.add(end)
		if err != nil {
			return nil, stops.all, err
		}
		servers = append(servers, p)
	}
	if err := awaitRedis(ctx, addrs, servers); err != nil {
		return nil, stops.all, err
	}
	crew, err = load.StartCrew(ctx, name, processes, servers, append([]string{redsyncClient}, addrs...)...)
	if err != nil {
		return nil, stops.all, err
	}
	stops.add(crew.Close)
	return crew, stops.all, nil
}

// awaitRedis waits until every server answers.
func awaitRedis(ctx context.Context, addrs []string, servers []*load.Process) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for _, a := range addrs {
		c := redis.NewClient(&redis.Options{Addr: a})
		defer c.Close()
		for c.Ping(ctx).Err() != nil {
			if err := load.Ended(servers); err != nil {
				return err
			}
			if ctx.Err() != nil {
				return fmt.Errorf("%s does not answer: %w", a, ctx.Err())
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	return nil
}

// A redsyncUser has a pool of connections to each server, and the library's defaults.
type redsyncUser struct {
	*meter
	servers []*redis.Client
	redsync *redsync.Redsync
}

func openRedsync(ctx context.Context, addrs []string) (load.Client, error) {
	r := &redsyncUser{meter: &meter{}}
	dial := func(ctx context.Context, _, addr string) (net.Conn, error) { return r.dial(ctx, addr) }
	for _, a := range addrs {
		r.servers = append(r.servers, redis.NewClient(&redis.Options{Addr: a, Dialer: dial}))
	}
	for _, s := range r.servers {
		if err := s.Ping(ctx).Err(); err != nil {
			return nil, errors.Join(err, r.Close())
		}
	}
	var pools []redsyncredis.Pool
	for _, s := range r.servers {
		pools = append(pools, goredis.NewPool(s))
	}
	r.redsync = redsync.New(pools...)
	return r, nil
}

func (r *redsyncUser) Lock(ctx context.Context, name string) (load.Held, error) {
	m := r.redsync.NewMutex(name)
	if err := m.LockContext(ctx); err != nil {
		return load.Held{}, err
	}
	return load.Held{Unlock: func() error {
		held, err := m.UnlockContext(context.WithoutCancel(ctx))
		if err == nil && !held {
			err = fmt.Errorf("lock %q was not held", name)
		}
		return err
	}}, nil
}

func (r *redsyncUser) Close() error {
	var err error
	for _, s := range r.servers {
		err = errors.Join(err, s.Close())
	}
	return err
}
