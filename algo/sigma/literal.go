package sigma

import (
	"slices"

	"github.com/poundlock/poundlock/protocol"
)

// LiteralClient is the client of Figure 1. Line numbers are those of the figure.
type LiteralClient struct {
	id    protocol.ID
	m     int
	order int64

	timestamp uint64
	section   protocol.Section
	resp      []request // by server; the zero request is (nil, nil); all zero unless trying
}

func newLiteralClient(id protocol.ID, c protocol.Config) *LiteralClient {
	m := int(literalInfo.Option(c, "quorum"))
	return &LiteralClient{id: id, m: m, order: literalInfo.Option(c, "order"), resp: make([]request, c.N)}
}

// Step implements protocol.Process.
func (c *LiteralClient) Step(ev protocol.Event[Message], out *protocol.Out[Message]) {
	switch ev.Kind {
	case protocol.Start:
	case protocol.Try:
		c.try(ev.Now, out)
	case protocol.Exit, protocol.Cancel:
		c.exit(ev.Now, out)
	case protocol.Receive:
		switch ev.Msg.Kind {
		case Response:
			c.onResponse(int(ev.From), request{ev.Msg.Owner, ev.Msg.Time}, out)
		case Check:
			c.onCheck(ev.From, ev.Msg.Time, out)
		default:
			panic("sigma: a client received " + messages[ev.Msg.Kind].Name)
		}
	default:
		panic("sigma: unexpected event at a client")
	}
}

// try is lines 1-5.
func (c *LiteralClient) try(now int64, out *protocol.Out[Message]) {
	c.timestamp = c.fresh(now)
	c.section = protocol.InTry
	out.Broadcast(Message{Kind: Request, Time: c.timestamp})
}

// onResponse is lines 7-18.
func (c *LiteralClient) onResponse(j int, r request, out *protocol.Out[Message]) {
	if c.section != protocol.InTry {
		return
	}
	me := request{c.id, c.timestamp}
	if c.resp[j] == me { // line 8
		return
	}
	if r.client == c.id && r.time != c.timestamp { // line 8
		return
	}
	c.resp[j] = r                              // line 9
	if count(c.resp, request{}, false) < c.m { // line 10
		return
	}
	if count(c.resp, me, true) >= c.m { // line 11
		c.section = protocol.InCrit
		clear(c.resp)
		out.Crit(0)
		return
	}
	for k, r := range c.resp { // lines 14-18
		switch {
		case r == request{}:
			continue
		case r.client == c.id:
			out.Send(protocol.ID(k), Message{Kind: Yield, Time: c.timestamp})
		case me.before(r):
			out.Send(protocol.ID(k), Message{Kind: Request, Time: c.timestamp})
		default:
			out.Send(protocol.ID(k), Message{Kind: Inquiry, Time: c.timestamp})
		}
	}
	clear(c.resp)
}

// exit is lines 19-23. Giving up while trying is the same.
func (c *LiteralClient) exit(now int64, out *protocol.Out[Message]) {
	old := c.timestamp
	c.timestamp = c.fresh(now)
	c.section = protocol.InRem
	clear(c.resp)
	out.Broadcast(Message{Kind: Release, Time: old})
	out.Rem()
}

// onCheck is lines 24-25.
func (c *LiteralClient) onCheck(from protocol.ID, t uint64, out *protocol.Out[Message]) {
	if c.timestamp != t {
		out.Send(from, Message{Kind: Release, Time: t})
	}
}

// count returns how many elements of resp are r, or are not r.
func count(resp []request, r request, equal bool) int {
	k := 0
	for _, s := range resp {
		if (s == r) == equal {
			k++
		}
	}
	return k
}

// fresh is GetTimeStamp: a hybrid logical clock. It is larger than last and not
// behind now, and a plain counter where there is no clock.
func fresh(last uint64, now int64) uint64 { return max(last+1, uint64(now)) }

// The values of the option order, which say what GetTimeStamp returns. Section 3 asks that only finitely many requests come before a
// given one: of finitely many clients that each come again and again (eventually fair), or of clients that are new without end, too
// (bounded-time fair).
const (
	byClock    = iota // bounded-time fair, where clocks are close
	bySequence        // eventually fair: new clients begin at 1, before all who wait
	byID              // neither: who has a small id is always first
)

// fresh is GetTimeStamp by the order of the option.
func (c *LiteralClient) fresh(now int64) uint64 {
	switch c.order {
	case bySequence:
		now = 0
	case byID:
		now = int64(band(c.id))
	}
	return fresh(c.timestamp, now)
}

// band is the first timestamp of a client whose requests are ordered by its id. Those of one client still tell its epochs apart.
func band(id protocol.ID) uint64 { return uint64(id) << bandBits }

const bandBits = 32

// banded is a, of which the checker may move timestamps by id: they are compared with those of no other client. What is said of a
// client may stay on its way while it goes through any number of epochs, so these are bounded.
func banded(a protocol.Algorithm[Message]) protocol.Algorithm[Message] {
	move := func(t *uint64, f func(protocol.Counter, uint64) uint64) {
		if id := protocol.ID(*t >> bandBits); id > 0 {
			*t = f(protocol.Counter{User: id, Least: band(id)}, *t)
		}
	}
	a.MapState = func(p protocol.Process[Message], f func(protocol.Counter, uint64) uint64) {
		switch p := p.(type) {
		case *LiteralClient:
			move(&p.timestamp, f)
			for j := range p.resp {
				move(&p.resp[j].time, f)
			}
		case *LiteralServer:
			move(&p.owner.time, f)
			for i := range p.queue {
				move(&p.queue[i].time, f)
			}
		}
	}
	a.MapMsg = func(_ protocol.Channel, m *Message, f func(protocol.Counter, uint64) uint64) { move(&m.Time, f) }
	a.Bounds = []protocol.Bound{protocol.NewBound("epochs at once", 2, func(c *LiteralClient) uint64 {
		if c.order != byID {
			return 0
		}
		return max(c.timestamp, band(c.id)) - band(c.id)
	})}
	return a
}

// LiteralServer is the server of Figure 1.
type LiteralServer struct {
	period int64 // of line 48, ns; 0: never

	owner request   // the zero request is nil
	queue []request // sorted
}

func newLiteralServer(c protocol.Config) *LiteralServer {
	return &LiteralServer{period: literalInfo.Option(c, "check")}
}

// Step implements protocol.Process.
func (s *LiteralServer) Step(ev protocol.Event[Message], out *protocol.Out[Message]) {
	owned := s.owner != request{}
	switch ev.Kind {
	case protocol.Start:
	case protocol.Receive:
		s.onMessage(ev.From, ev.Msg.Kind, ev.Msg.Time, out)
	case protocol.Suspect: // lines 46-47, for an owner to be as well: see protocol.Suspect
		s.delete(s.stored(ev.From), out)
	case protocol.Timeout: // lines 48-49
		if ev.Timer != checkTimer {
			panic("sigma: unexpected timer at a server")
		}
		out.Send(s.owner.client, Message{Kind: Check, Time: s.owner.time})
		owned = false
	default:
		panic("sigma: unexpected event at a server")
	}
	setCheckTimer(s.period, owned, s.owner != request{}, out)
}

// setCheckTimer keeps the timer of line 48 set exactly while there is an owner.
func setCheckTimer(period int64, was, is bool, out *protocol.Out[Message]) {
	switch {
	case period == 0 || was == is:
	case is:
		out.SetTimer(checkTimer, period, 0)
	default:
		out.StopTimer(checkTimer)
	}
}

// onMessage is lines 26-45.
func (s *LiteralServer) onMessage(from protocol.ID, kind uint8, t uint64, out *protocol.Out[Message]) {
	me := request{from, t}
	if stored := s.stored(from); stored != (request{}) { // line 27
		if t < stored.time { // line 28
			return
		}
		if t > stored.time { // line 29
			s.delete(stored, out)
		}
	}
	switch kind {
	case Request: // lines 30-35
		if s.owner.client == from {
			return
		}
		if s.owner == (request{}) {
			s.owner = me
		} else if s.queued(from) < 0 {
			s.insert(me)
		}
		s.respond(from, out)
	case Yield: // lines 36-41
		if s.owner != me {
			return
		}
		s.insert(me)
		s.dequeue(out)
		if s.owner.client != from {
			s.respond(from, out)
		}
	case Release: // lines 42-43
		s.delete(me, out)
	case Inquiry: // lines 44-45
		if s.owner.client != from && s.owner != (request{}) {
			s.respond(from, out)
		}
	default:
		panic("sigma: a server received " + messages[kind].Name)
	}
}

// delete is lines 50-56.
func (s *LiteralServer) delete(r request, out *protocol.Out[Message]) {
	if s.owner == r {
		s.owner = request{}
		if len(s.queue) > 0 {
			s.dequeue(out)
		}
	} else if i := slices.Index(s.queue, r); i >= 0 {
		s.queue = slices.Delete(s.queue, i, i+1)
	}
}

// dequeue supports the earliest request of the queue and tells its client.
func (s *LiteralServer) dequeue(out *protocol.Out[Message]) {
	s.owner = s.queue[0]
	s.queue = slices.Delete(s.queue, 0, 1)
	s.respond(s.owner.client, out)
}

func (s *LiteralServer) respond(to protocol.ID, out *protocol.Out[Message]) {
	out.Send(to, Message{Kind: Response, Owner: s.owner.client, Time: s.owner.time})
}

// stored returns the request of client c that is owner or queued, or the zero request.
func (s *LiteralServer) stored(c protocol.ID) request {
	if s.owner.client == c {
		return s.owner
	}
	if i := s.queued(c); i >= 0 {
		return s.queue[i]
	}
	return request{}
}

func (s *LiteralServer) queued(c protocol.ID) int {
	return slices.IndexFunc(s.queue, func(r request) bool { return r.client == c })
}

func (s *LiteralServer) insert(r request) {
	i := slices.IndexFunc(s.queue, r.before)
	if i < 0 {
		i = len(s.queue)
	}
	s.queue = slices.Insert(s.queue, i, r)
}
