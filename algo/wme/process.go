package wme

import (
	"cmp"
	"slices"

	"github.com/poundlock/poundlock/protocol"
)

// A phase is where the user of a process is.
type phase uint8

const (
	idle phase = iota
	requesting
	inside
	issuing // inside, with an operation open
	lost    // ejected, and has not called exit yet
)

// Process is one participant: the stub of a user and of a copy of the object.
type Process struct {
	id    protocol.ID
	n     int
	acks  int // toAll or toOwner
	carry int
	keep  int
	room  int // bytes
	// stability and heal are the options.
	stability, heal bool

	// What an epoch begins with, alike at all processes.
	epoch    uint64
	owner    protocol.ID // of the token
	granted  []uint64    // by process: the largest request that was granted
	requests []Claim
	lives    []uint64 // by process: the life that takes part in this epoch

	number    uint64       // of the last record
	top       uint64       // of the last operation
	committed uint64       // the last operation that is: top, or the one before
	executed  uint64       // the last operation that is, like all before it
	log       []Record     // operations; some may be missing where a former epoch ended
	last      []uint64     // by process: its last operation that was executed
	logged    protocol.Set // who has logged top, while it is not committed
	done      []uint64     // by process: what executed is there, as far as is known
	stable    uint64       // the least of them

	late     bool      // a later epoch has begun elsewhere: what was sent in it may be lost
	blocked  bool      // the epoch ends: see epoch.go
	votes    []Message // by process, those of this epoch; Bulk nil: none
	proposed bool

	phase     phase
	request   uint64 // the last one of the user
	operation uint64 // the last one of the user, and what it is while it is open
	op        string

	life      uint64
	joined    bool         // takes part: a later life does not until it has got the state
	wishes    []uint64     // by process: the life that asked to take part
	asked     protocol.Set // whom this process has asked for the state
	fetchers  protocol.Set // who waits for it
	suspected protocol.Set
	early     []early // messages of later epochs and of later records
	missed    uint64  // of this epoch something was dropped whose time comes with this record; 0: nothing
}

// An early message came before it can be used.
type early struct {
	from protocol.ID
	msg  Message
}

func newProcess(id protocol.ID, c protocol.Config, i protocol.Info, acks int) *Process {
	p := &Process{
		id: id, n: c.N, acks: acks,
		carry: int(i.Option(c, carry.Name)), keep: int(i.Option(c, keep.Name)), room: int(i.Option(c, room.Name)),
		stability: i.Option(c, stability.Name) == 1, heal: i.Option(c, heal.Name) == 1,
		granted: make([]uint64, c.N), lives: make([]uint64, c.N), last: make([]uint64, c.N),
		done: make([]uint64, c.N), wishes: make([]uint64, c.N), votes: make([]Message, c.N),
		logged: protocol.NewSet(c.N), asked: protocol.NewSet(c.N), fetchers: protocol.NewSet(c.N), suspected: protocol.NewSet(c.N),
		joined: true,
	}
	for j := range p.lives {
		p.lives[j] = 1
	}
	return p
}

// Step implements protocol.Process.
func (p *Process) Step(ev protocol.Event[Message], out *protocol.Out[Message]) {
	switch ev.Kind {
	case protocol.Start:
		p.life = ev.Arg
		if p.joined = p.life <= 1; !p.joined {
			p.sync(out)
		}
	case protocol.Try:
		p.try(out)
	case protocol.Issue:
		p.issue(ev.Data, out)
	case protocol.Exit, protocol.Cancel:
		p.leave(out)
	case protocol.Suspect:
		p.suspect(ev.From, out)
	case protocol.Restore:
		p.restore(ev.From, out)
	case protocol.Decide:
		p.decide(ev.Arg, ev.Msg, out)
	case protocol.Captured:
		p.captured(ev.Data, out)
	case protocol.Receive:
		p.receive(ev.From, ev.Msg, out)
	default:
		panic("wme: unexpected event")
	}
	p.useEarly(out)
	p.enter(out)
}

// maxEarly bounds the messages that wait for their time.
const maxEarly = 4096

// store keeps an early message, in an order that does not depend on when it came. Of several SYNC of a
// process it keeps the last one.
func (p *Process) store(e early) {
	if e.msg.Kind == Sync {
		p.early = slices.DeleteFunc(p.early, func(o early) bool { return o.from == e.from && o.msg.Kind == Sync })
	}
	if i, found := slices.BinarySearchFunc(p.early, e, early.compare); !found {
		p.early = slices.Insert(p.early, i, e)
		p.shed()
	}
}

// shed drops the messages whose time comes last, but no SYNC, where too many wait. They are lost then: what
// was in them is asked for when their time has come.
func (p *Process) shed() {
	size := 0
	for _, e := range p.early {
		size += e.msg.size()
	}
	for i := len(p.early) - 1; i >= 0 && p.heal && (len(p.early) > maxEarly || size > p.room); i-- {
		m := p.early[i].msg
		if m.Kind == Sync {
			continue
		}
		size -= m.size()
		p.early = slices.Delete(p.early, i, i+1)
		time := m.Number
		if m.Kind == Ack || m.Kind == DoInvoke { // it is of use once the record is here
			time++
		}
		switch {
		case m.Epoch > p.epoch:
			p.late = true
		case p.missed == 0 || time < p.missed:
			p.missed = time
		}
	}
}

func (e early) compare(o early) int {
	return cmp.Or(cmp.Compare(e.msg.Epoch, o.msg.Epoch), cmp.Compare(e.msg.Number, o.msg.Number),
		cmp.Compare(e.msg.Kind, o.msg.Kind), cmp.Compare(e.from, o.from), cmp.Compare(e.msg.ID, o.msg.ID))
}

// useEarly uses messages whose time has come.
func (p *Process) useEarly(out *protocol.Out[Message]) {
	for i := 0; p.joined && i < len(p.early); {
		e := p.early[i]
		if p.isEarly(e.msg) {
			i++
			continue
		}
		p.early = slices.Delete(p.early, i, i+1)
		p.receive(e.from, e.msg, out)
		i = 0
	}
	if p.joined && p.missed > 0 && p.missed <= p.number+1 && !p.full() {
		p.missed = 0
		p.sync(out)
	}
}

// owns: the token is here, and may be used.
func (p *Process) owns() bool { return p.joined && !p.blocked && p.owner == p.id }

// current: every operation that is known to be committed is executed.
func (p *Process) current() bool { return p.executed == p.committed }

func (p *Process) try(out *protocol.Out[Message]) {
	p.phase = requesting
	if p.owns() {
		return
	}
	p.request++
	if p.joined && !p.blocked {
		p.ask(out)
	}
}

// ask makes the user's request known.
func (p *Process) ask(out *protocol.Out[Message]) {
	out.Broadcast(Message{Kind: Request, Epoch: p.epoch, ID: p.request, Done: p.executed})
	p.onRequest(Claim{p.id, p.request}, out)
}

// enter lets the user in at the end of a step, where it waits and the token is here; not before the copy of the
// object is what the owners before have made of it.
func (p *Process) enter(out *protocol.Out[Message]) {
	if p.phase == requesting && p.owns() && p.current() {
		p.phase = inside
		out.Crit(0)
	}
}

func (p *Process) issue(op string, out *protocol.Out[Message]) {
	p.phase, p.op = issuing, op
	p.operation++
	if !p.blocked {
		p.invoke(out)
	}
}

// invoke makes the user's operation the next record.
func (p *Process) invoke(out *protocol.Out[Message]) {
	m := Message{Kind: Invoke, Epoch: p.epoch, Number: p.number + 1, Who: p.id, ID: p.operation, Op: p.op, Done: p.stable}
	out.Broadcast(m)
	p.onInvoke(m, out)
}

// leave ends the section at once, also while the epoch ends: what the token is to do then is
// done when the next one begins. Or it ends the try, and a grant that comes later passes on.
func (p *Process) leave(out *protocol.Out[Message]) {
	p.phase = idle
	out.Rem()
	if p.owns() {
		p.release(out)
	}
}

// release gives the token, which is not needed here, to the first that waits.
func (p *Process) release(out *protocol.Out[Message]) {
	if len(p.requests) > 0 {
		p.grant(p.requests[0], out)
	}
}

func (p *Process) grant(c Claim, out *protocol.Out[Message]) {
	m := Message{Kind: Grant, Epoch: p.epoch, Number: p.number + 1, Who: c.Who, ID: c.ID, Done: p.stable}
	out.Broadcast(m)
	p.onGrant(m, out)
}

// resting: the token is here, and nobody uses it.
func (p *Process) resting() bool { return p.owns() && (p.phase == idle || p.phase == lost) }

func (p *Process) receive(from protocol.ID, m Message, out *protocol.Out[Message]) {
	switch {
	case m.Kind >= Sync:
		p.onHealing(from, m, out)
	case m.Epoch < p.epoch || p.blocked && m.Epoch == p.epoch && m.Kind != NewEp:
		// the epoch is over, or as good as over
	case !p.joined, p.isEarly(m):
		p.store(early{from, m})
	default:
		p.use(from, m, out)
	}
}

// isEarly: m belongs to a later epoch, or to a record that is not logged yet, or is one that has no place.
func (p *Process) isEarly(m Message) bool {
	switch {
	case m.Epoch != p.epoch:
		return m.Epoch > p.epoch
	case m.Kind == Grant:
		return m.Number > p.number+1
	case m.Kind == Invoke:
		return m.Number > p.number+1 || m.Number > p.number && p.full()
	case m.Kind == Ack, m.Kind == DoInvoke:
		return m.Number > p.number
	}
	return false
}

// full: this process lacks an operation, and has logged as much after it as it may. What comes then
// waits, or is dropped, as if it were late or lost: it is not acknowledged, so that nobody counts on it.
func (p *Process) full() bool {
	if p.current() {
		return false
	}
	i, _ := p.find(p.executed + 1)
	return len(p.log)-i >= p.keep || size(p.log[i:]) >= p.room
}

// use takes a message of this epoch at its time.
func (p *Process) use(from protocol.ID, m Message, out *protocol.Out[Message]) {
	switch m.Kind {
	case Request:
		p.learn(from, m.Done)
		p.onRequest(Claim{from, m.ID}, out)
	case Grant:
		if m.Number > p.number {
			p.onGrant(m, out)
		}
	case Invoke:
		if m.Number > p.number {
			p.onInvoke(m, out)
		}
	case Ack:
		p.learn(from, m.Done)
		p.onAck(from, m.Number, out)
	case DoInvoke:
		p.drop(m.Done)
		p.commit(m.Number, out)
	case NewEp:
		p.onVote(from, m, out)
	}
}

func (p *Process) onRequest(c Claim, out *protocol.Out[Message]) {
	if c.ID <= p.granted[c.Who] || slices.ContainsFunc(p.requests, func(q Claim) bool { return q.Who == c.Who && q.ID >= c.ID }) {
		return
	}
	if p.resting() {
		p.grant(c, out)
		return
	}
	p.forget(c)
	p.requests = append(p.requests, c)
}

// forget removes the requests of a process up to one of them.
func (p *Process) forget(c Claim) {
	p.requests = slices.DeleteFunc(p.requests, func(q Claim) bool { return q.Who == c.Who && q.ID <= c.ID })
}

func (p *Process) onGrant(m Message, out *protocol.Out[Message]) {
	p.next(m, out)
	p.granted[m.Who] = max(p.granted[m.Who], m.ID)
	p.forget(Claim{m.Who, m.ID})
	p.own(m.Who, out)
}

// own: the token goes to a process, by a grant.
func (p *Process) own(id protocol.ID, out *protocol.Out[Message]) {
	p.owner = id
	switch {
	case id != p.id:
		if p.suspected.Has(id) {
			p.end(p.id, out)
		}
	case p.phase == requesting && p.request == p.granted[p.id]: // it enters
	default: // the user got in by an earlier grant, which an end of the epoch forgot, or gave up
		p.release(out)
	}
}

func (p *Process) onInvoke(m Message, out *protocol.Out[Message]) {
	p.next(m, out)
	p.log = append(p.log, Record{Number: m.Number, Before: p.top, Who: m.Who, ID: m.ID, Op: m.Op})
	p.top = m.Number
	p.acknowledge(m.Who, out)
}

// next counts a record. Since its owner made it, the operations before it are committed.
func (p *Process) next(m Message, out *protocol.Out[Message]) {
	p.drop(m.Done)
	p.commit(p.top, out)
	p.number = m.Number
	p.logged.Clear()
}

// acknowledge tells that the last operation is logged here.
func (p *Process) acknowledge(owner protocol.ID, out *protocol.Out[Message]) {
	m := Message{Kind: Ack, Epoch: p.epoch, Number: p.top, Done: p.executed}
	switch {
	case p.acks == toAll:
		out.Broadcast(m)
		p.onAck(p.id, p.top, out)
	case owner == p.id:
		p.onAck(p.id, p.top, out)
	default:
		out.Send(owner, m)
	}
}

func (p *Process) onAck(from protocol.ID, number uint64, out *protocol.Out[Message]) {
	if number != p.top || p.committed == p.top {
		return
	}
	p.logged.Add(from)
	if 2*p.logged.Len() <= p.n {
		return
	}
	if p.acks == toOwner {
		out.Broadcast(Message{Kind: DoInvoke, Epoch: p.epoch, Number: number, Done: p.stable})
	}
	p.commit(number, out)
}

// commit executes what is logged of the operations up to a number.
func (p *Process) commit(number uint64, out *protocol.Out[Message]) {
	if number <= p.committed {
		return
	}
	p.committed = number
	p.logged.Clear()
	p.execute(out)
}

func (p *Process) execute(out *protocol.Out[Message]) {
	for p.executed < p.committed {
		i, _ := p.find(p.executed + 1)
		if i == len(p.log) || p.log[i].Before != p.executed {
			break // it is missing
		}
		r := p.log[i]
		p.executed = r.Number
		out.Invoke(r.Op, r.Number)
		p.last[r.Who] = r.ID
		if r.Who == p.id {
			p.outcome(r.ID, out)
		}
	}
	p.learn(p.id, p.executed)
	p.trim()
	p.hand(out)
}

// outcome: operation id of this process was executed.
func (p *Process) outcome(id uint64, out *protocol.Out[Message]) {
	if p.phase == issuing && p.operation == id {
		p.phase, p.op = inside, ""
		out.Outcome()
	}
}

// find returns where the first operation from a number on is in the log, and whether it has that.
func (p *Process) find(number uint64) (i int, found bool) {
	return slices.BinarySearchFunc(p.log, number, func(r Record, number uint64) int {
		switch {
		case r.Number < number:
			return -1
		case r.Number > number:
			return 1
		}
		return 0
	})
}

// learn: a process has executed the operations up to one.
func (p *Process) learn(who protocol.ID, executed uint64) {
	if !p.stability || executed <= p.done[who] {
		return
	}
	p.done[who] = executed
	p.drop(slices.Min(p.done))
}

// drop: everybody has executed the operations up to one.
func (p *Process) drop(stable uint64) {
	if stable > p.stable {
		p.stable = stable
		p.trim()
	}
}

// trim removes operations from the log that are executed: those that everybody has executed, and
// the oldest of too many.
func (p *Process) trim() {
	end, _ := p.find(p.executed + 1)
	k, _ := p.find(min(p.stable, p.executed) + 1)
	k = max(k, end-p.keep)
	for i, sum := end, 0; i > k; i-- {
		if sum += p.log[i-1].size(); sum > p.room {
			k = i
		}
	}
	p.log = slices.Delete(p.log, 0, k)
}
