package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
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
}

// An Answer is what one server said, or why it said nothing.
type Answer struct {
	Server node.Peer
	Status Status
	Err    error
}

// Ask asks every server for its Status, all at once, until ctx ends; when a
// quorum has answered it waits only a little longer for the others. The answers
// stand in the order of the groups and names, with the addresses of the newest slot
// table that was heard of. The error is about the configuration only.
func Ask(ctx context.Context, c AskConfig) ([]Answer, error) {
	table, err := slots.Check(c.Servers, c.NoAmnesia)
	if err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	if c.ClockBound == 0 {
		c.ClockBound = slots.DefaultClockBound
	}
	groups := slots.Split(table)
	answers, errs := make([][]Answer, len(groups)), make([]error, len(groups))
	var all sync.WaitGroup
	for i := range groups {
		all.Go(func() { answers[i], errs[i] = askGroup(ctx, c, groups, i) })
	}
	all.Wait()
	return slices.Concat(answers...), errors.Join(errs...)
}

// askGroup asks the servers of one group.
func askGroup(ctx context.Context, c AskConfig, groups slots.Groups, of int) ([]Answer, error) {
	servers := groups[of].Servers
	n, err := node.Start(node.Config{
		ID:     node.NewClientID(),
		System: slots.System(len(servers), c.ClockBound),
		Hosts:  hosts(),
		Peers:  servers,
		Epoch:  c.Epoch,
		Groups: groups.String(),
		TLS:    c.TLS,
		Label:  "status",
	})
	if err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	defer n.Close()
	connect(ctx, n, len(servers))
	answers := make([]Answer, len(servers))
	var all sync.WaitGroup
	for i := range servers {
		all.Go(func() { answers[i].Status, answers[i].Err = ask(ctx, n, protocol.ID(i)) })
	}
	all.Wait()
	_, newest := n.Table()
	for i, p := range newest {
		answers[i].Server = p
	}
	return answers, nil
}

// connect waits for sessions with all k servers, and for the last ones only a
// little longer than for a quorum. It leaves a third of the time for the answers.
func connect(ctx context.Context, n *node.Node, k int) {
	if end, ok := ctx.Deadline(); ok {
		bounded, cancel := context.WithTimeout(ctx, time.Until(end)*2/3)
		defer cancel()
		ctx = bounded
	}
	if n.WaitAlive(ctx, slots.Quorum(k)) != nil {
		return // the answers say why
	}
	ctx, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	_ = n.WaitAlive(ctx, k)
}

// ask puts the pages of one server together. Locks that come or go between two
// pages may be missing, as in any list of what changes.
func ask(ctx context.Context, n *node.Node, id protocol.ID) (Status, error) {
	var whole Status
	for _, q := range []control.Query{{Ask: control.Sessions}, {Ask: control.Locks}} {
		for {
			p, err := control.Ask(ctx, n, id, q)
			if err != nil {
				return Status{}, fmt.Errorf("server: %w", err)
			}
			if whole.Incarnation != "" && whole.Incarnation != p.Incarnation {
				return Status{}, errors.New("server: restarted while it was asked")
			}
			p.Sessions = append(whole.Sessions, p.Sessions...)
			p.Locks = append(whole.Locks, p.Locks...)
			whole = p.Status
			if !p.More {
				break
			}
			if bytes.Compare(p.Last, q.After) <= 0 {
				return Status{}, errors.New("server: pages out of order")
			}
			q.After = p.Last
		}
	}
	return whole, nil
}
