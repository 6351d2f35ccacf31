package hunt

import (
	"math/bits"
	"math/rand/v2"
	"slices"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/scenario"
	"github.com/poundlock/poundlock/verify/world"
)

// A walker takes the steps of an untimed run. First comes a storm, in which
// everything of the plan may happen; then a calm, in which no fault does, messages
// arrive in their order and users leave as soon as they can. Whoever waits for a
// long time there is stuck.
type walker struct {
	*model
	p         *plan
	r         *rand.Rand
	run       []world.Action
	tries     []int // left, by user
	slowUntil []int // by process: the step until which it stands still
	silent    int   // members that may still drain
	salt      uint64
	turn      int // of the calm: whose turn it is, and below which timer's
	timer     int
	calm      bool
	stay      bool     // of the calm: nobody tries anew, and who is inside stays there
	leave     bool     // there is no such part of the calm
	looked    int      // of the calm: whose turn it is to access a register
	ops       []int    // by user: how many operations it may still issue in its section
	base      int32    // of the ids of its actions
	asleep    int      // processes that may pause
	named     []uint64 // by process that crashed: the members that were told so
}

func newWalker(m *model, p *plan) *walker {
	w := &walker{model: m, p: p, r: p.chance, silent: p.silent}
	w.tries, w.slowUntil, w.ops, w.named = make([]int, m.Total), make([]int, m.Total), make([]int, m.Total), make([]uint64, m.Total)
	for i := range w.tries {
		if m.IsUser(i) {
			w.tries[i] = p.tries
		}
	}
	for _, e := range m.Ends {
		if e != nil && e.Paused {
			w.asleep++
		}
	}
	return w
}

// walk takes the steps of a run.
func (w *walker) walk() {
	w.salt = w.r.Uint64()
	for len(w.run) < w.p.storm && w.Found == nil && w.left() {
		if !w.storm() {
			break
		}
		if w.p.judges {
			w.judge("")
		}
	}
	if w.Found == nil {
		w.settle()
	}
}

// left reports whether somebody still tries or may.
func (w *walker) left() bool {
	if w.Elects() {
		return true
	}
	for i := range w.Total {
		if w.IsUser(i) && w.Is(i) && (w.tries[i] > 0 || w.Section(i) != protocol.InRem) {
			return true
		}
	}
	return false
}

// take takes an action, and remembers it if it was possible.
func (w *walker) take(c world.Action) bool {
	c.ID = w.base + int32(len(w.run))
	if !w.do(&c) {
		return false
	}
	w.run = append(w.run, c)
	switch p, q := int(c.A), int(c.B); c.Verb {
	case scenario.Suspect:
		if !w.Is(q) {
			w.named[q] |= 1 << p
		}
	case scenario.Crash:
		w.named[p] = 0
	case scenario.Amnesia:
		for u := range w.named {
			w.named[u] &^= 1 << p
		}
	}
	return true
}

// storm takes one step of a storm. It returns false when nothing can happen.
func (w *walker) storm() bool {
	before := w.Entries
	w.wake()
	if w.r.IntN(w.p.shuffle) == 0 {
		w.salt = w.r.Uint64()
	}
	if w.r.IntN(1000) < w.p.faulty && w.fault() || w.choose() {
		if w.Entries > before && w.p.has(aimed) {
			w.aim(w.run[len(w.run)-1].Actor())
		}
		return true
	}
	// Only those who stand still can go on.
	woken := false
	for i := range w.slowUntil {
		woken = woken || w.still(i)
		w.slowUntil[i] = 0
	}
	return woken || w.choose() || w.forceFault()
}

// choose takes a step that is no fault, of the kind that is drawn, or else of
// another one.
func (w *walker) choose() bool {
	if w.Consensus && w.r.IntN(100) < w.p.agrees && w.consent() {
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

func (w *walker) still(i int) bool {
	return w.slowUntil[i] > len(w.run) || w.asleep > 0 && w.Is(i) && w.Ends[i].Paused
}

// slowDown lets process i stand still for a number of steps: it is slow, or it pauses.
func (w *walker) slowDown(i, steps int) {
	w.slowUntil[i] = len(w.run) + steps
	if w.Pauses && !w.Ends[i].Paused && w.r.IntN(2) == 0 && w.take(world.Action{Verb: scenario.Pause, A: int32(i)}) {
		w.asleep++
	}
}

// wake lets processes go on that have paused for long enough, or others notice that they pause.
func (w *walker) wake() {
	if w.asleep == 0 {
		return
	}
	asleep := 0
	for i := range w.Total {
		switch {
		case !w.Is(i) || !w.Ends[i].Paused:
		case w.slowUntil[i] <= len(w.run):
			w.take(world.Action{Verb: scenario.Resume, A: int32(i)})
		default:
			asleep++
			j := w.r.IntN(4 * w.sys.N)
			switch {
			case j >= w.sys.N:
			case w.Detector == protocol.LeaseDetector:
				w.take(world.Action{Verb: scenario.Lapse, A: int32(i), B: int32(j)})
			default:
				w.take(world.Action{Verb: scenario.Suspect, A: int32(j), B: int32(i)})
			}
		}
	}
	w.asleep = asleep
}

// user lets one user do something.
func (w *walker) user() bool {
	first := w.r.IntN(w.Total)
	for k := range w.Total {
		i := (first + k) % w.Total
		if !w.IsUser(i) || !w.Is(i) || w.still(i) {
			continue
		}
		switch w.Section(i) {
		case protocol.InRem:
			if w.tries[i] > 0 && !w.stay {
				w.tries[i]--
				w.ops[i] = w.p.operations
				return w.take(world.Action{Verb: scenario.Try, A: int32(i), Wants: w.want()})
			}
		case protocol.InCrit:
			if w.stay {
				continue
			}
			if !w.calm && w.r.IntN(100) < w.p.stays {
				continue
			}
			if w.may(i) {
				w.ops[i]--
				return w.take(world.Action{Verb: scenario.Issue, A: int32(i)})
			}
			if w.Downgrades(w.Section(i), w.Ends[i].Group) && w.r.IntN(3) == 0 {
				return w.take(world.Action{Verb: scenario.Downgrade, A: int32(i)})
			}
			return w.take(world.Action{Verb: scenario.Exit, A: int32(i)})
		case protocol.InLost:
			return w.take(world.Action{Verb: scenario.Exit, A: int32(i)})
		case protocol.InTry:
			if !w.calm && w.p.has(cancels) && w.r.IntN(20) == 0 {
				return w.take(world.Action{Verb: scenario.Cancel, A: int32(i)})
			}
		}
	}
	return false
}

// fire lets an armed timer fire: in a calm one after the other. Those that only
// repeat messages must not bury the others.
func (w *walker) fire() bool {
	const crowd = 30
	if !w.calm && w.Pending() > crowd*w.Total {
		return false
	}
	first := w.timer
	if !w.calm {
		first = w.r.IntN(w.Total)
	}
	for k := range w.Total {
		i := (first + k) % w.Total
		if !w.Is(i) || len(w.Ends[i].Timers) == 0 || w.still(i) || w.Waiting(i) {
			continue
		}
		w.timer = i + 1
		t := w.Ends[i].Timers
		return w.take(world.Action{Verb: scenario.Timeout, A: int32(i), Timer: t[w.r.IntN(len(t))]})
	}
	return false
}

// tell lets the failure detector tell somebody what it must.
func (w *walker) tell() bool {
	if w.Detector == protocol.NoDetector {
		return false
	}
	from, n := w.sys.N, w.sys.N // who suspects members, or is suspected by them
	if w.Peers {
		from = 0
	}
	first := w.r.IntN(w.Total - from)
	for k := range w.Total - from {
		u := from + (first+k)%(w.Total-from)
		for j := range n {
			if w.Peers && w.advise(u, j) || !w.Peers && (w.advise(j, u) || w.advise(u, j)) {
				return true
			}
		}
	}
	return false
}

// advise lets the detector tell process p what it must of process q.
func (w *walker) advise(p, q int) bool {
	n := w.Notices(p, q) & world.Must
	if n == 0 || w.still(p) {
		return false
	}
	c := world.Action{Verb: scenario.Restore, A: int32(p), B: int32(q)}
	switch {
	case !w.Is(q) && !w.Mutual && w.named[q]>>p&1 != 0:
		return false // it knows
	case n == world.ToLapse:
		c.Verb = scenario.Lapse
	case n&world.ToRestore == 0:
		c.Verb = scenario.Suspect
	case w.Leases && w.Ends[p].Lapsed>>q&1 != 0 && w.Ends[p].Ended>>q&1 == 0:
		return false // the member has not noticed yet
	}
	return w.take(c)
}

// message delivers a message, of no priority below least.
func (w *walker) message(least uint64) bool {
	k := w.pick(least)
	for k >= 0 && w.Stale(k) {
		w.Flight = slices.Delete(w.Flight, k, k+1)
		k = w.pick(least)
	}
	if k < 0 {
		return false
	}
	c := world.Action{ID: w.base + int32(len(w.run)), Keep: w.again()}
	entries := w.Entries
	w.Receive(k, &c)
	w.exclusion(w.Entries > entries)
	w.named[c.A] &^= 1 << c.B // a detector repeats itself after a message
	w.run = append(w.run, c)
	return true
}

// again reports whether what is delivered now may arrive once more, as for the checker
// where the algorithm says what is stale.
func (w *walker) again() bool {
	const seldom = 4
	return !w.calm && w.p.has(copies) && w.Algorithm.Stale != nil && w.r.IntN(seldom) == 0
}

// pick returns the message in flight that arrives next, or -1.
func (w *walker) pick(least uint64) int {
	n := len(w.Flight)
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
func (w *walker) scan(k, by int) int {
	n := len(w.Flight)
	for range n {
		if !w.still(int(w.Flight[k].To)) && w.Arrives(k) {
			return k
		}
		k = (k + by + n) % n
	}
	return -1
}

// favoured returns the message of the highest priority that may arrive.
func (w *walker) favoured(least uint64) int {
	best, most := -1, uint64(0)
	for k := range w.Flight {
		f := &w.Flight[k]
		of := uint64(f.To)
		if w.p.order == channels {
			of |= uint64(f.From) << 32
		}
		hi, lo := bits.Mul64(of+w.salt, 0x9e3779b97f4a7c15)
		if x := hi ^ lo; x >= least && (best < 0 || x > most) && !w.still(int(f.To)) && w.Arrives(k) {
			best, most = k, x
		}
	}
	return best
}

// fault lets one fault of the plan happen, if one can.
func (w *walker) fault() bool {
	if w.Peers && w.Tolerates&(protocol.Crash|protocol.Recovery) != 0 && w.r.IntN(2) == 0 {
		return w.peerFault()
	}
	i, j := int32(w.r.IntN(w.Total)), int32(w.r.IntN(w.sys.N))
	k := kinds(1) << w.r.IntN(bits.Len16(uint16(aimed)))
	if !w.p.has(k) {
		return false
	}
	if k == drops || k == copies {
		return w.fail(k)
	}
	if !w.Is(int(i)) || !w.Is(int(j)) {
		return false
	}
	switch k {
	case losses:
		return w.take(world.Action{Verb: scenario.Amnesia, A: j})
	case lapses:
		return w.take(world.Action{Verb: scenario.Lapse, A: i, B: j})
	case crashes:
		return w.several(int(i)) && w.take(world.Action{Verb: scenario.Crash, A: i})
	case pauses:
		w.slowDown(int(i), 1+w.r.IntN(w.p.slow))
	case drains:
		if w.silent > 0 {
			w.silent--
			return w.take(world.Action{Verb: scenario.Drain, A: j})
		}
	}
	return false
}

// fail loses or repeats a message in flight.
func (w *walker) fail(k kinds) bool {
	if len(w.Flight) == 0 {
		return false
	}
	f := &w.Flight[w.r.IntN(len(w.Flight))]
	c := world.Action{Verb: scenario.Lose, A: f.From, B: f.To, Kind: f.Kind, Sent: f.Sent, Part: f.Part}
	if k == copies {
		c.Verb = scenario.Duplicate
	}
	return w.take(c)
}

// aim hits user u, which has just entered: it stands still, and members that
// support it forget.
func (w *walker) aim(u int) {
	if w.Section(u) != protocol.InCrit {
		return
	}
	if w.p.has(pauses) {
		w.slowDown(u, w.p.slow)
	}
	for _, j := range w.r.Perm(w.sys.N) {
		if !w.p.has(losses) || w.Found != nil {
			return
		}
		if w.supports(j, u) && !w.take(world.Action{Verb: scenario.Amnesia, A: int32(j)}) {
			return
		}
	}
}

// supports reports whether member j knows user u inside, as far as it can be told.
func (w *walker) supports(j, u int) bool {
	p, ok := protocol.As[protocol.Inspector](w.Procs[j])
	if !ok {
		return w.Procs[j] != nil
	}
	return slices.ContainsFunc(p.Inspect().Holders, func(r protocol.Request) bool { return int(r.User) == u })
}
