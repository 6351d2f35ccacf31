package check_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/poundlock/poundlock/algotest"
	"github.com/poundlock/poundlock/check"
	"github.com/poundlock/poundlock/protocol"
)

// An agent is a process of a random algorithm with infinite runs. Who receives a message
// sends at most one, and who tries or exits sends none if entries have no end: so messages
// stay few. Clocks are compared, never read.
type agent struct {
	rules    map[cue]deed
	id       protocol.ID
	n        protocol.ID
	starters protocol.ID // the agents below it send a message when they start

	at    protocol.Section
	mode  uint64
	clock uint64
}

// A cue is what an agent's next deed depends on.
type cue struct {
	kind    protocol.Kind
	mode    uint64
	what    uint64 // the kind of the message, or the timer
	compare int    // its clock with the agent's
}

// A deed is what an agent does.
type deed struct {
	mode       uint64
	send       uint64 // the kind, 0: nothing
	back       bool   // to who sent the message, not to the next agent
	merge, add bool   // the clock becomes the larger one; and goes on
	enter, rem bool
	set, stop  uint32 // timers, 0: none
}

const (
	agentModes = 3
	agentKinds = 3 // from 1
	kindUnit   = 8 // a message is its clock times this, and its kind
)

func (p *agent) AppendState(b []byte) []byte {
	return append(b, byte(p.at), byte(p.mode), byte(p.clock), byte(p.clock>>8))
}

func (p *agent) LoadState(b []byte) ([]byte, error) {
	if len(b) < 4 {
		return nil, protocol.ErrShort
	}
	p.at, p.mode, p.clock = protocol.Section(b[0]), uint64(b[1]), uint64(b[2])|uint64(b[3])<<8
	return b[4:], nil
}

func (p *agent) Step(ev protocol.Event[uint64], out *protocol.Out[uint64]) {
	c := cue{kind: ev.Kind, mode: p.mode}
	switch ev.Kind {
	case protocol.Start:
		p.clock = 1
	case protocol.Try:
		p.at = protocol.InTry
	case protocol.Exit:
		p.at = protocol.InExit
	case protocol.Cancel:
		p.at = protocol.InRem
		out.Rem("")
		return
	case protocol.Timeout:
		c.what = uint64(ev.Timer)
	case protocol.Receive:
		c.what, c.compare = ev.Msg%kindUnit, cmp.Compare(ev.Msg/kindUnit, p.clock)
	}
	d := p.rules[c]
	p.mode = d.mode
	if d.merge && ev.Kind == protocol.Receive {
		p.clock = max(p.clock, ev.Msg/kindUnit)
	}
	if d.add {
		p.clock++
	}
	if d.send > 0 && (ev.Kind != protocol.Start || p.id < p.starters) {
		to := (p.id + 1) % p.n
		if d.back && ev.Kind == protocol.Receive {
			to = ev.From
		}
		out.Send(to, p.clock*kindUnit+d.send)
	}
	if d.set > 0 {
		out.SetTimer(d.set, 0, 0)
	}
	if d.stop > 0 {
		out.StopTimer(d.stop)
	}
	if d.enter && p.at == protocol.InTry {
		p.at = protocol.InCrit
		out.Crit(0)
	}
	if d.rem && p.at == protocol.InExit {
		p.at = protocol.InRem
		out.Rem("")
	}
}

// agents draws an algorithm and what of it is explored.
func agents(seed uint64) (protocol.Algorithm[uint64], check.Config) {
	r := rand.New(rand.NewPCG(seed, 11))
	odds := func(percent int) bool { return r.IntN(100) < percent }
	c := config(2 + r.IntN(2))
	endless, clocks, timers, lively := odds(60), odds(50), odds(40), odds(70)
	starters := protocol.ID(1 + r.IntN(2))
	if c.MaxMemory = 24 << 20; endless {
		c.Entries = []int{check.Unlimited}
	}
	c.FIFO = odds(40)
	for _, budget := range []*int{&c.Crash, &c.Cancel} {
		if odds(20) {
			*budget = 1
		}
	}
	rules := map[cue]deed{}
	enter := 40 + r.IntN(60)
	draw := func(k cue) {
		d := deed{mode: k.mode, merge: clocks && odds(90), add: clocks && odds(15), enter: odds(enter), rem: odds(95)}
		if odds(50) {
			d.mode = uint64(r.IntN(agentModes))
		}
		user := k.kind == protocol.Try || k.kind == protocol.Exit
		if k.kind == protocol.Receive && (lively || odds(80)) || k.kind == protocol.Start || user && !endless && odds(50) {
			d.send, d.back = 1+uint64(r.IntN(agentKinds)), odds(50)
		}
		if timers && k.kind != protocol.Start {
			d.set, d.stop = uint32(max(0, r.IntN(6)-3)), uint32(max(0, r.IntN(8)-5))
		}
		rules[k] = d
	}
	for mode := range uint64(agentModes) {
		for _, kind := range []protocol.Kind{protocol.Start, protocol.Try, protocol.Exit} {
			draw(cue{kind: kind, mode: mode})
		}
		for what := range uint64(agentKinds + 1) {
			draw(cue{kind: protocol.Timeout, mode: mode, what: what})
			for compare := -1; compare <= 1; compare++ {
				draw(cue{protocol.Receive, mode, what, compare})
			}
		}
	}
	a := protocol.Algorithm[uint64]{
		Info: protocol.Info{Name: "agents", Cancels: true, Tolerates: protocol.Crash},
		New: func(id protocol.ID, c protocol.Config) protocol.Process[uint64] {
			return &agent{rules: rules, id: id, n: protocol.ID(c.N), starters: starters}
		},
		Append: func(b []byte, m uint64) []byte { return append(b, byte(m), byte(m>>8)) },
		Read: func(b []byte) (uint64, []byte, error) {
			if len(b) < 2 {
				return 0, nil, protocol.ErrShort
			}
			return uint64(b[0]) | uint64(b[1])<<8, b[2:], nil
		},
		KindOf: func(uint64) int { return 0 },
		Ints:   func(uint64) int { return 1 },
		Text:   func(m uint64) string { return fmt.Sprintf("M%d(%d)", m%kindUnit, m/kindUnit) },
	}
	if clocks {
		clock := protocol.Counter{Least: 1}
		a.MapState = func(p protocol.Process[uint64], f func(protocol.Counter, uint64) uint64) {
			if q := p.(*agent); q.clock > 0 {
				q.clock = f(clock, q.clock)
			}
		}
		a.MapMsg = func(_ protocol.Channel, m *uint64, f func(protocol.Counter, uint64) uint64) {
			*m = f(clock, *m/kindUnit)*kindUnit + *m%kindUnit
		}
	}
	return a, c
}

// An oracle decides infinite runs of agents in another way than the checker: in a graph of
// its own, in which each message in flight has a slot that is its own until it arrives, so
// that fairness to messages does not depend on what they hold; and by a fixed point over
// sets of states instead of strongly connected components.
type oracle struct {
	a      protocol.Algorithm[uint64]
	c      check.Config
	number map[string]int
	worlds []world
	chart
}

// A chart is a graph of worlds, by their numbers.
type chart struct {
	arcs   [][]arc
	before [][]int // the worlds with an arc to one
}

// A world is one global state.
type world struct {
	agents []agent
	gone   []bool
	tries  []int
	timers [][3]bool
	mail   []parcel // by slot; with FIFO channels in the order in which they were sent
	crash  int
	cancel int
}

type parcel struct {
	slot, from, to int
	msg            uint64
}

// An arc leads to a world. It is of a class, 0 if it need not happen, and restarts others.
type arc struct {
	to      int
	class   int
	settled []int
}

// Classes: the exit of a user, its timers, and the slots.
func exitClass(p int) int       { return 1 + p }
func timerClass(p, t int) int   { return 10 + 3*p + t }
func slotClass(slot int) int    { return 100 + slot }
func byChannel(a, b parcel) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to)) }

const mostWorlds = 4_000

func (w *world) key() string {
	var b []byte
	for p := range w.agents {
		b = w.agents[p].AppendState(b)
		b = append(b, byte(w.tries[p]))
		for _, set := range append(w.timers[p][:], w.gone[p]) {
			b = protocol.AppendBool(b, set)
		}
	}
	for _, m := range w.mail {
		b = append(b, byte(m.slot), byte(m.from), byte(m.to), byte(m.msg), byte(m.msg>>8))
	}
	return string(append(b, byte(w.crash), byte(w.cancel)))
}

// explore builds the graph, and returns false where there are too many worlds.
func (o *oracle) explore() bool {
	entries := 1
	if len(o.c.Entries) > 0 {
		entries = o.c.Entries[0]
	}
	w := world{crash: o.c.Crash, cancel: o.c.Cancel}
	for p := range o.c.N {
		w.agents = append(w.agents, *o.a.New(protocol.ID(p), o.c.Config).(*agent))
		w.gone, w.tries, w.timers = append(w.gone, false), append(w.tries, entries), append(w.timers, [3]bool{})
	}
	for p := range o.c.N {
		w, _ = o.step(w, p, protocol.Event[uint64]{Input: protocol.Input{Kind: protocol.Start}})
	}
	o.number = map[string]int{}
	o.add(w)
	for i := 0; i < len(o.worlds); i++ {
		if len(o.worlds) > mostWorlds {
			return false
		}
		o.arcs = append(o.arcs, o.leave(o.worlds[i]))
	}
	o.turn()
	return true
}

// turn notes all arcs at their ends.
func (o *chart) turn() {
	o.before = make([][]int, len(o.arcs))
	for i, arcs := range o.arcs {
		for _, a := range arcs {
			o.before[a.to] = append(o.before[a.to], i)
		}
	}
}

func (o *oracle) add(w world) int {
	o.normalise(&w)
	n, known := o.number[w.key()]
	if !known {
		n = len(o.worlds)
		o.number[w.key()] = n
		o.worlds = append(o.worlds, w)
	}
	return n
}

// normalise lowers all clocks together, where they are compared only.
func (o *oracle) normalise(w *world) {
	if o.c.FIFO {
		slices.SortStableFunc(w.mail, byChannel)
	} else {
		slices.SortFunc(w.mail, func(a, b parcel) int { return cmp.Compare(a.slot, b.slot) })
	}
	if o.a.MapState == nil {
		return
	}
	least := ^uint64(0)
	for p, a := range w.agents {
		if !w.gone[p] {
			least = min(least, a.clock)
		}
	}
	for _, m := range w.mail {
		least = min(least, m.msg/kindUnit)
	}
	for p := range w.agents {
		if !w.gone[p] {
			w.agents[p].clock -= least - 1
		}
	}
	for k := range w.mail {
		w.mail[k].msg -= (least - 1) * kindUnit
	}
}

// step gives an event to agent p of a copy of w, and returns the classes of timers that it
// set.
func (o *oracle) step(w world, p int, ev protocol.Event[uint64]) (world, []int) {
	w.agents, w.timers, w.mail = slices.Clone(w.agents), slices.Clone(w.timers), slices.Clone(w.mail)
	w.gone, w.tries = slices.Clone(w.gone), slices.Clone(w.tries)
	var out protocol.Out[uint64]
	w.agents[p].Step(ev, &out)
	var set []int
	for _, e := range out.Effects {
		switch e.Do {
		case protocol.SetTimer:
			w.timers[p][e.Timer] = true
			set = append(set, timerClass(p, int(e.Timer)))
		case protocol.StopTimer:
			w.timers[p][e.Timer] = false
		case protocol.Send:
			if w.gone[e.To] {
				continue
			}
			slot := 0
			for slices.ContainsFunc(w.mail, func(m parcel) bool { return m.slot == slot }) {
				slot++
			}
			w.mail = append(w.mail, parcel{slot, p, int(e.To), e.Msg})
		}
	}
	return w, set
}

// leave lists what may happen in w.
func (o *oracle) leave(w world) (list []arc) {
	take := func(w world, p, class int, ev protocol.Event[uint64]) {
		next, set := o.step(w, p, ev)
		list = append(list, arc{o.add(next), class, append(set, class)})
	}
	of := func(kind protocol.Kind) protocol.Event[uint64] {
		return protocol.Event[uint64]{Input: protocol.Input{Kind: kind}}
	}
	for p, a := range w.agents {
		if w.gone[p] {
			continue
		}
		switch k := w; {
		case a.at == protocol.InRem && w.tries[p] != 0:
			if k.tries = slices.Clone(w.tries); k.tries[p] > 0 {
				k.tries[p]--
			}
			take(k, p, 0, of(protocol.Try))
		case a.at == protocol.InCrit:
			take(k, p, exitClass(p), of(protocol.Exit))
		case a.at == protocol.InTry && w.cancel > 0:
			k.cancel--
			take(k, p, 0, of(protocol.Cancel))
		}
		for t, set := range w.timers[p] {
			if set {
				k := w
				k.timers = slices.Clone(w.timers)
				k.timers[p][t] = false
				ev := of(protocol.Timeout)
				ev.Timer = uint32(t)
				take(k, p, timerClass(p, t), ev)
			}
		}
		if w.crash > 0 {
			k := w
			k.crash--
			k.gone, k.agents, k.timers = slices.Clone(w.gone), slices.Clone(w.agents), slices.Clone(w.timers)
			k.gone[p], k.agents[p], k.timers[p] = true, agent{}, [3]bool{}
			k.mail = slices.DeleteFunc(slices.Clone(w.mail), func(m parcel) bool { return m.to == p })
			list = append(list, arc{o.add(k), 0, nil})
		}
	}
	for i, m := range w.mail {
		if o.c.FIFO && slices.ContainsFunc(w.mail[:i], func(b parcel) bool { return byChannel(b, m) == 0 }) {
			continue
		}
		k := w
		k.mail = slices.Delete(slices.Clone(w.mail), i, i+1)
		ev := of(protocol.Receive)
		ev.From, ev.Msg = protocol.ID(m.from), m.msg
		take(k, m.to, slotClass(m.slot), ev)
	}
	return list
}

// forever reports whether some fair run stays for ever in worlds for which in is true: one
// that rests in one where nothing must happen, or goes on for ever and settles each class
// again and again, where settled is taken, set anew or impossible.
func (o *oracle) forever(in func(world) bool) bool {
	return o.chart.forever(func(i int) bool { return in(o.worlds[i]) }, nil)
}

// forever is that of an oracle, for worlds by their numbers. A class that is again is not
// settled where it is impossible.
func (o *chart) forever(in func(int) bool, again func(class int) bool) bool {
	left := make([]bool, len(o.arcs))
	classes := map[int]bool{-1: true} // one that is always settled: there is a next step
	for i := range o.arcs {
		left[i] = in(i)
		must := false
		for _, a := range o.arcs[i] {
			must = must || a.class != 0
			classes[a.class] = true
		}
		if left[i] && !must {
			return true
		}
	}
	delete(classes, 0)
	for changed := true; changed; {
		changed = false
		for class := range classes {
			near := o.near(left, class, again != nil && again(class))
			for i := range left {
				if left[i] && !near[i] {
					left[i], changed = false, true
				}
			}
		}
	}
	return slices.Contains(left, true)
}

// near marks the worlds of a set from which a way within it leads to an arc that settles a
// class.
func (o *chart) near(set []bool, class int, again bool) []bool {
	near := make([]bool, len(set))
	for i := range set {
		possible := slices.ContainsFunc(o.arcs[i], func(a arc) bool { return a.class == class })
		near[i] = set[i] && slices.ContainsFunc(o.arcs[i], func(a arc) bool {
			return set[a.to] && (!possible && !again || slices.Contains(a.settled, class))
		})
	}
	var queue []int
	for i, is := range near {
		if is {
			queue = append(queue, i)
		}
	}
	for ; len(queue) > 0; queue = queue[1:] {
		for _, i := range o.before[queue[0]] {
			if set[i] && !near[i] {
				near[i] = true
				queue = append(queue, i)
			}
		}
	}
	return near
}

func (w world) waits(p int) bool {
	at := w.agents[p].at
	return !w.gone[p] && (at == protocol.InTry || at == protocol.InExit)
}

// violated says which properties of infinite runs are.
func (o *oracle) violated() map[string]bool {
	starves := false
	for p := range o.c.N {
		starves = starves || o.forever(func(w world) bool { return w.waits(p) })
	}
	stuck := o.forever(func(w world) bool {
		waits, inside := false, false
		for p := range o.c.N {
			waits = waits || w.waits(p)
			inside = inside || !w.gone[p] && w.agents[p].at == protocol.InCrit
		}
		return waits && !inside
	})
	return map[string]bool{check.Starvation: starves, check.MakesProgress: stuck}
}

// Random algorithms with infinite runs, against the oracle.
func TestOracle(t *testing.T) {
	seeds := uint64(200)
	if os.Getenv("POUNDLOCK_FULL") != "" {
		seeds = 3000
	} else {
		t.Log("SHORTENED: POUNDLOCK_FULL=1 draws 3000 algorithms")
	}
	decided, loops, moved := map[check.Result]int{}, 0, 0
	for seed := range seeds {
		a, c := agents(seed)
		o := &oracle{a: a, c: c}
		if !o.explore() {
			continue
		}
		for property, violated := range o.violated() {
			c.Properties = []string{property}
			v := run(t, a, c)
			want := check.Holds
			if violated {
				want = check.Violated
			}
			if v.Verdict != want {
				t.Errorf("seed %d: %s is %s, want %s\n%s\n%v", seed, property, v.Verdict, want, v.Bounds, v.Trace)
				continue
			}
			if decided[v.Verdict]++; int(v.Loop) >= 0 && int(v.Loop) < len(v.Trace) {
				loops++
			}
			if a.MapState != nil {
				moved++
			}
			if v.Verdict == check.Violated {
				if r := algotest.Repeat(t, a, c, v); r.Property != property {
					t.Errorf("seed %d: %s: taken again: %+v", seed, property, r)
				}
			}
		}
	}
	t.Logf("%d algorithms: %v, with %d loops; %d with counters that are moved", seeds, decided, loops, moved)
	if n := int(seeds) / 6; decided[check.Holds] < n || decided[check.Violated] < n || loops < n/2 {
		t.Errorf("%v and %d loops: too few to show anything", decided, loops)
	}
}
