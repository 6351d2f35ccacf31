package faultnet

import (
	"context"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/poundlock/poundlock/transport"
)

// A Direction is one of the two ways through a proxy, or both.
type Direction uint8

// The directions.
const (
	Up   Direction = 1 << iota // from the client to the server
	Down                       // from the server to the client
	Both = Up | Down
)

// maxConns is how many connections one proxy holds; further ones wait. A client
// that is cut off dials again and again, and what it closes is held, too.
const maxConns = 256

// settings are what a proxy does at the moment.
type settings struct {
	delay  time.Duration                 // one way
	jitter time.Duration                 // at most this much more
	draw   func(Direction) time.Duration // in place of both; nil: they count
	cut    Direction
}

// A Proxy passes connections on to one target. Its methods may be called at any
// time, from several goroutines, and act on open connections at once.
type Proxy struct {
	listener net.Listener

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu      sync.Mutex
	target  string
	s       settings
	changed chan struct{} // closed when s changes
	conns   map[*conn]struct{}
	closed  bool
}

// New starts a proxy for target, host:port or unix:/path, at a free port of
// loopback.
func New(target string) (*Proxy, error) {
	if err := transport.CheckAddr(target); err != nil {
		return nil, err
	}
	l, err := transport.Listen("127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{target: target, listener: l, changed: make(chan struct{}), conns: map[*conn]struct{}{}}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.wg.Go(p.accept)
	return p, nil
}

// Addr is where clients find the target now, in the form that New takes.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// SetDelay has what is read from now on arrive this much later, in each direction,
// plus a random part of jitter that is drawn anew whenever something is read. A
// connection stays in order.
func (p *Proxy) SetDelay(delay, jitter time.Duration) {
	p.set(func(s *settings) { s.delay, s.jitter = max(0, delay), max(0, jitter) })
}

// Draw has what is read from now on arrive so much later as f says, which is given the direction and called once for
// each read, by one goroutine at a time. A connection stays in order.
func (p *Proxy) Draw(f func(Direction) time.Duration) { p.set(func(s *settings) { s.draw = f }) }

// Cut lets nothing pass in a direction any more, until Heal.
func (p *Proxy) Cut(d Direction) { p.set(func(s *settings) { s.cut |= d }) }

// SetTarget has connections that are dialed from now on go to another target.
func (p *Proxy) SetTarget(target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = target
}

// SetCut lets nothing pass in d, and everything the other way.
func (p *Proxy) SetCut(d Direction) { p.set(func(s *settings) { s.cut = d }) }

// Heal ends every cut.
func (p *Proxy) Heal() { p.set(func(s *settings) { s.cut = 0 }) }

// Break resets every connection. New ones are accepted.
func (p *Proxy) Break() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.abort()
	}
}

// Close stops listening, resets every connection and waits for the end of all
// goroutines.
func (p *Proxy) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.cancel()
	err := p.listener.Close()
	p.Break()
	p.wg.Wait()
	return err
}

func (p *Proxy) set(change func(*settings)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(&p.s)
	close(p.changed)
	p.changed = make(chan struct{})
}

// delay is how long what has been read in direction d takes.
func (p *Proxy) delay(d Direction) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.s.draw != nil:
		return max(0, p.s.draw(d))
	case p.s.jitter > 0:
		return p.s.delay + rand.N(p.s.jitter)
	}
	return p.s.delay
}

// now are the settings, and a channel that is closed when they change.
func (p *Proxy) now() (settings, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.s, p.changed
}

// passes waits until nothing is cut in direction d. It reports false when done is
// closed first.
func (p *Proxy) passes(d Direction, done <-chan struct{}) bool {
	for {
		s, changed := p.now()
		if s.cut&d == 0 {
			return true
		}
		select {
		case <-changed:
		case <-done:
			return false
		}
	}
}

func (p *Proxy) accept() {
	room := make(chan struct{}, maxConns)
	for {
		nc, err := p.listener.Accept()
		if err != nil {
			if p.ctx.Err() != nil {
				return
			}
			select { // out of descriptors, for one: it may pass
			case <-time.After(10 * time.Millisecond):
			case <-p.ctx.Done():
			}
			continue
		}
		select {
		case room <- struct{}{}:
		case <-p.ctx.Done():
			nc.Close()
			return
		}
		p.wg.Go(func() {
			defer func() { <-room }()
			p.serve(nc)
		})
	}
}

// serve passes one connection on until it has ended at both ends.
func (p *Proxy) serve(client net.Conn) {
	c := newConn(p, client)
	defer c.abort()
	p.mu.Lock()
	closed := p.closed
	if !closed {
		p.conns[c] = struct{}{}
	}
	p.mu.Unlock()
	if closed {
		return
	}
	c.run()
	p.mu.Lock()
	delete(p.conns, c)
	p.mu.Unlock()
}
