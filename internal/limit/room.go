package limit

import (
	"container/list"
	"sync"
)

// A Room is what many hosts share of something that there is only so much of, such as connections, or bytes of memory.
// While some is free anybody gets it, so that a single host, which may be a proxy for all clients, has it all. When it
// is full the host that has most gives up what it has had for longest, for one that has less: however much one host
// takes, another one gets in.
// Example: of 1000 places host a has 990 and b has 10. The next one for b is taken from a,
// until each has 500; the next one for a is refused.
type Room struct {
	Most int // what all guests may take
	// Yields says that a guest gets in as long as another one can be turned out, even where its own host has as much as
	// the others: for what no guest keeps for long.
	Yields bool

	mu    sync.Mutex
	taken int
	kept  int // of taken, by those that cannot be turned out
	hosts map[string]*party
}

// A party is the guests of one host that can be turned out, spare ones first, and of these the one that has been there
// for longest.
type party struct {
	taken, kept int // of all its guests
	spare, used list.List
}

func (h *party) first() *list.Element {
	if e := h.spare.Front(); e != nil {
		return e
	}
	return h.used.Front()
}

// A Guest is one user of a room, such as a connection or a call, and what it takes.
type Guest struct {
	room   *Room
	host   string
	taken  int
	spare  bool
	giveUp func(has int)
	list   *list.List // of its party; nil: it cannot be turned out
	at     *list.Element
	out    bool // it was turned out
}

// Guest is a new guest of a host, which takes nothing yet, and has to Leave in any case. giveUp is called should it be
// turned out, with what its host had: at once and not twice. It must not block, nor ask for room.
func (r *Room) Guest(host string, spare bool, giveUp func(has int)) *Guest {
	return &Guest{room: r, host: host, spare: spare, giveUp: giveUp}
}

// Take has a guest take so much in all from now on. It reports false when there is no room for that, or not for the
// guest any more, with what its host has.
func (g *Guest) Take(size int) (has int, ok bool) {
	r := g.room
	r.mu.Lock()
	defer r.mu.Unlock()
	for !g.out && r.taken+size-g.taken > r.Most {
		if has, full := r.turnOut(g, size-g.taken); full {
			return has, false
		}
	}
	if g.out {
		return 0, false
	}
	h := r.hosts[g.host]
	if h == nil {
		if r.hosts == nil {
			r.hosts = map[string]*party{}
		}
		h = &party{}
		r.hosts[g.host] = h
	}
	if g.list == nil {
		g.join(h)
	}
	r.taken += size - g.taken
	h.taken += size - g.taken
	g.taken = size
	return h.taken, true
}

// turnOut makes room for so much more of a guest. It reports that there is none, and what the host of the guest has. mu
// is held.
func (r *Room) turnOut(g *Guest, more int) (has int, full bool) {
	var most *party
	for _, h := range r.hosts {
		if h.first() != nil && (most == nil || h.taken > most.taken) {
			most = h
		}
	}
	own := r.hosts[g.host]
	if own != nil {
		has = own.taken
	}
	switch {
	case most == nil:
		return has, true
	case r.Yields || most.taken > has+more:
	case own != nil && own.spare.Len() > 0:
		most = own
	default:
		return has, true
	}
	out := most.first().Value.(*Guest)
	had := most.taken
	r.forget(out)
	out.out = true
	out.giveUp(had)
	return has, false
}

// join puts a guest into a list of its party.
func (g *Guest) join(h *party) {
	g.list = &h.used
	if g.spare {
		g.list = &h.spare
	}
	g.at = g.list.PushBack(g)
}

// SetSpare says whether a guest is turned out before others of its host.
func (g *Guest) SetSpare(spare bool) {
	g.room.mu.Lock()
	defer g.room.mu.Unlock()
	g.spare = spare
	if g.list != nil {
		g.list.Remove(g.at)
		g.join(g.room.hosts[g.host])
	}
}

// Keep has a guest that has taken something stay until it leaves. It reports false when its host would keep more than is
// left for others, or when the guest is out.
func (g *Guest) Keep() bool {
	r := g.room
	r.mu.Lock()
	defer r.mu.Unlock()
	if g.out {
		return false
	}
	h := r.hosts[g.host]
	if h.kept+g.taken > r.Most-r.kept-g.taken {
		return false
	}
	g.list.Remove(g.at)
	g.list = nil
	r.kept += g.taken
	h.kept += g.taken
	return true
}

// Leave gives back what a guest takes, and reports whether it was turned out.
func (g *Guest) Leave() (out bool) {
	g.room.mu.Lock()
	defer g.room.mu.Unlock()
	g.room.forget(g)
	return g.out
}

// forget takes a guest out of the books, if it is there. mu is held.
func (r *Room) forget(g *Guest) {
	h := r.hosts[g.host]
	if g.taken == 0 {
		return
	}
	if g.list != nil {
		g.list.Remove(g.at)
		g.list = nil
	} else {
		r.kept -= g.taken
		h.kept -= g.taken
	}
	r.taken -= g.taken
	h.taken -= g.taken
	if g.taken = 0; h.taken == 0 {
		delete(r.hosts, g.host)
	}
}

// Size is how much is taken now.
func (r *Room) Size() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.taken
}
