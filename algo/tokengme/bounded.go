package tokengme

import "github.com/poundlock/poundlock/protocol"

// resets is what a process knows of the resets of numbers, all of it zero where numbers
// are not bounded.
type resets struct {
	acks   int      // AckRSN that its own reset still waits for
	heard  []uint64 // by process: REQUESTs since the last reset of its numbers
	wanted []bool   // by process: it wants its numbers reset

	back    uint64 // RELEASEs since sessions were reset last
	asked   bool   // the holder of the primary token wants that,
	holder  protocol.ID
	total   uint64 // once so many have come
	missing int    // of that holder: who has not reset its session yet
}

// Of a bounded number, half says to which of two halves it belongs. In a reset a process
// goes from one to the other, to the number that nobody's request has.
func (p *Process) half(number uint64) uint64  { return number / (p.smax + 1) }
func (p *Process) place(number uint64) uint64 { return number % (p.smax + 1) }

// newer says that a request is later than the one fulfilled last. Where the halves differ
// it is this process that has seen a reset which the token has not.
func (p *Process) newer(number, fulfilled uint64) bool {
	if p.smax == 0 || p.half(number) == p.half(fulfilled) {
		return number > fulfilled
	}
	return p.place(number) > 0
}

// resetRequests begins a reset of the numbers of requests when the last one of them has
// been granted: there is none until everybody has forgotten them.
func (p *Process) resetRequests(out *protocol.Out[Message]) {
	if p.smax == 0 || p.place(p.requests[p.id].number) < p.smax {
		return
	}
	p.forget(p.id)
	p.acks = p.n - 1
	out.Broadcast(Message{Kind: ResetRSN})
}

// forget goes to the other half for the numbers of j.
func (p *Process) forget(j protocol.ID) {
	p.requests[j] = request{number: (1 - p.half(p.requests[j].number)) * (p.smax + 1)}
	p.heard[j], p.wanted[j] = 0, false
}

// count counts a REQUEST of j.
func (p *Process) count(j protocol.ID, out *protocol.Out[Message]) {
	if p.smax > 0 {
		p.heard[j]++
		p.complete(j, out)
	}
}

// complete resets the numbers of j if it wants that and all its REQUESTs have come.
func (p *Process) complete(j protocol.ID, out *protocol.Out[Message]) {
	if p.wanted[j] && p.heard[j] == p.smax {
		p.forget(j)
		out.Send(j, Message{Kind: AckRSN})
	}
}

func (p *Process) onReset(from protocol.ID, m Message, out *protocol.Out[Message]) {
	switch {
	case p.smax == 0:
	case m.Kind == ResetRSN:
		p.wanted[from] = true
		p.complete(from, out)
		return
	case m.Kind == AckRSN && p.acks > 0:
		p.acks--
		p.request(out)
		return
	case m.Kind == ResetSSN && !p.asked:
		p.asked, p.holder, p.total = true, from, m.Number
		p.resetSession(out)
		return
	case m.Kind == AckSSN && p.missing > 0:
		p.sessionReset(out)
		return
	}
	panic("tokengme: an unexpected message")
}

// closed says that the session gives no more tokens to j: it had one, or is to be the last
// one before a reset.
func (p *Process) closed(j protocol.ID) bool {
	return p.smax > 0 && (p.missing > 0 || p.token.Served[j])
}

// record notes that j has been given a secondary token.
func (p *Process) record(j protocol.ID) {
	if p.smax > 0 {
		p.token.Total++
		p.token.Served[j] = true
	}
}

// recordBatch does so of a whole batch, in the primary token of its session.
func (p *Process) recordBatch(t *Token) {
	if p.smax == 0 {
		return
	}
	t.Total = p.token.Total + t.Issued
	t.Served = make([]bool, p.n)
	for _, e := range p.batch {
		t.Served[e.Process] = true
	}
}

// resetting says that a reset comes first, which begins the next session at its end.
func (p *Process) resetting(out *protocol.Out[Message]) bool {
	if p.smax == 0 || p.token.Session < p.smax || p.missing > 0 {
		return p.missing > 0
	}
	p.missing = p.n
	out.Broadcast(Message{Kind: ResetSSN, Number: p.token.Total})
	p.asked, p.holder, p.total = true, p.id, p.token.Total
	p.resetSession(out)
	return true
}

// returns counts a RELEASE.
func (p *Process) returns(out *protocol.Out[Message]) {
	if p.smax > 0 {
		p.back++
		p.resetSession(out)
	}
}

// resetSession forgets the sessions when all RELEASEs of them have come.
func (p *Process) resetSession(out *protocol.Out[Message]) {
	if !p.asked || p.back != p.total {
		return
	}
	holder := p.holder
	p.session, p.releases = 0, 0
	p.back, p.asked, p.holder, p.total = 0, false, 0, 0
	if holder == p.id {
		p.sessionReset(out)
	} else {
		out.Send(holder, Message{Kind: AckSSN})
	}
}

// sessionReset is at the holder: one more process has forgotten the sessions. When all
// have, the next session is the first one.
func (p *Process) sessionReset(out *protocol.Out[Message]) {
	if p.missing--; p.missing > 0 {
		return
	}
	p.token.Session, p.token.Issued, p.token.Total = 0, 0, 0
	p.newSession(out)
}
