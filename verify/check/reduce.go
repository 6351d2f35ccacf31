package check

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/poundlock/poundlock/protocol"
)

// # Order
//
// Steps of different processes commute: each changes its own process, takes a
// message that is on its way to it, and adds messages. So the order of two steps
// matters only where both are steps of one process. Where an algorithm claims that
// receiving a message m is confluent (Model.Confluent), it commutes with the other
// steps of that process too, with those that are possible now and those that may be
// possible before m arrives. Then the step t that receives m is an ample set of its
// own: a state in which t is possible needs no other step.
//
// Let r be such a state, and w a run from r to a state that violates a property. If
// t is in w, it can be the first step: the run from t(r) is shorter. If it is not, t
// can come before w all the same, and the run from t(r) has as many steps as w. It
// violates the property too:
//
//   - well-formed and model are violated by the last step of w, which confluence says
//     does the same after t.
//   - a stable invariant is not mended by t.
//   - exclusion is violated by who is inside, and t takes nobody out: it may let its
//     user in, into a group that the user has whatever comes first, and does not change
//     sections otherwise. The same holds for kept.
//   - deadlock, and kept where losses are not made up for, are violated by states in which nothing
//     that must happen can happen. At the end of w, t still can: so t is in w.
//
// This ends, because t takes a message away and sends none: after finitely many t in a
// row there is one in w, or nothing left of it. So there is no need of the rule that
// other reductions have for cycles, and none of the order in which states are found.
//
// What is not a step of one process, or not always possible:
//
//   - A loss of memory is an event that no claim covers: while one may happen, members
//     take no part.
//   - When a lease lapses, messages vanish. While one may lapse nothing is reduced, and
//     where one has, its messages take no part. Nor is anything reduced while a message
//     may be lost or come twice. When a process crashes, those to it vanish, and with
//     them all that receiving them did.
//   - A user may give up only before it is let in, which t may do. While some may, users
//     take no part.
//   - Losses that are spaced depend on the states of all processes: while there may be
//     such losses, nothing is reduced.
//   - An idempotent message may arrive again, and takes no part.
//   - Moving counters commutes with all steps. A bound that cuts need not cut the same
//     runs; within a bound that does not, verdicts are equal.

// The reductions, by name.
const (
	// ReduceOrder leaves out orders of steps that make no difference: where receiving
	// a message is confluent, nothing else is tried first.
	ReduceOrder = "order"
	// ReduceSymmetry takes states that differ in the names of interchangeable members
	// for one.
	ReduceSymmetry = "symmetry"
)

// A reduction is what a search leaves out.
type reduction struct {
	order  bool
	verify bool
	goesOn bool     // a run does, after a step that is not well-formed
	group  []int    // the members that are interchangeable, two at least
	notes  []string // for the bounds
	sabotage
}

// A sabotage is a reduction broken in some way, for tests of tests.
type sabotage struct {
	answers  bool // receiving a message may send something and be confluent
	sections bool // and change sections
	believes bool // no claim of confluence or of counters is verified
}

// reductions returns what the configuration asks for, as far as the algorithm and the
// properties asked for allow it. The notes say what is done, and what is not and why.
func reductions(a protocol.Algorithm[any], c Config, asked []string) (d reduction, err error) {
	d.sabotage, d.verify, d.goesOn = c.sabotage, c.Verify && a.Confluent != nil, !slices.Contains(asked, WellFormed)
	for _, name := range c.Reduce {
		var why string
		switch name {
		default:
			return d, fmt.Errorf("check: unknown reduction %q: want %s or %s", name, ReduceOrder, ReduceSymmetry)
		case ReduceOrder:
			why = ordered(a, asked)
			d.order = why == ""
		case ReduceSymmetry:
			d.group, why = interchangeable(a, c, asked)
		}
		if why == "" {
			d.notes = append(d.notes, "reduced by "+name)
		} else {
			d.notes = append(d.notes, fmt.Sprintf("not reduced by %s: %s", name, why))
		}
	}
	return d, nil
}

// ordered says why orders are not left out, "" if they are.
func ordered(a protocol.Algorithm[any], asked []string) (why string) {
	switch {
	case a.Registers != nil:
		return withRegisters
	case a.Moot != nil:
		return "messages of others may be moot"
	case a.Weak, a.Consensus:
		return withObjects
	case a.Confluent == nil:
		return "no message is claimed to be confluent"
	case a.Detector == protocol.LeaseDetector && a.Users != protocol.Clients:
		return "messages are lost when leases of members end"
	case a.Stale != nil:
		return "messages of others may go stale"
	}
	for _, property := range asked {
		stable := func(i protocol.Invariant) bool { return i.Name == property && i.Stable }
		if !slices.Contains(ofStates, property) && !slices.ContainsFunc(a.Invariants, stable) {
			return property + " needs every order"
		}
	}
	return ""
}

// ofStates are the properties of every algorithm that reductions keep.
var ofStates = []string{Exclusion, WellFormed, Deadlock, Model, Kept}

// reduce makes the search of x a reduced one.
func (x *worker) reduce(d reduction) {
	x.reduction = d
	if len(d.group) > 0 {
		x.sym = newSymmetry(d.group, x.rules.Total)
	}
}

// choices returns the actions that the search takes from the state entered, and whether
// they are an ample set: then acts holds all of them.
func (x *worker) choices() (list []action, ample bool) {
	x.acts = x.actions(x.acts[:0])
	if t := x.ample(x.acts); t >= 0 {
		return x.acts[t : t+1], true
	}
	return x.acts, false
}

// ample returns the place among all actions of one that is an ample set, or -1.
func (x *worker) ample(list []action) int {
	if x.raw || !x.reduction.order || !x.reducible() {
		return -1
	}
	return slices.IndexFunc(list, func(a action) bool { return x.alone(&a) })
}

// reducible reports whether there may be ample sets in the state entered.
func (x *worker) reducible() bool {
	spaced := x.c.Spaced > 0 && left(x.st, amnesiaBudget) > 0
	return !spaced && left(x.st, suspectBudget) == 0 && left(x.st, lossBudget) == 0 && left(x.st, dupBudget) == 0
}

// alone reports whether an action is a delivery that alone is an ample set.
func (x *worker) alone(t *action) bool {
	if t.verb != deliver {
		return false
	}
	from, to := int(t.a), int(t.b)
	local := x.st[1+to]
	switch {
	case local == 0 || x.messages.all[t.arg].idempotent:
		return false
	case to < x.rules.Config.N && left(x.st, amnesiaBudget)+left(x.st, recoverBudget) > 0:
		return false
	case x.user[to] && (x.c.Downgrade || left(x.st, cancelBudget) > 0):
		return false
	case x.rules.Leases && x.rules.Severed(x.ends, from, to):
		return false
	}
	return x.confluent(local, t.arg)
}

// confluent asks for the claim, once for each pair of a local state and a message.
func (x *worker) confluent(local, msg uint32) bool {
	key := pair(local, msg)
	n, known := x.claims.find(key)
	if !known {
		l := &x.locals[local]
		from, p := protocol.ID(x.messages.from(msg)), x.m.load(l.proc, l.state)
		n = x.claims.keep(key, x.m.a.Confluent(p, from, x.m.msgs[msg], x.summaries[local].tries))
	}
	return x.claims.values[n]
}

// rivals calls f for each other action of the process that t is a step of, with the
// argument of its move and a key for the three of them.
func (x *worker) rivals(t *action, list []action, f func(e *action, arg, key uint64)) {
	local := x.st[1+t.b]
	three := pair(local, t.arg)
	for i := range list {
		e := &list[i]
		switch e.verb {
		case amnesia, crash, recovery, lapse, lapseBroken, lapsePaused, pause, resume, lose, duplicate:
			continue // no claim is about these
		}
		p, arg := x.subject(x.st, e)
		if p == int(t.b) && !(e.verb == deliver && e.arg == t.arg) {
			f(e, arg, scramble(three+scramble(arg<<8|uint64(e.verb)+1)))
		}
	}
}

// doubtful reports whether the claim behind t, one of the actions taken, has not been
// verified yet against some of the other actions. ample says that only t is taken.
func (x *worker) doubtful(t *action, ample bool) (yes bool) {
	if !ample && !(x.reduction.verify && x.reducible() && x.alone(t)) {
		return false
	}
	yes = !x.verified.has(pair(x.st[1+t.b], t.arg))
	x.rivals(t, x.acts, func(_ *action, _, key uint64) { yes = yes || !x.verified.has(key) })
	return yes && !x.reduction.believes
}

// verify takes the steps that the claim behind the ample set t is about, from the state
// entered: t, and each other action before and after it.
func (x *worker) verify(t *action) {
	list := x.actions(nil)
	local := x.st[1+t.b]
	x.verified.add(pair(local, t.arg))
	first := x.moveOfKnown(local, deliver, uint64(t.arg))
	if !x.silent(local, &first) {
		x.refute(t, nil)
		return
	}
	x.rivals(t, list, func(e *action, arg, key uint64) {
		if x.verified.has(key) {
			return
		}
		x.verified.add(key)
		if !x.diamond(local, t, first.to, e, arg) {
			x.refute(t, e)
		}
	})
}

// diamond reports whether e does the same in a local state and behind t, which leads
// from there to the local state behind, and whether t does so behind e.
func (x *worker) diamond(local uint32, t *action, behind uint32, e *action, arg uint64) bool {
	if e.verb == timeout && !slices.Contains(x.locals[behind].Timers, e.arg) {
		return false // t stops the timer
	}
	before, after := x.moveOfKnown(local, e.verb, arg), x.moveOfKnown(behind, e.verb, arg)
	if x.breaks(&before) != x.breaks(&after) {
		return false
	}
	if x.breaks(&before) == Model || x.breaks(&before) == WellFormed && !x.reduction.goesOn {
		return true // the run is over
	}
	late := x.moveOfKnown(before.to, deliver, uint64(t.arg))
	return late.to == after.to && x.sameMessages(x.sends(&before), x.sends(&after)) && x.silent(before.to, &late) &&
		x.confluent(before.to, t.arg)
}

// breaks returns the property that a move violates, or "".
func (x *worker) breaks(m *move) string { return x.problem(m.problem).Property }

// silent reports whether a move does no more than what a claim of confluence allows.
func (x *worker) silent(local uint32, m *move) bool {
	if m.problem != 0 || m.bound >= 0 || len(x.sends(m)) > 0 && !x.reduction.answers {
		return false
	}
	from, to := x.summaries[local].section, x.summaries[m.to].section
	return from == to || from == protocol.InTry && to == protocol.InCrit || x.reduction.sections
}

// moveOfKnown returns a move, for a worker that is not frozen.
func (x *worker) moveOfKnown(local uint32, v verb, arg uint64) move {
	n := x.move(local, v, arg)
	return x.moves[n]
}

// refute notes that the claim behind an ample set is false: alone, or because of another
// action of the same process.
func (x *worker) refute(t, e *action) {
	if e != nil {
		x.deny("%q is not confluent: it does not commute with %q", x.line(*t, x.m), x.line(*e, x.m))
		return
	}
	x.deny("%q is not confluent: it sends something, or does more than to let its user in", x.line(*t, x.m))
}

// sameMessages reports whether two lists of messages are equal but for their order, or
// with FIFO channels but for the order of those on different channels.
func (x *worker) sameMessages(a, b []uint32) bool {
	order := func(a, b uint32) int { return cmp.Compare(a, b) }
	if x.fifo {
		order = func(a, b uint32) int { return x.channel(a) - x.channel(b) }
	}
	return slices.Equal(slices.SortedStableFunc(slices.Values(a), order), slices.SortedStableFunc(slices.Values(b), order))
}

// memory estimates what a worker keeps for itself, in bytes.
func (x *worker) memory() int64 {
	b := x.claims.size()
	if x.sym != nil {
		b += x.sym.pins.size()
	}
	return b
}
