package node

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"sync"

	"github.com/poundlock/poundlock/internal/limit"
	"github.com/poundlock/poundlock/transport"
)

// An origin is where sessions of clients come from: an address or, with TLS, a certificate. No origin has more of what
// there is for all than is left for the others, so that one that takes what it can keeps nobody else out: alone
// it gets half, and of k such each gets a part of k+1.
type origin struct {
	name     string // for people: "10.0.0.7", "certificate CN=deploy"
	sessions int    // under sessions.mu
	pairs    int    // of a session and a lock, see origins.pairs
}

// originsOf names the origins of a connection.
func originsOf(nc net.Conn) []string {
	names := []string{addressOf(nc)}
	if t, ok := nc.(*tls.Conn); ok {
		if shown := t.ConnectionState().PeerCertificates; len(shown) > 0 {
			names = append(names, "certificate "+principal(shown[0]))
		}
	}
	return names
}

// addressOf is the host at the other end, for all budgets that hosts share.
func addressOf(nc net.Conn) string { return limit.Host(nc.RemoteAddr().String()) }

// principal is whom a certificate is for: its URI of SPIFFE if there is one, else its subject, else its fingerprint.
func principal(c *x509.Certificate) string {
	if len(c.URIs) == 1 && c.URIs[0].Scheme == "spiffe" {
		return c.URIs[0].String()
	}
	if subject := c.Subject.String(); subject != "" {
		return subject
	}
	return fmt.Sprintf("%x", sha256.Sum256(c.Raw))
}

// origins are those of all sessions of a node.
type origins struct {
	c       *Config
	known   map[string]*origin // by name; under sessions.mu
	clients int                // that have a session; under sessions.mu

	mu    sync.Mutex // for pairs, also those of each origin and session; the last to be taken
	pairs int        // of a client and a lock that it holds or wants, as far as the loops know
}

// mayBegin says why no more sessions may begin here from these origins. sessions.mu is held.
func (o *origins) mayBegin(names []string) *transport.Refuse {
	free := o.c.MaxSessions - o.clients
	if free <= 0 {
		return &transport.Refuse{Code: transport.Full, What: fmt.Sprintf("%d sessions are the limit", o.c.MaxSessions)}
	}
	for _, name := range names {
		from := o.known[name]
		switch most := o.c.MaxSessionsOfOne; {
		case from == nil:
		case most > 0 && from.sessions >= most:
			return &transport.Refuse{Code: transport.Full, What: fmt.Sprintf("%d sessions from %s are the limit", from.sessions, name)}
		case most == 0 && from.sessions >= free:
			return &transport.Refuse{
				Code: transport.Full,
				What: fmt.Sprintf("%d sessions from %s are the limit: no more than that are left for others", from.sessions, name),
			}
		}
	}
	return nil
}

// come counts a session that begins. sessions.mu is held.
func (o *origins) come(s *session) {
	if !s.n.roles.isMember(s.id) {
		o.clients++
	}
	for _, name := range s.from {
		from := o.known[name]
		if from == nil {
			from = &origin{name: name}
			o.known[name] = from
		}
		from.sessions++
		s.origins = append(s.origins, from)
	}
}

// goAway counts a session that has ended. sessions.mu is held.
func (o *origins) goAway(s *session) {
	if !s.n.roles.isMember(s.id) {
		o.clients--
	}
	for _, from := range s.origins {
		if from.sessions--; from.sessions == 0 {
			delete(o.known, from.name)
		}
	}
}

// count returns how many pairs of a client and a lock there are.
func (o *origins) count() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.pairs
}

// pair counts that the peer of a session has so many locks more, or less, to do with. What members have is not limited.
func (o *origins) pair(s *session, k int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.add(s, k)
}

// admit counts that a client of a session has one lock more to do with, or says why it may not.
func (o *origins) admit(s *session) (why string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if why = o.crowded(s); why == "" {
		o.add(s, 1)
	}
	return why
}

// add counts; mu is held.
func (o *origins) add(s *session, k int) {
	if s.n.roles.isMember(s.id) {
		return
	}
	s.pairs += k
	o.pairs += k
	for _, from := range s.origins {
		from.pairs += k
	}
}

// crowded says why a client of a session may want no more locks. mu is held.
func (o *origins) crowded(s *session) string {
	if s.n.roles.isMember(s.id) {
		return ""
	}
	if s.pairs >= o.c.MaxLocks {
		return fmt.Sprintf("a client may hold or want %d locks at once, and this one does", o.c.MaxLocks)
	}
	most := o.c.MaxWaiters
	if o.pairs >= most {
		return fmt.Sprintf("the server is full: its limit on clients that hold or wait for a lock is %d", most)
	}
	for _, from := range s.origins {
		if from.pairs > 0 && from.pairs >= most-o.pairs {
			return fmt.Sprintf("the server is full for %s: its limit on clients that hold or wait for a lock is %d, "+
				"these have %d of that, and no more are left for others", from.name, most, from.pairs)
		}
	}
	return ""
}
