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
	links    []link   // by member, where they hold leases at each other
	draining bool
	measured map[Kind]measured // see system
	fresh    map[Kind]*newborn // as far as it is known
	version  uint8             // of what system returns
	state    []byte            // scratch
	events   []protocol.Input  // scratch
}

func newFactory(n *Node) factory {
	f := factory{
		n: n, live: make([]uint64, n.c.System.N), suspects: make([]bool, n.c.System.N), links: make([]link, n.c.System.N),
		measured: map[Kind]measured{}, fresh: map[Kind]*newborn{},
	}
	if n.roles.mutual() && n.c.Joins {
		for id := range f.links {
			f.links[id] = link{lapsed: true, broken: true}
		}
	}
	return f
}

// born returns a process like a new one that has had its first events, which it has been told before; nil if there is none.
func (f *factory) born(kind Kind) Instance {
	f.system(kind)
	fresh := f.fresh[kind]
	if fresh == nil || len(fresh.spare) == 0 {
		return nil
	}
	last := len(fresh.spare) - 1
	p := fresh.spare[last]
	fresh.spare[last] = nil
	fresh.spare = fresh.spare[:last]
	return p
}

// keep keeps the process of an instance that is idle, for the next one.
func (f *factory) keep(i *instance) {
	if fresh := f.fresh[i.kind]; fresh != nil && !fresh.acts && i.version == f.version && len(fresh.spare) < spareProcesses {
		fresh.spare = append(fresh.spare, i.process)
	}
}

// spareProcesses is how many processes without a lock a loop keeps, of one kind.
const spareProcesses = 64

// make makes a process, before its Start.
func (f *factory) make(kind Kind) Instance { return f.n.c.Hosts[kind].New(f.n.c.ID, f.system(kind)) }

// first are the first events of an instance.
func (f *factory) first(kind Kind) []protocol.Input {
	f.events = append(f.events[:0], protocol.NewStart(f.n.roles.life(f.n.incarnation)))
	for id, incarnation := range f.live {
		if incarnation != 0 && !f.n.roles.mutual() {
			f.events = append(f.events, protocol.NewRestore(protocol.ID(id), incarnation))
		}
	}
	if f.n.roles.mutual() {
		f.replay()
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
	k := &f.links[id]
	k.lapsed, k.ended, k.broken = false, false, k.broken || life != 1
	clear(f.fresh)
}

// loses notes that a member is not trusted any more: new processes are told that it is suspected, where that is not
// what they begin with. It reports whether that is news.
func (f *factory) loses(id protocol.ID) bool {
	if f.n.roles.mutual() {
		if f.links[id].lapsed {
			return false
		}
		f.links[id] = link{lapsed: true, broken: true}
	}
	f.live[id], f.suspects[id] = 0, f.n.roles.watched()
	clear(f.fresh)
	return true
}

// drains notes that new processes are to give nothing to anybody.
func (f *factory) drains() {
	f.draining = true
	clear(f.fresh)
}

// trial makes a process for no lock, and starts it. It returns the process and its state; nil if that fails.
func (f *factory) trial(kind Kind, effects Sink) (p Instance, fresh []byte) {
	p = f.make(kind)
	for _, in := range f.first(kind) {
		in.Now = f.n.clock.now()
		if p.Step(in, nil, effects) != nil {
			return nil, nil
		}
	}
	fresh, err := p.AppendState([]byte{})
	if err != nil {
		return nil, nil
	}
	return p, fresh
}

// A newborn is what is known of processes just made.
type newborn struct {
	state []byte
	sends bool
	acts  bool       // as it begins: one that has begun is not like it
	spare []Instance // in this state
}

// noticedSends is a Sink that only notices whether something is sent, and whether there are effects at all.
type noticedSends struct {
	noticed
	sends bool
}

func (n *noticedSends) Effect(a protocol.Act, _ int, _ []byte) {
	n.noticed = true
	n.sends = n.sends || a.Do == protocol.Send || a.Do == protocol.Broadcast
}

// idle reports whether nothing distinguishes a process from a new one. Where a process sends something as it begins, such as
// a token, no process is idle: a new one in its place would send that again.
func (f *factory) idle(kind Kind, p Instance) (bool, error) {
	fresh := f.fresh[kind]
	if fresh == nil {
		var effects noticedSends
		_, state := f.trial(kind, &effects)
		if state == nil {
			return false, nil
		}
		fresh = &newborn{state: state, sends: effects.sends, acts: bool(effects.noticed)}
		f.fresh[kind] = fresh
	}
	if fresh.sends {
		return false, nil
	}
	var err error
	f.state, err = p.AppendState(f.state[:0])
	return err == nil && bytes.Equal(f.state, fresh.state), err
}
