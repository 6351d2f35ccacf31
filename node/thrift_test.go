package node_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/poundlock/poundlock/algo/sigma"
	"github.com/poundlock/poundlock/internal/slots"
	"github.com/poundlock/poundlock/node"
)

// A road is what a client's messages from one member take.
type road struct {
	delay  atomic.Int64 // ns
	closed atomic.Bool  // no connection comes about
	last   atomic.Pointer[slowed]
}

type slowed struct {
	net.Conn
	*road
}

func (s *slowed) Read(b []byte) (int, error) {
	k, err := s.Conn.Read(b)
	time.Sleep(time.Duration(s.delay.Load()))
	return k, err
}

// A traveller is a client with a road from each of four members.
type traveller struct {
	*node.Node
	t     *testing.T
	fleet *fleet
	roads [4]road
}

func newTraveller(t *testing.T) *traveller {
	t.Helper()
	host := node.HostOf(sigma.Algorithm)
	product := func(c *node.Config) { c.System, c.Lease = slots.System(4, slots.DefaultClockBound), 2*time.Second }
	x := &traveller{t: t, fleet: newVirtualFleet(t, 4, host, product)}
	x.slow(time.Millisecond, 0, 1, 2, 3)
	x.Node = x.fleet.clients(1, host, func(c *node.Config) {
		product(c)
		dial := c.Dial
		c.Dial = func(ctx context.Context, p node.Peer) (net.Conn, error) {
			road := &x.roads[p.Name[1]-'1']
			if road.closed.Load() {
				return nil, errors.New("closed")
			}
			conn, err := dial(ctx, p)
			if err != nil {
				return nil, err
			}
			s := &slowed{conn, road}
			road.last.Store(s)
			return s, nil
		}
	})[0]
	x.enter(1) // all sessions are there
	return x
}

// slow has what members say take so long.
func (x *traveller) slow(delay time.Duration, members ...int) {
	for _, k := range members {
		x.roads[k].delay.Store(int64(delay))
	}
}

// requests are how many REQUESTs come to each member while do runs.
func (x *traveller) requests(do func()) (asked [4]int) {
	count := func() (all [4]int) {
		for j, m := range x.fleet.nodes {
			for _, kind := range m.Stats().Messages {
				if kind.Name == "REQUEST" {
					all[j] = int(kind.Received)
				}
			}
		}
		return all
	}
	before := count()
	do()
	synctest.Wait()
	asked = count()
	for j := range asked {
		asked[j] -= before[j]
	}
	return asked
}

// in has a client enter.
func (x *traveller) in(client *node.Node, name string) *probe {
	x.t.Helper()
	u := newProbe()
	must(x.t, client.Try(node.Mutex, name, u, false))
	<-u.crit
	return u
}

// enter enters k times, and returns how many REQUESTs came to each member meanwhile.
func (x *traveller) enter(k int) (asked [4]int) {
	x.t.Helper()
	asked = x.requests(func() {
		for range k {
			u := x.in(x.Node, "a")
			x.Exit("a")
			<-u.rem
			synctest.Wait()
		}
	})
	x.t.Logf("%v: %d entries, REQUESTs to each: %v", time.Duration(x.roads[0].delay.Load()), k, asked)
	return asked
}

// A Try that is given up leaves nothing behind by which the next one would be measured.
func TestThriftForgetsWhoGaveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTraveller(t)
		x.enter(20)
		for k := range x.roads {
			x.roads[k].closed.Store(true)
			x.roads[k].last.Load().Close()
		}
		time.Sleep(time.Minute) // the leases have lapsed, so that nobody will answer
		u := newProbe()
		must(t, x.Try(node.Mutex, "a", u, false))
		x.Cancel("a")
		<-u.rem
		for k := range x.roads {
			x.roads[k].closed.Store(false)
		}
		must(t, x.WaitAlive(t.Context(), 4))
		x.enter(3)
		if got := x.enter(20); got != [4]int{20, 20, 20, 20} {
			t.Errorf("%v are asked", got)
		}
	})
}

// While members take much longer than they did at first, a client asks three of four: all but the one that would answer last.
func TestThriftWhileBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTraveller(t)
		all := []int{0, 1, 2, 3}
		if got := x.enter(20); got != [4]int{20, 20, 20, 20} {
			t.Errorf("while members are not busy %v are asked", got)
		}
		x.slow(10*time.Millisecond, all...)
		time.Sleep(5 * time.Second) // heartbeats
		x.enter(10)
		got := x.enter(10)
		slices.Sort(got[:])
		if got != [4]int{0, 10, 10, 10} {
			t.Errorf("while all are busy %v are asked", got)
		}
		for _, k := range all {
			x.slow(40*time.Millisecond, k)
			time.Sleep(5 * time.Second)
			want := [4]int{10, 10, 10, 10}
			want[k] = 0
			if got := x.enter(10); got != want {
				t.Errorf("while s%d takes longer than the others %v are asked", k+1, got)
			}
			x.slow(10*time.Millisecond, k)
		}
		time.Sleep(5 * time.Second)
		for _, k := range all {
			x.roads[k].closed.Store(true)
			x.roads[k].last.Load().Close()
			synctest.Wait()
			want := [4]int{5, 5, 5, 5}
			want[k] = 0
			if got := x.enter(5); got != want {
				t.Errorf("while s%d cannot be reached %v are asked", k+1, got)
			}
			x.roads[k].closed.Store(false)
			time.Sleep(5 * time.Second)
			x.enter(20)
		}
		x.slow(time.Millisecond, all...)
		time.Sleep(5 * time.Second)
		x.enter(20)
		if got := x.enter(10); got != [4]int{10, 10, 10, 10} {
			t.Errorf("when members are not busy any more %v are asked", got)
		}
	})
}

// A returner does something as soon as it has left.
type returner struct {
	*probe
	left func()
}

func (r *returner) Rem(why error) {
	r.left()
	r.probe.Rem(why)
}

// Where somebody else wanted the lock, a member that gets a message anyway is asked, too. Where nobody did, it is not: else it would get the next RELEASE,
// and the REQUEST behind that, and so on.
func TestThriftAfterRivals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTraveller(t)
		rival := x.fleet.clients(1, node.HostOf(sigma.Algorithm), func(c *node.Config) {
			c.System, c.Lease = slots.System(4, slots.DefaultClockBound), 2*time.Second
		})[0]
		x.enter(5)
		x.slow(10*time.Millisecond, 0, 1, 2, 3)
		time.Sleep(5 * time.Second) // heartbeats
		x.enter(20)
		for _, rivals := range []bool{false, true, false} {
			next := newProbe()
			u := &returner{newProbe(), func() { must(t, x.Try(node.Mutex, "a", next, false)) }} // its RELEASE has not gone yet
			var theirs *probe
			if rivals {
				theirs = x.in(rival, "a")
				time.AfterFunc(time.Second, func() { rival.Exit("a") })
			}
			must(t, x.Try(node.Mutex, "a", u, false))
			<-u.crit
			if rivals {
				<-theirs.rem
			}
			time.Sleep(time.Second) // whoever stays inside asks all
			asked := x.requests(func() {
				x.Exit("a")
				<-next.crit
			})
			x.Exit("a")
			<-next.rem
			want := [4]int{1, 1, 1, 1}
			if slices.Sort(asked[:]); !rivals {
				want[0] = 0
			}
			if asked != want {
				t.Errorf("rivals: %v: %v are asked, in some order", rivals, asked)
			}
		}
	})
}
