package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/poundlock/poundlock/algo/wme"
	"github.com/poundlock/poundlock/internal/counters"
	"github.com/poundlock/poundlock/internal/faultnet"
	"github.com/poundlock/poundlock/internal/freeaddr"
	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/sections"
	"github.com/poundlock/poundlock/wrap/consensus/raft"
)

const object = "o"

// patience is how long something may take that must come at last.
const patience = time.Minute

// byRaft says which consensus members have: raft, not Paxos.
var byRaft bool

// A member is how one is started.
type member struct {
	Name  string
	Addr  string
	Peers []sections.Peer
	Lease time.Duration
	Joins bool
	Raft  bool
	Dir   string // of its journal; empty: in memory
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
		members[i] = member{Name: names[i], Addr: addr, Lease: lease, Raft: byRaft}
		for _, s := range links.Servers(names[i]) {
			members[i].Peers = append(members[i].Peers, sections.Peer{Name: s.Name, Addr: s.Addr})
		}
	}
	return links, members, nil
}

// linked is network, where members reach each other without links if these would not delay.
func linked(n int, delay time.Duration) (*faultnet.Net, []member, error) {
	links, members, err := network(n, delay, 10*time.Second)
	if err != nil || delay > 0 {
		return links, members, err
	}
	for i := range members {
		for k := range members[i].Peers {
			members[i].Peers[k].Addr = members[k].Addr
		}
	}
	return links, members, nil
}

func (m member) open(s *store) (*sections.Member, error) {
	engine := sections.WME2
	if m.Raft {
		engine = node.HostOf(raft.With(wme.Second))
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return sections.Open(ctx, sections.Config{
		Name: m.Name, Members: m.Peers, Listen: m.Addr, Lease: m.Lease, Bootstrap: !m.Joins, Dir: m.Dir,
		Engine: engine, Objects: map[string]sections.Object{object: s},
	})
}

// A cluster is members in this process, with links between them.
type cluster struct {
	net     *faultnet.Net
	members []member
	opened  []*sections.Member // nil: down
	stores  []*store
}

// A store counts how often it was installed, and how long the last snapshot took.
type store struct {
	counters.Store
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
	return startMembers(links, members)
}

func startMembers(links *faultnet.Net, members []member) (*cluster, error) {
	n := len(members)
	c := &cluster{links, members, make([]*sections.Member, n), make([]*store, n)}
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { errs[i] = c.open(i) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// open starts a life of member i, and returns when it takes part.
func (c *cluster) open(i int) (err error) {
	c.stores[i] = &store{}
	c.opened[i], err = c.members[i].open(c.stores[i])
	return err
}

func (c *cluster) close() error {
	errs := []error{c.net.Close()}
	for _, m := range c.opened {
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

func (c *cluster) enter(i int) (*sections.Section, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return c.opened[i].Enter(ctx, object)
}

func do(s *sections.Section, key string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, err := s.Do(ctx, counters.Add(key))
	return err
}

func timed(s *sections.Section, key string) (time.Duration, error) {
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
