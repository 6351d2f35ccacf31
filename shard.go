package poundlock

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
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
	Leased(sessions map[protocol.ID]uint64, k int) bool
	LeaseEnd(sessions map[protocol.ID]uint64, k int) time.Time
	Call(ctx context.Context, to protocol.ID, request []byte) ([]byte, error)
	WaitAlive(ctx context.Context, k int) error
	Rest() node.Rest
	Want()
	PeerStats() []node.PeerStats
	Ended(peer protocol.ID, session uint64) node.Cause
	Clock() (now time.Time, off time.Duration, steps uint64)
	Gathering() bool
	Backlog() node.Backlog
	Failure(name string) error
	Close() error
}

// shardOf is the shard that serves a lock.
func (c *Client) shardOf(lock string) *shard { return c.shards[c.all.Of(lock)] }

// Clients of several shards dial the servers of a shard when something is wanted of them: a lock, or an answer. Their sessions there end when
// nothing has been for idleLeases leases, and for leastIdle: then nobody here holds, waits for or keeps a lock of that shard.
const (
	idleLeases = 6
	leastIdle  = time.Minute
)

// idle is after which time sessions end of which nothing is wanted; 0: never.
func (c *Client) idle() time.Duration {
	if len(c.shards) == 1 || c.config.KeepSessions {
		return 0
	}
	return max(idleLeases*c.config.Lease, leastIdle)
}

// start starts the node of a shard. It keeps sessions that nothing is wanted of for idle. follows says that the client had another
// node, which has ended. answer answers the requests of its servers.
func (g *shard) start(
	secret uint64, idle time.Duration, follows bool, all slots.Shards, c Config, answer func(request []byte) []byte,
) error {
	config := all.Node(g.Shard, c.Epoch, c.ClockBound)
	config.Follows, config.EndWithConnection = follows, c.EndWithConnection
	if !c.Outlived {
		config.Process = node.ThisProcess()
	}
	config.Secret, config.TLS, config.Label, config.Log = secret, c.TLS, c.Label, c.Log
	config.Lease, config.Idle, config.ClockBound = c.Lease, idle, c.ClockBound
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

// up reports whether a quorum can be reached. One of a shard that rests is not known to be.
func (g *shard) up() bool { return g.node.Alive() >= g.enough() }

// rests reports whether this client has no need of the servers now, or is only just dialing them: nothing is wrong there that it knows of.
func (g *shard) rests() bool { return g.node.Rest() != node.Awake }

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

// nextShards is after which time without a quorum as many more shards are dialed as have been.
const nextShards = 500 * time.Millisecond

// awaitQuorum waits for a quorum of some shard, for QuorumWait. It dials one that is chosen at random, and others only
// while that has none: whoever wants a lock waits for the shard that serves it.
func (c *Client) awaitQuorum(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, c.config.QuorumWait)
	defer cancel()
	results := make(chan error, len(c.shards))
	left := c.config.QuorumWait
	if end, bounded := ctx.Deadline(); bounded {
		left = min(left, time.Until(end))
	}
	pause := min(nextShards, left/time.Duration(2*bits.Len(uint(len(c.shards)))))
	if c.idle() == 0 {
		pause = 0 // all are dialed anyway
	}
	for k, i := range rand.Perm(len(c.shards)) {
		g := c.shards[i]
		go func() {
			err := context.Cause(ctx) // who is too late gets nothing, however quick the servers are
			if err == nil {
				select {
				case <-time.After(time.Duration(bits.Len(uint(k))) * pause):
				case <-bounded.Done(): // nothing more is dialed
				case <-c.closing:
					results <- ErrClosed
					return
				}
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
// that it gave this client, which is Config.Lease at most. Unless Config.KeepSessions, a shard that this client has no
// session with because it wants nothing there counts as it was when it last did; one of which it never wanted anything does not count.
func (c *Client) Healthy() error { return c.lacks(true) }

// Available is Healthy, but enough is a quorum of any shard: then there are locks that
// can be had. The client keeps its sessions with the servers of one such shard while it is asked at least once a minute.
func (c *Client) Available() error {
	err := c.lacks(false)
	ask := c.shards // while no locks can be had it looks everywhere
	if err == nil {
		k := slices.IndexFunc(c.shards, (*shard).up)
		if k < 0 {
			k = slices.IndexFunc(c.shards, func(g *shard) bool { return g.node.Rest() == node.Resting })
		}
		ask = c.shards[max(0, k):][:1]
	}
	for _, g := range ask {
		g.node.Want()
	}
	return err
}

// lacks is what stands in the way at each shard without a quorum, nil if there is none, or, unless all are to have
// one, if another shard has one.
func (c *Client) lacks(all bool) error {
	var errs, unused []error
	found := false
	for _, g := range c.shards {
		err := g.failing()
		rest := g.node.Rest() // after that: it may have begun to rest meanwhile
		switch {
		case err == nil || rest == node.Resting:
			found = true
		case rest == node.Unused:
			unused = append(unused, err)
		default:
			errs = append(errs, err)
		}
	}
	switch {
	case c.closed():
		return ErrClosed
	case found && (len(errs) == 0 || !all):
		return nil
	case len(errs) == 0:
		errs = unused
	}
	return c.noQuorum(nil, errs)
}
