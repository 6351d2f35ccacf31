package peers_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/poundlock/poundlock"
	"github.com/poundlock/poundlock/internal/faultnet"
	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/peers"
)

// farAway is how long a message takes in far.
const farAway = 20 * time.Millisecond

// far makes what passes through a connection arrive that much later, each way, as long as neither end is dead.
func far(conn net.Conn, dead func() bool) net.Conn {
	here, there := net.Pipe()
	go carry(there, conn, dead)
	go carry(conn, there, dead)
	return here
}

func carry(to, from net.Conn, dead func() bool) {
	type piece struct {
		at   time.Time
		text []byte
	}
	pieces := make(chan piece, 1000)
	go func() {
		defer close(pieces)
		b := make([]byte, 1<<16)
		for {
			n, err := from.Read(b)
			if err != nil {
				return
			}
			pieces <- piece{time.Now().Add(farAway), append([]byte(nil), b[:n]...)}
		}
	}()
	defer from.Close()
	defer to.Close()
	for p := range pieces {
		time.Sleep(time.Until(p.at))
		if dead() {
			continue
		}
		if _, err := to.Write(p.text); err != nil {
			return
		}
	}
}

// A remote system are members far from each other, in virtual time.
type remoteSystem struct {
	t      *testing.T
	memory faultnet.Memory
	boot   func() time.Duration
	config peers.Config

	mu   sync.Mutex
	dead map[*peers.Config]bool // lives
	life map[string]*peers.Config
}

func newRemoteSystem(t *testing.T, n int) *remoteSystem {
	began := time.Now()
	r := &remoteSystem{
		t: t, boot: func() time.Duration { return time.Since(began) }, config: peers.Config{Lease: termLease},
		dead: map[*peers.Config]bool{}, life: map[string]*peers.Config{},
	}
	for k := range n {
		name := fmt.Sprint("p", k+1)
		r.config.Members = append(r.config.Members, peers.Peer{Name: name, Addr: name})
	}
	return r
}

// join starts members.
func (r *remoteSystem) join(bootstrap bool, names ...string) []*peers.Member {
	r.t.Helper()
	members := make([]*peers.Member, len(names))
	var joined sync.WaitGroup
	for k, name := range names {
		c := r.config
		r.mu.Lock()
		r.life[name] = &c
		r.mu.Unlock()
		c.Name, c.Bootstrap = name, bootstrap
		var err error
		if c.Listener, err = r.memory.Listen(name); err != nil {
			r.t.Fatal(err)
		}
		c.Change(func(n *node.Config) {
			n.Boot = r.boot
			n.Dial = func(ctx context.Context, p peers.Peer) (net.Conn, error) {
				conn, err := r.memory.Dial(ctx, p.Addr)
				if err != nil {
					return nil, err
				}
				r.mu.Lock()
				other := r.life[p.Name]
				r.mu.Unlock()
				return far(conn, func() bool {
					r.mu.Lock()
					defer r.mu.Unlock()
					return r.dead[&c] || r.dead[other]
				}), nil
			}
		})
		joined.Go(func() {
			var err error
			if members[k], err = peers.Join(r.t.Context(), c); err != nil {
				r.t.Error(err)
			}
		})
	}
	joined.Wait()
	if r.t.Failed() {
		r.t.FailNow()
	}
	return members
}

// kill ends a life of a member, of which others hear only that its connections break.
func (r *remoteSystem) kill(name string, m *peers.Member) {
	r.mu.Lock()
	r.dead[r.life[name]] = true
	r.mu.Unlock()
	m.Close()
}

// close ends all, and lets what is under way arrive.
func (r *remoteSystem) close(members []*peers.Member) {
	for _, m := range members {
		m.Close()
	}
	time.Sleep(10 * farAway)
}

func sentBy(members ...*peers.Member) (n uint64) {
	for _, m := range members {
		for _, kind := range m.Stats().Node.Messages {
			n += kind.Sent
		}
	}
	return n
}

// handOver returns how long the token takes from the end of one session to the begin of the next one elsewhere, in messages one
// after the other, where all members want one for ever.
func (r *remoteSystem) handOver(members []*peers.Member, get func(ctx context.Context, k int, m *peers.Member) (*poundlock.Grant, error)) float64 {
	var mu sync.Mutex
	var left time.Time
	var took time.Duration
	last, n := -1, 0
	var users sync.WaitGroup
	for k, m := range members {
		users.Go(func() {
			for range 40 {
				g, err := get(r.t.Context(), k, m)
				if err != nil {
					r.t.Error(err)
					return
				}
				mu.Lock()
				if last >= 0 && last != k {
					took += time.Since(left)
					n++
				}
				mu.Unlock()
				time.Sleep(5 * time.Millisecond)
				mu.Lock()
				left, last = time.Now(), k
				mu.Unlock()
				if err := g.Unlock(); err != nil {
					r.t.Error(err)
				}
			}
		})
	}
	users.Wait()
	return took.Seconds() / farAway.Seconds() / float64(max(n, 1))
}

// TestHandOver: from the end of one session to the begin of the next one the token takes one message, where TokenGME has it, and two
// by way of a coordinator; who has the token, and whom nobody else asks for it, locks without any message.
func TestHandOver(t *testing.T) {
	mutex := func(ctx context.Context, _ int, m *peers.Member) (*poundlock.Grant, error) {
		return m.Mutex("m").Lock(ctx)
	}
	group := func(ctx context.Context, k int, m *peers.Member) (*poundlock.Grant, error) {
		return m.Groups("room").Lock(ctx, fmt.Sprint("session-", k))
	}
	for _, x := range []struct {
		algorithm   string
		get         func(context.Context, int, *peers.Member) (*poundlock.Grant, error)
		least, most float64
	}{{"", group, 1, 1.2}, {"", mutex, 1, 1.2}, {"centralised", mutex, 1.4, 2}} {
		synctest.Test(t, func(t *testing.T) {
			r := newRemoteSystem(t, 5)
			r.config.Algorithm = x.algorithm
			members := r.join(true, node.Names(r.config.Members)...)
			d := r.handOver(members, x.get)
			t.Logf("hand-over with %q: %.3f T", x.algorithm, d)
			if d < x.least || d > x.most {
				t.Errorf("hand-over with %q: %.3f T, want %g to %g", x.algorithm, d, x.least, x.most)
			}
			if x.algorithm == "" {
				own := members[2].Mutex("own")
				for k := range 11 {
					before := sentBy(members...)
					lock(t, own)
					if sent := sentBy(members...) - before; k > 0 && sent != 0 {
						t.Errorf("the token is here, and locking sent %d messages", sent)
					}
				}
			}
			r.close(members)
		})
	}
}

func lock(t *testing.T, m *poundlock.Mutex) {
	t.Helper()
	g, err := m.Lock(t.Context())
	if err == nil {
		err = g.Unlock()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestReadersWithACrash: there are only readers, one member of which dies inside, and comes back: nobody waits for longer than two leases.
func TestReadersWithACrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRemoteSystem(t, 5)
		names := node.Names(r.config.Members)
		members := r.join(true, names...)
		ctx, end := context.WithCancel(t.Context())
		var mu sync.Mutex
		var longest time.Duration
		reads := map[string]int{}
		var users sync.WaitGroup
		read := func(name string, m *peers.Member) {
			users.Go(func() {
				for ctx.Err() == nil {
					began := time.Now()
					g, err := m.RWMutex("page").RLock(ctx)
					mu.Lock()
					longest = max(longest, time.Since(began))
					reads[name]++
					mu.Unlock()
					if errors.Is(err, poundlock.ErrClosed) {
						return
					}
					if err != nil {
						continue
					}
					time.Sleep(50 * time.Millisecond)
					_ = g.Unlock() // lost, where its member has died
				}
			})
		}
		for k, m := range members {
			read(names[k], m)
		}
		for k := range members {
			time.Sleep(5 * termLease)
			r.kill(names[k], members[k])
			time.Sleep(time.Duration(k) * termLease / 2)
			members[k] = r.join(false, names[k])[0]
			read(names[k]+" again", members[k])
		}
		time.Sleep(5 * termLease)
		end()
		users.Wait()
		r.close(members)
		t.Logf("longest wait %.2f leases; reads %v", float64(longest)/float64(termLease), reads)
		if longest > 2*termLease {
			t.Errorf("a reader waited %v, with leases of %v", longest, termLease)
		}
		for _, name := range names {
			if reads[name+" again"] < 20 {
				t.Errorf("%d reads at %s after it came back", reads[name+" again"], name)
			}
		}
	})
}
