package node_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/poundlock/poundlock/algo/algotest/toys/announce"
	"github.com/poundlock/poundlock/algo/algotest/toys/cells"
	"github.com/poundlock/poundlock/algo/ricartagrawala"
	"github.com/poundlock/poundlock/algo/sigma"
	"github.com/poundlock/poundlock/algo/tokengme"
	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/transport"
)

// twoKinds hosts exclusive locks with Sigma, and what stands for group locks with
// the keeper.
func twoKinds() map[node.Kind]node.Host {
	return map[node.Kind]node.Host{node.Mutex: node.HostOf(sigma.Algorithm), node.Group: node.HostOf(keeper(nil))}
}

func both(c *node.Config) { c.Hosts = twoKinds() }

// leaves waits for Rem and returns the reason.
func (p *probe) leaves(t *testing.T) string {
	t.Helper()
	select {
	case why := <-p.rem:
		return why
	case <-p.crit:
		t.Fatal("it is inside")
	case <-time.After(patience):
		t.Fatal("it waits")
	}
	return ""
}

// Locks of two kinds share sessions, and exclude nobody of the other kind.
func TestKindsShareSessions(t *testing.T) {
	host := node.HostOf(sigma.Algorithm)
	servers, peers := clusterAt(t, 4, false, host, both)
	c := clients(t, 1, peers, host, both)[0]
	m, g := newProbe(), newProbe()
	must(t, c.Try(node.Mutex, "m", m, false))
	must(t, c.Try(node.Group, "g", g, false))
	<-m.crit
	<-g.crit
	if n := len(servers[0].Sessions()); n != 1 {
		t.Errorf("%d sessions", n)
	}
	eventually(t, "each name has its kind", func() bool {
		return kindsAt(servers[0]) == "g group, m mutex"
	})
	c.Exit("m")
	c.Exit("g")
	<-m.rem
	<-g.rem
	for _, n := range append(servers, c) {
		eventually(t, "idle instances go", func() bool { return len(n.Locks()) == 0 })
	}
}

func kindsAt(n *node.Node) string {
	var all []string
	for _, l := range n.Locks() {
		all = append(all, fmt.Sprint(l.Name, " ", l.Kind))
	}
	return strings.Join(all, ", ")
}

// A name that is in use as one kind is refused as another, and free for it when the
// first has left. The refusal costs nothing but this Try.
func TestNameOfAnotherKind(t *testing.T) {
	host := node.HostOf(sigma.Algorithm)
	servers, peers := clusterAt(t, 4, false, host, both)
	users := clients(t, 2, peers, host, both)
	m, other, g := newProbe(), newProbe(), newProbe()
	must(t, users[0].Try(node.Mutex, "a", m, false))
	<-m.crit
	for _, s := range servers {
		eventually(t, "every server knows it", func() bool { return kindsAt(s) == "a mutex" })
	}
	must(t, users[1].Try(node.Mutex, "b", other, false))
	<-other.crit

	must(t, users[1].Try(node.Group, "a", g, false))
	why := g.leaves(t)
	want := `lock "a" is in use as a mutex here, and was asked for as a group lock`
	if !strings.HasPrefix(why, "s") || !strings.HasSuffix(why, want) {
		t.Errorf("the reason is %q, want %q", why, want)
	}
	eventually(t, "every server has forgotten the refused one", func() bool {
		return !slices.ContainsFunc(servers, func(s *node.Node) bool { return kindsAt(s) != "a mutex, b mutex" })
	})
	users[0].Exit("a")
	<-m.rem
	// Servers hear of the exit at different times, and refusals may still be under way.
	eventually(t, "the name is free for the other kind", func() bool {
		must(t, users[1].Try(node.Group, "a", g, false))
		select {
		case <-g.crit:
			return true
		case <-g.rem:
			return false
		}
	})
	select {
	case <-other.ejected:
		t.Error("the other lock of the client is lost")
	default:
	}
	if got := len(servers[0].Sessions()); got != 2 {
		t.Errorf("%d sessions", got)
	}
	users[1].Exit("a")
	<-g.rem
}

// A server that has no algorithm for a kind refuses each name of it, and only that.
func TestKindNotServed(t *testing.T) {
	host := node.HostOf(sigma.Algorithm)
	_, peers := clusterAt(t, 4, false, host, nil)
	c := clients(t, 1, peers, host, both)[0]
	g, m := newProbe(), newProbe()
	for range 2 { // the name is not closed at the client
		must(t, c.Try(node.Group, "a", g, false))
		if why := g.leaves(t); !strings.HasSuffix(why, `lock "a" was asked for as a group lock, which is not served here`) {
			t.Errorf("the reason is %q", why)
		}
	}
	must(t, c.Try(node.Mutex, "a", m, false))
	<-m.crit
	c.Exit("a")
	<-m.rem
	if err := c.Try(node.Replica, "a", m, false); err == nil || !strings.Contains(err.Error(), "no algorithm for a replica") {
		t.Errorf("%v", err)
	}
}

// A name that does not belong to a server is refused by what Owns says.
func TestNamesOfOthers(t *testing.T) {
	host := node.HostOf(sigma.Algorithm)
	_, peers := clusterAt(t, 4, false, host, func(c *node.Config) {
		c.Owns = func(name string) error {
			if name == "theirs" {
				return fmt.Errorf("lock %q belongs to shard b, this is shard a", name)
			}
			return nil
		}
	})
	c := clients(t, 1, peers, host, nil)[0]
	u := newProbe()
	must(t, c.Try(node.Mutex, "theirs", u, false))
	if why := u.leaves(t); !strings.HasSuffix(why, `lock "theirs" belongs to shard b, this is shard a`) {
		t.Errorf("the reason is %q", why)
	}
	must(t, c.Try(node.Mutex, "ours", u, false))
	<-u.crit
	c.Exit("ours")
	<-u.rem
}

// Whatever name a client makes up, it is refused by that name, and the session goes on.
func TestStrangeNames(t *testing.T) {
	host := node.HostOf(keeper(nil))
	servers, peers := clusterAt(t, 1, false, host, nil)
	s := visit(t, peers[0].Addr)
	s.say(greeting.Append)
	s.until(transport.WelcomeItem)
	for k, test := range []struct {
		kind       uint8
		name, want string
	}{
		{1, "", "a lock needs a name"},
		{1, strings.Repeat("x", 1025), "has 1025 bytes, more than 1024"},
		{1, "a\xff", `lock name "a\xff" is not UTF-8`},
		{1, "a\nb", `lock name "a\nb" has a control character`},
		{9, "a", `lock "a" was asked for as a lock of kind 9, which is not served here`},
		{0, "\xff", `lock "\xff" was asked for as a lock of kind 0`},
	} {
		s.say(message(uint64(k+1), test.kind, test.name, enter))
		i := s.until(transport.RefuseNameItem)
		if string(i.Name) != test.name || i.Kind != test.kind || !strings.Contains(string(i.Body), test.want) {
			t.Errorf("%q of kind %d is refused as %q of kind %d: %s", test.name, test.kind, i.Name, i.Kind, i.Body)
		}
	}
	s.say(message(7, 1, "good", enter))
	s.until(transport.MessageItem)
	if got := kindsAt(servers[0]); got != "good mutex" {
		t.Errorf("the server knows %s", got)
	}
}

// Kinds that cannot share sessions are refused.
func TestHosts(t *testing.T) {
	peers := []node.Peer{{Name: "a", Addr: "127.0.0.1:1"}}
	for want, hosts := range map[string]map[node.Kind]node.Host{
		"announce does not serve locks of kind mutex": {
			node.Mutex: node.HostOf(announce.Algorithm(announce.None, protocol.NoDetector)),
		},
		"tokengme/clients: its members talk to clients and to each other": {node.Mutex: node.HostOf(tokengme.WithClients)},
		"peterson: a network has no registers":                            {node.Mutex: node.HostOf(cells.Peterson)},
		"no algorithm to host for kind group":                             {node.Mutex: node.HostOf(keeper(nil)), node.Group: nil},
		"cannot share sessions": {
			node.Mutex: node.HostOf(sigma.Algorithm), node.Group: node.HostOf(ricartagrawala.Algorithm),
		},
	} {
		n, err := node.Start(node.Config{Secret: node.NewSecret(), Hosts: hosts, Peers: peers})
		if err == nil {
			n.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	for kind, want := range map[node.Kind]string{
		node.Mutex: "mutex", node.Group: "group", node.Replica: "replica", 7: "kind 7",
	} {
		if kind.String() != want {
			t.Errorf("kind %d is called %q", uint8(kind), kind)
		}
	}
}

// An option that needs what a network has not is refused by name, at both ends.
func TestLocalOptions(t *testing.T) {
	const want = "sigma: option direct=1 does not run on a network: clients have no connections to each other"
	for _, secret := range []uint64{0, node.NewSecret()} {
		c := node.Config{
			Secret: secret, Hosts: mutexes(node.HostOf(sigma.Algorithm)), Peers: []node.Peer{{Name: "a", Addr: "127.0.0.1:1"}},
			System: protocol.Config{Options: map[string]int64{"promise": 1, "direct": 1}},
		}
		n, err := node.Start(c)
		if err == nil {
			n.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// An impostor is a member that speaks the wire by hand: it lets one client in.
func impostor(t *testing.T, name string) (addr string, met <-chan *stranger) {
	t.Helper()
	l, addr := listen(t, false, 0)
	t.Cleanup(func() { l.Close() })
	meet := make(chan *stranger, 1)
	go func() {
		defer close(meet)
		conn, err := l.Accept()
		if err != nil {
			return
		}
		s := &stranger{t, conn}
		i, err := s.hear()
		if err != nil || i[0].Type != transport.HelloItem {
			t.Errorf("%v, %v", i, err)
			return
		}
		h, err := transport.ReadHello(i[0].Body)
		if err != nil {
			t.Error(err)
			return
		}
		conn.Write(frame(transport.Welcome{
			Incarnation: 1, Session: h.Session, Lease: 10 * time.Second, Label: name,
		}.Append))
		meet <- s
	}()
	return addr, meet
}

// A refusal counts for a user that tries, of that kind and name; all others are nothing
// to a client: of names that it does not know, of a user that is inside, and of nonsense.
func TestRefusalsOfNames(t *testing.T) {
	t.Parallel()
	addr, met := impostor(t, "s1")
	c := start(t, node.Config{
		Secret: node.NewSecret(), Hosts: mutexes(node.HostOf(keeper(nil))), Peers: []node.Peer{{Name: "s1", Addr: addr}},
	})
	must(t, c.WaitAlive(t.Context(), 1))
	s := <-met
	defer s.conn.Close()
	seq := uint64(0)
	refuse := func(kind uint8, name, why string) func([]byte) []byte {
		seq++
		return transport.Item{
			Type: transport.RefuseNameItem, Seq: seq, Kind: kind, Name: []byte(name), Body: []byte(why),
		}.Append
	}
	grant := func(name string) func([]byte) []byte {
		seq++
		return message(seq, 1, name, answer)
	}
	inside, tries := newProbe(), newProbe()
	must(t, c.Try(node.Mutex, "in", inside, false))
	s.until(transport.MessageItem)
	s.say(grant("in"))
	<-inside.crit
	must(t, c.Try(node.Mutex, "try", tries, false))
	s.until(transport.MessageItem)

	s.say(refuse(1, "unknown", "no"), refuse(1, "in", "too late"), refuse(2, "try", "another kind"),
		refuse(9, "\xff", "no"), refuse(1, "", ""), refuse(1, strings.Repeat("x", 4096), "no"))
	seq += 2
	s.say(message(seq-1, 9, "odd", answer), message(seq, 2, "in", answer)) // messages that no server sends
	s.say(transport.Item{Type: transport.PingItem, Seq: 1}.Append)
	for answered := false; !answered; {
		items, err := s.hear()
		must(t, err)
		for _, i := range items {
			answered = answered || i.Type == transport.PongItem
			if i.Type == transport.RefuseNameItem {
				t.Errorf("a client refuses the name %q", i.Name)
			}
		}
	}
	s.say(refuse(1, "try", strings.Repeat("long ", 1000)))
	why := tries.leaves(t)
	if !strings.HasPrefix(why, "s1: long long ") || len(why) > 1100 {
		t.Errorf("the reason has %d bytes: %.40q", len(why), why)
	}
	must(t, c.Try(node.Mutex, "try", tries, false)) // the name is not closed
	s.until(transport.MessageItem)
	s.say(grant("try"))
	<-tries.crit
	select {
	case <-inside.ejected:
		t.Error("a user that is inside is refused")
	case why := <-inside.rem:
		t.Errorf("a user that is inside has left: %s", why)
	default:
	}
	if got := kindsAt(c); got != "in mutex, try mutex" {
		t.Errorf("the client has %s", got)
	}
}

// Where an algorithm cannot give up a Try, a refusal closes the lock at that client.
func TestRefusalWithoutCancel(t *testing.T) {
	stubborn := keeper(nil)
	stubborn.Cancels = false
	_, peers := clusterAt(t, 1, false, node.HostOf(sigma.Algorithm), nil)
	c := clients(t, 1, peers, node.HostOf(sigma.Algorithm), func(c *node.Config) {
		c.Hosts = map[node.Kind]node.Host{node.Group: node.HostOf(stubborn)}
	})[0]
	u := newProbe()
	must(t, c.Try(node.Group, "a", u, false))
	if why := u.leaves(t); !strings.Contains(why, "not served here") {
		t.Errorf("the reason is %q", why)
	}
	if err := c.Try(node.Group, "a", u, false); !errors.Is(err, node.ErrFailed) {
		t.Errorf("%v", err)
	}
}
