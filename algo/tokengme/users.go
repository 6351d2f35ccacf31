package tokengme

import (
	"cmp"
	"slices"

	"github.com/poundlock/poundlock/protocol"
)

// A user is one that wants, or has, a group at this process. The plain form has one, the
// process itself.
type user struct {
	id    protocol.ID
	try   uint64 // a client counts its tries; 0 in the plain form
	wants protocol.Groups
}

// users are those of one process. A try of a client is known from the first of its ASK and
// its LEAVE to the second.
type users struct {
	waiting []user // in the order in which they came
	inside  []user // in the order of ids and tries; what they wanted is forgotten
	left    []user // the same: their LEAVE has overtaken their ASK
}

func byID(a, b user) int { return cmp.Or(cmp.Compare(a.id, b.id), cmp.Compare(a.try, b.try)) }

func find(list []user, u user) (i int, ok bool) { return slices.BinarySearchFunc(list, u, byID) }

// try is the first line of A1: a process that wants the group of the token enters at once, unless a
// request is known that conflicts, or somebody waits already whom the token does not
// serve.
func (p *Process) try(u user, out *protocol.Out[Message]) {
	p.waiting = append(p.waiting, u)
	p.admit(out)
	p.request(out)
}

// admit lets in who waits, in order, up to the first whom the token does not serve.
func (p *Process) admit(out *protocol.Out[Message]) {
	if len(p.waiting) == 0 || !p.token.Safe || p.conflict() {
		return
	}
	for len(p.waiting) > 0 && p.fits(p.waiting[0]) {
		p.enter(0, out)
	}
}

// fits says that the token would let u in, as far as those are concerned who are inside.
func (p *Process) fits(u user) bool {
	g := p.token.Group
	return u.wants.Has(g) && (len(p.inside) == 0 || !g.Exclusive())
}

// open is the end of A3 and of A5: the token has become safe. Those who wait for its
// group enter, whoever else waits.
func (p *Process) open(out *protocol.Out[Message]) {
	p.token.Safe, p.outstanding = true, false
	p.resetRequests(out)
	for i := 0; i < len(p.waiting); {
		if p.fits(p.waiting[i]) {
			p.enter(i, out)
		} else {
			i++
		}
	}
	p.idle(out)
}

// enter lets in who is number i of those who wait.
func (p *Process) enter(i int, out *protocol.Out[Message]) {
	u := p.waiting[i]
	p.waiting = slices.Delete(p.waiting, i, i+1)
	u.wants = ""
	at, _ := find(p.inside, u)
	p.inside = slices.Insert(p.inside, at, u)
	switch {
	case p.local:
		out.Send(u.id, Message{Kind: Grant, Number: u.try, Groups: protocol.Groups(p.token.Group)})
	case p.fenced():
		out.CritIn(p.token.Group, p.fence())
	default:
		out.CritIn(p.token.Group, 0)
	}
	p.tell(out)
}

// leave is A4: u is not inside any more, or does not wait.
func (p *Process) leave(u user, out *protocol.Out[Message]) {
	if i, ok := find(p.inside, u); ok {
		p.inside = slices.Delete(p.inside, i, i+1)
		p.idle(out)
		return
	}
	i := slices.IndexFunc(p.waiting, func(w user) bool { return byID(w, u) == 0 })
	switch {
	case i >= 0: // those behind it may not have to wait any more
		p.waiting = slices.Delete(p.waiting, i, i+1)
		p.admit(out)
	case p.local:
		at, _ := find(p.left, u)
		p.left = slices.Insert(p.left, at, u)
	default:
		panic("tokengme: an exit of who is not inside")
	}
}

func (p *Process) fromClient(from protocol.ID, m Message, out *protocol.Out[Message]) {
	u := user{id: from, try: m.Number, wants: m.Groups}
	switch i, ok := find(p.left, u); {
	case !p.local:
		panic("tokengme: a message from a client")
	case m.Kind == Leave:
		p.leave(u, out)
	case ok:
		p.left = slices.Delete(p.left, i, i+1)
	default:
		p.try(u, out)
	}
}

// A Client is a user that is no member. It has a home, the member that it asks.
type Client struct {
	id      protocol.ID
	home    protocol.ID
	section protocol.Section // InRem, InTry or InCrit
	try     uint64           // how often it tried
}

func newClient(id protocol.ID, c protocol.Config, per int64) *Client {
	i, n := uint64(id)-uint64(c.N), uint64(c.N)
	if per > 0 {
		i /= uint64(per)
	}
	return &Client{id: id, home: protocol.ID(i % n)}
}

// Step implements protocol.Process.
func (c *Client) Step(ev protocol.Event[Message], out *protocol.Out[Message]) {
	switch {
	case ev.Kind == protocol.Start:
	case ev.Kind == protocol.Try:
		c.section = protocol.InTry
		c.try++
		out.Send(c.home, Message{Kind: Ask, Number: c.try, Groups: protocol.Groups(ev.Data)})
	case ev.Kind == protocol.Exit, ev.Kind == protocol.Cancel:
		c.section = protocol.InRem
		out.Rem()
		out.Send(c.home, Message{Kind: Leave, Number: c.try})
	case ev.Kind == protocol.Receive && ev.Msg.Kind == Grant:
		// A GRANT of a try that was given up finds another one, or none.
		if c.section == protocol.InTry && ev.Msg.Number == c.try {
			c.section = protocol.InCrit
			out.CritIn(protocol.Group(ev.Msg.Groups), 0)
		}
	default:
		panic("tokengme: unexpected event at a client")
	}
}
