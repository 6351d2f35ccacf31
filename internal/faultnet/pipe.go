package faultnet

import (
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/poundlock/poundlock/transport"
)

// Limits of one direction of one connection.
const (
	maxHeld  = 256 << 10 // bytes that are on their way; with more the sender is not read
	maxItems = 4096      // reads that are on their way
	maxRead  = 16 << 10
)

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
	c    *conn
	dir  Direction
	swap int // every swap-th frame changes places with the next one; 0: none

	mu    sync.Mutex
	items []item
	held  int           // bytes in items
	last  time.Time     // due of the last item: a stream stays in order
	moved chan struct{} // one element: items changed
	room  chan struct{} // one element: there is room again
}

func newPipe(c *conn, d Direction, swap int) *pipe {
	return &pipe{c: c, dir: d, swap: swap, moved: make(chan struct{}, 1), room: make(chan struct{}, 1)}
}

// read puts on the way what comes from one end, until it ends.
func (p *pipe) read(from net.Conn) {
	b := make([]byte, maxRead)
	source := func() ([]byte, error) {
		n, err := from.Read(b)
		return slices.Clone(b[:n]), err
	}
	if p.swap > 0 {
		source = swapped(from, p.swap)
	}
	for {
		b, err := source()
		if len(b) > 0 {
			p.push(item{bytes: b})
		}
		if err != nil {
			e := broken
			if errors.Is(err, io.EOF) {
				e = closed
			}
			p.push(item{end: e})
			return
		}
		if !p.awaitRoom() {
			return
		}
	}
}

// push puts an item on the way.
func (p *pipe) push(i item) {
	s, _ := p.c.p.now()
	delay := s.delay
	if s.jitter > 0 {
		delay += rand.N(s.jitter)
	}
	p.mu.Lock()
	i.due = time.Now().Add(delay)
	if s.rate > 0 {
		free := time.Now()
		if p.last.After(free.Add(delay)) {
			free = p.last.Add(-delay)
		}
		i.due = free.Add(delay + time.Duration(float64(len(i.bytes))/s.rate*float64(time.Second)))
	}
	if i.due.Before(p.last) {
		i.due = p.last
	}
	p.last = i.due
	p.items = append(p.items, i)
	p.held += len(i.bytes)
	p.mu.Unlock()
	signal(p.moved)
}

// awaitRoom waits until there is room for another item. It reports false when the
// connection has ended.
func (p *pipe) awaitRoom() bool {
	for {
		p.mu.Lock()
		full := p.held >= maxHeld || len(p.items) >= maxItems
		p.mu.Unlock()
		if !full {
			return p.c.ctx.Err() == nil
		}
		select {
		case <-p.room:
		case <-p.c.ctx.Done():
			return false
		}
	}
}

// next waits until the first item is due and nothing is cut, and returns it. It
// stays the first one. false says that the connection has ended.
func (p *pipe) next() (item, bool) {
	done := p.c.ctx.Done()
	for {
		p.mu.Lock()
		var first item
		ok := len(p.items) > 0
		if ok {
			first = p.items[0]
		}
		p.mu.Unlock()
		if !ok {
			select {
			case <-p.moved:
				continue
			case <-done:
				return item{}, false
			}
		}
		if wait := time.Until(first.due); wait > 0 {
			t := time.NewTimer(wait)
			select {
			case <-t.C:
			case <-done:
				t.Stop()
				return item{}, false
			}
		}
		return first, p.c.p.passes(p.dir, done)
	}
}

// pop removes the first item.
func (p *pipe) pop() {
	p.mu.Lock()
	p.held -= len(p.items[0].bytes)
	p.items[0] = item{}
	p.items = p.items[1:]
	p.mu.Unlock()
	signal(p.room)
}

// write delivers to one end until the connection has ended. When that end does not
// take it any more, the news goes back the way that everything goes.
func (p *pipe) write(to net.Conn, back *pipe) {
	refused := false
	for {
		i, ok := p.next()
		if !ok {
			return
		}
		p.pop()
		switch i.end {
		case broken:
			reset(to)
			back.push(item{end: broken}) // that pipe may have nobody who reads
			return
		case closed:
			if half, ok := to.(interface{ CloseWrite() error }); ok {
				half.CloseWrite() // nobody to tell if it fails
			}
			if p.c.closed.Add(1) == 2 {
				p.c.close()
				return
			}
			continue // the end may still refuse
		}
		if refused {
			continue
		}
		n, err := to.Write(i.bytes)
		p.c.p.passed[p.dir.index()].Add(int64(n))
		if err != nil {
			refused = true
			back.push(item{end: broken})
		}
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// swapped reads whole frames. The k-th, the 2k-th and so on come after the one that
// follows them.
func swapped(from io.Reader, k int) func() ([]byte, error) {
	count := 0
	frame := func() ([]byte, error) {
		body, err := transport.ReadFrame(from, transport.MaxFrame)
		if err != nil {
			return nil, err
		}
		b := append(make([]byte, 4, 4+len(body)), body...)
		transport.EndFrame(b)
		return b, nil
	}
	return func() ([]byte, error) {
		b, err := frame()
		if count++; err != nil || count%k != 0 {
			return b, err
		}
		next, err := frame()
		count++
		return append(next, b...), err
	}
}
