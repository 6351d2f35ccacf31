package node_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/poundlock/poundlock/algo/sigma"
	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/transport"
)

// Locks that a client has left do not count against its limit, although servers
// remember their tokens for a while: a busy client keeps what it holds.
func TestReleasedLocksDoNotCount(t *testing.T) {
	host := node.HostOf(sigma.Algorithm)
	fenced := func(c *node.Config) {
		c.MaxLocks = 64
		c.System = protocol.Config{N: 4, Options: map[string]int64{"fence": 1, "eps": 1e6}}
	}
	servers, peers := clusterAt(t, 4, false, host, fenced)
	c := clients(t, 1, peers, host, fenced)[0]
	before := sessionNumbers(c)
	long := newProbe()
	must(t, c.Try(node.Mutex, "long", long, false))
	<-long.crit
	var users sync.WaitGroup
	for k := range 8 {
		users.Go(func() {
			u := newProbe()
			for j := range 50 {
				name := fmt.Sprintf("job-%d-%d", k, j)
				if err := c.Try(node.Mutex, name, u, false); err != nil {
					t.Error(err)
					return
				}
				<-u.crit
				c.Exit(name)
				<-u.rem
			}
		})
	}
	users.Wait()
	if after := sessionNumbers(c); !slices.Equal(before, after) || len(long.ejected) > 0 {
		t.Errorf("sessions %v became %v, with 9 locks at a time", before, after)
	}
	for k, s := range servers {
		eventually(t, fmt.Sprintf("the client has one lock at s%d", k+1), func() bool { return s.Stats().Pairs == 1 })
	}
}

// Who wants more locks than a client may have is refused those, by name, and keeps the
// others; what it leaves makes room for new ones.
func TestTooManyLocks(t *testing.T) {
	const most, wanted = 64, 200
	servers, peers := clusterAt(t, 1, false, node.HostOf(keeper(nil)), func(c *node.Config) { c.MaxLocks = most })
	s := visit(t, peers[0].Addr)
	s.say(greeting.Append)
	s.until(transport.WelcomeItem)
	refused := map[string]bool{}
	for k := range uint64(wanted) {
		s.say(message(k+1, 1, fmt.Sprint(k), enter))
		for answered := false; !answered; { // a frame may have acknowledgements only
			items, err := s.hear()
			must(t, err)
			for _, i := range items {
				answered = answered || i.Type == transport.MessageItem || i.Type == transport.RefuseNameItem
				if i.Type == transport.RefuseNameItem {
					refused[string(i.Name)] = true
					if why := "a client may hold or want 64 locks at once, and this one does"; string(i.Body) != why {
						t.Errorf("refused with %q, want %q", i.Body, why)
					}
				}
			}
		}
	}
	held := len(servers[0].Locks())
	if held != most || held+len(refused) != wanted {
		t.Errorf("%d locks are held and %d refused of %d, with a limit of %d", held, len(refused), wanted, most)
	}
}

// A member that is full refuses new names, by name, to whoever asks. What it has goes
// on, and an end makes room.
func TestFullServer(t *testing.T) {
	const most = 10
	host := node.HostOf(keeper(nil))
	_, peers := clusterAt(t, 1, false, host, func(c *node.Config) { c.MaxInstances = most })
	c := clients(t, 1, peers, host, nil)[0]
	var held []*probe
	for k := range most {
		u := newProbe()
		must(t, c.Try(node.Mutex, fmt.Sprint(k), u, false))
		<-u.crit
		held = append(held, u)
	}
	u := newProbe()
	must(t, c.Try(node.Mutex, "more", u, false))
	if why := <-u.rem; why != "s1: the server is full: its limit on locks is 10" {
		t.Errorf("refused with %q", why)
	}
	c.Exit("0")
	<-held[0].rem
	eventually(t, "there is room again", func() bool {
		must(t, c.Try(node.Mutex, "more", u, false))
		select {
		case <-u.crit:
			return true
		case <-u.rem:
			return false
		}
	})
	for _, u := range held[1:] {
		if len(u.ejected) > 0 || len(u.rem) > 0 {
			t.Error("a lock that was held is not any more")
		}
	}
}

// What one large frame needs is given back while its connection is idle.
func TestLargeFramesAreForgotten(t *testing.T) {
	_, peers := clusterAt(t, 1, false, node.HostOf(keeper(nil)), nil)
	name := strings.Repeat("a", 100)
	large := frame(func(b []byte) []byte {
		for seq := uint64(1); len(b) < transport.MaxClientFrame-2*len(name); seq++ {
			b = message(seq, 1, name, leave)(b)
		}
		return b
	})
	const strangers, most = 4, transport.MaxClientFrame / 2
	all := make([]*stranger, strangers)
	before := heap()
	for k := range all {
		all[k] = visit(t, peers[0].Addr)
		h := another(greeting, k)
		all[k].say(h.Append)
		all[k].until(transport.WelcomeItem)
		_, err := all[k].conn.Write(large)
		must(t, err)
	}
	eventually(t, fmt.Sprintf("live connections keep less than %d bytes each", most), func() bool {
		for _, s := range all {
			s.say(transport.Item{Type: transport.PingItem, Seq: 1}.Append)
			s.until(transport.PongItem)
		}
		return heap() < before+strangers*most
	})
}

// heap is how many bytes are reachable.
func heap() uint64 {
	runtime.GC()
	runtime.GC() // what pools keep goes in the second
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
