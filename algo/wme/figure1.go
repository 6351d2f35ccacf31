package wme

import (
	"slices"

	"github.com/poundlock/poundlock/protocol"
)

// This file is Figure 1 of the paper, where nobody is suspected, and Figure 4, which is what WME-2 has in place of its last two
// clauses. Names are the paper's, and lines are counted from the first one of a figure, without blank ones. Beside what is printed there are
// corrections, and in room.go and healing.go what becomes of messages that were lost and of processes that come back.

// A state is where the user of a process is. TOKEN_HELD is no state of its own, since it follows from the owner: see tokenHeld.
type state uint8

const (
	idle       state = iota // IDLE, or TOKEN_HELD
	requesting              // REQUESTING
	csIdle                  // CS_IDLE
	csIssuing               // CS_ISSUING
	lost                    // ejected, and has not called exit yet
)

// Process is one participant: the stub of a user and of a copy of the object.
type Process struct {
	id          protocol.ID
	n           int
	acks        int // toAll or toOwner
	corrections corrections

	// The options.
	carry, keep, room int // room in bytes
	stability, heal   bool

	// Figure 1, lines 1 to 10.
	curOwner     protocol.ID // of the token
	state        state
	reqID        uint64   // the last request of the user
	granted      []uint64 // by process: the largest request that was granted
	curSN        uint64   // the number of the last record
	reqs         []Claim
	opHist       []Record // operations; some may be missing where a former epoch ended
	lastIssuedOp string   // while it is open
	curEp        uint64
	block        bool // the epoch ends: see figure2.go

	operation uint64       // the last one of the user, and what it is while it is open
	top       uint64       // the last operation that is logged
	committed uint64       // the last operation that is: top, or the one before
	executed  uint64       // the last operation that is, like all before it
	last      []uint64     // by process: its last operation that was executed
	logged    protocol.Set // who has logged top, while it is not committed
	votes     []Message    // S of Figure 2, by process, those of this epoch; Bulk nil: none
	proposed  bool
	suspected protocol.Set

	// room.go
	early  []early  // messages of later epochs and of later records
	missed uint64   // of this epoch something was dropped whose time comes with this record; 0: nothing
	done   []uint64 // by process: what executed is there, as far as is known
	stable uint64   // the least of them

	// healing.go
	late     bool         // a later epoch has begun elsewhere: what was sent in it may be lost
	lives    []uint64     // by process: the life that takes part in this epoch
	life     uint64       // of this process, from 1 on
	wishes   []uint64     // by process: the life that asked to take part
	asked    protocol.Set // whom this process has asked for the state
	fetchers protocol.Set // who waits for it
}

// Step implements protocol.Process.
func (p *Process) Step(ev protocol.Event[Message], out *protocol.Out[Message]) {
	switch ev.Kind {
	case protocol.Start:
		if p.life = max(1, ev.Arg); !p.joined() {
			p.sync(out)
		}
	case protocol.Try:
		p.try(out)
	case protocol.Issue:
		p.issue(ev.Data, out)
	case protocol.Exit, protocol.Cancel:
		p.exit(out)
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

// broadcast sends a message of this epoch to all, this process included, which takes it at once: E21.
func (p *Process) broadcast(m Message, out *protocol.Out[Message]) {
	m.Epoch = p.curEp
	out.Broadcast(m)
	p.use(p.id, m, out)
}

func (p *Process) receive(from protocol.ID, m Message, out *protocol.Out[Message]) {
	switch {
	case m.Kind >= Sync:
		p.onHealing(from, m, out)
	case m.Epoch < p.curEp || p.block && m.Epoch == p.curEp && m.Kind != NewEp:
		// the epoch is over, or as good as over
	case p.joined() && !p.isEarly(m):
		p.use(from, m, out)
	case !p.joined(), p.corrects(e17) && m.Epoch == p.curEp, p.corrects(e17b) && m.Epoch > p.curEp:
		p.store(early{from, m})
	}
}

// use takes a message of this epoch at its time.
func (p *Process) use(from protocol.ID, m Message, out *protocol.Out[Message]) {
	switch m.Kind {
	case Request:
		p.learn(from, m.Done)
		p.onRequest(Claim{from, m.ID}, out)
	case Grant:
		if m.Number > p.curSN {
			p.onGrant(m, out)
		}
	case Invoke:
		if m.Number > p.curSN {
			p.onInvoke(m, out)
		}
	case Ack:
		p.learn(from, m.Done)
		p.onAck(from, m.Number, out)
	case DoInvoke:
		p.onDoInvoke(m, out)
	case NewEp:
		p.onVote(from, m, out)
	}
}

// owns: the token is here, and may be used.
func (p *Process) owns() bool { return p.joined() && !p.block && p.curOwner == p.id }

// tokenHeld is state TOKEN_HELD: the token is here, and nobody uses it.
func (p *Process) tokenHeld() bool { return p.owns() && (p.state == idle || p.state == lost) }

// current: every operation that is known to be committed is executed.
func (p *Process) current() bool { return p.executed == p.committed }

// try is lines 11-16. A process that holds the token enters at the end of this step.
func (p *Process) try(out *protocol.Out[Message]) {
	p.state = requesting
	if p.owns() {
		return
	}
	p.reqID++
	if p.joined() && !p.block {
		p.ask(out)
	}
}

// ask makes the user's request known.
func (p *Process) ask(out *protocol.Out[Message]) {
	p.broadcast(Message{Kind: Request, ID: p.reqID, Done: p.executed}, out)
}

// enter is lines 13 and 31, at the end of a step: it lets the user in, where it waits and the token is here; not before the copy of the
// object is what the owners before have made of it.
func (p *Process) enter(out *protocol.Out[Message]) {
	if p.state == requesting && p.owns() && p.current() {
		p.state = csIdle
		out.Crit(0)
	}
}

// onRequest is lines 17-24.
func (p *Process) onRequest(c Claim, out *protocol.Out[Message]) {
	if c.ID <= p.granted[c.Who] || slices.ContainsFunc(p.reqs, func(q Claim) bool { return q.Who == c.Who && q.ID >= c.ID }) {
		return
	}
	if p.tokenHeld() {
		p.grant(c, out)
		return
	}
	p.forget(c)
	p.reqs = append(p.reqs, c)
}

// forget removes the requests of a process up to one of them.
func (p *Process) forget(c Claim) {
	p.reqs = slices.DeleteFunc(p.reqs, func(q Claim) bool { return q.Who == c.Who && q.ID <= c.ID })
}

// serve is lines 27-28: a request was granted, and those of its process before it.
func (p *Process) serve(c Claim) {
	p.granted[c.Who] = max(p.granted[c.Who], c.ID)
	p.forget(c)
}

// grant is lines 21-22 and 36-37.
func (p *Process) grant(c Claim, out *protocol.Out[Message]) {
	p.broadcast(Message{Kind: Grant, Number: p.curSN + 1, Who: c.Who, ID: c.ID, Done: p.stable}, out)
}

// onGrant is lines 25-31.
func (p *Process) onGrant(m Message, out *protocol.Out[Message]) {
	p.next(m, out)
	p.serve(Claim{m.Who, m.ID})
	p.own(m.Who, out)
}

// own is lines 29-31: the token goes to a process, by a grant.
func (p *Process) own(id protocol.ID, out *protocol.Out[Message]) {
	p.curOwner = id
	switch {
	case id != p.id:
		if p.ownerSuspected() {
			p.end(p.id, out)
		}
	case p.state == requesting && p.reqID == p.granted[p.id]: // it enters
	case p.corrects(e9): // the user got in by an earlier grant, which an end of the epoch forgot, or gave up
		p.release(out)
	default: // as printed it enters, whatever the user does
		p.state = requesting
	}
}

// exit is lines 32-39. It ends the section at once, also while the epoch ends: what the token is to do then is
// done when the next one begins. Or it ends the try, and a grant that comes later passes on.
func (p *Process) exit(out *protocol.Out[Message]) {
	if p.block && !p.corrects(e12) {
		p.lastIssuedOp = waitingExit
		return
	}
	p.state = idle
	out.Rem()
	if p.owns() {
		p.release(out)
	}
}

// waitingExit is what stands for an exit that waits for the end of the epoch, as printed.
const waitingExit = "exit"

// release gives the token, which is not needed here, to the first that waits.
func (p *Process) release(out *protocol.Out[Message]) {
	if len(p.reqs) > 0 {
		p.grant(p.reqs[0], out)
	}
}

// issue is lines 40-42.
func (p *Process) issue(op string, out *protocol.Out[Message]) {
	p.state, p.lastIssuedOp = csIssuing, op
	p.operation++
	if !p.block {
		p.invoke(out)
	}
}

// invoke makes the user's operation the next record.
func (p *Process) invoke(out *protocol.Out[Message]) {
	p.broadcast(Message{Kind: Invoke, Number: p.curSN + 1, Who: p.id, ID: p.operation, Op: p.lastIssuedOp, Done: p.stable}, out)
}

// onInvoke is lines 43-46.
func (p *Process) onInvoke(m Message, out *protocol.Out[Message]) {
	p.next(m, out)
	p.opHist = append(p.opHist, Record{Number: m.Number, Before: p.top, Who: m.Who, ID: m.ID, Op: m.Op})
	p.top = m.Number
	p.acknowledge(m.Who, out)
}

// next is lines 27 and 45: it counts a record. Since its owner made it, the operations before it are committed.
func (p *Process) next(m Message, out *protocol.Out[Message]) {
	p.drop(m.Done)
	if p.corrects(e14) {
		p.commit(p.top, out)
	}
	p.curSN = m.Number
	p.logged.Clear()
}

// acknowledge is line 47, and line 5 of Figure 4: it tells that the last operation is logged here.
func (p *Process) acknowledge(owner protocol.ID, out *protocol.Out[Message]) {
	m := Message{Kind: Ack, Epoch: p.curEp, Number: p.top, Done: p.executed}
	switch {
	case p.acks == toAll:
		p.broadcast(m, out)
	case owner == p.id:
		p.onAck(p.id, p.top, out)
	default:
		out.Send(owner, m)
	}
}

// onAck is lines 48-50, and lines 6-8 of Figure 4.
func (p *Process) onAck(from protocol.ID, sn uint64, out *protocol.Out[Message]) {
	if sn != p.top || p.committed == p.top || sn != p.curSN && !p.corrects(e6) {
		return
	}
	p.logged.Add(from)
	if 2*p.logged.Len() <= p.n {
		return
	}
	if p.acks == toOwner {
		p.broadcast(Message{Kind: DoInvoke, Number: sn, Done: p.stable}, out)
		return
	}
	p.commit(sn, out)
}

// onDoInvoke is lines 9-11 of Figure 4. The owner has sent it, if it is about the last record.
func (p *Process) onDoInvoke(m Message, out *protocol.Out[Message]) {
	p.drop(m.Done)
	if m.Number == p.curSN || p.corrects(e6) {
		p.commit(m.Number, out)
	}
}

// commit executes what is logged of the operations up to a number.
func (p *Process) commit(number uint64, out *protocol.Out[Message]) {
	if number <= p.committed {
		return
	}
	if !p.corrects(e6) { // as printed it alone is executed
		i, _ := p.find(number)
		p.executed = p.opHist[i].Before
	}
	p.committed = number
	p.logged.Clear()
	p.execute(out)
}

// execute is lines 50-54, for each operation whose time has come.
func (p *Process) execute(out *protocol.Out[Message]) {
	for first := true; p.executed < p.committed; first = false {
		i, _ := p.find(p.executed + 1)
		if i == len(p.opHist) || p.opHist[i].Before != p.executed {
			break // it is missing
		}
		r := p.opHist[i]
		p.executed = r.Number
		out.Invoke(r.Op, r.Number)
		p.last[r.Who] = r.ID
		if first || p.corrects(e11a) {
			p.outcome(r.Who, r.ID, out)
		}
	}
	p.learn(p.id, p.executed)
	p.trim()
	p.hand(out)
}

// outcome is lines 52-54: operation id of a process was executed. It may be the open one, and as printed it is.
func (p *Process) outcome(who protocol.ID, id uint64, out *protocol.Out[Message]) {
	if p.state == csIssuing && (who == p.id && id == p.operation || !p.corrects(e15)) {
		p.state, p.lastIssuedOp = csIdle, ""
		out.Outcome()
	}
}
