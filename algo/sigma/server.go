package sigma

import (
	"time"
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
	id       uint16 // as a protocol.ID
	draining bool   // supports nobody any more but its owner; the queue is empty
	again    bool   // in this step, that of left goes on
	left     uint32 // the end of the id of a holder that has left in the last step; 0: none
	terms    unique.Handle[terms]

	inc   uint64 // this life: the clock at its start
	owner entry  // the zero entry is nil
	queue *queue // nil until somebody waits

	// The two largest tokens recorded for different clients, or groups, so that the one of a
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

	promise int64 // 0: none
	direct  int64 // 0: the owner does not hear who is next
}

func newServer(id protocol.ID, c protocol.Config) *Server {
	return &Server{id: uint16(id), terms: unique.Make(terms{
		period: info.Option(c, "check"),
		fence:  info.Option(c, "fence"),
		eps:    info.Option(c, "eps"),
		memory: info.Option(c, "forget"),
		oldest: info.Option(c, "oldest"),

		promise: info.Option(c, "promise"),
		direct:  info.Option(c, "direct"),
	})}
}

// Step implements protocol.Process.
func (s *Server) Step(ev protocol.Event[Message], out *protocol.Out[Message]) {
	before, shared := s.owner.request, s.group() != 0
	checked := before != request{}
	s.again, s.left = s.left == uint32(ev.From), 0
	switch ev.Kind {
	case protocol.Start:
		s.inc = ev.Arg
	case protocol.Receive:
		s.onMessage(ev.From, ev.Msg, ev.Now, out)
	case protocol.Suspect: // lines 46-47
		_, e := s.stored(ev.From)
		s.delete(e, farewell{}, ev.Now, out)
	case protocol.Drain:
		s.drain(out)
	case protocol.Timeout:
		switch ev.Timer {
		case checkTimer: // lines 48-49
			s.check(out)
			checked = false
		case forgetTimer:
			s.largest, s.tokens = 0, [2]uint64{}
		default:
			panic("sigma: unexpected timer at a server")
		}
	default:
		panic("sigma: unexpected event at a server")
	}
	if s.queue.len() > 0 {
		s.promise(ev.Now, out)
	}
	setCheckTimer(s.terms.Value().period/int64(s.turns()), checked, s.owner != entry{}, out)
	if alone := s.group() == 0; s.owner.request != before || shared {
		switch {
		case alone:
			out.Owner(s.owner.client, s.owner.time)
		case !shared && before != request{} && !s.supports(before): // it was alone, and those who share have been told
			out.Parted(before.client, before.time)
		}
	}
}

// onMessage is lines 26-45.
func (s *Server) onMessage(from protocol.ID, m Message, now int64, out *protocol.Out[Message]) {
	own, stored := s.stored(from)
	if stored != (entry{}) { // line 27
		if m.Time < stored.time { // line 28
			return
		}
		if m.Time > stored.time { // line 29
			if m.Kind == Release {
				// It answers a CHECK of an epoch before: the client's clock has been set back.
				return
			}
			s.delete(stored, farewell{}, now, out)
			own, stored = nil, entry{}
		}
	}
	switch m.Kind {
	case Request: // lines 30-35
		s.onRequest(own, stored, from, m, now, out)
	case Yield: // lines 36-41
		switch {
		case own != nil && own.serial == m.Serial:
			s.yield(waiter{entry: *own, mode: s.group(), head: m.After}, now, out)
		case own == nil && stored != (entry{}):
			s.decline(stored, m.Serial, now, out)
		}
	case Release: // lines 42-43
		last := s.farewell(m, now)
		if last.ended != 0 {
			s.left = uint32(from)
		}
		s.delete(stored, last, now, out)
	case Inquiry: // lines 44-45
		switch {
		case own != nil:
		case s.gone(from):
			s.turnAway(from, out)
		case s.owner != entry{}:
			s.inform(from, now, out)
		}
	case SetToken:
		s.onSetToken(from, m, now, out)
	case Downgrade:
		s.onDowngrade(own, stored, m, now, out)
	default:
		panic("sigma: a server received " + messages[m.Kind].Name)
	}
}

// onRequest is lines 30-35. A REQUEST of an owner itself is answered by the same
// support once more, which its number makes harmless; if it says that it gave
// that support back, it counts as the YIELD that was lost.
func (s *Server) onRequest(own *entry, stored entry, from protocol.ID, m Message, now int64, out *protocol.Out[Message]) {
	e := entry{request{from, m.Time}, m.Serial}
	groups := choice{m.Group, m.Token, m.Inc}
	switch {
	case !groups.of(from): // ids are public, and nobody else may share with a client that keeps
	case stored == (entry{}) && s.refuses(m, now):
		out.Send(from, Message{Kind: Refused, Time: m.Time, Token: uint64(now)})
	case own != nil && m.Serial >= own.serial:
		s.yield(newWaiter(e, groups, m.After, false), now, out)
	case own != nil:
		s.respond(from, s.report(own.request, now), 0, out)
	case s.gone(from):
		s.turnAway(from, out)
	case s.owner == (entry{}) && m.Group == 0:
		s.grant(e, farewell{}, now, out)
	default:
		s.wait(newWaiter(e, groups, m.After, m.Stage == Inside), now, out)
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

// wait queues a request, once, and supports it at once if it shares with the owners and nobody is before it, or it was
// made before their session began. A client that is inside comes first, since the support is one that it lost here, and
// the owners are asked to give theirs back; the queue order does the rest.
func (s *Server) wait(w waiter, now int64, out *protocol.Out[Message]) {
	if i := s.queue.find(w.client); i >= 0 {
		known := s.queue.remove(i)
		w.serial = max(w.serial, known.serial)
		w.mode |= known.mode & inside
		w.mode |= known.mode & promised
		w.head = known.head
	}
	if s.shares(w) {
		s.grant(w.entry, farewell{}, now, out)
		return
	}
	s.insert(w)
	s.recallHeir(w, out)
	if w.group() != 0 {
		if s.admit(farewell{}, now, out); s.owned(w.client) != nil {
			return
		}
	}
	if _, ok := s.heir(); ok && s.again && w.mode == 0 {
		// It has just left, and waits again behind others: it hardly ever has a support that it might have to give back.
		// What it waits for may go in the same frame.
		out.SendWithin(aWhile, w.client, s.news())
	} else {
		s.inform(w.client, now, out)
	}
	if s.group() != 0 && s.queue.len() == 1 { // the first one for whom they have to leave
		for e := range s.owners() {
			s.tell(e, out)
		}
	}
	if w.inside() {
		for e := range s.owners() {
			s.recall(e, out)
		}
	}
}

// tell says to an owner that somebody waits who does not share.
func (s *Server) tell(e entry, out *protocol.Out[Message]) {
	out.Send(e.client, Message{Kind: Response, Stage: Wanted, Owner: e.client, Time: e.time, Inc: s.inc, Group: s.group()})
}

// recall asks the client of a support to give it back.
func (s *Server) recall(e entry, out *protocol.Out[Message]) {
	out.Send(e.client, Message{Kind: Recall, Time: e.time, Inc: s.inc, Serial: e.serial})
}

// yield takes the support of an owner back, which waits from now on as w says, and supports whoever comes next. That is the
// owner itself where it is alone and nobody comes before it, and else the heir, if there is one. An owner that gives its
// support back unasked wants the group of the session: what it preferred is not kept, and its head start it says again.
func (s *Server) yield(w waiter, now int64, out *protocol.Out[Message]) {
	s.part(w.entry, out)
	switch h, ok := s.heir(); {
	case s.draining:
		s.turnAway(w.client, out)
		if ok {
			s.admit(farewell{}, now, out)
		}
	case ok && w.group() == 0 && w.precedes(h) && (s.queue.len() == 1 || w.compare(s.queue.waiters[1]) < 0):
		s.grant(w.entry, farewell{}, now, out)
	default:
		s.insert(w)
		s.admit(farewell{}, now, out)
	}
	if !s.draining && s.owned(w.client) == nil {
		s.inform(w.client, now, out)
	}
}

// delete is lines 50-56. The zero entry is nobody.
func (s *Server) delete(e entry, last farewell, now int64, out *protocol.Out[Message]) {
	switch {
	case e == entry{}:
		return
	case s.owned(e.client) != nil:
		s.part(e, out)
	default:
		s.remember(s.queue.remove(s.queue.find(e.client)), now, out)
	}
	if s.queue.len() > 0 {
		s.admit(last, now, out)
	}
}

// grant supports e, with the next number. The largest token so far is reported, and
// the timestamp recorded as the token that e will use if it can.
func (s *Server) grant(e entry, last farewell, now int64, out *protocol.Out[Message]) {
	e.serial++
	if s.join(e); s.group() != 0 {
		out.Joined(e.client, e.time, named(s.group()))
	}
	known := s.report(e.request, now)
	switch s.terms.Value().fence {
	case FencePiggyback:
		s.tokens[0]++
	case FenceOn, FenceNoFloor:
		s.raise(s.fenced(e.client), e.time, now, out)
	}
	s.respond(e.client, max(known, last.token), last.ended, out)
}

// aWhile is how long an answer may wait that nobody waits for, ns: longer than a client waits where many hold a lock briefly.
const aWhile = int64(100 * time.Millisecond)

// news says whom we support to others.
func (s *Server) news() Message {
	return Message{Kind: Response, Owner: s.owner.client, Time: s.owner.time, Inc: s.inc, Group: s.group()}
}

// respond tells a client whom we support; token and ended go with a support only.
func (s *Server) respond(to protocol.ID, token, ended uint64, out *protocol.Out[Message]) {
	e := s.owned(to)
	if e == nil {
		out.Send(to, s.news())
		return
	}
	m := Message{Kind: Response, Owner: e.client, Time: e.time, Inc: s.inc, Serial: e.serial, Token: token, Group: s.group(), After: ended}
	if s.group() != 0 && s.queue.len() > 0 {
		m.Stage = Wanted
	}
	out.Send(to, m)
}

// stored returns the entry of client c, queued or that of an owner, which is also in own; or the zero entry.
func (s *Server) stored(c protocol.ID) (own *entry, e entry) {
	if own = s.owned(c); own != nil {
		return own, *own
	}
	if i := s.queue.find(c); i >= 0 {
		return nil, s.queue.waiters[i].entry
	}
	return nil, entry{}
}

func (s *Server) insert(w waiter) {
	if s.queue == nil {
		s.queue = new(queue)
	}
	s.queue.insert(w)
}
