package consensustest

import (
	"fmt"

	"github.com/poundlock/poundlock/protocol"
)

// A teller proposes a value of its own in each of some instances, and hears what is decided. One
// that came back asks to be admitted, and takes part in the instance after the one whose decision
// admits it: then its life before has not got that far.
type teller struct {
	id       protocol.ID
	l        *ledger
	life     uint64
	present  bool
	first    uint64 // the instance from which it takes part
	next     uint64 // the instance whose decision it hears next
	proposed bool   // in that one
	known    lives
	admitted lives
	traces   bool // it notes what it hears
}

// Lives are by process.
type lives [most]uint64

// most is how many processes there may be, and how many lives of each.
const most = 5

// A value is the instance, who proposes it, and the lives that it admits. A message is a request to
// be admitted, or the answer.
const (
	join    = uint64(1) << 62 // and the life
	welcome = uint64(1) << 63 // and the life, and the instance from which it takes part
)

func value(instance uint64, id protocol.ID, known lives) uint64 {
	v := instance<<24 | uint64(id)<<20
	for j, l := range known {
		v |= l << (4 * j)
	}
	return v
}

func instanceOf(v uint64) uint64    { return v >> 24 }
func lifeIn(v uint64, j int) uint64 { return v >> (4 * j) & 15 }
func (p *teller) wrong(what string) {
	p.l.fault(fmt.Sprintf("%s: process %d, life %d: %s", Order, p.id, p.life, what))
}

func (p *teller) needs() (some bool) {
	return p.next < instances && !p.l.follows[p.id] || p.known != p.admitted
}

// instances is how many instances there are at least.
const instances = 4

func tellers(l *ledger) protocol.Algorithm[uint64] {
	return protocol.Algorithm[uint64]{
		Info: protocol.Info{
			Name: "tellers", Users: protocol.Members, Detector: protocol.UnreliableDetector, Consensus: true,
			Messages: []protocol.Message{{Name: "JOIN"}, {Name: "WELCOME"}},
		},
		New: func(id protocol.ID, _ protocol.Config) protocol.Process[uint64] { return &teller{id: id, l: l} },
		Fields: func(m uint64, c *protocol.Codec) uint64 {
			c.Uint(&m)
			return m
		},
		KindOf: func(m uint64) int { return int(m>>62) - 1 },
		Ints:   func(uint64) int { return 1 },
		Text:   func(v uint64) string { return fmt.Sprintf("%x", v) },
	}
}

// Step implements protocol.Process.
func (p *teller) Step(ev protocol.Event[uint64], out *protocol.Out[uint64]) {
	if p.traces {
		p.l.trace = append(p.l.trace, fmt.Sprint(p.id, p.life, ev.Input, ev.Msg))
	}
	switch ev.Kind {
	case protocol.Try: // drivers have users
		out.Crit(0)
	case protocol.Exit:
		out.Rem()
	case protocol.Start:
		if p.life, p.present = ev.Arg, ev.Arg <= 1; !p.present {
			out.Broadcast(join | p.life)
		}
	case protocol.Restore:
		if !p.present {
			out.Send(ev.From, join|p.life)
		}
	case protocol.Decide:
		p.decide(ev.Arg, ev.Msg, out)
	case protocol.Receive:
		p.receive(ev.From, ev.Msg, out)
	}
	if p.present && !p.proposed && p.needs() {
		p.proposed = true
		v := value(p.next, p.id, p.known)
		p.l.propose(v)
		out.Propose(p.next, v)
	}
}

func (p *teller) decide(instance, v uint64, out *protocol.Out[uint64]) {
	if !p.present {
		p.wrong("it takes no part, and hears a decision")
	}
	if instance != p.next {
		p.wrong(fmt.Sprintf("it hears of instance %d, and waits for %d", instance, p.next))
	}
	p.l.decide(p.id, instance, v)
	p.next, p.proposed = instance+1, false
	for j := range p.admitted {
		if l := lifeIn(v, j); l > p.admitted[j] {
			p.admitted[j], p.known[j] = l, max(p.known[j], l)
			if protocol.ID(j) != p.id {
				out.Send(protocol.ID(j), welcome|p.next<<8|l)
			}
		}
	}
}

func (p *teller) receive(from protocol.ID, m uint64, out *protocol.Out[uint64]) {
	life := m & 255
	switch {
	case m&welcome != 0:
		if !p.present && life == p.life {
			p.present, p.next = true, m&^welcome>>8
			p.first = p.next
			out.Resume(p.next)
			// From here on it knows what those know that were there.
			p.known[p.id], p.admitted[p.id] = life, life
		}
	case !p.present:
	case life <= p.admitted[from]:
		out.Send(from, welcome|p.next<<8|life)
	default:
		p.known[from] = max(p.known[from], life)
	}
}

// State implements protocol.Process.
func (p *teller) State(c *protocol.Codec) {
	c.Bools(&p.present, &p.proposed)
	c.Uints(&p.life, &p.first, &p.next)
	for j := range p.known {
		c.Uints(&p.known[j], &p.admitted[j])
	}
}

// A ledger is what was proposed and decided in a world, and the first fault.
type ledger struct {
	proposed map[uint64]bool
	decided  map[uint64]uint64 // by instance, of whoever heard of it first
	hearer   protocol.ID       // of the last of these, first
	follows  [most]bool        // by process: it proposes nothing, but to admit others
	trace    []string
	first    string
}

func newLedger() *ledger { return &ledger{proposed: map[uint64]bool{}, decided: map[uint64]uint64{}} }

func (l *ledger) fault(text string) {
	if l.first == "" {
		l.first = text
	}
}

func (l *ledger) propose(v uint64) { l.proposed[v] = true }

// decide judges a decision as it is heard: of who crashes next, too.
func (l *ledger) decide(id protocol.ID, instance, v uint64) {
	first, known := l.decided[instance]
	switch {
	case !l.proposed[v] || instanceOf(v) != instance:
		l.fault(fmt.Sprintf("%s: process %d hears of %x in instance %d, which nobody proposed there", Validity, id, v, instance))
	case known && first != v:
		l.fault(fmt.Sprintf("%s: process %d hears of %x in instance %d, and %x was decided", Agreement, id, v, instance, first))
	}
	if !known {
		l.decided[instance], l.hearer = v, id
	}
}

// rest judges who is up when nothing is left to happen, and suspicions are right.
func (l *ledger) rest(up []*teller) {
	known := uint64(0)
	for _, p := range up {
		known = max(known, p.next)
	}
	for _, p := range up {
		switch {
		case !p.present:
			l.fault(fmt.Sprintf("%s: process %d, life %d, takes no part", Termination, p.id, p.life))
		case p.needs() || p.next < known:
			l.fault(fmt.Sprintf("%s: process %d waits for instance %d, and %d are known", Termination, p.id, p.next, known))
		}
	}
}
