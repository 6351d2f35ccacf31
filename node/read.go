package node

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/poundlock/poundlock/internal/limit"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/transport"
)

// restOfFrame is how long the rest of a frame may take that has begun, at the end that accepted the connection.
const restOfFrame = 5 * time.Second

const readBuffer = 8 << 10

// smallFrame is what a frame may take without a place in the room for frames.
const smallFrame = 8 << 10

var errNoRoom = errors.New("there is no room for more frames")

var errSlow = fmt.Errorf("a frame that began did not end within %v", restOfFrame)

// FrameStats counts the frames of connections that were closed because of them, before they were handled.
type FrameStats struct {
	Unfinished int    // bytes of memory for frames that are to come, or to be handled, now; small ones do not count
	Slow       uint64 // they took too long
	NoRoom     uint64 // there was no room for more
	TooLarge   uint64 // they ended the session
}

// read handles frames until one is wrong or the connection ends.
func (c *conn) read() error {
	// Heartbeats show the end that has dialed whether the other one answers, and a lease ends the sessions of one that is silent.
	idle := time.Duration(0)
	if !c.dials && !c.n.roles.leased(c.s.id) {
		idle = c.lease
	}
	for {
		if err := c.readWhole(idle); err != nil {
			return err
		}
		c.await(idle)
		if err := c.readOne(idle); err != nil {
			return err
		}
	}
}

// readWhole handles frames that have come as a whole, and waits for more, until one comes in parts: then it returns nil.
func (c *conn) readWhole(idle time.Duration) (err error) {
	if c.calm == nil {
		return nil
	}
	c.await(idle) // also where the last deadline is over, which was of a part of a frame
	over := c.calm.wait(func() (done bool) {
		for err == nil {
			whole, nothing := transport.Whole(c.in)
			switch {
			case nothing == nil && whole:
				err = c.readOne(idle)
			case nothing == errNothing && c.in.Buffered() == 0:
				c.await(idle)
				if !c.isClosed() { // it may have been interrupted before the last deadline was set
					return false
				}
				err = c.ended()
			case nothing == nil || nothing == errNothing:
				return true
			default:
				err = nothing
			}
		}
		return true
	})
	if err == nil {
		err = over
	}
	return err
}

// readOne reads a frame and handles it.
func (c *conn) readOne(idle time.Duration) error {
	frame, g, err := c.readFrame(idle)
	if errors.Is(err, transport.ErrFrame) && c.n.roles.leased(c.s.id) {
		c.n.sessions.end(c.s, err, fault(err).Append(nil))
		c.discard()
	}
	if err != nil {
		return err
	}
	c.handles.Store(true)
	c.n.counters.with(c.s.id).received.Add(transport.LengthSize + uint64(len(frame)))
	h, items, err := transport.ReadHeader(frame)
	if err == nil {
		err = h.Check()
	}
	// Where the epoch is an old one the peer is about to be told.
	if err == nil && (c.dials || !c.outdated(h.Epoch)) {
		var kept bool
		if kept, err = c.frame(items); kept || cap(frame) > keepFrame {
			frame = nil
		}
		c.memory = frame
	}
	c.handled(g)
	c.handles.Store(false)
	// Nothing sound can follow on another connection. But what comes after the
	// session was dropped here fits nothing, and is not the peer's fault.
	goesOn := err == errReplaced || errors.Is(err, errOldTable) // on another connection
	switch {
	case err == nil, c.finishing(): // the session is over, and the writer about to say why, within its timeouts
		return nil
	case !c.n.roles.leased(c.s.id) || goesOn || c.s.dead.Load():
		return err
	}
	c.n.sessions.end(c.s, err, fault(err).Append(nil))
	return nil
}

// discard reads, for a while, what nothing is to be made of: the peer would not hear why its session ends if the connection were
// closed while there is more to read.
func (c *conn) discard() {
	c.nc.SetReadDeadline(time.Now().Add(closeTime))
	_, _ = io.Copy(io.Discard, c.in)
}

// readFrame reads the next frame, for which a connection that is idle gets so long, with 0 for ever. At the end that accepted the
// connection the frame has a place in Node.frames, unless it is small, until g leaves: memory follows what came, is
// counted before it is there, and is kept by those that a peer sends to its end, unless its host keeps too much.
func (c *conn) readFrame(idle time.Duration) (frame []byte, g *limit.Guest, err error) {
	if c.isClosed() {
		return nil, nil, c.ended()
	}
	if c.dials {
		frame, err = transport.ReadFrameInto(c.in, transport.MaxFrame, c.memory, nil)
		return frame, nil, err
	}
	began := false
	frame, err = transport.ReadFrameInto(c.in, c.maxFrame(), c.memory, func(whole, memory int) error {
		if !began && c.in.Buffered() < whole {
			rest := restOfFrame
			if idle > 0 {
				rest = min(idle, rest)
			}
			c.expect(time.Now().Add(rest))
		}
		began = true
		if memory <= smallFrame {
			return nil
		}
		if g == nil {
			g = c.n.frames.Guest(addressOf(c.nc), true, func(int) { interrupt(c.nc) })
		}
		if _, ok := g.Take(memory); !ok {
			return errNoRoom
		}
		return nil
	})
	if g != nil && err == nil && !g.Keep() {
		err = errNoRoom
	}
	if err == nil {
		return frame, g, nil
	}
	if g != nil && g.Leave() {
		err = errNoRoom
	}
	counted := &c.n.counters.frames
	switch {
	case errors.Is(err, errNoRoom):
		counted.noRoom.Add(1)
	case began && errors.Is(err, os.ErrDeadlineExceeded):
		counted.slow.Add(1)
		err = errSlow
	case errors.Is(err, transport.ErrFrame):
		counted.tooLarge.Add(1)
		return nil, nil, err // the end of the session is logged
	default:
		return nil, nil, err
	}
	c.n.book.warn(c.s.host, "closed a connection", "peer", c.n.roles.name(c.s.id), "from", c.nc.RemoteAddr(), "reason", err)
	return nil, nil, err
}

// keepFrame is how large the memory of a frame may be that is kept for the next one.
const keepFrame = 512

// await has reading end where no frame begins for so long, with 0 never.
func (c *conn) await(idle time.Duration) {
	// To set a deadline costs as much as to handle a message: one that is a little early will do.
	if idle > 0 {
		if now := time.Now(); c.patience.Sub(now) < idle-idle/8 {
			c.expect(now.Add(idle))
		}
	} else if !c.patience.IsZero() {
		c.expect(time.Time{})
	}
}

// expect has reading end at a time, zero: never.
func (c *conn) expect(until time.Time) {
	c.patience = until
	c.nc.SetReadDeadline(until)
	if c.isClosed() { // it may have been interrupted before that
		interrupt(c.nc)
	}
}

// reader returns what reads from a connection. Members of clients, and these, get along with fewer calls of the system.
func (n *Node) reader(nc net.Conn) (*bufio.Reader, *calm) {
	if n.roles.info.Users == protocol.Clients {
		if c := newCalm(nc); c != nil {
			return bufio.NewReaderSize(c, readBuffer), c
		}
	}
	return bufio.NewReaderSize(nc, readBuffer), nil
}

// maxFrame is how large the frames of the peer may be.
func (c *conn) maxFrame() int {
	if c.n.roles.isMember(c.s.id) {
		return transport.MaxFrame
	}
	return transport.MaxClientFrame
}

// handled ends what readFrame began.
func (c *conn) handled(g *limit.Guest) {
	if g != nil {
		g.Leave()
	}
}
