package faultnet

import (
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"time"
)

// Limits of one direction of one connection.
const (
	maxItems = 64 // reads that are on their way; with more the sender is not read
	maxRead  = 16 << 10
)

// exact is the last part of a delay, which is waited for without rounding.
const exact = 2 * time.Millisecond

// An end says what an item has instead of bytes.
type end uint8

const (
	open   end = iota // bytes
	closed            // no more bytes will come
	broken            // the connection was reset
)

// An item is what one read returned, and when it is to arrive.
type item struct {
	bytes []byte
	end   end
	due   time.Time
}

// A pipe is one direction of one connection: what is on its way.
type pipe struct {
	c     *conn
	dir   Direction
	items chan item

	refused bool // the end where things arrive takes nothing more

	mu   sync.Mutex // held until an item is on its way: a stream stays in order
	last time.Time  // due of the last item
}

func newPipe(c *conn, d Direction) *pipe {
	return &pipe{c: c, dir: d, items: make(chan item, maxItems)}
}

// read puts on the way what comes from one end, until it ends.
func (p *pipe) read(from net.Conn) {
	b := make([]byte, maxRead)
	for {
		n, err := from.Read(b)
		if n > 0 && !p.push(item{bytes: slices.Clone(b[:n])}) {
			return
		}
		if err != nil {
			e := broken
			if errors.Is(err, io.EOF) {
				e = closed
			}
			p.push(item{end: e})
			return
		}
	}
}

// push puts an item on the way, as soon as there is room. It reports false when the
// connection has ended.
func (p *pipe) push(i item) bool {
	delay := p.c.p.delay(p.dir)
	p.mu.Lock()
	defer p.mu.Unlock()
	if i.due = time.Now().Add(delay); i.due.Before(p.last) {
		i.due = p.last
	}
	p.last = i.due
	select {
	case p.items <- i:
		return true
	case <-p.c.ctx.Done():
		return false
	}
}

// next waits until the first item is due and nothing is cut, and takes it. false says
// that the connection has ended.
func (p *pipe) next() (i item, ok bool) {
	done := p.c.ctx.Done()
	select {
	case i = <-p.items:
	case <-done:
		return i, false
	}
	if wait := time.Until(i.due) - exact; wait > 0 {
		select {
		case <-time.After(wait):
		case <-done:
			return i, false
		}
	}
	if wait := time.Until(i.due); wait > 0 {
		Sleep(wait)
	}
	return i, p.c.p.passes(p.dir, done)
}

// write delivers to one end until the connection has ended.
func (p *pipe) write(to net.Conn, back *pipe) {
	for i, ok := p.next(); ok && p.deliver(i, to, back); {
		i, ok = p.next()
	}
}

// deliver delivers one item, and reports whether more may come. When the end does not take it
// any more, the news goes back the way that everything goes.
func (p *pipe) deliver(i item, to net.Conn, back *pipe) (goesOn bool) {
	switch i.end {
	case broken:
		reset(to)
		back.push(item{end: broken}) // that pipe may have nobody who reads
		return false
	case closed:
		if half, ok := to.(interface{ CloseWrite() error }); ok {
			half.CloseWrite() // nobody to tell if it fails
		}
		if p.c.closed.Add(1) == 2 {
			p.c.close()
			return false
		}
		return true // the end may still refuse
	}
	if p.refused {
		return true
	}
	if _, err := to.Write(i.bytes); err != nil {
		p.refused = true
		back.push(item{end: broken})
	}
	return true
}
