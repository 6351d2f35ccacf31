package poundlock

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"time"

	"github.com/poundlock/poundlock/transport"
)

// An Election chooses one leader at a time among those who campaign. Who leads
// holds the Mutex of the same name, and is safe as its holder is: two never lead at
// once, but a leader that is stopped may act when it leads no more, which only a
// resource that compares tokens can refuse.
type Election struct {
	client *Client
	name   string
}

// Election returns the election called name, a name like that of a Mutex.
func (c *Client) Election(name string) *Election { return &Election{c, name} }

// Campaign waits until this client leads. It has the errors of Mutex.Lock; the
// same client may campaign in several goroutines, one of which leads.
func (e *Election) Campaign(ctx context.Context) (*Leadership, error) {
	g, err := e.client.Mutex(e.name).Lock(ctx)
	if err != nil {
		return nil, err
	}
	return &Leadership{g}, nil
}

// A Leadership is the time from an election to its end. The zero Leadership is none,
// and its methods panic.
type Leadership struct{ grant *Grant }

// Token is the fencing token: larger than that of every earlier leader, as
// Grant.Tokens has it.
func (l *Leadership) Token() uint64 { return l.grant.Token() }

// Context ends before anybody else can lead: with a cause that is ErrLost, or by
// Resign.
func (l *Leadership) Context() context.Context { return l.grant.Context() }

// LeaseEnd is the instant until which this client leads even if it hears from no
// server any more, as Grant.LeaseEnd.
func (l *Leadership) LeaseEnd() time.Time { return l.grant.LeaseEnd() }

// LeaveBy is the instant by which this client must have resigned a leadership that
// Config.MaxHold or an operator has ended, as Grant.LeaveBy.
func (l *Leadership) LeaveBy() time.Time { return l.grant.LeaveBy() }

// Resign ends the leadership so that the next one can begin at once. It returns
// ErrLost if it had ended before, and ErrUnlocked the second time.
func (l *Leadership) Resign() error { return l.grant.Unlock() }

// A Leader is who leads, as the servers know it. The zero Leader is nobody.
type Leader struct {
	ID    string // Client.ID
	Label string // Config.Label, "" if no server that supports it has a session with it
	// Token is what the servers that support it have recorded for it: at most that of
	// its Leadership, and smaller where they have only the time of its request. 0 where
	// they have none.
	Token uint64
}

// Leader asks the servers who leads, which may be over when it returns. It returns
// the zero Leader when nobody does, and ErrNoQuorum when ctx ended, or
// Config.QuorumWait was over, before a quorum of the servers had answered.
//
// Servers know whom they support, not who is inside, and answer one after the other.
// A client is reported as leader if a quorum supports it, whether it has heard of that
// or not, or if in two consecutive polls no other client could still get a quorum. The
// latter is mostly a leader some of whose servers have restarted, but while servers are
// down or drain it may be a client that waits. Nobody is reported where two clients
// share the servers like that.
//
// Peers (see Attach) are asked who is inside there: enough of them, this one included.
func (e *Election) Leader(ctx context.Context) (Leader, error) {
	c, err := e.ask(ctx, candidate{})
	return c.Leader, err
}

// A Holder is who holds a lock, as the servers know it. The zero Holder is nobody.
type Holder struct {
	Leader
	// Held is for how long some server has supported it, at least a moment longer than
	// the holder has known of it. Servers that restarted since have forgotten.
	Held time.Duration
	// Group is the one that it shares the lock in, as Grant.Group, "" if it is alone. Servers keep names of up to 7
	// bytes; a longer one is a ~ and 8 digits, the same for all of that group.
	Group string
}

// Holder asks the servers who holds a lock, whatever client it is, which may be over when
// it returns. It has the results and the errors of Election.Leader. Of several that share
// the lock it is the one that asked first: Holders has all. Whoever waits for
// that lock can say for whom:
//
//	waiting for lock "deploy": vm/27709 has held it for 3s
func (c *Client) Holder(ctx context.Context, lock string) (Holder, error) {
	h, err := c.ask(ctx, locks(lock), lock, candidate{})
	return h.Holder, err
}

// Holders is Holder for all who share the lock, in the order in which they asked for it. All are of one Group; one that is
// alone has none. It returns none when nobody holds the lock. Of a group that clients
// enter and leave all the time it returns those that are certain. So a program can say
//
//	waiting for lock "book": vm/27709 and 2 more have held it in shared for 3s
func (c *Client) Holders(ctx context.Context, lock string) ([]Holder, error) {
	found, err := c.askAll(ctx, locks(lock), lock, nil)
	var all []Holder
	for _, x := range found {
		all = append(all, x.Holder)
	}
	return all, err
}

// Observe yields who leads: at once, and after each election, which may give the same
// client another term. A larger Token of a term that goes on is none. Changes that follow
// each other faster than the loop comes back are left out but for the last, so
// that nothing queues up. It yields an error when the answer becomes unknown, as
// Leader has it, and goes on until ctx ends, or the client is closed or the name is
// none, which is the last error.
//
// It asks all servers again and again, about every tenth of a lease but at least
// once a second. Servers tell nothing unasked: they would have to remember who
// observes, and they forget. A crashed leader is followed by another one after a
// whole lease, so that a tenth of one more is little.
func (e *Election) Observe(ctx context.Context) iter.Seq2[Leader, error] {
	return func(yield func(Leader, error) bool) {
		pause := min(e.client.config.Lease/10, time.Second)
		var last candidate
		known, failed := false, false
		for {
			c, err := e.ask(ctx, last)
			switch {
			case ctx.Err() != nil:
				return
			case err != nil && !errors.Is(err, ErrNoQuorum): // nor will it be known later
				yield(Leader{}, err)
				return
			case err != nil && !failed:
				known, failed = false, true
				if !yield(Leader{}, err) {
					return
				}
			case err == nil:
				news := !known || c.ID != last.ID || c.request != last.request
				last, known, failed = c, true, false
				if news && !yield(c.Leader, nil) {
					return
				}
			}
			select {
			case <-time.After(pause/2 + rand.N(pause)): // not all observers at once
			case <-ctx.Done():
				return
			case <-e.client.closing:
			}
		}
	}
}

func (e *Election) ask(ctx context.Context, last candidate) (candidate, error) {
	return e.client.ask(ctx, subject{"election", []string{e.name}}, e.name, last)
}

// ask is the first one of askAll, the zero candidate if there is none.
func (c *Client) ask(ctx context.Context, what subject, lock string, last candidate) (candidate, error) {
	var before []candidate
	if last != (candidate{}) {
		before = []candidate{last}
	}
	found, err := c.askAll(ctx, what, lock, before)
	if len(found) == 0 {
		return candidate{}, err
	}
	return found[0], nil
}

// askAll polls the servers until a quorum of them has answered, and has said the same
// again where that is not sure. what is what the lock is to the caller.
func (c *Client) askAll(ctx context.Context, what subject, lock string, last []candidate) ([]candidate, error) {
	if err := transport.CheckName(lock); err != nil {
		return nil, fmt.Errorf("poundlock: %w", err)
	}
	g := c.shardOf(lock)
	bounded, cancel := context.WithTimeout(ctx, c.config.QuorumWait)
	defer cancel()
	contested := false // by two, at the last look
	for {
		begin := time.Now()
		holders, err := g.poll(bounded, lock, c.config.QuorumWait/4)
		pause := min(c.config.Lease, time.Second) / 10
		if c.closed() {
			return nil, &failure{ErrClosed, what, nil}
		}
		if err == nil {
			found, sure := g.inside(holders, last)
			nobody := len(found) == 0
			if sure || nobody && contested {
				return found, nil
			}
			// Who is about to yield has done so in a few round trips.
			last, contested = found, nobody
			pause, err = 10*time.Millisecond+2*time.Since(begin), errPatience
		}
		select {
		case <-time.After(pause):
		case <-c.closing:
		case <-bounded.Done():
			if ctx.Err() != nil && !errors.Is(err, ctx.Err()) {
				err = after(ctx.Err(), err)
			}
			return nil, &failure{g.lack, what, err}
		}
	}
}
