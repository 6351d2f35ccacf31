package node

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"time"

	"github.com/poundlock/poundlock/node/lease"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/transport"
)

const (
	minBackoff = 10 * time.Millisecond
	maxBackoff = time.Second
	handshake  = 5 * time.Second // to connect and to greet
)

// dial keeps a connection with member id for as long as the node lives. When it closes,
// a session that has none gets one more attempt, for the good-bye; one in which that was
// said must not be taken up again, because the member would not know it.
func (n *Node) dial(id protocol.ID) {
	var number uint64 // of the last session that this end began
	backoff := minBackoff
	for {
		began := time.Now()
		t := n.table.now.Load()
		last, s := n.isClosing(), n.lookup(id)
		if last && !n.owes(s) {
			return
		}
		greeted, err := n.connect(t, id, &number)
		switch {
		case n.ctx.Err() != nil:
			return
		case last:
			s.part(nil)
			return
		case n.isClosing():
			continue
		}
		if t.ctx.Err() == nil {
			n.noteFailure(id, err)
		}
		if t.ctx.Err() != nil || greeted && time.Since(began) > backoff {
			backoff = minBackoff
		}
		// Jitter keeps the clients of a server that comes back apart.
		select {
		case <-time.After(backoff/2 + rand.N(backoff/2)):
		case <-n.table.now.Load().ctx.Done(): // it may be elsewhere now, or the node closes
			backoff = minBackoff
			continue
		case <-n.parting:
			continue
		case <-n.ctx.Done():
			return
		}
		backoff = min(2*backoff, maxBackoff, max(minBackoff, n.c.Lease/8))
	}
}

// noteFailure remembers why a member cannot be reached, and logs what is news.
func (n *Node) noteFailure(id protocol.ID, err error) {
	n.mu.Lock()
	old := n.dials[id]
	n.dials[id] = err
	n.noteChange()
	n.mu.Unlock()
	if old == nil || old.Error() != err.Error() {
		n.c.Log.Warn("no connection", "peer", n.roles.name(id), "address", n.table.peer(id).Addr, "error", err)
	}
}

// connect makes one connection by a table and serves it until it ends. greeted says
// that the peer accepted it.
func (n *Node) connect(t *table, id protocol.ID, number *uint64) (greeted bool, err error) {
	// An attempt that hangs must not eat up the lease.
	limit := min(handshake, max(n.c.Lease/2, handshake/10))
	ctx, cancel := context.WithTimeout(t.ctx, limit)
	defer cancel()
	nc, err := n.dialPeer(ctx, t.peers[id])
	if err != nil {
		return false, err
	}
	defer closeNow(nc)
	stop := context.AfterFunc(t.ctx, func() { closeNow(nc) })
	defer stop()
	nc.SetDeadline(time.Now().Add(limit))

	s := n.lookup(id)
	if s == nil {
		// The peer gives away what was held in the last session when it hears of a new
		// one: until then all users here must know.
		n.settle()
		*number++
		s = newSession(n, id, *number)
	}
	c, err := n.introduce(nc, s)
	if err != nil {
		return false, err
	}
	// Whoever replaces the table from now on finds the connection.
	if !stop() {
		c.close(errMoved)
		c.s.detach(c)
		return true, errMoved
	}
	nc.SetDeadline(time.Time{})
	return true, c.run()
}

// introduce does the dialing end of the handshake. Once a member knows of a session it
// counts as one of its clients until its lease lapses or a good-bye comes: so a node
// that closes begins none, and waits for those that it has begun.
func (n *Node) introduce(nc net.Conn, s *session) (*conn, error) {
	n.greeting.Add(1)
	defer n.greeting.Add(-1)
	if n.isClosing() && n.lookup(s.id) != s {
		return nil, ErrClosed
	}
	in := bufio.NewReaderSize(nc, readBuffer)
	sent := n.c.Boot()
	if err := n.hello(nc, s); err != nil {
		return nil, err
	}
	w, err := n.readWelcome(in, s)
	if n.c.TLS == nil && transport.BrokenOff(err) {
		err = fmt.Errorf("%w: it closed the connection without an answer: %w", transport.ErrWantsTLS, err)
	}
	if err != nil {
		return nil, transport.Explain(err)
	}
	return n.begin(s, w, sent, nc, in)
}

func (n *Node) dialPeer(ctx context.Context, p Peer) (net.Conn, error) {
	if n.c.Dial != nil {
		return n.c.Dial(ctx, p)
	}
	return transport.Dial(ctx, p.Name, p.Addr, n.c.TLS)
}

// settle waits until every shard has dealt with the sessions that have ended.
func (n *Node) settle() { n.ask(event{op: opHeard}) }

func (n *Node) hello(nc net.Conn, s *session) error {
	s.mu.Lock()
	h := transport.Hello{
		From: n.c.ID, To: s.id, ToName: n.c.Peers[s.id].Name,
		Incarnation: n.incarnation, Session: s.number, Resume: s.established,
		Received: s.window.Received(),
		Members:  memberNames(n.c.Peers), Groups: n.c.Groups, Kinds: n.kinds(),
		Lease: n.c.Lease, ClockBound: n.c.ClockBound, Label: n.c.Label,
	}
	s.mu.Unlock()
	return n.writeFrame(nc, h.Append)
}

func (n *Node) writeFrame(nc net.Conn, item func([]byte) []byte) error {
	b := item(transport.AppendHeader(nil, n.Epoch()))
	transport.EndFrame(b)
	_, err := nc.Write(b)
	return err
}

// readFirst reads the first item of the other end.
func (n *Node) readFirst(in *bufio.Reader) (i transport.Item, h transport.Header, err error) {
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

// readWelcome reads the answer to a Hello. A session that the peer has lost is
// lost here too.
func (n *Node) readWelcome(in *bufio.Reader, s *session) (w transport.Welcome, err error) {
	i, _, err := n.readFirst(in)
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
			if !n.isClosing() { // else it has heard the good-bye
				n.end(s, errForgotten, nil)
			}
		case transport.OldTable:
			return w, n.table.adopt(r)
		}
		return w, r
	}
	return w, fmt.Errorf("%w: item of type %d instead of a welcome", transport.ErrFrame, i.Type)
}

// begin begins or resumes a session that the peer has agreed to. sent is when
// the Hello was, from where the lease counts.
func (n *Node) begin(
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
	if no := n.detector.meet(s.id, w.Incarnation); no != nil {
		n.writeFrame(nc, no.Append)
		return nil, fmt.Errorf("%s: %s here, %s there", no.What, no.Mine, no.Yours)
	}
	c := newConn(n, nc, in, true, w.Lease)
	c.s = s
	s.mu.Lock()
	isNew := !s.established
	s.incarnation, s.established, s.label = w.Incarnation, true, w.Label
	s.held.Terms = lease.Terms{Length: w.Lease, Drift: n.c.ClockDrift, Margin: lease.Margin(w.Lease)}
	s.held.Renew(sent)
	lapsed := n.roles.leased(s.id) && s.held.Lapsed(n.c.Boot())
	s.mu.Unlock()
	if lapsed {
		n.end(s, errLapsed, nil)
		return nil, errLapsed
	}
	if err := s.attach(c, w.Received); err != nil {
		n.end(s, err, nil)
		return nil, err
	}
	n.mu.Lock()
	if n.sessions[s.id] == nil && !s.dead.Load() {
		n.register(s)
	}
	n.dials[s.id] = nil
	n.mu.Unlock()
	n.detector.heard(s, isNew)
	n.noteRoundTrip(s, n.c.Boot()-sent)
	n.noteClockBound("", n.roles.name(s.id), w.ClockBound)
	n.noteUp()
	c.kick()
	n.c.Log.Debug("connected", "peer", n.roles.name(s.id), "session", w.Session)
	return c, nil
}
