// Package control is the form of what processes ask servers beside the locks' own
// messages: the requests of node.Call and their answers, as JSON.
package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/poundlock/poundlock/protocol"
)

// A Status is what one server knows. Ids and incarnations are hexadecimal
// strings, because JSON readers round numbers beyond 2^53.
type Status struct {
	Server       string    `json:"server"`
	Epoch        uint64    `json:"epoch"`       // of its slot table
	Incarnation  string    `json:"incarnation"` // differs between two lives of one server
	Started      time.Time `json:"started"`
	UptimeMS     int64     `json:"uptime_ms"`          // since then, by the server's clock
	LeaseMS      int64     `json:"lease_ms"`           // the longest one that it grants
	Clock        time.Time `json:"clock"`              // its wall clock, as it answered
	ClockStepMS  int64     `json:"clock_step_ms"`      // by how much that was set since it started, in all
	ClockBoundMS int64     `json:"clock_bound_ms"`     // its --clock-bound
	Draining     bool      `json:"draining,omitempty"` // it gives nothing to anybody any more, and is about to end
	Sessions     []Session `json:"sessions"`           // by id
	Locks        []Lock    `json:"locks"`              // those not idle, by name
}

// A Session is a client that holds a lease at the server.
type Session struct {
	ID    string `json:"id"`
	Label string `json:"label"`
}

// A Lock is what one server knows about one lock name.
type Lock struct {
	Name    string    `json:"name"`
	Kind    string    `json:"kind"`
	Holder  *Request  `json:"holder,omitempty"`  // whom this server supports: inside only if a quorum does
	Sharers []Request `json:"sharers,omitempty"` // whom it supports beside, later requests of one group, in their order
	Waiters []Request `json:"waiters"`           // in the order of service, the first hundred
	Waiting int       `json:"waiting"`           // how many there are
	Error   string    `json:"error,omitempty"`   // why holders and waiters are not known here
}

// Holders are all whom the server supports.
func (l *Lock) Holders() []Request {
	if l.Holder == nil {
		return l.Sharers
	}
	return append([]Request{*l.Holder}, l.Sharers...)
}

// A Request is a client that holds or wants a lock.
type Request struct {
	ID      string `json:"id"`
	Request string `json:"request,omitempty"`      // which one of the client's: node.RequestID
	Group   string `json:"group,omitempty"`        // that it shares with others or wants to: protocol.Request.Group
	Label   string `json:"label,omitempty"`        // absent when the server has no session with it
	Live    bool   `json:"live,omitempty"`         // the server has a session with it, whose lease is not over
	AgeMS   int64  `json:"age_ms,omitempty"`       // since it asked, by two clocks; absent where unknown
	HeldMS  int64  `json:"held_ms,omitempty"`      // of a holder: how long the server has supported it
	Token   uint64 `json:"token,omitempty,string"` // of its grant; absent where unknown
}

// What a Query asks for.
const (
	Sessions = "sessions"
	Locks    = "locks"
	OneLock  = "lock"
)

// A Query asks for one page of a Status.
type Query struct {
	Ask    string `json:"ask"`              // Sessions, Locks or OneLock
	Name   []byte `json:"name,omitempty"`   // of the lock, with OneLock
	Prefix []byte `json:"prefix,omitempty"` // of the names, with Locks
	After  []byte `json:"after,omitempty"`  // the Last of the page before
	From   string `json:"from,omitempty"`   // the Rest of the page before
	Limit  int    `json:"limit,omitempty"`  // how many locks at most. Default: as many as a page holds
}

// A Page is a part of a Status. Last is its last id or name, byte for byte: a name
// may hold what JSON would replace in a text.
type Page struct {
	Status
	Last     []byte    `json:"last,omitempty"`
	Rest     string    `json:"rest,omitempty"` // the last request of Sharers of the last lock, which has more of them
	More     bool      `json:"more,omitempty"`
	Err      string    `json:"error,omitempty"`
	Released *Released `json:"released,omitempty"` // the answer to a Release
}

// A Caller sends control requests: a node.Node.
type Caller interface {
	Call(ctx context.Context, to protocol.ID, request []byte) ([]byte, error)
}

// Ask asks one server for one page; q is a Query or a Release.
func Ask[Q Query | Release](ctx context.Context, c Caller, server protocol.ID, q Q) (Page, error) {
	request, err := json.Marshal(q)
	if err != nil {
		return Page{}, err
	}
	answer, err := c.Call(ctx, server, request)
	if err != nil {
		return Page{}, err
	}
	var p Page
	if err := json.Unmarshal(answer, &p); err != nil {
		return Page{}, fmt.Errorf("malformed answer: %w", err)
	}
	if p.Err != "" {
		return Page{}, errors.New(p.Err)
	}
	return p, nil
}

// Pages asks one server for all pages of an answer, each within a time, and gives them to f until that returns false. A
// lock whose holders do not fit into one page comes whole. Locks that come or go between two pages may be missing,
// as in any list of what changes, and so may holders.
func Pages(ctx context.Context, c Caller, server protocol.ID, within time.Duration, q Query, f func(Page) bool) error {
	incarnation := ""
	var open *Lock // of which there is more
	for {
		bounded, cancel := context.WithTimeout(ctx, within)
		p, err := Ask(bounded, c, server, q)
		cancel()
		if err != nil {
			return err
		}
		if incarnation != "" && incarnation != p.Incarnation {
			return errors.New("it restarted while it was asked")
		}
		incarnation = p.Incarnation
		if p.More && !q.before(&p) {
			return errors.New("its pages are out of order")
		}
		q.After, q.From = p.Last, p.Rest
		if open != nil {
			p.continues(open)
			open = nil
		}
		if p.Rest != "" {
			last := len(p.Locks) - 1
			open, p.Locks = &p.Locks[last], p.Locks[:last]
		}
		if !f(p) || !p.More {
			return nil
		}
	}
}

// before reports whether the page after q's is another one, later than that.
func (q *Query) before(p *Page) bool {
	if p.Rest == "" {
		return bytes.Compare(p.Last, q.After) > 0 || q.From != "" && bytes.Equal(p.Last, q.After)
	}
	client, since, err := ParseRequest(p.Rest)
	if err != nil || len(p.Locks) == 0 {
		return false
	}
	if q.From == "" || !bytes.Equal(p.Last, q.After) {
		return bytes.Compare(p.Last, q.After) > 0
	}
	c, s, err := ParseRequest(q.From)
	return err == nil && protocol.Stamp{Time: s, ID: c}.Before(protocol.Stamp{Time: since, ID: client})
}

// continues puts the beginning of the first lock of a page in front.
func (p *Page) continues(open *Lock) {
	if len(p.Locks) == 0 || p.Locks[0].Name != open.Name { // nobody has it any more
		p.Locks = append([]Lock{*open}, p.Locks...)
		return
	}
	open.Sharers = append(open.Sharers, p.Locks[0].Holders()...)
	p.Locks[0] = *open
}
