package sigma

import "github.com/poundlock/poundlock/protocol"

// Promises: a server tells the first one that waits that it is next (PROMISE), with the number of the support that it
// will have after the owner's. That binds the server, whatever the owner does. The RESPONSE of the first server that gets the
// RELEASE of a holder says so to the next one: it learns that the request has ended, and counts all that was promised after it.

// A farewell is what a RELEASE of a holder says: that its request has ended, 1, and its token, if that is not its timestamp,
// which the servers that supported it have recorded. It is zero where a server does not know whether somebody is inside.
type farewell struct{ ended, token uint64 }

// farewell is our RELEASE.
func (c *Client) farewell() Message {
	m := Message{Kind: Release, Time: c.time}
	if c.promise != 0 && c.section == protocol.InCrit && c.wants() == 0 {
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
	c.evaluate(now, out)
}

// follow counts what was promised after a request that has ended, as the RESPONSE m says. A support that is counted so
// is early until its server says that we have it: until then a YIELD of it would mean nothing there.
func (c *Client) follow(ended request, m Message) {
	for j := range c.servers {
		s := &c.servers[j]
		if s.promised && s.request == ended && m.After != 0 {
			s.response = response{request: c.me(), serial: s.serial, token: max(s.token, m.Token), early: true}
		}
	}
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
		s.queue.promise()
		s.tellHeir(now, out)
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
		s.queue.promise()
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
