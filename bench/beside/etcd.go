package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	recipe "go.etcd.io/etcd/client/v3/experimental/recipes"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/poundlock/poundlock"
	"github.com/poundlock/poundlock/bench/load"
	"github.com/poundlock/poundlock/internal/freeaddr"
)

const members = 3

// startEtcd starts three members with data in a new directory below dir, and clients that play a role.
func startEtcd(role string) starter {
	return func(ctx context.Context, name, dir string) (crew *load.Crew, stop func(), err error) {
		var stops stops
		data, err := os.MkdirTemp(dir, "poundlock-bench-etcd")
		if err != nil {
			return nil, stops.all, err
		}
		stops.add(func() { os.RemoveAll(data) })
		addrs, err := freeaddr.Find(2 * members)
		if err != nil {
			return nil, stops.all, err
		}
		peers, endpoints := addrs[:members], addrs[members:]
		var cluster []string
		for i, p := range peers {
			cluster = append(cluster, fmt.Sprintf("m%d=http://%s", i+1, p))
		}
		var servers []*load.Process
		for i := range members {
			peer, endpoint := "http://"+peers[i], "http://"+endpoints[i]
			m := fmt.Sprintf("m%d", i+1)
			p, err := load.Start(name+" "+m, etcdServer,
				"--name", m, "--data-dir", filepath.Join(data, m),
				"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
				"--listen-client-urls", endpoint, "--advertise-client-urls", endpoint,
				"--initial-cluster", strings.Join(cluster, ","), "--log-level", "error")
			if err != nil {
				return nil, stops.all, err
			}
			stops.add(p.Kill)
			servers = append(servers, p)
		}
		if err := awaitEtcd(ctx, endpoints, servers); err != nil {
			return nil, stops.all, err
		}
		if crew, err = load.StartCrew(ctx, name, processes, servers, append([]string{role}, endpoints...)...); err != nil {
			return nil, stops.all, err
		}
		stops.add(crew.Close)
		return crew, stops.all, nil
	}
}

// awaitEtcd waits until every member answers: a client of one that still starts would
// lose its connection.
func awaitEtcd(ctx context.Context, endpoints []string, servers []*load.Process) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for _, e := range endpoints {
		if err := awaitMember(ctx, e, servers); err != nil {
			return err
		}
	}
	return nil
}

func awaitMember(ctx context.Context, endpoint string, servers []*load.Process) error {
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, Logger: zap.NewNop()}) // it logs every attempt
	if err != nil {
		return err
	}
	defer c.Close()
	for {
		soon, cancel := context.WithTimeout(ctx, time.Second)
		_, err := c.Get(soon, "ready")
		cancel()
		if err == nil {
			return nil
		}
		if e := load.Ended(servers); e != nil {
			return e
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%s does not answer: %w", endpoint, err)
		}
	}
}

// serveEtcd is etcd itself. It does not return.
func serveEtcd(args []string) {
	load.Tether()
	etcdmain.Main(append([]string{"etcd"}, args...))
	os.Exit(0)
}

// An etcdSession is a client: one connection, and one session whose lease its locks share.
type etcdSession struct {
	*meter
	client  *clientv3.Client
	session *concurrency.Session
}

func openEtcd(endpoints []string) (*etcdSession, error) {
	m := &meter{}
	c, err := clientv3.New(clientv3.Config{
		Endpoints: endpoints, DialTimeout: 5 * time.Second, DialOptions: []grpc.DialOption{grpc.WithContextDialer(m.dial)},
	})
	if err != nil {
		return nil, err
	}
	s, err := concurrency.NewSession(c)
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return &etcdSession{m, c, s}, nil
}

func (e *etcdSession) Lock(ctx context.Context, name string) (load.Held, error) {
	m := concurrency.NewMutex(e.session, "/"+name)
	if err := again(func() error { return m.Lock(ctx) }); err != nil {
		return load.Held{}, err
	}
	unlock := func() error { return again(func() error { return m.Unlock(context.WithoutCancel(ctx)) }) }
	return load.Held{Unlock: unlock}, nil
}

func (e *etcdSession) Close() error { return errors.Join(e.session.Close(), e.client.Close()) }

// again repeats what failed because a connection broke, a few times. The library itself
// repeats reads only; to create or delete one's own key twice does no harm.
func again(call func() error) (err error) {
	for range 5 {
		if err = call(); status.Code(err) != codes.Unavailable {
			break
		}
	}
	return err
}

// An etcdRecipe is a client whose locks are those for readers and writers that etcd has as an
// experimental recipe. They cannot be given up, nor called again when a connection broke.
type etcdRecipe struct{ *etcdSession }

func (e etcdRecipe) Lock(_ context.Context, name string) (load.Held, error) {
	m := recipe.NewRWMutex(e.session, "/"+name)
	return load.Held{Unlock: m.Unlock}, m.Lock()
}

// RLock implements load.Sharer.
func (e etcdRecipe) RLock(_ context.Context, name string) (load.Held, error) {
	m := recipe.NewRWMutex(e.session, "/"+name)
	return load.Held{Group: poundlock.Shared, Unlock: m.RUnlock}, m.RLock()
}
