package node

import (
	"testing"
	"time"

	toy "github.com/poundlock/poundlock/algo/algotest/toys/sessions"
	"github.com/poundlock/poundlock/algo/sigma"
	"github.com/poundlock/poundlock/protocol"
)

// Whether sessions have leases is told without a look at each, as long as nothing can have changed: they begin and end, and leases lapse.
func TestLeased(t *testing.T) {
	var now time.Duration
	n, err := newNode(Config{
		ID: ClientID(5), Secret: 5, Boot: func() time.Duration { return now }, Lease: time.Minute,
		Peers: []Peer{{Name: "s1", Addr: "h:1"}, {Name: "s2", Addr: "h:2"}, {Name: "s3", Addr: "h:3"}}, Hosts: map[Kind]Host{Mutex: HostOf(sigma.Algorithm)},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer n.cancel()
	ss := n.sessions
	begin := func(id protocol.ID) *session {
		s := newSession(n, id, 3)
		s.agree(9, "", time.Minute, now)
		ss.stand(s)
		ss.leased.Store(nil) // as connect does
		return s
	}
	sessions := map[protocol.ID]uint64{0: 3, 1: 3, 2: 4}
	looks := func(when string, alive, want int) {
		t.Helper()
		for range 2 { // the second one knows
			if got := n.Alive(); got != alive {
				t.Errorf("%s: %d members are alive, want %d", when, got, alive)
			}
			for k := 1; k <= 3; k++ {
				if got := n.Leased(sessions, k); got != (k <= want) || got == n.LeaseEnd(sessions, k).IsZero() {
					t.Errorf("%s: %d of the sessions have leases: %v", when, k, got)
				}
			}
			ss.lapse()
			if ss.leases(now) == nil {
				t.Errorf("%s: nothing is known", when)
			}
		}
	}
	looks("before all", 0, 0)
	first := begin(0)
	looks("one session", 1, 1)
	now += 10 * time.Second
	begin(1)
	third := begin(2)
	looks("three, one of them another one", 3, 2)
	now += 45 * time.Second
	looks("shortly before the first one lapses", 3, 2)
	first.lease.Renew(now)
	now += 10 * time.Second
	if ss.leases(now) != nil {
		t.Error("what was known is believed after the end of the first lease")
	}
	looks("it was renewed", 3, 2)
	ss.end(first, errBye, nil)
	looks("the first one has ended", 2, 1)
	ss.end(third, errBye, nil)
	now += 10 * time.Second
	if n.Leased(sessions, 1) {
		t.Error("a lease counts that has lapsed")
	}
	looks("the last one has lapsed", 0, 0)
}

// Where members hold leases at each other, only they count as members that are alive, and no clients.
func TestAliveAmongClients(t *testing.T) {
	n, err := newNode(Config{
		Peers: []Peer{{Name: "s1", Addr: "h:1"}, {Name: "s2", Addr: "h:2"}, {Name: "s3", Addr: "h:3"}},
		Hosts: map[Kind]Host{Mutex: HostOf(toy.Algorithm(toy.None, false))},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer n.cancel()
	for _, id := range []protocol.ID{2, ClientID(5)} {
		s := newSession(n, id, 1)
		s.agree(5, "", time.Minute, n.c.Boot())
		n.sessions.stand(s)
	}
	for _, when := range []string{"before a look", "after it"} {
		if k := n.Alive(); k != 1 {
			t.Errorf("%s: %d members are alive, want 1", when, k)
		}
		n.sessions.lapse()
	}
}
