package node_test

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/poundlock/poundlock/algo/sigma"
	"github.com/poundlock/poundlock/internal/faultnet"
	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/protocol"
)

// told is a host that notes the message delay that its processes are told of, 0 when
// they are told of none.
type told struct {
	node.Host
	mu    sync.Mutex
	delay time.Duration
}

func (h *told) New(id protocol.ID, c protocol.Config) node.Instance {
	h.mu.Lock()
	h.delay = time.Duration(c.Options[h.Info().Delay])
	h.mu.Unlock()
	return h.Host.New(id, c)
}

// The processes of a client are told of the delay that its heartbeats met, if it is
// longer than what they expect, and unless the configuration says what it is.
func TestDelayMeasured(t *testing.T) {
	t.Parallel()
	const lease, delay, given = time.Second, 20 * time.Millisecond, 7 * time.Millisecond
	host := node.HostOf(sigma.Algorithm)
	_, peers := clusterAt(t, 4, false, host, func(c *node.Config) { c.Lease = lease })
	var servers []faultnet.Server
	for _, p := range peers {
		servers = append(servers, faultnet.Server(p))
	}
	bad, err := faultnet.NewNet([]string{"c"}, servers)
	if err != nil {
		t.Fatal(err)
	}
	defer bad.Close()
	client := func(servers []faultnet.Server, options map[string]int64) (*node.Node, *told) {
		h := &told{Host: host}
		var peers []node.Peer
		for _, s := range servers {
			peers = append(peers, node.Peer(s))
		}
		n := start(t, node.Config{
			Secret: node.NewSecret(), Hosts: mutexes(h), Peers: peers, Lease: lease,
			System: protocol.Config{N: len(peers), Options: options},
		})
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		if err := n.WaitAlive(ctx, len(peers)); err != nil {
			t.Fatal(err)
		}
		return n, h
	}
	locks := 0
	tells := func(n *node.Node, h *told) time.Duration { // a new process
		u := newInside()
		name := fmt.Sprint("delay ", locks)
		locks++
		if err := n.Try(node.Mutex, name, u, false); err != nil {
			t.Fatal(err)
		}
		<-u.entries
		n.Exit(name)
		<-u.rem
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.delay
	}
	bad.SetDelay(delay, 0)
	c, h := client(bad.Servers("c"), nil)
	about := func() bool { got := tells(c, h); return got >= delay && got < 4*delay }
	eventually(t, "a process is told of the delay", about)
	// One server that is slow does not keep a quorum from answering.
	const slow = 5 * delay
	bad.Link("c", "s4").SetDelay(slow, 0)
	eventually(t, "the slow server has answered", func() bool { return c.PeerStats()[3].LastRoundTrip >= slow })
	eventually(t, "a process is told what is true of the others", about)
	bad.SetDelay(3*delay, 0)
	eventually(t, "a process is told of the longer delay", func() bool { return tells(c, h) >= 2*delay })
	options := map[string]int64{"delay": int64(given)}
	before := maps.Clone(options)
	c, h = client(bad.Servers("c"), options)
	if got := tells(c, h); got != given {
		t.Errorf("told %v, but the configuration says %v", got, given)
	}
	if !maps.Equal(options, before) {
		t.Errorf("the configuration was changed: %v", options)
	}
}
