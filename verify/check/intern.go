package check

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/poundlock/poundlock/protocol"
)

// initial returns the state after every process had its Start, and every client
// with leases heard of every member. A problem there is one of no trace.
func (x *worker) initial(entries []int) ([]uint32, *problem) {
	x.next = append(x.next[:0], make([]uint32, x.flight)...)
	x.next[0] = x.budget
	x.remember()
	x.share()
	apply := func(m *move) *problem {
		if m.problem != 0 {
			return &x.problems[m.problem-1]
		}
		if fault, _ := x.complete(m, x.locals[m.to].proc); fault != 0 {
			return &x.problems[fault-1]
		}
		return nil
	}
	// A message vanishes only where its receiver is down, not where it has not started yet.
	for i := range x.total {
		if !x.down[i] {
			x.next[1+i] = math.MaxUint32
		}
	}
	for i := range x.total {
		if x.down[i] {
			continue
		}
		if x.sym != nil && !x.m.begins(i, x.swap(i)) {
			x.asymmetric("process %d does not begin like another one with two of them exchanged", i)
		}
		l := local{proc: i, state: x.m.first(i)}
		if x.lives {
			l.life = 1
		}
		if k := i - (x.total - len(entries)); k >= 0 && entries[k] > 0 {
			l.entries = uint32(entries[k])
		}
		if x.leases && i >= x.members {
			l.known = make([]uint64, x.members)
		}
		if x.mutual {
			x.unleased(&l)
			l.ended = l.lapsed // as if after a session: the first one begins at once
		}
		m := x.begin(l)
		if p := apply(&m); p != nil {
			return nil, p
		}
	}
	for i := x.members; x.leases && i < x.total; i++ {
		for j := range x.members {
			if x.down[j] {
				continue
			}
			n, _ := x.move(x.next[1+i], restore, uint64(j)|1<<8)
			if p := apply(&x.moves[n]); p != nil {
				return nil, p
			}
		}
	}
	if x.mutual {
		if p := x.beginSessions(apply); p != nil {
			return nil, p
		}
	}
	for i := range x.total {
		x.forget(i)
	}
	x.normal()
	return slices.Clone(x.next), nil
}

// begin gives l its Start.
func (x *worker) begin(l local) move {
	return x.take(l, protocol.Input{Kind: protocol.Start, Arg: l.life}, 0)
}

// appendLocal appends the encoding of l: equal ones are equal local states.
func appendLocal(k []byte, l local) []byte {
	k = binary.AppendUvarint(k, uint64(l.proc))
	k = binary.AppendUvarint(k, uint64(l.section))
	k = binary.AppendUvarint(k, uint64(l.entries))
	k = binary.AppendUvarint(k, l.life)
	k = binary.AppendUvarint(k, l.lost)
	k = binary.AppendUvarint(k, l.lapsed)
	k = binary.AppendUvarint(k, l.ended)
	for _, v := range l.known {
		k = binary.AppendUvarint(k, v)
	}
	k = binary.AppendUvarint(k, uint64(len(l.timers)))
	for _, t := range l.timers {
		k = binary.AppendUvarint(k, uint64(t))
	}
	k = binary.AppendUvarint(k, uint64(len(l.open)))
	for _, o := range l.open {
		k = append(k, byte(o.Do), byte(o.Register))
		k = protocol.AppendBool(binary.AppendUvarint(k, o.Arg), o.Begun)
	}
	k = l.appendPeer(k)
	k = append(k, l.state...)
	return k
}

// intern returns the number of l. It copies what it keeps. A frozen worker knows
// only what was interned before.
func (x *worker) intern(l local) (number uint32, known bool) {
	k := appendLocal(x.key[:0], l)
	x.key = k
	if n, ok := x.number[string(k)]; ok || x.frozen {
		return n, ok
	}
	n := uint32(len(x.locals))
	x.number[string(k)] = n
	l.state, l.timers, l.known = slices.Clone(l.state), slices.Clone(l.timers), slices.Clone(l.known)
	if l.state == nil && !l.gone {
		l.state = []byte{} // nil means absent
	}
	l.lows = nil
	if x.shifts && !l.gone {
		l.lows = x.m.lows(l.proc, l.state)
	}
	x.locals = append(x.locals, l)
	x.faces = append(x.faces, face{
		mark: x.mail.mark(2*uint64(n), l.lows), section: l.section, tries: l.entries > 0 || x.endless[l.proc],
		timers: len(l.timers) > 0, tasks: l.tasks > 0, apart: l.lapsed != 0, gone: l.gone, group: l.group,
	})
	x.bytes += int64(len(k) + len(l.state) + 4*len(l.timers) + 8*len(l.known) + 32*len(l.open) + 16*len(l.lows) + 16*len(l.past) + 440)
	return n, true
}

// The key of a move is the number of the local state, and in the lower half the
// verb and the argument. Arguments that need more bits are numbered.
const argBits = 26

// The verb has what is left of the lower half.
var _ [1<<(31-argBits) - len(verbs)]struct{}

func (x *worker) moveKey(from uint32, v verb, arg uint64) (key uint64, known bool) {
	if arg >= 1<<argBits {
		n, known := x.wide[arg]
		if !known && x.frozen {
			return 0, false
		} else if !known {
			n = uint32(len(x.wide))
			x.wide[arg] = n
		}
		arg = uint64(n) | 1<<argBits
	}
	return scramble(uint64(from)<<32 | uint64(v)<<(argBits+1) | arg), true
}

// move returns the index of the move that an event makes from a local state. A
// frozen worker knows only what was computed before.
func (x *worker) move(from uint32, v verb, arg uint64) (n uint32, known bool) {
	key, known := x.moveKey(from, v, arg)
	if !known {
		return 0, false
	}
	if n, known = x.moveOf.find(key); known || x.frozen {
		return n, known
	}
	l, in, msg := x.input(from, v, arg)
	state, before := l.state, l.lows
	m := x.take(l, in, msg)
	x.note(&m, before, x.mail.lows[msg])
	// Every 16th distinct step is enough to catch a false claim: a wrong MapState
	// or MapMsg shows in most steps that touch a clock.
	if x.fresh++; v != amnesia && v != recovery && x.shifts && m.problem == 0 && (x.fresh < 1000 || x.fresh%16 == 0) &&
		!x.reduction.believes && !x.m.commutes(l.proc, state, in, msg) && x.claim == nil {
		x.claim = fmt.Errorf("%w: %s: step %v of process %d does not commute with moving the values of a counter",
			ErrClaim, x.info.Name, in, l.proc)
	}
	if x.sym != nil && v != recovery && m.problem == 0 && (x.fresh < 1000 || x.fresh%16 == 0) &&
		!x.m.permutes(l.proc, state, in, msg, x.swap(x.fresh)) {
		x.asymmetric("step %v of process %d does not commute with exchanging two of them", in, l.proc)
	}
	x.moves = append(x.moves, m)
	n, _ = x.moveOf.add(key)
	return n, true
}

// input returns what an event gives to a process in a local state, and that state
// with what the event means to its user, its timers and its leases.
func (x *worker) input(from uint32, v verb, arg uint64) (l local, in protocol.Input, msg uint32) {
	l = x.locals[from]
	switch v {
	case try:
		in.Kind, in.Data = protocol.Try, string(x.wanted[arg])
		l.wants = uint8(arg)
		if !x.endless[l.proc] {
			l.entries--
		}
	case cancel:
		in.Kind = protocol.Cancel
	case exit:
		in.Kind = protocol.Exit
	case issue:
		l.tasks--
		l.issued++
		in.Kind, in.Data = protocol.Issue, x.operation(l.proc, l.issued)
	case hear:
		msg = uint32(arg)
		in.Kind, in.Arg = protocol.Decide, arg>>32
	case drain:
		in.Kind = protocol.Drain
	case timeout:
		in.Kind, in.Timer = protocol.Timeout, uint32(arg)
		l.timers = slices.DeleteFunc(slices.Clone(l.timers), func(t uint32) bool { return t == in.Timer })
	case deliver:
		msg = uint32(arg)
		in.Kind, in.From = protocol.Receive, protocol.ID(x.mail.from(msg))
	case read, peek:
		c := &x.registers.contents[arg]
		in.Kind, in.From, in.Arg = protocol.Value, protocol.ID(c.register), c.value
		l.open = slices.Clone(l.open).Done(c.register)
	case write:
		in.Kind, in.From = protocol.Value, protocol.ID(arg)
		l.open = slices.Clone(l.open).Done(int(arg))
	case suspect, lapse, follow, mistake:
		in.Kind, in.From = protocol.Suspect, protocol.ID(arg)
		if x.mutual {
			in.Arg = l.suspects(v, arg)
			break
		}
		if v == lapse {
			l.lapsed |= 1 << arg
		}
		if x.tracks {
			l.doubts |= 1 << arg
		}
	case restore:
		in.Kind, in.From, in.Arg = protocol.Restore, protocol.ID(arg&0xff), arg>>8
		if x.mutual {
			l.restores(arg&0xff, in.Arg)
			break
		}
		if x.peers {
			l.doubts &^= 1 << in.From
			break
		}
		l.lapsed &^= 1 << in.From
		l.ended &^= 1 << in.From
		l.known = slices.Clone(l.known)
		l.known[in.From] = in.Arg
	case amnesia, recovery:
		l = local{proc: l.proc, entries: l.entries, life: l.life, past: l.past, issued: l.issued, state: x.m.first(l.proc)}
		if in.Kind = protocol.Start; x.lives {
			l.life++
			in.Arg = l.life
		}
		if x.mutual {
			x.unleased(&l)
		}
	}
	return l, in, msg
}

// take steps the process of l.
func (x *worker) take(l local, in protocol.Input, msg uint32) move {
	none := span{uint32(len(x.sent)), uint32(len(x.sent))}
	failed := func(err error) move { return move{problem: x.problemOf(Model, err), sends: none, bound: -1} }
	x.users[l.proc] = l.section
	if err := x.users.Input(protocol.ID(l.proc), in); err != nil {
		return failed(err)
	}
	state, effects, beyond, err := x.steps(&l, in, msg)
	if err != nil {
		return failed(err)
	}
	d := deed{proc: l.proc}
	x.witness(&d, in, msg)
	m := move{
		bound: int32(beyond), plain: !x.forgets && !x.drops, sends: none, set: span{uint32(len(x.set)), uint32(len(x.set))},
	}
	l.state = state
	for _, e := range effects {
		x.commits(&d, e)
		switch e.Do {
		default:
			return failed(fmt.Errorf("model: effect %d is none", e.Do))
		case protocol.Send:
			x.sent = append(x.sent, e.msg)
			if to := x.mail.to(e.msg); !x.down[to] {
				m.add(x.mail.letters[e.msg].mark)
			}
			m.plain = m.plain && !x.mail.letters[e.msg].idempotent
		case protocol.Leader:
			if err := x.lead(&l, e.Act); err != nil && m.problem == 0 {
				m.problem = x.problemOf(Epochs, err)
			}
		case protocol.Invoke, protocol.Install, protocol.Capture:
			if !x.info.Weak {
				return failed(fmt.Errorf("model: %s has no copy of an object", x.names.Of(protocol.ID(l.proc))))
			}
		case protocol.Propose, protocol.Resume:
			if !x.info.Consensus {
				return failed(fmt.Errorf("model: %s has no consensus", x.names.Of(protocol.ID(l.proc))))
			}
		case protocol.Crit, protocol.Rem, protocol.Ejected, protocol.Outcome:
			if x.elects {
				return failed(fmt.Errorf("model: %s is in an election, and has no user to tell something", x.names.Of(protocol.ID(l.proc))))
			}
			name := x.names.Of(protocol.ID(l.proc))
			err := x.users.Act(protocol.ID(l.proc), e.Act)
			switch {
			case err != nil:
				err = errors.New(strings.ReplaceAll(err.Error(), fmt.Sprintf("user %d ", l.proc), name+" "))
			case e.Do == protocol.Crit:
				if err := x.groups.enter(&l, protocol.Group(e.Data), name); err != nil {
					return failed(err)
				}
				err = x.unwanted(&l, name)
				l.tasks = x.tasks[l.proc]
			}
			if err != nil && m.problem == 0 {
				m.problem = x.problemOf(WellFormed, err)
			}
		case protocol.Owner:
		case protocol.Revoke:
			if !x.mutual || e.To == protocol.ID(l.proc) || e.To >= protocol.ID(x.members) {
				return failed(fmt.Errorf("model: %s revokes a lease of process %d, and there is none", x.names.Of(protocol.ID(l.proc)), e.To))
			}
			l.revokes(e.To)
		case protocol.Read, protocol.Write, protocol.Await:
			if err := x.opens(&l, e.Act); err != nil {
				return failed(err)
			}
		case protocol.SetTimer, protocol.StopTimer:
			x.timersSet = true
			i, set := slices.BinarySearch(l.timers, e.Timer)
			l.timers = slices.Clone(l.timers)
			if e.Do == protocol.SetTimer {
				x.set = append(x.set, e.Timer)
			}
			if e.Do == protocol.SetTimer && !set {
				l.timers = slices.Insert(l.timers, i, e.Timer)
			} else if e.Do == protocol.StopTimer && set {
				l.timers = slices.Delete(l.timers, i, i+1)
			}
		}
	}
	if l.section = x.users[l.proc]; l.section == protocol.InRem {
		l.lost = 0
	}
	if l.section != protocol.InTry {
		l.wants = 0
	}
	if l.section != protocol.InCrit {
		l.group = 0
	}
	if l.section != protocol.InCrit && l.section != protocol.InIssue {
		l.tasks = 0
	}
	m.deed = x.deed(d)
	m.to, _ = x.intern(l)
	m.sends.to, m.set.to = uint32(len(x.sent)), uint32(len(x.set))
	m.add(x.faces[m.to].mark)
	return m
}

// problemOf numbers a problem.
func (x *worker) problemOf(property string, err error) uint32 {
	x.problems = append(x.problems, problem{property, err})
	return uint32(len(x.problems))
}

// steps steps the process of l, and answers where it captures its copy of the object. It counts in l
// what the copy has executed.
func (x *worker) steps(l *local, in protocol.Input, msg uint32) (
	state []byte, effects []effect, beyond int, err error,
) {
	state, effects, beyond, err = x.m.step(l.proc, l.state, in, msg)
	for from := 0; err == nil; {
		captures := false
		for _, e := range effects[from:] {
			switch e.Do {
			case protocol.Invoke:
				l.copied++
			case protocol.Install:
				k, _ := strconv.ParseUint(e.Data, 10, 32) // if it is no number the judge says so
				l.copied = uint32(k)
			case protocol.Capture:
				captures = true
			}
		}
		if !captures {
			break
		}
		from = len(effects)
		sofar := slices.Clone(effects)
		in := protocol.Input{Kind: protocol.Captured, Data: strconv.Itoa(int(l.copied))}
		var more []effect
		state, more, beyond, err = x.m.step(l.proc, slices.Clone(state), in, 0)
		effects = append(sofar, more...)
	}
	return state, effects, beyond, err
}

// add adds another mark.
func (m *mark) add(o mark) {
	m.hash += o.hash
	m.floor |= o.floor
	m.above |= o.above
}
