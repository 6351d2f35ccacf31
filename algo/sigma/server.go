package sigma

import (
	"unique"

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
// There is one for each lock in use, so it is kept small.
type Server struct {
	id       uint32 // as a protocol.ID
	draining bool   // supports nobody any more but its owner; the queue is empty
	terms    unique.Handle[terms]

	inc   uint64 // this life: the clock at its start
	owner entry  // the zero entry is nil
	queue *queue // nil until somebody waits

	// The two largest tokens recorded for different clients, so that the one of a
	// request can be told from those of all others. Zero when forgotten.
	largest protocol.ID
	tokens  [2]uint64
}

// terms are the options of a server, one copy for all locks.
type terms struct {
	period int64 // between CHECKs, ns; 0: never
	fence  int64
	eps    int64
	memory int64 // how long an idle lock's token is remembered, ns
	oldest int64
}

func newServer(id protocol.ID, c protocol.Config) *Server {
	return &Server{id: uint32(id), terms: unique.Make(terms{
		period: info.Option(c, "check"),
		fence:  info.Option(c, "fence"),
		eps:    info.Option(c, "eps"),
		memory: info.Option(c, "forget"),
		oldest: info.Option(c, "oldest"),
	})}
}

// Step implements protocol.Process.
func (s *Server) Step(ev protocol.Event[Message], out *protocol.Out[Message]) {
	before := s.owner.request
	checked := before != request{}
	switch ev.Kind {
	case protocol.Start:
		s.inc = ev.Arg
	case protocol.Receive:
		s.onMessage(ev.From, ev.Msg, ev.Now, out)
	case protocol.Suspect: // lines 46-47
		s.delete(s.stored(ev.From), ev.Now, out)
	case protocol.Drain:
		s.drain(out)
	case protocol.Timeout:
		switch ev.Timer {
		case checkTimer: // lines 48-49
			out.Send(s.owner.client, Message{Kind: Check, Time: s.owner.time})
			checked = false
		case forgetTimer:
			s.largest, s.tokens = 0, [2]uint64{}
		default:
			panic("sigma: unexpected timer at a server")
		}
	default:
		panic("sigma: unexpected event at a server")
	}
	setCheckTimer(s.terms.Value().period, checked, s.owner != entry{}, out)
	if s.owner.request != before {
		out.Owner(s.owner.client, s.owner.time)
	}
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
			if m.Kind == Release {
				// It answers a CHECK of an epoch before: the client's clock has been set back.
				return
			}
			s.delete(stored, now, out)
			stored = entry{}
		}
	}
	switch m.Kind {
	case Request: // lines 30-35
		s.onRequest(stored, from, m, now, out)
	case Yield: // lines 36-41
		if s.owner.request == me && s.owner.serial == m.Serial {
			s.yield(now, out)
		}
	case Release: // lines 42-43
		s.delete(stored, now, out)
	case Inquiry: // lines 44-45
		switch {
		case s.owner.client == from:
		case s.draining:
			s.turnAway(from, out)
		case s.owner != entry{}:
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
func (s *Server) onRequest(stored entry, from protocol.ID, m Message, now int64, out *protocol.Out[Message]) {
	e := entry{request{from, m.Time}, m.Serial}
	switch {
	case stored == (entry{}) && s.refuses(m, now):
		out.Send(from, Message{Kind: Refused, Time: m.Time, Token: uint64(now)})
	case s.owner.client == from && m.Serial >= s.owner.serial:
		s.owner.serial = m.Serial
		s.yield(now, out)
	case s.owner.client == from:
		s.respond(from, s.report(s.owner.request, now), out)
	case s.draining:
		s.turnAway(from, out)
	case s.owner == (entry{}):
		s.grant(e, now, out)
	default:
		s.wait(waiter{e, m.Stage == Inside}, out)
	}
}

// refuses reports whether a timestamp is so far from our clock that it would
// drag other clocks along, or overtake everybody who waits. A client that asks again, or is
// inside, may have done its first REQUEST long ago.
func (s *Server) refuses(m Message, now int64) bool {
	behind := m.Stage == First && int64(m.Time) < now-s.terms.Value().oldest
	return s.ahead(m.Time, now) || behind
}

// ahead reports whether time, a timestamp or a token, is further ahead of our clock
// than clocks within the bound explain.
func (s *Server) ahead(time uint64, now int64) bool {
	return now > 0 && time > uint64(now+2*s.terms.Value().eps)
}

// wait queues a request, once. A client that is inside comes first, since the support is
// one that it lost here, and the owner is asked to give it back; the queue order
// does the rest.
func (s *Server) wait(w waiter, out *protocol.Out[Message]) {
	if i := s.queue.find(w.client); i >= 0 {
		known := s.queue.remove(i)
		w.serial = max(w.serial, known.serial)
		w.inside = w.inside || known.inside
	}
	s.insert(w)
	s.respond(w.client, 0, out)
	if w.inside {
		out.Send(s.owner.client, Message{Kind: Recall, Time: s.owner.time, Inc: s.inc, Serial: s.owner.serial})
	}
}

// yield takes the owner's support back and supports the earliest request.
func (s *Server) yield(now int64, out *protocol.Out[Message]) {
	from := s.owner.client
	if s.draining {
		s.owner = entry{}
		s.turnAway(from, out)
		return
	}
	s.insert(waiter{entry: s.owner})
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
		if s.queue.len() > 0 {
			s.dequeue(now, out)
		}
	default:
		s.queue.remove(s.queue.find(e.client))
	}
}

func (s *Server) dequeue(now int64, out *protocol.Out[Message]) {
	s.grant(s.queue.remove(0).entry, now, out)
}

// grant supports e, with the next number. The largest token so far is reported, and
// the timestamp recorded as the token that e will use if it can.
func (s *Server) grant(e entry, now int64, out *protocol.Out[Message]) {
	s.owner = e
	s.owner.serial++
	known := s.report(e.request, now)
	switch s.terms.Value().fence {
	case FencePiggyback:
		s.tokens[0]++
	case FenceOn, FenceNoFloor:
		s.raise(e.client, e.time, now, out)
	}
	s.respond(e.client, known, out)
}

// respond tells a client whom we support; token goes with a support only.
func (s *Server) respond(to protocol.ID, token uint64, out *protocol.Out[Message]) {
	m := Message{Kind: Response, Owner: s.owner.client, Time: s.owner.time, Inc: s.inc}
	if to == s.owner.client {
		m.Serial, m.Token = s.owner.serial, token
	}
	out.Send(to, m)
}

// stored returns the entry of client c, owner or queued, or the zero entry.
func (s *Server) stored(c protocol.ID) entry {
	if s.owner.client == c {
		return s.owner
	}
	if i := s.queue.find(c); i >= 0 {
		return s.queue.all()[i].entry
	}
	return entry{}
}

func (s *Server) insert(w waiter) {
	if s.queue == nil {
		s.queue = new(queue)
	}
	s.queue.insert(w)
}
