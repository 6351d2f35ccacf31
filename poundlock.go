// Package poundlock is the client of the lock service: exclusive locks held by
// a cluster of memory-only servers, any of which may crash and come back empty.
//
// A lock is a name. Dial opens one session with each server, Client.Mutex names
// a lock, and Lock returns a Grant: a fencing token, and a context that ends
// when the lock is lost. A process that is stopped between its last look at that
// context and its write does not notice; only the resource can, by refusing a
// token that is smaller than one it has seen. Package fence does that.
package poundlock

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/poundlock/poundlock/algo/sigma"
	"github.com/poundlock/poundlock/internal/slots"
	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/protocol"
)

// What callers branch on. A failed call returns an error that is one of them,
// or one about its arguments.
var (
	ErrNotAcquired = errors.New("poundlock: not acquired")
	ErrLost        = errors.New("poundlock: lock lost")
	ErrNoQuorum    = errors.New("poundlock: no quorum of servers reachable")
	ErrClosed      = errors.New("poundlock: client closed")
)

// errLostByClose is what holders hear when the client closes.
var errLostByClose = fmt.Errorf("%w: %w", ErrLost, ErrClosed)

// A Server is one slot of the static slot table.
type Server struct {
	Name string
	Addr string // host:port, or unix:/path
}

// Config says how to reach a cluster. Servers is required.
type Config struct {
	Servers []Server // the whole slot table; ids follow the names, so its order does not matter
	// TLS is nil for plaintext. Without a ServerName each server's certificate must
	// be for the host of its address, or for its Name where that is a unix socket.
	TLS *tls.Config
	// Lease is how long servers keep the locks of a silent client: shorter frees
	// the locks of a crashed client sooner, longer survives longer pauses.
	// Default 10s, 20ms to 10m; servers may allow less.
	Lease time.Duration
	// ClockBound is eps, the distance of every clock from real time; servers need
	// the same. Default 50ms, at most 1s.
	ClockBound time.Duration
	// QuorumWait is how long Dial and Lock go on while fewer servers than a quorum
	// can be reached, should their context allow more. Default 10s.
	QuorumWait time.Duration
	Label      string       // who this is, for people. Default: host name and process id
	Epoch      uint64       // of the slot table. Default 0
	NoAmnesia  bool         // allow fewer than 4 servers: no server may ever lose its memory
	Log        *slog.Logger // nil: discarded
}

// A Client has one session with each server, shared by all its locks. Its
// methods, and those of its mutexes and grants, may be called from several
// goroutines at once.
type Client struct {
	config  Config
	id      protocol.ID
	quorum  int
	node    runtime
	closing chan struct{} // closed by Close

	mu    sync.Mutex // never held while calling node, which calls back
	lines map[string]*line
}

// runtime is what a Client needs of a node.Node.
type runtime interface {
	Try(kind node.Kind, name string, u node.User, once bool) error
	Cancel(name string)
	Exit(name string)
	Alive() int
	Sessions() []node.Session
	WaitAlive(ctx context.Context, k int) error
	Close() error
}

// Dial connects to a cluster and returns when a quorum answers. When ctx or
// Config.QuorumWait ends first it returns ErrNoQuorum with what each server said.
func Dial(ctx context.Context, config Config) (*Client, error) {
	c, err := Connect(config)
	if err != nil {
		return nil, err
	}
	if err := c.awaitQuorum(ctx); err != nil {
		return nil, errors.Join(err, c.node.Close())
	}
	return c, nil
}

// Connect is Dial without waiting: it returns a client that goes on trying to reach
// the servers until it is closed. Its error is about the configuration.
func Connect(config Config) (*Client, error) {
	c, err := newClient(config)
	if err != nil {
		return nil, err
	}
	config = c.config
	peers := make([]node.Peer, len(config.Servers))
	for i, s := range config.Servers {
		peers[i] = node.Peer(s)
	}
	n, err := node.Start(node.Config{
		ID:     c.id,
		System: slots.System(len(peers), config.ClockBound),
		Hosts:  map[node.Kind]node.Host{node.Mutex: node.HostOf(sigma.Algorithm)},
		Peers:  peers,
		Epoch:  config.Epoch,
		TLS:    config.TLS,
		Lease:  config.Lease,
		Label:  config.Label,
		Log:    config.Log,
	})
	if err != nil {
		return nil, fmt.Errorf("poundlock: %w", err)
	}
	c.node = n
	return c, nil
}

// Healthy returns nil while a quorum of the servers is reachable, and otherwise
// ErrNoQuorum with what each server said. It does not wait.
func (c *Client) Healthy() error {
	now, cancel := context.WithCancel(context.Background())
	cancel()
	return c.awaitQuorum(now)
}

// newClient checks the configuration and fills in the defaults.
func newClient(c Config) (*Client, error) {
	table := make([]node.Peer, len(c.Servers))
	for i, s := range c.Servers {
		table[i] = node.Peer(s)
	}
	table, err := slots.Check(table, c.NoAmnesia)
	if err != nil {
		return nil, fmt.Errorf("poundlock: %w", err)
	}
	c.Servers = make([]Server, len(table))
	for i, p := range table {
		c.Servers[i] = Server(p)
	}
	for _, d := range []struct {
		name  string
		value *time.Duration
		zero  time.Duration
	}{
		{"Lease", &c.Lease, slots.DefaultLease},
		{"ClockBound", &c.ClockBound, slots.DefaultClockBound},
		{"QuorumWait", &c.QuorumWait, 10 * time.Second},
	} {
		if *d.value < 0 {
			return nil, fmt.Errorf("poundlock: negative %s %v", d.name, *d.value)
		}
		if *d.value == 0 {
			*d.value = d.zero
		}
	}
	if c.ClockBound > slots.MaxClockBound {
		return nil, fmt.Errorf("poundlock: ClockBound %v: want at most %v", c.ClockBound, slots.MaxClockBound)
	}
	if c.Label == "" {
		host, err := os.Hostname()
		if err != nil {
			host = "unknown host"
		}
		c.Label = fmt.Sprintf("%s/%d", host, os.Getpid())
	}
	return &Client{
		config:  c,
		id:      node.NewClientID(),
		quorum:  slots.Quorum(len(table)),
		closing: make(chan struct{}),
		lines:   map[string]*line{},
	}, nil
}

func (c *Client) awaitQuorum(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, c.config.QuorumWait)
	defer cancel()
	err := c.node.WaitAlive(bounded, c.quorum)
	if err == nil {
		return nil
	}
	if ctx.Err() != nil && !errors.Is(err, ctx.Err()) {
		err = fmt.Errorf("%w: %w", ctx.Err(), err)
	}
	return fmt.Errorf("%w: %w", ErrNoQuorum, err)
}

// ID is the name of this client in the status of the cluster. No two clients
// have the same one.
func (c *Client) ID() string { return fmt.Sprintf("%016x", uint64(c.id)) }

// Close gives up every lock and ends the sessions: those who wait get ErrClosed,
// and the contexts of holders end with a cause that is both ErrLost and
// ErrClosed. Servers give a lock that is still held to the next client at once,
// so unlock first.
func (c *Client) Close() error {
	c.mu.Lock()
	if c.closed() {
		c.mu.Unlock()
		return nil
	}
	close(c.closing)
	var held []*hold
	for _, l := range c.lines {
		if h := l.hold; h != nil && h.state == inside {
			h.lose(errLostByClose)
			h.state = leaving
			held = append(held, h)
		}
	}
	c.mu.Unlock()
	for _, h := range held {
		c.node.Exit(h.line.name)
	}
	if err := c.node.Close(); err != nil {
		return fmt.Errorf("poundlock: %w", err)
	}
	return nil
}

func (c *Client) closed() bool {
	select {
	case <-c.closing:
		return true
	default:
		return false
	}
}
