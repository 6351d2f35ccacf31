package check

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/history"
)

// initial returns the state after every process had its Start, and every client
// with leases heard of every member. A problem there is one of no trace.
func (x *worker) initial(entries []int) (st []uint32, problem history.Fault) {
	x.next = append(x.next[:0], make([]uint32, x.flight)...)
	x.next[0] = x.budget
	x.remember()
	x.share()
	apply := func(m *move) history.Fault {
		n := m.problem
		if n == 0 {
			n = x.complete(m, x.locals[m.to].proc)
		}
		return x.problem(n)
	}
	// A message vanishes only where its receiver is down, not where it has not started yet.
	for i := range x.rules.Total {
		if !x.down[i] {
			x.next[1+i] = math.MaxUint32
		}
	}
	for i := range x.rules.Total {
		if x.down[i] {
			continue
		}
		if x.sym != nil && !x.m.begins(i, x.swap(i)) {
			x.asymmetric("process %d does not begin like another one with two of them exchanged", i)
		}
		l := local{End: x.rules.First(i), proc: i, state: x.m.first(i)}
		if k := i - (x.rules.Total - len(entries)); k >= 0 && entries[k] > 0 {
			l.entries = uint32(entries[k])
		}
		m := x.take(l, 0, l.Start())
		if problem = apply(&m); problem != (history.Fault{}) {
			return nil, problem
		}
	}
	for p := range x.rules.Total { // what a member sends to one that was not restored yet waits for it
		for q := range x.rules.Config.N {
			if p == q || x.down[q] || !x.rules.Mutual && (!x.rules.Leases || p < x.rules.Config.N) {
				continue
			}
			n := x.move(x.next[1+p], restore, uint64(q)|1<<8)
			if problem = apply(&x.moves[n]); problem != (history.Fault{}) {
				return nil, problem
			}
		}
	}
	x.normal()
	return slices.Clone(x.next), problem
}

// appendLocal appends the encoding of l: equal ones are equal local states.
func appendLocal(k []byte, l local) []byte {
	k = binary.AppendUvarint(k, uint64(l.proc))
	k = binary.AppendUvarint(k, uint64(l.entries))
	k = l.End.Append(k)
	k = append(k, l.state...)
	return k
}

// intern returns the number of l. It copies what it keeps.
func (x *worker) intern(l local) uint32 {
	k := appendLocal(x.key[:0], l)
	x.key = k
	if n, ok := x.number[string(k)]; ok || !x.adds() {
		return n
	}
	n := uint32(len(x.locals))
	x.number[string(k)] = n
	l.state = slices.Clone(l.state)
	if l.state == nil && !l.Gone {
		l.state = []byte{} // nil means absent
	}
	l.lows = nil
	if x.shifts && !l.Gone {
		l.lows = x.m.lows(l.proc, l.state)
	}
	x.locals = append(x.locals, l)
	x.summaries = append(x.summaries, summary{
		digest: x.messages.digest(2*uint64(n), l.lows), section: l.Section, tries: l.entries > 0 || x.endless[l.proc],
		timers: len(l.Timers) > 0, paused: l.Paused, unaware: l.Unaware(), tasks: l.Tasks > 0, apart: l.Lapsed != 0, gone: l.Gone,
	})
	x.bytes += int64(len(k) + len(l.state) + 4*len(l.Timers) + 8*len(l.Known) + 32*len(l.Open) + 16*len(l.lows) + 16*len(l.Past) + 440)
	return n
}

// The key of a move is the number of the local state, and in the lower half the
// verb and the argument. Arguments that need more bits are numbered.
const argBits = 26

// The verb has what is left of the lower half.
var _ [1<<(31-argBits) - len(verbs)]struct{}

func (x *worker) moveKey(from uint32, v verb, arg uint64) uint64 {
	if arg >= 1<<argBits {
		n, known := x.wide[arg]
		if !known && x.adds() {
			n = uint32(len(x.wide))
			x.wide[arg] = n
		}
		arg = uint64(n) | 1<<argBits
	}
	return scramble(uint64(from)<<32 | uint64(v)<<(argBits+1) | arg)
}

// move returns the index of the move that an event makes from a local state.
func (x *worker) move(from uint32, v verb, arg uint64) (n uint32) {
	key := x.moveKey(from, v, arg)
	if n, known := x.moveOf.find(key); known || !x.adds() {
		return n
	}
	l, ins, msg := x.input(from, v, arg)
	state, before := l.state, l.lows
	m := x.take(l, msg, ins...)
	x.note(&m, before, x.messages.lows[msg])
	// Every 16th distinct step is enough to catch a false claim: a wrong MapState
	// or MapMsg shows in most steps that touch a clock.
	x.fresh++
	if m.problem == 0 && v != recovery && v != resume && (x.fresh < 1000 || x.fresh%16 == 0) {
		if x.shifts && v != amnesia && !x.reduction.believes && !x.m.moves(l.proc, state, ins[0], msg) {
			x.deny("step %v of process %d does not commute with moving the values of a counter", ins[0], l.proc)
		}
		if x.sym != nil && !x.m.permutes(l.proc, state, ins[0], msg, x.swap(x.fresh)) {
			x.asymmetric("step %v of process %d does not commute with exchanging two of them", ins[0], l.proc)
		}
	}
	x.moves = append(x.moves, m)
	n, _ = x.moveOf.add(key)
	return n
}

// input returns the events that an action gives to a process in a local state, mostly one, and
// that state with what the action means to its user, its timers and its leases.
func (x *worker) input(from uint32, v verb, arg uint64) (l local, ins []protocol.Input, msg uint32) {
	l = x.locals[from]
	var in protocol.Input
	switch v {
	case try:
		in = l.Try(x.wants[l.proc][arg])
		if !x.endless[l.proc] {
			l.entries--
		}
	case downgrade:
		in = protocol.NewDowngrade(l.Group.Below())
	case cancel:
		in.Kind = protocol.Cancel
	case exit:
		in.Kind = protocol.Exit
	case issue:
		l.Tasks--
		in = x.rules.Issue(&l.End, l.proc)
	case hear:
		msg = uint32(arg)
		in.Kind, in.Arg = protocol.Decide, arg>>32
	case drain:
		in.Kind = protocol.Drain
	case timeout:
		in = l.Fire(uint32(arg))
	case deliver:
		msg = uint32(arg)
		in.Kind, in.From = protocol.Receive, protocol.ID(x.messages.from(msg))
	case read, awaitOverlap:
		c := &x.shared.contents[arg]
		in = l.Value(c.register, c.Value)
	case write:
		in = l.End.Value(int(arg), 0)
	case resume:
		return l, x.rules.Resume(&l.End), 0
	case suspect, lapse, lapseBroken, lapsePaused, mistake, suspectPaused:
		in = x.rules.Suspect(&l.End, int(arg), v == lapse || v == lapseBroken || v == lapsePaused)
		if !x.tracks {
			l.Doubts = 0
		}
	case restore:
		in = x.rules.Restore(&l.End, int(arg&0xff), arg>>8)
	case amnesia, recovery:
		l = local{End: x.rules.Reborn(&l.End, l.proc), proc: l.proc, entries: l.entries, state: x.m.first(l.proc)}
		in = l.Start()
	}
	return l, []protocol.Input{in}, msg
}

// take steps the process of l.
func (x *worker) take(l local, msg uint32, ins ...protocol.Input) move {
	none := span{uint32(len(x.sent)), uint32(len(x.sent))}
	failed := func(f history.Fault) move { return move{problem: x.problemOf(f), sends: none, bound: -1} }
	d := update{proc: l.proc}
	for _, in := range ins {
		if f := x.rules.Input(&l.End, l.proc, in); f != (history.Fault{}) {
			return failed(f)
		}
		x.recordInput(&d, in, msg)
	}
	state, effects, beyond, wrong := x.steps(&l, msg, ins...)
	if wrong != "" {
		return failed(history.Fault{Property: Model, Text: wrong})
	}
	m := move{
		bound: int32(beyond), plain: !x.forgets && !x.drops, sends: none, set: span{uint32(len(x.set)), uint32(len(x.set))},
	}
	l.state = state
	for _, e := range effects {
		x.recordEffect(&d, e)
		if e.Do == protocol.Send {
			x.sent = append(x.sent, e.msg)
			if to := x.messages.to(e.msg); !x.down[to] {
				m.add(x.messages.all[e.msg].digest)
			}
			m.plain = m.plain && !x.messages.all[e.msg].idempotent
			continue
		}
		f := x.rules.Effect(&l.End, l.proc, e.Act)
		switch {
		case f.Property == Model:
			return failed(f)
		case f != (history.Fault{}) && m.problem == 0:
			m.problem = x.problemOf(f)
		}
		switch e.Do {
		case protocol.Crit:
			l.Tasks = x.tasks[l.proc]
		case protocol.SetTimer:
			x.timersSet = true
			x.set = append(x.set, e.Timer)
		}
	}
	l.Rest()
	m.update = x.internUpdate(d)
	m.to = x.intern(l)
	m.sends.to, m.set.to = uint32(len(x.sent)), uint32(len(x.set))
	m.add(x.summaries[m.to].digest)
	return m
}

// problemOf numbers a problem.
func (x *worker) problemOf(f history.Fault) uint32 {
	x.problems = append(x.problems, f)
	return uint32(len(x.problems))
}

// problem is the one with a number; 0: there is none.
func (x *worker) problem(n uint32) (f history.Fault) {
	if n > 0 {
		f = x.problems[n-1]
	}
	return f
}

// steps steps the process of l, and answers where it captures its copy of the object. What it
// returns is valid until the next step.
func (x *worker) steps(l *local, msg uint32, ins ...protocol.Input) (state []byte, effects []effect, beyond int, wrong string) {
	state, beyond = l.state, -1
	end := l.End
	for i := 0; i < len(ins) && wrong == ""; i++ {
		if i > 0 { // the machine has one memory for all steps
			state, effects = slices.Clone(state), slices.Clone(effects)
		}
		var more []effect
		state, more, beyond, wrong = x.m.step(l.proc, state, ins[i], msg)
		captures := false
		for _, e := range more {
			end.Execute(e.Act)
			captures = captures || e.Do == protocol.Capture
		}
		if captures {
			ins, msg = slices.Insert(slices.Clone(ins), i+1, end.Captured()), 0
		}
		if effects = append(effects, more...); i == 0 {
			effects = more
		}
	}
	return state, effects, beyond, wrong
}

// add adds another digest.
func (m *digest) add(o digest) {
	m.hash += o.hash
	m.floor |= o.floor
	m.above |= o.above
}
