package sigma

import (
	"math/bits"

	"github.com/poundlock/poundlock/protocol"
)

// Thrift: where nobody else wants the lock a quorum is enough. So a try may ask a quorum first, and leaves the other servers alone if it has
// left soon. They are asked as soon as one of the quorum does not support it at once, whatever the reason, and in any case after a while: a long
// hold then has as many supports as without thrift, with the option refresh.

// askAfter is after how many message delays a client asks everybody: long after a quorum that is up has answered, also where it is busy.
// Package node calls servers busy where users wait four times the least, which is 2T: this is twice as long.
const askAfter = 16

// thrift is which servers each try of a client asks later, with the option of that name.
func thrift(id protocol.ID, c protocol.Config) (later uint64) {
	if info.Option(c, "thrifty") != 0 {
		for k := int(info.Option(c, "quorum")); k < c.N; k++ {
			later |= 1 << ((uint64(id) + uint64(k)) % uint64(c.N))
		}
	}
	return later
}

// askFirst sends the REQUEST of an epoch to all servers but some, if all others may support us. Who wants one of several groups needs
// a quorum of one of these, for which it may have to hear everybody.
func (c *Client) askFirst(later uint64, out *protocol.Out[Message]) {
	c.later = later
	if later == 0 || bits.OnesCount64(later) > len(c.servers)-c.m || c.groups.Len() > 1 || c.lacks() {
		c.later = 0
	} else {
		out.SetTimer(retryTimer, askAfter*c.delay, 0)
	}
	c.toAsked(c.ask(Message{}), out)
}

// askRest asks those that have not been asked yet, and reports whether there are any.
func (c *Client) askRest(out *protocol.Out[Message]) bool {
	later := c.later
	if later == 0 {
		return false
	}
	c.later = 0
	stage := First
	if c.section == protocol.InCrit {
		stage = Inside
	}
	for j := range c.servers {
		if later>>j&1 != 0 && c.servers[j].gives() && (stage == First || c.refresh != 0) {
			c.rerequest(j, stage, out)
		}
	}
	if c.section == protocol.InTry && c.supporters() > 0 {
		out.SetTimer(retryTimer, c.patience, 0)
	} else {
		out.StopTimer(retryTimer)
	}
	return true
}

// toAsked sends a message to the servers that have been asked.
func (c *Client) toAsked(m Message, out *protocol.Out[Message]) {
	if c.later == 0 {
		out.Broadcast(m)
		return
	}
	for j := range c.servers {
		if c.later>>j&1 == 0 {
			out.Send(protocol.ID(j), m)
		}
	}
}

// lacks reports whether some server that has been asked does not support us, or is away.
func (c *Client) lacks() bool {
	for j := range c.servers {
		if s := &c.servers[j]; c.later>>j&1 == 0 && !s.supports() && !s.awaited() {
			return true
		}
	}
	return false
}
