package node_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/poundlock/poundlock/algo/bully"
	"github.com/poundlock/poundlock/algo/ringelection"
	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/node/lease"
	"github.com/poundlock/poundlock/protocol"
)

const noLeader = protocol.ID(99)

// A poll is who leads, as each member has been told last.
type poll struct {
	t    *testing.T
	mesh mesh
	host node.Host

	mu      sync.Mutex
	nodes   []*node.Node // nil: down
	lives   []int
	leaders []protocol.ID
	epochs  []uint64
	fell    bool // an epoch was smaller than one before of the same life
}

func (p *poll) start(id int) {
	p.t.Helper()
	l, err := p.mesh.Listen(fmt.Sprint(id))
	if err != nil {
		p.t.Fatal(err)
	}
	var peers []node.Peer
	for k := range p.nodes {
		peers = append(peers, node.Peer{Name: fmt.Sprint("p", k+1), Addr: fmt.Sprint(k)})
	}
	p.epochs[id], p.leaders[id] = 0, noLeader
	n, err := node.Start(node.Config{
		ID: protocol.ID(id), Hosts: map[node.Kind]node.Host{node.Election: p.host}, Peers: peers, Listener: l, Lease: peerLease,
		Dial: p.mesh.dial(protocol.ID(id)), Boot: virtual(), Joins: p.lives[id] > 0,
		Patience: lease.Patience{First: peerLease, Step: peerLease / 2, Most: 4 * peerLease},
		Leader: func(leader protocol.ID, epoch uint64) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.fell = p.fell || epoch < p.epochs[id]
			p.leaders[id], p.epochs[id] = leader, epoch
		},
	})
	if err != nil {
		p.t.Fatal(err)
	}
	p.lives[id]++
	p.nodes[id] = n
}

// want waits until everybody has had time to notice, and checks who leads.
func (p *poll) want(what string, leaders ...protocol.ID) {
	p.t.Helper()
	time.Sleep(20 * peerLease)
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, n := range p.nodes {
		if n != nil && p.leaders[id] != leaders[id] {
			p.t.Errorf("%s: of %v the leaders are %v, want %v", what, p.host.Info().Name, p.leaders, leaders)
			return
		}
	}
}

// TestElections: all name one leader, also after it has crashed, has come back, and in each part of a system that is cut in two.
func TestElections(t *testing.T) {
	for _, host := range []node.Host{node.HostOf(bully.Algorithm), node.HostOf(ringelection.Algorithm)} {
		t.Run(host.Info().Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const n = 5
				p := &poll{
					t: t, host: host, nodes: make([]*node.Node, n), lives: make([]int, n),
					leaders: slices.Repeat([]protocol.ID{noLeader}, n), epochs: make([]uint64, n),
				}
				cut := func(cut bool, some ...protocol.ID) {
					for _, a := range some {
						for b := range protocol.ID(n) {
							if !slices.Contains(some, b) {
								p.mesh.between(a, b).Cut(cut)
							}
						}
					}
				}
				for id := range n {
					p.start(id)
				}
				p.want("at first", 4, 4, 4, 4, 4)
				cut(true, 4)
				p.nodes[4].Close()
				p.nodes[4] = nil
				cut(false, 4)
				p.want("without the leader", 3, 3, 3, 3, 0)
				p.start(4)
				p.want("with a new life", 4, 4, 4, 4, 4)
				cut(true, 0, 1)
				p.want("in two parts", 1, 1, 4, 4, 4)
				cut(false, 0, 1)
				p.want("in one again", 4, 4, 4, 4, 4)
				if p.fell {
					t.Error("an epoch is smaller than the one before")
				}
				for _, n := range p.nodes {
					n.Close()
				}
			})
		})
	}
}

// TestElectionIsNoLock: nobody enters one, and a node that elects serves no lock.
func TestElectionIsNoLock(t *testing.T) {
	l, addr := listen(t, false, 0)
	n, err := node.Start(node.Config{
		Hosts: map[node.Kind]node.Host{node.Election: node.HostOf(bully.Algorithm)},
		Peers: []node.Peer{{Name: "p1", Addr: addr}}, Listener: l,
	})
	must(t, err)
	defer n.Close()
	if err := n.Try(node.Election, "leader", newProbe(), false); err == nil || err.Error() != "node: p1 is not a user of bully" {
		t.Errorf("Try: %v", err)
	}
}
