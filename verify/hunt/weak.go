package hunt

import (
	"fmt"
	"slices"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/history"
	"github.com/poundlock/poundlock/verify/scenario"
)

// # Replicated objects and consensus
//
// Who is inside may issue operations, one after the other, up to Config.Operations in a section. Any proposal of a
// consensus instance may be its decision, of which those that take part hear one by one, in the order of instances.
// history.Weak judges what becomes of the copies of the object.
//
// A member that came back counts as crashed until it takes part again: see protocol.Algorithm.Spare.

// mostOperations is how many operations of a section a run draws at most.
const mostOperations = 4

// maxOperations is how many may be asked for: with many more, a section takes so long that who waits for
// its end looks stuck.
const maxOperations = 1000

// weak is what a model knows of a replicated object, and of consensus.
type weak[M any] struct {
	judge     *history.Weak // nil: there is no object
	issued    []int         // operations, by user
	proposals []proposal[M] // of instances that are not decided, in the order in which they were made
	decisions map[uint64]M
	next      []uint64 // by member: the instance that it hears of next, or noInstance
}

// noInstance is what a member hears of next that takes no part.
const noInstance = ^uint64(0)

// A proposal is named like a message, by the choice that made it.
type proposal[M any] struct {
	instance         uint64
	msg              M
	from, sent, part int32
}

// checkOperations refuses operations where there is no object.
func (c *Config) checkOperations(i protocol.Info) error {
	switch {
	case c.Operations != 0 && !i.Weak:
		return fmt.Errorf("%d operations in a section: want 0, since there is no replicated object", c.Operations)
	case c.Operations < 0 || c.Operations > maxOperations:
		return fmt.Errorf("%d operations in a section: want 0 to %d", c.Operations, maxOperations)
	}
	return nil
}

// resetWeak begins a run.
func (m *model[M]) resetWeak() {
	m.weak = weak[M]{proposals: m.weak.proposals[:0], next: m.weak.next, issued: m.weak.issued}
	if m.alg.Weak {
		m.weak.judge, m.weak.issued = history.NewWeak(m.sys.N), fresh(m.weak.issued, m.sys.N)
	}
	if m.alg.Consensus {
		m.weak.next = fresh(m.weak.next, m.sys.N)
		m.weak.decisions = map[uint64]M{}
	}
}

func (m *model[M]) judged(f history.Fault) {
	if f != (history.Fault{}) {
		m.report(f.Property, f.Property+": "+m.names().Text(f.Text))
	}
}

// judgeInput shows the judge of the object what a user does.
func (m *model[M]) judgeInput(i int, in protocol.Input) {
	if m.weak.judge != nil {
		m.judged(m.weak.judge.Input(protocol.ID(i), in))
	}
}

// judgeAct shows it what a process tells its user, or does with its copy.
func (m *model[M]) judgeAct(i int, a protocol.Act) {
	if m.weak.judge != nil {
		m.judged(m.weak.judge.Act(protocol.ID(i), a))
	}
}

// calms tells the judge that everything is at rest, where it is.
func (m *model[M]) calms() {
	if m.weak.judge != nil && m.rests() {
		m.weak.judge.Calm()
	}
}

// rests reports whether nothing is left to happen before a user tries, and the detectors suspect exactly those that
// crashed.
func (m *model[M]) rests() bool {
	if len(m.flight) > 0 || slices.ContainsFunc(m.weak.proposals, func(p proposal[M]) bool { return m.awaited(p.instance) }) {
		return false
	}
	for i := range m.sys.N {
		if m.procs[i].process == nil {
			continue
		}
		if len(m.procs[i].timers) > 0 || m.hears(i) || m.users[i] == protocol.InCrit || m.users[i] == protocol.InLost {
			return false
		}
		for j := range m.sys.N {
			if i != j && (m.canTrust(i, j) || m.procs[j].process == nil && m.procs[i].doubts&(1<<j) == 0) {
				return false
			}
		}
	}
	return true
}

// serve does what process i asks of its copy of the object, or of consensus. It reports whether the process is to be
// told what its copy is, behind all that it asks in this step.
func (m *model[M]) serve(i int, e *protocol.Effect[M]) (captures bool) {
	ofConsensus := e.Do == protocol.Propose || e.Do == protocol.Resume
	switch {
	case ofConsensus && !m.alg.Consensus, !ofConsensus && !m.alg.Weak:
		m.refuse(e.Do)
	case e.Do == protocol.Propose:
		m.propose(i, e.Arg, e.Msg)
	case e.Do == protocol.Resume:
		m.weak.next[i] = e.Arg
	case e.Do == protocol.Capture:
		return true
	default:
		m.judgeAct(i, e.Act)
	}
	return false
}

func (m *model[M]) propose(i int, instance uint64, msg M) {
	if _, decided := m.weak.decisions[instance]; !decided {
		m.weak.proposals = append(m.weak.proposals, proposal[M]{instance, msg, int32(i), m.now, m.part})
		m.part++
	}
}

// issue lets user i issue an operation.
func (m *model[M]) issue(i int) bool {
	if !m.alg.Weak || m.users[i] != protocol.InCrit {
		return false
	}
	in := protocol.Input{Kind: protocol.Issue, Data: m.operation(i)}
	m.weak.issued[i]++
	m.input(i, in)
	return true
}

// operation is the name of the next operation of user i.
func (m *model[M]) operation(i int) string {
	return fmt.Sprintf("%s.%d", m.names().Of(protocol.ID(i)), m.weak.issued[i]+1)
}

// proposed returns the proposal that c decides, or -1: another one of the same process, or the first that there is,
// where its own is not there.
func (m *model[M]) proposed(c *choice) int {
	found := -1
	for k, p := range m.weak.proposals {
		switch {
		case !m.awaited(p.instance):
		case p.from == c.a && p.sent == c.sent && p.part == c.part:
			return k
		case found < 0, p.from == c.a && m.weak.proposals[found].from != c.a:
			found = k
		}
	}
	return found
}

// awaited reports whether somebody hears of an instance next. Nobody knows of a decision before somebody hears of
// it: so others need not be made.
func (m *model[M]) awaited(instance uint64) bool { return slices.Contains(m.weak.next, instance) }

// decide decides the proposal of choice c, or another one, which c names then.
func (m *model[M]) decide(c *choice) bool {
	k := m.proposed(c)
	if k < 0 {
		return false
	}
	p := m.weak.proposals[k]
	c.a, c.sent, c.part = p.from, p.sent, p.part
	m.weak.decisions[p.instance] = p.msg
	m.weak.proposals = slices.DeleteFunc(m.weak.proposals, func(q proposal[M]) bool { return q.instance == p.instance })
	return true
}

// hears reports whether there is a decision that member i has to hear of.
func (m *model[M]) hears(i int) bool {
	if !m.alg.Consensus || m.procs[i].process == nil {
		return false
	}
	_, decided := m.weak.decisions[m.weak.next[i]]
	return decided
}

// hear tells member i a decision.
func (m *model[M]) hear(i int) bool {
	if i >= m.sys.N || !m.hears(i) {
		return false
	}
	k := m.weak.next[i]
	m.weak.next[i]++
	m.step(i, protocol.Input{Kind: protocol.Decide, Arg: k}, m.weak.decisions[k])
	return true
}

// crashWeak: process i has crashed.
func (m *model[M]) crashWeak(i int) {
	if m.weak.judge != nil {
		m.weak.judge.Crash(protocol.ID(i))
	}
	if m.alg.Consensus {
		m.weak.next[i] = noInstance
	}
}

// decision is how a scenario writes what choice c decides.
func (m *model[M]) decision(c *choice) string {
	p := m.weak.proposals[m.proposed(c)]
	return fmt.Sprint(p.instance, " ", m.text(p.msg))
}

// decided takes the decision that a line of a simulation names.
func (m *model[M]) decided(c *choice, text string) bool {
	for _, p := range m.weak.proposals {
		if fmt.Sprint(p.instance, " ", m.text(p.msg)) == text {
			c.a, c.sent, c.part = p.from, p.sent, p.part
			return m.do(c)
		}
	}
	return false
}

// operations is the largest number of operations in one section of a run.
func (m *model[M]) operations(run []choice) (most int) {
	count := make([]int, m.total)
	for _, c := range run {
		switch c.verb {
		case scenario.Try:
			count[c.a] = 0
		case scenario.Issue:
			count[c.a]++
			most = max(most, count[c.a])
		}
	}
	return most
}

// object draws what there is where users share an object.
func (p *plan) object(c *Config, i protocol.Info) {
	if !i.Weak {
		return
	}
	if p.operations = c.Operations; p.operations == 0 {
		p.operations = p.between(1, mostOperations)
	}
	if i.Detector == protocol.UnreliableDetector && p.chance.IntN(2) == 0 {
		p.kinds |= storms
	}
	if p.has(crashes) && i.Tolerates&protocol.Recovery != 0 {
		p.kinds |= recoveries
	}
	p.kinds &^= c.without
	p.agrees = p.between(1, 20)
	if p.config.Operations = p.operations; !p.timed {
		p.faulty, p.tries = p.between(1, 8)*p.faulty, 3*p.tries // what is wrong takes several faults in a row
	}
}

// may reports whether the user of i, which is inside, is to issue an operation next.
func (w *walker[M]) may(i int) bool {
	const leaves = 8 // although it could issue more: one in so many
	return w.ops[i] > 0 && (w.calm || w.r.IntN(leaves) > 0)
}

// consent lets consensus decide, or tell a process what is decided.
func (w *walker[M]) consent() bool {
	if !w.alg.Consensus {
		return false
	}
	if k := len(w.weak.proposals); k > 0 && (w.calm || w.r.IntN(2) == 0) {
		p := w.weak.proposals[w.r.IntN(k)]
		if w.take(choice{verb: scenario.Decide, a: p.from, sent: p.sent, part: p.part}) {
			return true
		}
	}
	first := w.r.IntN(w.sys.N)
	for k := range w.sys.N {
		if i := (first + k) % w.sys.N; w.hears(i) && !w.stands(i) {
			return w.take(choice{verb: scenario.Hear, a: int32(i)})
		}
	}
	return false
}

// gust lets many suspicions happen at once, all of them mistakes: most members suspect one of them, or each another
// one.
func (w *walker[M]) gust() (some bool) {
	const spared = 4 // one member in so many
	one, all := w.r.IntN(w.sys.N), w.r.IntN(2) == 0
	for _, i := range w.r.Perm(w.sys.N) {
		j := one
		if all {
			j = w.r.IntN(w.sys.N)
		}
		if w.procs[j].process != nil && w.r.IntN(spared) > 0 && w.found == nil {
			some = w.take(choice{verb: scenario.Suspect, a: int32(i), b: int32(j)}) || some
		}
	}
	return some
}

// converge is the end of a calm where there is an object: when nothing is left to happen all copies have executed
// the same. Then each user gets in once more, for who ends an epoch without end lets nobody in, and issues operations,
// of which each has an outcome: see history.Weak.Calm.
func (w *walker[M]) converge() {
	for last := range 2 {
		w.rest()
		if w.found != nil || last == 1 {
			return
		}
		for i := range w.tries {
			if w.procs[i].process != nil {
				w.tries[i] = 1
			}
		}
		w.finish()
	}
}

// rest takes steps until nothing is left to happen.
func (w *walker[M]) rest() {
	patience := w.patience()
	for steps := 0; w.found == nil && w.next(); steps++ {
		if steps > patience {
			w.report(Stuck, fmt.Sprintf("stuck: nobody tries, and it does not come to rest in %d steps without a fault", steps))
		}
	}
	if w.found == nil {
		w.judged(w.weak.judge.Unfinished())
	}
}
