package node

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/poundlock/poundlock/internal/limit"
	"github.com/poundlock/poundlock/transport"
)

// maxGreeting is how many connections may be in their handshake at once.
const maxGreeting = 2048

// errCrowded is why a connection is closed that is in its handshake.
var errCrowded = &end{"too many connections are in their handshake", CauseFull, false}

// parting is how long a client gets to read why its handshake failed.
const parting = 500 * time.Millisecond

// wrongDoor is for whoever looks at this port with a browser or with curl.
const wrongDoor = `This port of Poundlock is for poundlock and for Go programs, and does
not speak HTTP. The API is at the address of --api, metrics and health at that
of --admin.
`

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

// A front is what a member accepts connections with.
type front struct {
	n        *Node
	listener net.Listener
	ctx      context.Context
	cancel   context.CancelFunc
	wg       sync.WaitGroup // one goroutine accepts, and one serves each connection
	admit    sync.Mutex     // one Hello is judged at a time; taken before the mutex of sessions
}

// close breaks the connections, whose sessions go on, and waits until nothing that
// they brought is still to be delivered.
func (f *front) close() {
	f.listener.Close()
	f.cancel()
	f.wg.Wait()
}

// Serve accepts connections at l, which Close closes. A member that began without a
// listener does so once.
func (n *Node) Serve(l net.Listener) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.sessions.isClosing() || n.frozen != nil || n.front != nil {
		return errors.Join(fmt.Errorf("node: %s cannot serve now", n.roles.name(n.c.ID)), l.Close())
	}
	f := &front{n: n, listener: l}
	f.ctx, f.cancel = context.WithCancel(n.ctx)
	n.front = f
	f.wg.Go(f.accept)
	return nil
}

// accept serves the listener until the node closes, or hands its table over.
func (f *front) accept() {
	handshakes := limit.Room{Most: maxGreeting, Yields: true}
	backoff := minBackoff
	for {
		nc, err := f.listener.Accept()
		if err != nil {
			if f.n.sessions.isClosing() || f.ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return
			}
			f.n.c.Log.Warn("accept", "error", err) // out of descriptors, for one: it may pass
			select {
			case <-time.After(backoff):
			case <-f.ctx.Done():
				return
			}
			backoff = min(2*backoff, maxBackoff)
			continue
		}
		backoff = minBackoff
		if err := begins(nc, handshake); err != nil {
			f.n.c.Log.Warn("accept", "error", err)
			closeNow(nc)
			continue
		}
		g := handshakes.Guest(addressOf(nc), true, func(int) { nc.SetReadDeadline(time.Now()) })
		g.Take(1)
		f.wg.Go(func() {
			defer closeNow(nc)
			stop := context.AfterFunc(f.ctx, func() { closeNow(nc) })
			defer stop()
			c, err := f.greet(nc)
			switch turnedOut := g.Leave(); {
			case turnedOut && err != nil:
				err = errCrowded
				f.turnAway(nc)
			case turnedOut: // too late
				nc.SetReadDeadline(time.Time{})
			}
			if err != nil {
				f.n.counters.refused[causeOf(err)].Add(1)
			} else {
				stop()
				defer context.AfterFunc(f.ctx, func() { c.close(ErrClosed) })() // to close it in truth would wait until nothing is read
				err = c.run()
			}
			f.n.c.Log.Debug("connection ended", "from", nc.RemoteAddr(), "error", err)
		})
	}
}

// greet does the accepting end of the handshake.
func (f *front) greet(nc net.Conn) (*conn, error) {
	if t, ok := nc.(*tls.Conn); ok {
		if err := t.HandshakeContext(f.n.ctx); err != nil {
			return nil, f.noHandshake(t, err)
		}
	}
	in, calm := f.n.reader(nc)
	i, header, err := readFirst(in)
	if err != nil {
		if errors.Is(err, transport.ErrWantsTLS) {
			f.n.book.warn(addressOf(nc), "refused a connection", "from", nc.RemoteAddr(), "error", err)
		}
		if errors.Is(err, transport.ErrHTTP) {
			_, _ = nc.Write(transport.HTTPAnswer(wrongDoor)) // whoever does not read it is cut
		}
		if misfit := header.Check(); header.Version != 0 && misfit != nil {
			// The header of this frame tells the other end the same.
			writeFrame(nc, f.n.Epoch(), refusal("wire version", fmt.Sprint(transport.Version), fmt.Sprint(header.Version)).Append)
			f.n.book.warn(addressOf(nc), "refused a connection", "from", nc.RemoteAddr(), "error", misfit)
		}
		return nil, err
	}
	if old := f.n.table.tooOld(header.Epoch); old != nil {
		writeFrame(nc, f.n.Epoch(), old.Append)
		return nil, *old
	}
	f.n.table.noteNewer(header.Epoch, nc)
	if i.Type != transport.HelloItem {
		return nil, fmt.Errorf("%w: item of type %d instead of a hello", transport.ErrFrame, i.Type)
	}
	h, err := transport.ReadHello(i.Body)
	if err != nil {
		return nil, err
	}
	c := newConn(f.n, nc, in, false, f.lease(h))
	c.calm = calm
	c.isSession = h.EndsWithConnection && !f.n.roles.isMember(h.From)
	w, no := f.welcome(h, c)
	if no != nil {
		switch no.Code {
		case transport.Full:
			f.n.book.warn(addressOf(nc), "refused a session", "from", nc.RemoteAddr(), "peer", f.n.roles.name(h.From), "reason", no.What)
		case transport.Misfit:
			f.n.book.warn(addressOf(nc), "refused a connection", "from", nc.RemoteAddr(), "peer", f.n.roles.name(h.From),
				"what", no.What, "mine", no.Mine, "theirs", no.Yours)
		}
		writeFrame(nc, f.n.Epoch(), no.Append)
		return nil, *no
	}
	if err := writeFrame(nc, f.n.Epoch(), w.Append); err != nil {
		c.s.detach(c)
		return nil, err
	}
	if !f.n.roles.isMember(h.From) {
		c.dialer = dialerOf(nc, h.Process)
	}
	nc.SetDeadline(time.Time{})
	c.signal()
	return c, nil
}

// turnAway tells a client in its handshake that there is no room, in no time, unless they have not agreed on TLS yet.
func (f *front) turnAway(nc net.Conn) {
	if t, ok := nc.(*tls.Conn); ok && !t.ConnectionState().HandshakeComplete {
		return
	}
	nc.SetDeadline(time.Now().Add(parting / 10))
	no := &transport.Refuse{Code: transport.Full, What: errCrowded.text + ": try again later"}
	if writeFrame(nc, f.n.Epoch(), no.Append) == nil {
		awaitEnd(nc)
	}
}

// awaitEnd closes a connection for writing, and reads what the other end has sent until that closes it, too: otherwise its
// system could throw away what it is told.
func awaitEnd(nc net.Conn) {
	if half, ok := nc.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		_, _ = io.CopyN(io.Discard, nc, transport.MaxHandshake)
	}
}

// noHandshake says why TLS failed with a client: in the log, and to the client,
// which must have read the alert before the connection is closed.
func (f *front) noHandshake(t *tls.Conn, err error) error {
	err = transport.Explain(err)
	var garbled tls.RecordHeaderError
	switch {
	case errors.As(err, &garbled):
		t.NetConn().Write(transport.WantTLS[:]) // crypto/tls says nothing to what is no TLS
		err = fmt.Errorf("the other end seems to be without TLS: %w", err)
	case transport.BrokenOff(err), errors.Is(err, os.ErrDeadlineExceeded):
		return err // a look at the port, or one that was turned out
	}
	f.n.book.warn(addressOf(t), "refused a connection", "from", t.RemoteAddr(), "error", err)
	t.NetConn().SetReadDeadline(time.Now().Add(parting))
	awaitEnd(t.NetConn())
	return err
}

// lease is the length of the lease that is granted: the one asked for, but none
// longer than this member's own.
func (f *front) lease(h transport.Hello) time.Duration {
	if h.Lease == 0 {
		return f.n.c.Lease
	}
	return max(MinLease, min(h.Lease, f.n.c.Lease))
}

// misfit says how the two ends differ in what they must agree on.
func (f *front) misfit(h transport.Hello) *transport.Refuse {
	mine := f.n.c.Peers[f.n.c.ID].Name
	switch {
	case h.To != f.n.c.ID || h.ToName != mine:
		return refusal("name of the "+f.n.roles.noun(), mine, h.ToName)
	case h.Members != memberNames(f.n.c.Peers):
		return refusal("names of the "+f.n.roles.noun()+"s", memberNames(f.n.c.Peers), h.Members)
	case h.Shards != f.n.c.Shards:
		return refusal("shards", cmp.Or(f.n.c.Shards, "none"), cmp.Or(h.Shards, "none"))
	case f.n.roles.isMember(h.From) && (!f.n.roles.mayTalk(h.From) || h.From <= f.n.c.ID):
		return refusal("direction of the connection", "from "+mine+" to "+f.n.roles.name(h.From), "the other way")
	case h.Session == 0 || h.Incarnation == 0:
		return refusal("numbers of sessions", "from 1", "0")
	case !f.n.roles.isMember(h.From) && h.From != ClientID(h.Incarnation):
		return refusal("id of the client", "that of its secret", fmt.Sprintf("%016x", uint64(h.From)))
	}
	for _, k := range h.Kinds { // one that is not served here is refused with each name
		if kind := Kind(k.Number); f.n.c.Hosts[kind] != nil && f.n.agreed(kind) != k.Algorithm {
			return refusal("algorithm of kind "+kind.String(), f.n.agreed(kind), k.Algorithm)
		}
	}
	return nil
}

// welcome judges a Hello, one at a time, and gives c to the session that it asks
// for: the one that it resumes, or a new one, which ends an older one.
func (f *front) welcome(h transport.Hello, c *conn) (w transport.Welcome, no *transport.Refuse) {
	if no := f.misfit(h); no != nil {
		return w, no
	}
	f.admit.Lock()
	defer f.admit.Unlock()
	s, no := f.sessionFor(h, c)
	if f.n.roles.mutual() {
		f.n.each(func(*loop) {}) // the peer takes the answer for a sign that all users here know what has ended
	}
	if no != nil {
		return w, no
	}
	s.mu.Lock()
	if no := s.outdated(h); no != nil {
		s.mu.Unlock()
		return w, no
	}
	s.number = h.Session
	isNew := s.agree(h.Incarnation, h.Label, c.lease, f.n.c.Boot())
	w = transport.Welcome{
		Incarnation: f.n.incarnation, Session: h.Session, Received: s.received(),
		Lease: c.lease, ClockBound: f.n.c.ClockBound, Label: f.n.c.Label,
	}
	s.mu.Unlock()
	switch err := f.n.sessions.connect(s, c, h.Received, isNew); {
	case err == ErrClosed:
		return w, &transport.Refuse{Code: transport.Full, What: "the " + f.n.roles.noun() + " is closing"}
	case err != nil:
		return w, &transport.Refuse{Code: transport.UnknownSession, What: err.Error()}
	case !f.n.settle():
		return w, &transport.Refuse{Code: transport.Full, What: "the server is closing"}
	}
	if isNew {
		f.n.noteClockBound(s.host, f.n.roles.name(h.From), h.ClockBound)
		f.n.c.Log.Debug("session began", "peer", f.n.roles.name(h.From), "label", h.Label, "session", h.Session)
	}
	return w, nil
}

// sessionFor finds the session that a Hello means.
func (f *front) sessionFor(h transport.Hello, c *conn) (*session, *transport.Refuse) {
	if no := f.n.lives.meet(h.From, h.Incarnation); no != nil {
		return nil, no
	}
	s := f.n.sessions.lookup(h.From)
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
			f.n.sessions.end(s, why, nil)
			s = f.n.sessions.lookup(h.From) // a standing one
		}
	}
	if h.Resume || h.Received != 0 {
		return nil, &transport.Refuse{Code: transport.UnknownSession, What: "the session is not known here"}
	}
	if s == nil {
		if no := f.n.sessions.asked(h); no != nil {
			return nil, no
		}
		from := originsOf(c.nc)
		if no := f.n.sessions.mayBegin(from); no != nil {
			return nil, no
		}
		s = newSession(f.n, h.From, h.Session)
		s.host, s.from = addressOf(c.nc), from
	}
	return s, nil
}
