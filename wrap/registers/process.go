package registers

import "github.com/poundlock/poundlock/protocol"

// Process is one participant: a process of the algorithm, and what answers for its registers.
type Process struct {
	inner protocol.Process[struct{}]
	id    protocol.ID
	n     int
	polls bool
	names []string // of its registers

	own     []uint64 // what its registers hold, by number
	waiters []uint64 // by number and process: the least value other than 0 that it waits for; 0: it does not
	open    []uint64 // by register: 1 + what the access to another's waits for, 0 if there is none

	todo []protocol.Input // what inner is still to be told in this step
	out  protocol.Out[struct{}]
}

// register is the register that process j owns under number k.
func (p *Process) register(k int, j protocol.ID) int { return k*p.n + int(j) }

// Step implements protocol.Process.
func (p *Process) Step(ev protocol.Event[Message], out *protocol.Out[Message]) {
	switch {
	case ev.Kind == protocol.Value:
		panic("memory: unexpected event")
	case ev.Kind != protocol.Receive:
		p.give(ev.Input, out)
	case ev.Msg.Kind == Read:
		p.serve(ev.From, int(ev.Msg.Register), ev.Msg.V, out)
	default:
		p.answered(ev.From, int(ev.Msg.Register), ev.Msg.V, out)
	}
}

// give tells inner what happened, and what its accesses to own registers come to.
func (p *Process) give(in protocol.Input, out *protocol.Out[Message]) {
	p.todo = append(p.todo[:0], in)
	for i := 0; i < len(p.todo); i++ {
		p.out.Reset()
		p.inner.Step(protocol.Event[struct{}]{Input: p.todo[i]}, &p.out)
		for _, e := range p.out.Effects {
			switch r, owner := int(e.To), protocol.ID(int(e.To)%p.n); e.Do {
			case protocol.Read:
				p.ask(owner, r/p.n, 0, out)
			case protocol.Await:
				p.ask(owner, r/p.n, e.Arg, out)
			case protocol.Write:
				p.write(r/p.n, e.Arg, out)
			default:
				out.Effects = append(out.Effects, protocol.Effect[Message]{Act: e.Act})
			}
		}
	}
}

// ask reads register k of a process as soon as it is 0 or at least until.
func (p *Process) ask(owner protocol.ID, k int, until uint64, out *protocol.Out[Message]) {
	if owner == p.id {
		p.serve(owner, k, until, out)
		return
	}
	p.open[p.register(k, owner)] = 1 + until
	m := Message{Kind: Read, Register: uint64(k)}
	if !p.polls {
		m.V = until
	}
	out.Send(owner, m)
}

// serve answers a READ, or keeps it until write does.
func (p *Process) serve(from protocol.ID, k int, until uint64, out *protocol.Out[Message]) {
	if ends(p.own[k], until) {
		p.answer(from, k, out)
		return
	}
	p.waiters[p.register(k, from)] = until
}

// ends says whether v ends a wait for 0 or at least until.
func ends(v, until uint64) bool { return v == 0 || v >= until }

// write changes an own register, and answers those who wait for that in the order of ids.
func (p *Process) write(k int, v uint64, out *protocol.Out[Message]) {
	p.own[k] = v
	for j := range protocol.ID(p.n) {
		if w := &p.waiters[p.register(k, j)]; *w != 0 && ends(v, *w) {
			*w = 0
			p.answer(j, k, out)
		}
	}
	p.todo = append(p.todo, protocol.NewValue(p.register(k, p.id), 0))
}

func (p *Process) answer(to protocol.ID, k int, out *protocol.Out[Message]) {
	if to == p.id {
		p.todo = append(p.todo, protocol.Input{
			Kind: protocol.Value, From: protocol.ID(p.register(k, p.id)), Arg: p.own[k],
		})
		return
	}
	out.Send(to, Message{Kind: Value, Register: uint64(k), V: p.own[k]})
}

// answered ends an access, or polls again.
func (p *Process) answered(from protocol.ID, k int, v uint64, out *protocol.Out[Message]) {
	r := p.register(k, from)
	until := p.open[r] - 1
	switch {
	case p.open[r] == 0:
		panic("memory: a VALUE that nobody asked for")
	case !ends(v, until):
		p.ask(from, k, until, out)
		return
	}
	p.open[r] = 0
	p.give(protocol.NewValue(r, v), out)
}
