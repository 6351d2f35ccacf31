package ra2

import (
	"fmt"
	"math"
	"slices"

	"github.com/poundlock/poundlock/protocol"
)

func (m Message) fields(c *protocol.Codec) Message {
	if protocol.Upto(c, &m.Kind, Start); m.Kind == Request {
		c.Clock(&m.Time)
		protocol.Text(c, &m.Group)
		return m
	}
	protocol.Upto(c, &m.Each, 2)
	c.Want(m.Each > 0)
	number(c, c.To, &m.Number)
	if m.Kind == Reply {
		number(c, c.From, &m.Done)
	} else {
		c.Clock(&m.Time)
	}
	list := m.Grants.List()
	for k := range protocol.List(c, &list) {
		protocol.Upto(c, &list[k].Of, math.MaxUint32)
		number(c, protocol.ID(list[k].Of), &list[k].Number)
		c.Want(list[k].Number > 0 && (k == 0 || list[k].Of > list[k-1].Of))
	}
	if c.Reading() || c.Moving() {
		m.Grants = listed(list)
	}
	return m
}

// number visits the number of a request of a process: where it is made, heard of, answered and granted.
func number(c *protocol.Codec, of protocol.ID, v *uint32) {
	wide := uint64(*v)
	c.Count(&wide, protocol.Counter{User: of, Time: 1, Least: 1})
	c.Want(wide <= math.MaxUint32)
	*v = uint32(wide)
}

// ints: a group counts one, and what is there for fencing tokens nothing.
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
		return fmt.Sprintf("START(%d,%d,%s)", m.Number, m.Time, m.Grants)
	}
	return fmt.Sprintf("REPLY(%d,%d,%s)", m.Number, m.Done, m.Grants)
}

// Show is what the process wants, waits for and owes, and whom it knows to be invited.
func (p *Process) Show() string {
	text := fmt.Sprintf("clock %d", p.clock)
	if p.section == protocol.InTry {
		text += fmt.Sprintf(", request %d at %d of %s, REPLYs missing %d", p.number, p.request, p.group, p.missing)
	}
	if p.leads {
		text += ", leads"
	}
	for j := range p.open.All() {
		text += fmt.Sprintf(", #%d wants %s", j, p.groups[j])
		if p.deferred.Has(j) {
			text += " and a REPLY"
		}
	}
	return text + ", invited " + Grants{log: p.granted.log}.String()
}

// State implements protocol.Process. A deferred REPLY that nobody needs any more is none.
func (p *Process) State(c *protocol.Codec) {
	c.Clock(&p.clock)
	protocol.Upto(c, &p.section, protocol.InCrit)
	c.Bool(&p.leads)
	number(c, p.id, &p.number)
	c.Time(&p.request)
	protocol.Text(c, &p.group)
	if c.Reading() {
		p.missing = 0
	}
	for j := range p.heard {
		id := protocol.ID(j)
		if id == p.id {
			continue
		}
		number(c, id, &p.heard[j])
		if c.Member(p.open, id) {
			protocol.Text(c, &p.groups[j])
		}
		if !c.Member(p.replied, id) && c.Reading() && p.section == protocol.InTry {
			p.missing++
		}
		owes := p.deferred.Has(id) && p.waits(id)
		if c.Bool(&owes); c.Reading() && owes {
			p.deferred.Add(id)
		} else if c.Reading() {
			p.deferred.Remove(id)
		}
	}
	p.granted.state(c, p.id)
	for j := range p.deferred.All() {
		c.Want(p.waits(j))
	}
}

// state visits the vector, whose entries are in the order in which they changed where that
// decides what is told to whom, and otherwise in the order of processes. Then it visits how
// many of them each process has been told.
func (v *vector) state(c *protocol.Codec, self protocol.ID) {
	entries := 0
	for j := range v.numbers {
		if v.numbers[j] != 0 || !c.Moving() { // 0 is none
			number(c, protocol.ID(j), &v.numbers[j])
		}
		if v.numbers[j] != 0 {
			entries++
		}
	}
	order, told := make([]uint32, entries), make([]uint32, len(v.told))
	if !c.Reading() {
		v.ordered(order[:0], told)
	}
	for i := range order {
		protocol.Upto(c, &order[i], uint32(len(v.numbers)-1))
	}
	most := uint32(entries)
	if v.full {
		most = 0
	}
	for j := range told {
		if protocol.ID(j) != self {
			protocol.Upto(c, &told[j], most)
		}
	}
	if c.Reading() || c.Moving() {
		c.Want(v.rebuild(order, told))
	}
}

// ordered appends the processes of the entries, and sets how many of these each one has been told.
func (v *vector) ordered(order, told []uint32) {
	ends := append(slices.Clone(v.told), uint32(len(v.log)))
	slices.Sort(ends)
	from := uint32(0)
	for _, end := range ends {
		for j, number := range v.numbers {
			if number != 0 && v.at[j] >= from && v.at[j] < end {
				order = append(order, uint32(j))
			}
		}
		from = end
	}
	for j := range told {
		told[j] = uint32(v.count(0, int(v.told[j])))
	}
}

func (r part) first() Grant { return r.grants[r.from] }

// rebuild makes the vector anew from its numbers, and reports whether an encoding has this order.
func (v *vector) rebuild(order, told []uint32) bool {
	v.forget()
	for _, j := range order {
		if v.numbers[j] == 0 || slices.ContainsFunc(v.log, func(p part) bool { return p.first().Of == j }) {
			return false
		}
		v.append(v.write(Grant{j, v.numbers[j]}))
		v.frozen = len(v.log) // one part each
	}
	copy(v.told, told)
	for place := 1; place < len(order); place++ {
		if order[place-1] > order[place] && !slices.Contains(told, uint32(place)) {
			return false
		}
	}
	return true
}
