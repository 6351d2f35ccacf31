package check

import (
	"errors"
	"fmt"
	"slices"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/history"
	"github.com/poundlock/poundlock/verify/world"
)

// # Replicated objects and consensus
//
// Where users issue operations on a replicated object, a state has one word for the judge of what
// becomes of it (history.Weak); where processes propose, one for what consensus knows: the instance
// that each process hears of next, what was proposed, and the decisions of which somebody has not
// heard yet. Both are numbers of canonical encodings. What a move of a process does to them is a
// update; what an update does to a word is computed once, whatever the rest of the state.
//
// Any proposal may be decided that was made so far. Nobody knows of a decision before somebody
// hears of it: so one is made where somebody is to hear of it, and the next step is that. A run in
// which it is made earlier has a run with the same hearings in which it is not: a proposal is not
// withdrawn. A run to follow may have them apart.
//
// Suspicions may end one epoch after the other, as long as they last, and make the states infinite.
// So all but Config.Decisions decisions are made only while the failure detector is accurate, as in
// the end it is: these are runs of the algorithm, and each of them may go on.
//
// Decisions stay until all who take part have heard of them; where a member may recover, and take
// part from a former instance on, they stay for ever.

// ofObjects are the properties that history.Weak judges, beside WellFormed.
var ofObjects = []string{
	history.OneCopy, history.Contiguous, history.Precedence, history.Fresh, history.Outcome, history.Failed, history.Groundless,
}

// withObjects is why nothing is reduced.
const withObjects = "with an object or consensus, which all processes share, each order of steps counts"

// The kinds of words that all processes share.
const (
	judgeWord = iota
	consensusWord
	registerWord // one for each register, from space.cells on
	sharedWords
)

// An update is what a step does to the words that all processes share.
type update struct {
	proc int          // who did it
	list []occurrence // what was done
}

// An occurrence is an event or an effect; neither is that the process crashes.
type occurrence struct {
	in  protocol.Input
	act effect
}

// shared are these words, with what is known of them.
type shared struct {
	at    [sharedWords]int // where each word stands in a state, 0: there is none
	words [sharedWords]struct {
		number map[string]uint32
		list   [][]byte // by number, from 1
		hashes []uint64
	}
	agreements []*world.Consensus // decoded
	contents   []content          // decoded
	updates    []update           // from 1
	updateOf   map[string]uint32
	decide     memo[uint32]   // the updates that are decisions, by instance and message
	crash      []uint32       // those that are crashes, by process
	after      memo[effected] // by kind, word and update
}

// effected is what an update makes of a word.
type effected struct {
	to      uint32
	problem uint32 // 0, or 1 + an index in problems
}

// completeDecisions completes c for consensus, and refuses what means nothing with an object.
func (c *Config) completeDecisions(i protocol.Info) error {
	const most = 1 << 20
	if c.Decisions != 0 && !i.Consensus || c.Decisions < 0 || c.Decisions > most {
		return fmt.Errorf("%d decisions: want 0 to %d, and 0 without consensus", c.Decisions, most)
	}
	if i.Consensus && c.Decisions == 0 {
		c.Decisions = c.Suspect + c.Crash + c.Pause
	}
	if (i.Weak || i.Consensus) && i.Users != protocol.Members {
		return errors.New("a replicated object and consensus are of members that are users")
	}
	if (i.Weak || i.Consensus) && c.Amnesia > 0 {
		return fmt.Errorf("amnesia=%d: a member that restarts has crashed: want crash and recover", c.Amnesia)
	}
	return nil
}

// newShared returns the words that a space has, and where the next ones begin.
func newShared(i protocol.Info, total int) (w shared, next int) {
	next = 1 + total
	for kind, has := range [sharedWords]bool{judgeWord: i.Weak, consensusWord: i.Consensus} {
		w.words[kind].number = map[string]uint32{}
		w.words[kind].list, w.words[kind].hashes = make([][]byte, 1), make([]uint64, 1)
		if has {
			w.at[kind] = next
			next++
		}
	}
	w.contents = make([]content, 1)
	w.agreements, w.updates, w.updateOf = make([]*world.Consensus, 1), make([]update, 1), map[string]uint32{}
	return w, next
}

// share puts the first words into the state being built.
func (x *worker) share() {
	if at := x.shared.at[judgeWord]; at > 0 {
		x.next[at] = x.word(judgeWord, protocol.AppendState(nil, history.NewWeak(x.rules.Config.N)))
	}
	if at := x.shared.at[consensusWord]; at > 0 {
		x.next[at] = x.consensusWord(world.NewConsensus(x.rules.Config.N))
	}
	for p := range x.rules.Total {
		d := update{proc: p}
		if x.rules.Info.Weak || x.rules.Info.Consensus {
			d.list = []occurrence{{}}
		}
		x.shared.crash = append(x.shared.crash, x.internUpdate(d))
	}
}

// word returns the number of a word.
func (x *worker) word(kind int, encoded []byte) uint32 {
	w := &x.shared.words[kind]
	if n, ok := w.number[string(encoded)]; ok || !x.adds() {
		return n
	}
	n := uint32(len(w.list))
	kept := slices.Clone(encoded)
	w.number[string(kept)] = n
	w.list = append(w.list, kept)
	w.hashes = append(w.hashes, x.messages.digest(uint64(n)<<2|uint64(kind)+1<<62, nil).hash)
	x.bytes += int64(2*len(kept)) + 120
	return n
}

func (x *worker) consensusWord(a *world.Consensus) uint32 {
	n := x.word(consensusWord, a.Append(nil))
	if int(n) == len(x.shared.agreements) {
		x.shared.agreements = append(x.shared.agreements, a)
		x.bytes += int64(8*len(a.Next)+24*(len(a.Proposals)+len(a.Decisions))) + 80
	}
	return n
}

// consensus is what consensus knows in a state.
func (s *space) consensus(st []uint32) *world.Consensus {
	return s.shared.agreements[st[s.shared.at[consensusWord]]]
}

// internUpdate returns the number of d, 0 if it does nothing, for a worker that is not frozen.
func (x *worker) internUpdate(d update) uint32 {
	if len(d.list) == 0 {
		return 0
	}
	key := fmt.Sprint(d)
	n, ok := x.shared.updateOf[key]
	if !ok {
		n = uint32(len(x.shared.updates))
		x.shared.updateOf[key] = n
		x.shared.updates = append(x.shared.updates, d)
		x.bytes += int64(len(key)+200*len(d.list)) + 120
	}
	return n
}

// recordInput records in an update what a process gets, as far as it matters.
func (x *worker) recordInput(d *update, in protocol.Input, msg uint32) {
	switch in.Kind {
	case protocol.Try, protocol.Exit, protocol.Issue, protocol.Suspect:
		if x.rules.Info.Weak {
			d.list = append(d.list, occurrence{in: protocol.Input{Kind: in.Kind, Data: in.Data}})
		}
	case protocol.Decide:
		d.list = append(d.list, occurrence{in: protocol.Input{Kind: in.Kind, Arg: in.Arg}, act: effect{msg: msg}})
	}
}

// recordEffect records in an update what a process does, as far as it matters.
func (x *worker) recordEffect(d *update, e effect) {
	switch e.Do {
	case protocol.Crit, protocol.Rem, protocol.Ejected, protocol.Outcome, protocol.Invoke, protocol.Install:
		if x.rules.Info.Weak {
			a := protocol.Act{Do: e.Do}
			if e.Do == protocol.Invoke || e.Do == protocol.Install {
				a.Data = e.Data
			}
			d.list = append(d.list, occurrence{act: effect{Act: a}})
		}
	case protocol.Propose, protocol.Resume:
		d.list = append(d.list, occurrence{act: effect{protocol.Act{Do: e.Do, Arg: e.Arg}, e.msg}})
	}
}

// nobody does what the service does of itself.
const nobody = -1

// becomes returns what update n makes of a word.
func (x *worker) becomes(kind int, word, n uint32) effected {
	return once(x, &x.shared.after, scramble(uint64(word)<<32|uint64(n)<<1|uint64(kind)), func() effected {
		if d := &x.shared.updates[n]; kind == judgeWord {
			return x.judged(word, d)
		} else {
			return x.agreed(word, d)
		}
	})
}

// update changes the words in the vector being built by an update. It returns a problem.
func (x *worker) update(n uint32) (problem uint32) {
	if n == 0 {
		return 0
	}
	for kind, at := range x.shared.at {
		if at != 0 {
			e := x.becomes(kind, x.next[at], n)
			x.next[at] = e.to
			problem = max(problem, e.problem)
		}
	}
	return problem
}

// exchange returns what an update adds to the fingerprint of the state entered.
func (x *worker) exchange(n uint32) (hash uint64, problem uint32) {
	if n == 0 {
		return 0, 0
	}
	for kind, at := range x.shared.at {
		if at != 0 {
			e := x.becomes(kind, x.st[at], n)
			hash += x.shared.words[kind].hashes[e.to] - x.shared.words[kind].hashes[x.st[at]]
			problem = max(problem, e.problem)
		}
	}
	return hash, problem
}

// judged shows an update to a judge.
func (x *worker) judged(word uint32, d *update) (e effected) {
	if d.proc == nobody {
		return effected{to: word}
	}
	w := x.judge(word)
	p := protocol.ID(d.proc)
	for _, do := range d.list {
		var f history.Fault
		switch {
		case do.in.Kind != 0:
			f = w.Input(p, do.in)
		case do.act.Do != 0:
			f = w.Act(p, do.act.Act)
		default:
			w.Crash(p)
		}
		if f != (history.Fault{}) && e.problem == 0 {
			e.problem = x.problemOf(x.named(f))
		}
	}
	e.to = x.word(judgeWord, protocol.AppendState(nil, w))
	return e
}

// judge is the judge that a word stands for, until the next call.
func (x *worker) judge(word uint32) *history.Weak {
	if rest, err := protocol.LoadState(x.shared.words[judgeWord].list[word], x.object); err != nil || len(rest) > 0 {
		panic(fmt.Sprintf("check: a judge refuses its own state: %v, %d bytes left", err, len(rest)))
	}
	return x.object
}

// named is what a judge found, in the names of a scenario.
func (x *worker) named(f history.Fault) history.Fault {
	f.Text = f.Property + ": " + x.rules.Names.Text(f.Text)
	return f
}

// agreed tells consensus of an update.
func (x *worker) agreed(word uint32, d *update) effected {
	a := x.shared.agreements[word].Clone()
	for _, do := range d.list {
		switch {
		case do.in.Kind == protocol.Decide && d.proc == nobody:
			a.Decide(world.Ballot{Instance: do.in.Arg, Msg: do.act.msg})
		case do.in.Kind == protocol.Decide:
			a.Hear(d.proc)
		case do.act.Do == protocol.Propose:
			a.Propose(world.Ballot{Instance: do.act.Arg, Msg: do.act.msg})
		case do.act.Do == protocol.Resume:
			a.Resume(d.proc, do.act.Arg)
		case do.in.Kind == 0 && do.act.Do == 0:
			a.Leave(d.proc)
		}
	}
	if x.budget>>recoverBudget&maxBudget == 0 {
		a.Forget()
	}
	return effected{to: x.consensusWord(a)}
}

// choosing appends the actions of consensus.
func (x *worker) choosing(list []action) []action {
	a := x.consensus(x.st)
	for _, b := range a.Proposals {
		if a.Awaited(b.Instance) && (x.raw || b.Instance < uint64(x.c.Decisions) || x.rules.Accurate(x.endsOf(x.st, x.ends))) {
			list = append(list, action{verb: agree, arg: b.Msg, at: uint32(b.Instance)})
		}
	}
	for _, b := range a.Decisions {
		list = x.hearings(list, a, b)
	}
	return list
}

// hearings appends who may hear of a decision.
func (x *worker) hearings(list []action, a *world.Consensus, b world.Ballot) []action {
	for p, k := range a.Next {
		if k == b.Instance+1 {
			list = append(list, action{verb: hear, a: uint8(p), arg: b.Msg, at: uint32(b.Instance)})
		}
	}
	return list
}

// decision is the update that is a decision of consensus.
func (x *worker) decision(a action) uint32 {
	return once(x, &x.shared.decide, scramble(uint64(a.at)<<32|uint64(a.arg)), func() uint32 {
		in := protocol.NewDecide(uint64(a.at))
		return x.internUpdate(update{proc: nobody, list: []occurrence{{in: in, act: effect{msg: a.arg}}}})
	})
}
