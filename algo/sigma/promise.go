package sigma

import (
	"slices"

	"github.com/poundlock/poundlock/protocol"
)

// Promises: a server tells the first one that waits that it is next (PROMISE), with the number of the support that it
// will have after the owner's. That binds the server, whatever the owner does. The RESPONSE of the first server that gets the
// RELEASE of a holder says so to the next one: it learns that the request has ended, and counts all that was promised after it.
//
// With the option direct a server also tells the owner who is next (TRANSFER), and a holder sends its RELEASE to that client, too.

// A farewell is what a RELEASE of a holder says: that its request has ended, 1, and its token, if that is not its timestamp,
// which the servers that supported it have recorded. It is zero where a server does not know whether somebody is inside.
type farewell struct{ ended, token uint64 }

// farewell is our RELEASE.
func (c *Client) farewell() Message {
	m := Message{Kind: Release, Time: c.time}
	if c.promise != 0 && c.section == protocol.InCrit && c.wants() == (choice{}) {
		if m.After = 1; c.token != c.time {
			m.Token = c.token
		}
	}
	return m
}

// farewell is what a RELEASE says. A token that nobody can have had is none.
func (s *Server) farewell(m Message, now int64) farewell {
	if s.ahead(m.Token, now) {
		return farewell{}
	}
	return farewell{m.After, m.Token}
}

// gossip is what clients hear of each other, with the option direct.
type gossip struct {
	next []protocol.ID // by server: to whom it has promised its support after ours, 0: to nobody that we know of
	// The request of the holder that told us last that it has left, and its token if that is not its timestamp; while we wait.
	ended request
	token uint64
}

// newGossip is nil without the option.
func newGossip(c protocol.Config) *gossip {
	if info.Option(c, "direct") == 0 {
		return nil
	}
	return &gossip{next: make([]protocol.ID, c.N)}
}

func (d *gossip) entered() {
	if d != nil {
		d.ended, d.token = request{}, 0
	}
}

func (d *gossip) left() {
	if d.entered(); d != nil {
		clear(d.next)
	}
}

// onTransfer: server j has promised its next support to the client that m names.
func (c *Client) onTransfer(j int, m Message) {
	if c.direct != nil && c.time == m.Time {
		c.direct.next[j] = m.Owner
	}
}

// hand sends our RELEASE m to those who are next, each once, if it is that of a holder.
func (c *Client) hand(m Message, out *protocol.Out[Message]) {
	if c.direct == nil || m.After == 0 {
		return
	}
	for j, next := range c.direct.next {
		if next != 0 && slices.Index(c.direct.next, next) == j {
			out.Send(next, m)
		}
	}
}

// onPromise notes that we are next at server j.
func (c *Client) onPromise(j int, m Message, now int64, out *protocol.Out[Message]) {
	if now == 0 {
		c.last = max(c.last, m.After)
	}
	s := &c.servers[j]
	if s.inc == 0 || m.Inc < s.inc {
		return
	}
	c.onIncarnation(j, m.Inc, now, out)
	if c.section != protocol.InTry || c.time != m.Time || s.draining || s.supports() || m.Serial <= s.given {
		return
	}
	s.response = response{request: request{m.Owner, m.After}, serial: m.Serial, token: m.Token, promised: true}
	if d := c.direct; d != nil {
		c.follow(d.ended, Message{After: 1, Token: d.token})
	}
	c.supported(s, now, out)
}

// onRelease: a holder that was told that we are next has left. What is promised after its request may still be on its way.
func (c *Client) onRelease(ended request, m Message, now int64, out *protocol.Out[Message]) {
	d := c.direct
	if d == nil || c.section != protocol.InTry {
		return
	}
	d.ended, d.token = ended, m.Token
	if s := c.follow(ended, m); s != nil {
		c.supported(s, now, out)
	}
}

// follow counts what was promised after a request that has ended, as the RESPONSE or RELEASE m says, and returns what it
// knows of one of these servers. A support that is counted so is early until its server says that we have it: until then a
// YIELD of it would mean nothing there.
func (c *Client) follow(ended request, m Message) (counted *view) {
	if m.After == 0 {
		return nil
	}
	for j := range c.servers {
		if s := &c.servers[j]; s.promised && s.request == ended {
			s.response = response{request: c.me(), serial: s.serial, token: max(s.token, m.Token), early: true}
			counted = s
		}
	}
	return counted
}

// confirmed is how many servers know that they support us.
func (c *Client) confirmed() int {
	return c.count(func(s *view) bool { return s.supports() && !s.early })
}

// heir is the waiter to whom the next support is promised.
func (s *Server) heir() (w waiter, ok bool) {
	if s.queue.len() == 0 || !s.queue.waiters[0].promised() {
		return waiter{}, false
	}
	return s.queue.waiters[0], true
}

// promise promises the next support to the first one that waits, if the owner is alone and it will be. One that is
// inside needs no promise: it gets the support before the owner ends.
func (s *Server) promise(now int64, out *protocol.Out[Message]) {
	if s.promises() {
		s.appoint(out)
		s.tellHeir(now, out)
	}
}

// appoint makes the first one that waits the heir.
func (s *Server) appoint(out *protocol.Out[Message]) {
	s.queue.promise()
	if s.terms.Value().direct != 0 {
		out.Send(s.owner.client, Message{Kind: Transfer, Time: s.owner.time, Owner: s.queue.waiters[0].client})
	}
}

// promises reports whether the first one that waits can be promised the next support, and has not been.
func (s *Server) promises() bool {
	return s.terms.Value().promise != 0 && s.group() == 0 && s.queue.waiters[0].mode == 0
}

// tellHeir says to the heir that it is next. The token that it would have is kept with its request, apart from those
// that are recorded: the owner may still have one recorded that is smaller.
func (s *Server) tellHeir(now int64, out *protocol.Out[Message]) {
	w, _ := s.heir()
	out.Send(w.client, Message{
		Kind: Promise, Time: w.time, Owner: s.owner.client, After: s.owner.time, Inc: s.inc, Serial: w.serial + 1,
		Token: s.report(w.request, now),
	})
}

// inform tells a client that we do not support whom we do, and whether it is next.
func (s *Server) inform(to protocol.ID, now int64, out *protocol.Out[Message]) {
	if s.queue.len() > 0 && s.queue.waiters[0].client == to && s.promises() {
		s.appoint(out)
	}
	if w, _ := s.heir(); w.client == to {
		s.tellHeir(now, out)
		return
	}
	s.respond(to, 0, 0, out)
}

// gone reports whether we are about to stop, and a client need not hope for us.
func (s *Server) gone(c protocol.ID) bool {
	w, _ := s.heir()
	return s.draining && w.client != c
}

// recallHeir asks the heir to give its promise back, if w is the first one behind it, and should come before it.
func (s *Server) recallHeir(w waiter, out *protocol.Out[Message]) {
	h, ok := s.heir()
	if !ok || h.client == w.client || s.queue.waiters[1].client != w.client {
		return
	}
	if w.precedes(h) {
		h.serial++
		s.recall(h.entry, out)
	}
}

// decline is told that the client of e, which waits, gives a support back. If it is the promised one, its number is used no
// more. The client is answered in any case, for it has dropped what it knew of us.
func (s *Server) decline(e entry, serial uint64, now int64, out *protocol.Out[Message]) {
	if w, _ := s.heir(); w.entry == e && w.serial+1 == serial {
		s.queue.remove(0)
		if s.draining {
			s.turnAway(e.client, out)
			return
		}
		w.mode &^= promised
		w.serial++
		s.insert(w)
	}
	if s.terms.Value().promise != 0 {
		s.inform(e.client, now, out)
	}
}

// remember records the token of an heir that leaves the queue: it may have been inside with it.
func (s *Server) remember(w waiter, now int64, out *protocol.Out[Message]) {
	if w.promised() && s.terms.Value().fence == FenceOn {
		s.raise(w.client, w.time, now, out)
	}
}
