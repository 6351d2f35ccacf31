package faultnet

import (
	"context"
	"net"
	"sync"
	"sync/atomic"

	"github.com/poundlock/poundlock/transport"
)

// A conn is one connection of a client, with the one to the target that belongs to
// it.
type conn struct {
	p      *Proxy
	client net.Conn
	up     *pipe
	down   *pipe
	ctx    context.Context // ends with abort
	cancel context.CancelFunc
	closed atomic.Int32 // directions that have ended in order

	mu     sync.Mutex
	ended  bool
	server net.Conn // nil until the target has been dialed
}

func newConn(p *Proxy, client net.Conn) *conn {
	c := &conn{p: p, client: client}
	c.ctx, c.cancel = context.WithCancel(p.ctx)
	c.up, c.down = newPipe(c, Up), newPipe(c, Down)
	return c
}

// abort ends the connection at both ends at once, with a reset where there is such
// a thing.
func (c *conn) abort() { c.end(reset) }

// close ends it after both directions have ended in order.
func (c *conn) close() { c.end(func(nc net.Conn) { nc.Close() }) }

func (c *conn) end(how func(net.Conn)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return
	}
	c.ended = true
	c.cancel()
	how(c.client)
	if c.server != nil {
		how(c.server)
	}
}

func reset(nc net.Conn) {
	if t, ok := nc.(*net.TCPConn); ok {
		t.SetLinger(0)
	}
	nc.Close()
}

// run passes everything on until both directions have ended, or abort.
func (c *conn) run() {
	var wg sync.WaitGroup
	defer wg.Wait()
	defer c.abort()
	wg.Go(func() { c.up.read(c.client) })
	// The target hears nothing of a connection before its first bytes, and nothing
	// at all of one that was cut and given up.
	first, ok := c.up.next()
	if !ok || first.end != open {
		return
	}
	if !c.dial() {
		c.down.push(item{end: broken})
		c.down.write(c.client, c.up)
		return
	}
	wg.Go(func() { c.down.read(c.server) })
	var writers sync.WaitGroup
	writers.Go(func() {
		c.up.deliver(first, c.server, c.down)
		c.up.write(c.server, c.down)
	})
	writers.Go(func() { c.down.write(c.client, c.up) })
	writers.Wait()
}

func (c *conn) dial() bool {
	c.p.mu.Lock()
	target := c.p.target
	c.p.mu.Unlock()
	server, err := transport.Dial(c.ctx, "", target, nil)
	if err != nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		server.Close()
		return false
	}
	c.server = server
	return true
}
