package sim

import (
	"fmt"
	"slices"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/history"
	"github.com/poundlock/poundlock/verify/scenario"
	"github.com/poundlock/poundlock/verify/workload"
	"github.com/poundlock/poundlock/verify/world"
)

// # Replicated objects and consensus
//
// A user of a weak algorithm issues Config.Operations in each of its sections, one after the other,
// and then holds it for Config.Hold. The copies of the object are what history.Weak keeps of them.
//
// Consensus is a service that all reach who are up: an instance is decided by its first
// proposal, and each process hears of it two message delays later, in the order of instances.

// weak is what a run knows of a replicated object, and of consensus.
type weak struct {
	judge    *history.Weak    // nil: there is no object
	issued   int              // operations, of all users
	issuedAt []int64          // by user: its open operation
	votes    *world.Consensus // without proposals, for the first one is decided at once; nil: there is none
	heard    []int64          // by member: when it hears of its next decision, at the earliest
	random   workload.Stream
}

func (w *weak) reset(i protocol.Info, c Config) {
	*w = weak{}
	if i.Weak {
		w.judge, w.issuedAt = history.NewWeak(c.N), make([]int64, c.N)
	}
	if i.Consensus {
		w.votes, w.heard = world.NewConsensus(c.N), make([]int64, c.N)
		w.random.Begin(c.Seed, workload.ForConsensus, 0)
	}
}

// judgeRest tells the judge of the object that everything is at rest, where it is: nothing is left to happen before a user
// tries, and the detectors suspect exactly those that crashed. Then no copy lacks anything.
func (s *engine) judgeRest() {
	const idle = 1<<userTry | 1<<fault | 1<<crashes | 1<<recoveries | 1<<pauses | 1<<partitions
	if s.weak.judge == nil {
		return
	}
	for it := range s.queue.all {
		if kind := it.key & (1<<kindBits - 1); idle>>kind&1 == 0 {
			return
		}
	}
	for _, q := range s.faults.suspected {
		if s.procs[q].up && slices.Contains(s.procs[q].suspectedBy, true) {
			return
		}
	}
	s.judged(s.weak.judge.Unfinished())
	s.weak.judge.Calm()
}

// issue lets user k, which is inside, issue its next operation.
func (s *engine) issue(k int) {
	w, u := &s.weak, &s.users[k]
	w.issued++
	in := protocol.NewIssue(fmt.Sprint(w.issued))
	s.logVerb(scenario.Issue, u.proc, 0, in.Data)
	u.issuing, w.issuedAt[k] = true, s.now
	s.input(u.proc, in)
}

// outcome: the open operation of a process's user succeeded.
func (s *engine) outcome(id uint32, a protocol.Act) {
	k := int(s.procs[id].user)
	s.logAct(id, a)
	if u := &s.users[k]; u.issuing {
		u.issuing, s.idle = false, 0
		u.operations--
		s.outcomes.Add(s.now - s.weak.issuedAt[k])
		s.stays(k)
	}
}

// stays lets a user that is inside issue its next operation, or leave after a while.
func (s *engine) stays(k int) {
	u, after := &s.users[k], int64(0)
	if u.operations == 0 {
		after = int64(s.load.Holds(k))
	}
	if s.comesDown(k) {
		u.rest = after / 2
		s.schedule(k, userDown, after-u.rest)
		return
	}
	s.schedule(k, userExit, after)
}

// propose takes a proposal: the first one of an instance is its decision.
func (s *simulator[M]) propose(instance uint64, m *M) {
	w := &s.engine.weak
	if _, decided := w.votes.Decided(instance); decided {
		return
	}
	w.votes.Decide(world.Ballot{Instance: instance, Msg: uint32(len(s.decided))})
	s.decided = append(s.decided, *m)
	if s.engine.log != nil {
		s.engine.logVerb(scenario.Decide, 0, 0, fmt.Sprint(instance, " ", s.engine.Names.Text(s.alg.Text(*m))))
	}
	for id, k := range w.votes.Next {
		if k == instance+1 && s.engine.isUp(uint32(id)) {
			s.engine.willHear(uint32(id))
		}
	}
}

// willHear lets a member hear of the next decision, if it is there.
func (s *engine) willHear(id uint32) {
	w := &s.weak
	b, hears := w.votes.Hears(int(id))
	if !hears {
		return
	}
	at := s.now + s.delay(&w.random) + s.delay(&w.random)
	w.heard[id] = max(w.heard[id], at)
	s.push(w.heard[id], hear, id, uint32(b.Instance))
}

// hears tells a member a decision.
func (s *simulator[M]) hears(it item) {
	w, p := &s.engine.weak, &s.engine.procs[it.to]
	b, hears := w.votes.Hears(int(it.to))
	switch {
	case !p.up || !hears || uint32(b.Instance) != it.slot || it.key>>kindBits <= p.born:
		return
	case p.pausedUntil > s.engine.now:
		s.engine.again(it, p.pausedUntil)
		return
	}
	w.votes.Hear(int(it.to))
	s.engine.logVerb(scenario.Hear, it.to, 0, "")
	s.engine.willHear(it.to)
	m := s.decided[b.Msg]
	s.step(it.to, protocol.NewDecide(b.Instance), &m)
}
