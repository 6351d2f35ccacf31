package node

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"time"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/transport"
)

const (
	minBackoff = 10 * time.Millisecond
	maxBackoff = time.Second
	handshake  = 5 * time.Second // to connect and to greet
	// crowdBackoff takes the place of maxBackoff where the member has more to do than it can.
	crowdBackoff = 4 * time.Second
)

// errUnanswered is that the other end closed the connection: it ends, or has no room. One that wants TLS says so.
var errUnanswered = errors.New("it closed the connection without an answer")

// crowded reports whether an attempt to connect failed as with a member that can be reached, and cannot follow.
func crowded(err error) bool {
	var r transport.Refuse
	return errors.As(err, &r) && r.Code == transport.Full || errors.Is(err, os.ErrDeadlineExceeded)
}

// A dialer makes the connections with one member.
type dialer struct {
	n      *Node
	id     protocol.ID
	number uint64 // of the last session that this end began
}

// run keeps a connection with the member for as long as the node lives. When it closes,
// a session that has none gets one more attempt, for the good-bye; one in which that was
// said must not be taken up again, because the member would not know it.
func (d *dialer) run() {
	backoff := minBackoff
	for {
		began := time.Now()
		_ = d.n.sessions.await(d.n.ctx, func() bool {
			return !d.n.sessions.isApart(d.id) && !d.n.demand.isResting() || d.n.sessions.isClosing()
		})
		t := d.n.table.now.Load()
		last, s := d.n.sessions.isClosing(), d.n.sessions.lookup(d.id)
		if last && !d.n.sessions.owes(s) {
			return
		}
		greeted, err := d.connect(t)
		switch {
		case d.n.ctx.Err() != nil:
			return
		case last:
			s.part(nil)
			return
		case d.n.sessions.isClosing():
			continue
		case err == errIdle: // what is wanted next begins at once
			backoff = minBackoff
			continue
		}
		if t.ctx.Err() == nil {
			d.n.sessions.unreached(d.id, err)
		}
		if t.ctx.Err() != nil || greeted && time.Since(began) > backoff {
			backoff = minBackoff
		}
		most := min(maxBackoff, max(minBackoff, d.n.c.Lease/8))
		if !d.n.roles.member() && d.n.sessions.lookup(d.id) == nil && crowded(err) {
			most = crowdBackoff // nothing is left to hurry for
		}
		backoff = min(backoff, most)
		// Jitter keeps the clients of a server that comes back apart.
		select {
		case <-time.After(backoff/2 + rand.N(backoff/2)):
		case <-d.n.table.now.Load().ctx.Done(): // it may be elsewhere now, or the node closes
			backoff = minBackoff
			continue
		case <-d.n.sessions.closing:
			continue
		case <-d.n.ctx.Done():
			return
		}
		backoff = min(2*backoff, most)
	}
}

// connect makes one connection by a table and serves it until it ends. greeted says
// that the peer accepted it.
func (d *dialer) connect(t *table) (greeted bool, err error) {
	// An attempt that hangs must not eat up the lease.
	limit := min(handshake, max(d.n.c.Lease/2, handshake/10))
	ctx, cancel := context.WithTimeout(t.ctx, limit)
	defer cancel()
	nc, err := d.dialPeer(ctx, t.Slots[d.id])
	if err != nil {
		return false, err
	}
	defer closeNow(nc)
	if err := begins(nc, limit); err != nil {
		return false, err
	}
	stop := context.AfterFunc(t.ctx, func() { interrupt(nc) })
	defer stop()

	s := d.n.sessions.lookup(d.id)
	if s == nil {
		// The peer gives away what was held in the last session when it hears of a new
		// one: until then all users here must know.
		d.n.each(func(*loop) {})
		d.number++
		s = newSession(d.n, d.id, d.number)
	}
	if !d.n.settle() { // the peer may end an older session when it hears of a new one
		return false, ErrClosed
	}
	c, err := d.introduce(nc, s)
	if err != nil {
		return false, err
	}
	// Whoever replaces the table from now on finds the connection.
	if !stop() {
		c.close(errMoved)
		c.leave()
		return true, errMoved
	}
	nc.SetDeadline(time.Time{})
	if err := c.run(); !c.finishes(errIdle) {
		return true, err
	}
	return true, errIdle
}

// introduce does the dialing end of the handshake. Once a member knows of a session it
// counts as one of its clients until its lease lapses or a good-bye comes: so a node
// that closes begins none, and waits for those that it has begun.
func (d *dialer) introduce(nc net.Conn, s *session) (*conn, error) {
	if d.n.roles.leased(s.id) {
		d.n.sessions.greeting.Add(1)
		defer d.n.sessions.greeting.Add(-1)
	}
	if d.n.sessions.isClosing() && d.n.sessions.lookup(s.id) != s {
		return nil, ErrClosed
	}
	in, calm := d.n.reader(nc)
	sent := d.n.c.Boot()
	err := d.hello(nc, s)
	var w transport.Welcome
	if err == nil {
		w, err = d.readWelcome(in, s)
	}
	if transport.BrokenOff(err) {
		err = errUnanswered
	}
	if err != nil {
		return nil, transport.Explain(err)
	}
	c, err := d.begin(s, w, sent, nc, in)
	if err == nil {
		c.calm = calm
	}
	return c, err
}

func (d *dialer) dialPeer(ctx context.Context, p Peer) (net.Conn, error) {
	if d.n.c.Dial != nil {
		return d.n.c.Dial(ctx, p)
	}
	return transport.Dial(ctx, p.Name, p.Addr, d.n.c.TLS)
}

func (d *dialer) hello(nc net.Conn, s *session) error {
	s.mu.Lock()
	h := transport.Hello{
		From: d.n.c.ID, To: s.id, ToName: d.n.c.Peers[s.id].Name,
		Incarnation: d.n.incarnation, Session: s.number, Resume: s.established,
		Received: s.received(),
		Members:  memberNames(d.n.c.Peers), Shards: d.n.c.Shards, Kinds: d.n.kinds(),
		Lease: d.n.c.Lease, ClockBound: d.n.c.ClockBound, Label: d.n.c.Label, EndsWithConnection: d.n.c.EndWithConnection,
	}
	s.mu.Unlock()
	if _, local := underTLS(nc).(*net.UnixConn); local { // it is of no use to others
		h.Process = d.n.c.Process
	}
	return writeFrame(nc, d.n.Epoch(), h.Append)
}

// readWelcome reads the answer to a Hello. A session that the peer has lost is
// lost here too.
func (d *dialer) readWelcome(in *bufio.Reader, s *session) (w transport.Welcome, err error) {
	i, _, err := readFirst(in)
	if err != nil {
		return w, err
	}
	switch i.Type {
	case transport.WelcomeItem:
		return transport.ReadWelcome(i.Body)
	case transport.RefuseItem:
		r, err := transport.ReadRefuse(i.Body)
		if err != nil {
			return w, err
		}
		switch r.Code {
		case transport.UnknownSession:
			if !d.n.sessions.isClosing() { // else it has heard the good-bye
				d.n.sessions.end(s, errForgotten, nil)
			}
		case transport.OldTable:
			return w, d.n.table.adopt(d.id, r)
		}
		return w, r
	}
	return w, fmt.Errorf("%w: item of type %d instead of a welcome", transport.ErrFrame, i.Type)
}

// begin begins or resumes a session that the peer has agreed to. sent is when
// the Hello was, from where the lease counts.
func (d *dialer) begin(
	s *session, w transport.Welcome, sent time.Duration, nc net.Conn, in *bufio.Reader,
) (*conn, error) {
	if w.Lease < MinLease || w.Lease > MaxLease {
		return nil, fmt.Errorf("a lease of %v was granted", w.Lease)
	}
	s.mu.Lock()
	fits := w.Session == s.number && (!s.established || w.Incarnation == s.incarnation)
	s.mu.Unlock()
	if !fits {
		return nil, fmt.Errorf("the welcome is for session %d of incarnation %016x", w.Session, w.Incarnation)
	}
	if no := d.n.lives.meet(s.id, w.Incarnation); no != nil {
		writeFrame(nc, d.n.Epoch(), no.Append)
		return nil, fmt.Errorf("%s: %s here, %s there", no.What, no.Mine, no.Yours)
	}
	c := newConn(d.n, nc, in, true, w.Lease)
	c.isSession = d.n.c.EndWithConnection
	s.mu.Lock()
	isNew := s.agree(w.Incarnation, w.Label, w.Lease, sent)
	lapsed := d.n.roles.leased(s.id) && s.lease.Lapsed(d.n.c.Boot())
	s.mu.Unlock()
	if lapsed {
		d.n.sessions.end(s, errLapsed, nil)
		return nil, errLapsed
	}
	d.n.sessions.noteRoundTrip(s, d.n.c.Boot()-sent)
	if err := d.n.sessions.connect(s, c, w.Received, isNew); err != nil {
		return nil, err
	}
	d.n.demand.connected(s)
	d.n.noteClockBound("", d.n.roles.name(s.id), w.ClockBound)
	c.signal()
	if d.n.roles.member() {
		d.n.lives.know(s.id, w.Incarnation)
		c.ask() // the peer learns that this end knows it
	}
	d.n.c.Log.Debug("connected", "peer", d.n.roles.name(s.id), "session", w.Session)
	return c, nil
}

// writeFrame writes a frame of one item.
func writeFrame(nc net.Conn, epoch uint64, item func([]byte) []byte) error {
	b := item(transport.AppendHeader(nil, epoch))
	transport.EndFrame(b)
	_, err := nc.Write(b)
	return err
}

// readFirst reads the first item of the other end.
func readFirst(in *bufio.Reader) (i transport.Item, h transport.Header, err error) {
	frame, err := transport.ReadFrame(in, transport.MaxHandshake)
	if err != nil {
		return i, h, err
	}
	h, items, err := transport.ReadHeader(frame)
	if err == nil {
		err = h.Check()
	}
	if err == nil {
		i, _, err = transport.ReadItem(items)
	}
	return i, h, err
}
