// Package control is the form of what processes ask servers beside the locks' own
// messages: the requests of node.Call and their answers, as JSON.
package control

import (
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
	Holder  *Request  `json:"holder,omitempty"` // whom this server supports: inside only if a quorum does
	Waiters []Request `json:"waiters"`          // in the order of service, the first hundred
	Waiting int       `json:"waiting"`          // how many there are
	Error   string    `json:"error,omitempty"`  // why holder and waiters are not known here
}

// A Request is a client that holds or wants a lock.
type Request struct {
	ID      string `json:"id"`
	Request string `json:"request,omitempty"`      // which one of the client's: node.RequestID
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
	Limit  int    `json:"limit,omitempty"`  // how many locks at most. Default: as many as a page holds
}

// A Page is a part of a Status. Last is its last id or name, byte for byte: a name
// may hold what JSON would replace in a text.
type Page struct {
	Status
	Last     []byte    `json:"last,omitempty"`
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
