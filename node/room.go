package node

import (
	"container/list"
	"errors"
	"net"
	"sync"
)

const (
	// maxGreeting is how many connections may be in their handshake at once.
	maxGreeting = 2048
	// smallFrame is what a frame may take without a place in the room for frames.
	smallFrame = 8 << 10
)

// Why a connection is closed that takes part of what there is for all.
var (
	errCrowded = &end{"too many connections are in their handshake", CauseFull, false}
	errNoRoom  = errors.New("there is no room for more frames")
)

// A room holds what connections take of something that there is only so much of: places in the handshake queue, or bytes of frames that are unfinished or to be handled. When it is full the one that has been there for longest makes
// room, of those from the address that takes most: so a host that says nothing, or half of something,
// keeps nobody else out. Of what cannot be turned out no address keeps more than is left for the others, as with origin.
type room struct {
	most  int // what all guests may take
	mu    sync.Mutex
	taken int
	kept  int // of taken, by those that cannot be turned out
	hosts map[string]*party
}

// A party is the guests from one address.
type party struct {
	taken  int
	kept   int       // of taken, by those that cannot be turned out
	guests list.List // of *guest, the oldest first: those that can be turned out
}

// A guest is one connection, and what it takes.
type guest struct {
	nc     net.Conn
	host   string
	taken  int
	place  *list.Element // nil: it cannot be turned out
	turned bool          // out
}

// enter lets a connection in; it leaves later, in any case.
func (r *room) enter(nc net.Conn) *guest { return &guest{nc: nc, host: addressOf(nc)} }

// take has a guest take so much in all from now on. It reports false when there is no room for that, or not for the
// guest any more.
func (r *room) take(g *guest, size int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for !g.turned && r.taken+size-g.taken > r.most {
		if !r.turnOut() {
			return false
		}
	}
	if g.turned {
		return false
	}
	h := r.hosts[g.host]
	if h == nil {
		if r.hosts == nil {
			r.hosts = map[string]*party{}
		}
		h = &party{}
		r.hosts[g.host] = h
	}
	if g.place == nil {
		g.place = h.guests.PushBack(g)
	}
	r.taken += size - g.taken
	h.taken += size - g.taken
	g.taken = size
	return true
}

// turnOut closes the oldest connection of the host that takes most, of those with one that can be turned out. mu is held.
func (r *room) turnOut() bool {
	var most *party
	for _, h := range r.hosts {
		if h.guests.Len() > 0 && (most == nil || h.taken > most.taken) {
			most = h
		}
	}
	if most == nil {
		return false
	}
	g := most.guests.Front().Value.(*guest)
	r.forget(g)
	g.turned = true
	closeNow(g.nc)
	return true
}

// keep has a guest that has taken something stay until it leaves. It reports false when its host would keep more than is
// left for others, or when the guest is out.
func (r *room) keep(g *guest) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if g.turned {
		return false
	}
	h := r.hosts[g.host]
	if h.kept+g.taken > r.most-r.kept-g.taken {
		return false
	}
	h.guests.Remove(g.place)
	g.place = nil
	r.kept += g.taken
	h.kept += g.taken
	return true
}

// leave gives back what a guest takes, and reports whether it was turned out.
func (r *room) leave(g *guest) (turned bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !g.turned {
		r.forget(g)
	}
	return g.turned
}

func (r *room) forget(g *guest) {
	h := r.hosts[g.host]
	if h == nil {
		return // it has taken nothing
	}
	if g.place != nil {
		h.guests.Remove(g.place)
		g.place = nil
	} else {
		r.kept -= g.taken
		h.kept -= g.taken
	}
	r.taken -= g.taken
	h.taken -= g.taken
	g.taken = 0
	if h.taken == 0 && h.guests.Len() == 0 {
		delete(r.hosts, g.host)
	}
}

// size is how much is taken now.
func (r *room) size() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.taken
}
