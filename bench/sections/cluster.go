package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/poundlock/poundlock/algo/wme"
	"github.com/poundlock/poundlock/internal/faultnet"
	"github.com/poundlock/poundlock/internal/freeaddr"
	"github.com/poundlock/poundlock/internal/replica"
	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/transport"
	"github.com/poundlock/poundlock/wrap/consensus"
	"github.com/poundlock/poundlock/wrap/consensus/raft"
)

const object = "o"

// patience is how long something may take that must come at last.
const patience = time.Minute

// byRaft says which consensus members have: raft, not Paxos.
var byRaft bool

// A member is how one is started.
type member struct {
	ID    int
	Addr  string
	Peers []node.Peer
	Lease time.Duration
	Joins bool
	Raft  bool
}

// network returns members whose messages take so long, and which suspect each other after a
// time, and the links between them.
func network(n int, delay, lease time.Duration) (*faultnet.Net, []member, error) {
	addrs, err := freeaddr.Find(n)
	if err != nil {
		return nil, nil, err
	}
	names := make([]string, n)
	servers := make([]faultnet.Server, n)
	for i, addr := range addrs {
		names[i] = fmt.Sprint("s", i+1)
		servers[i] = faultnet.Server{Name: names[i], Addr: addr}
	}
	links, err := faultnet.NewNet(names, servers)
	if err != nil {
		return nil, nil, err
	}
	links.SetDelay(delay, 0)
	members := make([]member, n)
	for i, addr := range addrs {
		members[i] = member{ID: i, Addr: addr, Lease: lease, Raft: byRaft}
		for _, s := range links.Servers(names[i]) {
			members[i].Peers = append(members[i].Peers, node.Peer{Name: s.Name, Addr: s.Addr})
		}
	}
	return links, members, nil
}

func (m member) start(s *store) (*node.Node, error) {
	host := node.HostOf(consensus.With(wme.Second))
	if m.Raft {
		host = node.HostOf(raft.With(wme.Second))
	}
	l, err := transport.Listen(m.Addr)
	if err != nil {
		return nil, err
	}
	return node.Start(node.Config{
		ID: protocol.ID(m.ID), Peers: m.Peers, Listener: l, Lease: m.Lease, Joins: m.Joins,
		Hosts:   map[node.Kind]node.Host{node.Replica: host},
		Objects: map[string]node.Object{object: s},
	})
}

func (m member) met(n *node.Node) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return n.WaitAlive(ctx, len(m.Peers)-1)
}

// A cluster is members in this process, with links between them.
type cluster struct {
	net     *faultnet.Net
	members []member
	nodes   []*node.Node
	copies  []*replica.Replica
	stores  []*store
}

// A store counts how often it was installed, and how long the last snapshot took.
type store struct {
	replica.Store
	installed int
	took      time.Duration
}

func (s *store) Restore(b []byte) (func(), error) {
	replace, err := s.Store.Restore(b)
	return func() {
		s.installed++
		replace()
	}, err
}

func (s *store) Snapshot() []byte {
	began := time.Now()
	defer func() { s.took = time.Since(began) }()
	return s.Store.Snapshot()
}

func startCluster(n int, delay, lease time.Duration) (*cluster, error) {
	links, members, err := network(n, delay, lease)
	if err != nil {
		return nil, err
	}
	c := &cluster{links, members, make([]*node.Node, n), make([]*replica.Replica, n), make([]*store, n)}
	for i := range n {
		err = errors.Join(err, c.start(i))
	}
	for i := 0; i < n && err == nil; i++ {
		err = members[i].met(c.nodes[i])
	}
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// start starts a life of member i.
func (c *cluster) start(i int) (err error) {
	c.stores[i] = &store{}
	if c.nodes[i], err = c.members[i].start(c.stores[i]); err == nil {
		c.copies[i] = replica.New(c.nodes[i], object)
	}
	return err
}

func (c *cluster) close() error {
	errs := []error{c.net.Close()}
	for _, m := range c.nodes {
		if m != nil {
			errs = append(errs, m.Close())
		}
	}
	return errors.Join(errs...)
}

// isolate lets nothing pass between a member and the others any more.
func (c *cluster) isolate(i int) {
	alone := []string{c.members[i].Peers[i].Name}
	c.net.Cut(faultnet.Both, alone, nil)
	c.net.Cut(faultnet.Both, nil, alone)
}

func (c *cluster) enter(i int) (*replica.Section, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return c.copies[i].Enter(ctx)
}

func do(s *replica.Section, key string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, err := s.Do(ctx, replica.Add(key))
	return err
}

func timed(s *replica.Section, key string) (time.Duration, error) {
	began := time.Now()
	err := do(s, key)
	return time.Since(began), err
}

func await(what string, ok func() bool) error {
	for end := time.Now().Add(10 * patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			return fmt.Errorf("not after %v: %s", 10*patience, what)
		}
	}
	return nil
}
