package node_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/poundlock/poundlock/algo/ricartagrawala"
	"github.com/poundlock/poundlock/algo/sigma"
	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/transport"
)

// A fleet is a cluster whose members hand their tables over.
type fleet struct {
	t       *testing.T
	configs []node.Config
	nodes   []*node.Node
	peers   []node.Peer
	wire    *cable // nil on loopback
	listen  func(addr string) (net.Listener, error)
	wired   func(*node.Config) // has a process reach the members
	damage  func(*node.Node)   // to each successor; nil: none
}

// newFleet starts four members on loopback.
func newFleet(t *testing.T, host node.Host, change func(*node.Config)) *fleet {
	t.Helper()
	f := &fleet{t: t, listen: transport.Listen, wired: func(*node.Config) {}}
	f.nodes, f.peers = clusterAt(t, 4, false, host, func(c *node.Config) { f.change(c, change) })
	f.closeAll()
	return f
}

// newVirtualFleet starts n members on a cable, in a bubble: whatever is about leases and
// timers is not about how busy the machine is.
func newVirtualFleet(t *testing.T, n int, host node.Host, change func(*node.Config)) *fleet {
	t.Helper()
	wire, boot := &cable{}, virtual()
	f := &fleet{t: t, wire: wire, listen: wire.Listen}
	f.wired = func(c *node.Config) {
		c.Dial, c.Boot = wire.dial, boot
	}
	for k := range n {
		name := fmt.Sprint("s", k+1)
		f.peers = append(f.peers, node.Peer{Name: name, Addr: name})
	}
	for k, p := range f.peers {
		l, err := wire.Listen(p.Addr)
		must(t, err)
		c := node.Config{ID: protocol.ID(k), Hosts: mutexes(host), Peers: f.peers, Listener: l}
		f.wired(&c)
		f.change(&c, change)
		f.nodes = append(f.nodes, start(t, c))
	}
	f.closeAll()
	return f
}

func (f *fleet) change(c *node.Config, change func(*node.Config)) {
	if change != nil {
		change(c)
	}
	next := *c
	next.Listener = nil
	f.configs = append(f.configs, next)
}

func (f *fleet) closeAll() {
	f.t.Cleanup(func() {
		for _, n := range f.nodes {
			n.Close()
		}
	})
}

// clients starts k clients of the members and waits for their sessions.
func (f *fleet) clients(k int, host node.Host, change func(*node.Config)) []*node.Node {
	f.t.Helper()
	return clients(f.t, k, f.peers, host, func(c *node.Config) {
		f.wired(c)
		if change != nil {
			change(c)
		}
	})
}

// handOver gives the table of member k to a successor.
func (f *fleet) handOver(k int) {
	f.t.Helper()
	frozen, err := f.nodes[k].Freeze()
	must(f.t, err)
	var table bytes.Buffer
	_, err = frozen.Write(&table)
	must(f.t, err)
	var next *node.Frozen
	if f.damage == nil {
		next, _, err = node.Restore(f.configs[k], &table)
	} else {
		next, err = node.RestoreDamaged(f.configs[k], &table, f.damage)
	}
	must(f.t, err)
	l, err := f.listen(f.peers[k].Addr)
	must(f.t, err)
	must(f.t, f.nodes[k].Close())
	next.Thaw()
	must(f.t, next.Node().Serve(l))
	f.nodes[k] = next.Node()
}

// sessions are what a client knows about its sessions, but for the ends of leases.
func sessions(n *node.Node) string {
	var b strings.Builder
	for _, s := range n.Sessions() {
		fmt.Fprintf(&b, "%d: %x %d\n", s.Peer, s.Incarnation, s.Number)
	}
	return b.String()
}

// known is what a member knows about its locks.
func known(n *node.Node) string {
	st := n.Stats()
	return fmt.Sprint(n.Locks(), st.Supports, " supports, ", st.Waiting, " wait")
}

// forgetful lets servers forget the tokens of idle locks soon, so that tests see that
// idle processes go.
func forgetful(c *node.Config) {
	c.System = protocol.Config{N: 4, Options: map[string]int64{
		"fence": sigma.FenceOn, "forget": int64(300 * time.Millisecond),
	}}
	c.Lease = 2 * time.Second
}

// upheld hands the tables of all members over while locks are held and waited for, and
// returns what somebody could notice.
func upheld(t *testing.T, damage func(*node.Node)) (complaints []string) {
	complain := func(format string, args ...any) { complaints = append(complaints, fmt.Sprintf(format, args...)) }
	patience := patience
	if damage != nil {
		patience = time.Second
	}
	host := node.HostOf(sigma.Algorithm)
	f := newVirtualFleet(t, 4, host, forgetful)
	users := f.clients(2, host, forgetful)
	const locks = 20
	holders, waiters := make([]*probe, locks), make([]*probe, locks)
	name := func(k int) string { return fmt.Sprint("lock-", k) }
	for k := range locks {
		holders[k], waiters[k] = newProbe(), newProbe()
		must(t, users[0].Try(node.Mutex, name(k), holders[k], false))
		<-holders[k].crit
		must(t, users[1].Try(node.Mutex, name(k), waiters[k], false))
	}
	for _, n := range f.nodes {
		eventually(t, "everybody waits", func() bool {
			all := n.Locks()
			for _, l := range all {
				if len(l.Standing.Waiters) != 1 {
					return false
				}
			}
			return len(all) == locks
		})
	}

	alone := newProbe()
	must(t, users[1].Try(node.Mutex, "alone", alone, false))
	<-alone.crit
	for _, n := range f.nodes {
		eventually(t, "every member knows the lock without waiters", func() bool { return len(n.Locks()) == locks+1 })
	}

	var together []sharing
	for _, n := range users {
		u := sharing{newInside(), "readers"}
		must(t, n.Try(node.Mutex, "book", u, false))
		<-u.entries
		together = append(together, u)
	}
	lone := newInside()
	must(t, users[0].Try(node.Mutex, "shelf", lone, false))
	<-lone.entries
	users[0].Downgrade("shelf", "readers")
	synctest.Wait() // nothing is on its way
	shared := []string{sessions(users[0]), sessions(users[1])}
	f.damage = damage
	for k := range f.nodes {
		before := known(f.nodes[k])
		f.handOver(k)
		if after := known(f.nodes[k]); after != before {
			complain("s%d knew %s, and now %s", k+1, before, after)
		}
	}
	users[1].Exit("alone")
	for i, n := range users {
		n.Exit("book")
		<-together[i].rem
	}
	joins := sharing{newInside(), "readers"}
	must(t, users[1].Try(node.Mutex, "shelf", joins, false))
	select {
	case <-joins.entries:
		users[1].Exit("shelf")
	case <-time.After(patience):
		complain("nobody may join whoever came down to a group")
	}
	users[0].Exit("shelf")
	// Half of the locks are released now, and the others by their client's death.
	entered := func(k int) {
		select {
		case <-waiters[k].crit:
			users[1].Exit(name(k))
			select {
			case <-waiters[k].rem:
			case <-time.After(patience):
				complain("nobody left %s", name(k))
			}
		case <-time.After(patience):
			complain("nobody entered %s", name(k))
		}
	}
	for k := range locks / 2 {
		users[0].Exit(name(k))
	}
	for k := 0; k < locks/2 && len(complaints) == 0; k++ {
		entered(k)
	}
	for k, p := range holders {
		if len(p.ejected) > 0 {
			complain("the holder of %s was ejected", name(k))
		}
	}
	for i, n := range users {
		if now := sessions(n); now != shared[i] {
			complain("user %d had the sessions\n%s, and now\n%s", i, shared[i], now)
		}
	}
	users[0].Close()
	for k := locks / 2; k < locks && len(complaints) == 0; k++ {
		entered(k)
	}
	idle := func() bool {
		for _, n := range f.nodes {
			if len(n.Locks()) > 0 {
				return false
			}
		}
		return true
	}
	for end := time.Now().Add(3 * time.Second); !idle(); time.Sleep(5 * time.Millisecond) {
		if len(complaints) > 0 || time.Now().After(end) {
			complain("idle locks are kept")
			break
		}
	}
	for k, n := range f.nodes {
		if left := n.Stats().Supports; left != 0 && len(complaints) == 0 {
			complain("s%d counts %d supports at the end", k+1, left)
		}
	}
	return complaints
}

// Nobody notices that the tables of all members are handed over, and the test would
// notice what was not.
func TestHandover(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		if found := upheld(t, nil); len(found) > 0 {
			t.Error(strings.Join(found, "\n"))
		}
	})
	for name, damage := range node.Damages {
		if name == "failed locks" {
			continue // TestHandoverOfFailedLocks
		}
		t.Run("broken: without "+name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				found := upheld(t, damage)
				if len(found) == 0 {
					t.Fatal("nobody noticed")
				}
				t.Log(strings.SplitN(found[0], "\n", 2)[0])
			})
		})
	}
}

// The tables of all members go from hand to hand, several at once, while clients count.
func TestHandoverUnderLoad(t *testing.T) {
	t.Parallel()
	host := node.HostOf(sigma.Algorithm)
	f := newFleet(t, host, nil)
	users := clients(t, 3, f.peers, host, nil)
	var known []string
	for _, n := range users {
		known = append(known, sessions(n))
	}
	stop := make(chan struct{})
	var handing sync.WaitGroup
	var rounds [4]atomic.Int32
	for k := range f.nodes {
		handing.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(time.Duration(100+20*k) * time.Millisecond):
					f.handOver(k)
					rounds[k].Add(1)
				}
			}
		})
	}
	for rounds[3].Load() < 10 && !t.Failed() {
		count(t, users, 3, 20)
	}
	close(stop)
	handing.Wait()
	for i, n := range users {
		if now := sessions(n); now != known[i] {
			t.Errorf("client %d had the sessions\n%s, and now\n%s", i, known[i], now)
		}
	}
}

// A member that is thawed goes on as if nothing had been.
func TestThaw(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := node.HostOf(sigma.Algorithm)
		f := newVirtualFleet(t, 4, host, forgetful)
		users := f.clients(2, host, forgetful)
		known := sessions(users[0])
		for round := range 5 {
			for k, n := range f.nodes {
				frozen, err := n.Freeze()
				must(t, err)
				if _, err := n.Freeze(); !errors.Is(err, node.ErrNoHandover) {
					t.Errorf("frozen twice: %v", err)
				}
				if round%2 == 0 {
					_, err = frozen.Write(io.Discard)
					must(t, err)
				}
				l, err := f.listen(f.peers[k].Addr)
				must(t, err)
				frozen.Thaw()
				must(t, frozen.Node().Serve(l))
			}
			count(t, users, 3, 10)
		}
		if now := sessions(users[0]); now != known {
			t.Errorf("the sessions were\n%s, and now\n%s", known, now)
		}
	})
}

// A lease goes on counting while its member is frozen, but the member suspects nobody
// before it is thawed.
func TestLeaseEndsWhileFrozen(t *testing.T) {
	for _, handover := range []bool{false, true} {
		t.Run(fmt.Sprintf("handover=%v", handover), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var d diary
				host := node.HostOf(keeper(d.add))
				short := func(c *node.Config) { c.Lease = 200 * time.Millisecond }
				f := newVirtualFleet(t, 4, host, short)
				c := f.clients(1, host, short)[0]
				u := newProbe()
				must(t, c.Try(node.Mutex, "a", u, false))
				<-u.crit
				frozen, err := f.nodes[0].Freeze()
				must(t, err)
				<-time.After(500 * time.Millisecond)
				if d.has(0, protocol.Suspect, c.ID()) {
					t.Error("a frozen member suspects")
				}
				if handover {
					var table bytes.Buffer
					_, err := frozen.Write(&table)
					must(t, err)
					must(t, f.nodes[0].Close())
					next, _, err := node.Restore(f.configs[0], &table)
					must(t, err)
					f.nodes[0] = next.Node()
					<-time.After(50 * time.Millisecond)
					if d.has(0, protocol.Suspect, c.ID()) {
						t.Error("a successor suspects before it may go on")
					}
					next.Thaw()
				} else {
					frozen.Thaw()
				}
				eventually(t, "the client is suspected", func() bool { return d.has(0, protocol.Suspect, c.ID()) })
			})
		})
	}
}

// A lock that failed stays closed at the successor.
func TestHandoverOfFailedLocks(t *testing.T) {
	for _, broken := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var b fragile
			f := newVirtualFleet(t, 4, b.host(), nil)
			if broken {
				f.damage = node.Damages["failed locks"]
			}
			c := f.clients(1, node.HostOf(keeper(nil)), nil)[0]
			u := newProbe()
			b.append.Store(true) // it cannot answer
			must(t, c.Try(node.Mutex, "a", u, false))
			// A lock that fails is forgotten; the table says which have.
			for k, n := range f.nodes {
				eventually(t, "the lock failed", func() bool { return n.Failed() == 1 })
				f.handOver(k)
			}
			b.append.Store(false)
			c.Cancel("a")
			<-u.rem
			must(t, c.Try(node.Mutex, "a", u, false))
			select {
			case <-u.crit:
				if !broken {
					t.Error("a failed lock was opened by a hand-over")
				}
			case <-time.After(200 * time.Millisecond):
				if broken {
					t.Error("the broken variant was not noticed")
				}
			}
		})
	}
}

// What cannot be handed over is refused, with the reason.
func TestNoHandover(t *testing.T) {
	users := cluster(t, 3, false, node.HostOf(ricartagrawala.Algorithm), nil)
	if _, err := users[0].Freeze(); !errors.Is(err, node.ErrNoHandover) {
		t.Errorf("a member with users: %v", err)
	}
	host := node.HostOf(sigma.Algorithm)
	f := newFleet(t, host, nil)
	frozen, err := f.nodes[0].Freeze()
	must(t, err)
	var b bytes.Buffer
	_, err = frozen.Write(&b)
	must(t, err)
	for want, change := range map[string]func(c *node.Config){
		"epoch differs: 7 here, 0 there":                          func(c *node.Config) { c.Epoch = 7 },
		"name of the server differs: s2 here":                     func(c *node.Config) { c.ID = 1 },
		"kinds and algorithms differs: mutex: sigma/literal here": func(c *node.Config) { c.Hosts = mutexes(node.HostOf(sigma.Literal)) },
		"list of servers differs":                                 func(c *node.Config) { c.Peers = c.Peers[:3]; c.System.N = 3 },
		"options (clock bound, quorum) differs: map":              func(c *node.Config) { c.System.Options = map[string]int64{"eps": 1} },
		"another machine?":                                        func(c *node.Config) { c.Boot = func() time.Duration { return time.Minute } },
		"has no listener yet":                                     func(c *node.Config) { c.Listener, _ = transport.Listen("127.0.0.1:0") },
	} {
		c := f.configs[0]
		change(&c)
		next, _, err := node.Restore(c, bytes.NewReader(b.Bytes()))
		if err == nil {
			next.Node().Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		if c.Listener != nil {
			c.Listener.Close()
		}
	}
	for cut := range b.Len() {
		if next, _, err := node.Restore(f.configs[0], bytes.NewReader(b.Bytes()[:cut])); err == nil {
			next.Node().Close()
			t.Fatalf("%d of %d bytes are a snapshot", cut, b.Len())
		}
	}
}

// Whatever stands where a snapshot should: a member that takes it works, and can hand
// its table over in turn.
func FuzzRestore(f *testing.F) {
	host := node.HostOf(keeper(nil))
	var wire cable // so that each process of the fuzzer has the same title
	config := node.Config{
		Hosts: mutexes(host), Peers: []node.Peer{{Name: "s1", Addr: "s1"}}, Dial: wire.dial,
		Boot: func() time.Duration { return time.Hour },
	}
	snapshot := func(t testing.TB, n *node.Node) []byte {
		frozen, err := n.Freeze()
		must(t, err)
		var b bytes.Buffer
		_, err = frozen.Write(&b)
		must(t, err)
		must(t, n.Close())
		return b.Bytes()
	}
	begin := config
	l, err := wire.Listen("s1")
	must(f, err)
	begin.Listener = l
	server := start(f, begin)
	c := clients(f, 1, config.Peers, host, func(c *node.Config) { c.Dial, c.Boot = config.Dial, config.Boot })[0]
	u := newProbe()
	must(f, c.Try(node.Mutex, "a", u, false))
	<-u.crit
	seed := snapshot(f, server)
	next, size, err := node.Restore(config, bytes.NewReader(seed))
	if err != nil || size.Locks != 1 || size.Sessions != 1 {
		f.Fatalf("the seed: %v, %+v", err, size)
	}
	must(f, next.Node().Close())
	f.Add(seed)
	f.Fuzz(func(t *testing.T, b []byte) {
		next, size, err := node.Restore(config, bytes.NewReader(b))
		if err != nil {
			return
		}
		next.Thaw()
		n := next.Node()
		if got := len(n.Locks()); got != size.Locks {
			t.Errorf("%d locks of %d", got, size.Locks)
		}
		again, _, err := node.Restore(config, bytes.NewReader(snapshot(t, n)))
		must(t, err)
		must(t, again.Node().Close())
	})
}

// BenchmarkHandover stops a member, moves its table to a successor through memory, and
// has that ready to serve; clients do not get in between.
func BenchmarkHandover(b *testing.B) {
	for _, locks := range []int{1_000, 100_000} {
		b.Run(fmt.Sprintf("locks=%d", locks), func(b *testing.B) {
			host := mutexes(node.HostOf(sigma.Algorithm))
			system := protocol.Config{N: 1, Options: map[string]int64{"fence": sigma.FenceOn, "check": 0}}
			l, addr := listen(b, true, 0)
			c := node.Config{System: system, Hosts: host, Peers: []node.Peer{{Name: "s1", Addr: addr}}, Lease: node.MaxLease}
			first := c
			first.Listener = l
			n, err := node.Start(first)
			must(b, err)
			const users = 2
			for k := range users {
				u := c
				u.Secret = node.NewSecret()
				client := start(b, u)
				must(b, client.WaitAlive(b.Context(), 1))
				inside := make(chan struct{})
				stays := &hooks{crit: func() { inside <- struct{}{} }}
				for i := range locks / users {
					must(b, client.Try(node.Mutex, fmt.Sprint("lock-", k, "-", i), stays, false))
					<-inside
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				frozen, err := n.Freeze()
				must(b, err)
				var table bytes.Buffer
				_, err = frozen.Write(&table)
				must(b, err)
				next, size, err := node.Restore(c, &table)
				must(b, err)
				if size.Locks != locks || size.Sessions != users {
					b.Fatalf("%+v", size)
				}
				must(b, n.Close())
				next.Thaw()
				n = next.Node()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*locks), "ns/lock")
			must(b, n.Close())
		})
	}
}
