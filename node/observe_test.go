package node_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"reflect"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/poundlock/poundlock/algo/sigma"
	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/protocol"
)

// An inside is a User that tells a channel how it got in.
type inside struct {
	*probe
	entries chan node.Entry
}

func (i inside) Crit(e node.Entry) { i.entries <- e }

func newInside() inside { return inside{newProbe(), make(chan node.Entry, 16)} }

// A client knows its request by the time that the members know.
func TestRequestKnownAtBothEnds(t *testing.T) {
	host := node.HostOf(sigma.Algorithm)
	servers, peers := clusterAt(t, 4, false, host, nil)
	c := clients(t, 1, peers, host, nil)[0]
	u := newInside()
	if err := c.Try(node.Mutex, "a", u, false); err != nil {
		t.Fatal(err)
	}
	e := <-u.entries
	if e.Request == 0 {
		t.Fatal("no time of the request")
	}
	supported := 0
	for _, s := range servers {
		for _, l := range s.Lock("a") {
			for _, h := range l.Standing.Holders {
				there := node.RequestID(h.User, uint64(h.Since))
				if here := node.RequestID(c.ID(), e.Request); there != here {
					t.Errorf("a member supports %s, and not %s", there, here)
				}
				supported++
			}
		}
	}
	if supported < 3 {
		t.Errorf("%d members support the client, fewer than a quorum", supported)
	}
	c.Exit("a")
	<-u.rem
}

// ownership is the keeper whose members tell whom they support: the client that
// came first, with a request of one time. The others wait.
func ownership(request uint64) protocol.Algorithm[uint8] {
	a := keeper(nil)
	a.New = func(id protocol.ID, c protocol.Config) protocol.Process[uint8] {
		return &ownedProcess{keeperProcess: keeperProcess{id: id, c: c}, request: request}
	}
	return a
}

func (p *ownedProcess) Waiting() int { return max(0, len(p.clients)-1) }

func (p *ownedProcess) Inspect() protocol.Standing { return protocol.Standing{} }

type ownedProcess struct {
	keeperProcess
	request uint64
	told    protocol.ID
}

func (p *ownedProcess) Step(ev protocol.Event[uint8], out *protocol.Out[uint8]) {
	p.keeperProcess.Step(ev, out)
	first, request := protocol.ID(0), uint64(0)
	if len(p.clients) > 0 {
		first, request = p.clients[0], p.request
	}
	if first != p.told {
		p.told = first
		out.Owner(first, request)
	}
}

// A member counts what it gives, passes on and ends, and tells the audit, whatever time a
// client gave its request.
func TestSupportsCounted(t *testing.T) {
	for _, request := range []uint64{7, 0, 1<<64 - 1} {
		t.Run(fmt.Sprint(request), func(t *testing.T) { supportsCounted(t, request) })
	}
}

func supportsCounted(t *testing.T, request uint64) {
	host := node.HostOf(ownership(request))
	audit := make(chan node.Support, 100)
	servers, peers := clusterAt(t, 1, false, host, func(c *node.Config) {
		c.Audit = func(s node.Support) { audit <- s }
	})
	users := clients(t, 2, peers, host, func(c *node.Config) { c.Label = "a user" })
	first, second := newInside(), newInside()
	enterLock(t, users[0], first)
	enterLock(t, users[1], second)

	s := servers[0].Stats()
	if s.Instances != 1 || s.Supports != 1 || s.SupportsGiven != 1 || s.Waiting != 1 || s.SupportsPassed != 0 {
		t.Errorf("one supported, one waiting: %+v", s)
	}
	if s.ClientSessions != 2 || s.SessionsBegan != 2 || s.SessionsEnded["bye"] != 0 {
		t.Errorf("two sessions: %+v", s)
	}
	users[0].Exit("a")
	<-first.rem
	eventually(t, "the support is passed on", func() bool { return servers[0].Stats().SupportsPassed == 1 })
	users[1].Close()
	eventually(t, "nobody is supported", func() bool { return servers[0].Stats().Supports == 0 })

	s = servers[0].Stats()
	if s.SupportsGiven != 2 || s.SupportsEnded != 2 || s.SupportsHeld.Count != 2 || s.Waiting != 0 || s.Instances != 0 {
		t.Errorf("at the end: %+v", s)
	}
	if s.SessionsEnded["bye"] != 1 {
		t.Errorf("sessions ended: %v", s.SessionsEnded)
	}
	var told []node.Support
	for range 4 {
		a := <-audit
		if a.Ended != (a.Held > 0) || a.Label != "a user" || a.Request != request || a.Lock != "a" || a.Kind != node.Mutex {
			t.Errorf("told %+v", a)
		}
		told = append(told, node.Support{Client: a.Client, Ended: a.Ended})
	}
	a, b := users[0].ID(), users[1].ID()
	want := []node.Support{{Client: a}, {Client: a, Ended: true}, {Client: b}, {Client: b, Ended: true}}
	if !reflect.DeepEqual(told, want) || len(audit) > 0 {
		t.Errorf("told %v, want %v", told, want)
	}
}

// A sharing user wants a group.
type sharing struct {
	inside
	group protocol.Groups
}

func (s sharing) Wants() protocol.Groups { return s.group }
func (s sharing) Wanted()                {}

// Whoever shares a lock is supported for itself: each support is counted and told with its group, what has ended before
// what is given for it, and a support that a step takes and gives again is the same one.
func TestSharedSupportsCounted(t *testing.T) {
	host := node.HostOf(sigma.Algorithm)
	audit := make(chan node.Support, 100)
	servers, peers := clusterAt(t, 4, false, host, func(c *node.Config) {
		if c.ID == 0 {
			c.Audit = func(s node.Support) { audit <- s }
		}
	})
	const readers = 3
	users := clients(t, readers+2, peers, host, func(c *node.Config) { c.Label = "a user" })
	numbers := map[protocol.ID]int{}
	for k, n := range users {
		numbers[n.ID()] = k
	}
	told := func(want ...string) {
		t.Helper()
		var got []string
		for range want {
			var a node.Support
			select {
			case a = <-audit:
			case <-time.After(patience):
				t.Fatalf("told %v, want %v", got, want)
			}
			event := "+"
			switch {
			case a.Ended:
				event = "-"
			case a.Downgraded:
				event = "="
			}
			got = append(got, fmt.Sprintf("%s%d%s", event, numbers[a.Client], a.Group))
			if a.Lock != "a" || a.Label != "a user" || a.Request == 0 || (a.Ended || a.Downgraded) != (a.Held > 0) {
				t.Errorf("told %+v", a)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("told %v, want %v", got, want)
		}
	}
	count := func(supports, given, ended, passed uint64) {
		t.Helper()
		s := servers[0].Stats()
		if uint64(s.Supports) != supports || s.SupportsGiven != given || s.SupportsEnded != ended || s.SupportsPassed != passed || s.SupportsHeld.Count != ended {
			t.Errorf("%d supports, %d given, %d ended, %d passed, %d measured; want %d, %d, %d, %d, %d",
				s.Supports, s.SupportsGiven, s.SupportsEnded, s.SupportsPassed, s.SupportsHeld.Count, supports, given, ended, passed, ended)
		}
	}
	exit := func(k int, u *probe) {
		users[k].Exit("a")
		<-u.rem
	}
	wait := func(k int, u inside, wants protocol.Groups) {
		t.Helper()
		must(t, users[k].Try(node.Mutex, "a", sharing{u, wants}, false))
	}
	waiting := func(k int) {
		t.Helper()
		for _, s := range servers {
			eventually(t, "the requests wait everywhere", func() bool { return s.Stats().Waiting == k })
		}
	}
	all := make([]inside, len(users))
	for k := range all {
		all[k] = newInside()
	}
	first, last := readers, readers+1
	wait(first, all[first], "")
	<-all[first].entries
	told("+3") // before another request comes: three of four are enough to enter
	count(1, 1, 0, 0)
	for k := range readers {
		wait(k, all[k], "readers")
		waiting(k + 1)
	}
	exit(first, all[first].probe)
	for k := range readers {
		if e := <-all[k].entries; e.Group != "readers" {
			t.Errorf("%d is in group %q", k, e.Group)
		}
	}
	waiting(0)
	told("-3", "+0readers", "+1readers", "+2readers")
	count(3, 4, 1, 1)
	locks := servers[0].Locks()
	if len(locks) != 1 || len(locks[0].Held) != readers || slices.Contains(locks[0].Held, 0) {
		t.Errorf("it knows %+v", locks)
	}
	for _, h := range locks[0].Standing.Holders {
		if h.Group != "readers" {
			t.Errorf("holder %+v", h)
		}
	}

	wait(last, all[last], "")
	waiting(1)
	exit(1, all[1].probe)
	told("-1readers")
	users[0].Close() // its session ends
	told("-0readers")
	count(1, 4, 3, 1)
	exit(2, all[2].probe)
	<-all[last].entries
	told("-2readers", "+4")
	count(1, 5, 4, 2)
	exit(last, all[last].probe)
	told("-4")
	count(0, 5, 5, 2)

	// The last one comes down to the group of another one: its support goes on.
	users[last].Downgrade("none", "readers")
	wait(last, all[last], "")
	<-all[last].entries
	told("+4") // before another request comes
	wait(1, all[1], "readers")
	users[1].Downgrade("a", "readers") // it waits
	waiting(1)
	users[last].Downgrade("a", "readers")
	<-all[1].entries
	users[last].Downgrade("a", "writers") // it shares
	waiting(0)
	eventually(t, "servers know the group", func() bool {
		l := servers[0].Lock("a")
		return len(l) == 1 && len(l[0].Standing.Holders) == 2 && l[0].Standing.Holders[0].Group == "readers"
	})
	exit(last, all[last].probe)
	told("=4readers", "+1readers", "-4readers")
	exit(1, all[1].probe)
	told("-1readers")
	count(0, 7, 7, 2)
	if len(audit) > 0 {
		t.Errorf("told %+v, too", <-audit)
	}
}

// companies is the keeper whose members support all who came, and take and give each support anew in each step.
func companies() protocol.Algorithm[uint8] {
	a := keeper(nil)
	a.New = func(id protocol.ID, c protocol.Config) protocol.Process[uint8] {
		return &companion{keeperProcess: keeperProcess{id: id, c: c}, time: 7}
	}
	return a
}

type companion struct {
	keeperProcess
	told []protocol.ID
	time uint64 // of all requests
}

func (p *companion) Step(ev protocol.Event[uint8], out *protocol.Out[uint8]) {
	p.keeperProcess.Step(ev, out)
	if ev.Kind == protocol.Suspect && len(p.clients) > 0 { // the first one has a new request, and is alone with it
		first := p.clients[0]
		p.told = p.clients[:1:1]
		out.Joined(first+1, p.time, "all")
		out.Parted(first, p.time)
		p.time++
		out.Joined(first, p.time, "all")
		out.Owner(first, p.time)
		return
	}
	for _, c := range p.told {
		out.Parted(c, p.time)
	}
	for _, c := range p.clients {
		out.Joined(c, p.time, "all")
	}
	p.told = slices.Clone(p.clients)
}

// A support that a step takes back and gives again is the same one; with Owner all others end.
func TestSupportGivenAgain(t *testing.T) {
	host := node.HostOf(companies())
	servers, peers := clusterAt(t, 1, false, host, nil)
	users := clients(t, 3, peers, host, nil)
	first := newInside()
	enterLock(t, users[0], first)
	for k, n := range users[1:] {
		must(t, n.Try(node.Mutex, "a", newInside(), false))
		eventually(t, "each is supported", func() bool { return servers[0].Stats().Supports == k+2 })
	}
	if s := servers[0].Stats(); s.SupportsGiven != 3 || s.SupportsEnded != 0 {
		t.Errorf("%d given, %d ended", s.SupportsGiven, s.SupportsEnded)
	}
	users[2].Close()
	eventually(t, "one is alone", func() bool { return servers[0].Stats().Supports == 1 })
	if s := servers[0].Stats(); s.SupportsGiven != 4 || s.SupportsEnded != 3 || s.SupportsPassed != 0 {
		t.Errorf("%d given, %d ended, %d passed", s.SupportsGiven, s.SupportsEnded, s.SupportsPassed)
	}
}

func enterLock(t *testing.T, n *node.Node, u inside) {
	t.Helper()
	if err := n.Try(node.Mutex, "a", u, false); err != nil {
		t.Fatal(err)
	}
	<-u.entries
}

// Messages count once at each end, and both ends agree on bytes and round trips.
func TestTrafficCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := node.HostOf(keeper(nil))
		short := func(c *node.Config) { c.Lease = 200 * time.Millisecond }
		f := newVirtualFleet(t, 2, host, short)
		f.wire.Delay = time.Millisecond // or no round trip would take time
		c := f.clients(1, host, short)[0]
		const entries = 5
		u := newInside()
		for range entries {
			enterLock(t, c, u)
			c.Exit("a")
			<-u.rem
		}
		want := []node.MessageStats{
			{Kind: node.Mutex, Name: "ENTER", Sent: 2 * entries},
			{Kind: node.Mutex, Name: "LEAVE", Sent: 2 * entries},
			{Kind: node.Mutex, Name: "ANSWER", Received: 2 * entries},
		}
		if got := c.Stats().Messages; !reflect.DeepEqual(got, want) {
			t.Errorf("at the client: %+v, want %+v", got, want)
		}
		for _, s := range f.nodes {
			want := []node.MessageStats{
				{Kind: node.Mutex, Name: "ENTER", Received: entries},
				{Kind: node.Mutex, Name: "LEAVE", Received: entries},
				{Kind: node.Mutex, Name: "ANSWER", Sent: entries},
			}
			eventually(t, "the server has received everything", func() bool {
				return reflect.DeepEqual(s.Stats().Messages, want)
			})
		}
		eventually(t, "heartbeats are answered by both", func() bool {
			p := c.PeerStats()
			return p[0].RoundTrips.Count > 1 && p[1].RoundTrips.Count > 1
		})
		for i, p := range c.PeerStats() {
			if p.Name != f.peers[i].Name || !p.Connected || p.LastRoundTrip <= 0 {
				t.Errorf("server %d: %+v", i, p)
			}
			eventually(t, "both ends count the same bytes", func() bool {
				p, s := c.PeerStats()[i], f.nodes[i].Stats().Clients
				return p.BytesSent == s.BytesReceived && p.BytesReceived == s.BytesSent && s.BytesSent > 0
			})
		}
	})
}

// What ends a session, or a handshake, counts by its cause.
func TestCausesCounted(t *testing.T) {
	host := node.HostOf(keeper(nil))
	short := func(c *node.Config) { c.Lease, c.MaxSessions = 200*time.Millisecond, 1 }
	servers, peers := clusterAt(t, 1, false, host, short)
	s := servers[0]
	count := func(of func(node.Stats) map[string]uint64, cause string) func() bool {
		return func() bool { return of(s.Stats())[cause] > 0 }
	}
	refused := func(s node.Stats) map[string]uint64 { return s.Refused }
	ended := func(s node.Stats) map[string]uint64 { return s.SessionsEnded }

	nc, err := net.Dial("tcp", peers[0].Addr)
	if err != nil {
		t.Fatal(err)
	}
	nc.Write([]byte("GET / HTTP/1.1\r\n\r\n"))
	nc.Close()
	eventually(t, "what is no frame is refused", count(refused, "protocol"))

	start(t, node.Config{Secret: node.NewSecret(), Hosts: mutexes(node.HostOf(sigma.Algorithm)), Peers: peers})
	eventually(t, "another algorithm is refused", count(refused, "misfit"))

	var wire loopback
	c := clients(t, 1, peers, host, func(c *node.Config) { short(c); c.Dial = wire.dial })[0]
	for range 2 { // besides those with members
		start(t, node.Config{Secret: node.NewSecret(), Hosts: mutexes(host), Peers: peers})
	}
	eventually(t, "a client too many is refused", count(refused, "full"))
	wire.cut.Store(true)
	eventually(t, "the lease lapses at the server", count(ended, "lapsed"))
	eventually(t, "the lease lapses at the client", func() bool { return c.Stats().SessionsEnded["lapsed"] > 0 })
}

// A loopback is a network over which, once it is cut, nothing goes out any more.
type loopback struct{ cut atomic.Bool }

func (l *loopback) dial(ctx context.Context, p node.Peer) (net.Conn, error) {
	if l.cut.Load() {
		return nil, errors.New("cut")
	}
	nc, err := new(net.Dialer).DialContext(ctx, "tcp", p.Addr)
	return &muted{nc, l}, err
}

type muted struct {
	net.Conn
	wire *loopback
}

func (m *muted) Write(b []byte) (int, error) {
	if m.wire.cut.Load() {
		return len(b), nil
	}
	return m.Conn.Write(b)
}

// Stats of a node that is closed are the last ones.
func TestStatsAfterClose(t *testing.T) {
	host := node.HostOf(keeper(nil))
	_, peers := clusterAt(t, 1, false, host, nil)
	c := clients(t, 1, peers, host, nil)[0]
	u := newInside()
	enterLock(t, c, u)
	c.Close()
	if s := c.Stats(); s.Messages[enter].Sent != 1 {
		t.Errorf("after Close: %+v", s.Messages)
	}
}

// What a scrape costs does not depend on how many locks there are.
func TestStatsCost(t *testing.T) {
	host := node.HostOf(ownership(7))
	servers, peers := clusterAt(t, 1, false, host, nil)
	c := clients(t, 1, peers, host, nil)[0]
	cost := func() float64 { return testing.AllocsPerRun(10, func() { servers[0].Stats() }) }
	before := cost()
	u := newInside()
	const locks = 1000
	for k := range locks {
		if err := c.Try(node.Mutex, fmt.Sprint("lock-", k), u, false); err != nil {
			t.Fatal(err)
		}
		<-u.entries
	}
	if s := servers[0].Stats(); s.Supports != locks || s.Instances != locks {
		t.Errorf("%d supports in %d locks", s.Supports, s.Instances)
	}
	if after := cost(); after > before+100 {
		t.Errorf("%v allocations with %d locks, %v with none", after, locks, before)
	}
	for k := range locks { // a node that closes tells all users at once, who must not block
		c.Exit(fmt.Sprint("lock-", k))
		<-u.rem
	}
}
