package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/poundlock/poundlock/internal/slots"
	"github.com/poundlock/poundlock/node"
)

// LocalConfig describes a Local cluster. Dir is required.
type LocalConfig struct {
	Dir        string        // where the sockets are; only its owner should be able to open it
	N          int           // servers. Default 4
	NoAmnesia  bool          // allow fewer than 4
	ClockBound time.Duration // default 50ms
	Lease      time.Duration // the longest lease that a client gets. Default 10s
	Log        *slog.Logger  // nil: discarded
}

// A Local is a whole cluster in one process, on unix sockets in one directory:
// for development and tests. It excludes like any other cluster, but all its
// memory is lost at once when its process ends.
type Local struct {
	config  LocalConfig
	servers []node.Peer

	mu     sync.Mutex
	lives  []*life // nil where stopped
	closed bool
}

// A life is one incarnation of a server.
type life struct {
	server *Server
	stop   context.CancelFunc
	ended  chan error // of Run
}

// LocalServers is the slot table of a Local cluster of n servers in dir, for
// those who did not start it. n = 0 means 4.
func LocalServers(dir string, n int) []node.Peer {
	if n == 0 {
		n = 4
	}
	table := make([]node.Peer, n)
	for i := range table {
		name := fmt.Sprintf("s%d", i+1)
		table[i] = node.Peer{Name: name, Addr: "unix:" + filepath.Join(dir, name)}
	}
	return table
}

// StartLocal starts a cluster. It fails when another one lives in the directory.
func StartLocal(c LocalConfig) (*Local, error) {
	servers, err := slots.Check(LocalServers(c.Dir, c.N), c.NoAmnesia)
	if err != nil {
		return nil, fmt.Errorf("server: local cluster in %s: %w", c.Dir, err)
	}
	l := &Local{config: c, servers: servers, lives: make([]*life, len(servers))}
	for i := range servers {
		if err := l.Start(i); err != nil {
			return nil, errors.Join(err, l.Close())
		}
	}
	return l, nil
}

// check says why there is no server i.
func (l *Local) check(i int) error {
	if i < 0 || i >= len(l.servers) {
		return fmt.Errorf("server: local server %d: want 0 to %d", i, len(l.servers)-1)
	}
	return nil
}

// Servers is the slot table.
func (l *Local) Servers() []node.Peer { return l.servers }

// Start starts server i of Servers, which has ended, with empty memory.
func (l *Local) Start(i int) error {
	if err := l.check(i); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.lives[i] != nil {
		return fmt.Errorf("server: local server %s runs already, or the cluster is closed", l.servers[i].Name)
	}
	s, err := New(Config{
		Name:       l.servers[i].Name,
		Servers:    l.servers,
		NoAmnesia:  l.config.NoAmnesia,
		ClockBound: l.config.ClockBound,
		Lease:      l.config.Lease,
		Log:        l.config.Log,
	})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	x := &life{server: s, stop: stop, ended: make(chan error, 1)}
	l.lives[i] = x
	go func() { x.ended <- s.Run(ctx) }()
	return nil
}

// Stop ends server i of Servers: its memory is lost. It does nothing when i is stopped.
func (l *Local) Stop(i int) error {
	if err := l.check(i); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stop(i)
}

func (l *Local) stop(i int) error {
	x := l.lives[i]
	if x == nil {
		return nil
	}
	l.lives[i] = nil
	x.stop()
	return <-x.ended
}

// Clients is how many clients have a session with some server.
func (l *Local) Clients() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	most := 0
	for _, x := range l.lives {
		if x != nil {
			most = max(most, x.server.clients())
		}
	}
	return most
}

// Close ends all servers.
func (l *Local) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	var errs []error
	for i := range l.lives {
		errs = append(errs, l.stop(i))
	}
	return errors.Join(errs...)
}
