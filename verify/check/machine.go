package check

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/history"
	"github.com/poundlock/poundlock/verify/scenario"
)

// An effect is an Act with the number of its message, 0 for none.
type effect struct {
	protocol.Act
	msg uint32
}

// messages are all that were sent, interned: what machines of one search share. Numbers begin at 1.
type messages struct {
	number   map[string]uint32
	all      []message
	msgs     []any // as processes know them
	lows     [][]low
	least    []uint64                    // Counter.Least, by the number of the counter
	counters map[protocol.Counter]uint32 // their numbers
	lasts    func(m any) bool            // Model.Lasts where it counts, or nil
	lasting  []string                    // the kinds of those that last
	bytes    int64
}

// A message is what the search needs to know of a message in every state.
type message struct {
	digest
	from, to   uint8
	idempotent bool
	lasts      bool // Model.Lasts
}

// stays reports whether no receipt takes the message out of flight: it is sent again all
// the time, until it is stale where stale ones are forgotten.
func (l *message) stays(forgets bool) bool { return l.lasts || l.idempotent && forgets }

func (b *messages) from(msg uint32) int { return int(b.all[msg].from) }
func (b *messages) to(msg uint32) int   { return int(b.all[msg].to) }

// digest makes the digest of a word with these lows, from a number that no other has.
func (b *messages) digest(unique uint64, lows []low) digest {
	const odd, last = 0x9e3779b97f4a7c15, 63
	m := digest{hash: scramble((unique + 1) * odd)}
	for _, l := range lows {
		switch {
		case l.counter >= last: // these share one bit, and are never at their least
			m.above |= 1 << last
		case l.value <= b.least[l.counter]:
			m.floor |= 1 << l.counter
		default:
			m.above |= 1 << l.counter
		}
	}
	return m
}

// A low is the smallest value of a counter in one state or message.
type low struct {
	counter uint32
	value   uint64
}

// A machine is an algorithm as the search needs it: states and messages are bytes and
// numbers. Its type of messages is erased, so that the checker is compiled once, not for
// each type. It costs little: a step of one process in one state is taken once, and
// remembered.
//
// It is not safe for concurrent use. While machines that share messages are used at the same
// time, only see, invariant and text may be called.
type machine struct {
	*messages
	a      protocol.Algorithm[any]
	c      protocol.Config
	names  scenario.Names
	procs  []protocol.Process[any] // scratch, one for each process
	out    protocol.Out[any]
	codec  protocol.Codec
	state  []byte
	key    []byte
	effect []effect
	low    []low

	view   protocol.View           // of the state in loaded
	viewed []protocol.Process[any] // memory of its processes
	loaded []uint32
	flight []uint32
	lifted bool
}

// newMachine makes a machine with processes of its own; messages are those of others that it works beside, or nil.
func newMachine(a protocol.Algorithm[any], c Config, shared *messages) *machine {
	if shared == nil {
		shared = &messages{
			number: map[string]uint32{}, all: make([]message, 1), msgs: make([]any, 1), lows: make([][]low, 1),
			counters: map[protocol.Counter]uint32{},
		}
		if c.lasts {
			shared.lasts = a.Lasts
		}
	}
	total := c.N + c.Clients
	d := &machine{
		messages: shared, a: a, c: c.Config, names: scenario.Names{Members: c.N, Clients: a.Users == protocol.Clients},
		loaded: make([]uint32, total), viewed: make([]protocol.Process[any], total),
	}
	for i := range total {
		d.procs = append(d.procs, a.New(protocol.ID(i), c.Config))
	}
	d.view = protocol.View{
		Config: c.Config, Procs: make([]protocol.Stateful, total), Users: make([]protocol.Section, total), Lost: make([][]bool, total),
	}
	for i := range d.view.Lost {
		d.view.Lost[i] = make([]bool, c.N)
	}
	d.view.InFlight = func(yield func(protocol.Channel, any) bool) {
		for _, m := range d.flight {
			ch, msg := d.channel(m), d.msgs[m]
			if d.lifted {
				d.a.MapMsg(ch, &msg, d.up)
			}
			if !yield(ch, msg) {
				return
			}
		}
	}
	return d
}

func (d *machine) text(msg uint32) string { return d.names.Text(d.a.Text(d.msgs[msg])) }

// first returns the state of New for process i.
func (d *machine) first(i int) []byte {
	return d.encode(d.a.New(protocol.ID(i), d.c))
}

// encode returns the state of p, valid until the next call.
func (d *machine) encode(p protocol.Process[any]) []byte {
	p.State(d.codec.Appending(d.state[:0]))
	d.state = d.codec.Bytes()
	return d.state
}

func (d *machine) load(i int, state []byte) protocol.Process[any] {
	p := d.procs[i]
	p.State(d.codec.Loading(state))
	rest, err := d.codec.Rest()
	if err != nil || len(rest) != 0 {
		panic(fmt.Sprintf("LoadState refuses what AppendState wrote (%v, %d bytes left)", err, len(rest)))
	}
	return p
}

// step gives in to process i in an encoded state. What it returns is valid
// until the next call. beyond is the index of a bound that the new state
// exceeds, or -1; wrong holds what a panic said.
func (d *machine) step(i int, state []byte, in protocol.Input, msg uint32) (
	next []byte, effects []effect, beyond int, wrong string,
) {
	defer func() {
		if r := recover(); r != nil {
			next, effects, wrong = nil, nil, "model: panic: "+d.names.Text(fmt.Sprint(r))
		}
	}()
	beyond = -1
	p := d.load(i, state)
	d.out.Reset()
	p.Step(protocol.Event[any]{Input: in, Msg: d.msgs[msg]}, &d.out)
	d.effect = d.effect[:0]
	for _, e := range d.out.Effects {
		if d.a.Registers != nil && (e.Do == protocol.Send || e.Do == protocol.Broadcast) {
			panic(fmt.Sprintf("#%d sends a message, and its algorithm shares memory", i))
		}
		switch e.Do {
		case protocol.Send:
			if e.To == protocol.ID(i) || e.To >= protocol.ID(len(d.procs)) {
				panic(fmt.Sprintf("#%d sends %s to #%d", i, d.a.Text(e.Msg), e.To))
			}
			d.effect = append(d.effect, effect{e.Act, d.intern(i, int(e.To), e.Msg)})
		case protocol.Broadcast:
			for j := range d.c.N {
				if j != i {
					d.effect = append(d.effect, effect{protocol.Act{Do: protocol.Send, To: protocol.ID(j)}, d.intern(i, j, e.Msg)})
				}
			}
		case protocol.Propose:
			d.effect = append(d.effect, effect{e.Act, d.intern(noProcess, noProcess, e.Msg)})
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
	return d.encode(p), d.effect, beyond, ""
}

func (d *machine) intern(from, to int, m any) uint32 {
	d.key = binary.AppendUvarint(binary.AppendUvarint(d.key[:0], uint64(from)), uint64(to))
	head := len(d.key)
	d.a.Fields(m, d.codec.Appending(d.key))
	d.key = d.codec.Bytes()
	b := d.messages
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
	d.low = d.low[:0]
	if d.a.MapMsg != nil && from != noProcess {
		d.a.MapMsg(protocol.Channel{From: protocol.ID(from), To: protocol.ID(to)}, &m, d.note)
	}
	lasts := d.lasts != nil && d.lasts(m)
	b.all = append(b.all, message{
		digest: b.digest(2*uint64(n)+1, d.low), from: uint8(from), to: uint8(to),
		idempotent: lasts || d.a.Idempotent != nil && d.a.Idempotent(m), lasts: lasts,
	})
	if lasts {
		if kind := d.a.Messages[d.a.KindOf(m)].Name; !slices.Contains(b.lasting, kind) {
			b.lasting = append(b.lasting, kind)
		}
	}
	b.lows = append(b.lows, slices.Clone(d.low))
	d.msgs = append(d.msgs, m)
	b.bytes += int64(len(d.key)+16*len(d.low)) + 180
	return n
}

func (d *machine) channel(msg uint32) protocol.Channel {
	return protocol.Channel{From: protocol.ID(d.messages.from(msg)), To: protocol.ID(d.messages.to(msg))}
}

// note keeps the smallest value of each counter in d.low.
func (d *machine) note(c protocol.Counter, v uint64) uint64 {
	k, known := d.counters[c]
	if !known {
		k = uint32(len(d.messages.least))
		d.counters[c] = k
		d.messages.least = append(d.messages.least, c.Least)
	}
	for i := range d.low {
		if d.low[i].counter == k {
			d.low[i].value = min(d.low[i].value, v)
			return v
		}
	}
	d.low = append(d.low, low{k, v})
	return v
}

// lows are the smallest values of the counters in a state.
func (d *machine) lows(i int, state []byte) []low {
	d.low = d.low[:0]
	d.a.MapState(d.load(i, state), d.note)
	return slices.Clone(d.low)
}

// see puts process i into the view: its local state has number n, and it is nil where absent.
func (d *machine) see(i int, n uint32, state []byte) {
	switch {
	case state == nil:
		d.view.Procs[i], d.loaded[i] = nil, 0
	case d.loaded[i] != n:
		if d.viewed[i] == nil {
			d.viewed[i] = d.a.New(protocol.ID(i), d.c)
		}
		d.view.Procs[i] = d.viewed[i]
		d.viewed[i].State(d.codec.Loading(state))
		if _, err := d.codec.Rest(); err != nil {
			panic(fmt.Sprintf("LoadState refuses what AppendState wrote: %v", err))
		}
		if d.loaded[i] = n; d.lifted {
			d.a.MapState(d.viewed[i], d.up)
		}
	}
}

// invariant says how the view violates the invariant called name.
func (d *machine) invariant(name string) (f history.Fault) {
	for _, v := range d.a.Invariants {
		if v.Name != name {
			continue
		}
		if err := v.Err(&d.view); err != nil {
			return history.Fault{Property: name, Text: d.names.Text(err.Error())}
		}
	}
	return f
}
