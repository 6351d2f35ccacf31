package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/protocol"
)

// A Status is what one server knows. Ids and incarnations are hexadecimal
// strings, because JSON readers round numbers beyond 2^53.
type Status struct {
	Server      string    `json:"server"`
	Incarnation string    `json:"incarnation"` // differs between two lives of one server
	Started     time.Time `json:"started"`
	Sessions    []Session `json:"sessions"` // by id
	Locks       []Lock    `json:"locks"`    // those not idle, by name
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
	Error   string    `json:"error,omitempty"`  // why holder and waiters are not known here
}

// A Request is a client that holds or wants a lock.
type Request struct {
	ID    string `json:"id"`
	Label string `json:"label,omitempty"`  // absent when the server has no session with it
	AgeMS int64  `json:"age_ms,omitempty"` // since it asked, by two clocks; absent where unknown
}

// A query asks for one page of a Status.
type query struct {
	Ask   string `json:"ask"`             // "sessions" or "locks"
	After []byte `json:"after,omitempty"` // the Last of the page before
}

// A page is a part of a Status. Last is its last id or name; bytes, because a
// hostile client may use a name that is no text.
type page struct {
	Status
	Last []byte `json:"last,omitempty"`
	More bool   `json:"more,omitempty"`
	Err  string `json:"error,omitempty"`
}

const (
	pageBytes  = 64 << 10 // a page ends after the entry that reaches this, so that it fits into a frame
	maxWaiters = 100      // of one lock in a page
)

// answer answers a control request. It is called from the node's goroutines.
func (s *Server) answer(from protocol.ID, request []byte) []byte {
	p := page{Status: Status{
		Server:      s.config.Name,
		Incarnation: hex(s.node.Incarnation()),
		Started:     s.started,
		Sessions:    []Session{},
		Locks:       []Lock{},
	}}
	var q query
	switch err := json.Unmarshal(request, &q); {
	case err == nil && q.Ask == "sessions":
		s.listSessions(&p, from, string(q.After))
	case err == nil && q.Ask == "locks":
		s.listLocks(&p, string(q.After))
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
func (s *Server) listSessions(p *page, asks protocol.ID, after string) {
	size := 0
	for _, x := range s.node.Sessions() {
		id := hex(uint64(x.Peer))
		if id <= after || x.Peer == asks || x.Peer < protocol.ID(len(s.config.Servers)) {
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

func (s *Server) listLocks(p *page, after string) {
	labels := map[protocol.ID]string{}
	for _, x := range s.node.Sessions() {
		labels[x.Peer] = x.Label
	}
	now := time.Now().UnixNano()
	size := 0
	request := func(r protocol.Request) Request {
		x := Request{ID: hex(uint64(r.User)), Label: labels[r.User]}
		if r.Since > 0 {
			x.AgeMS = max(0, (now-r.Since)/int64(time.Millisecond))
		}
		size += 80 + len(x.Label)
		return x
	}
	for _, l := range s.node.Locks() {
		if l.Name <= after {
			continue
		}
		if p.More = size > pageBytes; p.More {
			return
		}
		lock := Lock{Name: l.Name, Kind: kindName(l.Kind), Waiters: []Request{}}
		if l.Err != nil {
			lock.Error = "server: the lock cannot be inspected, the reason is in the log"
			size += len(lock.Error)
		}
		if h := l.Standing.Holders; len(h) > 0 {
			x := request(h[0])
			lock.Holder = &x
		}
		for _, w := range l.Standing.Waiters[:min(maxWaiters, len(l.Standing.Waiters))] {
			lock.Waiters = append(lock.Waiters, request(w))
		}
		p.Locks = append(p.Locks, lock)
		p.Last = []byte(l.Name)
		size += 80 + len(l.Name)
	}
}

func kindName(k node.Kind) string {
	if k == node.Mutex {
		return "mutex"
	}
	return fmt.Sprintf("kind %d", k)
}

// hex has a fixed width, so that the order of texts is that of numbers.
func hex(v uint64) string { return fmt.Sprintf("%016x", v) }
