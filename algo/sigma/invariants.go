package sigma

import (
	"fmt"

	"github.com/poundlock/poundlock/protocol"
)

// invariants are the algorithm's own properties. P1 and P2 are the paper's;
// token says that a support is one token that travels between a server and the
// client that it supports, and falls long before mutual exclusion does.
func invariants[S server](token func(*protocol.View) error) []protocol.Invariant {
	return []protocol.Invariant{
		{Name: "sigma/p1", Err: p1[S], Stable: true},
		{Name: "sigma/p2", Err: p2[S], Stable: true},
		{Name: "sigma/token", Err: token, Stable: true},
	}
}

// A server is one of either form.
type server interface {
	// table returns owners and queue.
	table() (owners, queue []request)
}

func (s *LiteralServer) table() (owners, queue []request) {
	if s.owner != (request{}) {
		owners = append(owners, s.owner)
	}
	return owners, s.queue
}

func (s *Server) table() (owners, queue []request) {
	for e := range s.owners() {
		owners = append(owners, e.request)
	}
	for _, w := range s.queue.all() {
		queue = append(queue, w.request)
	}
	return owners, queue
}

// p1: a server without an owner has an empty queue.
func p1[S server](v *protocol.View) error {
	for j, s := range protocol.Procs[S](v) {
		if owners, queue := s.table(); len(owners) == 0 && len(queue) > 0 {
			return fmt.Errorf("#%d supports nobody while %v waits", j, queue)
		}
	}
	return nil
}

// p2: a client is at most once in the queue, and no owner is.
func p2[S server](v *protocol.View) error {
	for j, s := range protocol.Procs[S](v) {
		owners, queue := s.table()
		seen := map[protocol.ID]bool{}
		for _, r := range append(owners, queue...) {
			if seen[r.client] {
				return fmt.Errorf("#%d knows #%d twice: %v, %v", j, r.client, owners, queue)
			}
			seen[r.client] = true
		}
	}
	return nil
}

// A pair is a client and a server that is not faulty in the client's epoch.
type pair struct{ client, server protocol.ID }

// pairs calls f for each live client outside its remainder section and each
// server that did not lose its memory since the client left it, or that the client
// has asked again since.
func pairs[C, S any](v *protocol.View, f func(p pair, c C, s S) error) error {
	for id, c := range protocol.Procs[C](v) {
		if v.Users[id] == protocol.InRem || v.Users[id] == protocol.InLost {
			continue
		}
		for j, s := range protocol.Procs[S](v) {
			if v.Lost[id][j] && !renewed(c, s, j) {
				continue
			}
			if err := f(pair{id, j}, c, s); err != nil {
				return err
			}
		}
	}
	return nil
}

// renewed reports whether a client knows which life server j lives.
func renewed(client, server any, j protocol.ID) bool {
	c, ok := client.(*Client)
	return ok && c.servers[j].inc == server.(*Server).inc
}

// literalToken: a server that supports request q of a trying client has exactly
// one support of it in a RESPONSE, in resp[], or in a YIELD; a server that does
// not has none. Inside there is at most one.
func literalToken(v *protocol.View) error {
	flight := map[pair]int{}
	for ch, m := range protocol.InFlight[Message](v) {
		switch {
		case m.Kind == Response && m.Owner == ch.To && m.Time == currentTime(v, ch.To):
			flight[pair{ch.To, ch.From}]++
		case m.Kind == Yield && m.Time == currentTime(v, ch.From):
			flight[pair{ch.From, ch.To}]++
		}
	}
	return pairs(v, func(p pair, c *LiteralClient, s *LiteralServer) error {
		me := request{c.id, c.timestamp}
		tokens, want := flight[p], 0
		if c.resp[p.server] == me {
			tokens++
		}
		if s.owner == me {
			want = 1
		}
		if v.Users[p.client] == protocol.InCrit && tokens <= 1 || tokens == want {
			return nil
		}
		return fmt.Errorf("%d supports of #%d for request %v, want %d", tokens, p.server, me, want)
	})
}

// currentTime is the timestamp of a client of either form, 0 if it crashed.
func currentTime(v *protocol.View, client protocol.ID) uint64 {
	if c, ok := protocol.As[*LiteralClient](v.Procs[client]); ok {
		return c.timestamp
	}
	if c, ok := protocol.As[*Client](v.Procs[client]); ok {
		return c.time
	}
	return 0
}

// token is the same for numbered supports, where a RESPONSE may be repeated: the
// server's support with its current number is either counted by the client, or
// was given back by it, or is still on its way; and a client counts, and will
// count on the arrival of a RESPONSE, only the server's current support.
func token(v *protocol.View) error {
	type traffic struct {
		newest   uint64 // the largest number of a support on its way to the client
		other    uint64 // the same of supports in groups that the client wants no more, which it will give back
		back     bool   // the client's YIELD of the current support is on its way, or a DOWNGRADE that gives it back
		requests bool   // a REQUEST is on its way, which the server will answer
	}
	flight := map[pair]traffic{}
	for ch, m := range protocol.InFlight[Message](v) {
		switch {
		case m.Kind == Response && m.Owner == ch.To && m.Time == currentTime(v, ch.To):
			c, _ := protocol.As[*Client](v.Procs[ch.To])
			if inc := c.servers[ch.From].inc; m.Inc < inc || inc == 0 {
				continue // will be ignored
			}
			t := flight[pair{ch.To, ch.From}]
			if c.takes(m.Group) {
				t.newest = max(t.newest, m.Serial)
			} else {
				t.other = max(t.other, m.Serial)
			}
			flight[pair{ch.To, ch.From}] = t
		case m.Kind == Downgrade && m.Time == currentTime(v, ch.From):
			s, up := protocol.As[*Server](v.Procs[ch.To])
			t := flight[pair{ch.From, ch.To}]
			t.back = t.back || up && !alone(s.group()) && s.group() != m.Group
			flight[pair{ch.From, ch.To}] = t
		case (m.Kind == Yield || m.Kind == Request) && m.Time == currentTime(v, ch.From):
			s, up := protocol.As[*Server](v.Procs[ch.To])
			t := flight[pair{ch.From, ch.To}]
			t.requests = t.requests || m.Kind == Request
			own := entry{}
			if up {
				if e := s.owned(ch.From); e != nil {
					own = *e
				} else {
					own = s.owner
				}
			}
			t.back = t.back || up && m.Serial >= own.serial
			flight[pair{ch.From, ch.To}] = t
		}
	}
	return pairs(v, func(p pair, c *Client, s *Server) error {
		t, known := flight[p], &c.servers[p.server]
		var current uint64 // the number of the server's support of our request, 0: none
		if e := s.owned(c.id); e != nil && e.request == c.me() {
			current = e.serial
		}
		counted, given := uint64(0), known.given
		if known.supports() {
			counted = known.serial
		}
		switch {
		case counted != 0 && counted != current:
			if ok, err := heir(v, p, c, s); ok || err != nil {
				return err
			}
			return fmt.Errorf("#%d counts support %d of #%d, which is at %d", c.id, counted, p.server, current)
		case counted != 0 && v.Users[p.client] == protocol.InTry && known.group != s.group():
			return fmt.Errorf("#%d counts #%d in group %s, which supports %s", c.id, p.server, named(known.group), named(s.group()))
		case t.newest > max(given, counted) && t.newest != current:
			return fmt.Errorf("#%d will count support %d of #%d, which is at %d", c.id, t.newest, p.server, current)
		case current == 0 || counted == current || known.inc == 0 || t.requests:
			return nil
		case given >= current && t.back, given < current && max(t.newest, t.other) == current:
			return nil
		}
		return fmt.Errorf("support %d of #%d for #%d is lost", current, p.server, c.id)
	})
}

// heir reports that a client counts what a server has promised it, after a request that has ended. A client that still
// makes that request counts the support itself.
func heir(v *protocol.View, p pair, c *Client, s *Server) (ok bool, err error) {
	w, ok := s.heir()
	if !ok || w.request != c.me() || w.serial+1 != c.servers[p.server].serial {
		return false, nil
	}
	if owner, up := protocol.As[*Client](v.Procs[s.owner.client]); up && owner.time == s.owner.time {
		return false, fmt.Errorf("#%d counts what #%d promised after %v, which has not ended", c.id, p.server, s.owner.request)
	}
	return true, nil
}

// unsettled is how many more servers than none may be counted by two clients: each
// server of which somebody still trusts a life that is over, and each support that
// a holder is short of a quorum. While there are fewer than 2m-n, two clients
// cannot both be inside: they need m supports each, and no server supports both.
func unsettled(procs []protocol.Stateful) int {
	stale, short := map[int]bool{}, 0
	for _, p := range procs {
		c, ok := protocol.As[*Client](p)
		if !ok || c.section != protocol.InTry && c.section != protocol.InCrit {
			continue
		}
		for j, known := range c.servers {
			if s, up := protocol.As[*Server](procs[j]); up && known.gives() && known.inc != s.inc {
				stale[j] = true
			}
		}
		if c.section == protocol.InCrit && c.refresh != 0 {
			short = max(short, c.m-c.supporters())
		}
	}
	return len(stale) + short
}

// serial is the largest number of a support that a server knows.
func (s *Server) serial() uint64 {
	most := uint64(0)
	for e := range s.owners() {
		most = max(most, e.serial)
	}
	for _, w := range s.queue.all() {
		most = max(most, w.serial)
	}
	return most
}

// serial is the largest number of a support that a client knows.
func (c *Client) serial() (most uint64) {
	for _, s := range c.servers {
		most = max(most, s.serial, s.given)
	}
	return most
}
