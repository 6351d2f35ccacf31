package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/poundlock/poundlock/internal/control"
	"github.com/poundlock/poundlock/internal/slots"
	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/protocol"
)

// AskConfig says whom to ask.
type AskConfig struct {
	Servers    []node.Peer // the whole slot table
	NoAmnesia  bool        // allow fewer than 4 servers
	Epoch      uint64
	ClockBound time.Duration // default 50ms
	TLS        *tls.Config   // nil: plaintext. As in poundlock.Config
	// Timeout is how long to wait for servers that do not answer: for sessions with
	// them two thirds of it, and all of it for each page of an answer. Default 3s.
	Timeout time.Duration
	Label   string // who asks, for the servers' logs. Default "status"
}

// An Answer is what one server said, or why it said nothing.
type Answer struct {
	Server node.Peer
	Status Status
	Err    error

	ClockAhead time.Duration // the server's wall clock less the one here, as well as the answer tells: within RoundTrip/2
	RoundTrip  time.Duration // of the question
}

// An Observer is a client of a cluster that only asks. Its servers are numbered in
// the order of the shards and names.
type Observer struct {
	servers []observed
	nodes   []*node.Node // one a shard
	timeout time.Duration
}

// An observed server belongs to the shard of a node.
type observed struct {
	node *node.Node
	id   protocol.ID
}

// Observe starts an Observer. The error is about the configuration only.
func Observe(c AskConfig) (*Observer, error) {
	table, err := slots.Check(c.Servers, c.NoAmnesia)
	if err != nil {
		return nil, err
	}
	if c.ClockBound == 0 {
		c.ClockBound = slots.DefaultClockBound
	}
	o := &Observer{timeout: cmp.Or(c.Timeout, 3*time.Second)}
	shards := slots.Split(table)
	for _, g := range shards {
		config := shards.Node(g, c.Epoch, c.ClockBound)
		config.Secret, config.TLS, config.Label = node.NewSecret(), c.TLS, cmp.Or(c.Label, "status")
		n, err := node.Start(config)
		if err != nil {
			return nil, errors.Join(err, o.Close())
		}
		o.nodes = append(o.nodes, n)
		for id := range g.Servers {
			o.servers = append(o.servers, observed{n, protocol.ID(id)})
		}
	}
	return o, nil
}

// Close ends the sessions.
func (o *Observer) Close() error {
	var errs []error
	for _, n := range o.nodes {
		errs = append(errs, n.Close())
	}
	return errors.Join(errs...)
}

// Sessions asks every server for what it knows but for the locks, all at once, until ctx ends; when a quorum
// has answered it waits only a little longer for those whose connections fail. The answers
// stand in the order of the shards and names, with the addresses of the newest slot
// table that was heard of.
func (o *Observer) Sessions(ctx context.Context) []Answer {
	o.connect(ctx)
	answers := make([]Answer, len(o.servers))
	o.all(func(i int) {
		a := &answers[i]
		asked := time.Now()
		a.Err = o.pages(ctx, i, control.Query{Ask: control.Sessions}, func(p control.Page) bool {
			p.Sessions = append(a.Status.Sessions, p.Sessions...)
			a.Status = p.Status
			now := time.Now()
			a.RoundTrip = now.Sub(asked)
			a.ClockAhead = p.Clock.Sub(now) + a.RoundTrip/2
			asked = now
			return true
		})
	})
	for i, s := range o.servers {
		_, newest := s.node.Table()
		answers[i].Server = newest[s.id]
	}
	return answers
}

// all does f for all servers at once.
func (o *Observer) all(f func(i int)) {
	var all sync.WaitGroup
	for i := range o.servers {
		all.Go(func() { f(i) })
	}
	all.Wait()
}

// connect waits for sessions with all servers. Once a shard has a quorum, those whose
// connections fail have only a little longer. It leaves a third of the time for the answers.
func (o *Observer) connect(ctx context.Context) {
	patience := o.timeout
	if end, ok := ctx.Deadline(); ok {
		patience = min(patience, time.Until(end))
	}
	ctx, cancel := context.WithTimeout(ctx, patience*2/3)
	defer cancel()
	var all sync.WaitGroup
	for _, n := range o.nodes {
		all.Go(func() {
			_, servers := n.Table()
			if n.WaitAlive(ctx, slots.Quorum(len(servers))) != nil {
				return // the answers say why
			}
			waitAll(ctx, n, len(servers))
		})
	}
	all.Wait()
}

// waitAll waits for sessions with all servers, as long as one of them that has none may be
// about to answer, and a little longer for those whose connections fail.
func waitAll(ctx context.Context, n *node.Node, servers int) {
	for onItsWay := true; onItsWay && ctx.Err() == nil; {
		bounded, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
		var u *node.UnreachableError
		onItsWay = errors.As(n.WaitAlive(bounded, servers), &u) &&
			slices.ContainsFunc(u.Members, func(m node.MemberError) bool { return errors.Is(m.Err, node.ErrNoAnswer) })
		cancel()
	}
}

// pages gives the pages of one server to f until it returns false.
func (o *Observer) pages(ctx context.Context, i int, q control.Query, f func(control.Page) bool) error {
	return control.Pages(ctx, o.servers[i].node, o.servers[i].id, o.timeout, q, f)
}
