package api

import (
	"container/list"
	"sync"

	"connectrpc.com/connect"

	pb "github.com/poundlock/poundlock/api/poundlockv1"
)

// Places are what many clients share, such as connections, of which there are so many and
// no more. While some are free anybody gets one, so that a single host, which may be a
// proxy for all clients, has them all. When none is free the host that has the most gives
// one up for a host that has fewer: however many one host takes, another one gets in.
// Example: of 1000 places host a has 990 and b has 10. The next one for b is taken from a,
// until each has 500; the next one for a is refused.
type places struct {
	what string // many of them
	most int

	mu    sync.Mutex
	taken int
	hosts map[string]*host
}

// A host has places: spare ones are given up first, and of these the oldest.
type host struct{ spare, used list.List }

func (h *host) count() int { return h.spare.Len() + h.used.Len() }

// A place is one that is taken.
type place struct {
	of     *places
	host   string
	list   *list.List    // of the host; nil: it has been given up
	at     *list.Element // of list
	giveUp func(error)   // called with mu held
}

func newPlaces(what string, most int) *places {
	return &places{what: what, most: most, hosts: map[string]*host{}}
}

// enter takes a place. giveUp is called should it be given up, at once and not twice; it
// must not block, nor ask for places. A nil place is with an error for the client.
func (p *places) enter(from string, spare bool, giveUp func(error)) (*place, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.hosts[from]
	mine := 0
	if h != nil {
		mine = h.count()
	}
	if p.taken >= p.most {
		largest, who := p.largest()
		switch {
		case largest.count() > mine+1:
			p.takeFrom(largest, p.refusal(who, largest.count()))
		case h != nil && h.spare.Len() > 0:
			p.takeFrom(h, p.refusal(from, mine))
		default:
			return nil, p.refusal(from, mine)
		}
	}
	if h = p.hosts[from]; h == nil {
		h = &host{}
		p.hosts[from] = h
	}
	x := &place{of: p, host: from, giveUp: giveUp}
	x.join(h, spare)
	p.taken++
	return x, nil
}

func (p *places) refusal(who string, count int) *connect.Error {
	return failf(pb.Reason_REASON_LIMIT, "%s has %d %s, and %d are the limit for all: no more for an address with that many",
		who, count, p.what, p.most)
}

// largest is the host with most places. There is one.
func (p *places) largest() (most *host, who string) {
	for from, h := range p.hosts {
		if most == nil || h.count() > most.count() {
			most, who = h, from
		}
	}
	return most, who
}

// takeFrom takes a place from a host.
func (p *places) takeFrom(h *host, why error) {
	first := h.spare.Front()
	if first == nil {
		first = h.used.Front()
	}
	x := first.Value.(*place)
	x.leaveLocked()
	x.giveUp(why)
}

// join puts x into a list of its host.
func (x *place) join(h *host, spare bool) {
	x.list = &h.used
	if spare {
		x.list = &h.spare
	}
	x.at = x.list.PushBack(x)
}

// setSpare says whether x is given up before others of its host.
func (x *place) setSpare(spare bool) {
	p := x.of
	p.mu.Lock()
	defer p.mu.Unlock()
	if x.list == nil {
		return
	}
	x.list.Remove(x.at)
	x.join(p.hosts[x.host], spare)
}

// leave gives the place back. It may have been given up.
func (x *place) leave() {
	x.of.mu.Lock()
	defer x.of.mu.Unlock()
	x.leaveLocked()
}

func (x *place) leaveLocked() {
	if x.list == nil {
		return
	}
	x.list.Remove(x.at)
	x.list = nil
	x.of.taken--
	if h := x.of.hosts[x.host]; h.count() == 0 {
		delete(x.of.hosts, x.host)
	}
}
