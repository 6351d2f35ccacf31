package tokengme

import "github.com/poundlock/poundlock/protocol"

// The values of the option selection: whose session is next.
const (
	// Priority takes the group whose requests have the largest sum of 1 + age.
	Priority = iota
	// FirstCome takes the group of the first request.
	FirstCome
	// Largest takes the group of most requests, unless the first request has waited for n
	// sessions: then that of the first one.
	Largest
)

// A tally is what speaks for a group.
type tally struct {
	group    protocol.Group
	requests uint64
	priority uint64
}

// choose selects the group of the next session. What speaks for two groups alike is
// decided by whose first request was queued first.
func (p *Process) choose() protocol.Group {
	p.weigh()
	first := &p.token.Queue[0]
	some := p.tally
	if p.selection == FirstCome || p.selection == Largest && first.Age >= uint64(p.n) {
		some = some[:first.Groups.Len()]
	}
	best := some[0]
	for _, t := range some[1:] {
		if p.selection == Priority && t.priority > best.priority || p.selection != Priority && t.requests > best.requests {
			best = t
		}
	}
	return best.group
}

// weigh makes p.tally that of the queue. Of the requests of an exclusive group only the
// first one speaks for it, because it would be served alone.
func (p *Process) weigh() {
	p.tally = p.tally[:0]
	for i := range p.token.Queue {
		e := &p.token.Queue[i]
		for g := range e.Groups.All() {
			p.add(g, 1+e.Age)
		}
	}
}

func (p *Process) add(g protocol.Group, weight uint64) {
	for i := range p.tally {
		if t := &p.tally[i]; t.group == g {
			if !g.Exclusive() {
				t.requests++
				t.priority += weight
			}
			return
		}
	}
	p.tally = append(p.tally, tally{g, 1, weight})
}

// Longest is how many sessions may begin between the queuing of a request and the one
// that serves it, where n processes share a lock.
func Longest(selection int64, n int) uint64 {
	switch {
	case n < 2:
		return 0
	case selection == FirstCome:
		return uint64(n - 1)
	case selection == Largest:
		return uint64(2*n - 1)
	}
	return uint64(4*n - 5)
}
