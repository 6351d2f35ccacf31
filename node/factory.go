package node

import (
	"bytes"

	"github.com/poundlock/poundlock/protocol"
)

// A factory makes the processes of a loop, and knows what a new one is told of the members and of this one. So it
// can say which process nothing distinguishes from a new one: that one is idle, and need not be kept.
type factory struct {
	n        *Node
	live     []uint64 // incarnations of members, where processes are told: 0: not trusted, or not heard of yet
	suspects []bool   // by member
	draining bool
	measured map[Kind]measured // see system
	fresh    map[Kind][]byte   // the states of processes just made, as far as they are known
	state    []byte            // scratch
	events   []protocol.Input  // scratch
}

func newFactory(n *Node) factory {
	return factory{
		n: n, live: make([]uint64, n.c.System.N), suspects: make([]bool, n.c.System.N),
		measured: map[Kind]measured{}, fresh: map[Kind][]byte{},
	}
}

// make makes a process, before its Start.
func (f *factory) make(kind Kind) Instance { return f.n.c.Hosts[kind].New(f.n.c.ID, f.system(kind)) }

// first are the first events of an instance.
func (f *factory) first(kind Kind) []protocol.Input {
	f.events = append(f.events[:0], protocol.NewStart(f.n.roles.life(f.n.incarnation)))
	for id, incarnation := range f.live {
		if incarnation != 0 {
			f.events = append(f.events, protocol.NewRestore(protocol.ID(id), incarnation))
		}
	}
	for id, suspected := range f.suspects {
		if suspected {
			f.events = append(f.events, protocol.NewSuspect(protocol.ID(id)))
		}
	}
	if f.draining && f.n.c.Hosts[kind].Info().Drains {
		f.events = append(f.events, protocol.Input{Kind: protocol.Drain})
	}
	return f.events
}

// trusts notes that a life of a member is trusted from now on.
func (f *factory) trusts(id protocol.ID, life uint64) {
	f.live[id], f.suspects[id] = life, false
	clear(f.fresh)
}

// loses notes that a member is not trusted any more: new processes are told that it is suspected, where that is not
// what they begin with.
func (f *factory) loses(id protocol.ID) {
	f.live[id], f.suspects[id] = 0, f.n.roles.watched()
	clear(f.fresh)
}

// drains notes that new processes are to give nothing to anybody.
func (f *factory) drains() {
	f.draining = true
	clear(f.fresh)
}

// trial makes a process for no lock, and starts it. It returns the process and its state; nil if that fails.
func (f *factory) trial(kind Kind) (p Instance, fresh []byte) {
	p = f.make(kind)
	for _, in := range f.first(kind) {
		in.Now = f.n.clock.now()
		if p.Step(in, nil, new(noticed)) != nil {
			return nil, nil
		}
	}
	fresh, err := p.AppendState([]byte{})
	if err != nil {
		return nil, nil
	}
	return p, fresh
}

// idle reports whether nothing distinguishes a process from a new one.
func (f *factory) idle(kind Kind, p Instance) (bool, error) {
	fresh := f.fresh[kind]
	if fresh == nil {
		if _, fresh = f.trial(kind); fresh == nil {
			return false, nil
		}
		f.fresh[kind] = fresh
	}
	var err error
	f.state, err = p.AppendState(f.state[:0])
	return err == nil && bytes.Equal(f.state, fresh), err
}
