package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/poundlock/poundlock/internal/clock"
	"github.com/poundlock/poundlock/internal/faultnet"
	"github.com/poundlock/poundlock/internal/lane"
	"github.com/poundlock/poundlock/node/lease"
	"github.com/poundlock/poundlock/verify/history"
)

// A trouble is servers that are down, or a cut between the clients c1 to c4 and the
// servers s1 to s4, while c1 holds the lock and the others want it.
type trouble struct {
	name    string
	down    []int // servers, from 0
	cuts    []split
	stays   bool                // c1 keeps its lock, since n-m+1 = 2 of its servers are left; else it hears that it is lost
	enters  []string            // then some of these get in
	without map[string][]string // who is told that it has no quorum, and which servers are named
	groups  map[string]string   // of clients; who has none is alone
}

// A split lets nothing pass between some clients and some servers.
type split struct {
	direction        faultnet.Direction
	clients, servers []string
}

func names(text string) []string { return strings.Fields(text) }

var troubles = []trouble{
	{
		name:  "two servers down",
		down:  []int{2, 3},
		stays: true,
		without: map[string][]string{
			"c2": names("s3 s4"), "c3": names("s3 s4"), "c4": names("s3 s4"),
		},
	},
	{
		name: "2-2",
		cuts: []split{
			{faultnet.Both, names("c1 c2"), names("s3 s4")},
			{faultnet.Both, names("c3 c4"), names("s1 s2")},
		},
		stays: true,
		without: map[string][]string{
			"c2": names("s3 s4"), "c3": names("s1 s2"), "c4": names("s1 s2"),
		},
	},
	{
		name: "1-3, the holder with one server",
		cuts: []split{
			{faultnet.Both, names("c1 c2"), names("s2 s3 s4")},
			{faultnet.Both, names("c3 c4"), names("s1")},
		},
		enters: names("c3 c4"),
		without: map[string][]string{
			"c1": names("s2 s3 s4"), "c2": names("s2 s3 s4"),
		},
	},
	{
		name: "1-3, the holder with three servers",
		cuts: []split{
			{faultnet.Both, names("c1 c2"), names("s1")},
			{faultnet.Both, names("c3 c4"), names("s2 s3 s4")},
		},
		stays: true,
		without: map[string][]string{
			"c3": names("s2 s3 s4"), "c4": names("s2 s3 s4"),
		},
	},
	{
		name:    "the holder is not heard",
		cuts:    []split{{faultnet.Up, names("c1"), names("s2 s3 s4")}},
		enters:  names("c2 c3 c4"),
		without: map[string][]string{"c1": names("s2 s3 s4")},
	},
	{
		name:    "the holder does not hear",
		cuts:    []split{{faultnet.Down, names("c1"), names("s2 s3 s4")}},
		enters:  names("c2 c3 c4"),
		without: map[string][]string{"c1": names("s2 s3 s4")},
	},
	{
		name:  "two of three who wait are not heard, and one does not hear",
		cuts:  []split{{faultnet.Up, names("c2 c3"), names("s3 s4")}, {faultnet.Down, names("c4"), names("s1 s2")}},
		stays: true,
		without: map[string][]string{
			"c2": names("s3 s4"), "c3": names("s3 s4"), "c4": names("s1 s2"),
		},
	},
}

// A network is what the messages of clients c1 to c4 and servers s1 to s4 go through.
type network interface {
	start(t *testing.T) *cluster
	client(name string, a clientArgs) clientArgs // completed
	cut(s split)
	heal()
}

// proxies are a network on loopback, of one proxy for each client and server.
type proxies struct {
	clients []string
	flags   func(i int) []string // of servers
	env     func(i int) []string // of servers
	net     *faultnet.Net
}

// loopback is one of c1 to c4.
func loopback() *proxies { return &proxies{clients: names("c1 c2 c3 c4")} }

func (x *proxies) start(t *testing.T) *cluster {
	c := &cluster{t: t, flags: x.flags, env: x.env}
	c.startSome(4)
	var servers []faultnet.Server
	for _, entry := range c.table {
		name, addr, _ := strings.Cut(entry, "=")
		servers = append(servers, faultnet.Server{Name: name, Addr: addr})
	}
	var err error
	if x.net, err = faultnet.NewNet(x.clients, servers); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.net.Close() })
	return c
}

func (x *proxies) client(name string, a clientArgs) clientArgs {
	var table []string
	for _, s := range x.net.Servers(name) {
		table = append(table, s.Name+"="+s.Addr)
	}
	a.Servers = strings.Join(table, ",")
	return a
}

func (x *proxies) cut(s split) { x.net.Cut(s.direction, s.clients, s.servers) }
func (x *proxies) heal()       { x.net.Heal(nil, nil) }

// service is within how long after the healing everybody gets in again: two leases, and
// what the dialer may take before it notices, which is one attempt that hangs, of half a
// lease, and one back-off, of an eighth.
func service(lease time.Duration) time.Duration {
	return 2*lease + max(lease/2, 500*time.Millisecond) + lease/8
}

// A verdict is what a trouble brought to light.
type verdict struct {
	problems []string
	resource *resource
	stalled  time.Duration // some client, or this process, got no processor for so long
}

func (v *verdict) add(format string, args ...any) {
	v.problems = append(v.problems, fmt.Sprintf(format, args...))
}

// run lives through a trouble. deaf is the broken variant of a holder that does not
// hear that its lock is lost, open that of a resource that takes every token.
func (x trouble) run(t *testing.T, n network, lease time.Duration, deaf, open bool) (v verdict) {
	t.Helper()
	stalled := canary()
	c, j := n.start(t), newJournal(t)
	v.resource = newResource(t, open)
	for _, name := range names("c1 c2 c3 c4") {
		holder := name == "c1"
		j.start(n.client(name, clientArgs{
			Lease: lease, Name: "cut", Label: name, Hold: 5 * time.Millisecond,
			work: work{
				Deadline: lease / 2, Pause: 5 * time.Millisecond, Resource: v.resource.socket, Group: x.groups[name],
				Long: holder, Deaf: holder && deaf,
			},
		}))
		if holder && j.await(entered("c1", "cut", 0)) == nil {
			t.Fatal("the holder did not get the lock")
		}
	}
	c.await("all have sessions, and c1 all supports", func(s status) bool { return complete(4)(s) && supported("cut")(s) })

	for _, i := range x.down {
		c.kill(i)
	}
	for _, s := range x.cuts {
		n.cut(s)
	}
	cut := clock.Now()
	x.during(j, cut, deaf, &v)
	// Longer than a lease, so that nobody counts on a server that has forgotten it.
	time.Sleep(2*lease - since(cut))

	n.heal()
	for _, i := range x.down {
		c.start(i)
	}
	healed := clock.Now()
	j.workers["c1"].say("leave")
	for name := range j.workers {
		r := j.await(entered(name, "cut", healed))
		if r == nil {
			v.add("%s never gets in again", name)
			continue
		}
		took := time.Duration(r.At - healed)
		t.Logf("%s is in again %v after the healing, %.2f leases", name, took.Round(time.Millisecond), took.Seconds()/lease.Seconds())
		if took > service(lease) {
			v.add("%s is in again only %v after the healing, with a lease of %v", name, took, lease)
		}
	}
	h := j.end()
	x.judge(h, j.judge(), &v)
	for _, illegal := range opinion(t, operations(t, j.files), v.resource) {
		v.add("porcupine rejects %s", illegal)
	}
	v.stalled = max(h.stalled(), stalled())
	t.Logf("%s; %v", h.summary(), v.resource)
	return v
}

// during waits for what must be seen before the healing.
func (x trouble) during(j *journal, cut int64, deaf bool, v *verdict) {
	if !x.stays {
		lost := j.await(func(r record) bool { return r.Client == "c1" && r.What == "lost" })
		if lost == nil {
			v.add("c1 does not hear that its lock is lost")
		} else {
			j.t.Logf("c1 hears of the loss %v after the cut", time.Duration(lost.At-cut).Round(time.Millisecond))
		}
		next := j.await(func(r record) bool { return r.What == "entered" && r.Client != "c1" })
		switch {
		case next == nil:
			v.add("nobody gets in while c1 is cut off")
		default:
			j.t.Logf("%s enters %v after the cut", next.Client, time.Duration(next.At-cut).Round(time.Millisecond))
			if !strings.Contains(strings.Join(x.enters, " "), next.Client) {
				v.add("%s gets in, which has no quorum", next.Client)
			}
		}
	}
	for client, servers := range x.without {
		if deaf && client == "c1" {
			continue // it is inside, as it believes
		}
		// At first it may have noticed only so many that there is no quorum.
		told := j.await(func(r record) bool {
			unnamed := func(s string) bool { return !strings.Contains(r.Error, s) }
			return r.Client == client && r.What == "failed" && r.Kind == noQuorum && r.Deadline &&
				!slices.ContainsFunc(servers, unnamed)
		})
		if told == nil {
			v.add("%s is not told that it has no quorum, because of %v", client, servers)
			continue
		}
		j.t.Logf("%s: %s", client, told.Error)
	}
}

// judge looks at everything that was done.
func (x trouble) judge(h records, r *history.Report, v *verdict) {
	allowed := []string{notAcquired, noQuorum}
	if !x.stays {
		allowed = append(allowed, lockLost)
	}
	for _, found := range [][]string{problems(r), h.strange(allowed...), v.resource.problems()} {
		v.problems = append(v.problems, found...)
	}
}

// TestCuts: two of four servers down, and networks cut in two or one way. Whoever has
// too few servers is told so at its deadline, a holder before anybody else enters; and
// when the trouble is over everybody is served again.
func TestCuts(t *testing.T) {
	t.Parallel()
	lane.CI.Need(t, "twelve seconds of networks that are cut")
	testCuts(t, func(*testing.T) network { return loopback() })
}

func testCuts(t *testing.T, n func(*testing.T) network) {
	list, lease := []trouble{troubles[0], troubles[2], troubles[5]}, 1500*time.Millisecond
	if full(t, "three of the troubles, with a lease of 1.5s", "all, with a lease of 2s") {
		list, lease = troubles, 2*time.Second
	}
	for _, x := range list {
		t.Run(x.name, func(t *testing.T) {
			report(t, "problems", x.again(t, n, lease))
		})
	}
}

// again lives through a trouble once more, with twice the lease, when something was wrong
// and a client had stood still for longer than the margin of a lease: whoever gets no
// processor hears late of a loss, or loses what it holds.
func (x trouble) again(t *testing.T, n func(*testing.T) network, term time.Duration) (problems []string) {
	t.Helper()
	for k := 3; ; k-- {
		v := x.run(t, n(t), term, false, false)
		if len(v.problems) == 0 || v.stalled < lease.Margin(term) || k == 1 {
			return v.problems
		}
		t.Logf("AGAIN, because a process stood still for %v under a lease of %v: %q", v.stalled, term, v.problems)
		term *= 2
	}
}

// TestCutsNoticed: a holder that does not hear of its loss is reported by both judges, and
// refused by a resource that compares tokens; one that does not compare them loses
// increments.
func TestCutsNoticed(t *testing.T) {
	t.Parallel()
	lane.CI.Need(t, "ten seconds")
	x := troubles[2]
	testDeaf(t, x)
	x.groups = map[string]string{"c1": "red", "c3": "green", "c4": "green"}
	testDeaf(t, x)
}

func testDeaf(t *testing.T, x trouble) {
	t.Helper()
	has := func(v verdict, text string) bool { return strings.Contains(strings.Join(v.problems, "\n"), text) }
	v := x.run(t, loopback(), time.Second, true, false)
	if !has(v, "while c1 of ") || !has(v, "porcupine rejects lock") || has(v, "porcupine rejects counter") || !v.resource.hasRefused() || len(v.resource.problems()) != 0 {
		t.Errorf("a deaf holder, %v: %q", v.resource, v.problems)
	}
	v = x.run(t, loopback(), time.Second, true, true)
	if !has(v, "while c1 of ") || !has(v, "porcupine rejects lock") || !has(v, "porcupine rejects counter") ||
		!has(v, "the counter is") {
		t.Errorf("a deaf holder and a resource that takes every token, %v: %q", v.resource, v.problems)
	}
}
