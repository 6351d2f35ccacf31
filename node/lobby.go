package node

import (
	"errors"
	"net"
	"slices"
	"sync"
)

// maxGreeting is how many connections may be in their handshake at once.
const maxGreeting = 2048

// errCrowded is why a connection is closed before it has said what it wants.
var errCrowded = errors.New("node: too many connections are in their handshake")

// A lobby holds the connections that are in their handshake. When it is full, one that
// has been there for long makes room for who comes: of those from the address that has
// most of them, so that one host that connects and says nothing keeps nobody else out.
type lobby struct {
	mu     sync.Mutex
	guests []*guest // the oldest first
	hosts  map[string]int
}

// A guest is one connection in its handshake.
type guest struct {
	nc      net.Conn
	host    string
	evicted bool // under lobby.mu
}

// enter lets a connection in.
func (l *lobby) enter(nc net.Conn) *guest {
	g := &guest{nc: nc, host: hostOf(nc)}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hosts == nil {
		l.hosts = map[string]int{}
	}
	if len(l.guests) >= maxGreeting {
		l.evict()
	}
	l.guests = append(l.guests, g)
	l.hosts[g.host]++
	return g
}

// evict closes the oldest connection of the host that has most. mu is held.
func (l *lobby) evict() {
	most := l.guests[0]
	for _, g := range l.guests {
		if l.hosts[g.host] > l.hosts[most.host] {
			most = g
		}
	}
	l.forget(most)
	most.evicted = true
	closeNow(most.nc)
}

// leave ends the handshake of g, and reports whether it was evicted.
func (l *lobby) leave(g *guest) (evicted bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !g.evicted {
		l.forget(g)
	}
	return g.evicted
}

func (l *lobby) forget(g *guest) {
	k := slices.Index(l.guests, g)
	l.guests = slices.Delete(l.guests, k, k+1)
	if l.hosts[g.host]--; l.hosts[g.host] == 0 {
		delete(l.hosts, g.host)
	}
}

// hostOf is the address of the other end without its port. All that come through a
// unix socket are one host.
func hostOf(nc net.Conn) string {
	addr := nc.RemoteAddr()
	if addr == nil {
		return ""
	}
	if host, _, err := net.SplitHostPort(addr.String()); err == nil {
		return host
	}
	return ""
}
