package tokengme

import (
	"fmt"
	"strings"

	"github.com/poundlock/poundlock/protocol"
)

func (m Message) fields(c *protocol.Codec) Message {
	protocol.Upto(c, &m.Kind, Leave)
	switch m.Kind {
	case Pass:
		t := protocol.Pointer(c, &m.Token)
		protocol.List(c, &t.Fulfilled)
		t.fields(c)
	case Request:
		c.Count(&m.Number, requestsOf(c.From))
		protocol.Text(c, &m.Groups)
	case Ask:
		c.Count(&m.Number, triesOf(c.From))
		protocol.Text(c, &m.Groups)
	case Grant:
		c.Count(&m.Number, triesOf(c.To))
		protocol.Text(c, &m.Groups)
	case Release:
		c.Count(&m.Number, sessionsOf)
	case Leave:
		c.Count(&m.Number, triesOf(c.From))
	case ResetSSN:
		c.Uint(&m.Number)
	}
	return m
}

// fields are those of a token for as many processes as there is room for in t.Fulfilled.
func (t *Token) fields(c *protocol.Codec) {
	n := len(t.Fulfilled)
	for j := range t.Fulfilled {
		c.Count(&t.Fulfilled[j], requestsOf(protocol.ID(j)))
	}
	c.Bools(&t.Primary, &t.Safe)
	protocol.Text(c, &t.Group)
	c.Count(&t.Session, sessionsOf)
	c.Count(&t.Fence, fences)
	if c.Uint(&t.Old); !t.Primary {
		return
	}
	c.Uint(&t.Issued)
	for i := range protocol.List(c, &t.Queue) {
		e := &t.Queue[i]
		c.ID(&e.Process, n)
		c.Count(&e.Number, requestsOf(e.Process))
		protocol.Text(c, &e.Groups)
		c.Uint(&e.Age)
	}
	c.Want(len(t.Queue) <= n)
	bounded := t.Served != nil
	if c.Bool(&bounded); !bounded {
		c.Want(t.Served == nil)
		return
	}
	c.Uint(&t.Total)
	if c.Reading() && (t.Served == nil || len(t.Served) != n) {
		t.Served = make([]bool, n)
	}
	c.Flags(t.Served)
}

// ints counts an integer for each of what the paper counts: a group is one, and an entry
// of the queue is its process, number, age and groups; the fencing token is none of that. The flags of a token are one together.
func ints(m Message) int {
	switch m.Kind {
	case Request:
		return 1 + m.Groups.Len()
	case Pass:
		n := len(m.Token.Fulfilled) + 4
		if !m.Token.Primary {
			return n
		}
		n++
		for _, e := range m.Token.Queue {
			n += 3 + e.Groups.Len()
		}
		if m.Token.Served != nil {
			n += 1 + (len(m.Token.Served)+63)/64
		}
		return n
	case Ask, Grant:
		return 1 + m.Groups.Len()
	case Release, ResetSSN, Leave:
		return 1
	}
	return 0
}

func text(m Message) string {
	name := messages[m.Kind].Name
	switch m.Kind {
	case Pass:
		return name + "(" + m.Token.String() + ")"
	case Request, Ask, Grant:
		return fmt.Sprintf("%s(%d,%s)", name, m.Number, m.Groups)
	case Release, ResetSSN, Leave:
		return fmt.Sprintf("%s(%d)", name, m.Number)
	}
	return name
}

// String is the form of a token in traces: what it is of, and what it knows.
func (t *Token) String() string {
	text := fmt.Sprintf("%s,session=%d,old=%d,fence=%d,", t.Group, t.Session, t.Old, t.Fence)
	if t.Safe {
		text += "safe,"
	}
	text += strings.ReplaceAll(fmt.Sprint(t.Fulfilled), " ", ",")
	if !t.Primary {
		return text
	}
	list := make([]string, len(t.Queue))
	for i, e := range t.Queue {
		list[i] = fmt.Sprintf("#%d:%d:%s:%d", e.Process, e.Number, e.Groups, e.Age)
	}
	text += fmt.Sprintf(",primary,issued=%d,[%s]", t.Issued, strings.Join(list, ";"))
	if t.Served != nil {
		text += fmt.Sprintf(",total=%d,", t.Total)
		for _, served := range t.Served {
			text += string(protocol.AppendBool(nil, served)[0] + '0')
		}
	}
	return text
}

// Show is the home of a client.
func (c *Client) Show() string { return fmt.Sprintf("home #%d, try %d", c.home, c.try) }

// Show is the requests known, who waits and is inside, and the token.
func (p *Process) Show() string {
	if p.local {
		return p.show(fmt.Sprintf(", %d inside, %d waiting", len(p.inside), len(p.waiting)))
	}
	return p.show("")
}

// Show is the requests known, and the token.
func (p *LiteralProcess) Show() string { return p.show("") }

func (m *member) show(users string) string {
	numbers := make([]uint64, m.n)
	for j, r := range m.requests {
		numbers[j] = r.number
	}
	text := fmt.Sprintf("requests %v, %d RELEASEs of session %d%s", numbers, m.releases, m.session, users)
	if m.held {
		text += ", token " + m.token.String()
	}
	return text
}

// Waiting is the length of the queue of the primary token, where that is.
func (m *member) Waiting() int { return len(m.token.Queue) }

// state visits what both forms have. Before it reads, the token must have been dropped.
func (m *member) state(c *protocol.Codec) {
	for j := range m.requests {
		c.Count(&m.requests[j].number, requestsOf(protocol.ID(j)))
		protocol.Text(c, &m.requests[j].groups)
	}
	c.Count(&m.session, sessionsOf)
	c.Uint(&m.releases)
	c.Bool(&m.outstanding)
	if c.Bool(&m.held); m.held {
		m.token.fields(c)
	}
}

// State implements protocol.Process.
func (p *LiteralProcess) State(c *protocol.Codec) {
	if c.Reading() {
		p.drop()
	}
	p.state(c)
	c.Bool(&p.inCS)
}

// State implements protocol.Process.
func (p *Process) State(c *protocol.Codec) {
	if c.Reading() {
		p.drop()
	}
	p.state(c)
	if c.Reading() {
		for _, e := range p.token.Queue {
			p.queued[e.Process] = true
		}
		p.contested = p.opposed()
	}
	p.visit(c, &p.waiting, true)
	p.visit(c, &p.inside, false)
	p.visit(c, &p.left, false)
	if p.smax == 0 {
		return
	}
	protocol.Upto(c, &p.acks, p.n)
	for j := range p.heard {
		c.Uint(&p.heard[j])
		c.Bool(&p.wanted[j])
	}
	c.Uint(&p.back)
	if c.Reading() {
		p.holder, p.total = 0, 0
	}
	if c.Bool(&p.asked); p.asked {
		c.ID(&p.holder, p.n)
		c.Uint(&p.total)
	}
	protocol.Upto(c, &p.missing, p.n)
}

// visit visits a list of users, with what they want where they wait.
func (p *Process) visit(c *protocol.Codec, list *[]user, wants bool) {
	for i := range protocol.List(c, list) {
		u := &(*list)[i]
		if c.AnyID(&u.id); p.local {
			c.Count(&u.try, triesOf(u.id))
		} else {
			c.Uint(&u.try)
		}
		if wants {
			protocol.Text(c, &u.wants)
		}
	}
}

// State implements protocol.Process.
func (c *Client) State(v *protocol.Codec) {
	protocol.Upto(v, &c.section, protocol.InCrit)
	v.Count(&c.try, triesOf(c.id))
}
