package tokengme

import "github.com/poundlock/poundlock/protocol"

// A member is what the paper has each process know, in its words: A0. Both forms have it.
type member struct {
	id protocol.ID
	n  int

	requests    []request // request_i, by process: the newest one known here
	session     uint64    // the largest one of which a RELEASE has come
	releases    uint64    // noOfReleaseMessages: how many of it
	outstanding bool      // it has requested, and not entered yet
	held        bool      // it holds a token, which is
	token       Token     // zero, except for its memory, unless held
}

// A request is what a REQUEST said.
type request struct {
	number uint64
	groups protocol.Groups // type
}

// knows is what both forms are: they know what a member does.
type knows interface{ self() *member }

func (m *member) self() *member { return m }

// newMember is A0: the first process holds the primary token.
func newMember(id protocol.ID, n int) member {
	m := member{id: id, n: n, requests: make([]request, n), token: Token{Fulfilled: make([]uint64, n)}}
	if m.held = id == 0; m.held {
		m.token.Primary, m.token.Safe, m.token.Group = true, true, nothing
	}
	return m
}

// safe says that all tokens of the session before have been given back: there were none,
// or all RELEASEs have come, or somebody has been inside in this session.
func (m *member) safe() bool {
	t := &m.token
	return t.Safe || t.Old == 0 || m.session+1 == t.Session && m.releases == t.Old || m.session == t.Session
}

// serves says that a request for groups may share the session of the token: it is compatible.
// Of an exclusive group each request is as if it were of a type of its own.
func (m *member) serves(groups protocol.Groups) bool {
	return groups.Has(m.token.Group) && !m.token.Group.Exclusive()
}

// secondary makes a secondary token of the session.
func (m *member) secondary(out *protocol.Out[Message]) *Token {
	fulfilled := out.Words(m.n)
	copy(fulfilled, m.token.Fulfilled)
	t := &m.token
	return &Token{Safe: t.Safe, Group: t.Group, Session: t.Session, Old: t.Old, Fulfilled: fulfilled, Fence: t.Fence}
}

// expects panics unless a token may come: this process has requested, and holds none.
func (m *member) expects(t *Token) {
	if m.held || !m.outstanding || len(t.Fulfilled) != m.n {
		panic("tokengme: a TOKEN that nobody waits for")
	}
}

// take copies a token, which is frozen, into the memory of this process.
func (m *member) take(t *Token) {
	fulfilled, queue := m.token.Fulfilled, m.token.Queue
	m.held, m.token = true, *t
	m.token.Fulfilled, m.token.Queue = fulfilled, append(queue[:0], t.Queue...)
	copy(fulfilled, t.Fulfilled)
}

// fence is the fencing token of the next entry. Those who share a session have one.
func (m *member) fence() uint64 {
	if m.token.Group.Exclusive() {
		m.token.Fence++
	}
	return m.token.Fence
}

// drop forgets the token.
func (m *member) drop() {
	m.held, m.token = false, Token{Fulfilled: m.token.Fulfilled, Queue: m.token.Queue[:0]}
}

// LiteralProcess is a process of the paper: its actions A1 to A6 in their order, and no more.
type LiteralProcess struct {
	member
	inCS bool
}

// Step implements protocol.Process.
func (p *LiteralProcess) Step(ev protocol.Event[Message], out *protocol.Out[Message]) {
	switch ev.Kind {
	case protocol.Start:
	case protocol.Try:
		p.request(protocol.Groups(ev.Data), out)
	case protocol.Exit:
		p.exit(out)
	case protocol.Receive:
		switch m := ev.Msg; m.Kind {
		case Request:
			p.onRequest(ev.From, m.Number, m.Groups, out)
		case Pass:
			p.onToken(m.Token, out)
		case Release:
			p.onRelease(m.Number, out)
		default:
			panic("tokengme: unexpected message")
		}
	default:
		panic("tokengme: unexpected event")
	}
}

// request is A1: with a token of the type wanted it enters at once, else it asks everybody,
// itself included.
func (p *LiteralProcess) request(t protocol.Groups, out *protocol.Out[Message]) {
	if p.held && t.Has(p.token.Group) {
		p.enter(out)
		return
	}
	p.outstanding = true
	k := p.requests[p.id].number + 1
	out.Broadcast(Message{Kind: Request, Number: k, Groups: t})
	p.onRequest(p.id, k, t, out)
}

// onRequest is A2: REQUEST(k, t) of p_j.
func (p *LiteralProcess) onRequest(j protocol.ID, k uint64, t protocol.Groups, out *protocol.Out[Message]) {
	if k <= p.requests[j].number {
		return
	}
	p.requests[j] = request{k, t}
	switch {
	case !p.held || !p.pending(j):
	case p.token.Primary:
		p.serve(j, out)
		if p.idle() && len(p.token.Queue) > 0 {
			p.newSession(out)
		}
	case !p.serves(t) && p.idle():
		p.release(out)
	}
}

// serve is A2 at the holder of the primary token, for a request that is pending: it issues a
// secondary token, or queues the request unless that is there.
func (p *LiteralProcess) serve(j protocol.ID, out *protocol.Out[Message]) {
	r, t := p.requests[j], &p.token
	if p.serves(r.groups) {
		t.Fulfilled[j] = r.number
		t.Issued++
		out.Send(j, Message{Kind: Pass, Token: p.secondary(out)})
		return
	}
	for _, e := range t.Queue {
		if e.Process == j {
			return
		}
	}
	t.Queue = append(t.Queue, Entry{Process: j, Number: r.number, Groups: r.groups})
}

// onToken is A3. Requests that came while the primary token was elsewhere are found here.
func (p *LiteralProcess) onToken(t *Token, out *protocol.Out[Message]) {
	p.expects(t)
	p.take(t)
	for k := 1; t.Primary && k < p.n; k++ {
		if j := (p.id + protocol.ID(k)) % protocol.ID(p.n); p.pending(j) {
			p.serve(j, out)
		}
	}
	p.enterIfSafe(out)
}

// exit is A4: a token stays unless a request is known that conflicts. The queue of the primary
// one holds no others.
func (p *LiteralProcess) exit(out *protocol.Out[Message]) {
	p.inCS = false
	out.Rem()
	if p.token.Primary {
		if len(p.token.Queue) > 0 {
			p.newSession(out)
		}
		return
	}
	for j, r := range p.requests {
		if p.pending(protocol.ID(j)) && !p.serves(r.groups) {
			p.release(out)
			return
		}
	}
}

// release gives a secondary token back: A2 and A4.
func (p *LiteralProcess) release(out *protocol.Out[Message]) {
	s := p.token.Session
	p.drop()
	out.Broadcast(Message{Kind: Release, Number: s})
	p.onRelease(s, out)
}

// onRelease is A5, also for the own copy.
func (p *LiteralProcess) onRelease(s uint64, out *protocol.Out[Message]) {
	switch {
	case s > p.session:
		p.session, p.releases = s, 1
	case s == p.session:
		p.releases++
	}
	if p.held && !p.token.Safe {
		p.enterIfSafe(out)
	}
}

// newSession is A6: the requests of the type of largest priority get the tokens of the next
// session, the first of them the primary one. All others grow older by a session.
func (p *LiteralProcess) newSession(out *protocol.Out[Message]) {
	old := p.token
	selected := old.Queue[selectType(old.Queue)]
	next := Token{Group: protocol.Group(selected.Groups), Session: old.Session + 1, Old: old.Issued, Fulfilled: out.Words(p.n), Fence: old.Fence + 1}
	var batch, rest []Entry
	for _, e := range old.Queue {
		if e.sameType(selected) {
			batch = append(batch, e)
			old.Fulfilled[e.Process] = e.Number // not request_i: that REQUEST may not have come yet
		} else {
			e.Age++
			rest = append(rest, e)
		}
	}
	copy(next.Fulfilled, old.Fulfilled)
	p.drop()
	var own *Token
	for i, e := range batch {
		t := next
		if i == 0 {
			t.Primary, t.Issued, t.Queue = true, uint64(len(batch)-1), rest
		}
		if e.Process == p.id {
			own = &t
		} else {
			out.Send(e.Process, Message{Kind: Pass, Token: &t})
		}
	}
	if own != nil {
		p.onToken(own, out)
	}
}

// selectType returns the first request of the type with the largest priority, which is the
// number of its requests plus the sum of their ages.
func selectType(queue []Entry) (first int) {
	most := uint64(0)
	for i, e := range queue {
		priority := uint64(0)
		for _, f := range queue {
			if f.sameType(e) {
				priority += 1 + f.Age
			}
		}
		if priority > most {
			first, most = i, priority
		}
	}
	return first
}

func (e Entry) sameType(f Entry) bool {
	return e.Process == f.Process || protocol.Group(e.Groups).Shares(protocol.Group(f.Groups))
}

// pending says that a request of p_j is not fulfilled, as far as the token knows.
func (p *LiteralProcess) pending(j protocol.ID) bool {
	return p.requests[j].number > p.token.Fulfilled[j]
}

// idle says that the token is not in use, nor is to be as soon as it is safe.
func (p *LiteralProcess) idle() bool { return !p.inCS && p.token.Safe }

func (p *LiteralProcess) enterIfSafe(out *protocol.Out[Message]) {
	if p.safe() {
		p.token.Safe, p.outstanding = true, false
		p.enter(out)
	}
}

func (p *LiteralProcess) enter(out *protocol.Out[Message]) {
	p.inCS = true
	out.CritIn(p.token.Group, p.fence())
}
