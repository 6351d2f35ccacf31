package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/poundlock/poundlock/internal/control"
	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/protocol"
)

// What a server tells about itself.
type (
	Status  = control.Status
	Session = control.Session
	Lock    = control.Lock
	Request = control.Request
)

// What an Observer asks of the holder of a lock, and what became of that.
type (
	Release  = control.Release
	Released = control.Released
)

// The values of Released.Outcome.
const (
	Told    = control.Told
	Gone    = control.Gone
	Unknown = control.Unknown
	Silent  = control.Silent
)

const (
	pageBytes  = 128 << 10 // a page ends after the entry that reaches this, so that it fits into a frame
	pageLocks  = 1000      // of which a page is made
	maxWaiters = 100       // of one lock in a page
)

// answer answers a control request. It is called from the node's goroutines.
func (s *Server) answer(from protocol.ID, request []byte) []byte {
	clock, off, _ := s.node.Clock()
	p := control.Page{Status: Status{
		Server:       s.config.Name,
		Epoch:        s.Epoch(),
		Incarnation:  hex(s.node.Incarnation()),
		Started:      s.started,
		UptimeMS:     time.Since(s.started).Milliseconds(),
		LeaseMS:      s.config.Lease.Milliseconds(),
		Clock:        clock,
		ClockStepMS:  off.Milliseconds(),
		ClockBoundMS: s.config.ClockBound.Milliseconds(),
		Draining:     s.node.Draining(),
		Sessions:     []Session{},
		Locks:        []Lock{},
	}}
	var q control.Query
	switch err := json.Unmarshal(request, &q); {
	case err == nil && q.Ask == control.Sessions:
		s.listSessions(&p, from, string(q.After))
	case err == nil && (q.Ask == control.Locks || q.Ask == control.OneLock):
		s.list(&p, s.node, q)
	case err == nil && q.Ask == control.ForcedRelease:
		s.release(&p, from, request)
	default:
		p.Err = fmt.Sprintf("server: unknown request %.40q", request)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(p); err != nil {
		return nil // no value of these types can fail
	}
	return b.Bytes()
}

// listSessions leaves out who asks: it came only to ask.
func (s *Server) listSessions(p *control.Page, asks protocol.ID, after string) {
	size := 0
	for _, x := range s.node.Sessions() {
		id := hex(uint64(x.Peer))
		if id <= after || x.Peer == asks || x.Peer < protocol.ID(len(s.shard.Servers)) {
			continue
		}
		if p.More = size > pageBytes; p.More {
			return
		}
		p.Sessions = append(p.Sessions, Session{ID: id, Label: x.Label})
		p.Last = []byte(id)
		size += 50 + len(x.Label)
	}
}

// A lockTable is a node.Node.
type lockTable interface {
	Lock(name string) []node.Lock
	LocksPage(node.Page) []node.Lock
}

// list lists the locks that q asks for.
func (s *Server) list(p *control.Page, table lockTable, q control.Query) {
	if q.Ask == control.OneLock {
		s.listLocks(p, table.Lock(string(q.Name)), q)
		return
	}
	most := pageLocks
	if q.Limit > 0 {
		most = min(most, q.Limit)
	}
	locks := table.LocksPage(node.Page{Prefix: string(q.Prefix), After: string(q.After), Limit: most})
	full := len(locks) == most
	if q.From != "" {
		locks = append(table.Lock(string(q.After)), locks...)
	}
	s.listLocks(p, locks, q)
	p.More = p.More || full
}

// listLocks lists locks. Of the one that the page before ended in only those holders are listed that came after: see
// control.Query.From.
func (s *Server) listLocks(p *control.Page, locks []node.Lock, q control.Query) {
	labels := map[protocol.ID]string{}
	for _, x := range s.node.Sessions() {
		labels[x.Peer] = x.Label
	}
	now := time.Now().UnixNano()
	size := 0
	request := func(l node.Lock, r protocol.Request) Request {
		// Each has a request that a Release can name, whatever time its client gave it.
		x := Request{ID: hex(uint64(r.User)), Token: r.Token, Group: r.Group, Request: node.RequestID(r.User, uint64(r.Since))}
		x.Label, x.Live = labels[r.User]
		x.Label = node.FullLabel(x.Label, l.Labels[r.User])
		if r.Since > 0 {
			x.AgeMS = max(0, (now-r.Since)/int64(time.Millisecond))
		}
		size += 170 + len(x.Label) + len(x.Group)
		return x
	}
	for _, l := range locks {
		if p.More = size > pageBytes; p.More {
			return
		}
		lock := Lock{Name: l.Name, Kind: l.Kind.String(), Waiters: []Request{}, Waiting: len(l.Standing.Waiters)}
		if l.Err != nil {
			lock.Error = "server: the lock cannot be inspected, the reason is in the log"
			size += len(lock.Error)
		}
		waiters := l.Standing.Waiters[:min(maxWaiters, len(l.Standing.Waiters))]
		holders, held := l.Standing.Holders, l.Held
		if l.Name == string(q.After) {
			k := begun(holders, q.From)
			waiters, holders, held = nil, holders[k:], held[k:]
		}
		for k, h := range holders {
			if size > pageBytes && k > 0 {
				p.More, p.Rest = true, node.RequestID(holders[k-1].User, uint64(holders[k-1].Since))
				break
			}
			x := request(l, h)
			if x.HeldMS = held[k].Milliseconds(); k == 0 {
				lock.Holder = &x
			} else {
				lock.Sharers = append(lock.Sharers, x)
			}
		}
		for _, w := range waiters {
			lock.Waiters = append(lock.Waiters, request(l, w))
		}
		p.Locks = append(p.Locks, lock)
		p.Last = []byte(l.Name)
		size += 80 + len(l.Name)
		if p.Rest != "" {
			return
		}
	}
}

// begun is how many of the holders of a lock the page before has told: up to the one with a request.
func begun(holders []protocol.Request, request string) int {
	client, since, err := control.ParseRequest(request)
	if err != nil {
		return 0
	}
	told := protocol.Stamp{Time: since, ID: client}
	k := slices.IndexFunc(holders, func(r protocol.Request) bool {
		return told.Before(protocol.Stamp{Time: uint64(r.Since), ID: r.User})
	})
	if k < 0 {
		return len(holders)
	}
	return k
}

// hex has a fixed width, so that the order of texts is that of numbers.
func hex(v uint64) string { return fmt.Sprintf("%016x", v) }
