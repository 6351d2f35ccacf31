package ra2

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/poundlock/poundlock/protocol"
)

func appendMessage(b []byte, m Message) []byte {
	b = append(b, m.Kind)
	if m.Kind == Request {
		return protocol.AppendText(binary.AppendUvarint(b, m.Time), string(m.Group))
	}
	b = binary.AppendUvarint(append(b, m.Each), uint64(m.Number))
	if m.Kind == Reply {
		b = binary.AppendUvarint(b, uint64(m.Done))
	}
	b = binary.AppendUvarint(b, uint64(m.Grants.Count))
	for _, c := range m.Grants.List() {
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(c.Of)), uint64(c.Number))
	}
	return b
}

func readMessage(b []byte) (m Message, rest []byte, err error) {
	r := protocol.Reader{Rest: b}
	if m.Kind = uint8(r.Max(uint64(Start))); m.Kind == Request {
		m.Time, m.Group = r.Uint(), protocol.Group(r.Text())
		return m, r.Rest, r.Err
	}
	if m.Each = uint8(r.Max(2)); m.Each == 0 {
		r.Err = protocol.ErrShort
	}
	m.Number = number(&r)
	if m.Kind == Reply {
		m.Done = number(&r)
	}
	var list []Grant
	for k := range r.Len() {
		c := Grant{number(&r), number(&r)}
		if c.Number == 0 || k > 0 && c.Of <= list[k-1].Of {
			r.Err = protocol.ErrShort
		}
		list = append(list, c)
	}
	m.Grants = listed(list)
	return m, r.Rest, r.Err
}

func number(r *protocol.Reader) uint32 { return uint32(r.Max(math.MaxUint32)) }

// ints: a group counts one.
func ints(m Message) int {
	switch m.Kind {
	case Request:
		return 2
	case Start:
		return 1 + int(m.Each)*m.Grants.Count
	}
	return 2 + int(m.Each)*m.Grants.Count
}

func text(m Message) string {
	switch m.Kind {
	case Request:
		return fmt.Sprintf("REQUEST(%d,%s)", m.Time, m.Group)
	case Start:
		return fmt.Sprintf("START(%d,%s)", m.Number, m.Grants)
	}
	return fmt.Sprintf("REPLY(%d,%d,%s)", m.Number, m.Done, m.Grants)
}

// show is what the process wants, waits for and owes, and whom it knows to be invited.
func show(q protocol.Process[Message]) string {
	p := q.(*Process)
	text := fmt.Sprintf("clock %d", p.clock)
	if p.section == protocol.InTry {
		text += fmt.Sprintf(", request %d at %d of %s, REPLYs missing %d", p.number, p.request, p.group, p.missing)
	}
	if p.leads {
		text += ", leads"
	}
	for j := range p.open.all() {
		text += fmt.Sprintf(", #%d wants %s", j, p.groups[j])
		if p.deferred.has(j) {
			text += " and a REPLY"
		}
	}
	return text + ", invited " + Grants{log: p.granted.log}.String()
}

// AppendState implements protocol.Process. A deferred REPLY that nobody needs any more is
// none.
func (p *Process) AppendState(b []byte) []byte {
	b = binary.AppendUvarint(b, p.clock)
	b = append(b, byte(p.section))
	b = protocol.AppendBool(b, p.leads)
	b = binary.AppendUvarint(b, uint64(p.number))
	b = binary.AppendUvarint(b, p.request)
	b = protocol.AppendText(b, string(p.group))
	for j, heard := range p.heard {
		if id := protocol.ID(j); id != p.id {
			b = protocol.AppendBool(binary.AppendUvarint(b, uint64(heard)), p.open.has(id))
			if p.open.has(id) {
				b = protocol.AppendText(b, string(p.groups[j]))
			}
			b = protocol.AppendBool(b, p.replied.has(id))
			b = protocol.AppendBool(b, p.deferred.has(id) && p.waits(id))
		}
	}
	return p.granted.appendState(b, p.id)
}

// LoadState implements protocol.Process.
func (p *Process) LoadState(b []byte) ([]byte, error) {
	r := protocol.Reader{Rest: b}
	p.clock = r.Uint()
	p.section = protocol.Section(r.Max(uint64(protocol.InCrit)))
	p.leads = r.Bool()
	p.number = number(&r)
	p.request = r.Uint()
	p.group = protocol.Group(r.Text())
	p.replied.clear()
	p.deferred.clear()
	p.open.clear()
	p.missing = 0
	for j := range p.heard {
		id := protocol.ID(j)
		if id == p.id {
			continue
		}
		p.heard[j] = number(&r)
		if r.Bool() {
			p.open.add(id)
			p.groups[j] = protocol.Group(r.Text())
		}
		if r.Bool() {
			p.replied.add(id)
		} else if p.section == protocol.InTry {
			p.missing++
		}
		if r.Bool() {
			p.deferred.add(id)
		}
	}
	p.granted.load(&r, p.id)
	for j := range p.deferred.all() {
		if !p.waits(j) {
			r.Err = protocol.ErrShort
		}
	}
	return r.Rest, r.Err
}

// State implements protocol.Process.
func (p *Process) State(c *protocol.Codec) { c.Other(p.AppendState, p.LoadState) }

// appendState appends the vector, whose entries are in the order in which they changed where
// that decides what is told to whom, and otherwise in the order of processes.
func (v *vector) appendState(b []byte, self protocol.ID) []byte {
	for _, number := range v.numbers {
		b = binary.AppendUvarint(b, uint64(number))
	}
	ends := slices.Clone(v.told)
	ends = append(ends, uint32(len(v.log)))
	slices.Sort(ends)
	from := uint32(0)
	for _, end := range ends {
		for j, number := range v.numbers {
			if number != 0 && v.at[j] >= from && v.at[j] < end {
				b = binary.AppendUvarint(b, uint64(j))
			}
		}
		from = end
	}
	for j, told := range v.told {
		if protocol.ID(j) != self {
			b = binary.AppendUvarint(b, uint64(v.count(0, int(told))))
		}
	}
	return b
}

func (r part) first() Grant { return r.grants[r.from] }

func (v *vector) load(r *protocol.Reader, self protocol.ID) {
	v.forget()
	n, entries := uint64(len(v.numbers)), 0
	for j := range v.numbers {
		if v.numbers[j] = number(r); v.numbers[j] != 0 {
			entries++
		}
	}
	for range entries {
		j := r.Max(n - 1)
		if v.numbers[j] == 0 || slices.ContainsFunc(v.log, func(p part) bool { return p.first().Of == uint32(j) }) {
			r.Err = protocol.ErrShort
			return
		}
		v.append(v.write(Grant{uint32(j), v.numbers[j]}))
		v.frozen = len(v.log) // one part each
	}
	most := uint64(entries)
	if v.full {
		most = 0
	}
	for j := range v.told {
		if v.told[j] = 0; protocol.ID(j) != self {
			v.told[j] = uint32(r.Max(most))
		}
	}
	for place := 1; place < entries; place++ {
		if v.log[place-1].first().Of > v.log[place].first().Of && !slices.Contains(v.told, uint32(place)) {
			r.Err = protocol.ErrShort
		}
	}
}

// clocks is the counter of all timestamps, and numbers that of the requests of one process:
// where they are made, heard of, answered and granted. A timestamp of 0 means none, and so
// does a grant of 0.
var clocks = protocol.Counter{Least: 1}

func numbers(of protocol.ID) protocol.Counter { return protocol.Counter{User: of, Time: 1, Least: 1} }

// mapped maps the number of a request of a process.
func mapped(of protocol.ID, number *uint32, f func(protocol.Counter, uint64) uint64) {
	*number = uint32(f(numbers(of), uint64(*number)))
}

func mapState(q protocol.Process[Message], f func(protocol.Counter, uint64) uint64) {
	p := q.(*Process)
	p.clock = f(clocks, p.clock)
	if p.request != 0 {
		p.request = f(clocks, p.request)
	}
	mapped(p.id, &p.number, f)
	for j := range p.heard {
		if id := protocol.ID(j); id != p.id {
			mapped(id, &p.heard[j], f)
		}
	}
	v := &p.granted
	for j := range v.numbers {
		if v.numbers[j] != 0 {
			mapped(protocol.ID(j), &v.numbers[j], f)
		}
	}
	v.load(&protocol.Reader{Rest: v.appendState(nil, p.id)}, p.id)
}

func mapMsg(ch protocol.Channel, m *Message, f func(protocol.Counter, uint64) uint64) {
	if m.Kind == Request {
		m.Time = f(clocks, m.Time)
		return
	}
	mapped(ch.To, &m.Number, f)
	if m.Kind == Reply {
		mapped(ch.From, &m.Done, f)
	}
	list := m.Grants.List()
	for i := range list {
		mapped(protocol.ID(list[i].Of), &list[i].Number, f)
	}
	m.Grants = listed(list)
}
