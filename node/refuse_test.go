package node_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/poundlock/poundlock/algo/sigma"
	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/transport"
)

// full makes k of four servers of Sigma whose limit is one lock, which somebody holds,
// and returns a client that wants others.
func full(t *testing.T, k int) (f *fleet, holder, c *node.Node) {
	t.Helper()
	host := node.HostOf(sigma.Algorithm)
	f = newFleet(t, host, func(c *node.Config) {
		if int(c.ID) < k {
			c.MaxInstances = 1
		}
	})
	users := clients(t, 2, f.peers, host, nil)
	u := newProbe()
	must(t, users[0].Try(node.Mutex, "first", u, false))
	<-u.crit
	for j := range k {
		eventually(t, "the server is full", func() bool { return len(f.nodes[j].Locks()) == 1 })
	}
	return f, users[0], users[1]
}

// A server that is full is one that does not support whoever asks it. The others let
// clients in, whatever the rest of their locks is; when there is room, it supports too.
func TestOneFullServer(t *testing.T) {
	f, holder, c := full(t, 1)
	const names = 20
	for k := range 3 * names { // the same name may be tried again at once
		u := newProbe()
		name := fmt.Sprint(k % names)
		must(t, c.Try(node.Mutex, name, u, k%2 == 1))
		select {
		case <-u.crit:
		case why := <-u.rem:
			t.Fatalf("lock %s, try %d: left, %q", name, k, why)
		}
		if got := supports(c, name); slices.Contains(got, 0) {
			t.Fatalf("lock %s counts on %v", name, got)
		}
		c.Exit(name)
		<-u.rem
	}
	eventually(t, "the client keeps nothing", func() bool { return c.Stats().Instances == 0 })

	holder.Exit("first")
	eventually(t, "there is room", func() bool { return len(f.nodes[0].Locks()) == 0 })
	u := newProbe()
	must(t, c.Try(node.Mutex, "0", u, false))
	<-u.crit
	eventually(t, "all four support it", func() bool { return len(supports(c, "0")) == 4 })
	c.Exit("0")
	<-u.rem
}

// supports are the servers that a lock of a client counts on.
func supports(c *node.Node, name string) []protocol.ID {
	var all []protocol.ID
	for _, l := range c.Lock(name) {
		all = append(all, l.Standing.Supports...)
	}
	return all
}

// Two full servers of four leave too few: the user is told, and the name stays usable.
func TestTwoFullServers(t *testing.T) {
	f, holder, c := full(t, 2)
	u := newProbe()
	for range 10 {
		must(t, c.Try(node.Mutex, "second", u, false))
		if why := u.leaves(t); !strings.HasSuffix(why, ": the server is full: its limit on locks is 1") {
			t.Fatalf("refused with %q", why)
		}
	}
	eventually(t, "the client keeps nothing", func() bool { return c.Stats().Instances == 0 })
	holder.Exit("first")
	for j := range 2 {
		eventually(t, "there is room", func() bool { return len(f.nodes[j].Locks()) == 0 })
	}
	eventually(t, "the name is free", func() bool {
		must(t, c.Try(node.Mutex, "second", u, false))
		select {
		case <-u.crit:
			return true
		case <-u.rem: // by a refusal that was under way
			return false
		}
	})
}

// Who was refused asks the next life of the server, which may have room.
func TestRefusedServerComesBack(t *testing.T) {
	f, _, c := full(t, 1)
	u := newProbe()
	must(t, c.Try(node.Mutex, "second", u, false))
	<-u.crit
	must(t, f.nodes[0].Close())
	l, err := transport.Listen(f.peers[0].Addr)
	must(t, err)
	roomy := f.configs[0]
	roomy.Listener, roomy.MaxInstances = l, 0
	f.nodes[0] = start(t, roomy)
	eventually(t, "the new server supports it", func() bool { return len(supports(c, "second")) == 4 })
	c.Exit("second")
	<-u.rem
	eventually(t, "the client keeps nothing", func() bool { return c.Stats().Instances == 0 })
}

// A refusal may be of the try before: a server that answers supports after all.
func TestRefusedServerAnswers(t *testing.T) {
	t.Parallel()
	var peers []node.Peer
	var met [2]<-chan *stranger
	for k := range met {
		p := node.Peer{Name: fmt.Sprint("s", k+1)}
		p.Addr, met[k] = impostor(t, p.Name)
		peers = append(peers, p)
	}
	c := start(t, node.Config{
		Secret: node.NewSecret(), Hosts: mutexes(node.HostOf(sigma.Algorithm)), Peers: peers,
		System: protocol.Config{N: 2, Options: map[string]int64{"quorum": 1}},
	})
	must(t, c.WaitAlive(t.Context(), 2))
	s1, s2 := <-met[0], <-met[1]
	defer s1.conn.Close()
	defer s2.conn.Close()
	u := newProbe()
	must(t, c.Try(node.Mutex, "a", u, false))
	request, _, err := sigma.Algorithm.Read(s1.until(transport.MessageItem).Body)
	must(t, err)
	answer := sigma.Message{Kind: sigma.Response, Owner: c.ID(), Time: request.Time, Inc: 1, Serial: 1}
	s1.say(transport.Item{Type: transport.RefuseNameItem, Seq: 1, Kind: 1, Name: []byte("a"), Body: []byte("full")}.Append,
		transport.Item{
			Type: transport.MessageItem, Seq: 2, Kind: 1, Name: []byte("a"), Body: sigma.Algorithm.Append(nil, answer),
		}.Append)
	select {
	case <-u.crit:
	case why := <-u.rem:
		t.Errorf("left: %q", why)
	case <-time.After(patience):
		t.Error("it waits")
	}
}

// Only what asks for something is refused: a client that was refused a name would take
// the refusal of its release for that of its next try.
func TestOnlyRequestsAreRefused(t *testing.T) {
	_, peers := clusterAt(t, 1, false, node.HostOf(keeper(nil)), func(c *node.Config) { c.MaxInstances = 1 })
	s := visit(t, peers[0].Addr)
	s.say(greeting.Append)
	s.until(transport.WelcomeItem)
	s.say(message(1, 1, "held", enter))
	s.until(transport.MessageItem)
	s.say(message(2, 1, "a", leave), message(3, 1, "b", enter), message(4, 1, "b", leave),
		message(5, 1, "c", enter), message(6, 2, "held", enter))
	var refused []string
	for len(refused) < 3 {
		items, err := s.hear()
		must(t, err)
		for _, i := range items {
			if i.Type == transport.RefuseNameItem {
				refused = append(refused, string(i.Name))
			}
		}
	}
	slices.Sort(refused) // names are of different loops
	if want := []string{"b", "c", "held"}; !slices.Equal(refused, want) {
		t.Errorf("refused %q, want %q", refused, want)
	}
}
