package main

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/poundlock/poundlock/internal/cli"
	"github.com/poundlock/poundlock/internal/slots"
	"github.com/poundlock/poundlock/server"
)

// clusterStatus is what the reachable servers know, together.
type clusterStatus struct {
	Quorum      int    `json:"quorum"` // of all groups together, and so is Reachable
	Reachable   int    `json:"reachable"`
	RestartSafe bool   `json:"restart_safe"` // of any one server
	Unsafe      string `json:"restart_unsafe,omitempty"`
	Settled     bool   `json:"settled"`     // nothing is left to be made up for
	LossBudget  int    `json:"loss_budget"` // of the lock that has the least
	LockCount   int    `json:"lock_count"`
	HeldCount   int    `json:"held_count"`
	// ClockAheadMS is of this machine, if its clock is not the one that most servers have.
	ClockAheadMS int64          `json:"clock_ahead_ms,omitempty"`
	Groups       []groupStatus  `json:"groups,omitempty"`
	Servers      []serverStatus `json:"servers"`
	Clients      []clientStatus `json:"clients"`
	Locks        []lockStatus   `json:"locks"`

	groups map[string]*groupStatus // by name; without groups one, whose name is empty
	labels map[string]string       // of clients, by id
	tight  string                  // the name of the lock that has the least budget
	errors int                     // locks that some server cannot inspect
	lack   map[string]int          // supports that some holder lacks to a quorum, by group
	short  int                     // holders that can have more supports than they have
}

// settling is the age of a request, in ms, up to which its supports may be on their way
// for the first time.
const settling = 1000

type serverStatus struct {
	Name        string     `json:"name"`
	Group       string     `json:"group,omitempty"`
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

// A clientStatus is a client with a session at Servers servers.
type clientStatus struct {
	ID      string `json:"id"`
	Label   string `json:"label"`
	Servers int    `json:"servers"`
}

type lockStatus struct {
	Name    string         `json:"name"`
	Group   string         `json:"group,omitempty"`
	Kind    string         `json:"kind"`
	Holders []holderStatus `json:"holders"`
	Waiters []waiterStatus `json:"waiters"` // the one that asked first comes first; of many the first ones
	Waiting int            `json:"waiting"` // how many there are
	Errors  []string       `json:"errors,omitempty"`
}

// A holderStatus is a client that may be inside: with one live support less than
// are needed it would not be.
type holderStatus struct {
	ID             string `json:"id"`
	Label          string `json:"label,omitempty"`
	Request        string `json:"request,omitempty"` // as logs name it
	AgeMS          int64  `json:"age_ms"`
	SupportsLive   int    `json:"supports_live"`   // servers that support it and have a session with it
	SupportsNeeded int    `json:"supports_needed"` // to keep every other client below a quorum
	LossBudget     int    `json:"loss_budget"`     // how many of these servers may still lose their memory
}

type waiterStatus struct {
	ID       string `json:"id"`
	Label    string `json:"label,omitempty"`
	Request  string `json:"request,omitempty"`
	AgeMS    int64  `json:"age_ms"`
	Supports int    `json:"supports"`
}

// statusOf begins with what the answers say but for the locks.
func statusOf(answers []server.Answer) *clusterStatus {
	s := &clusterStatus{
		Servers: []serverStatus{}, Clients: []clientStatus{}, Locks: []lockStatus{},
		groups: groupsOf(answers), labels: map[string]string{}, lack: map[string]int{},
	}
	clients := map[string]*clientStatus{}
	for _, a := range answers {
		x := serverStatus{Name: a.Server.Name, Group: slots.ShardOf(a.Server.Name), Address: a.Server.Addr}
		if a.Err == nil {
			x.Reachable, x.Incarnation, x.Started = true, a.Status.Incarnation, &a.Status.Started
			x.Epoch, x.Draining = a.Status.Epoch, a.Status.Draining
			x.UptimeMS, x.LeaseMS = a.Status.UptimeMS, a.Status.LeaseMS
			x.Sessions = len(a.Status.Sessions)
		}
		s.Servers = append(s.Servers, x)
		for _, c := range a.Status.Sessions {
			if clients[c.ID] == nil {
				clients[c.ID] = &clientStatus{ID: c.ID, Label: c.Label}
				s.labels[c.ID] = c.Label
			}
			clients[c.ID].Servers++
		}
	}
	for _, c := range clients {
		s.Clients = append(s.Clients, *c)
	}
	slices.SortFunc(s.Clients, func(a, b clientStatus) int { return cmp.Compare(a.ID, b.ID) })
	s.LossBudget = math.MaxInt
	return s
}

// add counts the locks of one name, and returns them: one, unless servers disagree
// about its kind or group. same[i] is what server i knows, nil for nothing.
func (s *clusterStatus) add(same []*server.Lock) []lockStatus {
	var locks []lockStatus
	for _, of := range s.kinds(same) {
		l := s.lockOf(of, same)
		if len(l.Holders)+len(l.Waiters)+len(l.Errors) == 0 {
			continue
		}
		s.LockCount++
		for _, h := range l.Holders {
			s.HeldCount++
			if h.LossBudget < s.LossBudget {
				s.LossBudget, s.tight = h.LossBudget, l.Name
			}
			s.lack[of.group] = max(s.lack[of.group], s.groups[of.group].Quorum-h.SupportsLive)
		}
		if len(l.Errors) > 0 {
			s.errors++
		}
		locks = append(locks, l)
	}
	return locks
}

// A lockKind is what tells two locks of one name apart.
type lockKind struct{ group, kind string }

func (s *clusterStatus) kinds(same []*server.Lock) (kinds []lockKind) {
	for i, l := range same {
		if l == nil {
			continue
		}
		if k := (lockKind{s.Servers[i].Group, l.Kind}); !slices.Contains(kinds, k) {
			kinds = append(kinds, k)
		}
	}
	return kinds
}

// A claim is one client and one lock.
type claim struct {
	server.Request
	supports, live int
}

// lockOf calls the client with most live supports the holder, if it could be inside.
func (s *clusterStatus) lockOf(of lockKind, same []*server.Lock) lockStatus {
	l := lockStatus{Group: of.group, Kind: of.kind, Holders: []holderStatus{}, Waiters: []waiterStatus{}}
	var claims []*claim
	owned := 0
	note := func(r server.Request) *claim {
		i := slices.IndexFunc(claims, func(c *claim) bool { return c.ID == r.ID })
		if i < 0 {
			i = len(claims)
			claims = append(claims, &claim{Request: server.Request{ID: r.ID, Label: s.labels[r.ID]}})
		}
		c := claims[i]
		// The longest one names the user beside its client. A server without a session does not know the client.
		if c.Label == "" || r.Live && len(r.Label) > len(c.Label) {
			c.Label = r.Label
		}
		c.AgeMS = max(c.AgeMS, r.AgeMS)
		c.Request.Request = max(c.Request.Request, r.Request) // the latest, where a server knows an older one
		return c
	}
	for i, x := range same {
		if x == nil || of != (lockKind{s.Servers[i].Group, x.Kind}) {
			continue
		}
		l.Name = x.Name
		l.Waiting = max(l.Waiting, x.Waiting)
		if x.Error != "" {
			l.Errors = append(l.Errors, s.Servers[i].Name+": "+x.Error)
		}
		if x.Holder != nil {
			owned++
			c := note(*x.Holder)
			c.supports++
			if x.Holder.Live {
				c.live++
			}
		}
		for _, w := range x.Waiters {
			note(w)
		}
	}
	slices.SortStableFunc(claims, func(a, b *claim) int {
		return cmp.Or(cmp.Compare(b.live, a.live), cmp.Compare(b.AgeMS, a.AgeMS), cmp.Compare(a.ID, b.ID))
	})
	g := s.groups[of.group]
	if needed := g.needed(); len(claims) > 0 && claims[0].live >= needed {
		h := claims[0]
		// What other clients have been given may stay with them while this one is inside.
		others := owned - h.supports
		if h.AgeMS > settling && (h.live < g.Quorum || h.live+others < g.Servers) {
			s.short++
		}
		claims = claims[1:]
		l.Holders = append(l.Holders, holderStatus{
			ID: h.ID, Label: h.Label, Request: h.Request.Request, AgeMS: h.AgeMS,
			SupportsLive: h.live, SupportsNeeded: needed, LossBudget: h.live - needed,
		})
	}
	slices.SortStableFunc(claims, func(a, b *claim) int {
		return cmp.Or(cmp.Compare(b.AgeMS, a.AgeMS), cmp.Compare(a.ID, b.ID))
	})
	for _, c := range claims {
		l.Waiters = append(l.Waiters, waiterStatus{ID: c.ID, Label: c.Label, Request: c.Request.Request, AgeMS: c.AgeMS, Supports: c.supports})
	}
	l.Waiting = max(l.Waiting, len(claims))
	return l
}

// conclude notes which servers failed while the locks were listed, and judges
// whether a server may be restarted.
func (s *clusterStatus) conclude(answers []server.Answer) {
	var down, draining []string
	for i, a := range answers {
		if a.Err != nil {
			old := s.Servers[i]
			s.Servers[i] = serverStatus{Name: old.Name, Group: old.Group, Address: old.Address, Error: cli.WithoutLayer(a.Err.Error())}
			down = append(down, old.Name)
		} else if a.Status.Draining {
			draining = append(draining, a.Server.Name)
		}
	}
	s.groups = groupsOf(answers)
	s.clocks(answers)
	s.await(answers)
	small, unsettled := false, ""
	for _, name := range slices.Sorted(maps.Keys(s.groups)) {
		g := *s.groups[name]
		s.Quorum += g.Quorum
		s.Reachable += g.Reachable
		small = small || g.Servers-1 < g.Quorum
		unsettled = cmp.Or(unsettled, s.unsettled(&g))
		// A lock granted now would have no more supports than servers give theirs.
		s.LossBudget = min(s.LossBudget, max(0, g.granting-g.needed()))
		if name != "" {
			s.Groups = append(s.Groups, g)
		}
	}
	switch {
	case len(down) == 1:
		s.Unsafe = down[0] + " does not answer"
	case len(down) > 1:
		s.Unsafe = fmt.Sprintf("%d servers do not answer", len(down))
	case len(draining) == 1:
		s.Unsafe = draining[0] + " drains"
	case len(draining) > 1:
		s.Unsafe = strings.Join(draining, ", ") + " drain"
	case small:
		s.Unsafe = "without one server there is no quorum"
	case s.wrongClock() != "":
		s.Unsafe = s.wrongClock()
	case s.errors > 0:
		s.Unsafe = fmt.Sprintf("the state of %d locks is not known everywhere", s.errors)
	case s.LossBudget < 1:
		s.Unsafe = fmt.Sprintf("the holder of lock %q would lose it", s.tight)
	default:
		s.Unsafe = unsettled
	}
	s.RestartSafe = s.Unsafe == ""
	s.Settled = s.RestartSafe && s.short == 0
}
