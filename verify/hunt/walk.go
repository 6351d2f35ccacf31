package hunt

import (
	"math/bits"
	"math/rand/v2"
	"slices"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/scenario"
)

// A walker takes the steps of an untimed run. First comes a storm, in which
// everything of the plan may happen; then a calm, in which no fault does, messages
// arrive in their order and users leave as soon as they can. Whoever waits for a
// long time there is stuck.
type walker[M any] struct {
	*model[M]
	p      *plan
	r      *rand.Rand
	run    []choice
	tries  []int // left, by user
	frozen []int // by process: the step until which it stands still
	silent int   // members that may still drain
	salt   uint64
	turn   int // of the calm: whose turn it is, and below which timer's
	timer  int
	calm   bool
	stay   bool  // of the calm: nobody tries anew, and who is inside stays there
	leave  bool  // there is no such part of the calm
	looked int   // of the calm: whose turn it is to access a register
	ops    []int // by user: how many operations it may still issue in its section
	base   int32 // of the ids of its choices
}

func newWalker[M any](m *model[M], p *plan) *walker[M] {
	w := &walker[M]{model: m, p: p, r: p.chance, silent: p.silent}
	w.tries, w.frozen, w.ops = make([]int, m.total), make([]int, m.total), make([]int, m.total)
	for i := range w.tries {
		if m.isUser(i) {
			w.tries[i] = p.tries
		}
	}
	return w
}

// walk takes the steps of a run.
func (w *walker[M]) walk() {
	w.salt = w.r.Uint64()
	for len(w.run) < w.p.storm && w.found == nil && w.left() {
		if !w.storm() {
			break
		}
		if w.p.judges {
			w.judge("")
		}
	}
	if w.found == nil {
		w.settle()
	}
}

// left reports whether somebody still tries or may.
func (w *walker[M]) left() bool {
	if w.elects() {
		return true
	}
	for i, p := range w.procs {
		if w.isUser(i) && p.process != nil && (w.tries[i] > 0 || w.users[i] != protocol.InRem) {
			return true
		}
	}
	return false
}

// take takes a choice, and remembers it if it was possible.
func (w *walker[M]) take(c choice) bool {
	c.id = w.base + int32(len(w.run))
	if !w.do(&c) {
		return false
	}
	w.run = append(w.run, c)
	return true
}

// storm takes one step of a storm. It returns false when nothing can happen.
func (w *walker[M]) storm() bool {
	before := w.entries
	if w.r.IntN(w.p.shuffle) == 0 {
		w.salt = w.r.Uint64()
	}
	if w.r.IntN(1000) < w.p.faulty && w.fault() || w.choose() {
		if w.entries > before && w.p.has(aimed) {
			w.aim(w.run[len(w.run)-1].actor())
		}
		return true
	}
	// Only those who stand still can go on.
	thawed := false
	for i := range w.frozen {
		thawed = thawed || w.stands(i)
		w.frozen[i] = 0
	}
	return thawed || w.choose() || w.strike()
}

// choose takes a step that is no fault, of the kind that is drawn, or else of
// another one.
func (w *walker[M]) choose() bool {
	if w.alg.Consensus && w.r.IntN(100) < w.p.agrees && w.consent() {
		return true
	}
	x := w.r.IntN(100)
	switch {
	case x < w.p.users && w.user():
		return true
	case x >= w.p.users && x < w.p.users+w.p.timers && w.fire():
		return true
	case x >= w.p.users+w.p.timers && x < w.p.users+w.p.timers+w.p.news && w.tell():
		return true
	}
	return w.message(w.p.held) || w.share() || w.consent() || w.tell() || w.user() || w.fire() || w.message(0)
}

func (w *walker[M]) stands(i int) bool { return w.frozen[i] > len(w.run) }

// user lets one user do something.
func (w *walker[M]) user() bool {
	first := w.r.IntN(w.total)
	for k := range w.total {
		i := (first + k) % w.total
		if !w.isUser(i) || w.procs[i].process == nil || w.stands(i) {
			continue
		}
		switch w.users[i] {
		case protocol.InRem:
			if w.tries[i] > 0 && !w.stay {
				w.tries[i]--
				w.ops[i] = w.p.operations
				return w.take(choice{verb: scenario.Try, a: int32(i), wants: w.want()})
			}
		case protocol.InCrit:
			if w.stay {
				continue
			}
			if !w.calm && w.r.IntN(100) < w.p.linger {
				continue
			}
			if w.may(i) {
				w.ops[i]--
				return w.take(choice{verb: scenario.Issue, a: int32(i)})
			}
			return w.take(choice{verb: scenario.Exit, a: int32(i)})
		case protocol.InLost:
			return w.take(choice{verb: scenario.Exit, a: int32(i)})
		case protocol.InTry:
			if !w.calm && w.p.has(cancels) && w.r.IntN(20) == 0 {
				return w.take(choice{verb: scenario.Cancel, a: int32(i)})
			}
		}
	}
	return false
}

// fire lets an armed timer fire: in a calm one after the other. Those that only
// repeat messages must not bury the others.
func (w *walker[M]) fire() bool {
	const crowd = 30
	if !w.calm && w.pending() > crowd*w.total {
		return false
	}
	first := w.timer
	if !w.calm {
		first = w.r.IntN(w.total)
	}
	for k := range w.total {
		i := (first + k) % w.total
		if t := w.procs[i].timers; len(t) > 0 && w.procs[i].process != nil && !w.stands(i) && !w.waiting(i) {
			w.timer = i + 1
			return w.take(choice{verb: scenario.Timeout, a: int32(i), timer: t[w.r.IntN(len(t))]})
		}
	}
	return false
}

// tell lets the failure detector tell somebody what it must.
func (w *walker[M]) tell() bool {
	if w.alg.Detector == protocol.NoDetector {
		return false
	}
	if w.peers() {
		return w.tellPeer()
	}
	first := w.r.IntN(w.total)
	for k := range w.total {
		u := (first + k) % w.total
		if !w.isUser(u) {
			continue
		}
		for j := range w.sys.N {
			crashed := w.procs[u].process == nil
			switch {
			case crashed && w.procs[u].suspected&(1<<j) != 0:
			case w.canSuspect(j, u) && !w.stands(j):
				return w.take(choice{verb: scenario.Suspect, a: int32(j), b: int32(u)})
			case w.canRestore(u, j) && !w.stands(u) && (w.procs[u].lapsed&(1<<j) == 0 || w.procs[u].ended&(1<<j) != 0):
				return w.take(choice{verb: scenario.Restore, a: int32(u), b: int32(j)})
			}
		}
	}
	return false
}

// message delivers a message, of no priority below least.
func (w *walker[M]) message(least uint64) bool {
	k := w.pick(least)
	for k >= 0 && w.stale(k) {
		w.flight = slices.Delete(w.flight, k, k+1)
		k = w.pick(least)
	}
	if k < 0 {
		return false
	}
	c := choice{id: w.base + int32(len(w.run)), keep: w.again()}
	w.deliverAt(k, &c)
	w.run = append(w.run, c)
	return true
}

// again reports whether what is delivered now may arrive once more, as for the checker
// where the algorithm says what is stale.
func (w *walker[M]) again() bool {
	const seldom = 4
	return !w.calm && w.p.has(copies) && w.alg.Stale != nil && w.r.IntN(seldom) == 0
}

// deliverAt delivers message k of those in flight.
func (w *walker[M]) deliverAt(k int, c *choice) {
	defer w.caught()
	w.receive(k, c)
}

// pick returns the message in flight that arrives next, or -1.
func (w *walker[M]) pick(least uint64) int {
	n := len(w.flight)
	if n == 0 {
		return -1
	}
	how := w.p.order
	switch {
	case w.calm:
		return w.scan(0, 1)
	case how == oldest && w.r.IntN(10) > 0:
		return w.scan(0, 1)
	case how == newest && w.r.IntN(10) > 0:
		return w.scan(n-1, -1)
	case how == channels || how == receivers:
		return w.favoured(least)
	}
	return w.scan(w.r.IntN(n), 1)
}

// scan returns the first message from place k on, around the end, that may arrive.
func (w *walker[M]) scan(k, by int) int {
	n := len(w.flight)
	for range n {
		if !w.stands(int(w.flight[k].to)) && w.first(k) {
			return k
		}
		k = (k + by + n) % n
	}
	return -1
}

// favoured returns the message of the highest priority that may arrive.
func (w *walker[M]) favoured(least uint64) int {
	best, most := -1, uint64(0)
	for k := range w.flight {
		f := &w.flight[k]
		of := uint64(f.to)
		if w.p.order == channels {
			of |= uint64(f.from) << 32
		}
		hi, lo := bits.Mul64(of+w.salt, 0x9e3779b97f4a7c15)
		if x := hi ^ lo; x >= least && (best < 0 || x > most) && !w.stands(int(f.to)) && w.first(k) {
			best, most = k, x
		}
	}
	return best
}

// fault lets one fault of the plan happen, if one can.
func (w *walker[M]) fault() bool {
	if w.peers() && w.alg.Tolerates&(protocol.Crash|protocol.Recovery) != 0 && w.r.IntN(2) == 0 {
		return w.peerFault()
	}
	i, j := int32(w.r.IntN(w.total)), int32(w.r.IntN(w.sys.N))
	k := kinds(1) << w.r.IntN(bits.Len16(uint16(aimed)))
	if !w.p.has(k) {
		return false
	}
	if k == drops || k == copies {
		return w.fail(k)
	}
	if w.procs[i].process == nil || w.procs[j].process == nil {
		return false
	}
	switch k {
	case losses:
		return w.take(choice{verb: scenario.Amnesia, a: j})
	case lapses:
		return w.take(choice{verb: scenario.Lapse, a: i, b: j})
	case crashes:
		return w.several(int(i)) && w.take(choice{verb: scenario.Crash, a: i})
	case pauses:
		w.frozen[i] = len(w.run) + 1 + w.r.IntN(w.p.thaw)
	case drains:
		if w.silent > 0 {
			w.silent--
			return w.take(choice{verb: scenario.Drain, a: j})
		}
	}
	return false
}

// fail loses or repeats a message in flight.
func (w *walker[M]) fail(k kinds) bool {
	if len(w.flight) == 0 {
		return false
	}
	f := &w.flight[w.r.IntN(len(w.flight))]
	c := choice{verb: scenario.Lose, a: f.from, b: f.to, kind: f.kind, sent: f.sent, part: f.part}
	if k == copies {
		c.verb = scenario.Duplicate
	}
	return w.take(c)
}

// aim hits user u, which has just entered: it stands still, and members that
// support it forget.
func (w *walker[M]) aim(u int) {
	if w.users[u] != protocol.InCrit {
		return
	}
	if w.p.has(pauses) {
		w.frozen[u] = len(w.run) + w.p.thaw
	}
	for _, j := range w.r.Perm(w.sys.N) {
		if !w.p.has(losses) || w.found != nil {
			return
		}
		if w.supports(j, u) && !w.take(choice{verb: scenario.Amnesia, a: int32(j)}) {
			return
		}
	}
}

// supports reports whether member j knows user u inside, as far as it can be told.
func (w *walker[M]) supports(j, u int) bool {
	p := w.procs[j].process
	if p == nil || w.alg.Inspect == nil {
		return p != nil
	}
	return slices.ContainsFunc(w.alg.Inspect(p).Holders, func(r protocol.Request) bool { return int(r.User) == u })
}
