package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/poundlock/poundlock/catalog"
	"github.com/poundlock/poundlock/internal/slots"
	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/transport"
)

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

	// RequireClockSync makes an unsynchronised kernel clock an error. Default: a
	// warning. Fencing tokens are monotone only while clocks are within ClockBound.
	RequireClockSync bool

	Audit *Audit       // of the supports that this server gives; nil: none
	Log   *slog.Logger // nil: discarded
}

// ErrClock says that RequireClockSync is not met.
var ErrClock = errors.New("fencing tokens need a synchronised clock")

// A Server is one member of a cluster.
type Server struct {
	config   Config
	groups   slots.Groups
	group    slots.Group // its own
	id       protocol.ID // in its group
	moved    chan error  // has room for one; ends Run
	listener net.Listener
	started  time.Time
	node     *node.Node
	serving  chan struct{} // closed once node is set
}

// New checks the configuration and listens. The listener accepts no session
// before Run; a Server that is never run must be closed.
func New(c Config) (*Server, error) {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.ClockBound == 0 {
		c.ClockBound = slots.DefaultClockBound
	}
	if c.Lease == 0 {
		c.Lease = slots.DefaultLease
	}
	if c.ClockBound < 0 || c.ClockBound > slots.MaxClockBound {
		return nil, fmt.Errorf("server: clock bound %v: want more than 0 and at most %v", c.ClockBound, slots.MaxClockBound)
	}
	if c.Lease < node.MinLease || c.Lease > node.MaxLease {
		return nil, fmt.Errorf("server: lease %v: want %v to %v", c.Lease, node.MinLease, node.MaxLease)
	}
	table, err := slots.Check(c.Servers, c.NoAmnesia)
	if err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	c.Servers = table
	if !slices.ContainsFunc(table, func(p node.Peer) bool { return p.Name == c.Name }) {
		return nil, fmt.Errorf("server: name %q is not in the list of servers (%s)", c.Name, names(table))
	}
	if err := checkClock(); err != nil {
		if c.RequireClockSync {
			return nil, fmt.Errorf("server: %w: %w", ErrClock, err)
		}
		c.Log.Warn("fencing tokens are monotone only while clocks are within the clock bound",
			"clock_bound", c.ClockBound, "reason", err)
	}
	s := &Server{config: c, groups: slots.Split(table), listener: c.Listener}
	s.serving, s.moved = make(chan struct{}), make(chan error, 1)
	s.group = s.place(table)
	own := slices.IndexFunc(s.group.Servers, func(p node.Peer) bool { return p.Name == c.Name })
	s.id = protocol.ID(own)
	if s.listener != nil {
		s.listener = secure(s.listener, c.TLS)
	} else {
		addr := c.Listen
		if addr == "" {
			addr = s.group.Servers[own].Addr
		}
		if err := transport.CheckListen(addr); err != nil {
			return nil, fmt.Errorf("server: %w", err)
		}
		if s.listener, err = listen(addr, c.TLS, c.Insecure); err != nil {
			return nil, fmt.Errorf("server: %w", err)
		}
	}
	return s, nil
}

// Addr is where the server listens.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Close gives up the listener of a server that was never run.
func (s *Server) Close() error { return s.listener.Close() }

// Run serves until ctx ends, or until its slot has moved; it may be called once. What
// the server knew is gone then.
func (s *Server) Run(ctx context.Context) error {
	defer s.listener.Close()
	c := s.config
	s.started = time.Now()
	n, err := node.Start(node.Config{
		ID:       s.id,
		System:   slots.System(len(s.group.Servers), c.ClockBound),
		Hosts:    hosts(),
		Peers:    s.group.Servers,
		Epoch:    c.Epoch,
		Groups:   s.groups.String(),
		Owns:     s.owns,
		Listener: s.listener,
		Lease:    c.Lease,
		Label:    c.Name,
		Log:      c.Log,
		Audit:    c.Audit.noter(),
		Call: func(from protocol.ID, request []byte) []byte {
			<-s.serving
			return s.answer(from, request)
		},
	})
	if err != nil {
		return fmt.Errorf("server: %w", err)
	}
	s.node = n
	close(s.serving)
	c.Log.Info("serving", "server", c.Name, "addr", s.listener.Addr().String(), "servers", len(s.group.Servers),
		"quorum", slots.Quorum(len(s.group.Servers)), "incarnation", hex(n.Incarnation()))
	var moved error
	select {
	case <-ctx.Done():
	case moved = <-s.moved:
	}
	c.Log.Info("closing", "server", c.Name)
	err = n.Close()
	if err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("server: %w", err)
	}
	return moved
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

// hosts make the processes of each kind of lock.
func hosts() map[node.Kind]node.Host {
	return map[node.Kind]node.Host{node.Mutex: catalog.Find("sigma", "").Host()}
}

// clients is how many clients have a session.
func (s *Server) clients() int {
	select {
	case <-s.serving:
	default:
		return 0
	}
	k := 0
	for _, x := range s.node.Sessions() {
		if x.Peer >= protocol.ID(len(s.group.Servers)) {
			k++
		}
	}
	return k
}

func names(table []node.Peer) string {
	var b strings.Builder
	for i, p := range table {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(p.Name)
	}
	return b.String()
}
