package node

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/transport"
)

const (
	ackDelay  = 40 * time.Millisecond // most go out with something else before
	ackAtOnce = 1024                  // messages that are acknowledged without delay
)

// A conn is one connection of one session, after the handshake.
type conn struct {
	n      *Node
	s      *session
	nc     net.Conn
	in     *bufio.Reader
	calm   *calm  // what in reads from; nil: something else
	memory []byte // of the last frame, if nobody looks at it any more; the reader's
	dials  bool   // this end dialed
	// isSession: the session, of a client, ends with this connection. Constant once there is one.
	isSession bool
	dialer    *process // that the session, of a client, does not outlive; nil: unknown
	lease     time.Duration
	wake      chan struct{}
	done      chan struct{} // closed when the connection is
	over      atomic.Bool   // the same: to look here costs less

	answers  bool        // a frame has come that is no refusal; under s.receive
	patience time.Time   // when reading ends for lack of a frame, zero: never; the reader's, as answers
	handles  atomic.Bool // the reader has a frame, and does not hear what comes behind it

	writing sync.Mutex // one writes at a time; taken before s.mu and mu
	eager   *eager     // nil: only the writer writes, and nobody before the handshake is over; under writing
	rest    []byte     // of a frame that has been made; under writing
	restWhy error      // of the end of the connection, after it

	mu      sync.Mutex
	why     error // set when done is closed
	ping    time.Duration
	pinged  bool // ping is on its way
	asks    bool // a ping is to be sent now
	pong    uint64
	pongs   bool     // pong is to be sent
	ack     bool     // what was received is to be acknowledged
	acking  bool     // the node's acker is about to see to it
	paid    bool     // something was acknowledged since
	unacked int      // messages received since the last acknowledgement, and those that wait for the next frame
	out     [][]byte // calls and answers, bounded by the numbers of calls
	last    []byte   // items after which the connection is closed
	lastWhy error
	heard   bool // the good-bye has been answered
	calls   map[uint64]chan<- answer
	number  uint64 // of the last call
	serving int    // calls of the peer that are being answered
}

func newConn(n *Node, nc net.Conn, in *bufio.Reader, dials bool, lease time.Duration) *conn {
	c := &conn{
		n: n, nc: nc, in: in, dials: dials, lease: lease,
		wake:  make(chan struct{}, 1),
		done:  make(chan struct{}),
		calls: map[uint64]chan<- answer{},
	}
	return c
}

// beats reports whether this end sends heartbeats: whoever holds a lease does.
func (c *conn) beats() bool { return c.dials || c.n.roles.mutual() }

// close ends the connection; the first reason counts. Whoever runs it closes it in truth, after leave: a member may give away what users here count
// on as soon as it is closed, and nobody can close what is just being read.
func (c *conn) close(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.why != nil {
		return
	}
	c.why = why
	c.over.Store(true)
	close(c.done)
	interrupt(c.nc) // whoever runs it closes it
	for id, reply := range c.calls {
		reply <- answer{err: why} // it has room
		delete(c.calls, id)
	}
}

// closeNow closes a connection without TLS's farewell, which could wait for a
// peer that does not read. Sessions have their own.
func closeNow(nc net.Conn) { underTLS(nc).Close() }

func underTLS(nc net.Conn) net.Conn {
	if t, ok := nc.(*tls.Conn); ok {
		return t.NetConn()
	}
	return nc
}

// interrupt ends what waits for a connection, which stays open.
func interrupt(nc net.Conn) { nc.SetDeadline(time.Unix(1, 0)) }

// begins has a connection end after so long unless somebody lifts that. One without deadlines could never be ended.
func begins(nc net.Conn, limit time.Duration) error {
	if err := nc.SetDeadline(time.Now().Add(limit)); err != nil {
		return fmt.Errorf("a connection without deadlines: %w", err)
	}
	return nil
}

// ask sends a heartbeat at once, where this end sends any: with the answer comes what
// the peer would acknowledge a while later.
func (c *conn) ask() {
	c.mu.Lock()
	c.asks = c.beats()
	c.mu.Unlock()
	c.signal()
}

// finishing reports whether only the last items are still to be sent.
func (c *conn) finishing() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last != nil
}

// finishes reports whether the connection ends with last items because of why.
func (c *conn) finishes(why error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lastWhy == why
}

// finish sends the last items and then closes.
func (c *conn) finish(last []byte, why error) {
	c.mu.Lock()
	c.last, c.lastWhy = last, why
	c.mu.Unlock()
	c.signal()
}

func (c *conn) signal() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// run reads and writes until the connection ends, and returns why it did.
func (c *conn) run() error {
	stop := context.AfterFunc(c.n.ctx, func() { c.close(ErrClosed) })
	defer stop()
	c.writing.Lock()
	c.eager = newEager(c.nc)
	c.writing.Unlock()
	var writer sync.WaitGroup
	writer.Go(c.write)
	c.close(c.read())
	writer.Wait()
	c.leave()
	return c.ended()
}

func (c *conn) isClosed() bool { return c.over.Load() }

// ended is why the connection was closed.
func (c *conn) ended() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.why
}

// leave takes the connection, which has ended, from its session. That goes on, unless it ends with its connection: at a client
// whatever became of that, and all its users know when leave returns; at a member only when the client's system has closed it, because a
// client that lives may count on the session else. With the process that has dialed, and that alone acts for the client, the session ends, too.
func (c *conn) leave() {
	current := c.s.detach(c)
	switch {
	case c.dials && c.isSession:
		c.n.sessions.end(c.s, errBroken, nil)
		c.n.each(func(*loop) {})
	case !c.dials && current && closedByPeer(c.ended()) && (c.isSession || c.dialer.ended()):
		c.n.sessions.end(c.s, errBroken, nil)
	}
	c.dialer.close()
}

// closedByPeer reports whether the system of the other end has closed a connection, as far as this system can tell.
func closedByPeer(why error) bool {
	return errors.Is(why, io.EOF) || errors.Is(why, io.ErrUnexpectedEOF) ||
		errors.Is(why, syscall.ECONNRESET) || errors.Is(why, syscall.EPIPE)
}

// outdated refuses a frame of an older epoch, with the newer table. The connection ends
// then, and the session goes on with another one: what the frame holds comes again.
func (c *conn) outdated(epoch uint64) bool {
	old := c.n.table.tooOld(epoch)
	if old != nil && !c.finishing() {
		c.finish(old.Append(nil), errOldTable)
	}
	return old != nil
}

// frame handles the items of one frame. The messages in it go to the loops in their order, a turn at a time. kept: somebody may
// still look at the frame.
func (c *conn) frame(items []byte) (kept bool, err error) {
	c.s.receive.Lock()
	defer c.s.receive.Unlock()
	if c.s.connection() != c {
		return true, errReplaced
	}
	if c.n.detector != nil {
		c.n.detector.heard(c.s, false)
	}
	received, answers := 0, false
	p := c.n.parcels.Get().(*parcel)
	defer c.n.parcels.Put(p)
	p.size, p.kept = len(items), false
	for len(items) > 0 && err == nil {
		var i transport.Item
		i, items, err = transport.ReadItem(items)
		if !c.answers && err == nil && i.Type != transport.RefuseItem { // before a gate that is shut holds up what follows
			c.answers = true
			c.n.lives.know(c.s.id, c.s.life())
		}
		switch {
		case err != nil:
		case i.Type == transport.MessageItem, i.Type == transport.RefuseNameItem, i.Type == transport.PartItem,
			i.Type == transport.LabelledItem, i.Type == transport.WakeItem:
			received++
			err = c.message(i, p)
		default:
			answers = answers || i.Type == transport.PingItem
			p.kept = p.kept || i.Type != transport.AckItem
			err = c.control(i)
		}
	}
	if received > 0 && c.n.c.Journal == nil { // also before an error
		c.oweAck(received) // now: an answer may go out before deliver returns
		answers = true
	}
	// The answer to an end that is closed would tell, but for one that others pass on, who may go on taking what is sent.
	if c.calm != nil && (!answers || c.isSession) {
		c.calm.look()
	}
	p.deliver(c.n)
	return p.kept, err
}

// oweAck has messages acknowledged, or sent that can wait: with the next frame that goes out anyway, or soon.
func (c *conn) oweAck(messages int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := c.unacked == 0
	c.unacked += messages
	switch {
	case c.why != nil:
	case c.unacked >= ackAtOnce:
		c.ack = true
		c.signal()
	case first:
		c.ack = true
		c.delayAck()
	}
}

// delayAck has acknowledged what nothing else has acknowledged a while later. c.mu is held.
func (c *conn) delayAck() {
	if !c.acking {
		c.acking, c.paid = true, false
		c.n.acker.add(c)
	}
}

// acknowledge is what the acker does: it has the writer acknowledge what is owed for as long as ackDelay, and twice that at most.
func (c *conn) acknowledge() {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch c.acking = false; {
	case !c.ack || c.why != nil:
	case c.paid:
		c.delayAck()
	default:
		c.signal()
	}
}

// paidAck notes the acknowledgement of what was owed before it was made. The reader may
// have received more since, which is still owed.
func (c *conn) paidAck(owed int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unacked -= owed
	c.paid = true
	c.ack = c.unacked > 0
	if c.ack && c.why == nil {
		c.delayAck()
	}
}

func (c *conn) message(i transport.Item, p *parcel) error {
	client := c.n.roles.member() && !c.n.roles.isMember(c.s.id)
	switch {
	case !c.n.roles.mayTalk(c.s.id):
		return c.refuse(refusal("lock messages from this process", "", ""))
	case i.Type == transport.RefuseNameItem && client:
		return c.refuse(refusal("refusal of a name by a client", "", ""))
	case i.Type == transport.LabelledItem && !client:
		return c.refuse(refusal("label of a user that is none of a client's", "", ""))
	case i.Type == transport.WakeItem && !c.n.roles.mutual():
		return c.refuse(refusal("a user that waits, where members hold no leases at each other", "", ""))
	}
	c.s.mu.Lock()
	isNew, err := c.s.window.Receive(i.Seq)
	c.s.mu.Unlock()
	if err != nil || !isNew {
		return err
	}
	switch {
	case i.Type == transport.PartItem && !c.n.roles.watched():
		return c.refuse(refusal("part of a message that is none of a replica", "", ""))
	case i.Type == transport.PartItem:
		return c.part(i)
	case len(c.s.partial) > 0:
		i.Body, c.s.partial = append(c.s.partial, i.Body...), nil
	}
	// The hash needs no secret, but one that nobody outside knows keeps a client
	// from giving all its locks to one loop.
	k := maphash.Bytes(c.n.seed, i.Name) % uint64(len(c.n.loops))
	if i.Type == transport.LabelledItem {
		if _, _, err := transport.SplitLabelled(i.Body); err != nil {
			return err
		}
	}
	p.messages = append(p.messages, message{
		sess: c.s, kind: Kind(i.Kind), refusal: i.Type == transport.RefuseNameItem, labelled: i.Type == transport.LabelledItem,
		wakes: i.Type == transport.WakeItem, seq: i.Seq,
		loop: uint16(k), name: i.Name, body: i.Body,
	})
	if len(p.messages) == turnMessages {
		p.deliver(c.n)
	}
	return nil
}

// part takes a part of a message: how many bytes of it are still to come, and some. Nothing is kept of a message
// that is too large.
func (c *conn) part(i transport.Item) error {
	r := protocol.Reader{Rest: i.Body}
	rest := r.Uint()
	if r.Err != nil {
		return c.refuse(refusal("part of a message without its size", "", ""))
	}
	if size := uint64(len(c.s.partial)+len(r.Rest)) + min(rest, math.MaxInt64); size > uint64(c.n.maxMessage()) {
		c.s.partial = nil
		name := string(i.Name)
		c.n.loop(name).inbox.post(event{op: opDo, do: func(l *loop) { l.announced(c.s, name, size) }})
		return errTooLarge
	}
	c.s.partial = append(c.s.partial, r.Rest...)
	return nil
}

// refuse ends the session because of what the peer did, and tells it.
func (c *conn) refuse(r *transport.Refuse) error {
	c.n.sessions.end(c.s, fmt.Errorf("refused: %s: %s here, %s there", r.What, r.Mine, r.Yours), r.Append(nil))
	return nil // the connection ends when the peer has been told
}

// fault tells a peer what it did wrong, so that it does not take the end of the session
// for a restart.
func fault(err error) *transport.Refuse { return refusal(err.Error(), "", "") }

func refusal(what, mine, yours string) *transport.Refuse {
	return &transport.Refuse{Code: transport.Misfit, What: what, Mine: mine, Yours: yours}
}

func (c *conn) control(i transport.Item) error {
	switch i.Type {
	case transport.AckItem:
		c.s.mu.Lock()
		err := c.s.window.Ack(i.Seq)
		c.s.count()
		c.s.pace.heard(i.Seq, c.n.late())
		c.s.mu.Unlock()
		c.n.pacer.admit()
		return err
	case transport.PingItem:
		c.s.mu.Lock()
		dead := c.s.dead.Load()
		if now := c.n.c.Boot(); !dead && c.n.roles.mutual() {
			c.s.granted.Renew(now)
		} else if !dead {
			c.s.lease.Renew(now)
		}
		c.s.mu.Unlock()
		if dead {
			return errReplaced
		}
		c.mu.Lock()
		c.pong, c.pongs = i.Seq, true
		c.mu.Unlock()
		c.writeNow()
	case transport.PongItem:
		c.mu.Lock()
		sent, ok := c.ping, c.pinged && i.Seq == uint64(c.ping)
		c.pinged = c.pinged && !ok
		c.mu.Unlock()
		if !ok {
			return errors.New("an answer to no heartbeat")
		}
		took := c.n.c.Boot() - sent
		c.n.counters.with(c.s.id).answered(took)
		c.n.sessions.noteRoundTrip(c.s, took)
		c.s.mu.Lock()
		c.s.lease.Renew(sent)
		c.s.mu.Unlock()
	case transport.CallItem:
		return c.serve(i.Seq, i.Body)
	case transport.ReplyItem:
		c.answered(i.Seq, i.Kind, i.Body)
	case transport.ByeItem:
		return c.bye()
	case transport.RefuseItem:
		r, err := transport.ReadRefuse(i.Body)
		switch {
		case err != nil:
		case r.Code == transport.OldTable:
			err = c.n.table.adopt(c.s.id, r)
		default:
			err = r
			c.n.sessions.refused(c.s, r)
		}
		return err
	default:
		return fmt.Errorf("%w: item of type %d after the handshake", transport.ErrFrame, i.Type)
	}
	return nil
}
