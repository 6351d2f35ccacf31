package tokengme

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/poundlock/poundlock/protocol"
)

func appendMessage(b []byte, m Message) []byte {
	b = append(b, m.Kind)
	switch m.Kind {
	case Pass:
		return appendToken(b, m.Token, true)
	case Request, Ask, Grant:
		b = binary.AppendUvarint(b, m.Number)
		return protocol.AppendText(b, string(m.Groups))
	case Release, ResetSSN, Leave:
		b = binary.AppendUvarint(b, m.Number)
	}
	return b
}

func readMessage(b []byte, kinds int) (m Message, rest []byte, err error) {
	r := protocol.Reader{Rest: b}
	m.Kind = uint8(r.Max(uint64(kinds - 1)))
	switch m.Kind {
	case Pass:
		m.Token = &Token{Fulfilled: make([]uint64, r.Len())}
		readToken(&r, m.Token)
	case Request, Ask, Grant:
		m.Number = r.Uint()
		m.Groups = protocol.Groups(r.Text())
	case Release, ResetSSN, Leave:
		m.Number = r.Uint()
	}
	return m, r.Rest, r.Err
}

// appendToken appends a token, and before it the number of processes where it is sent.
func appendToken(b []byte, t *Token, sent bool) []byte {
	if sent {
		b = binary.AppendUvarint(b, uint64(len(t.Fulfilled)))
	}
	for _, v := range t.Fulfilled {
		b = binary.AppendUvarint(b, v)
	}
	b = protocol.AppendBool(b, t.Primary)
	b = protocol.AppendBool(b, t.Safe)
	b = protocol.AppendText(b, string(t.Group))
	b = binary.AppendUvarint(b, t.Session)
	b = binary.AppendUvarint(b, t.Old)
	if !t.Primary {
		return b
	}
	b = binary.AppendUvarint(b, t.Issued)
	b = binary.AppendUvarint(b, uint64(len(t.Queue)))
	for _, e := range t.Queue {
		b = binary.AppendUvarint(b, uint64(e.Process))
		b = binary.AppendUvarint(b, e.Number)
		b = protocol.AppendText(b, string(e.Groups))
		b = binary.AppendUvarint(b, e.Age)
	}
	b = protocol.AppendBool(b, t.Served != nil)
	if t.Served == nil {
		return b
	}
	b = binary.AppendUvarint(b, t.Total)
	for _, v := range t.Served {
		b = protocol.AppendBool(b, v)
	}
	return b
}

// readToken reads a token for as many processes as there is room for in t.Fulfilled.
func readToken(r *protocol.Reader, t *Token) {
	n := len(t.Fulfilled)
	for i := range t.Fulfilled {
		t.Fulfilled[i] = r.Uint()
	}
	t.Primary, t.Safe = r.Bool(), r.Bool()
	t.Group = protocol.Group(r.Text())
	t.Session, t.Old = r.Uint(), r.Uint()
	if !t.Primary {
		return
	}
	t.Issued = r.Uint()
	for range r.Max(uint64(n)) {
		e := Entry{Process: protocol.ID(r.Max(uint64(n - 1))), Number: r.Uint()}
		e.Groups = protocol.Groups(r.Text())
		e.Age = r.Uint()
		t.Queue = append(t.Queue, e)
	}
	if !r.Bool() {
		return
	}
	t.Total = r.Uint()
	if r.Err == nil && (t.Served == nil || len(t.Served) != n) {
		t.Served = make([]bool, n)
	}
	for i := range t.Served {
		t.Served[i] = r.Bool()
	}
}

// ints counts an integer for each of what the paper counts: a group is one, and an entry
// of the queue is its process, number, age and groups. The flags of a token are one together.
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
	text := fmt.Sprintf("%s,session=%d,old=%d,", t.Group, t.Session, t.Old)
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

// show is who waits and is inside, the requests known, and the token.
func show(q protocol.Process[Message]) string {
	p, member := q.(*Process)
	if !member {
		c := q.(*Client)
		return fmt.Sprintf("home #%d, try %d", c.home, c.try)
	}
	numbers := make([]uint64, p.n)
	for j, r := range p.requests {
		numbers[j] = r.number
	}
	text := fmt.Sprintf("requests %v, %d RELEASEs of session %d", numbers, p.releases, p.session)
	if p.local {
		text += fmt.Sprintf(", %d inside, %d waiting", len(p.inside), len(p.waiting))
	}
	if p.held {
		text += ", token " + p.token.String()
	}
	return text
}

// waiting is the length of the queue of the primary token, where that is.
func waiting(q protocol.Process[Message]) int {
	if p, member := q.(*Process); member {
		return len(p.token.Queue)
	}
	return 0
}

// AppendState implements protocol.Process.
func (p *Process) AppendState(b []byte) []byte {
	for _, r := range p.requests {
		b = binary.AppendUvarint(b, r.number)
		b = protocol.AppendText(b, string(r.groups))
	}
	b = binary.AppendUvarint(b, p.session)
	b = binary.AppendUvarint(b, p.releases)
	b = protocol.AppendBool(b, p.outstanding)
	b = protocol.AppendBool(b, p.held)
	if p.held {
		b = appendToken(b, &p.token, false)
	}
	b = appendUsers(b, p.waiting, true)
	b = appendUsers(b, p.inside, false)
	b = appendUsers(b, p.left, false)
	if p.smax == 0 {
		return b
	}
	b = binary.AppendUvarint(b, uint64(p.acks))
	for j := range p.heard {
		b = binary.AppendUvarint(b, p.heard[j])
		b = protocol.AppendBool(b, p.wanted[j])
	}
	b = binary.AppendUvarint(b, p.back)
	b = protocol.AppendBool(b, p.asked)
	if p.asked {
		b = binary.AppendUvarint(b, uint64(p.holder))
		b = binary.AppendUvarint(b, p.total)
	}
	return binary.AppendUvarint(b, uint64(p.missing))
}

// LoadState implements protocol.Process.
func (p *Process) LoadState(b []byte) ([]byte, error) {
	r := protocol.Reader{Rest: b}
	for j := range p.requests {
		p.requests[j] = request{r.Uint(), protocol.Groups(r.Text())}
	}
	p.session, p.releases = r.Uint(), r.Uint()
	p.outstanding = r.Bool()
	p.drop()
	if p.held = r.Bool(); p.held {
		readToken(&r, &p.token)
		for _, e := range p.token.Queue {
			p.queued[e.Process] = true
		}
	}
	p.contested = p.opposed()
	p.waiting = readUsers(&r, p.waiting[:0], true)
	p.inside = readUsers(&r, p.inside[:0], false)
	p.left = readUsers(&r, p.left[:0], false)
	if p.smax == 0 {
		return r.Rest, r.Err
	}
	p.acks = int(r.Max(uint64(p.n)))
	for j := range p.heard {
		p.heard[j], p.wanted[j] = r.Uint(), r.Bool()
	}
	p.back = r.Uint()
	p.asked, p.holder, p.total = r.Bool(), 0, 0
	if p.asked {
		p.holder, p.total = protocol.ID(r.Max(uint64(p.n-1))), r.Uint()
	}
	p.missing = int(r.Max(uint64(p.n)))
	return r.Rest, r.Err
}

// State implements protocol.Process.
func (p *Process) State(c *protocol.Codec) { c.Other(p.AppendState, p.LoadState) }

// appendUsers appends a list, and what they want where they wait.
func appendUsers(b []byte, list []user, wants bool) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, u := range list {
		b = binary.AppendUvarint(b, uint64(u.id))
		b = binary.AppendUvarint(b, u.try)
		if wants {
			b = protocol.AppendText(b, string(u.wants))
		}
	}
	return b
}

func readUsers(r *protocol.Reader, list []user, wants bool) []user {
	for range r.Len() {
		u := user{id: protocol.ID(r.Uint()), try: r.Uint()}
		if wants {
			u.wants = protocol.Groups(r.Text())
		}
		list = append(list, u)
	}
	return list
}

// AppendState implements protocol.Process.
func (c *Client) AppendState(b []byte) []byte {
	return binary.AppendUvarint(append(b, byte(c.section)), c.try)
}

// LoadState implements protocol.Process.
func (c *Client) LoadState(b []byte) ([]byte, error) {
	r := protocol.Reader{Rest: b}
	c.section = protocol.Section(r.Max(uint64(protocol.InCrit)))
	c.try = r.Uint()
	return r.Rest, r.Err
}

// State implements protocol.Process.
func (c *Client) State(v *protocol.Codec) { v.Other(c.AppendState, c.LoadState) }
