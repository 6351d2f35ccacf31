package poundlock

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/poundlock/poundlock/internal/control"
	"github.com/poundlock/poundlock/internal/slots"
	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/protocol"
)

// Attach returns a client whose users are those of a member: of an algorithm whose users are the members themselves.
// Package peers makes its members with it; see there. start starts the node, with answer for its Config.Call: it
// tells other members who is inside here. Attach returns when the member takes part: when all have met, and enough
// can be reached; or when ctx ends. info is that of the algorithm, and lack is what a call fails with that cannot
// reach enough members for Config.QuorumWait. Of Config counts what is about users: no servers, and nothing of
// sessions. The client closes the node.
//
// Where members come back (protocol.Recovery) a majority of all members is enough, and a holder needs its sessions with
// a majority; and all members are needed otherwise, and by all until they have met for the first time.
func Attach(
	ctx context.Context, start func(answer func(protocol.ID, []byte) []byte) (*node.Node, error),
	info protocol.Info, lack error, c Config,
) (*Client, error) {
	if err := c.complete(); err != nil {
		return nil, err
	}
	client, attached := &Client{config: c, began: time.Now(), closing: make(chan struct{})}, make(chan struct{})
	client.usual.client = client
	n, err := start(func(_ protocol.ID, request []byte) []byte {
		<-attached
		return client.tell(request)
	})
	if err != nil {
		return nil, err
	}
	_, members := n.Table()
	g := &shard{
		Shard: slots.Shard{Servers: members}, quorum: len(members) - 1, node: n, info: info, lack: lack, own: client.standing,
	}
	if info.Majority {
		g.quorum = len(members) / 2
	}
	if info.Detector == protocol.LeaseDetector {
		g.needed = g.quorum
	}
	client.id, client.all, client.shards = n.ID(), slots.Shards{g.Shard}, []*shard{g}
	client.audit.start(client.id, client.config)
	close(attached)
	err = n.WaitMet(ctx)
	if err == nil {
		err = n.WaitAlive(ctx, g.quorum)
	}
	switch {
	case errors.Is(err, node.ErrMetBefore):
		return nil, errors.Join(err, client.closeNodes())
	case err != nil:
		return nil, errors.Join(client.noQuorum(ctx.Err(), []error{err}), client.closeNodes())
	}
	return client, nil
}

// tell answers a control request of another member. There is one: who is inside here.
func (c *Client) tell(request []byte) []byte {
	var q control.Query
	var p control.Page
	switch err := json.Unmarshal(request, &q); {
	case err != nil || q.Ask != control.OneLock:
		p.Err = fmt.Sprintf("unknown request %.40q", request)
	default:
		p.Locks = []control.Lock{{Name: string(q.Name), Sharers: c.standing(string(q.Name))}}
		for _, s := range c.shards[0].node.Sessions() { // whoever is inside has one with a majority
			p.Sessions = append(p.Sessions, control.Session{ID: idText(s.Peer)})
		}
	}
	b, err := json.Marshal(p)
	if err != nil {
		return nil // no value of this type can fail
	}
	return b
}

// standing is what users of this member hold of a lock: nothing, or one stay, with when its first user came in for the time of
// its request.
func (c *Client) standing(lock string) []control.Request {
	c.mu.Lock()
	s := c.stays.Get(lock)
	c.mu.Unlock()
	if s == nil || s.expired() {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var first *hold
	for h := range s.holds.all() {
		if h.isInside() && h.lost == nil && (first == nil || h.entered < first.entered) {
			first = h
		}
	}
	if first == nil {
		return nil
	}
	entered := c.began.Add(first.entered)
	group := s.wants
	if group == alone {
		group = ""
	}
	return []control.Request{{
		ID: idText(c.id), Request: node.RequestID(c.id, uint64(entered.UnixNano())), Group: string(group), Live: true, Token: s.token,
		Label: node.FullLabel(c.config.Label, s.label), HeldMS: time.Since(entered).Milliseconds(),
	}}
}

// unsupported says why a mutex asks for what the algorithm has not.
func (m *Mutex) unsupported() error {
	info, what := &m.client.shards[0].info, ""
	switch {
	case m.groups != nil && !info.Grouped && !info.Shares:
		what = fmt.Sprintf("groups (%q): its users are alone inside", m.groups[0])
	case len(m.groups) > 1 && !info.Several:
		what = fmt.Sprintf("choice of %d groups: its users want one at a time", len(m.groups))
	case m.keep > 0 && !info.Shares:
		what = fmt.Sprintf("locks to keep (%v): whoever asks anew needs a new token", m.keep)
	case m.ahead > 0 && !info.Early:
		what = fmt.Sprintf("head starts (%v): it serves requests in its own order", m.ahead)
	default:
		return nil
	}
	return fmt.Errorf("poundlock: %s has no %s", info.Form(), what)
}
