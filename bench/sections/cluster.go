package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/poundlock/poundlock/algo/wme"
	"github.com/poundlock/poundlock/internal/faultnet"
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

// A cluster is members in this process, with links between them.
type cluster struct {
	net    *faultnet.Net
	names  []string
	addrs  []string
	lease  time.Duration
	nodes  []*node.Node
	copies []*replica.Replica
	stores []*store
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

// startCluster starts n members whose messages take so long, and which suspect each other after a
// time.
func startCluster(n int, delay, lease time.Duration) (*cluster, error) {
	c := &cluster{
		lease: lease, nodes: make([]*node.Node, n), copies: make([]*replica.Replica, n), stores: make([]*store, n),
	}
	listeners := make([]net.Listener, n)
	var servers []faultnet.Server
	for i := range n {
		l, err := transport.Listen("127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		listeners[i] = l
		c.names = append(c.names, fmt.Sprint("s", i+1))
		c.addrs = append(c.addrs, l.Addr().String())
		servers = append(servers, faultnet.Server{Name: c.names[i], Addr: c.addrs[i]})
	}
	var err error
	if c.net, err = faultnet.NewNet(c.names, servers); err != nil {
		return nil, err
	}
	c.net.SetDelay(delay, 0)
	for i := range n {
		if err := c.start(i, listeners[i], false); err != nil {
			return nil, errors.Join(err, c.close())
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, m := range c.nodes {
		if err := m.WaitAlive(ctx, n-1); err != nil {
			return nil, errors.Join(err, c.close())
		}
	}
	return c, nil
}

// start starts a life of member i.
func (c *cluster) start(i int, l net.Listener, joins bool) (err error) {
	var peers []node.Peer
	for _, s := range c.net.Servers(c.names[i]) {
		peers = append(peers, node.Peer{Name: s.Name, Addr: s.Addr})
	}
	c.stores[i] = &store{}
	c.nodes[i], err = startMember(i, peers, l, c.lease, joins, c.stores[i])
	if err == nil {
		c.copies[i] = replica.New(c.nodes[i], object)
	}
	return err
}

// byRaft says which consensus members have: raft, not Paxos.
var byRaft bool

func startMember(i int, peers []node.Peer, l net.Listener, lease time.Duration, joins bool, s *store) (*node.Node, error) {
	host := node.HostOf(consensus.With(wme.Second))
	if byRaft {
		host = node.HostOf(raft.With(wme.Second))
	}
	return node.Start(node.Config{
		ID: protocol.ID(i), Peers: peers, Listener: l, Lease: lease, Joins: joins,
		Hosts:   map[node.Kind]node.Host{node.Replica: host},
		Objects: map[string]node.Object{object: s},
	})
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
	c.net.Cut(faultnet.Both, c.names[i:i+1], nil)
	c.net.Cut(faultnet.Both, nil, c.names[i:i+1])
}

// heal ends that.
func (c *cluster) heal() { c.net.Heal(nil, nil) }

// enter lets a user of member i enter.
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

// await waits until ok holds.
func await(what string, ok func() bool) error {
	for end := time.Now().Add(10 * patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			return fmt.Errorf("not after %v: %s", 10*patience, what)
		}
	}
	return nil
}
