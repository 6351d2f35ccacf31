package sigma

import (
	"fmt"

	"github.com/poundlock/poundlock/protocol"
)

// invariants are the algorithm's own properties. P1 and P2 are the paper's;
// token says that a support is one token that travels between a server and the
// client that it supports, and falls long before mutual exclusion does.
func invariants(token func(*protocol.View[Message]) error) []protocol.Invariant[Message] {
	return []protocol.Invariant[Message]{
		{Name: "sigma/p1", Err: p1, Stable: true},
		{Name: "sigma/p2", Err: p2, Stable: true},
		{Name: "sigma/token", Err: token, Stable: true},
	}
}

// table returns owner and queue of a server of either form.
func table(p protocol.Process[Message]) (owner request, queue []request) {
	switch s := p.(type) {
	case *LiteralServer:
		return s.owner, s.queue
	case *Server:
		for _, w := range s.queue.all() {
			queue = append(queue, w.request)
		}
		return s.owner.request, queue
	}
	panic("sigma: not a server")
}

// p1: a server without an owner has an empty queue.
func p1(v *protocol.View[Message]) error {
	for j, p := range v.Procs[:v.Config.N] {
		if p == nil {
			continue
		}
		if owner, queue := table(p); owner == (request{}) && len(queue) > 0 {
			return fmt.Errorf("#%d supports nobody while %v waits", j, queue)
		}
	}
	return nil
}

// p2: a client is at most once in the queue, and the owner is not.
func p2(v *protocol.View[Message]) error {
	for j, p := range v.Procs[:v.Config.N] {
		if p == nil {
			continue
		}
		owner, queue := table(p)
		seen := map[protocol.ID]bool{owner.client: true}
		for _, r := range queue {
			if seen[r.client] {
				return fmt.Errorf("#%d knows #%d twice: %v, %v", j, r.client, owner, queue)
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
func pairs(v *protocol.View[Message], f func(p pair) error) error {
	for c := v.Config.N; c < len(v.Procs); c++ {
		if v.Procs[c] == nil || v.Users[c] == protocol.InRem || v.Users[c] == protocol.InLost {
			continue
		}
		for j, p := range v.Procs[:v.Config.N] {
			if p == nil || v.Lost[c][j] && !renewed(v.Procs[c], p, j) {
				continue
			}
			if err := f(pair{protocol.ID(c), protocol.ID(j)}); err != nil {
				return err
			}
		}
	}
	return nil
}

// renewed reports whether a client knows which life server j lives.
func renewed(client, server protocol.Process[Message], j int) bool {
	c, ok := client.(*Client)
	return ok && c.incs[j] == server.(*Server).inc
}

// literalToken: a server that supports request q of a trying client has exactly
// one support of it in a RESPONSE, in resp[], or in a YIELD; a server that does
// not has none. Inside there is at most one.
func literalToken(v *protocol.View[Message]) error {
	flight := map[pair]int{}
	for ch, m := range v.InFlight {
		switch {
		case m.Kind == Response && m.Owner == ch.To && m.Time == currentTime(v.Procs[ch.To]):
			flight[pair{ch.To, ch.From}]++
		case m.Kind == Yield && m.Time == currentTime(v.Procs[ch.From]):
			flight[pair{ch.From, ch.To}]++
		}
	}
	return pairs(v, func(p pair) error {
		c := v.Procs[p.client].(*LiteralClient)
		me := request{c.id, c.timestamp}
		tokens, want := flight[p], 0
		if c.resp[p.server] == me {
			tokens++
		}
		if v.Procs[p.server].(*LiteralServer).owner == me {
			want = 1
		}
		if v.Users[p.client] == protocol.InCrit && tokens <= 1 || tokens == want {
			return nil
		}
		return fmt.Errorf("%d supports of #%d for request %v, want %d", tokens, p.server, me, want)
	})
}

// currentTime is the timestamp of a client of either form, 0 if it crashed.
func currentTime(p protocol.Process[Message]) uint64 {
	switch c := p.(type) {
	case *LiteralClient:
		return c.timestamp
	case *Client:
		return c.time
	}
	return 0
}

// token is the same for numbered supports, where a RESPONSE may be repeated: the
// server's support with its current number is either counted by the client, or
// was given back by it, or is still on its way; and a client counts, and will
// count on the arrival of a RESPONSE, only the server's current support.
func token(v *protocol.View[Message]) error {
	type traffic struct {
		newest   uint64 // the largest number of a support on its way to the client
		back     bool   // the client's YIELD of the current support is on its way
		requests bool   // a REQUEST is on its way, which the server will answer
	}
	flight := map[pair]traffic{}
	for ch, m := range v.InFlight {
		switch {
		case m.Kind == Response && m.Owner == ch.To && m.Time == currentTime(v.Procs[ch.To]):
			if c := v.Procs[ch.To].(*Client); m.Inc < c.incs[ch.From] || c.incs[ch.From] == 0 {
				continue // will be ignored
			}
			t := flight[pair{ch.To, ch.From}]
			t.newest = max(t.newest, m.Serial)
			flight[pair{ch.To, ch.From}] = t
		case (m.Kind == Yield || m.Kind == Request) && m.Time == currentTime(v.Procs[ch.From]):
			s, up := v.Procs[ch.To].(*Server)
			t := flight[pair{ch.From, ch.To}]
			t.requests = t.requests || m.Kind == Request
			t.back = t.back || up && m.Serial >= s.owner.serial
			flight[pair{ch.From, ch.To}] = t
		}
	}
	return pairs(v, func(p pair) error {
		c, s, t := v.Procs[p.client].(*Client), v.Procs[p.server].(*Server), flight[p]
		var current uint64 // the number of the server's support of our request, 0: none
		if s.owner.request == c.me() {
			current = s.owner.serial
		}
		counted, given := c.resp[p.server].serial, c.given[p.server]
		switch {
		case counted != 0 && counted != current:
			return fmt.Errorf("#%d counts support %d of #%d, which is at %d", c.id, counted, p.server, current)
		case t.newest > max(given, counted) && t.newest != current:
			return fmt.Errorf("#%d will count support %d of #%d, which is at %d", c.id, t.newest, p.server, current)
		case current == 0 || counted == current || c.incs[p.server] == 0 || t.requests:
			return nil
		case given >= current && t.back, given < current && t.newest == current:
			return nil
		}
		return fmt.Errorf("support %d of #%d for #%d is lost", current, p.server, c.id)
	})
}

// unsettled is how many more servers than none may be counted by two clients: each
// server of which somebody still trusts a life that is over, and each support that
// a holder is short of a quorum. While there are fewer than 2m-n, two clients
// cannot both be inside: they need m supports each, and no server supports both.
func unsettled(procs []protocol.Process[Message]) int {
	stale, short := map[int]bool{}, 0
	for _, p := range procs {
		c, ok := p.(*Client)
		if !ok || c.section != protocol.InTry && c.section != protocol.InCrit {
			continue
		}
		for j, inc := range c.incs {
			if s, up := procs[j].(*Server); up && inc != 0 && !c.draining[j] && inc != s.inc {
				stale[j] = true
			}
		}
		if c.section == protocol.InCrit && c.refresh != 0 {
			short = max(short, c.m-c.supporters())
		}
	}
	return len(stale) + short
}

// serial is the largest number of a support that a process knows.
func serial(p protocol.Process[Message]) uint64 {
	most := uint64(0)
	switch p := p.(type) {
	case *Server:
		most = p.owner.serial
		for _, w := range p.queue.all() {
			most = max(most, w.serial)
		}
	case *Client:
		for j, r := range p.resp {
			most = max(most, r.serial, p.given[j])
		}
	}
	return most
}

func waiting(p protocol.Process[Message]) int {
	if s, ok := p.(*Server); ok {
		return s.queue.len()
	}
	return 0
}

func inspect(p protocol.Process[Message]) (st protocol.Standing) {
	if _, ok := p.(*LiteralClient); ok {
		return st // it forgets its answers when it enters
	}
	if c, ok := p.(*Client); ok {
		if c.section == protocol.InCrit {
			st.Supports, st.Since = c.supporting(), int64(c.time)
		}
		return st
	}
	owner, queue := table(p)
	if owner != (request{}) {
		r := protocol.Request{User: owner.client, Since: int64(owner.time)}
		if s, ok := p.(*Server); ok && s.largest == owner.client {
			r.Token = s.tokens[0]
		}
		st.Holders = append(st.Holders, r)
	}
	for _, r := range queue {
		st.Waiters = append(st.Waiters, protocol.Request{User: r.client, Since: int64(r.time)})
	}
	return st
}
