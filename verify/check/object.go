package check

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/history"
)

// # Replicated objects and consensus
//
// Where users issue operations on a replicated object, a state has one word for the judge of what
// becomes of it (history.Weak); where processes propose, one for what consensus knows: the instance
// that each process hears of next, what was proposed, and the decisions of which somebody has not
// heard yet. Both are numbers of canonical encodings. What a move of a process does to them is a
// deed; what a deed does to a word is computed once, whatever the rest of the state.
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
	accordWord
	sharedWords
)

// A deed is what a step does to the words that all processes share.
type deed struct {
	proc   int     // who did it
	object []doing // with the object
	accord []doing // with consensus
}

// A doing is an event or an effect; neither is that the process crashes.
type doing struct {
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
	accords  []accord // decoded
	deeds    []deed   // from 1
	deedOf   map[string]uint32
	decide   map[ballot]uint32 // the deeds that are decisions
	crash    []uint32          // those that are crashes, by process
	after    table             // the places in effected, by kind, word and deed
	effected []effected
}

// effected is what a deed makes of a word.
type effected struct {
	to      uint32
	problem uint32 // 0, or 1 + an index in problems
}

// An accord is what consensus knows.
type accord struct {
	next      []uint64 // by member: 1 + the instance that it hears of next, 0: it takes no part
	proposals []ballot // in order
	decisions []ballot // in order
}

// A ballot is a message in an instance.
type ballot struct {
	instance uint64
	msg      uint32
	new      bool // a decision of which nobody has heard
}

// noInstance is 1 + the instance of who takes no part.
const noInstance = 0

func (b ballot) compare(o ballot) int {
	return cmp.Or(cmp.Compare(b.instance, o.instance), cmp.Compare(b.msg, o.msg))
}

func (a *accord) append(b []byte) []byte {
	for _, k := range a.next {
		b = binary.AppendUvarint(b, k)
	}
	for _, list := range [][]ballot{a.proposals, a.decisions} {
		b = binary.AppendUvarint(b, uint64(len(list)))
		for _, v := range list {
			b = binary.AppendUvarint(binary.AppendUvarint(b, v.instance), uint64(v.msg))
			b = protocol.AppendBool(b, v.new)
		}
	}
	return b
}

func (a *accord) clone() accord {
	return accord{slices.Clone(a.next), slices.Clone(a.proposals), slices.Clone(a.decisions)}
}

// decided returns the place of the decision of an instance, or -1.
func (a *accord) decided(instance uint64) int {
	return slices.IndexFunc(a.decisions, func(b ballot) bool { return b.instance == instance })
}

// passed reports whether all who take part have heard of an instance.
func (a *accord) passed(instance uint64) bool {
	return !slices.ContainsFunc(a.next, func(k uint64) bool { return k != noInstance && k-1 <= instance })
}

// awaited reports whether somebody hears of an instance next.
func (a *accord) awaited(instance uint64) bool { return slices.Contains(a.next, instance+1) }

// completeOperations completes c for a replicated object and consensus, and refuses what means nothing there.
func (c *Config) completeOperations(i protocol.Info) error {
	const most = 1 << 20
	switch {
	case !i.Weak && len(c.Operations) > 0:
		return fmt.Errorf("operations %v in a section: want none, since there is no replicated object", c.Operations)
	case i.Weak && len(c.Operations) == 0:
		c.Operations = []int{1}
	}
	if len(c.Operations) == 1 {
		c.Operations = slices.Repeat(c.Operations, c.N)
	}
	if i.Weak && len(c.Operations) != c.N {
		return fmt.Errorf("%d numbers of operations for %d users: want one for all or one for each", len(c.Operations), c.N)
	}
	for _, k := range c.Operations {
		if k < 0 || k > most {
			return fmt.Errorf("%d operations in a section: want 0 to %d", k, most)
		}
	}
	if c.Decisions != 0 && !i.Consensus || c.Decisions < 0 || c.Decisions > most {
		return fmt.Errorf("%d decisions: want 0 to %d, and 0 without consensus", c.Decisions, most)
	}
	if i.Consensus && c.Decisions == 0 {
		c.Decisions = c.Suspect + c.Crash
	}
	if (i.Weak || i.Consensus) && i.Users != protocol.Members {
		return errors.New("a replicated object and consensus are of members that are users")
	}
	if (i.Weak || i.Consensus) && c.Amnesia > 0 {
		return fmt.Errorf("amnesia=%d: a member that restarts has crashed: want crash and recover", c.Amnesia)
	}
	return nil
}

// newShared returns the words that a space has.
func newShared(i protocol.Info, total int) (w shared, flight int) {
	flight = 1 + total
	for kind, has := range [sharedWords]bool{i.Weak, i.Consensus} {
		w.words[kind].number = map[string]uint32{}
		w.words[kind].list, w.words[kind].hashes = make([][]byte, 1), make([]uint64, 1)
		if has {
			w.at[kind] = flight
			flight++
		}
	}
	w.accords, w.deeds, w.deedOf = make([]accord, 1), make([]deed, 1), map[string]uint32{}
	w.decide = map[ballot]uint32{}
	return w, flight
}

// share puts the first words into the state being built.
func (x *worker) share() {
	if at := x.shared.at[judgeWord]; at > 0 {
		x.next[at] = x.word(judgeWord, history.NewWeak(x.members).AppendState(nil))
	}
	if at := x.shared.at[accordWord]; at > 0 {
		a := accord{next: slices.Repeat([]uint64{1}, x.members)}
		x.next[at] = x.accordWord(a)
	}
}

// word returns the number of a word, for a worker that is not frozen.
func (x *worker) word(kind int, encoded []byte) uint32 {
	w := &x.shared.words[kind]
	if n, ok := w.number[string(encoded)]; ok {
		return n
	}
	n := uint32(len(w.list))
	kept := slices.Clone(encoded)
	w.number[string(kept)] = n
	w.list = append(w.list, kept)
	w.hashes = append(w.hashes, x.mail.mark(uint64(n)<<2|uint64(kind)+1<<62, nil).hash)
	x.bytes += int64(2*len(kept)) + 120
	return n
}

func (x *worker) accordWord(a accord) uint32 {
	n := x.word(accordWord, a.append(nil))
	if int(n) == len(x.shared.accords) {
		x.shared.accords = append(x.shared.accords, a)
		x.bytes += int64(8*len(a.next)+24*(len(a.proposals)+len(a.decisions))) + 80
	}
	return n
}

// accord is what consensus knows in a state.
func (s *space) accord(st []uint32) *accord { return &s.shared.accords[st[s.shared.at[accordWord]]] }

// deed returns the number of d, 0 if it does nothing, for a worker that is not frozen.
func (x *worker) deed(d deed) uint32 {
	if len(d.object) == 0 && len(d.accord) == 0 {
		return 0
	}
	key := fmt.Sprint(d)
	n, ok := x.shared.deedOf[key]
	if !ok {
		n = uint32(len(x.shared.deeds))
		x.shared.deedOf[key] = n
		x.shared.deeds = append(x.shared.deeds, d)
		x.bytes += int64(len(key)+200*(len(d.object)+len(d.accord))) + 120
	}
	return n
}

// witness records in a deed what a process gets, as far as it matters.
func (x *worker) witness(d *deed, in protocol.Input, msg uint32) {
	switch in.Kind {
	case protocol.Try, protocol.Exit, protocol.Issue, protocol.Suspect:
		if x.info.Weak {
			d.object = append(d.object, doing{in: protocol.Input{Kind: in.Kind, Data: in.Data}})
		}
	case protocol.Decide:
		d.accord = append(d.accord, doing{in: protocol.Input{Kind: in.Kind, Arg: in.Arg}, act: effect{msg: msg}})
	}
}

// commits records in a deed what a process does, as far as it matters.
func (x *worker) commits(d *deed, e effect) {
	switch e.Do {
	case protocol.Crit, protocol.Rem, protocol.Ejected, protocol.Outcome, protocol.Invoke, protocol.Install:
		if x.info.Weak {
			a := protocol.Act{Do: e.Do}
			if e.Do == protocol.Invoke || e.Do == protocol.Install {
				a.Data = e.Data
			}
			d.object = append(d.object, doing{act: effect{Act: a}})
		}
	case protocol.Propose, protocol.Resume:
		d.accord = append(d.accord, doing{act: effect{protocol.Act{Do: e.Do, Arg: e.Arg}, e.msg}})
	}
}

// crashes is the deed of a process that crashes.
func (x *worker) crashes(p int) deed {
	d := deed{proc: p}
	if x.info.Weak {
		d.object = []doing{{}}
	}
	if x.info.Consensus {
		d.accord = []doing{{}}
	}
	return d
}

// falls changes the words in the vector being built because a process crashes.
func (x *worker) falls(p int) (fault uint32, known bool) {
	if x.shared.crash == nil {
		if x.frozen {
			return 0, false
		}
		for i := range x.total {
			x.shared.crash = append(x.shared.crash, x.deed(x.crashes(i)))
		}
	}
	return x.does(x.shared.crash[p])
}

// nobody does what the service does of itself.
const nobody = -1

// becomes returns what deed n makes of a word. A frozen worker knows only what was computed before.
func (x *worker) becomes(kind int, word, n uint32) (e effected, known bool) {
	key := scramble(uint64(word)<<32 | uint64(n)<<1 | uint64(kind))
	if k, known := x.shared.after.find(key); known || x.frozen {
		if !known {
			return e, false
		}
		return x.shared.effected[k], true
	}
	if d := &x.shared.deeds[n]; kind == judgeWord {
		e = x.judged(word, d)
	} else {
		e = x.agreed(word, d)
	}
	x.shared.after.add(key)
	x.shared.effected = append(x.shared.effected, e)
	return e, true
}

// does changes the words in the vector being built by a deed. It returns a problem.
func (x *worker) does(n uint32) (problem uint32, known bool) {
	if n == 0 {
		return 0, true
	}
	for kind, at := range x.shared.at {
		if at == 0 {
			continue
		}
		e, known := x.becomes(kind, x.next[at], n)
		if !known {
			return 0, false
		}
		x.next[at] = e.to
		problem = max(problem, e.problem)
	}
	return problem, true
}

// exchange returns what a deed adds to the fingerprint of the state entered.
func (x *worker) exchange(n uint32) (hash uint64, problem uint32, known bool) {
	if n == 0 {
		return 0, 0, true
	}
	for kind, at := range x.shared.at {
		if at == 0 {
			continue
		}
		e, known := x.becomes(kind, x.st[at], n)
		if !known {
			return 0, 0, false
		}
		hash += x.shared.words[kind].hashes[e.to] - x.shared.words[kind].hashes[x.st[at]]
		problem = max(problem, e.problem)
	}
	return hash, problem, true
}

// judged shows a deed to a judge.
func (x *worker) judged(word uint32, d *deed) (e effected) {
	if len(d.object) == 0 {
		return effected{to: word}
	}
	w := x.judge(word)
	p := protocol.ID(d.proc)
	for _, do := range d.object {
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
			e.problem = x.problemOf(f.Property, x.faultText(f))
		}
	}
	e.to = x.word(judgeWord, w.AppendState(nil))
	return e
}

// judge is the judge that a word stands for, until the next call.
func (x *worker) judge(word uint32) *history.Weak {
	if rest, err := x.object.LoadState(x.shared.words[judgeWord].list[word]); err != nil || len(rest) > 0 {
		panic(fmt.Sprintf("check: a judge refuses its own state: %v, %d bytes left", err, len(rest)))
	}
	return x.object
}

// faultText says what a judge found, in the names of a scenario.
func (x *worker) faultText(f history.Fault) error {
	return fmt.Errorf("%s: %s", f.Property, x.names.Text(f.Text))
}

// agreed tells consensus of a deed.
func (x *worker) agreed(word uint32, d *deed) effected {
	if len(d.accord) == 0 {
		return effected{to: word}
	}
	a := x.shared.accords[word].clone()
	for _, do := range d.accord {
		switch {
		case do.in.Kind == protocol.Decide && d.proc == nobody:
			k := do.in.Arg
			a.proposals = slices.DeleteFunc(a.proposals, func(b ballot) bool { return b.instance == k })
			a.decisions = append(a.decisions, ballot{k, do.act.msg, true})
			slices.SortFunc(a.decisions, ballot.compare)
		case do.in.Kind == protocol.Decide:
			a.decisions[a.decided(do.in.Arg)].new = false
			a.next[d.proc]++
		case do.act.Do == protocol.Propose:
			a.propose(ballot{instance: do.act.Arg, msg: do.act.msg})
		case do.act.Do == protocol.Resume:
			a.next[d.proc] = do.act.Arg + 1
		default:
			a.next[d.proc] = noInstance
		}
	}
	if x.budget>>recoverBudget&maxBudget == 0 {
		a.decisions = slices.DeleteFunc(a.decisions, func(b ballot) bool { return a.passed(b.instance) })
		a.proposals = slices.DeleteFunc(a.proposals, func(b ballot) bool { return a.passed(b.instance) })
	}
	return effected{to: x.accordWord(a)}
}

func (a *accord) propose(b ballot) {
	if a.decided(b.instance) >= 0 {
		return
	}
	if i, found := slices.BinarySearchFunc(a.proposals, b, ballot.compare); !found {
		a.proposals = slices.Insert(a.proposals, i, b)
	}
}

// choosing appends the actions of consensus.
func (x *worker) choosing(list []action) []action {
	a := x.accord(x.st)
	for _, b := range a.proposals {
		if a.awaited(b.instance) && (x.raw || b.instance < x.hasty || x.accurate()) {
			list = append(list, action{verb: agree, arg: b.msg, at: uint32(b.instance)})
		}
	}
	for _, b := range a.decisions {
		list = x.hearings(list, a, b)
	}
	return list
}

// accurate reports whether every member that is up suspects exactly those that crashed.
func (x *worker) accurate() bool {
	for j, n := range x.st[1 : 1+x.members] {
		if x.absent(x.st, j) {
			continue
		}
		for q := range x.members {
			if q != j && x.absent(x.st, q) != (x.locals[n].doubts&(1<<q) != 0) {
				return false
			}
		}
	}
	return true
}

// hearings appends who may hear of a decision.
func (x *worker) hearings(list []action, a *accord, b ballot) []action {
	for p, k := range a.next {
		if k == b.instance+1 {
			list = append(list, action{verb: hear, a: uint8(p), arg: b.msg, at: uint32(b.instance)})
		}
	}
	return list
}

// heardFirst appends who may hear of a decision that was made in the last step, if one was: where
// there is one, that is what happens next.
func (x *worker) heardFirst(list []action) []action {
	if x.raw || x.eager || x.shared.at[accordWord] == 0 {
		return list
	}
	a := x.accord(x.st)
	if i := slices.IndexFunc(a.decisions, func(b ballot) bool { return b.new }); i >= 0 {
		list = x.hearings(list, a, a.decisions[i])
	}
	return list
}

// decides takes an action of consensus that no process notices.
func (x *worker) decides(a action) (o outcome, known bool) {
	key := ballot{instance: uint64(a.at), msg: a.arg}
	n, known := x.shared.decide[key]
	if !known && x.frozen {
		return o, false
	} else if !known {
		in := protocol.Input{Kind: protocol.Decide, Arg: uint64(a.at)}
		n = x.deed(deed{proc: nobody, accord: []doing{{in: in, act: effect{msg: a.arg}}}})
		x.shared.decide[key] = n
	}
	x.next = append(x.next[:0], x.st...)
	if _, known = x.does(n); !known {
		return o, false
	}
	return x.settle(o, 0)
}

// decision is the argument of the move that hears of one.
func (x *worker) decision(a action) uint64 { return uint64(a.at)<<32 | uint64(a.arg) }

// operation is the name of an operation that the user of a process issues.
func (s *space) operation(proc int, number uint32) string {
	return fmt.Sprintf("%s.%d", s.names.Of(protocol.ID(proc)), number)
}

// lagging says which copy of the object lacks something in a state, if one does.
func (x *worker) lagging(st []uint32) error {
	if f := x.judge(st[x.shared.at[judgeWord]]).Unfinished(); f != (history.Fault{}) {
		f.Text += ", and nothing that must happen changes the state"
		return x.faultText(f)
	}
	return nil
}
