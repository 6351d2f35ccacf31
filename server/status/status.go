// Package status says what the answers of a cluster's servers mean together: who holds a
// lock, how many losses of memory a holder survives, whether a server may be restarted. An
// operator's command asks it, and so may a probe or a page:
//
//	c := status.Ask(ctx, observer, server.LockQuery{}, func(status.Lock) bool { return true })
//	if c.Settled {
//		// the next server may be restarted
//	}
package status

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/poundlock/poundlock/algo/quorum"
	"github.com/poundlock/poundlock/internal/control"
	"github.com/poundlock/poundlock/internal/slots"
	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/server"
)

// A Cluster is what the reachable servers know, together.
type Cluster struct {
	Quorum      int    `json:"quorum"` // of all shards together, and so is Reachable
	Reachable   int    `json:"reachable"`
	RestartSafe bool   `json:"restart_safe"` // of any one server
	Unsafe      string `json:"restart_unsafe,omitempty"`
	Settled     bool   `json:"settled"`     // nothing is left to be made up for
	LossBudget  int    `json:"loss_budget"` // of the lock that has the least
	LockCount   int    `json:"lock_count"`
	HeldCount   int    `json:"held_count"`
	// ClockAheadMS is of this machine, if its clock is not the one that most servers have.
	ClockAheadMS int64    `json:"clock_ahead_ms,omitempty"`
	Shards       []Shard  `json:"shards,omitempty"`
	Servers      []Server `json:"servers"`
	Clients      []Client `json:"clients"`
	Locks        []Lock   `json:"locks"` // those that the caller of Ask adds

	Failures []error `json:"-"` // of each of Servers, nil where it has answered

	shards map[string]*Shard // by name; without shards one, whose name is empty
	labels map[string]string // of clients, by id
	tight  string            // the name of the lock that has the least budget
	errors int               // locks that some server cannot inspect
	short  int               // holders that can have more supports than they have
}

// Settling is the age of a request up to which its supports may be on their way for the
// first time.
const Settling = time.Second

// A Server is what one server says of itself.
type Server struct {
	Name        string     `json:"name"`
	Shard       string     `json:"shard,omitempty"`
	Address     string     `json:"address"`
	Reachable   bool       `json:"reachable"`
	Epoch       uint64     `json:"epoch"` // of its slot table
	Error       string     `json:"error,omitempty"`
	Incarnation string     `json:"incarnation,omitempty"`
	Started     *time.Time `json:"started,omitempty"`
	UptimeMS    int64      `json:"uptime_ms,omitempty"`
	LeaseMS     int64      `json:"lease_ms,omitempty"` // the longest one that it grants
	Awaited     int        `json:"awaited,omitempty"`  // clients that may not have heard of its start: see await
	Draining    bool       `json:"draining,omitempty"`
	Sessions    int        `json:"sessions"`

	ClockAheadMS int64 `json:"clock_ahead_ms,omitempty"` // of the clock that most have: see clocks
	ClockStepMS  int64 `json:"clock_step_ms,omitempty"`  // by how much it was set since the server started
	ClockWrong   bool  `json:"clock_wrong,omitempty"`
}

// A Shard is one shard of servers, which has quorums of its own.
type Shard struct {
	Name      string `json:"name"`
	Servers   int    `json:"servers"`
	Quorum    int    `json:"quorum"`
	Reachable int    `json:"reachable"`

	granting int             // those of Reachable that do not drain
	lack     int             // supports that some holder lacks to a quorum
	leaseMS  int64           // the longest one that some server grants
	clients  map[string]bool // that have a session with some server
}

// needed is how many live supports keep a holder inside.
func (g *Shard) needed() int { return quorum.Silent(g.Servers, g.Quorum) + 1 }

// A Client has a session at Servers servers.
type Client struct {
	ID      string `json:"id"`
	Label   string `json:"label"`
	Servers int    `json:"servers"`
}

// A Lock is one that somebody holds or waits for.
type Lock struct {
	Name    string   `json:"name"`
	Shard   string   `json:"shard,omitempty"`
	Kind    string   `json:"kind"`
	Group   string   `json:"group,omitempty"` // that the holders share; absent: there is none, or it is alone
	Holders []Holder `json:"holders"`         // the one that asked first comes first
	Waiters []Waiter `json:"waiters"`         // the one that asked first comes first; of many the first ones
	Waiting int      `json:"waiting"`         // how many there are
	Errors  []string `json:"errors,omitempty"`
}

// A Holder is a client that may be inside: with one live support less than are needed it
// would not be. Each of those that share a lock has supports and a budget of its own.
type Holder struct {
	ID             string `json:"id"`
	Label          string `json:"label,omitempty"`
	Request        string `json:"request,omitempty"` // as logs name it
	AgeMS          int64  `json:"age_ms"`
	SupportsLive   int    `json:"supports_live"`   // servers that support it and have a session with it
	SupportsNeeded int    `json:"supports_needed"` // to keep every other client below a quorum
	LossBudget     int    `json:"loss_budget"`     // how many of these servers may still lose their memory
	Servers        int    `json:"-"`               // of the shard
}

// A Waiter is a client that waits for a lock.
type Waiter struct {
	ID       string `json:"id"`
	Label    string `json:"label,omitempty"`
	Request  string `json:"request,omitempty"`
	Group    string `json:"group,omitempty"` // that it wants to share, or any of these; absent: it wants to be alone
	AgeMS    int64  `json:"age_ms"`
	Supports int    `json:"supports"`
}

// Takes reports whether the client waits for a group, perhaps among others.
func (w *Waiter) Takes(group string) bool { return slices.Contains(strings.Split(w.Group, ","), group) }

// Ask asks the servers, and gives each lock to f, in the order of their names, until that
// returns false. Budgets and verdicts are those of all locks that the query asks for.
func Ask(ctx context.Context, o *server.Observer, q server.LockQuery, f func(Lock) bool) *Cluster {
	answers := o.Sessions(ctx)
	c := begin(answers)
	o.Locks(ctx, answers, q, func(same []*server.Lock) bool {
		return !slices.ContainsFunc(c.add(same), func(l Lock) bool { return !f(l) })
	})
	c.conclude(answers)
	return c
}

// One is the state of one lock, by those servers that serve it, and what they know beside. An
// error says that these are no quorum.
func One(ctx context.Context, o *server.Observer, name string) (Lock, *Cluster, error) {
	answers := o.Sessions(ctx)
	known := o.OneLock(ctx, answers, name)
	c := begin(answers)
	locks := c.add(known)
	c.conclude(answers)
	var table []node.Peer
	for _, a := range answers {
		table = append(table, a.Server)
	}
	shards := slots.Split(table)
	shard := shards[shards.Of(name)].Name
	if g := c.shards[shard]; g.Reachable < g.Quorum {
		return Lock{}, c, c.Unreachable()
	}
	for _, l := range locks {
		if l.Shard == shard {
			return l, c, nil
		}
	}
	return Lock{}, c, nil
}

// Unreachable is the error of a cluster some shard of which has no quorum, else nil.
func (c *Cluster) Unreachable() error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(c.shards)) {
		g := c.shards[name]
		if g.Reachable >= g.Quorum {
			continue
		}
		err := fmt.Errorf("%d of %d servers reachable, a quorum is %d", g.Reachable, g.Servers, g.Quorum)
		if name != "" {
			err = fmt.Errorf("shard %s: %w", name, err)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// begin takes from the answers what is not about locks.
func begin(answers []server.Answer) *Cluster {
	c := &Cluster{
		Servers: []Server{}, Clients: []Client{}, Locks: []Lock{}, LossBudget: math.MaxInt,
		shards: map[string]*Shard{}, labels: map[string]string{},
	}
	sessions := map[string]int{}
	for _, a := range answers {
		x := Server{Name: a.Server.Name, Shard: slots.ShardOf(a.Server.Name), Address: a.Server.Addr}
		if a.Err == nil {
			x.Reachable, x.Incarnation, x.Started = true, a.Status.Incarnation, &a.Status.Started
			x.Epoch, x.Draining = a.Status.Epoch, a.Status.Draining
			x.UptimeMS, x.LeaseMS = a.Status.UptimeMS, a.Status.LeaseMS
			x.Sessions = len(a.Status.Sessions)
		}
		c.Servers = append(c.Servers, x)
		g := c.shards[x.Shard]
		if g == nil {
			g = &Shard{Name: x.Shard, clients: map[string]bool{}}
			c.shards[x.Shard] = g
		}
		g.Servers++
		g.Quorum = slots.Quorum(g.Servers)
		for _, s := range a.Status.Sessions {
			g.clients[s.ID] = true
			if sessions[s.ID]++; sessions[s.ID] == 1 {
				c.labels[s.ID] = s.Label
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(sessions)) {
		c.Clients = append(c.Clients, Client{id, c.labels[id], sessions[id]})
	}
	return c
}

// add counts the locks of one name, and returns them: one, unless servers disagree
// about its kind or shard. same[i] is what server i knows, nil for nothing.
func (c *Cluster) add(same []*server.Lock) (locks []Lock) {
	type kind struct{ shard, kind string }
	var kinds []kind
	for i, l := range same {
		if l == nil {
			continue
		}
		of := kind{c.Servers[i].Shard, l.Kind}
		if slices.Contains(kinds, of) {
			continue
		}
		kinds = append(kinds, of)
		x := c.lock(of.shard, of.kind, same)
		if len(x.Holders)+len(x.Waiters)+len(x.Errors) == 0 {
			continue
		}
		c.LockCount++
		if len(x.Holders) > 0 {
			c.HeldCount++
		}
		for _, h := range x.Holders {
			if h.LossBudget < c.LossBudget {
				c.LossBudget, c.tight = h.LossBudget, x.Name
			}
			g := c.shards[of.shard]
			g.lack = max(g.lack, g.Quorum-h.SupportsLive)
		}
		if len(x.Errors) > 0 {
			c.errors++
		}
		locks = append(locks, x)
	}
	return locks
}

// A claim is one client and one lock.
type claim struct {
	server.Request
	supports, live int
}

// shares reports whether two claims may both be of clients that are inside.
func (x *claim) shares(y *claim) bool { return x.ID == y.ID || x.Group != "" && x.Group == y.Group }

// lock calls the client with most live supports the holder, if it could be inside, and those that share with it and
// could be inside, too.
func (c *Cluster) lock(shard, kind string, same []*server.Lock) Lock {
	l := Lock{Shard: shard, Kind: kind, Holders: []Holder{}, Waiters: []Waiter{}}
	var claims []*claim
	byID := map[string]*claim{}
	note := func(r server.Request) *claim {
		x := byID[r.ID]
		if x == nil {
			x = &claim{Request: server.Request{ID: r.ID, Label: c.labels[r.ID]}}
			byID[r.ID] = x
			claims = append(claims, x)
		}
		// The longest one names the user beside its client. A server without a session does not know the client.
		if x.Label == "" || r.Live && len(r.Label) > len(x.Label) {
			x.Label = r.Label
		}
		x.AgeMS = max(x.AgeMS, r.AgeMS)
		// The latest, where a server knows an older one. Where it waits for any of several groups it may have one already.
		if r.Request > x.Request.Request || r.Request == x.Request.Request && strings.Count(r.Group, ",") <= strings.Count(x.Group, ",") {
			x.Request.Request, x.Group = r.Request, r.Group
		}
		return x
	}
	var supported []*claim // one for each server that supports somebody
	for i, s := range same {
		if s == nil || c.Servers[i].Shard != shard || s.Kind != kind {
			continue
		}
		l.Name = s.Name
		l.Waiting = max(l.Waiting, s.Waiting)
		if s.Error != "" {
			l.Errors = append(l.Errors, c.Servers[i].Name+": "+s.Error)
		}
		for k, h := range s.Holders() {
			x := note(h)
			x.supports++
			if h.Live {
				x.live++
			}
			if k == 0 {
				supported = append(supported, x)
			}
		}
		for _, w := range s.Waiters {
			note(w)
		}
	}
	slices.SortStableFunc(claims, func(a, b *claim) int {
		return cmp.Or(cmp.Compare(b.live, a.live), cmp.Compare(b.AgeMS, a.AgeMS), cmp.Compare(a.ID, b.ID))
	})
	g := c.shards[shard]
	needed := g.needed()
	var inside, outside []*claim
	for _, x := range claims {
		if x.live >= needed && claims[0].shares(x) {
			inside = append(inside, x)
		} else {
			outside = append(outside, x)
		}
	}
	// What clients that do not share have been given may stay with them while these are inside.
	others := 0
	for _, x := range supported {
		if len(inside) > 0 && !inside[0].shares(x) {
			others++
		}
	}
	first := func(a, b *claim) int {
		return cmp.Or(control.CompareRequests(a.Request.Request, b.Request.Request), cmp.Compare(b.AgeMS, a.AgeMS), cmp.Compare(a.ID, b.ID))
	}
	slices.SortStableFunc(inside, first)
	for _, h := range inside {
		if h.AgeMS > Settling.Milliseconds() && (h.live < g.Quorum || h.live+others < g.Servers) {
			c.short++
		}
		l.Group = h.Group
		l.Holders = append(l.Holders, Holder{
			ID: h.ID, Label: h.Label, Request: h.Request.Request, AgeMS: h.AgeMS,
			SupportsLive: h.live, SupportsNeeded: needed, LossBudget: h.live - needed, Servers: g.Servers,
		})
	}
	slices.SortStableFunc(outside, first)
	for _, x := range outside {
		l.Waiters = append(l.Waiters, Waiter{x.ID, x.Label, x.Request.Request, x.Group, x.AgeMS, x.supports})
	}
	l.Waiting = max(l.Waiting, len(outside))
	return l
}

// conclude notes which servers failed while the locks were listed, and judges
// whether a server may be restarted.
func (c *Cluster) conclude(answers []server.Answer) {
	var down, draining []string
	for i, a := range answers {
		x := &c.Servers[i]
		g := c.shards[x.Shard]
		c.Failures = append(c.Failures, a.Err)
		if a.Err != nil {
			text := strings.TrimPrefix(strings.TrimPrefix(a.Err.Error(), "node: "), "server: ") // layers that no user knows
			*x = Server{Name: x.Name, Shard: x.Shard, Address: x.Address, Error: text}
			down = append(down, x.Name)
			continue
		}
		g.Reachable++
		g.leaseMS = max(g.leaseMS, x.LeaseMS)
		if x.Draining {
			draining = append(draining, x.Name)
		} else {
			g.granting++
		}
	}
	c.clocks(answers)
	c.await(answers)
	small, unsettled := false, ""
	for _, name := range slices.Sorted(maps.Keys(c.shards)) {
		g := c.shards[name]
		c.Quorum += g.Quorum
		c.Reachable += g.Reachable
		small = small || g.Servers-1 < g.Quorum
		unsettled = cmp.Or(unsettled, c.unsettled(g))
		// A lock granted now would have no more supports than servers give theirs.
		c.LossBudget = min(c.LossBudget, max(0, g.granting-g.needed()))
		if name != "" {
			c.Shards = append(c.Shards, *g)
		}
	}
	switch wrong := c.wrongClock(); {
	case len(down) == 1:
		c.Unsafe = down[0] + " does not answer"
	case len(down) > 1:
		c.Unsafe = fmt.Sprintf("%d servers do not answer", len(down))
	case len(draining) == 1:
		c.Unsafe = draining[0] + " drains"
	case len(draining) > 1:
		c.Unsafe = strings.Join(draining, ", ") + " drain"
	case small:
		c.Unsafe = "without one server there is no quorum"
	case wrong != "":
		c.Unsafe = wrong
	case c.errors > 0:
		c.Unsafe = fmt.Sprintf("the state of %d locks is not known everywhere", c.errors)
	case c.LossBudget < 1:
		c.Unsafe = fmt.Sprintf("the holder of lock %q would lose it", c.tight)
	default:
		c.Unsafe = unsettled
	}
	c.RestartSafe = c.Unsafe == ""
	c.Settled = c.RestartSafe && c.short == 0
}

// await counts for each server the clients that may still trust its life before, and
// count supports that it has forgotten. Such a client has no session with it: it ends
// the old one, for all its locks, before it asks for another. Once the server has been
// up for the longest lease, the leases of its life before are over by every clock.
// Whoever has no session with any server counts on none.
func (c *Cluster) await(answers []server.Answer) {
	for i, a := range answers {
		x := &c.Servers[i]
		g := c.shards[x.Shard]
		if !x.Reachable || x.UptimeMS > g.leaseMS {
			continue
		}
		here := map[string]bool{}
		for _, s := range a.Status.Sessions {
			here[s.ID] = true
		}
		x.Awaited = len(g.clients) - len(here)
	}
}

// unsettled says why one more restart in a shard could let two clients in: the servers
// whose last one somebody may not have heard of, and the supports that a holder lacks
// to a quorum, use up the losses that two quorums survive.
func (c *Cluster) unsettled(g *Shard) string {
	count, which := g.lack, "a holder lacks supports"
	for _, x := range c.Servers {
		if x.Shard == g.Name && x.Awaited > 0 {
			count++
			which = fmt.Sprintf("%s is up for %s, and %s not come back to it", x.Name, Age(x.UptimeMS), have(x.Awaited, "client"))
		}
	}
	if count < quorum.MemoryLosses(g.Servers, g.Quorum) {
		return ""
	}
	return which
}
