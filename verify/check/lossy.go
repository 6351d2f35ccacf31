package check

import (
	"bytes"
	"fmt"

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
	if !known && x.adds() {
		var err error
		if stale, err = x.m.stale(x.locals[from].state, x.locals[to].state, msg); err != nil {
			x.deny("%w", err)
		}
		x.stale[key] = stale
		x.bytes += 40
	}
	return stale
}

// isMoot asks for the claim, once for each pair of a local state and a message.
func (x *worker) isMoot(local, msg uint32) bool {
	return once(x, &x.moot, pair(local, msg), func() bool {
		moot, err := x.m.moot(x.locals[local].state, msg)
		if err != nil {
			x.deny("%w", err)
		}
		return moot
	})
}

// moot is Model.Moot for a receiver in an encoded state. An error says that the message, if it
// arrived now, would do something all the same.
func (d *machine) moot(to []byte, msg uint32) (moot bool, err error) {
	ch := d.channel(msg)
	if moot = d.a.Moot(d.load(int(ch.To), to), ch.From, d.msgs[msg]); moot {
		err = d.idle("moot", to, msg, func(protocol.Effect[any]) bool { return false })
	}
	return moot, err
}

// stale is Model.Stale for processes in encoded states, nil where absent. An error says
// that the message, if it arrived now, would do something all the same.
func (d *machine) stale(from, to []byte, msg uint32) (stale bool, err error) {
	ch := d.channel(msg)
	load := func(id protocol.ID, state []byte) protocol.Process[any] {
		if state == nil {
			return nil
		}
		return d.load(int(id), state)
	}
	sender, receiver := load(ch.From, from), load(ch.To, to)
	if receiver == nil {
		return true, nil
	}
	if stale = d.a.Stale(sender, receiver, ch, d.msgs[msg]); stale {
		back := protocol.Channel{From: ch.To, To: ch.From}
		err = d.idle("stale", to, msg, func(e protocol.Effect[any]) bool {
			return e.Do == protocol.Send && e.To == ch.From && d.a.Stale(receiver, sender, back, e.Msg)
		})
	}
	return stale, err
}

// idle returns an error if the receipt of a message, of which a claim says what it is, changes the
// encoded state of its receiver, which is loaded, or has effects except for those that may be.
func (d *machine) idle(what string, to []byte, msg uint32, may func(protocol.Effect[any]) bool) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%s is %s, and panics: %v", d.text(msg), what, r)
		}
	}()
	ch := d.channel(msg)
	receiver := d.procs[ch.To]
	d.out.Reset()
	receiver.Step(protocol.Event[any]{Input: protocol.NewReceive(ch.From), Msg: d.msgs[msg]}, &d.out)
	nothing := bytes.Equal(d.encode(receiver), to)
	for _, e := range d.out.Effects {
		nothing = nothing && may(e)
	}
	if !nothing {
		return fmt.Errorf("%s is %s, and yet it does something", d.text(msg), what)
	}
	return nil
}
