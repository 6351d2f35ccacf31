package check

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/poundlock/poundlock/protocol"
)

// A machine is an algorithm with its message type erased: all that the search
// needs of it. It is not safe for concurrent use.
type machine interface {
	// first returns the state of New for process i.
	first(i int) []byte
	// step gives in to process i in an encoded state. What it returns is valid
	// until the next call. beyond is the index of a bound that the new state
	// exceeds, or -1; err holds what a panic said.
	step(i int, state []byte, in protocol.Input, msg uint32) (next []byte, effects []effect, beyond int, err error)
	// commutes reports whether the same step with all clocks moved does the same.
	// It tries one small and one large distance.
	commutes(i int, state []byte, in protocol.Input, msg uint32) bool
	// least is the smallest clock value of a state; shift subtracts from all.
	least(i int, state []byte) uint64
	shift(i int, state []byte, by uint64) []byte
	shiftMessage(msg uint32, by uint64) uint32
	// invariant evaluates the invariant called name in a state.
	invariant(name string, g *glance) error
	text(msg uint32) string
	mail() *mail
	shifts() bool
	bound(k int) string
	boundsLen() int
}

// An effect is an Act with the number of its message, 0 for none.
type effect struct {
	protocol.Act
	msg uint32
}

// mail holds what does not depend on the type of messages. Numbers begin at 1.
type mail struct {
	number     map[string]uint32
	from, to   []int
	idempotent []bool
	least      []uint64 // smallest clock value
	bytes      int64
}

// A glance is one global state, as an invariant sees it.
type glance struct {
	states [][]byte // by process, nil where absent
	locals []uint32 // by process, the number of the state: equal numbers, equal states
	users  []protocol.Section
	lost   [][]bool
	flight []uint32
}

// adapter is the only generic part of the checker, and thin for that reason: one
// copy of it is compiled for each type of messages.
type adapter[M any] struct {
	a      protocol.Algorithm[M]
	c      protocol.Config
	box    mail
	msgs   []M
	procs  []protocol.Process[M] // scratch, one for each process
	out    protocol.Out[M]
	state  []byte
	key    []byte
	effect []effect

	view   protocol.View[M] // of the state in loaded
	loaded []uint32
	flight []uint32
}

func newAdapter[M any](a protocol.Algorithm[M], c Config) machine {
	total := c.N + c.Clients
	d := &adapter[M]{
		a: a, c: c.Config, msgs: make([]M, 1), loaded: make([]uint32, total),
		box: mail{number: map[string]uint32{}, from: []int{0}, to: []int{0}, idempotent: []bool{false}, least: []uint64{0}},
	}
	for i := range total {
		d.procs = append(d.procs, a.New(protocol.ID(i), c.Config))
	}
	d.view = protocol.View[M]{Config: c.Config, Procs: make([]protocol.Process[M], total)}
	d.view.InFlight = func(yield func(protocol.Channel, M) bool) {
		for _, m := range d.flight {
			ch := protocol.Channel{From: protocol.ID(d.box.from[m]), To: protocol.ID(d.box.to[m])}
			if !yield(ch, d.msgs[m]) {
				return
			}
		}
	}
	return d
}

func (d *adapter[M]) mail() *mail { return &d.box }

func (d *adapter[M]) shifts() bool { return d.a.MapState != nil && d.a.MapMsg != nil }

func (d *adapter[M]) bound(k int) string {
	return fmt.Sprintf("%s <= %d", d.a.Bounds[k].Name, d.a.Bounds[k].Max)
}

func (d *adapter[M]) text(msg uint32) string { return d.a.Text(d.msgs[msg]) }

func (d *adapter[M]) first(i int) []byte {
	d.state = d.a.New(protocol.ID(i), d.c).AppendState(d.state[:0])
	return d.state
}

func (d *adapter[M]) load(i int, state []byte) protocol.Process[M] {
	p := d.procs[i]
	rest, err := p.LoadState(state)
	if err != nil || len(rest) != 0 {
		panic(fmt.Sprintf("LoadState refuses what AppendState wrote (%v, %d bytes left)", err, len(rest)))
	}
	return p
}

func (d *adapter[M]) step(i int, state []byte, in protocol.Input, msg uint32) (
	next []byte, effects []effect, beyond int, err error,
) {
	defer func() {
		if r := recover(); r != nil {
			next, effects, err = nil, nil, fmt.Errorf("model: panic: %v", r)
		}
	}()
	beyond = -1
	p := d.load(i, state)
	d.out.Reset()
	p.Step(protocol.Event[M]{Input: in, Msg: d.msgs[msg]}, &d.out)
	d.effect = d.effect[:0]
	for _, e := range d.out.Effects {
		switch e.Do {
		case protocol.Send:
			if e.To == protocol.ID(i) || e.To >= protocol.ID(len(d.procs)) {
				panic(fmt.Sprintf("process %d sends %s to process %d", i, d.a.Text(e.Msg), e.To))
			}
			d.effect = append(d.effect, effect{e.Act, d.intern(i, int(e.To), e.Msg)})
		case protocol.Broadcast:
			for j := range d.c.N {
				if j != i {
					d.effect = append(d.effect, effect{protocol.Act{Do: protocol.Send, To: protocol.ID(j)}, d.intern(i, j, e.Msg)})
				}
			}
		default:
			d.effect = append(d.effect, effect{e.Act, 0})
		}
	}
	for k, b := range d.a.Bounds {
		if b.Of(p) > b.Max {
			beyond = k
			break
		}
	}
	d.state = p.AppendState(d.state[:0])
	return d.state, d.effect, beyond, nil
}

func (d *adapter[M]) intern(from, to int, m M) uint32 {
	d.key = binary.AppendUvarint(binary.AppendUvarint(d.key[:0], uint64(from)), uint64(to))
	head := len(d.key)
	d.key = d.a.Append(d.key, m)
	b := &d.box
	if n, ok := b.number[string(d.key)]; ok {
		return n
	}
	// The message is read back, as the network would: a codec that loses
	// something must not go unnoticed here.
	m, rest, err := d.a.Read(d.key[head:])
	if err != nil || len(rest) != 0 {
		panic(fmt.Sprintf("Read refuses what Append wrote (%v, %d bytes left)", err, len(rest)))
	}
	n := uint32(len(d.msgs))
	b.number[string(d.key)] = n
	b.from, b.to = append(b.from, from), append(b.to, to)
	b.idempotent = append(b.idempotent, d.a.Idempotent != nil && d.a.Idempotent(m))
	least := uint64(math.MaxUint64)
	if d.shifts() {
		d.a.MapMsg(&m, func(v uint64) uint64 { least = min(least, v); return v })
	}
	b.least = append(b.least, least)
	d.msgs = append(d.msgs, m)
	b.bytes += int64(len(d.key)) + 160
	return n
}

func (d *adapter[M]) least(i int, state []byte) uint64 {
	least := uint64(math.MaxUint64)
	d.a.MapState(d.load(i, state), func(v uint64) uint64 { least = min(least, v); return v })
	return least
}

func (d *adapter[M]) shift(i int, state []byte, by uint64) []byte {
	p := d.load(i, state)
	d.a.MapState(p, func(v uint64) uint64 { return v - by })
	d.state = p.AppendState(d.state[:0])
	return d.state
}

func (d *adapter[M]) shiftMessage(msg uint32, by uint64) uint32 {
	m := d.msgs[msg]
	d.a.MapMsg(&m, func(v uint64) uint64 { return v - by })
	return d.intern(d.box.from[msg], d.box.to[msg], m)
}

func (d *adapter[M]) commutes(i int, state []byte, in protocol.Input, msg uint32) bool {
	for _, by := range []uint64{1, 100} {
		if !d.commutesBy(i, state, in, msg, func(v uint64) uint64 { return v + by }) {
			return false
		}
	}
	return true
}

func (d *adapter[M]) commutesBy(i int, state []byte, in protocol.Input, msg uint32, add func(uint64) uint64) bool {
	run := func(before, after bool) (b []byte) {
		p, m := d.load(i, state), d.msgs[msg]
		if before {
			d.a.MapState(p, add)
			if msg != 0 {
				d.a.MapMsg(&m, add)
			}
		}
		var out protocol.Out[M]
		p.Step(protocol.Event[M]{Input: in, Msg: m}, &out)
		if after {
			d.a.MapState(p, add)
		}
		b = p.AppendState(nil)
		for _, e := range out.Effects {
			if e.Do == protocol.Send || e.Do == protocol.Broadcast {
				if after {
					d.a.MapMsg(&e.Msg, add)
				}
				b = d.a.Append(b, e.Msg)
			}
			b = fmt.Appendf(b, "%d %d %d;", e.Do, e.To, e.Timer)
		}
		return b
	}
	return string(run(true, false)) == string(run(false, true))
}

func (d *adapter[M]) invariant(name string, g *glance) error {
	for i, n := range g.locals {
		switch {
		case g.states[i] == nil:
			d.view.Procs[i] = nil
			d.loaded[i] = 0
		case d.loaded[i] != n:
			if d.view.Procs[i] == nil {
				d.view.Procs[i] = d.a.New(protocol.ID(i), d.c)
			}
			if _, err := d.view.Procs[i].LoadState(g.states[i]); err != nil {
				return err
			}
			d.loaded[i] = n
		}
	}
	d.view.Users, d.view.Lost, d.flight = g.users, g.lost, g.flight
	for _, v := range d.a.Invariants {
		if v.Name == name {
			return v.Err(&d.view)
		}
	}
	return nil
}

func (d *adapter[M]) boundsLen() int { return len(d.a.Bounds) }
