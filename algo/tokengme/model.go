package tokengme

import (
	"fmt"
	"iter"

	"github.com/poundlock/poundlock/protocol"
)

// model is what the checker is told. Bounded numbers are cyclic, and cannot be moved.
func (f form) model() protocol.Model[Message] {
	m := protocol.Model[Message]{
		Invariants: []protocol.Invariant{
			onePrimary,
			{Name: "tokengme/one-token", Err: oneToken},
			{Name: "tokengme/sessions", Err: sessions},
			{Name: "tokengme/safe", Err: safeTokens},
			{Name: "tokengme/wait", Err: f.wait},
		},
	}
	if f.bounded {
		m.Invariants = append(m.Invariants, protocol.Invariant{Name: "tokengme/bounds", Err: f.bounds})
		return m
	}
	m.Stale, m.MapState, m.MapMsg = stale, protocol.MapState[Message], protocol.MapMsg(Message.fields)
	m.Bounds = []protocol.Bound{
		protocol.NewBound("requests unheard of", 2, newest),
		protocol.NewBound("sessions unheard of", 4, latest),
		protocol.NewBound("entries", 6, func(m knows) uint64 { return m.self().token.Fence }), // behind a wrapper without counters
	}
	return m
}

// The counters: the requests of each process, the sessions, the fencing tokens, and the tries of each client.
func requestsOf(j protocol.ID) protocol.Counter   { return protocol.Counter{User: j} }
func triesOf(client protocol.ID) protocol.Counter { return protocol.Counter{User: client, Time: 1} }

var (
	sessionsOf = protocol.Counter{Time: 2}
	fences     = protocol.Counter{Time: 3}
)

// stale: a REQUEST that is not newer than what is known of its sender, a RELEASE of a
// session before that which is known, and a GRANT of a try that is over.
func stale(_, to protocol.Process[Message], ch protocol.Channel, m Message) bool {
	if c, client := to.(*Client); client {
		return m.Number < c.try || c.section != protocol.InTry
	}
	p := memberOf(to)
	return m.Kind == Request && m.Number <= p.requests[ch.From].number || m.Kind == Release && m.Number < p.session
}

// memberOf is what a process knows that the paper has, nil of a client.
func memberOf(q any) *member {
	if m, ok := protocol.As[knows](q); ok {
		return m.self()
	}
	return nil
}

// newest and latest are what bounds look at, after counters have been moved down.
func newest(m knows) (most uint64) {
	for _, r := range m.self().requests {
		most = max(most, r.number)
	}
	return most
}

func latest(m knows) uint64 { return max(m.self().session, m.self().token.Session) }

// A placed token is at the process that holds it, or to which it is on its way.
type placed struct {
	*Token
	at   *member
	held bool
}

// tokens yields the tokens of a state.
func tokens(v *protocol.View) iter.Seq[placed] {
	return func(yield func(placed) bool) {
		for _, q := range protocol.Procs[knows](v) {
			if p := q.self(); p.held && !yield(placed{&p.token, p, true}) {
				return
			}
		}
		for ch, m := range protocol.InFlight[Message](v) {
			if m.Kind == Pass && !yield(placed{m.Token, memberOf(v.Procs[ch.To]), false}) {
				return
			}
		}
	}
}

// onePrimary is (3) of section 3.4.
var onePrimary = protocol.OneToken("tokengme/primary",
	func(m knows) bool { return m.self().held && m.self().token.Primary },
	func(m Message) bool { return m.Kind == Pass && m.Token.Primary })

// oneToken: a process has one token at most, held or on its way, and a token only comes to
// who waits for it and wants its group. A held token that is idle is safe.
func oneToken(v *protocol.View) error {
	has := make([]int, v.Config.N)
	for t := range tokens(v) {
		id := t.at.id
		has[id]++
		r := t.at.requests[id]
		switch {
		case has[id] > 1:
			return fmt.Errorf("two tokens for #%d", id)
		case t.held && !t.Safe && !t.at.outstanding:
			return fmt.Errorf("#%d holds an idle token that is not safe", id)
		case !t.held && (!t.at.outstanding || !r.groups.Has(t.Group) || t.Fulfilled[id] != r.number):
			return fmt.Errorf("a token on its way to #%d, who has no request for it", id)
		}
	}
	for _, p := range protocol.Procs[*Process](v) {
		switch {
		case len(p.inside) > 0 && (!p.held || !p.token.Safe):
			return fmt.Errorf("users of #%d are inside without a token that is safe", p.id)
		case len(p.inside) > 1 && p.token.Group.Exclusive():
			return fmt.Errorf("users of #%d are inside together in group %s", p.id, p.token.Group)
		}
	}
	return nil
}

// sessions is (4) and (6) of section 3.4: tokens of one session have one group, and while
// there is one of an earlier session no token is safe.
func sessions(v *protocol.View) error {
	for a := range tokens(v) {
		for b := range tokens(v) {
			switch {
			case a.Session == b.Session && a.Group != b.Group:
				return fmt.Errorf("tokens of groups %s and %s have session %d", a.Group, b.Group, a.Session)
			case a.Session < b.Session && b.Safe:
				return fmt.Errorf("a token of session %d is safe while there is one of session %d", b.Session, a.Session)
			}
		}
	}
	return nil
}

// safeTokens: a process that holds a token that is not safe has heard of no later session, and of no
// more RELEASEs of the one before than there can be.
func safeTokens(v *protocol.View) error {
	for _, q := range protocol.Procs[knows](v) {
		p := q.self()
		if !p.held || p.token.Safe {
			continue
		}
		if t := &p.token; p.session > t.Session || p.session+1 == t.Session && p.releases > t.Old {
			return fmt.Errorf("#%d has heard of %d RELEASEs of session %d, and waits for %d before session %d",
				p.id, p.releases, p.session, t.Old, t.Session)
		}
	}
	return nil
}

// wait: nobody waits in the queue for more sessions than Longest, and a process has one
// entry there at most.
func (f form) wait(v *protocol.View) error {
	most := Longest(f.selection(v.Config), v.Config.N)
	seen := make([]bool, v.Config.N)
	for t := range tokens(v) {
		for _, e := range t.Queue {
			switch {
			case e.Age > most:
				return fmt.Errorf("the request of #%d has waited for %d sessions, at most %d", e.Process, e.Age, most)
			case seen[e.Process]:
				return fmt.Errorf("two requests of #%d in the queue", e.Process)
			}
			seen[e.Process] = true
		}
	}
	return nil
}

// bounds are those of section 5.2.3. To a number of a request comes the bit that says
// which half it belongs to.
func (f form) bounds(v *protocol.View) error {
	n, smax := uint64(v.Config.N), f.smax(v.Config)
	for t := range tokens(v) {
		if t.Old > n || t.Issued > n || t.Session > smax || t.Total > n*smax {
			return fmt.Errorf("a token is beyond its bounds: %s", t)
		}
	}
	for _, p := range protocol.Procs[*Process](v) {
		if p.releases > n || p.session > smax || p.back > n*smax {
			return fmt.Errorf("#%d is beyond its bounds", p.id)
		}
		for _, r := range p.requests {
			if r.number > 2*smax+1 {
				return fmt.Errorf("#%d knows the request %d", p.id, r.number)
			}
		}
	}
	return nil
}
