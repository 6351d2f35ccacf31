package limit

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

func take(g *Guest, size int) bool {
	_, ok := g.Take(size)
	return ok
}

// What one host has kept, and nobody can turn out, leaves as much room for others, and comes back when it leaves.
func TestRoomIsNotKeptByOneHost(t *testing.T) {
	r := Room{Most: 100, Yields: true}
	guest := func(addr string) *Guest { return r.Guest(Host(addr), true, func(int) {}) }
	var kept []*Guest
	for k := range 20 {
		g := guest("10.0.0.1:1")
		if take(g, 10) && g.Keep() {
			kept = append(kept, g)
			continue
		}
		if g.Leave() {
			t.Errorf("guest %d was turned out, although there is room", k)
		}
	}
	if len(kept) != 5 || r.Size() != 50 {
		t.Errorf("one host keeps %d, %d bytes of 100", len(kept), r.Size())
	}
	for range 10 { // what is unfinished of it makes room
		take(guest("10.0.0.1:1"), 10)
	}
	honest := guest("10.0.0.2:1")
	if !take(honest, 20) || !honest.Keep() {
		t.Error("one host keeps another out")
	}
	// The host that takes most has nothing that can be turned out: one that has makes room.
	r = Room{Most: 100, Yields: true}
	most, other, next := guest("10.0.0.1:1"), guest("10.0.0.2:1"), guest("10.0.0.3:1")
	if !take(most, 50) || !most.Keep() || !take(other, 45) || !take(next, 10) || !other.out || other.Keep() {
		t.Error("there is no room, although another host has something unfinished")
	}
	for _, g := range []*Guest{most, other, next} {
		g.Leave()
	}
	if r.taken != 0 || r.kept != 0 || len(r.hosts) != 0 {
		t.Errorf("%d bytes are taken and %d kept when all have left", r.taken, r.kept)
	}
}

// A host with a whole IPv6 network, such as 2001:db8::/64, is one host in a room: it makes room for itself.
func TestRoomOfOneNetwork(t *testing.T) {
	r := Room{Most: 100, Yields: true}
	guest := func(addr string) *Guest { return r.Guest(Host(addr), true, func(int) {}) }
	honest := guest("[2001:db8:9::1]:1")
	take(honest, 20)
	for k := range 20 {
		take(guest(fmt.Sprintf("[2001:db8::%x:1]:1", k)), 10)
	}
	if honest.out || len(r.hosts) != 2 {
		t.Errorf("%d hosts, the honest one is out: %v", len(r.hosts), honest.out)
	}
}

// With any order of comings and goings there are never too many, and a host that has two
// fewer than another one is never refused.
func TestRoomAtRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	p := Room{Most: 20}
	inside := map[*Guest]bool{}
	for range 20_000 {
		host := fmt.Sprint("10.0.0.", r.IntN(r.IntN(8)+1))
		if len(inside) > 0 && r.IntN(3) == 0 {
			for x := range inside {
				x.Leave()
				delete(inside, x)
				break
			}
			continue
		}
		most, mine := 0, 0
		for _, h := range p.hosts {
			most = max(most, h.taken)
		}
		if h := p.hosts[host]; h != nil {
			mine = h.taken
		}
		x := p.Guest(host, r.IntN(2) == 0, func(int) {
			for y := range inside {
				if y.taken == 0 {
					delete(inside, y)
				}
			}
		})
		if take(x, 1) {
			inside[x] = true
		} else if most > mine+1 {
			t.Fatalf("a host with %d is refused where another one has %d", mine, most)
		}
		if p.taken > 20 || p.taken != len(inside) {
			t.Fatalf("%d are taken, and %d inside", p.taken, len(inside))
		}
	}
	for x := range inside {
		x.Leave()
	}
	if p.taken != 0 || p.kept != 0 || len(p.hosts) != 0 {
		t.Errorf("when all have left %d are taken, %d kept, and %d hosts known", p.taken, p.kept, len(p.hosts))
	}
}
