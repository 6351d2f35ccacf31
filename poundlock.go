// Package poundlock is the client of the lock service: exclusive locks held by
// a cluster of memory-only servers, any of which may crash and come back empty.
//
// A lock is a name. Dial opens one session with each server (see there for shards), Client.Mutex names
// a lock, and Lock returns a Grant: a fencing token, and a context that ends
// when the lock is lost. A process that is stopped between its last look at that
// context and its write does not notice; only the resource can, by refusing a
// token that is smaller than one it has seen. Package fence does that.
//
// Values come from the functions and methods that return them. A zero Client, Mutex,
// Grant, Semaphore, Election or Leadership is not for use: its methods may panic.
package poundlock

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/poundlock/poundlock/internal/shrinkmap"
	"github.com/poundlock/poundlock/internal/slots"
	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/transport"
)

// A Server is one slot of the slot table: its Name, or SHARD/NAME where each shard serves a part
// of the lock names, on its own; and its Addr, host:port or unix:/path.
type Server = node.Peer

// Config says how to reach a cluster. Servers is required.
type Config struct {
	// Servers is the whole slot table; ids follow the names, so its order does not
	// matter. The names are for ever; a newer table, with other addresses, comes from
	// the servers when they have one.
	Servers []Server
	// TLS is nil for plaintext. Without a ServerName each server's certificate must
	// be for the host of its address, or for its Name where that is a unix socket.
	TLS *tls.Config
	// Lease is how long servers keep the locks of a silent client: shorter frees
	// the locks of a crashed client sooner, longer survives longer pauses.
	// Default 10s, 20ms to 10m; servers may allow less.
	Lease time.Duration
	// EndWithConnection has servers give the locks of this client to the next ones as soon as the system of this machine
	// has ended its connections, which it does when this process is killed, and not when the lease has ended. The client
	// in turn gives up at once what it holds at a server whose connection breaks, and acquires it anew.
	//
	// Set it only where both hold. Nothing acts under the locks but this process: a child that it has started may
	// outlive it, and so do others for whom it holds locks. And connections are direct: a proxy, a mesh, a gateway or a firewall that ends the servers' half of
	// one while this process lives makes that server forget this client, as a restart does. Fewer than a third of
	// the servers may do so at a time; one middle box that ends all of them lets somebody else in beside
	// this client, until that has noticed.
	EndWithConnection bool
	// Outlived says that something may act under the locks after the end of this process: a child that it has started, or others
	// for whom it holds locks. Else servers with unix sockets give its locks to the next ones as soon as it was
	// killed, where the system (Linux 6.5 and later) tells them of its end. EndWithConnection is the same promise for all sockets.
	Outlived bool
	// ClockBound is eps, the distance of every clock from real time; servers need
	// the same. Default 50ms, at most 1s.
	ClockBound time.Duration
	// QuorumWait is how long Dial and Lock go on while fewer servers than a quorum
	// can be reached, should their context allow more. Default 10s.
	QuorumWait time.Duration
	// MaxHold is how long a grant may last: then it ends as if its locks were lost,
	// and they are given up when it is unlocked, or after Grace although it is not.
	// Nothing prolongs that.
	// Default: without end.
	MaxHold time.Duration
	Grace   time.Duration // default 5s
	// ReleaseGrace is the shortest grace that an operator may set for a grant that is to
	// be released (poundlock release --grace). Less than Grace lets an operator give a
	// lock to somebody else while the user here may still be inside.
	// Default, and at most: Grace.
	ReleaseGrace time.Duration
	// AwaitUnlock keeps the locks of a grant that MaxHold or an operator has ended until
	// it is unlocked, after its grace too. It is for a user who unlocks in the end, and
	// may not meet another one inside.
	AwaitUnlock bool
	// KeepSessions has a client of several shards dial the servers of all of them at once, and keep its sessions where it wants
	// nothing. It is for a client that watches servers, or whose first lock in a shard must not wait for a connection. Otherwise see Dial.
	KeepSessions bool
	// Label says who this is, to people: at most 1024 bytes of UTF-8 without control
	// characters. Default: host name and process id.
	Label     string
	Epoch     uint64       // of the slot table, grows with each change. Default 0
	NoAmnesia bool         // allow fewer than 4 servers: no server may ever lose its memory
	Log       *slog.Logger // nil: discarded
	// Audit gets a record for each grant, downgrade, release and loss of a lock: "grant",
	// "downgrade", "release" or "loss", with lock, token (decimal, as text), request (as in the servers' audit), client,
	// label, and held_ms and reason where they apply. If it is so slow that 4096 wait,
	// others are left out, and a record "dropped" says how many. nil: off.
	Audit *slog.Logger
}

// A Client has one session with each server, shared by all locks: where there are several shards, with each server of
// those shards that it wants something of. Dial and Connect make one; a zero Client is not for use. Its methods, and those of its mutexes and
// grants, may be called from several goroutines at once.
type Client struct {
	config  Config
	secret  uint64 // its id follows from it, and servers alone are told
	id      protocol.ID
	all     slots.Shards // those of shards
	shards  []*shard
	usual   terms // what most users want
	began   time.Time
	closing chan struct{} // closed by Close
	pulse   pulse

	counters counters
	audit    auditor

	mu    sync.Mutex                   // never held while calling node, which calls back
	stays shrinkmap.Map[string, *stay] // by the name of their locks
}

// Dial connects to a cluster and returns when a quorum answers. When ctx or
// Config.QuorumWait ends first it returns ErrNoQuorum with what each server said.
//
// Where there are several shards of servers a quorum of one is enough, which is chosen at random; others are dialed at
// once only while it has none. Whoever wants a lock waits for the shard that serves it, which is dialed
// then if it was not before, and gets ErrNoQuorum if that is down. The sessions with
// the servers of a shard end when the client has wanted nothing there for a minute, or for six leases if that is longer:
// it holds, waits for and keeps no lock of that shard. The next lock dials again, which takes two round trips more, without TLS.
func Dial(ctx context.Context, config Config) (*Client, error) {
	c, err := open(config)
	if err != nil {
		return nil, err
	}
	if err := c.awaitQuorum(ctx); err != nil {
		return nil, errors.Join(err, c.closeNodes())
	}
	return c, nil
}

// Connect is Dial without waiting: it returns a client that goes on trying to reach
// the servers until it is closed. Its error is about the configuration.
func Connect(config Config) (*Client, error) {
	c, err := open(config)
	if err == nil && c.idle() > 0 { // otherwise all servers are dialed anyway
		go func() { _ = c.awaitQuorum(context.Background()) }()
	}
	return c, err
}

// open starts a client.
func open(config Config) (*Client, error) {
	c, err := newClient(config)
	if err != nil {
		return nil, err
	}
	if err := c.start(false); err != nil {
		return nil, err
	}
	return c, nil
}

// start starts the nodes. follows says that the client had others, which have ended.
func (c *Client) start(follows bool) error {
	c.audit.start(c.id, c.config)
	for i, g := range c.shards {
		if err := g.start(c.secret, c.idle(), follows, c.all, c.config, c.answer); err != nil {
			c.shards = c.shards[:i]
			return errors.Join(err, c.closeNodes())
		}
	}
	return nil
}

// newClient checks the configuration and fills in the defaults.
func newClient(c Config) (*Client, error) {
	var err error
	if c.Servers, err = slots.Check(c.Servers, c.NoAmnesia); err != nil {
		return nil, fmt.Errorf("poundlock: %w", err)
	}
	if err := c.complete(); err != nil {
		return nil, err
	}
	secret := node.NewSecret()
	client := &Client{
		config:  c,
		secret:  secret,
		id:      node.ClientID(secret),
		all:     slots.Split(c.Servers),
		began:   time.Now(),
		closing: make(chan struct{}),
	}
	client.usual.client = client
	for _, g := range client.all {
		k := slots.Quorum(len(g.Servers))
		client.shards = append(client.shards, &shard{
			Shard: g, quorum: k, needed: len(g.Servers) - k + 1, info: slots.Algorithm(), lack: ErrNoQuorum,
		})
	}
	return client, nil
}

// complete fills in the defaults of what does not depend on servers, and says what is wrong there.
func (c *Config) complete() error {
	for _, d := range []struct {
		name  string
		value *time.Duration
		zero  time.Duration
	}{
		{"Lease", &c.Lease, slots.DefaultLease},
		{"ClockBound", &c.ClockBound, slots.DefaultClockBound},
		{"QuorumWait", &c.QuorumWait, 10 * time.Second},
		{"MaxHold", &c.MaxHold, 0},
		{"Grace", &c.Grace, 5 * time.Second},
		{"ReleaseGrace", &c.ReleaseGrace, 0},
	} {
		if *d.value < 0 {
			return fmt.Errorf("poundlock: negative %s %v", d.name, *d.value)
		}
		if *d.value == 0 {
			*d.value = d.zero
		}
	}
	if c.ClockBound > slots.MaxClockBound {
		return fmt.Errorf("poundlock: ClockBound %v: want at most %v", c.ClockBound, slots.MaxClockBound)
	}
	if c.ReleaseGrace = cmp.Or(c.ReleaseGrace, c.Grace); c.ReleaseGrace > c.Grace {
		return fmt.Errorf("poundlock: ReleaseGrace %v: want at most Grace, %v", c.ReleaseGrace, c.Grace)
	}
	if c.Label == "" {
		host, err := os.Hostname()
		if err != nil || transport.CheckLabel(host) != nil {
			host = "unknown host"
		}
		c.Label = fmt.Sprintf("%s/%d", host, os.Getpid())
	}
	if err := transport.CheckLabel(c.Label); err != nil {
		return fmt.Errorf("poundlock: %w", err)
	}
	return nil
}

// EndsWithProcess reports whether servers may give the locks of this client to others as soon as this process was killed, and not
// only when its lease has ended: see Config.EndWithConnection and Config.Outlived. Peers never do.
func (c *Client) EndsWithProcess() bool {
	return c.secret != 0 && (c.config.EndWithConnection || !c.config.Outlived)
}

// ID is the name of this client in the status of the cluster. No two clients
// have the same one.
func (c *Client) ID() string { return idText(c.id) }

func idText(id protocol.ID) string { return fmt.Sprintf("%016x", uint64(id)) }

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
	var held []*stay
	for _, s := range c.stays.All() {
		if s.state == inside {
			s.lose(ErrClosed)
			s.state = leaving
			held = append(held, s)
		}
	}
	c.mu.Unlock()
	for _, s := range held {
		s.shard().node.Exit(s.name)
	}
	return c.closeNodes()
}

// closeNodes closes the nodes of all shards, at once: each may need a moment to say
// good-bye.
func (c *Client) closeNodes() error {
	defer c.audit.close()
	errs := make([]error, len(c.shards))
	var all sync.WaitGroup
	for i, g := range c.shards {
		all.Go(func() { errs[i] = g.node.Close() })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
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
