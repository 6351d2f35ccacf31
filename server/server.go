package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/poundlock/poundlock/internal/listen"
	"github.com/poundlock/poundlock/internal/members"
	"github.com/poundlock/poundlock/internal/slots"
	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/protocol"
)

// ErrInsecure says that a server would listen off loopback without TLS, where
// anybody could take and release locks.
var ErrInsecure = listen.ErrInsecure

// Config describes a server. Name and Servers are required.
type Config struct {
	Name    string      // which of Servers this one is
	Servers []node.Peer // the whole slot table; ids follow the names, so its order does not matter
	Epoch   uint64      // of the slot table; older ones are refused. SetTable replaces it

	Listen   string       // where to accept, HOST:PORT or unix:/path. Default: the own address in Servers
	Listener net.Listener // instead of Listen, without TLS; for tests
	TLS      *tls.Config  // with certificates; required off loopback
	Insecure bool         // allow to listen off loopback without TLS

	NoAmnesia  bool          // allow fewer than 4 servers: no server may ever lose its memory
	ClockBound time.Duration // eps: the distance of every clock from real time. Default 50ms, at most 1s
	Lease      time.Duration // the longest lease that a client gets. Default 10s, 20ms to 10m

	// MaxLocks is how many locks this server keeps for all clients together, idle ones
	// whose tokens it remembers included; new names are refused beyond. Default 2097152
	MaxLocks int

	// MaxSessions is how many clients may have a session, and MaxSessionsOfOne how many of these that come from one
	// address (an IPv6 network of 64 bits), or show one certificate. Default 16384, and no more than are left for others
	MaxSessions, MaxSessionsOfOne int
	// MaxWaiters is how many clients may hold or wait for a lock, each counted once for each lock: of one address or
	// certificate no more than are left for others. Default 4194304
	MaxWaiters int

	// RequireClockSync makes an unsynchronised kernel clock an error. Default: a
	// warning. Fencing tokens are monotone only while clocks are within ClockBound.
	RequireClockSync bool

	// Handover is unix:/path, in a directory of this user alone, where a process takes
	// the table over from the one that serves under this name, and later hands it over
	// to its own successor. "": a restart forgets the table.
	Handover string
	// SitOut keeps a server that starts without a predecessor mute for so long. Where
	// it is longer than all waits and holds, the restart is no loss of memory.
	SitOut time.Duration

	Audit *Audit       // of the supports that this server gives; nil: none
	Log   *slog.Logger // nil: discarded
}

// ErrClock says that RequireClockSync is not met.
var ErrClock = errors.New("fencing tokens need a synchronised clock")

// A Server is one member of a cluster.
type Server struct {
	config  Config
	shards  slots.Shards
	shard   slots.Shard // its own
	id      protocol.ID // in its shard
	moved   chan error  // has room for one; ends Run
	started time.Time
	node    *node.Node
	serving chan struct{} // closed once node is set

	accepts atomic.Bool // clients are served; changes under turn

	turn       sync.Mutex    // held by a hand-over, and by what must not meet one
	handedOver bool          // under turn
	mute       time.Duration // when clients are served, by the boot clock; 0: they are. Under turn

	mu       sync.Mutex
	listener net.Listener // the first or the current one; nil: none yet
}

// check says what is wrong beside the servers.
func (c *Config) check() error {
	switch {
	case c.ClockBound < 0 || c.ClockBound > slots.MaxClockBound:
		return fmt.Errorf("clock bound %v: want more than 0 and at most %v", c.ClockBound, slots.MaxClockBound)
	case c.Lease < node.MinLease || c.Lease > node.MaxLease:
		return fmt.Errorf("lease %v: want %v to %v", c.Lease, node.MinLease, node.MaxLease)
	case c.MaxLocks < 0:
		return fmt.Errorf("at most %d locks: want at least 1", c.MaxLocks)
	case min(c.MaxSessions, c.MaxSessionsOfOne, c.MaxWaiters) < 0:
		return fmt.Errorf("at most %d sessions or waiters: want at least 1, or 0 for the default",
			min(c.MaxSessions, c.MaxSessionsOfOne, c.MaxWaiters))
	case c.SitOut < 0:
		return fmt.Errorf("sit-out %v: want at least 0", c.SitOut)
	case c.Handover == "":
		return nil
	case c.Listener != nil:
		return errors.New("a listener that was given cannot be handed over")
	}
	if err := CheckHandover(c.Handover); err != nil {
		return fmt.Errorf("hand-over: %w", err)
	}
	return nil
}

// New checks the configuration and listens, unless there may be a predecessor that
// still does, or a time to sit out. The listener accepts no session before Run; a
// Server that is never run must be closed.
func New(c Config) (*Server, error) {
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	c.ClockBound = cmp.Or(c.ClockBound, slots.DefaultClockBound)
	c.Lease = cmp.Or(c.Lease, slots.DefaultLease)
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	table, err := slots.Check(c.Servers, c.NoAmnesia)
	if err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	c.Servers = table
	if _, err := members.Find(table, c.Name); err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	if err := checkClock(); err != nil {
		if c.RequireClockSync {
			return nil, fmt.Errorf("server: %w: %w", ErrClock, err)
		}
		c.Log.Warn("fencing tokens are monotone only while clocks are within the clock bound",
			"clock_bound", c.ClockBound, "reason", err)
	}
	s := &Server{config: c, shards: slots.Split(table), listener: c.Listener}
	s.serving, s.moved = make(chan struct{}), make(chan error, 1)
	s.shard = s.place(table)
	s.id, _ = members.Find(s.shard.Servers, c.Name)
	s.config.Listen = cmp.Or(s.config.Listen, s.shard.Servers[s.id].Addr)
	if s.listener != nil {
		s.listener = listen.Secure(s.listener, c.TLS)
		return s, nil
	}
	if _, err := listen.Allowed(s.config.Listen, c.TLS, c.Insecure); err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	if c.Handover == "" && c.SitOut == 0 {
		if _, err = s.listen(); err != nil {
			return nil, fmt.Errorf("server: %w", err)
		}
	}
	return s, nil
}

// listen listens where clients expect the server, once more if it did before: also
// where the port was free to choose it is the same.
func (s *Server) listen() (net.Listener, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	addr := s.config.Listen
	if s.listener != nil && s.listener.Addr().Network() == "tcp" {
		addr = s.listener.Addr().String()
	}
	l, err := listen.At(addr, s.config.TLS, s.config.Insecure)
	if err == nil {
		s.listener = l
	}
	return l, err
}

// Addr is where the server listens, or listened last; nil where it never did.
func (s *Server) Addr() net.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener == nil {
		return nil
	}
	return s.listener.Addr()
}

// Close gives up the listener of a server that was never run.
func (s *Server) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener == nil {
		return nil
	}
	return s.listener.Close()
}

// Run serves until ctx ends, until its slot has moved, or until a successor has its
// table; it may be called once. Unless that was handed over, what the server knew is
// gone then.
func (s *Server) Run(ctx context.Context) error {
	defer s.Close()
	var in inheritance
	if s.config.Handover != "" {
		var err error
		if in, err = s.inherit(ctx); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("server: %w", err)
		}
	}
	n, err := s.begin(in)
	if err != nil {
		return fmt.Errorf("server: %w", err)
	}
	var h *heirs
	if in.guard != nil {
		h, err = s.awaitHeirs(ctx, in.guard)
		switch {
		case err == nil:
			defer h.close()
		case in.node == nil:
			return errors.Join(fmt.Errorf("server: hand-over: %w", err), n.Close(), in.guard.Close())
		default: // the table that was taken over is worth more than the next hand-over
			defer in.guard.Close()
			s.config.Log.Error("the table cannot be handed over later: the next restart has to drain",
				"server", s.config.Name, "handover", s.config.Handover, "reason", err)
		}
	}
	moved := s.wait(ctx, h)
	if h != nil {
		h.stop()
	}
	if !s.handedOver {
		s.config.Log.Info("closing", "server", s.config.Name)
	}
	if err := n.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("server: %w", err)
	}
	return moved
}

// begin starts the node, and serves unless the server is to stay mute.
func (s *Server) begin(in inheritance) (n *node.Node, err error) {
	s.turn.Lock()
	defer s.turn.Unlock()
	if n, s.mute = in.node, in.mute; n == nil {
		if n, err = node.Start(s.nodeConfig()); err != nil {
			return nil, err
		}
		if s.config.SitOut > 0 {
			s.mute = n.Boot() + s.config.SitOut
		}
	}
	s.node, s.started = n, time.Now()
	close(s.serving)
	if s.mute == 0 {
		if err := s.open(); err != nil {
			return nil, errors.Join(err, n.Close())
		}
		return n, nil
	}
	s.config.Log.Info("sits out: does not serve clients yet", "server", s.config.Name,
		"until", time.Now().Add(s.mute-n.Boot()).Format(time.RFC3339Nano))
	return n, nil
}

// open serves clients. turn is held.
func (s *Server) open() error {
	s.mu.Lock()
	l := s.listener
	s.mu.Unlock()
	if l == nil {
		var err error
		if l, err = s.listen(); err != nil {
			return err
		}
	}
	if err := s.node.Serve(l); err != nil {
		return err
	}
	s.mute = 0
	s.accepts.Store(true)
	s.config.Log.Info("serving", "server", s.config.Name, "addr", l.Addr().String(), "servers", len(s.shard.Servers),
		"quorum", slots.Quorum(len(s.shard.Servers)), "incarnation", hex(s.node.Incarnation()))
	return nil
}

// wait returns when the server is to end, with the reason if it is an error. A server
// that sits out begins to serve meanwhile.
func (s *Server) wait(ctx context.Context, h *heirs) error {
	var gone <-chan struct{} // the table is somebody else's, or ctx has ended
	if h != nil {
		gone = h.ended
	}
	sitting := time.NewTimer(0)
	defer sitting.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-gone:
			return nil
		case err := <-s.moved:
			return err
		case <-sitting.C:
			left, err := s.sitOut()
			if err != nil {
				return fmt.Errorf("server: %w", err)
			}
			if left > 0 {
				sitting.Reset(left)
			}
		}
	}
}

// sitOut begins to serve when it is time, or says how long that is.
func (s *Server) sitOut() (left time.Duration, err error) {
	s.turn.Lock()
	defer s.turn.Unlock()
	if s.mute == 0 || s.handedOver {
		return 0, nil
	}
	if left = s.mute - s.node.Boot(); left > 0 {
		return left, nil
	}
	return 0, s.open()
}

// nodeConfig is that of the node, which gets its listener later.
func (s *Server) nodeConfig() node.Config {
	c := s.config
	n := s.shards.Node(s.shard, c.Epoch, c.ClockBound)
	n.ID, n.Label, n.Log = s.id, c.Name, c.Log
	n.Owns, n.Audit = s.owns, c.Audit.noter()
	n.Lease, n.ClockBound = c.Lease, c.ClockBound
	n.MaxInstances, n.MaxWaiters = c.MaxLocks, c.MaxWaiters
	n.MaxSessions, n.MaxSessionsOfOne = c.MaxSessions, c.MaxSessionsOfOne
	n.Call = func(from protocol.ID, request []byte) []byte {
		<-s.serving
		return s.answer(from, request)
	}
	return n
}

// running is the node once the server serves, and nil before.
func (s *Server) running() *node.Node {
	select {
	case <-s.serving:
		return s.node
	default:
		return nil
	}
}

// clients is how many clients have a session.
func (s *Server) clients() int {
	n := s.running()
	if n == nil {
		return 0
	}
	k := 0
	for _, x := range n.Sessions() {
		if x.Peer >= protocol.ID(len(s.shard.Servers)) {
			k++
		}
	}
	return k
}

func names(table []node.Peer) string { return strings.Join(node.Names(table), ", ") }
