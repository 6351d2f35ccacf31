package wme

import (
	"cmp"
	"slices"

	"github.com/poundlock/poundlock/protocol"
)

// This file bounds what a process keeps: messages that come before their time, and operations for those that lag.

// An early message came before it can be used.
type early struct {
	from protocol.ID
	msg  Message
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
		case m.Epoch > p.curEp:
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
	for i := 0; p.joined() && i < len(p.early); {
		e := p.early[i]
		if p.isEarly(e.msg) {
			i++
			continue
		}
		p.early = slices.Delete(p.early, i, i+1)
		p.receive(e.from, e.msg, out)
		i = 0
	}
	if p.joined() && p.missed > 0 && p.missed <= p.curSN+1 && !p.full() {
		p.missed = 0
		p.sync(out)
	}
}

// isEarly: m belongs to a later epoch, or to a record that is not logged yet, or is one that has no place.
func (p *Process) isEarly(m Message) bool {
	switch {
	case m.Epoch != p.curEp:
		return m.Epoch > p.curEp
	case m.Kind == Grant:
		return m.Number > p.curSN+1
	case m.Kind == Invoke:
		return m.Number > p.curSN+1 || m.Number > p.curSN && p.full()
	case m.Kind == Ack, m.Kind == DoInvoke:
		return m.Number > p.curSN
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
	return len(p.opHist)-i >= p.keep || size(p.opHist[i:]) >= p.room
}

// find returns where the first operation from a number on is in the log, and whether it has that.
func (p *Process) find(number uint64) (i int, found bool) {
	return slices.BinarySearchFunc(p.opHist, number, func(r Record, number uint64) int { return cmp.Compare(r.Number, number) })
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
		if sum += p.opHist[i-1].size(); sum > p.room {
			k = i
		}
	}
	p.opHist = slices.Delete(p.opHist, 0, k)
}
