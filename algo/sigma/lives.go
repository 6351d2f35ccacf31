package sigma

import "github.com/poundlock/poundlock/protocol"

// Servers come and go: leases, incarnations, supports that a holder rebuilds, and servers that drain.

// onRecall: server j supports us with the number that it names, and a holder
// lost that support. A client that waits has no use for it while somebody is inside. A client that is
// inside keeps it; so does who has a quorum and is getting its token recorded.
func (c *Client) onRecall(j int, m Message, now int64, out *protocol.Out[Message]) {
	s := &c.servers[j]
	if s.inc == 0 || m.Inc < s.inc {
		return
	}
	c.onIncarnation(j, m.Inc, now, out)
	if c.section == protocol.InTry && m.Time == c.time && m.Serial > s.given && m.Serial >= s.serial && !s.asked {
		// Its RESPONSE may still be on its way, and then comes too late.
		c.yield(j, m.Serial, out)
		s.response = response{}
	}
}

// onIncarnation learns that server j lives its life inc, or that we have a new
// lease there. It has forgotten us: its support is gone until it answers, and who
// waits or is inside asks again.
func (c *Client) onIncarnation(j int, inc uint64, now int64, out *protocol.Out[Message]) {
	s := &c.servers[j]
	if s.inc == inc {
		return
	}
	s.inc = 0 // it is asked as one that we know
	c.askRest(out)
	s.inc, s.draining = inc, false
	c.lose(j, now, out)
	switch {
	case c.section == protocol.InTry && c.time != 0:
		c.rerequest(j, Again, out)
	case c.section == protocol.InCrit && c.refresh != 0:
		c.rerequest(j, Inside, out)
	}
}

// onSuspect: our lease at server j may have lapsed, so it may forget us.
func (c *Client) onSuspect(j int, now int64, out *protocol.Out[Message]) {
	c.servers[j].inc = 0
	c.lose(j, now, out)
}

// onDraining: server j supports nobody new in its life inc, and for the rest of the
// epoch is as good as away. In the remainder section that is nobody's business: to
// remember it would make the state differ from the initial one until the server is back.
func (c *Client) onDraining(j int, inc uint64, now int64, out *protocol.Out[Message]) {
	s := &c.servers[j]
	if c.time == 0 || s.inc == 0 || inc < s.inc {
		return
	}
	s.inc, s.draining = inc, true
	c.lose(j, now, out)
}

// lose drops what server j said.
func (c *Client) lose(j int, now int64, out *protocol.Out[Message]) {
	recording := c.servers[j].asked
	c.servers[j].response = response{}
	c.askRest(out)
	switch {
	case c.section == protocol.InCrit:
		c.ejectIfWeak(out)
	case recording:
		c.again(now, out)
	case c.section == protocol.InTry:
		c.evaluate(now, out)
	}
}

// ejectIfWeak stops a holder whose live supports no longer exclude another
// quorum: with n-m+1 of them at most m-1 servers support somebody else.
func (c *Client) ejectIfWeak(out *protocol.Out[Message]) {
	if c.supporters() < len(c.servers)-c.m+1 {
		c.section = protocol.InLost
		for j := range c.servers {
			c.servers[j].response, c.servers[j].given = response{}, 0
		}
		out.Ejected()
	}
}

// drain stops granting: the owner stays until it leaves, and those who wait need
// not hope for us.
func (s *Server) drain(out *protocol.Out[Message]) {
	s.draining = true
	w, heir := s.heir()
	for _, w := range s.queue.all() {
		if !w.promised() {
			s.turnAway(w.client, out)
		}
	}
	if s.queue != nil {
		*s.queue = queue{shared: s.queue.shared}
	}
	if heir {
		s.insert(w)
	}
}

// turnAway tells a client that this life supports it never again.
func (s *Server) turnAway(to protocol.ID, out *protocol.Out[Message]) {
	out.Send(to, Message{Kind: Draining, Inc: s.inc})
}
