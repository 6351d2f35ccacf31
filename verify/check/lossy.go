package check

import (
	"bytes"

	"github.com/poundlock/poundlock/protocol"
)

// channelFaults appends the faults of channels: a message on its way is lost, or there
// is one more copy of it. One that may arrive any number of times is not repeated.
func (x *worker) channelFaults(list []action) []action {
	st := x.st
	if !x.affords(lose) && !x.affords(duplicate) {
		return list
	}
	for at := x.flight; at < len(st); at++ {
		if at > x.flight && st[at] == st[at-1] {
			continue
		}
		l := &x.messages.all[st[at]]
		a := action{verb: lose, a: l.from, b: l.to, arg: st[at], at: uint32(at)}
		if x.affords(lose) {
			list = append(list, a)
		}
		if a.verb = duplicate; x.affords(duplicate) && !l.idempotent {
			list = append(list, a)
		}
	}
	return list
}

// A pairing is a message between two processes in some local states, 0 where absent.
type pairing struct{ from, to, msg uint32 }

// forget takes the messages that can do nothing any more out of the vector being built: the stale
// and the moot ones of those from process p or to it, now that it has made a step, or of all where
// p is nobody. A run to follow keeps moot ones: whoever takes it elsewhere may deliver them.
func (x *worker) forget(p int) {
	drops := x.drops && !x.raw
	if !x.forgets && !drops {
		return
	}
	st, kept := x.next, x.next[:x.flight]
	for _, msg := range st[x.flight:] {
		l := &x.messages.all[msg]
		near := p == nobody || int(l.from) == p || int(l.to) == p
		if !near || !(x.forgets && x.isStale(st[1+l.from], st[1+l.to], msg) || drops && x.isMoot(st[1+l.to], msg)) {
			kept = append(kept, msg)
		}
	}
	x.next = kept
}

// isStale asks for the claim, once for each message between two processes in their local states.
func (x *worker) isStale(from, to, msg uint32) bool {
	key := pairing{from, to, msg}
	stale, known := x.stale[key]
	if known || !x.adds() {
		return stale
	}
	load := func(id protocol.ID, local uint32) protocol.Process[any] {
		if x.locals[local].state == nil {
			return nil // it is absent
		}
		return x.m.load(int(id), x.locals[local].state)
	}
	ch := x.m.channel(msg)
	back := protocol.Channel{From: ch.To, To: ch.From}
	sender, receiver := load(ch.From, from), load(ch.To, to)
	if stale = receiver == nil; !stale && x.m.a.Stale(sender, receiver, ch, x.m.msgs[msg]) {
		stale = true
		x.idle("stale", to, msg, func(e protocol.Effect[any]) bool {
			return e.Do == protocol.Send && e.To == ch.From && x.m.a.Stale(receiver, sender, back, e.Msg)
		})
	}
	x.stale[key] = stale
	x.bytes += 40
	return stale
}

// isMoot asks for the claim, once for each pair of a local state and a message.
func (x *worker) isMoot(local, msg uint32) bool {
	return once(x, &x.moot, pair(local, msg), func() bool {
		ch := x.m.channel(msg)
		moot := x.m.a.Moot(x.m.load(int(ch.To), x.locals[local].state), ch.From, x.m.msgs[msg])
		if moot {
			x.idle("moot", local, msg, func(protocol.Effect[any]) bool { return false })
		}
		return moot
	})
}

// idle denies what a claim says of a message if its receipt, in a local state which is loaded, changes that
// state or has effects except for those that may be.
func (x *worker) idle(what string, local, msg uint32, may func(protocol.Effect[any]) bool) {
	defer func() {
		if r := recover(); r != nil {
			x.deny("%s is %s, and panics: %v", x.m.text(msg), what, r)
		}
	}()
	d, ch := x.m, x.m.channel(msg)
	receiver := d.procs[ch.To]
	d.out.Reset()
	receiver.Step(protocol.Event[any]{Input: protocol.NewReceive(ch.From), Msg: d.msgs[msg]}, &d.out)
	nothing := bytes.Equal(d.encode(receiver), x.locals[local].state)
	for _, e := range d.out.Effects {
		nothing = nothing && may(e)
	}
	if !nothing {
		x.deny("%s is %s, and yet it does something", d.text(msg), what)
	}
}
