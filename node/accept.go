package node

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/poundlock/poundlock/transport"
)

// parting is how long a client gets to read why its handshake failed.
const parting = 500 * time.Millisecond

// wrongDoor is for whoever looks at this port with a browser or with curl.
const wrongDoor = `This port of a Poundlock server is for poundlock and for Go programs, and does
not speak HTTP. The API is at the address of --api, metrics and health at that
of --admin.
`

// accept serves the listener until the node closes, or hands its table over.
func (n *Node) accept(f *front) {
	lobby := room{most: maxGreeting}
	backoff := minBackoff
	for {
		nc, err := f.listener.Accept()
		if err != nil {
			if n.isClosing() || f.ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return
			}
			n.c.Log.Warn("accept", "error", err) // out of descriptors, for one: it may pass
			select {
			case <-time.After(backoff):
			case <-f.ctx.Done():
				return
			}
			backoff = min(2*backoff, maxBackoff)
			continue
		}
		backoff = minBackoff
		g := lobby.enter(nc)
		lobby.take(g, 1)
		f.wg.Go(func() {
			defer closeNow(nc)
			stop := context.AfterFunc(f.ctx, func() { closeNow(nc) })
			defer stop()
			c, err := n.greet(nc)
			evicted := lobby.leave(g)
			switch {
			case err == nil:
				err = c.run()
			case evicted:
				err = errCrowded
				fallthrough
			default:
				n.counters.refused[causeOf(err)].Add(1)
			}
			n.c.Log.Debug("connection ended", "from", nc.RemoteAddr(), "error", err)
		})
	}
}

func (n *Node) isClosing() bool {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.closing
}

// greet does the accepting end of the handshake.
func (n *Node) greet(nc net.Conn) (*conn, error) {
	nc.SetDeadline(time.Now().Add(handshake))
	if t, ok := nc.(*tls.Conn); ok {
		if err := t.HandshakeContext(n.ctx); err != nil {
			return nil, n.noHandshake(t, err)
		}
	}
	in := bufio.NewReaderSize(nc, readBuffer)
	i, header, err := n.readFirst(in)
	if err != nil {
		if errors.Is(err, transport.ErrWantsTLS) {
			n.book.complain(addressOf(nc), "refused a connection", "from", nc.RemoteAddr(), "error", err)
		}
		if errors.Is(err, transport.ErrHTTP) {
			_, _ = nc.Write(transport.HTTPAnswer(wrongDoor)) // whoever does not read it is cut
		}
		if misfit := header.Check(); header.Version != 0 && misfit != nil {
			// The header of this frame tells the other end the same.
			n.writeFrame(nc, refusal("wire version", fmt.Sprint(transport.Version), fmt.Sprint(header.Version)).Append)
			n.book.complain(addressOf(nc), "refused a connection", "from", nc.RemoteAddr(), "error", misfit)
		}
		return nil, err
	}
	if old := n.table.tooOld(header.Epoch); old != nil {
		n.writeFrame(nc, old.Append)
		return nil, *old
	}
	n.table.noteNewer(header.Epoch, nc)
	if i.Type != transport.HelloItem {
		return nil, fmt.Errorf("%w: item of type %d instead of a hello", transport.ErrFrame, i.Type)
	}
	h, err := transport.ReadHello(i.Body)
	if err != nil {
		return nil, err
	}
	c := newConn(n, nc, in, false, n.lease(h))
	w, no := n.welcome(h, c)
	if no != nil {
		switch no.Code {
		case transport.Full:
			n.book.complain(addressOf(nc), "refused a session", "from", nc.RemoteAddr(), "peer", n.roles.name(h.From), "reason", no.What)
		case transport.Misfit:
			n.book.complain(addressOf(nc), "refused a connection", "from", nc.RemoteAddr(), "peer", n.roles.name(h.From),
				"what", no.What, "mine", no.Mine, "theirs", no.Yours)
		}
		n.writeFrame(nc, no.Append)
		return nil, *no
	}
	if err := n.writeFrame(nc, w.Append); err != nil {
		c.s.detach(c)
		return nil, err
	}
	nc.SetDeadline(time.Time{})
	c.kick()
	return c, nil
}

// noHandshake says why TLS failed with a client: in the log, and to the client,
// which must have read the alert before the connection is closed.
func (n *Node) noHandshake(t *tls.Conn, err error) error {
	err = transport.Explain(err)
	var garbled tls.RecordHeaderError
	switch {
	case errors.As(err, &garbled):
		err = fmt.Errorf("the other end seems to be without TLS: %w", err)
	case transport.BrokenOff(err):
		return err // a look at the port
	}
	n.book.complain(addressOf(t), "refused a connection", "from", t.RemoteAddr(), "error", err)
	raw := t.NetConn()
	if half, ok := raw.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		raw.SetReadDeadline(time.Now().Add(parting))
		_, _ = io.CopyN(io.Discard, raw, transport.MaxHandshake)
	}
	return err
}

// lease is the length of the lease that is granted: the one asked for, but none
// longer than this member's own.
func (n *Node) lease(h transport.Hello) time.Duration {
	if h.Lease == 0 {
		return n.c.Lease
	}
	return max(MinLease, min(h.Lease, n.c.Lease))
}

// misfit says how the two ends differ in what they must agree on.
func (n *Node) misfit(h transport.Hello) *transport.Refuse {
	mine := n.c.Peers[n.c.ID].Name
	switch {
	case h.To != n.c.ID || h.ToName != mine:
		return refusal("name of the server", mine, h.ToName)
	case h.Members != memberNames(n.c.Peers):
		return refusal("names of the servers", memberNames(n.c.Peers), h.Members)
	case h.Groups != n.c.Groups:
		return refusal("groups of servers", orNone(n.c.Groups), orNone(h.Groups))
	case n.roles.isMember(h.From) && (!n.roles.mayTalk(h.From) || h.From <= n.c.ID):
		return refusal("direction of the connection", "from "+mine+" to "+n.roles.name(h.From), "the other way")
	case h.Session == 0 || h.Incarnation == 0:
		return refusal("numbers of sessions", "from 1", "0")
	case !n.roles.isMember(h.From) && h.From != ClientID(h.Incarnation):
		return refusal("id of the client", "that of its secret", fmt.Sprintf("%016x", uint64(h.From)))
	}
	for _, k := range h.Kinds { // one that is not served here is refused with each name
		if kind := Kind(k.Number); n.c.Hosts[kind] != nil && n.algorithm(kind) != k.Algorithm {
			return refusal("algorithm of kind "+kind.String(), n.algorithm(kind), k.Algorithm)
		}
	}
	return nil
}

func orNone(list string) string {
	if list == "" {
		return "none"
	}
	return list
}

// welcome judges a Hello, one at a time, and gives c to the session that it asks
// for: the one that it resumes, or a new one, which ends an older one.
func (n *Node) welcome(h transport.Hello, c *conn) (w transport.Welcome, no *transport.Refuse) {
	if no := n.misfit(h); no != nil {
		return w, no
	}
	n.admit.Lock()
	defer n.admit.Unlock()
	s, no := n.sessionFor(h, c)
	if no != nil {
		return w, no
	}
	s.mu.Lock()
	if no := s.outdated(h); no != nil {
		s.mu.Unlock()
		return w, no
	}
	isNew := !s.established
	s.number, s.incarnation, s.established, s.label = h.Session, h.Incarnation, true, h.Label
	s.granted.Length = c.lease
	s.granted.Hear(n.c.Boot())
	w = transport.Welcome{
		Incarnation: n.incarnation, Session: h.Session, Received: s.window.Received(),
		Lease: c.lease, ClockBound: n.c.ClockBound, Label: n.c.Label,
	}
	s.mu.Unlock()
	c.s = s
	if err := s.attach(c, h.Received); err != nil {
		n.end(s, err, nil)
		return w, &transport.Refuse{Code: transport.UnknownSession, What: err.Error()}
	}
	n.mu.Lock()
	switch {
	case n.closing:
		n.mu.Unlock()
		return w, &transport.Refuse{Code: transport.Full, What: "the server is closing"}
	case n.sessions[h.From] == nil && !s.dead.Load():
		n.register(s)
	}
	n.mu.Unlock()
	n.detector.heard(s, isNew)
	n.noteUp()
	if isNew {
		n.noteClockBound(s.host, n.roles.name(h.From), h.ClockBound)
		n.c.Log.Debug("session began", "peer", n.roles.name(h.From), "label", h.Label, "session", h.Session)
	}
	return w, nil
}

// outdated refuses a Hello that cannot go on with s. One that the peer gave up may
// come late: it has received less than the peer is known to have. s.mu is held.
func (s *session) outdated(h transport.Hello) *transport.Refuse {
	switch {
	case s.dead.Load():
		return &transport.Refuse{Code: transport.UnknownSession, What: "the session has ended here"}
	case h.Received < s.window.Acked():
		return &transport.Refuse{
			Code: transport.Stale, What: "messages received",
			Mine: fmt.Sprint(s.window.Acked()), Yours: fmt.Sprint(h.Received),
		}
	}
	return nil
}

// sessionFor finds the session that a Hello means.
func (n *Node) sessionFor(h transport.Hello, c *conn) (*session, *transport.Refuse) {
	if no := n.detector.meet(h.From, h.Incarnation); no != nil {
		return nil, no
	}
	s := n.lookup(h.From)
	if s != nil {
		s.mu.Lock()
		established, number, incarnation := s.established, s.number, s.incarnation
		s.mu.Unlock()
		switch {
		case !established:
		case h.Incarnation == incarnation && h.Session == number:
			return s, nil
		case h.Incarnation < incarnation || h.Incarnation == incarnation && h.Session < number:
			return nil, &transport.Refuse{
				Code: transport.Stale, What: "session",
				Mine:  fmt.Sprintf("session %d of incarnation %016x", number, incarnation),
				Yours: fmt.Sprintf("session %d of incarnation %016x", h.Session, h.Incarnation),
			}
		default:
			why := errNewer
			if h.Incarnation != incarnation {
				why = errRestarted
			}
			n.end(s, why, nil)
			s = n.lookup(h.From) // a standing one
		}
	}
	if h.Resume || h.Received != 0 {
		return nil, &transport.Refuse{Code: transport.UnknownSession, What: "the session is not known here"}
	}
	if s == nil {
		from := originsOf(c.nc)
		n.mu.RLock()
		no := n.origins.mayBegin(from, len(n.sessions)-n.c.System.N)
		n.mu.RUnlock()
		if no != nil {
			return nil, no
		}
		s = newSession(n, h.From, h.Session)
		s.host, s.from = addressOf(c.nc), from
	}
	return s, nil
}
