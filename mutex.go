package poundlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/poundlock/poundlock/internal/slots"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/transport"
)

// A Mutex is an exclusive lock, or several that are held together. Several
// goroutines may use it: they queue here, in the order of their calls, whichever Mutex of a
// name they use. In is for a lock that holders share; RWMutex says how goroutines do.
//
// A Mutex is not reentrant. A Lock of a name that this client holds already, by
// whichever Mutex, waits until that grant is unlocked: a goroutine that holds the lock
// and calls Lock again waits for itself until its ctx ends, and TryLock fails.
type Mutex struct {
	names []string // in canonical order
	*terms
}

// terms are how somebody wants locks of a client. They never change, so that holders of many locks need one copy.
type terms struct {
	client *Client
	label  string        // of the user, "" for none
	groups []string      // with one of which its holder shares the lock, in order of preference; nil: it is alone
	keep   time.Duration // how long the client keeps the locks when it has left
	ahead  time.Duration // its head start
}

// Mutex returns the lock called name: 1 to 1024 bytes of UTF-8 without control
// characters, which Lock checks. It costs nothing until it is used.
func (c *Client) Mutex(name string) *Mutex {
	m := &struct { // in one piece
		Mutex
		name [1]string
	}{name: [1]string{name}}
	m.names, m.terms = m.name[:], &c.usual
	return &m.Mutex
}

// Locks returns the locks of these names as one: all of them are held, or none.
// They are acquired one after the other, in one canonical order (bytewise
// ascending) whatever the order here, so that two that name the same locks never
// wait for each other. Lock refuses a name that is given twice, and more than 1000.
//
// A lock that is held while a later one is awaited counts as held: towards the
// servers' budget of restarts, and for everybody else who wants it.
func (c *Client) Locks(names ...string) *Mutex {
	m := &Mutex{slices.Clone(names), &c.usual}
	slices.Sort(m.names)
	return m
}

// As returns m for a user that has a name of its own beside Config.Label, for a client
// that holds locks for many: the status, the logs and the audit of the servers show
// "LABEL: USER" as who holds the lock or waits for it. user is at most 256 bytes of UTF-8
// without control characters, which Lock checks; with "" there is none. It is no other
// lock: the users of one client exclude each other, as all do. Of users that share a hold of
// this client servers know the one whose call began it; the audit of the client knows each.
func (m *Mutex) As(user string) *Mutex { return m.with(func(t *terms) { t.label = user }) }

// In returns m for a holder that shares the locks: those of one group hold a lock together, and exclude all others. A
// group is 1 to 1024 bytes of letters, digits and signs, without commas, spaces, and any of !|=#, which Lock checks;
// with "" its holder is alone. Client.RWMutex and Client.Groups are made of it.
//
// With others the holder shares with those of any one of the groups, of which there are three at most: Grant.Group tells which one.
// It is the first one where nobody holds the lock, and another one where a group of theirs does. Of several locks
// all are held in the group of the first one.
func (m *Mutex) In(group string, others ...string) *Mutex {
	if group == "" && len(others) == 0 {
		return m.with(func(t *terms) { t.groups = nil })
	}
	return m.among(group, others)
}

// among is In for a holder that shares: "" is no group.
func (m *Mutex) among(group string, others []string) *Mutex {
	return m.with(func(t *terms) { t.groups = append([]string{group}, others...) })
}

// Keep returns m for a client that keeps the locks for d after an Unlock, at most a minute, which Lock checks; 0 is not at all. A
// Lock of the same kind and group in that time, of any goroutine of this client, is in at once and sends no message. Each grant that
// is alone has a larger token than the one before. As soon as a server says that somebody else waits, the client gives the lock
// up: that one waits a message longer than for a lock that is free.
//
// A lock that is kept counts as held for everybody else: the status shows it, it counts towards the servers' budget of restarts,
// and where this process ends without Close, others wait for its lease.
func (m *Mutex) Keep(d time.Duration) *Mutex { return m.with(func(t *terms) { t.keep = d }) }

// HeadStart returns m for requests that count as made d earlier, at most a minute, which Lock checks. At all servers such a
// request comes before those that were made up to d earlier, and after those from before that, so nobody waits for ever. It
// takes the lock from no holder. Goroutines of this client that wait for one lock are served in the order of their calls:
// the first of them asks the servers, with its own head start.
func (m *Mutex) HeadStart(d time.Duration) *Mutex { return m.with(func(t *terms) { t.ahead = d }) }

// with is m on other terms.
func (m *Mutex) with(change func(*terms)) *Mutex {
	t := *m.terms
	change(&t)
	return &Mutex{m.names, &t}
}

// Name is the name of the lock; of several, the names in canonical order with
// line feeds between them.
func (m *Mutex) Name() string { return strings.Join(m.names, "\n") }

// Lock waits for the lock. On error nothing is held. The error is
//
//   - ErrNotAcquired, wrapped with ctx's error or the reason why this process gave up: at once where ctx has a
//     deadline and so many users of this client wait for servers already that this one would miss it;
//   - ErrNoQuorum, when fewer servers than a quorum could be reached for
//     Config.QuorumWait, or until ctx ended, or when ctx ended while too few servers
//     gave locks, because others drain;
//   - ErrClosed.
//
// The end of ctx after Lock returned changes nothing; its values are those of the
// grant's context.
//
// A wait that may be long makes the servers' budget of restarts tight, which
// counts from the first request to the end of the hold: give ctx a deadline.
func (m *Mutex) Lock(ctx context.Context) (*Grant, error) {
	return m.enter(ctx, ctx, false)
}

// TryLock makes one attempt and gives up with ErrNotAcquired as soon as somebody
// else seems to come first. It waits for answers of the servers, for a second and
// six clock bounds at most, a name; straight after an Unlock, while others wait, for up to 80 ms. ErrNotAcquired does not prove that somebody
// holds the lock: two concurrent attempts at a free lock may both fail.
func (m *Mutex) TryLock(ctx context.Context) (*Grant, error) {
	return m.enter(ctx, ctx, true)
}

// Do calls f under the lock and unlocks. The context of f is the grant's, made
// from ctx: it also ends with ctx. If the lock was lost before f returned, the error is
// also ErrLost: f's own where that says so already, as after
//
//	return context.Cause(ctx)
//
// and otherwise f's with the loss behind it. f may unlock earlier.
func (m *Mutex) Do(ctx context.Context, f func(ctx context.Context, g *Grant) error) error {
	g, err := m.enter(ctx, ctx, false)
	if err != nil {
		return err
	}
	defer g.Unlock() // should f panic
	err = f(g.s.context(true), g)
	switch loss := g.Unlock(); {
	case !errors.Is(loss, ErrLost) || errors.Is(err, loss):
		return err
	case err != nil:
		return fmt.Errorf("%w: %w", err, loss)
	default:
		return loss
	}
}

// enter acquires the locks; values are those of the grant's context.
func (m *Mutex) enter(ctx, values context.Context, once bool) (*Grant, error) {
	if err := slots.CheckNames(m.names); err != nil {
		return nil, fmt.Errorf("poundlock: %w", err)
	}
	if err := transport.CheckUserLabel(m.label); err != nil {
		return nil, fmt.Errorf("poundlock: user: %w", err)
	}
	if err := slots.CheckGroups(m.groups); err != nil {
		return nil, fmt.Errorf("poundlock: %w", err)
	}
	if m.keep < 0 || m.keep > time.Minute {
		return nil, fmt.Errorf("poundlock: to keep a lock for %v: want 0 to %v", m.keep, time.Minute)
	}
	if m.ahead < 0 || m.ahead > protocol.MaxHeadStart {
		return nil, fmt.Errorf("poundlock: a head start of %v: want 0 to %v", m.ahead, time.Duration(protocol.MaxHeadStart))
	}
	if err := m.unsupported(); err != nil {
		return nil, err
	}
	if err := m.client.crowded(ctx, m.names[0], once); err != nil {
		return nil, failed(m.names[0], err)
	}
	s := newSection(values, m.terms, len(m.names))
	if s.pending.wants = protocol.Groups(strings.Join(m.groups, ",")); m.groups == nil && m.keep > 0 {
		s.pending.wants = keeper
	}
	for _, name := range m.names {
		if err := s.acquire(ctx, name, once); err != nil {
			s.leave()
			return nil, failed(name, err)
		}
	}
	if err := s.begin(); err != nil {
		s.leave()
		return nil, failed(m.names[0], err)
	}
	return &s.grant, nil
}

// crowded says that a lock would not be had in time, because more users of this client wait than servers can answer until
// then: one more would only take from the others what they need. A lock that somebody here has or wants is another matter.
func (c *Client) crowded(ctx context.Context, name string, once bool) error {
	end, bounded := ctx.Deadline()
	if !bounded && !once {
		return nil
	}
	b := c.shardOf(name).node.Backlog()
	left := c.patience()
	if bounded {
		left = time.Until(end)
	}
	// What comes all at once has gone within half of that. A load that has stood for longer will not go: then whoever waits long waits for nothing.
	share := time.Duration(2)
	if b.Stands > left/2 {
		share = 32
	}
	if b.Wait <= left/share || left <= 0 {
		return nil
	}
	c.mu.Lock()
	known := c.stays.Has(name)
	c.mu.Unlock()
	if known {
		return nil
	}
	return &tooMany{b.Users, b.Wait}
}

// A tooMany is a wait for nothing. Its text is made when it is read: there may be very many of it.
type tooMany struct {
	users int
	wait  time.Duration
}

func (e *tooMany) Error() string {
	return fmt.Sprintf("this client wants more than servers can answer in time: %d users wait already, for %v: ask less often, or wait longer",
		e.users, e.wait.Round(10*time.Millisecond))
}
