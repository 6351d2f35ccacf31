package tokengme

import (
	"slices"

	"github.com/poundlock/poundlock/protocol"
)

// A Process is one member: the actions of the paper as literal.go has them, with what the other
// forms need. What its users do is in users.go, and what keeps numbers bounded in bounded.go.
// What a request wants is forgotten once it is granted. Instead of the session of a RELEASE a
// process may know a later one that is as good.
type Process struct {
	member
	selection int64
	strict    bool
	local     bool   // its users are clients, and not the process itself
	smax      uint64 // the largest number before a reset, 0: none

	users
	resets
	scratch
}

// scratch is memory that is no state.
type scratch struct {
	queued    []bool // by process: it has an entry in the queue
	contested bool   // what opposed says, where a secondary token is held
	tally     []tally
	batch     []Entry
	entries   []Entry // a block that messages share
}

// newProcess is A0.
func newProcess(id protocol.ID, c protocol.Config, o form) *Process {
	p := &Process{
		member: newMember(id, c.N), selection: o.selection(c), strict: o.strict(c), local: o.clients, smax: o.smax(c),
		scratch: scratch{queued: make([]bool, c.N)},
	}
	if p.smax > 0 {
		p.heard, p.wanted, p.token.Served = make([]uint64, c.N), make([]bool, c.N), make([]bool, c.N)
	}
	return p
}

// Step implements protocol.Process.
func (p *Process) Step(ev protocol.Event[Message], out *protocol.Out[Message]) {
	switch {
	case ev.Kind == protocol.Start:
	case ev.Kind == protocol.Receive:
		p.receive(ev.From, ev.Msg, out)
	case p.local:
		panic("tokengme: unexpected event at a member")
	case ev.Kind == protocol.Try:
		p.try(user{id: p.id, wants: protocol.Groups(ev.Data)}, out)
	case ev.Kind == protocol.Exit:
		out.Rem()
		p.leave(user{id: p.id}, out)
	default:
		panic("tokengme: unexpected event")
	}
}

func (p *Process) receive(from protocol.ID, m Message, out *protocol.Out[Message]) {
	if m.Kind == Ask || m.Kind == Leave {
		p.fromClient(from, m, out)
		return
	}
	if from >= protocol.ID(p.n) {
		panic("tokengme: a message of members from a client")
	}
	switch m.Kind {
	case Request:
		p.onRequest(from, m.Number, m.Groups, out)
	case Pass:
		p.onToken(m.Token, out)
	case Release:
		p.onRelease(m.Number, out)
	default:
		p.onReset(from, m, out)
	}
}

// request is A1 from its second line on: it asks everybody for a token for the user who
// waits longest. A process has one request at a time, and with a secondary token that is
// in use none, so that it never has two tokens.
func (p *Process) request(out *protocol.Out[Message]) {
	if p.outstanding || p.acks > 0 || len(p.waiting) == 0 || p.held && !p.token.Primary && p.busy() {
		return
	}
	p.outstanding = true
	number, groups := p.requests[p.id].number+1, p.waiting[0].wants
	out.Broadcast(Message{Kind: Request, Number: number, Groups: groups})
	p.onRequest(p.id, number, groups, out)
}

// onRequest is A2.
func (p *Process) onRequest(j protocol.ID, number uint64, groups protocol.Groups, out *protocol.Out[Message]) {
	if r := &p.requests[j]; number > r.number {
		r.number, r.groups = number, groups
		p.learn(j, out)
	}
	p.count(j, out)
}

// learn is the rest of A2: the newest request of j is a new one.
func (p *Process) learn(j protocol.ID, out *protocol.Out[Message]) {
	r := &p.requests[j]
	switch {
	case !p.held:
	case !p.pending(j):
		r.groups = ""
	case p.token.Primary:
		p.consider(j, out)
		p.tell(out)
		p.newSession(out)
	case !p.serves(r.groups):
		p.contested = true
		p.tell(out)
		if !p.busy() {
			p.release(out)
		}
	}
}

// tell tells a user who is inside that a request is known for which the session has to end.
func (p *Process) tell(out *protocol.Out[Message]) {
	if len(p.inside) > 0 && !p.local && p.conflict() {
		out.Wanted()
	}
}

// pending says that the newest request known of j is not granted yet, as far as the token
// knows that is held here.
func (p *Process) pending(j protocol.ID) bool {
	return p.newer(p.requests[j].number, p.token.Fulfilled[j])
}

// busy says that the token is in use, or is to be as soon as it is safe; or that none is
// held.
func (p *Process) busy() bool { return len(p.inside) > 0 || !p.token.Safe }

// consider grants the pending request of j, or queues it.
func (p *Process) consider(j protocol.ID, out *protocol.Out[Message]) {
	r, t := &p.requests[j], &p.token
	switch {
	case p.queued[j]:
	case j != p.id && p.serves(r.groups) && p.admits(j):
		t.Fulfilled[j], r.groups = r.number, ""
		t.Issued++
		p.record(j)
		out.Send(j, Message{Kind: Pass, Token: p.secondary(out)})
	default:
		t.Queue = append(t.Queue, Entry{Process: j, Number: r.number, Groups: r.groups})
		p.queued[j] = true
	}
}

// admits says that the session is still open to a request of j that it could serve.
func (p *Process) admits(j protocol.ID) bool {
	return !(p.strict && len(p.token.Queue) > 0) && !p.closed(j)
}

// onToken is A3. The memory of t belongs to the message.
func (p *Process) onToken(t *Token, out *protocol.Out[Message]) {
	p.expects(t)
	p.keep(t)
	for k := 1; k <= p.n; k++ {
		switch j := (p.id + protocol.ID(k)) % protocol.ID(p.n); {
		case !p.pending(j):
			p.requests[j].groups = ""
		case t.Primary:
			p.consider(j, out)
		}
	}
	p.contested = p.opposed()
	if p.safe() {
		p.open(out)
	}
}

// keep takes a token into the memory of this process.
func (p *Process) keep(t *Token) {
	served := p.token.Served
	p.take(t)
	p.token.Served = served
	copy(served, t.Served)
	for _, e := range t.Queue {
		p.queued[e.Process] = true
	}
	// What came of earlier sessions than the one before this one tells nothing any more.
	if p.session+1 < t.Session {
		p.session, p.releases = t.Session-1, 0
	}
}

// drop forgets the token.
func (p *Process) drop() {
	clear(p.queued)
	served := p.token.Served
	p.member.drop()
	p.token.Served = served
}

// idle is A4 from where nobody is inside any more, and whatever else may end the use of a
// token: whoever else may need it gets it.
func (p *Process) idle(out *protocol.Out[Message]) {
	if !p.busy() && !p.token.Primary && p.conflict() {
		p.release(out)
	}
	p.newSession(out)
	p.request(out)
}

// conflict says that a request is known for which the session has to end. The queue of
// the primary token holds all of them. For a secondary one it is enough to look at each
// request once: none that conflicts is granted before the token is given back.
func (p *Process) conflict() bool {
	if p.token.Primary {
		return len(p.token.Queue) > 0
	}
	return p.contested
}

// opposed looks for such a request, for a secondary token.
func (p *Process) opposed() bool {
	for j := range protocol.ID(p.n) {
		if p.pending(j) && !p.serves(p.requests[j].groups) {
			return true
		}
	}
	return false
}

// release gives a secondary token back.
func (p *Process) release(out *protocol.Out[Message]) {
	session := p.token.Session
	p.drop()
	out.Broadcast(Message{Kind: Release, Number: session})
	p.onRelease(session, out)
}

// onRelease is A5.
func (p *Process) onRelease(session uint64, out *protocol.Out[Message]) {
	switch {
	case session > p.session:
		p.session, p.releases = session, 1
	case session == p.session:
		p.releases++
	}
	p.returns(out)
	if p.held && !p.token.Safe && p.safe() {
		p.open(out)
	}
}

// newSession is A6: it gives the primary token, if that is idle, to who is first among
// those who want the group selected, and secondary ones to the others. Only with the
// primary token is there a queue.
func (p *Process) newSession(out *protocol.Out[Message]) {
	t := &p.token
	if p.busy() || len(t.Queue) == 0 || p.resetting(out) {
		return
	}
	group := p.choose()
	rest := p.split(group)
	for _, e := range p.batch {
		// By the entry: this process may not have heard of the request.
		t.Fulfilled[e.Process] = e.Number
		p.requests[e.Process].groups = ""
	}
	fulfilled := out.Words(p.n)
	copy(fulfilled, t.Fulfilled)
	others := Token{Group: group, Session: t.Session + 1, Old: t.Issued, Fulfilled: fulfilled, Fence: t.Fence}
	if p.fenced() {
		others.Fence++
	}
	first := others
	first.Primary, first.Issued, first.Queue = true, uint64(len(p.batch)-1), rest
	p.recordBatch(&first)
	p.drop()
	// Secondary ones are all alike.
	secondary, primary := &others, &first
	var own *Token
	for i, e := range p.batch {
		given := secondary
		if i == 0 {
			given = primary
		}
		if e.Process == p.id {
			own = given
			continue
		}
		out.Send(e.Process, Message{Kind: Pass, Token: given})
	}
	if own != nil {
		p.onToken(own, out)
	}
}

// fenced: entries have fencing tokens. Those grow without bound, and a GRANT carries none.
func (p *Process) fenced() bool { return p.smax == 0 && !p.local }

// split makes p.batch the entries that want group, only the first one where it is
// exclusive, and returns the others, older by one session, in memory of their own.
func (p *Process) split(group protocol.Group) (rest []Entry) {
	p.batch = p.batch[:0]
	rest = p.block(len(p.token.Queue))[:0]
	for _, e := range p.token.Queue {
		if e.Groups.Has(group) && (len(p.batch) == 0 || !group.Exclusive()) {
			p.batch = append(p.batch, e)
			continue
		}
		e.Age++
		rest = append(rest, e)
	}
	return slices.Clip(rest)
}

// block returns memory for n entries of a message, carved from a larger block that is
// never used again.
func (p *Process) block(n int) []Entry {
	const size = 512
	if len(p.entries) < n {
		p.entries = make([]Entry, max(n, size))
	}
	b := p.entries[:n:n]
	p.entries = p.entries[n:]
	return b
}
