package poundlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/poundlock/poundlock/internal/control"
	"github.com/poundlock/poundlock/internal/slots"
	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/protocol"
)

// A shard is one shard of servers: a cluster of its own, with a node of its own here,
// for the locks that hash to it. Among peers there is one, which are the others: see Attach.
type shard struct {
	slots.Shard
	quorum int // of them have to be reached
	needed int // of those that support a holder may not fail it; 0: it counts on none
	node   runtime
	info   protocol.Info                       // of the algorithm
	lack   error                               // what a call fails with that cannot reach a quorum
	own    func(lock string) []control.Request // among peers: who is inside here
}

// runtime is what a Client needs of a node.Node.
type runtime interface {
	Try(kind node.Kind, name string, u node.User, once bool) error
	Cancel(name string)
	Downgrade(name string, to protocol.Group)
	Exit(name string)
	ID() protocol.ID
	Alive() int
	Sessions() []node.Session
	LeaseEnd(sessions map[protocol.ID]uint64, k int) time.Time
	Call(ctx context.Context, to protocol.ID, request []byte) ([]byte, error)
	WaitAlive(ctx context.Context, k int) error
	PeerStats() []node.PeerStats
	Ended(peer protocol.ID, session uint64) node.Cause
	Clock() (now time.Time, off time.Duration, steps uint64)
	Gathering() bool
	Backlog() (users int, wait time.Duration)
	Failure(name string) error
	Close() error
}

// shardOf is the shard that serves a lock.
func (c *Client) shardOf(lock string) *shard { return c.shards[c.all.Of(lock)] }

// start starts the node of a shard. follows says that the client had another one, which has ended. answer answers the requests of
// its servers.
func (g *shard) start(secret uint64, follows bool, all slots.Shards, c Config, answer func(request []byte) []byte) error {
	config := all.Node(g.Shard, c.Epoch, c.ClockBound)
	config.Follows, config.EndWithConnection = follows, c.EndWithConnection
	if !c.Outlived {
		config.Process = node.ThisProcess()
	}
	config.Secret, config.TLS, config.Label, config.Log = secret, c.TLS, c.Label, c.Log
	config.Lease, config.ClockBound = c.Lease, c.ClockBound
	config.Call = func(_ protocol.ID, request []byte) []byte { return answer(request) }
	n, err := node.Start(config)
	if err != nil {
		return fmt.Errorf("poundlock: %w", err)
	}
	g.node = n
	return nil
}

// spare is how many of the servers that support a holder may fail it.
func (g *shard) spare() int { return g.needed - 1 }

// enough is how many have to be reached now: all other peers, before these have met for the first time.
func (g *shard) enough() int {
	if g.node.Gathering() {
		return len(g.Servers) - 1
	}
	return g.quorum
}

// up reports whether a quorum can be reached.
func (g *shard) up() bool { return g.node.Alive() >= g.enough() }

// failing is what each server of the shard says when fewer than a quorum can be
// reached now, else nil.
func (g *shard) failing() error {
	now, cancel := context.WithCancel(context.Background())
	cancel()
	return g.explain(g.node.WaitAlive(now, g.enough()))
}

func (g *shard) explain(err error) error {
	if err != nil && g.Name != "" {
		return fmt.Errorf("shard %s: %w", g.Name, err)
	}
	return err
}

// awaitQuorum waits for a quorum of some shard, for QuorumWait. Whoever wants a lock
// waits for the shard that serves it.
func (c *Client) awaitQuorum(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, c.config.QuorumWait)
	defer cancel()
	results := make(chan error, len(c.shards))
	for _, g := range c.shards {
		go func() {
			err := context.Cause(ctx) // who is too late gets nothing, however quick the servers are
			if err == nil {
				err = g.node.WaitAlive(bounded, g.enough())
			}
			results <- g.explain(err)
		}()
	}
	var errs []error
	found := false
	for range c.shards { // those that are not needed end at once, too
		if err := <-results; err != nil {
			errs = append(errs, err)
			continue
		}
		found = true
		cancel()
	}
	if found {
		return nil
	}
	return c.noQuorum(ctx.Err(), errs)
}

// noQuorum is ErrNoQuorum because of what ended the wait, if that is known, and with
// what stands in the way at each shard.
func (c *Client) noQuorum(over error, errs []error) error {
	why := errs[0]
	if over != nil && !errors.Is(why, over) {
		why = after(over, why)
	}
	for _, e := range errs[1:] {
		why = fmt.Errorf("%w; %w", why, e)
	}
	return &failure{kind: c.shards[0].lack, why: why}
}

// Healthy returns nil while a quorum of the servers is reachable, of every shard where
// there are several, and otherwise ErrNoQuorum with what each server said, or ErrClosed.
// It does not wait: a server that has fallen silent counts until the lease has run out
// that it gave this client, which is Config.Lease at most.
func (c *Client) Healthy() error { return c.lacks(1) }

// Available is Healthy, but enough is a quorum of any shard: then there are locks that
// can be had.
func (c *Client) Available() error { return c.lacks(len(c.shards)) }

// lacks is what stands in the way at each shard without a quorum if there are k of
// them, else nil.
func (c *Client) lacks(k int) error {
	var errs []error
	for _, g := range c.shards {
		if err := g.failing(); err != nil {
			errs = append(errs, err)
		}
	}
	switch {
	case c.closed():
		return ErrClosed
	case len(errs) < k:
		return nil
	}
	return c.noQuorum(nil, errs)
}
