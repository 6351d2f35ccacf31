package node_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/poundlock/poundlock/internal/proctest"
	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/transport"
)

// A observer lets its user in at once and tells all others, and keeps what it hears.
type observer struct {
	notes *notes
	heard uint64
}

type notes struct {
	mu     sync.Mutex
	events []protocol.Input // but messages, whose Arg is what they say
}

func (n *notes) all() []protocol.Input {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.events)
}

func (w *observer) Step(ev protocol.Event[uint64], out *protocol.Out[uint64]) {
	w.heard++
	if ev.Kind == protocol.Receive {
		ev.Arg = ev.Msg
	}
	w.notes.mu.Lock()
	w.notes.events = append(w.notes.events, ev.Input)
	w.notes.mu.Unlock()
	switch ev.Kind {
	case protocol.Try:
		out.Broadcast(w.heard)
		out.Crit(0)
	case protocol.Exit:
		out.Rem()
	}
}

// State implements protocol.Process.
func (w *observer) State(c *protocol.Codec) { c.Uint(&w.heard) }

// observers are an algorithm whose members suspect each other, and come back; all processes of one node
// keep what they hear in one place.
func observers(n *notes) node.Host {
	return node.HostOf(protocol.Algorithm[uint64]{
		Info: protocol.Info{
			Name: "observer", Users: protocol.Members, Detector: protocol.UnreliableDetector,
			Tolerates: protocol.Crash | protocol.Recovery, Incarnations: true, Messages: []protocol.Message{{Name: "IN"}},
		},
		New: func(protocol.ID, protocol.Config) protocol.Process[uint64] { return &observer{notes: n} },
		Fields: func(v uint64, c *protocol.Codec) uint64 {
			c.Uint(&v)
			return v
		},
		KindOf: func(uint64) int { return 0 },
		Ints:   func(uint64) int { return 1 },
		Text:   func(v uint64) string { return fmt.Sprint(v) },
	})
}

// A suspicion ends nothing. A new life of a member is suspected as the old one, and restored as
// itself; and nothing of an old life comes after that.
func TestMembersSuspect(t *testing.T) {
	seen := make([]*notes, 2)
	nodes, peers := clusterAt(t, 2, false, observers(nil), func(c *node.Config) {
		seen[c.ID] = &notes{}
		c.Hosts = mutexes(observers(seen[c.ID]))
	})
	u := newProbe()
	enter := func(n *node.Node) {
		t.Helper()
		must(t, n.Try(node.Mutex, "a", u, false))
		<-u.crit
		n.Exit("a")
		<-u.rem
	}
	from := 0 // what member 0 has told before is not looked at
	await := func(what string, want ...protocol.Input) {
		t.Helper()
		eventually(t, what, func() bool {
			rest := want
			for k, e := range seen[0].all()[from:] {
				if w := rest[0]; e.Kind == w.Kind && e.From == w.From && (w.Arg == 0 || e.Arg == w.Arg) {
					rest = rest[1:]
				}
				if len(rest) == 0 {
					from += k + 1
					return true
				}
			}
			return false
		})
	}
	enter(nodes[0])
	await("the first life", protocol.Input{Kind: protocol.Start, Arg: 1})
	number := nodes[0].Sessions()[0].Number
	nodes[0].Suspect(1)
	await("a suspicion and its end", protocol.Input{Kind: protocol.Suspect, From: 1}, protocol.Input{Kind: protocol.Restore, From: 1, Arg: 1})
	if got := nodes[0].Sessions()[0].Number; got != number {
		t.Errorf("session %d follows session %d", got, number)
	}
	enter(nodes[1])
	await("a message", protocol.Input{Kind: protocol.Receive, From: 1})

	nodes[1].Close()
	l := listenAgain(t, peers[1].Addr)
	later := &notes{}
	nodes[1] = start(t, node.Config{ID: 1, Peers: peers, Listener: l, Hosts: mutexes(observers(later)), Joins: true})
	await("a new life", protocol.Input{Kind: protocol.Suspect, From: 1}, protocol.Input{
		Kind: protocol.Restore, From: 1, Arg: nodes[1].Incarnation(),
	})
	enter(nodes[1])
	await("its message", protocol.Input{Kind: protocol.Receive, From: 1})
	if got := later.all()[0]; got.Kind != protocol.Start || got.Arg != nodes[1].Incarnation() {
		t.Errorf("the new life begins with %+v", got)
	}
}

func isNot(kind protocol.Kind) func(protocol.Input) bool {
	return func(i protocol.Input) bool { return i.Kind != kind }
}

func listenAgain(t *testing.T, addr string) (l net.Listener) {
	t.Helper()
	eventually(t, "the address is free again", func() (ok bool) {
		var err error
		l, err = transport.Listen(addr)
		return err == nil
	})
	return l
}

// A life that does not follow the one before is refused, whoever of the two members dials.
func TestLivesThatDoNotFollow(t *testing.T) {
	for _, test := range []struct {
		name  string
		joins bool
		next  func(incarnation uint64) uint64
		want  string
	}{
		{"it says to be the first", false, func(i uint64) uint64 { return i + 2 }, "life of the process"},
		{"its clock was set back", true, func(i uint64) uint64 { return i&^1 - 1 }, "start of this life by its wall clock"},
	} {
		for id := range protocol.ID(2) {
			t.Run(fmt.Sprintf("member %d: %s", id, test.name), func(t *testing.T) {
				var log proctest.Log
				seen := &notes{}
				nodes, peers := clusterAt(t, 2, false, observers(nil), func(c *node.Config) {
					c.Hosts, c.Log = mutexes(observers(seen)), slog.New(slog.NewTextHandler(&log, nil))
					if c.ID == id {
						c.Hosts, c.Log = mutexes(observers(&notes{})), nil
					}
				})
				u := newProbe()
				must(t, nodes[1-id].Try(node.Mutex, "a", u, false))
				<-u.crit
				old := nodes[id].Incarnation()
				nodes[id].Close()
				n, err := node.StartAs(node.Config{
					ID: id, Peers: peers, Listener: listenAgain(t, peers[id].Addr), Joins: test.joins,
					Hosts: mutexes(observers(&notes{})),
				}, test.next(old))
				must(t, err)
				defer n.Close()
				eventually(t, "it is refused", func() bool { return strings.Contains(log.String(), test.want) })
				if all := seen.all(); len(slices.DeleteFunc(all, isNot(protocol.Restore))) > 1 {
					t.Error("it is trusted")
				}
			})
		}
	}
}

// A stranger that says to be a client finds nothing to do where members suspect each other.
func TestClientOfMembers(t *testing.T) {
	_, peers := clusterAt(t, 2, false, observers(nil), func(c *node.Config) { c.Hosts = mutexes(observers(&notes{})) })
	s := visit(t, peers[0].Addr)
	h := greeting
	h.Members, h.Kinds = "s1,s2", runs("observer")
	s.say(h.Append)
	s.until(transport.WelcomeItem)
	s.say(message(1, 1, "a"))
	s.refused(transport.Misfit)
}

// Who is silent for too long is suspected, and the others are not.
func TestSilentMember(t *testing.T) {
	seen := make([]*notes, 3)
	nodes := cluster(t, 3, false, observers(nil), func(c *node.Config) {
		seen[c.ID] = &notes{}
		c.Hosts, c.Lease = mutexes(observers(seen[c.ID])), 200*time.Millisecond
	})
	u := newProbe()
	must(t, nodes[0].Try(node.Mutex, "a", u, false))
	<-u.crit
	nodes[2].Close()
	eventually(t, "the silent one is suspected in the end, and who is not is trusted", func() bool {
		suspected := map[protocol.ID]bool{}
		for _, e := range seen[0].all() {
			if e.Kind == protocol.Suspect || e.Kind == protocol.Restore {
				suspected[e.From] = e.Kind == protocol.Suspect
			}
		}
		return suspected[2] && !suspected[1]
	})
}

// A member without leases does not wait, as it closes, for one that does not answer its hello: it owes that nothing.
func TestCloseWhileGreeting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var network memory
		deaf, err := network.Listen("s1")
		must(t, err)
		defer deaf.Close()
		go func() {
			for conn, err := deaf.Accept(); err == nil; conn, err = deaf.Accept() {
				go io.Copy(io.Discard, conn)
			}
		}()
		l, err := network.Listen("s2")
		must(t, err)
		n := start(t, node.Config{
			ID: 1, Hosts: mutexes(observers(&notes{})), Peers: []node.Peer{{Name: "s1", Addr: "s1"}, {Name: "s2", Addr: "s2"}},
			Listener: l, Boot: virtual(), Dial: func(ctx context.Context, p node.Peer) (net.Conn, error) { return network.Dial(ctx, p.Addr) },
		})
		time.Sleep(time.Second)
		began := time.Now()
		must(t, n.Close())
		if took := time.Since(began); took > 100*time.Millisecond {
			t.Errorf("closed after %v", took)
		}
	})
}
