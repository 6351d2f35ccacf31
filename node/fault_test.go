package node_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/poundlock/poundlock/algo/ricartagrawala"
	"github.com/poundlock/poundlock/algo/sigma"
	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/transport"
)

// A cutter dials, and breaks what it dialed: by what was written, not by time, so that a slow machine gets as far between
// two cuts as a fast one.
type cutter struct {
	mu      sync.Mutex
	r       *rand.Rand
	conns   []*brittle
	written int // of all connections, since the last cut
	next    int // bytes to the next cut
	cuts    int
}

func (c *cutter) dial(ctx context.Context, p node.Peer) (net.Conn, error) {
	conn, err := transport.Dial(ctx, p.Name, p.Addr, nil)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	b := &brittle{Conn: conn, cutter: c}
	c.conns = append(c.conns, b)
	return b, nil
}

// wrote counts n bytes, and breaks a random connection now and then.
func (c *cutter) wrote(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.written += n; c.written > c.next && len(c.conns) > 0 {
		c.written, c.next = 0, c.r.IntN(5_000)
		c.cut(c.r.IntN(len(c.conns)))
	}
}

// cut breaks the k-th connection. c.mu is held.
func (c *cutter) cut(k int) {
	c.conns[k].Close()
	c.conns = slices.Delete(c.conns, k, k+1)
	c.cuts++
}

// brittle breaks in the middle of a frame now and then.
type brittle struct {
	net.Conn
	cutter  *cutter
	written int
}

func (b *brittle) Write(p []byte) (int, error) {
	if b.written += len(p); b.written > 5_000 {
		n, _ := b.Conn.Write(p[:len(p)/2])
		b.cutter.mu.Lock()
		defer b.cutter.mu.Unlock()
		if k := slices.Index(b.cutter.conns, b); k >= 0 {
			b.cutter.cut(k)
		}
		return n, net.ErrClosed
	}
	defer b.cutter.wrote(len(p))
	return b.Conn.Write(p)
}

// Connections that break all the time lose nothing and repeat nothing: Ricart
// and Agrawala's algorithm would hang or panic.
func TestBrokenConnections(t *testing.T) {
	t.Parallel()
	c := cutter{r: rand.New(rand.NewPCG(1, 2))}
	peers := func(cfg *node.Config) { cfg.Dial = c.dial }
	nodes := cluster(t, 3, false, node.HostOf(ricartagrawala.Algorithm), peers)
	host := node.HostOf(sigma.Algorithm)
	_, table := clusterAt(t, 4, false, host, nil)
	users := clients(t, 3, table, host, peers)
	count(t, nodes, 3, 200)
	count(t, users, 3, 100)
	c.mu.Lock() // the nodes go on, and their connections go on breaking
	defer c.mu.Unlock()
	t.Logf("%d connections broke", c.cuts)
	if c.cuts < 20 {
		t.Error("too few to prove anything")
	}
}

// Nobody goes on beside a new life of a member whose algorithm does not survive that, and the new life does nothing: all
// say who has restarted. When all have, a new system begins.
func TestRestartFailsClosed(t *testing.T) {
	host := node.HostOf(ricartagrawala.Algorithm)
	nodes, peers := clusterAt(t, 3, false, host, nil)
	waits, inside, stranger := newProbe(), newProbe(), newProbe()
	must(t, nodes[1].Try(node.Mutex, "a", inside, false))
	<-inside.crit
	must(t, nodes[2].Try(node.Mutex, "a", waits, false))
	eventually(t, "the request has arrived", func() bool { return len(nodes[0].Locks()) == 1 })

	again := func(id int) {
		t.Helper()
		nodes[id].Close()
		l, err := transport.Listen(peers[id].Addr)
		must(t, err)
		nodes[id] = start(t, node.Config{ID: protocol.ID(id), Hosts: mutexes(host), Peers: peers, Listener: l})
	}
	again(0)
	must(t, nodes[0].Try(node.Mutex, "b", stranger, false))
	<-inside.ejected
	if why := <-waits.rem; !strings.Contains(why, "s1") || !strings.Contains(why, "restarted") {
		t.Errorf("the reason %q does not name the member that restarted", why)
	}
	nodes[1].Exit("a")
	<-inside.rem
	for _, name := range []string{"a", "another one"} {
		eventually(t, "Try fails", func() bool {
			err := nodes[2].Try(node.Mutex, name, newProbe(), false)
			return errors.Is(err, node.ErrFailed) && strings.Contains(err.Error(), "s1 has restarted, and ricart-agrawala does not survive that: restart all members")
		})
	}
	eventually(t, "the new life hears why", func() bool { // they seem to be there until they have answered
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		err := nodes[0].WaitAlive(ctx, 2)
		return err != nil && strings.Contains(err.Error(), "restart all members")
	})
	<-nodes[2].Met()
	select {
	case <-nodes[0].Met():
		t.Error("the new life has met all others")
	default:
	}
	nodes[0].Cancel("b")
	if why := <-stranger.rem; why != "" {
		t.Errorf("a Try that has not begun ends with %q", why)
	}

	again(1)
	again(2)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, n := range nodes {
		must(t, n.WaitAlive(ctx, 2))
	}
	count(t, nodes, 2, 5)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A process that panics closes its lock, and nothing else.
func TestPanicFailsClosed(t *testing.T) {
	host := node.HostOf(keeper(func(e keeperEvent) {
		if e.Kind == protocol.Receive && e.Msg == leave {
			panic("boom")
		}
	}))
	nodes, peers := clusterAt(t, 1, false, host, nil)
	c := clients(t, 1, peers, host, nil)[0]
	other, u := newProbe(), newProbe()
	must(t, c.Try(node.Mutex, "a", u, false))
	<-u.crit
	c.Exit("a") // the member panics
	<-u.rem
	must(t, c.Try(node.Mutex, "b", other, false))
	<-other.crit
	eventually(t, "the member dropped the lock", func() bool { return len(nodes[0].Locks()) == 1 })
	must(t, c.Try(node.Mutex, "a", u, false))
	select {
	case <-u.crit:
		t.Error("a failed lock was created anew")
	case <-time.After(50 * time.Millisecond):
	}
	if c.Alive() != 1 {
		t.Error("the session did not survive")
	}
}

// timeless is a connection that knows no deadlines, as those of some tunnels.
type timeless struct{ net.Conn }

func (timeless) SetDeadline(time.Time) error      { return errors.ErrUnsupported }
func (timeless) SetReadDeadline(time.Time) error  { return errors.ErrUnsupported }
func (timeless) SetWriteDeadline(time.Time) error { return errors.ErrUnsupported }

// A refused process learns both values, and so does whoever waits for it.
func TestMisfits(t *testing.T) {
	host := node.HostOf(keeper(nil))
	_, peers := clusterAt(t, 2, false, host, func(c *node.Config) { c.Epoch = 7 })
	other := keeper(nil)
	other.Name = "seeker"
	for _, test := range []struct {
		what   string
		change func(*node.Config)
		want   []string
	}{
		{"members", func(c *node.Config) { c.Peers = c.Peers[:1] }, []string{"names of the servers", "s1,s2 there", "s1 here"}},
		{"another member", func(c *node.Config) {
			c.Peers = []node.Peer{peers[0], {Name: "s3", Addr: peers[1].Addr}}
		}, []string{"names of the servers", "s1,s2 there", "s1,s3 here"}},
		{"shards", func(c *node.Config) { c.Shards = "a,b" }, []string{"shards", "none there", "a,b here"}},
		{"algorithm", func(c *node.Config) { c.Hosts = mutexes(node.HostOf(other)) }, []string{"algorithm of kind mutex", "keeper there", "seeker here"}},
		{"name", func(c *node.Config) {
			c.Peers = []node.Peer{{Name: "t1", Addr: peers[0].Addr}, peers[1]}
		}, []string{"name of the server", "s1 there", "t1 here"}},
		{"nobody", func(c *node.Config) {
			c.Peers = []node.Peer{{Name: "s1", Addr: "unix:/nonexistent/socket"}, peers[1]}
		}, []string{"/nonexistent/socket", "no such file"}},
		{"deadlines", func(c *node.Config) {
			c.Dial = func(ctx context.Context, p node.Peer) (net.Conn, error) {
				conn, err := transport.Dial(ctx, p.Name, p.Addr, nil)
				return timeless{conn}, err
			}
		}, []string{"connection without deadlines"}},
	} {
		t.Run(test.what, func(t *testing.T) {
			c := node.Config{Secret: node.NewSecret(), Hosts: mutexes(host), Peers: peers, Epoch: 7}
			test.change(&c)
			n := start(t, c)
			var err error
			eventually(t, "the refusal is known", func() bool {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
				defer cancel()
				err = n.WaitAlive(ctx, len(c.Peers))
				return !strings.Contains(err.Error(), "no answer")
			})
			var u *node.UnreachableError
			if !errors.As(err, &u) || !errors.Is(err, context.DeadlineExceeded) || len(u.Members) == 0 {
				t.Fatalf("%#v", err)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
		})
	}
}

// An instance that nothing distinguishes from a new one goes.
func TestIdleInstancesGo(t *testing.T) {
	t.Parallel()
	host := node.HostOf(keeper(nil))
	servers, peers := clusterAt(t, 2, false, host, nil)
	c := clients(t, 1, peers, host, nil)[0]
	const names, parallel = 10000, 100
	var wg sync.WaitGroup
	for p := range parallel {
		wg.Go(func() {
			u := newProbe()
			for k := p; k < names; k += parallel {
				name := fmt.Sprint("once-", k)
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
	wg.Wait()
	for _, n := range append(servers, c) {
		eventually(t, "all instances are gone", func() bool { return len(n.Locks()) == 0 })
	}
}

// hooks is a User of functions.
type hooks struct{ crit, rem, ejected func() }

func (h *hooks) Crit(node.Entry)                  { h.crit() }
func (h *hooks) Rem(error)                        { h.rem() }
func (h *hooks) Ejected()                         { h.ejected() }
func (h *hooks) Supported(map[protocol.ID]uint64) {}

// A User may call Try, Cancel and Exit from its callbacks.
func TestCallsFromCallbacks(t *testing.T) {
	host := node.HostOf(keeper(nil))
	_, peers := clusterAt(t, 1, false, host, nil)
	c := clients(t, 1, peers, host, nil)[0]
	done := make(chan struct{})
	rounds := 0
	u := &hooks{ejected: func() { t.Error("ejected") }}
	u.crit = func() { c.Exit("a") }
	u.rem = func() {
		if rounds++; rounds == 1000 {
			close(done)
			return
		}
		if err := c.Try(node.Mutex, "a", u, false); err != nil {
			t.Error(err)
		}
	}
	must(t, c.Try(node.Mutex, "a", u, false))
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatalf("%d rounds", rounds)
	}
}

func TestCancel(t *testing.T) {
	host := node.HostOf(keeper(nil))
	_, peers := clusterAt(t, 1, false, host, nil)
	c := start(t, node.Config{
		Secret: node.NewSecret(), Hosts: mutexes(host),
		Peers: []node.Peer{{Name: "s1", Addr: "unix:/nonexistent/socket"}},
	})
	u := newProbe()
	must(t, c.Try(node.Mutex, "a", u, false))
	c.Exit("a") // not inside: no effect
	c.Cancel("a")
	if why := <-u.rem; why != "" {
		t.Errorf("Rem(%q)", why)
	}
	d := clients(t, 1, peers, host, nil)[0]
	must(t, d.Try(node.Mutex, "a", u, false))
	<-u.crit
	d.Cancel("a") // too late: no effect
	d.Exit("a")
	<-u.rem
	d.Exit("a") // no effect
	if len(u.crit)+len(u.rem)+len(u.ejected) != 0 {
		t.Error("more callbacks than expected")
	}
}

func TestClosed(t *testing.T) {
	host := node.HostOf(keeper(nil))
	servers, peers := clusterAt(t, 1, false, host, nil)
	c := clients(t, 1, peers, host, nil)[0]
	must(t, c.Close())
	must(t, c.Close())
	if err := c.Try(node.Mutex, "a", newProbe(), false); !errors.Is(err, node.ErrClosed) {
		t.Errorf("Try: %v", err)
	}
	if err := c.WaitAlive(t.Context(), 1); !errors.Is(err, node.ErrClosed) {
		t.Errorf("WaitAlive: %v", err)
	}
	if _, err := c.Call(t.Context(), 0, nil); err == nil {
		t.Error("Call succeeds")
	}
	if got := c.Locks(); len(got) != 0 {
		t.Errorf("Locks: %v", got)
	}
	eventually(t, "the session is gone", func() bool { return len(servers[0].Sessions()) == 0 })
}

// Sigma's servers come back empty, one after the other, under clients that count.
// Four servers bear one loss of memory in an epoch, so each comes after all waits
// of the last one have ended.
func TestServersLoseMemory(t *testing.T) {
	t.Parallel()
	host := node.HostOf(sigma.Algorithm)
	servers, peers := clusterAt(t, 4, true, host, nil)
	users := clients(t, 3, peers, host, nil)
	for round := range 8 {
		var restarting sync.WaitGroup
		restarting.Go(func() {
			time.Sleep(2 * time.Millisecond)
			k := round % len(servers)
			servers[k].Close()
			l, err := transport.Listen(peers[k].Addr)
			if err != nil {
				t.Error(err)
				return
			}
			servers[k], err = node.Start(node.Config{ID: protocol.ID(k), Hosts: mutexes(host), Peers: peers, Listener: l})
			if err != nil {
				t.Error(err)
			}
		})
		count(t, users, 2, 40)
		restarting.Wait()
	}
	for _, s := range servers {
		if s != nil {
			s.Close()
		}
	}
}
