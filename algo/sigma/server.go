package sigma

import (
	"slices"

	"github.com/poundlock/poundlock/protocol"
)

// An entry is a request at a server. Its serial counts the supports that the
// request got here: a support has a number, and a YIELD or SETTOKEN is obeyed
// only for the number given out last.
type entry struct {
	request
	serial uint64
}

// Server is a server with all extensions. The idle state is the initial state.
type Server struct {
	id     protocol.ID
	period int64 // between CHECKs, ns; 0: never
	fence  int64
	eps    int64
	memory int64 // how long an idle lock's token is remembered, ns
	oldest int64

	inc   uint64 // this life: the clock at its start
	owner entry  // the zero entry is nil
	queue []entry

	// The two largest tokens recorded for different clients, so that a client
	// can be told the largest one of all others. Zero when forgotten.
	largest protocol.ID
	tokens  [2]uint64
}

func newServer(id protocol.ID, c protocol.Config) *Server {
	return &Server{
		id:     id,
		period: info.Option(c, "check"),
		fence:  info.Option(c, "fence"),
		eps:    info.Option(c, "eps"),
		memory: info.Option(c, "forget"),
		oldest: info.Option(c, "oldest"),
	}
}

// Step implements protocol.Process.
func (s *Server) Step(ev protocol.Event[Message], out *protocol.Out[Message]) {
	owned := s.owner != entry{}
	switch ev.Kind {
	case protocol.Start:
		s.inc = ev.Arg
	case protocol.Receive:
		s.onMessage(ev.From, ev.Msg, ev.Now, out)
	case protocol.Suspect: // lines 46-47
		s.delete(s.stored(ev.From), ev.Now, out)
	case protocol.Timeout:
		switch ev.Timer {
		case checkTimer: // lines 48-49
			out.Send(s.owner.client, Message{Kind: Check, Time: s.owner.time})
			owned = false
		case forgetTimer:
			s.largest, s.tokens = 0, [2]uint64{}
		default:
			panic("sigma: unexpected timer at a server")
		}
	default:
		panic("sigma: unexpected event at a server")
	}
	setCheckTimer(s.period, owned, s.owner != entry{}, out)
}

// onMessage is lines 26-45.
func (s *Server) onMessage(from protocol.ID, m Message, now int64, out *protocol.Out[Message]) {
	me := request{from, m.Time}
	stored := s.stored(from)
	if stored != (entry{}) { // line 27
		if m.Time < stored.time { // line 28
			return
		}
		if m.Time > stored.time { // line 29
			s.delete(stored, now, out)
			stored = entry{}
		}
	}
	switch m.Kind {
	case Request: // lines 30-35
		s.onRequest(stored, entry{me, m.Serial}, now, out)
	case Yield: // lines 36-41
		if s.owner.request == me && s.owner.serial == m.Serial {
			s.yield(now, out)
		}
	case Release: // lines 42-43
		s.delete(stored, now, out)
	case Inquiry: // lines 44-45
		if s.owner.client != from && s.owner != (entry{}) {
			s.respond(from, 0, out)
		}
	case SetToken:
		s.onSetToken(from, m, now, out)
	default:
		panic("sigma: a server received " + messages[m.Kind].Name)
	}
}

// onRequest is lines 30-35. A REQUEST of the owner itself is answered by the same
// support once more, which its number makes harmless; if it says that it gave
// that support back, it counts as the YIELD that was lost.
func (s *Server) onRequest(stored, e entry, now int64, out *protocol.Out[Message]) {
	switch {
	case stored == (entry{}) && s.refuses(e.time, now):
		out.Send(e.client, Message{Kind: Refused, Time: e.time, Token: uint64(now)})
	case s.owner == (entry{}):
		s.grant(e, now, out)
	case stored == (entry{}):
		s.insert(e)
		s.respond(e.client, 0, out)
	case stored != s.owner:
		i := slices.Index(s.queue, stored)
		s.queue[i].serial = max(stored.serial, e.serial)
		s.respond(e.client, 0, out)
	case e.serial >= s.owner.serial:
		s.owner.serial = e.serial
		s.yield(now, out)
	default:
		s.respond(e.client, s.others(e.client, now), out)
	}
}

// refuses reports whether a timestamp is so far from our clock that it would
// drag other clocks along, or overtake everybody who waits.
func (s *Server) refuses(t uint64, now int64) bool {
	return now > 0 && (int64(t) > now+2*s.eps || int64(t) < now-s.oldest)
}

// yield takes the owner's support back and supports the earliest request.
func (s *Server) yield(now int64, out *protocol.Out[Message]) {
	from := s.owner.client
	s.insert(s.owner)
	s.dequeue(now, out)
	if s.owner.client != from {
		s.respond(from, 0, out)
	}
}

// delete is lines 50-56. The zero entry is nobody.
func (s *Server) delete(e entry, now int64, out *protocol.Out[Message]) {
	switch {
	case e == entry{}:
	case e == s.owner:
		s.owner = entry{}
		if len(s.queue) > 0 {
			s.dequeue(now, out)
		}
	default:
		i := slices.Index(s.queue, e)
		s.queue = slices.Delete(s.queue, i, i+1)
	}
}

func (s *Server) dequeue(now int64, out *protocol.Out[Message]) {
	e := s.queue[0]
	s.queue = slices.Delete(s.queue, 0, 1)
	s.grant(e, now, out)
}

// grant supports e, with the next number. The token that others had recorded is
// reported, and the timestamp recorded as the token that e will use if it can.
func (s *Server) grant(e entry, now int64, out *protocol.Out[Message]) {
	s.owner = e
	s.owner.serial++
	others := s.others(e.client, now)
	switch s.fence {
	case FencePiggyback:
		s.tokens[0]++
	case FenceOn, FenceNoFloor:
		s.raise(e.client, e.time, now, out)
	}
	s.respond(e.client, others, out)
}

// respond tells a client whom we support; token goes with a support only.
func (s *Server) respond(to protocol.ID, token uint64, out *protocol.Out[Message]) {
	m := Message{Kind: Response, Owner: s.owner.client, Time: s.owner.time, Inc: s.inc}
	if to == s.owner.client {
		m.Serial, m.Token = s.owner.serial, token
	}
	out.Send(to, m)
}

// onSetToken records a token for the support that it names.
func (s *Server) onSetToken(from protocol.ID, m Message, now int64, out *protocol.Out[Message]) {
	current := s.owner.request == request{from, m.Time} && s.owner.serial == m.Serial
	ahead := now > 0 && m.Token > uint64(now+2*s.eps)
	if !current || ahead || m.Token <= s.others(from, now) {
		out.Send(from, Message{Kind: Refused, Time: m.Time, Token: uint64(now)})
		return
	}
	s.raise(from, m.Token, now, out)
	out.Send(from, Message{Kind: Recorded, Time: m.Time, Token: m.Token})
}

// others returns the largest token that clients other than c may have had.
func (s *Server) others(c protocol.ID, now int64) uint64 {
	switch {
	case s.fence == FenceOff:
		return 0
	case s.fence == FencePiggyback:
		return s.tokens[0]
	case s.tokens[0] == 0:
		return s.floor(now)
	case s.largest == c:
		return s.tokens[1]
	default:
		return s.tokens[0]
	}
}

// floor is above every token that this server, in this life or an earlier one,
// may have recorded and forgotten. A token is at most 3 eps ahead of real time
// when it is recorded, and our clock is at most eps behind.
func (s *Server) floor(now int64) uint64 {
	if s.fence == FenceNoFloor {
		return 0
	}
	if now == 0 {
		return s.inc // without a clock there is no bound on tokens either
	}
	return uint64(max(int64(s.inc), now-s.memory) + 4*s.eps)
}

// raise records token x for client c.
func (s *Server) raise(c protocol.ID, x uint64, now int64, out *protocol.Out[Message]) {
	if s.tokens[0] == 0 {
		s.largest, s.tokens[0] = nobody, s.floor(now)
	}
	switch {
	case s.largest == c:
		s.tokens[0] = max(s.tokens[0], x)
	case x > s.tokens[0]:
		s.largest, s.tokens = c, [2]uint64{x, s.tokens[0]}
	default:
		s.tokens[1] = max(s.tokens[1], x)
	}
	out.SetTimer(forgetTimer, s.memory, 0)
}

// nobody is no client: it stands for the forgotten ones.
const nobody = ^protocol.ID(0)

// stored returns the entry of client c, owner or queued, or the zero entry.
func (s *Server) stored(c protocol.ID) entry {
	if s.owner.client == c {
		return s.owner
	}
	if i := slices.IndexFunc(s.queue, func(e entry) bool { return e.client == c }); i >= 0 {
		return s.queue[i]
	}
	return entry{}
}

func (s *Server) insert(e entry) {
	i := slices.IndexFunc(s.queue, func(f entry) bool { return e.before(f.request) })
	if i < 0 {
		i = len(s.queue)
	}
	s.queue = slices.Insert(s.queue, i, e)
}
