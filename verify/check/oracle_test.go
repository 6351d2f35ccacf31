package check_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/poundlock/poundlock/internal/lane"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
)

// An oracle decides runs of agents in another way than the checker: in a graph of
// its own, in which each message in flight has a slot that is its own until it arrives, so
// that fairness to messages does not depend on what they hold; in which each session of two
// members is one thing, not what each of them knows of it; and by a fixed point over
// sets of states instead of strongly connected components.
type oracle struct {
	a      protocol.Algorithm[uint64]
	c      check.Config
	number map[string]int
	worlds []world
	bares  []string // of the worlds
	ill    bool     // some user was let into a group that it does not want
	vague  bool     // of how a session ended the checker knows more
	chart
}

// A chart is a graph of worlds, by their numbers.
type chart struct {
	arcs   [][]arc
	before [][]int // the worlds with an arc to one
}

// A world is one global state.
type world struct {
	agents  []agent
	users   []visitor
	gone    []bool
	tries   []int
	timers  [][3]bool
	leases  *leasing // nil: there are none
	mail    []parcel // by slot; with FIFO channels in the order in which they were sent
	crash   int
	cancel  int
	recover int
	suspect int
}

// A visitor is a user: what it wanted when it tried, and the group into which it was let.
type visitor struct {
	wanted protocol.Groups
	group  protocol.Group
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

// Classes: the exit of a user, its timers, and the slots; behind them those of leases.
func exitClass(p int) int       { return 1 + p }
func timerClass(p, t int) int   { return 10 + 3*p + t }
func slotClass(slot int) int    { return 100 + slot }
func byChannel(a, b parcel) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to)) }

const mostWorlds = 4_000

func (w *world) key() string {
	var b []byte
	for p := range w.agents {
		b = protocol.AppendState(b, &w.agents[p])
		b = fmt.Appendf(append(b, byte(w.tries[p])), "%s;%s;", w.users[p].wanted, w.users[p].group)
		for _, set := range append(w.timers[p][:], w.gone[p]) {
			b = protocol.AppendBool(b, set)
		}
	}
	b = append(w.leases.append(b), byte(w.crash), byte(w.cancel), byte(w.recover), byte(w.suspect))
	for _, m := range w.mail {
		b = append(b, byte(m.slot), byte(m.from), byte(m.to), byte(m.msg), byte(m.msg>>8))
	}
	return string(b)
}

// bare is the key of a world without the slots of messages.
func (o *oracle) bare(w world) string {
	w.mail = slices.Clone(w.mail)
	for k := range w.mail {
		w.mail[k].slot = 0
	}
	slices.SortStableFunc(w.mail, func(a, b parcel) int {
		if o.c.FIFO {
			return byChannel(a, b)
		}
		return cmp.Or(byChannel(a, b), cmp.Compare(a.msg, b.msg))
	})
	return w.key()
}

// explore builds the graph, and returns false where there are more than most worlds.
func (o *oracle) explore(most int) bool {
	entries := 1
	if len(o.c.Entries) > 0 {
		entries = o.c.Entries[0]
	}
	w := world{crash: o.c.Crash, cancel: o.c.Cancel, recover: o.c.Recover, suspect: o.c.Suspect}
	for p := range o.c.N {
		w.agents = append(w.agents, *o.a.New(protocol.ID(p), o.c.Config).(*agent))
		w.gone, w.tries, w.timers = append(w.gone, false), append(w.tries, entries), append(w.timers, [3]bool{})
	}
	w.users = make([]visitor, o.c.N)
	if o.a.Detector == protocol.LeaseDetector {
		w.leases = newLeasing(o.c.N)
	}
	for p := range o.c.N {
		w, _ = o.step(w, p, protocol.Event[uint64]{Input: protocol.Input{Kind: protocol.Start, Arg: 1}})
	}
	w = o.beginLeases(w)
	o.number = map[string]int{}
	o.add(w)
	for i := 0; i < len(o.worlds); i++ {
		if len(o.worlds) > most {
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
		o.worlds, o.bares = append(o.worlds, w), append(o.bares, o.bare(w))
	}
	return n
}

// normalise lowers all clocks together, where they are compared only.
func (o *oracle) normalise(w *world) {
	for p := range w.agents {
		if w.gone[p] && o.c.Recover == 0 {
			w.tries = slices.Clone(w.tries)
			w.tries[p] = 0
		}
	}
	w.leases = w.leases.normal()
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

// copy copies a world, so that it can be changed.
func (w world) copy() world {
	w.agents, w.timers, w.mail = slices.Clone(w.agents), slices.Clone(w.timers), slices.Clone(w.mail)
	w.gone, w.tries, w.users, w.leases = slices.Clone(w.gone), slices.Clone(w.tries), slices.Clone(w.users), w.leases.clone()
	return w
}

// step gives an event to agent p of a copy of w, and returns the classes of timers that it
// set.
func (o *oracle) step(w world, p int, ev protocol.Event[uint64]) (world, []int) {
	w = w.copy()
	if ev.Kind == protocol.Try {
		w.users[p].wanted = protocol.Groups(ev.Data)
	}
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
		case protocol.Crit:
			w.users[p].group = protocol.Group(e.Data)
			wanted := slices.Collect(w.users[p].wanted.All())
			o.ill = o.ill || !slices.Contains(wanted, w.users[p].group)
		case protocol.Revoke:
			o.vague = w.leases.revoke(p, int(e.To)) || o.vague
		case protocol.Send:
			if w.gone[e.To] || !w.leases.carries(p, int(e.To)) {
				continue
			}
			slot := 0
			for slices.ContainsFunc(w.mail, func(m parcel) bool { return m.slot == slot }) {
				slot++
			}
			w.mail = append(w.mail, parcel{slot, p, int(e.To), e.Msg})
		}
	}
	at := w.agents[p].at
	if at != protocol.InTry {
		w.users[p].wanted = ""
	}
	if at != protocol.InCrit {
		w.users[p].group = ""
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
			if w.recover > 0 {
				k, ev := w.copy(), of(protocol.Start)
				o.vague = true
				k.recover--
				ev.Arg = k.leases.reborn(p)
				k.gone[p], k.agents[p] = false, *o.a.New(protocol.ID(p), o.c.Config).(*agent)
				take(k, p, 0, ev)
			}
			continue
		}
		switch k := w; {
		case a.at == protocol.InRem && w.tries[p] != 0:
			if k.tries = slices.Clone(w.tries); k.tries[p] > 0 {
				k.tries[p]--
			}
			for _, set := range o.wants(p) {
				ev := of(protocol.Try)
				ev.Data = string(set)
				take(k, p, 0, ev)
			}
		case a.at == protocol.InCrit || a.at == protocol.InLost:
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
			k := w.copy()
			k.crash--
			k.gone[p], k.agents[p], k.timers[p], k.users[p] = true, agent{}, [3]bool{}, visitor{}
			k.mail = slices.DeleteFunc(k.mail, func(m parcel) bool {
				return m.to == p || m.from == p && !k.leases.takes(m.to, p)
			})
			k.leases.crash(p)
			list = append(list, arc{o.add(k), 0, nil})
		}
		list = append(list, o.lease(w, p)...)
	}
	for i, m := range w.mail {
		if !w.leases.takes(m.to, m.from) || o.c.FIFO && slices.ContainsFunc(w.mail[:i], func(b parcel) bool { return byChannel(b, m) == 0 }) {
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

// wants are the sets among which the user of agent p chooses.
func (o *oracle) wants(p int) []protocol.Groups {
	if !o.a.Grouped {
		return []protocol.Groups{""}
	}
	return o.c.Wants[p]
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

// section is that of a user, the remainder section where its agent is gone.
func (w world) section(p int) protocol.Section {
	if w.gone[p] {
		return protocol.InRem
	}
	return w.agents[p].at
}

// collide reports whether two users are inside that do not share one group.
func (w world) collide() bool {
	for p := range w.agents {
		for q := range p {
			if w.section(p) != protocol.InCrit || w.section(q) != protocol.InCrit {
				continue
			}
			g := w.users[p].group
			if g != w.users[q].group || g == "" || g[0] == '!' {
				return true
			}
		}
	}
	return false
}

// friendly reports whether agent p tries, and some group that can be shared is wanted by all
// who try, and is that of all who are inside.
func (w world) friendly(p int) bool {
	return w.section(p) == protocol.InTry && slices.ContainsFunc([]protocol.Group{"a", "b"}, func(g protocol.Group) bool {
		for q := range w.agents {
			wants := slices.Contains(strings.Split(string(w.users[q].wanted), ","), string(g))
			if w.section(q) == protocol.InTry && !wants || w.section(q) == protocol.InCrit && w.users[q].group != g {
				return false
			}
		}
		return true
	})
}

// visitors is the chart in which nobody who is inside need leave.
func (o *oracle) visitors() *chart {
	c := &chart{before: o.before}
	for i, arcs := range o.arcs {
		arcs = slices.Clone(arcs)
		for k, a := range arcs {
			for p := range o.c.N {
				if a.class == exitClass(p) && o.worlds[i].section(p) == protocol.InCrit {
					arcs[k].class = 0
				}
			}
		}
		c.arcs = append(c.arcs, arcs)
	}
	return c
}

// stuck reports whether somebody waits in a world that nothing which must happen changes.
func (o *oracle) stuck(i int) bool {
	waits := false
	for p := range o.c.N {
		waits = waits || o.worlds[i].waits(p)
	}
	return waits && !slices.ContainsFunc(o.arcs[i], func(a arc) bool { return a.class != 0 && o.bares[a.to] != o.bares[i] })
}

// states is how many worlds there are that differ in more than the slots of messages.
func (o *oracle) states() int64 {
	all := map[string]bool{}
	for _, b := range o.bares {
		all[b] = true
	}
	return int64(len(all))
}

// violated says which properties are.
func (o *oracle) violated() map[string]bool {
	found := map[string]bool{check.Exclusion: false, check.WellFormed: o.ill, check.Deadlock: false, check.Starvation: false}
	for i, w := range o.worlds {
		found[check.Exclusion] = found[check.Exclusion] || w.collide()
		found[check.Deadlock] = found[check.Deadlock] || o.stuck(i)
	}
	for p := range o.c.N {
		found[check.Starvation] = found[check.Starvation] || o.forever(func(w world) bool { return w.waits(p) })
	}
	found[check.MakesProgress] = o.forever(func(w world) bool {
		waits, inside := false, false
		for p := range o.c.N {
			waits = waits || w.waits(p)
			inside = inside || w.section(p) == protocol.InCrit || w.section(p) == protocol.InLost
		}
		return waits && !inside
	})
	if o.a.Grouped {
		stay := o.visitors()
		for p := range o.c.N {
			alone := stay.forever(func(i int) bool { return o.worlds[i].friendly(p) }, nil)
			found[check.ConcurrentEntry] = found[check.ConcurrentEntry] || alone
		}
	}
	return found
}

// Random algorithms, some with groups and some with leases, against the oracle.
func TestOracle(t *testing.T) {
	seeds := lane.Of[uint64](t, "algorithms", 200, 300, 5000)
	most := lane.Of(t, "worlds", 1000, 1000, mostWorlds)
	decided, loops, moved, large := map[string]int{}, 0, 0, 0
	for seed := range seeds {
		a, c := agents(seed)
		o := &oracle{a: a, c: c}
		if !o.explore(most) {
			large++
			continue
		}
		kind := ""
		if a.Grouped {
			kind += " with groups"
		}
		if a.Detector == protocol.LeaseDetector {
			kind += " with leases"
		}
		violated := o.violated()
		for _, property := range slices.Sorted(maps.Keys(violated)) {
			c.Properties = []string{property}
			v := run(t, a, c)
			want := check.Holds
			if violated[property] {
				want = check.Violated
			}
			if v.Verdict != want {
				t.Errorf("seed %d%s: %s is %s, want %s (%d worlds)\n%s\n%s\n%s", seed, kind, property, v.Verdict, want, len(o.worlds), v.Bounds,
					v.Reason, strings.Join(v.Trace, "\n"))
				continue
			}
			if n := o.states(); v.Verdict == check.Holds && (n > v.States || n < v.States && !o.vague) {
				t.Errorf("seed %d%s: %d states in which %s holds, want %d", seed, kind, v.States, property, n)
			}
			decided[fmt.Sprint(property, " ", v.Verdict, kind)]++
			if int(v.Loop) >= 0 && int(v.Loop) < len(v.Trace) {
				loops++
			}
			if a.MapState != nil {
				moved++
			}
			if v.Verdict == check.Violated {
				rewalk(t, a, c, v)
			}
		}
	}
	all := 0
	for _, what := range slices.Sorted(maps.Keys(decided)) {
		t.Logf("%-50s %5d", what, decided[what])
		if all += decided[what]; decided[what] < int(seeds)/200 {
			t.Errorf("%s: %d times: too few to show anything", what, decided[what])
		}
	}
	t.Logf("%d algorithms, %d of them too large: %d verdicts with %d loops, %d with counters that are moved", seeds, large, all, loops, moved)
	if len(decided) != 42 || loops < int(seeds)/10 {
		t.Errorf("%d kinds of verdicts and %d loops: too few to show anything", len(decided), loops)
	}
}
