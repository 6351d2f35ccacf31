package node_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/poundlock/poundlock/internal/faultnet"
	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/transport"
)

// A memory is a network inside this process.
type memory = faultnet.Memory

// A cable is a network with one cable, by which all go.
type cable struct {
	memory
	faultnet.Cable
	running []*node.Node // its members
}

func (c *cable) dial(ctx context.Context, p node.Peer) (net.Conn, error) {
	return c.Cable.Dial(ctx, &c.memory, p.Addr)
}

// A bubble is one member and one client on a cable, in virtual time, with clocks
// of the given rates.
type bubble struct {
	asleep atomic.Int64 // how long the client's machine was suspended, unseen by its timers
	cable  cable
	diary  diary
	server *node.Node
	client *node.Node
}

func newBubble(t *testing.T, lease time.Duration, serverRate, clientRate float64) *bubble {
	t.Helper()
	return newSlowBubble(t, lease, 0, serverRate, clientRate)
}

// newSlowBubble delays what the client receives.
func newSlowBubble(t *testing.T, lease, delay time.Duration, serverRate, clientRate float64) *bubble {
	t.Helper()
	b := &bubble{}
	b.cable.Delay = delay
	began := time.Now()
	boot := func(rate float64) func() time.Duration {
		return func() time.Duration { return time.Duration(float64(time.Since(began)) * rate) }
	}
	l, err := b.cable.Listen("s1")
	if err != nil {
		t.Fatal(err)
	}
	host := node.HostOf(keeper(b.diary.add))
	c := node.Config{Hosts: mutexes(host), Peers: []node.Peer{{Name: "s1", Addr: "s1"}}, Lease: lease, Dial: b.cable.dial}
	server := c
	server.Listener, server.Boot = l, boot(serverRate)
	b.server = start(t, server)
	awake := boot(clientRate)
	c.Secret, c.Label = node.NewSecret(), "tester"
	c.Boot = func() time.Duration { return awake() + time.Duration(b.asleep.Load()) }
	b.client = start(t, c)
	if err := b.client.WaitAlive(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	return b
}

// leaseEnd is when the lease of the client ends, zero without one.
func (b *bubble) leaseEnd() time.Time {
	for _, s := range b.client.Sessions() {
		return s.LeaseEnd
	}
	return time.Time{}
}

func (b *bubble) close() {
	b.client.Close()
	b.server.Close()
}

// The client must notice the end of its lease strictly before the server does,
// whatever the moment at which they are cut off, the delay of answers, and the
// rates of their clocks within the bound (0.001 between the two).
func TestClientLapsesFirst(t *testing.T) {
	t.Parallel()
	for seed := range uint64(30) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			rate := func() float64 { return 1 + (r.Float64()-0.5)*0.0009 }
			b := newSlowBubble(t, 10*time.Second, time.Duration(r.Int64N(int64(time.Second))), rate(), rate())
			defer b.close()
			u := newProbe()
			if err := b.client.Try(node.Mutex, "a", u, false); err != nil {
				t.Fatal(err)
			}
			<-u.crit
			time.Sleep(time.Duration(r.Int64N(int64(time.Hour))))
			promised := b.leaseEnd()
			b.diary.take()
			b.cable.Cut(true)
			time.Sleep(time.Minute)
			events := b.diary.take()
			if got := fmt.Sprint(events); got != "[client suspect s1 suspect]" {
				t.Fatalf("seed %d: %s", seed, got)
			}
			if !events[0].When.Before(events[1].When) {
				t.Errorf("seed %d: the client at %v, the server at %v", seed, events[0].When, events[1].When)
			}
			if events[0].When.After(promised.Add(10 * time.Second)) {
				t.Errorf("seed %d: promised %v, suspected at %v", seed, promised, events[0].When)
			}
			if !b.leaseEnd().IsZero() || b.client.Alive() != 0 {
				t.Errorf("seed %d: a lapsed lease counts", seed)
			}
		})
	}
}

// A lease is kept alive for as long as both ends live and are connected.
func TestLeaseHolds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, time.Second, 1, 1)
		defer b.close()
		b.diary.take()
		for range 3600 {
			time.Sleep(time.Second)
			if left := time.Until(b.leaseEnd()); left < 500*time.Millisecond || left > time.Second {
				t.Fatalf("%v of the lease is left", left)
			}
		}
		if got := b.diary.take(); len(got) != 0 {
			t.Errorf("events: %v", got)
		}
		s := b.server.Sessions()
		if len(s) != 1 || s[0].Label != "tester" || s[0].Incarnation != b.client.Incarnation() {
			t.Errorf("sessions of the server: %+v", s)
		}
	})
}

// A break that ends within the lease is no event; nothing is lost by it.
func TestBreakIsNoLapse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, 10*time.Second, 1, 1)
		defer b.close()
		for k := range 100 {
			b.cable.Cut(true)
			u := newProbe()
			if err := b.client.Try(node.Mutex, "a", u, false); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			b.cable.Cut(false)
			<-u.crit
			b.client.Exit("a")
			if why := <-u.rem; why != "" {
				t.Fatalf("round %d: %s", k, why)
			}
			time.Sleep(20 * time.Second)
		}
		for _, e := range b.diary.take() {
			if e.Kind == protocol.Suspect {
				t.Fatalf("%v", e)
			}
		}
	})
}

// After a lapse a new session begins. The server has dealt with the old one
// before anything of the new one is delivered, even when it did not notice the
// lapse by itself.
func TestNewSession(t *testing.T) {
	for _, cut := range []time.Duration{9700 * time.Millisecond, time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			b := newBubble(t, 10*time.Second, 0.9999, 1)
			defer b.close()
			u := newProbe()
			if err := b.client.Try(node.Mutex, "a", u, false); err != nil {
				t.Fatal(err)
			}
			<-u.crit
			time.Sleep(time.Second)
			b.diary.take()
			b.cable.Cut(true)
			time.Sleep(cut)
			b.cable.Cut(false)
			if err := b.client.WaitAlive(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
			b.client.Exit("a")
			<-u.rem
			if err := b.client.Try(node.Mutex, "a", u, false); err != nil {
				t.Fatal(err)
			}
			<-u.crit
			synctest.Wait()
			events := b.diary.take()
			at := func(want string) int {
				k := slices.IndexFunc(events, func(e keeperEvent) bool { return e.String() == want })
				if k < 0 {
					t.Fatalf("cut for %v: no %q in %v", cut, want, events)
				}
				return k
			}
			order := []int{at("client suspect"), at("s1 suspect"), at("s1 receives leave")}
			if !slices.IsSorted(order) || at("client restore") > at("client exit") {
				t.Errorf("cut for %v: %v", cut, events)
			}
			if r := events[at("client restore")]; r.Arg != b.server.Incarnation() {
				t.Errorf("restored with incarnation %d, the server's is %d", r.Arg, b.server.Incarnation())
			}
		})
	}
}

// Close tells the server at once: what the client held is free.
func TestBye(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, 10*time.Second, 1, 1)
		defer b.close()
		held, gone := newProbe(), newProbe()
		for name, u := range map[string]*probe{"held": held, "gone": gone} {
			if err := b.client.Try(node.Mutex, name, u, false); err != nil {
				t.Fatal(err)
			}
			<-u.crit
		}
		b.diary.take()
		began := time.Now()
		b.client.Exit("gone")
		b.client.Close()
		synctest.Wait()
		if took := time.Since(began); took > 100*time.Millisecond {
			t.Errorf("Close took %v", took)
		}
		<-gone.rem
		<-held.ejected
		// What a node compares idle instances with is made of events too.
		events := slices.DeleteFunc(b.diary.take(), func(e keeperEvent) bool { return e.Kind == protocol.Restore })
		if got, want := fmt.Sprint(events), "[client exit s1 receives leave s1 suspect]"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
		if locks := b.server.Locks(); len(locks) != 0 {
			t.Errorf("the server still has %v", locks)
		}
	})
}

// Close does not wait for ever for a peer that does not answer.
func TestCloseIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, 10*time.Second, 1, 1)
		defer b.close()
		b.cable.Cut(true)
		u := newProbe()
		if err := b.client.Try(node.Mutex, "a", u, false); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		began := time.Now()
		b.client.Close()
		if took := time.Since(began); took > 1100*time.Millisecond {
			t.Errorf("Close took %v", took)
		}
		if why := <-u.rem; why != node.ErrClosed.Error() {
			t.Errorf("Rem(%q)", why)
		}
	})
}

// A client whose machine was suspended for longer than its lease knows it before
// it does anything else, although its timers have not moved.
func TestSuspendedClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, 10*time.Second, 1, 1)
		defer b.close()
		u := newProbe()
		must(t, b.client.Try(node.Mutex, "a", u, false))
		<-u.crit
		time.Sleep(time.Minute + 10*time.Millisecond) // no heartbeat is being sent: the server, which was awake, would answer it
		b.diary.take()
		b.asleep.Store(int64(time.Hour))
		if !b.leaseEnd().IsZero() || b.client.Alive() != 0 || len(b.client.Sessions()) != 0 {
			t.Error("the lease outlives the sleep")
		}
		b.client.Exit("a")
		<-u.rem
		if got := b.diary.take(); len(got) < 2 || got[0].String() != "client suspect" {
			t.Errorf("%v", got)
		}
		must(t, b.client.Try(node.Mutex, "a", u, false))
		time.Sleep(time.Second)
		if b.client.Alive() != 1 {
			t.Error("no new session")
		}
	})
}

// A holder whose machine was suspended for longer than its lease hears of it soon
// after, although nobody asks and every timer stood still.
func TestResumedClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, 10*time.Minute, 1, 1)
		defer b.close()
		u := newProbe()
		must(t, b.client.Try(node.Mutex, "a", u, false))
		<-u.crit
		time.Sleep(10*time.Second + 10*time.Millisecond) // not at a round instant
		b.diary.take()
		resumed := time.Now()
		b.asleep.Store(int64(time.Hour))
		time.Sleep(time.Minute)
		events := b.diary.take()
		if len(events) == 0 || events[0].String() != "client suspect" {
			t.Fatalf("%v", events)
		}
		if took := events[0].When.Sub(resumed); took > 100*time.Millisecond {
			t.Errorf("suspected %v after the machine resumed", took)
		}
	})
}

// Heartbeats go out also while messages wait all the time.
func TestHeartbeatAmongMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var network memory
		l, err := network.Listen("s1")
		must(t, err)
		defer l.Close()
		client := start(t, node.Config{
			Secret: node.NewSecret(), Hosts: mutexes(node.HostOf(keeper(nil))), Lease: time.Second,
			Peers: []node.Peer{{Name: "s1", Addr: "s1"}},
			Dial:  func(ctx context.Context, p node.Peer) (net.Conn, error) { return network.Dial(ctx, p.Addr) },
			Boot:  virtual(),
		})
		defer client.Close()
		conn, err := l.Accept()
		must(t, err)
		defer conn.Close()
		s := &stranger{t, conn}
		s.until(transport.HelloItem)
		s.say(transport.Welcome{Incarnation: 1, Session: 1, Lease: time.Second}.Append)
		must(t, client.WaitAlive(t.Context(), 1))
		for k := range 3500 { // of the 4 MB that a window may hold
			must(t, client.Try(node.Mutex, fmt.Sprintf("%01000d", k), newProbe(), false))
		}
		synctest.Wait()
		began := time.Now()
		for {
			time.Sleep(50 * time.Millisecond)
			items, err := s.hear()
			must(t, err)
			if items[0].Type == transport.PingItem {
				break
			}
			if items[0].Type != transport.MessageItem {
				t.Fatalf("an item of type %d after the last message", items[0].Type)
			}
		}
		if took := time.Since(began); took > 400*time.Millisecond {
			t.Errorf("the first heartbeat is %v late", took)
		}
	})
}
