package faultnet

import (
	"context"
	"net"
	"sync"
	"time"
)

// A Cable joins ends of a Memory, and can be cut: what is written is then lost, and nobody is told. It is whole at first.
type Cable struct {
	Delay time.Duration // of what the dialing end receives

	mu    sync.Mutex
	cut   bool
	conns []net.Conn
}

// Cut cuts the cable, or mends it: then its connections break, because what has lost something must not go on.
func (c *Cable) Cut(cut bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cut = cut; cut {
		return
	}
	for _, conn := range c.conns {
		conn.Close()
	}
	c.conns = nil
}

// IsCut reports whether it is cut.
func (c *Cable) IsCut() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cut
}

// Dial connects to the listener at addr by this cable. It does not return before ctx ends while that is cut.
func (c *Cable) Dial(ctx context.Context, m *Memory, addr string) (net.Conn, error) {
	if c.IsCut() {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	conn, err := m.Dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	return c.Wrap(conn), nil
}

// Wrap has a connection go by this cable, too.
func (c *Cable) Wrap(conn net.Conn) net.Conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conns = append(c.conns, conn)
	return &cabled{conn, c}
}

// cabled loses what is written on either side of a cut cable: the other side's writes by never reading them.
type cabled struct {
	net.Conn
	cable *Cable
}

func (l *cabled) Write(b []byte) (int, error) {
	if l.cable.IsCut() {
		return len(b), nil
	}
	return l.Conn.Write(b)
}

func (l *cabled) Read(b []byte) (int, error) {
	n, err := l.Conn.Read(b)
	for err == nil && l.cable.IsCut() {
		n, err = l.Conn.Read(b)
	}
	time.Sleep(l.cable.Delay)
	return n, err
}

// A Mesh is a Memory with a Cable for each two of the addresses.
type Mesh struct {
	Memory
	mu     sync.Mutex
	cables map[[2]string]*Cable
}

// Between is the cable of two addresses.
func (m *Mesh) Between(a, b string) *Cable {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cables == nil {
		m.cables = map[[2]string]*Cable{}
	}
	pair := [2]string{min(a, b), max(a, b)}
	if m.cables[pair] == nil {
		m.cables[pair] = &Cable{}
	}
	return m.cables[pair]
}

// Dial connects one address to another one by their cable.
func (m *Mesh) Dial(ctx context.Context, from, to string) (net.Conn, error) {
	return m.Between(from, to).Dial(ctx, &m.Memory, to)
}
