// Package causal wraps an algorithm so that each process knows which tries happened
// before which: Lamport's relation, over the algorithm's own messages.
//
// Each frame carries, for each user of whom its sender has heard, how many tries of
// that user the sender knows: a vector clock that counts tries only. A user keeps the
// vector of its own last try. A try of v happened before a later one of u just if the
// vector of the latter counts it; so whether anybody was overtaken can be seen in one
// state, without its history, and a checker that visits each state once can tell.
//
// The wrapped algorithm does what it does without the wrapper, message by message, and
// Text does not show vectors: a trace is one of the algorithm itself.
//
// Users must not lose their memory, or they would count from the beginning.
package causal

import (
	"errors"
	"fmt"
	"slices"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/scenario"
)

// Order is the name of the property that Of adds: nobody is inside while a user
// still tries whose try happened before that of the one inside.
const Order = "order"

// A Message is a message of the algorithm, with the tries that its sender knew.
type Message[M any] struct {
	Inner M
	known vector // frozen
}

// Process is a process of the algorithm with its vectors.
type Process[M any] struct {
	inner protocol.Process[M]
	id    protocol.ID
	user  bool

	known vector // Invariant: a user counts itself
	tried vector // of the try that goes on or led inside; empty where there is none
	out   protocol.Out[M]
}

// ErrMemory is for Order where processes share memory: who reads what somebody wrote has
// heard of it, too, and no message tells the wrapper.
var ErrMemory = errors.New(Order + " follows messages, and its processes share memory")

// Check says why Order cannot be judged of an algorithm, nil if it can.
func Check(i protocol.Info) error {
	if i.Registers != nil {
		return ErrMemory
	}
	return nil
}

// Of returns a, which must pass Check, with vectors and the invariant Order. Its other
// invariants, its bounds and its claims are those of a.
func Of[M any](a protocol.Algorithm[M]) protocol.Algorithm[Message[M]] {
	if err := Check(a.Info); err != nil {
		panic(fmt.Sprintf("causal: %s: %v", a.Name, err))
	}
	w := protocol.Algorithm[Message[M]]{
		Info: a.Info,
		New: func(id protocol.ID, c protocol.Config) protocol.Process[Message[M]] {
			p := &Process[M]{inner: a.New(id, c), id: id}
			if p.user = (id < protocol.ID(c.N)) == (a.Users == protocol.Members); p.user {
				p.known = vector{{id, least}}
			}
			return p
		},
		Fields: func(m Message[M], c *protocol.Codec) Message[M] {
			if !c.Moving() { // the algorithm moves its own counters
				m.Inner = a.Visit(m.Inner, c)
			}
			m.known.fields(c)
			return m
		},
		KindOf: func(m Message[M]) int { return a.KindOf(m.Inner) },
		Ints:   func(m Message[M]) int { return a.Ints(m.Inner) },
		Text:   func(m Message[M]) string { return a.Text(m.Inner) },
	}
	w.Tolerates &^= protocol.Recovery // who comes back has forgotten its tries
	moveKnown := protocol.MapMsg(w.Fields)
	w.MapState = func(p protocol.Process[Message[M]], f func(protocol.Counter, uint64) uint64) {
		protocol.MapState(p, f)
		if a.MapState != nil {
			a.MapState(p.(*Process[M]).inner, f)
		}
	}
	w.MapMsg = func(ch protocol.Channel, m *Message[M], f func(protocol.Counter, uint64) uint64) {
		moveKnown(ch, m, f)
		if a.MapMsg != nil {
			a.MapMsg(ch, &m.Inner, f)
		}
	}
	w.Invariants = append([]protocol.Invariant{{
		Name: Order,
		Err:  func(v *protocol.View) error { return overtaken[M](v, a.Users) },
	}}, a.Invariants...)
	if a.Idempotent != nil {
		w.Idempotent = func(m Message[M]) bool { return a.Idempotent(m.Inner) }
	}
	if a.Lasts != nil {
		w.Lasts = func(m Message[M]) bool { return a.Lasts(m.Inner) }
	}
	w.Bounds, w.Unsettled = a.Bounds, a.Unsettled
	return w
}

// Unwrap returns the process that p wraps.
func (p *Process[M]) Unwrap() any { return p.inner }

// Unwrap returns the message of the algorithm.
func (m Message[M]) Unwrap() any { return m.Inner }

// overtaken is the property Order.
func overtaken[M any](v *protocol.View, users protocol.Users) error {
	for u, p := range protocol.Procs[*Process[M]](v) {
		if v.Users[u] != protocol.InCrit {
			continue
		}
		for w, q := range protocol.Procs[*Process[M]](v) {
			if v.Users[w] != protocol.InTry {
				continue
			}
			if try := q.tried.of(w); try != 0 && p.tried.of(w) >= try {
				return fmt.Errorf("order: %s is inside, and %s still tries, whose try happened before",
					name(u, v.Config.N, users), name(w, v.Config.N, users))
			}
		}
	}
	return nil
}

// name is what a scenario calls user u.
func name(u protocol.ID, n int, users protocol.Users) string {
	return scenario.Names{Members: n, Clients: users == protocol.Clients}.Of(u)
}

// Step implements protocol.Process.
func (p *Process[M]) Step(ev protocol.Event[Message[M]], out *protocol.Out[Message[M]]) {
	switch ev.Kind {
	case protocol.Receive:
		p.known = p.known.merge(ev.Msg.known)
	case protocol.Try:
		p.known.count(p.id)
		p.tried = append(p.tried[:0], p.known...)
	case protocol.Exit, protocol.Cancel:
		p.tried = p.tried[:0]
	}
	p.out.Reset()
	p.inner.Step(protocol.Event[M]{Input: ev.Input, Msg: ev.Msg.Inner}, &p.out)
	var known vector
	for _, e := range p.out.Effects {
		m := Message[M]{Inner: e.Msg}
		switch e.Do {
		case protocol.Rem, protocol.Ejected:
			p.tried = p.tried[:0]
		case protocol.Send, protocol.Broadcast:
			if known == nil {
				known = slices.Clone(p.known)
			}
			m.known = known
		}
		out.Effects = append(out.Effects, protocol.Effect[Message[M]]{Act: e.Act, Msg: m})
	}
}

// State implements protocol.Process.
func (p *Process[M]) State(c *protocol.Codec) {
	if !c.Moving() { // the algorithm moves its own counters
		p.inner.State(c)
	}
	p.known.fields(c)
	p.tried.fields(c)
	c.Want(!p.user || p.known.of(p.id) != 0)
}
