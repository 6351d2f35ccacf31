package node

import (
	"net"
	"os"
	"slices"
	"time"

	"github.com/poundlock/poundlock/transport"
)

const (
	maxBatch     = 256 << 10 // bytes of messages in one frame
	writeTimeout = 10 * time.Second
	closeTime    = time.Second
	keepBuffer   = 64 << 10 // a larger one is not kept while nothing is to be written
)

// write sends frames until the connection is closed: everything that waits goes
// into one frame.
func (c *conn) write() {
	interval := beatEvery(c.lease)
	if !c.beats() {
		interval = MaxLease // as good as never
	}
	heartbeat := time.NewTimer(inStep(c.n.c.Boot(), interval, c.lease))
	defer heartbeat.Stop()
	var beat bool
	buffer := c.n.buffers.Get().(*[]byte)
	for {
		select {
		case <-c.done:
			return
		case <-heartbeat.C: // also when there is always something to write
			heartbeat.Reset(inStep(c.n.c.Boot(), interval, c.lease))
			beat = c.beat(interval)
		default:
		}
		wrote, last, err := c.writeFrame(buffer, beat)
		beat = false
		if err == nil && last != nil {
			c.awaitClose()
			err = last
		}
		switch {
		case err != nil:
			c.close(err)
			return
		case wrote:
			continue
		}
		if cap(*buffer) > keepBuffer {
			*buffer = nil
		}
		c.n.buffers.Put(buffer)
		select {
		case <-c.wake:
		case <-heartbeat.C:
			heartbeat.Reset(inStep(c.n.c.Boot(), interval, c.lease))
			beat = c.beat(interval)
		case <-c.done:
			return
		}
		buffer = c.n.buffers.Get().(*[]byte)
	}
}

// beatEvery is the time between two heartbeats of whoever has such a lease: twice without an answer, and there is time enough to connect anew.
func beatEvery(lease time.Duration) time.Duration { return lease * 3 / 10 }

// inStep is when to stop waiting, a little before so long, that those of all clients of a machine do together, 64 times between two
// heartbeats: a process that wakes for one has many to send, or to answer.
func inStep(now, wait, lease time.Duration) time.Duration {
	return wait - (now+wait)%max(beatEvery(lease)/64, 1)
}

// beat reports whether a heartbeat is due that is to be sent. Where the one before has not been answered until now the end that has
// dialed closes the connection.
func (c *conn) beat(interval time.Duration) bool {
	c.mu.Lock()
	late := c.pinged && c.n.c.Boot()-c.ping > interval/2
	c.mu.Unlock()
	if late && c.dials && !c.handles.Load() {
		c.close(&net.OpError{Op: "read", Err: os.ErrDeadlineExceeded})
	}
	return c.beats()
}

// writeFrame writes what is left of a frame, or one with what waits, if there is any. why is the error of the end of the
// connection, after this frame.
func (c *conn) writeFrame(buffer *[]byte, beat bool) (wrote bool, why, err error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	frame, last := c.rest, c.restWhy
	switch {
	case frame == nil:
		if frame, last = c.fill(*buffer, beat); frame == nil {
			return false, nil, nil
		}
		*buffer = frame
	case beat:
		c.ask() // with the next one
	}
	c.rest, c.restWhy = nil, nil
	k := 0
	if c.eager != nil { // most frames need no deadline, which costs more than to write them
		k, err = c.eager.write(frame)
	}
	if err == nil && k < len(frame) {
		var more int
		more, err = c.writeSlowly(frame[k:])
		k += more
	}
	c.n.counters.with(c.s.id).sent.Add(uint64(k))
	return true, last, err
}

// writeSlowly writes what may have to wait for the peer. The end that has dialed waits no longer than for heartbeats, which cannot go out.
func (c *conn) writeSlowly(frame []byte) (int, error) {
	limit := writeTimeout
	if c.dials {
		limit = min(limit, c.lease/2)
	}
	c.nc.SetWriteDeadline(time.Now().Add(limit))
	if c.isClosed() { // it may have been interrupted before that
		return 0, c.ended()
	}
	k, err := c.nc.Write(frame)
	if c.eager != nil {
		c.nc.SetWriteDeadline(time.Time{}) // it would end what is written without waiting
	}
	return k, err
}

// writeNow writes what waits in the goroutine of its caller, as far as that takes no waiting. The writer does the rest.
func (c *conn) writeNow() {
	if !c.writing.TryLock() {
		c.signal()
		return
	}
	defer c.writing.Unlock()
	switch {
	case c.isClosed():
		return
	case c.eager == nil || c.rest != nil || c.finishing():
		c.signal()
		return
	}
	buffer := c.n.buffers.Get().(*[]byte)
	defer c.n.buffers.Put(buffer)
	frame, last := c.fill(*buffer, false)
	if frame == nil {
		return
	}
	*buffer = frame
	k := 0
	if last == nil {
		var err error
		if k, err = c.eager.write(frame); err != nil {
			c.close(err)
			return
		}
		c.n.counters.with(c.s.id).sent.Add(uint64(k))
	}
	if k < len(frame) {
		c.rest, c.restWhy = frame[k:], last
	}
	if k < len(frame) || cap(frame) > keepBuffer {
		*buffer = nil
	}
	if k < len(frame) || len(frame) > maxBatch/2 { // there may be more
		c.signal()
	}
}

// awaitClose lets the peer read the last items: to close while something of the peer
// is unread would make its system throw them away. An end that dials waits for the
// peer's answer, which would have nobody to go to after the end of what comes from here.
func (c *conn) awaitClose() {
	if !c.dials {
		half, ok := c.nc.(interface{ CloseWrite() error })
		if !ok || half.CloseWrite() != nil {
			return
		}
	}
	limit := time.NewTimer(closeTime)
	defer limit.Stop()
	select {
	case <-c.done: // the peer has closed, too
	case <-limit.C:
	}
}

// fill makes a frame of what waits, in the memory of the last one; nil if nothing
// does. The error is that of the end of the connection, after this frame.
func (c *conn) fill(frame []byte, beat bool) ([]byte, error) {
	b := transport.AppendHeader(frame[:0], c.n.Epoch())
	empty := len(b)
	c.mu.Lock()
	if (beat || c.asks) && !c.pinged {
		c.asks = false
		// The lease counts from here: before the renewal is sent.
		c.ping, c.pinged = c.n.c.Boot(), true
		b = transport.Item{Type: transport.PingItem, Seq: uint64(c.ping)}.Append(b)
	}
	if c.pongs {
		c.pongs = false
		b = transport.Item{Type: transport.PongItem, Seq: c.pong}.Append(b)
	}
	for most := c.n.maxAnswer(); len(c.out) > 0 && (len(b)+len(c.out[0]) < most || len(b) < min(most, maxBatch)/2); {
		b = append(b, c.out[0]...)
		c.out = slices.Delete(c.out, 0, 1)
	}
	ack, owed, last, why := c.ack, c.unacked, c.last, c.lastWhy
	if len(b) > empty && owed > 0 {
		ack = true // it costs nothing now
	}
	c.mu.Unlock()

	c.s.mu.Lock()
	if c.s.conn == c {
		before := len(b)
		b = c.s.window.Take(b, maxBatch)
		if received := c.s.received(); ack || len(b) > before && received > 0 {
			b = transport.Item{Type: transport.AckItem, Seq: received}.Append(b)
			ack = true
		}
	}
	c.s.mu.Unlock()
	if ack {
		c.paidAck(owed)
	}
	b = append(b, last...)
	if len(b) == empty {
		return nil, nil
	}
	transport.EndFrame(b)
	if last == nil {
		why = nil
	}
	return b, why
}
