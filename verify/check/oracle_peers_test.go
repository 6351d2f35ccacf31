package check_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/poundlock/poundlock/algo/algotest"
	"github.com/poundlock/poundlock/internal/lane"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/history"
)

// A voter is a process of a random election. It knows a mode, and what it does depends on
// that, on the event and on who the event is about.
type voter struct {
	rules map[voterCue]vote
	id, n protocol.ID
	mode  uint64
}

// A voterCue is what a voter's next deed depends on.
type voterCue struct {
	kind protocol.Kind
	mode uint64
	what uint64 // the message, the timer, of a Start whether it is a later life, or whether the process named is higher
}

// A vote is what a voter does.
type vote struct {
	mode      uint64
	send      uint64 // 0: nothing
	back      bool   // to who sent the message, not to the next voter
	set, stop uint32 // timer 1, or none
	names     int    // the highest (1), itself (2), the one below the highest (3), nobody (0)
	epoch     uint64
}

const voterModes, voterKinds = 3, 3

// State implements protocol.Process.
func (p *voter) State(c *protocol.Codec) { c.Uint(&p.mode) }

func (p *voter) Step(ev protocol.Event[uint8], out *protocol.Out[uint8]) {
	c := voterCue{kind: ev.Kind, mode: p.mode}
	switch ev.Kind {
	case protocol.Start:
		c.what = min(ev.Arg-1, 1)
	case protocol.Receive:
		c.what = uint64(ev.Msg)
	case protocol.Suspect, protocol.Restore:
		if ev.From > p.id {
			c.what = 1
		}
	}
	v := p.rules[c]
	p.mode = v.mode
	if v.send > 0 {
		to := (p.id + 1) % p.n
		if v.back && ev.Kind == protocol.Receive {
			to = ev.From
		}
		out.Send(to, uint8(v.send))
	}
	if v.set > 0 {
		out.SetTimer(v.set, 0, 0)
	}
	if v.stop > 0 {
		out.StopTimer(v.stop)
	}
	switch v.names {
	case 1:
		out.Leader(p.n-1, v.epoch)
	case 2:
		out.Leader(p.id, v.epoch)
	case 3:
		out.Leader(max(p.n, 2)-2, v.epoch)
	}
}

// voters draws an election and what of it is explored.
func voters(seed uint64) (protocol.Algorithm[uint8], check.Config) {
	r := rand.New(rand.NewPCG(seed, 13))
	odds := func(percent int) bool { return r.IntN(100) < percent }
	c := config(2 + r.IntN(2))
	c.MaxMemory, c.FIFO = 64<<20, odds(50)
	c.Crash, c.Recover, c.Suspect = r.IntN(3), 0, 0
	if c.Crash > 0 && odds(50) {
		c.Recover = 1
	}
	i := protocol.Info{Users: protocol.Nobody, Tolerates: protocol.Crash | protocol.Recovery, Detector: protocol.PerfectDetector}
	if odds(60) {
		i.Detector = protocol.UnreliableDetector
		c.Suspect = r.IntN(2)
	}
	if c.Timers = check.AnyMoment; odds(60) {
		c.Timers = check.Synchronous
	}
	rules := map[voterCue]vote{}
	timers, epochs, right, chatty := odds(70), odds(70), odds(60), 5+r.IntN(40)
	draw := func(k voterCue) {
		v := vote{mode: k.mode}
		if odds(60) {
			v.mode = uint64(r.IntN(voterModes))
		}
		switch {
		case k.kind == protocol.Start && right:
			v.names = 1
		case odds(30):
			v.names = 1 + r.IntN(3)
		}
		if v.epoch = uint64(v.names); epochs { // a leader has an epoch of its own, or any
			v.epoch = uint64(r.IntN(3))
		}
		if right && k.kind == protocol.Suspect && k.what == 1 {
			v.names, v.epoch = 3, 3
		}
		if odds(chatty) {
			v.send, v.back = 1+uint64(r.IntN(voterKinds)), odds(50)
		}
		if timers && odds(40) {
			v.set, v.stop = uint32(r.IntN(2)), uint32(r.IntN(2))
		}
		rules[k] = v
	}
	for mode := range uint64(voterModes) {
		for what := range uint64(2) {
			for _, kind := range []protocol.Kind{protocol.Start, protocol.Suspect, protocol.Restore} {
				draw(voterCue{kind, mode, what})
			}
		}
		draw(voterCue{protocol.Timeout, mode, 0})
		for what := range uint64(voterKinds + 1) {
			draw(voterCue{protocol.Receive, mode, what})
		}
	}
	a := algorithm(i, nil)
	a.New = func(id protocol.ID, c protocol.Config) protocol.Process[uint8] {
		return &voter{rules: rules, id: id, n: protocol.ID(c.N)}
	}
	return a, c
}

// A booth is one voter in a global state.
type booth struct {
	voter
	gone   bool
	life   uint64
	timer  bool
	doubts [3]bool
	says   history.Leading
}

// A poll is one global state.
type poll struct {
	booths  []booth
	mail    []parcel // by slot; with FIFO channels in the order in which they were sent
	named   []history.Term
	budgets [3]int // crash, recover, suspect
	broken  bool   // epochs are
}

func (w *poll) key() string {
	var b []byte
	for _, p := range w.booths {
		b = append(b, byte(p.mode), byte(p.life), byte(p.says.Leader), byte(p.says.Epoch))
		for _, set := range append(p.doubts[:], p.gone, p.timer, p.says.Named) {
			b = protocol.AppendBool(b, set)
		}
	}
	for _, m := range w.mail {
		b = append(b, byte(m.slot), byte(m.from), byte(m.to), byte(m.msg))
	}
	b = append(b, 255)
	for _, t := range w.named {
		b = append(b, byte(t.Epoch), byte(t.Leader))
	}
	return string(protocol.AppendBool(append(b, byte(w.budgets[0]), byte(w.budgets[1]), byte(w.budgets[2])), w.broken))
}

// A census decides elections of voters in another way than the checker: with all that was
// ever named in one list, messages that have slots of their own, and, where time-outs are
// bounded, a guess of the timers that are never possible again.
type census struct {
	a      protocol.Algorithm[uint8]
	c      check.Config
	number map[string]int
	polls  []poll
	chart
}

func (o *census) add(w poll) int {
	slices.SortStableFunc(w.mail, func(a, b parcel) int {
		if o.c.FIFO {
			return byChannel(a, b)
		}
		return a.slot - b.slot
	})
	n, known := o.number[w.key()]
	if !known {
		n = len(o.polls)
		o.number[w.key()] = n
		o.polls = append(o.polls, w)
	}
	return n
}

// copy copies a poll, so that it can be changed.
func (w poll) copy() poll {
	w.booths, w.mail, w.named = slices.Clone(w.booths), slices.Clone(w.mail), slices.Clone(w.named)
	return w
}

// step gives an event to voter p of w, which it changes, and returns the classes of timers
// that it set.
func (o *census) step(w *poll, p int, ev protocol.Event[uint8]) (set []int) {
	var out protocol.Out[uint8]
	b := &w.booths[p]
	b.Step(ev, &out)
	for _, e := range out.Effects {
		switch e.Do {
		case protocol.SetTimer:
			b.timer = true
			set = append(set, timerClass(p, 1))
		case protocol.StopTimer:
			b.timer = false
		case protocol.Leader:
			w.broken = w.broken || b.says.Named && e.Arg < b.says.Epoch
			b.says = history.Leading{Named: true, Term: history.Term{Epoch: e.Arg, Leader: e.To}}
			w.broken = w.broken || slices.ContainsFunc(w.named, func(t history.Term) bool { return t.Epoch == e.Arg && t.Leader != e.To })
			if !slices.Contains(w.named, b.says.Term) {
				w.named = append(w.named, b.says.Term)
				slices.SortFunc(w.named, func(a, b history.Term) int { return int(a.Epoch*8+uint64(a.Leader)) - int(b.Epoch*8+uint64(b.Leader)) })
			}
		case protocol.Send:
			if w.booths[e.To].gone {
				continue
			}
			slot := 0
			for slices.ContainsFunc(w.mail, func(m parcel) bool { return m.slot == slot }) {
				slot++
			}
			w.mail = append(w.mail, parcel{slot, p, int(e.To), uint64(e.Msg)})
		}
	}
	return set
}

// The classes of detectors, after those of messages.
func newsClass(kind protocol.Kind, p, q int) int { return 1000 + 100*int(kind) + 10*p + q }

// explore builds the graph, and returns false where there are too many polls.
func (o *census) explore() bool {
	w := poll{budgets: [3]int{o.c.Crash, o.c.Recover, o.c.Suspect}}
	for p := range o.c.N {
		w.booths = append(w.booths, booth{voter: *o.a.New(protocol.ID(p), o.c.Config).(*voter), life: 1})
	}
	for p := range o.c.N {
		o.step(&w, p, protocol.Event[uint8]{Input: protocol.Input{Kind: protocol.Start, Arg: 1}})
	}
	o.number = map[string]int{}
	o.add(w)
	for i := 0; i < len(o.polls); i++ {
		if len(o.polls) > mostWorlds {
			return false
		}
		o.arcs = append(o.arcs, o.leave(o.polls[i]))
	}
	o.turn()
	return true
}

// ticks reports whether the timer of p may fire in w.
func (o *census) ticks(w poll, p int) bool {
	b := w.booths[p]
	if b.gone || !b.timer {
		return false
	}
	if o.c.Timers != check.Synchronous {
		return true
	}
	for _, m := range w.mail {
		if m.from == p || m.to == p {
			return false
		}
	}
	for q, other := range w.booths {
		if q != p && (b.doubts[q] != other.gone || !other.gone && other.doubts[p]) {
			return false
		}
	}
	return true
}

// leave lists what may happen in w.
func (o *census) leave(w poll) (list []arc) {
	tell := func(k poll, p, class int, in protocol.Input) {
		set := o.step(&k, p, protocol.Event[uint8]{Input: in})
		list = append(list, arc{o.add(k), class, append(set, class)})
	}
	for p, b := range w.booths {
		switch {
		case b.gone && w.budgets[1] > 0:
			k := w.copy()
			k.budgets[1]--
			k.booths[p] = booth{voter: *o.a.New(protocol.ID(p), o.c.Config).(*voter), life: b.life + 1}
			tell(k, p, 0, protocol.Input{Kind: protocol.Start, Arg: b.life + 1})
		case !b.gone && w.budgets[0] > 0:
			k := w.copy()
			k.budgets[0]--
			k.booths[p] = booth{gone: true, life: b.life}
			k.mail = slices.DeleteFunc(k.mail, func(m parcel) bool { return m.to == p })
			list = append(list, arc{o.add(k), 0, nil})
		}
		if b.gone {
			continue
		}
		if o.ticks(w, p) {
			k := w.copy()
			k.booths[p].timer = false
			tell(k, p, timerClass(p, 1), protocol.Input{Kind: protocol.Timeout, Timer: 1})
		}
		for q, other := range w.booths {
			if q == p {
				continue
			}
			mistake := !other.gone && !b.doubts[q]
			if mistake && w.budgets[2] == 0 {
				continue
			}
			k, class := w.copy(), newsClass(protocol.Suspect, p, q)
			if mistake {
				k.budgets[2]--
				class = 0
			}
			k.booths[p].doubts[q] = true
			tell(k, p, class, protocol.Input{Kind: protocol.Suspect, From: protocol.ID(q)})
			if !other.gone && b.doubts[q] {
				k := w.copy()
				k.booths[p].doubts[q] = false
				tell(k, p, newsClass(protocol.Restore, p, q), protocol.Input{Kind: protocol.Restore, From: protocol.ID(q), Arg: other.life})
			}
		}
	}
	for i, m := range w.mail {
		if o.c.FIFO && slices.ContainsFunc(w.mail[:i], func(b parcel) bool { return byChannel(b, m) == 0 }) {
			continue
		}
		k := w.copy()
		k.mail = slices.Delete(k.mail, i, i+1)
		set := o.step(&k, m.to, protocol.Event[uint8]{Input: protocol.Input{Kind: protocol.Receive, From: protocol.ID(m.from)}, Msg: uint8(m.msg)})
		list = append(list, arc{o.add(k), slotClass(m.slot), append(set, slotClass(m.slot))})
	}
	return list
}

// quiet reports whether nothing that must happen changes a poll.
func (o *census) quiet(i int) bool {
	return !slices.ContainsFunc(o.arcs[i], func(a arc) bool { return a.class != 0 && a.to != i })
}

// violated says which properties are.
func (o *census) violated() map[string]bool {
	found := map[string]bool{check.Epochs: false, check.Agreement: false, check.OneLeader: false, check.Termination: false}
	for i, w := range o.polls {
		highest, selves := 0, 0
		for p, b := range w.booths {
			if !b.gone {
				highest = p
			}
			if !b.gone && b.says.Named && int(b.says.Leader) == p {
				selves++
			}
		}
		agree := true
		for _, b := range w.booths {
			agree = agree && (b.gone || b.says.Named && int(b.says.Leader) == highest)
		}
		found[check.Epochs] = found[check.Epochs] || w.broken
		found[check.OneLeader] = found[check.OneLeader] || selves > 1
		found[check.Agreement] = found[check.Agreement] || o.quiet(i) && !agree
	}
	// A set of timers is never possible again; where time-outs are bounded, each other one
	// is settled again and again.
	for never := range 1 << o.c.N {
		if o.c.Timers != check.Synchronous && never > 0 {
			break
		}
		timer := func(class int) (p int, is bool) {
			for p := range o.c.N {
				if class == timerClass(p, 1) {
					return p, true
				}
			}
			return 0, false
		}
		in := func(i int) bool {
			for p := range o.c.N {
				if never>>p&1 == 1 && o.ticks(o.polls[i], p) {
					return false
				}
			}
			return !o.quiet(i)
		}
		again := func(class int) bool {
			p, is := timer(class)
			return is && o.c.Timers == check.Synchronous && never>>p&1 == 0
		}
		found[check.Termination] = found[check.Termination] || o.forever(in, again)
	}
	return found
}

// Random elections with crashes, recoveries, wrong suspicions and time-outs, against the
// census.
func TestCensus(t *testing.T) {
	seeds := lane.Of[uint64](t, "elections", 60, 150, 3000)
	decided, bounded := map[string]int{}, 0
	for seed := range seeds {
		a, c := voters(seed)
		o := &census{a: a, c: c}
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
			if v.Property != property && v.Verdict != check.Holds {
				t.Errorf("seed %d: asked for %s, and %s is %s\n%s", seed, property, v.Property, v.Verdict, v.Reason)
			}
			if v.Verdict != want {
				t.Errorf("seed %d: %s is %s, want %s (%d polls)\n%s\n%v\n%s", seed, property, v.Verdict, want, len(o.polls), v.Bounds, v.Trace, v.Reason)
				continue
			}
			decided[fmt.Sprint(property, " ", v.Verdict)]++
			if violated && property == check.Termination {
				if r := algotest.Repeat(t, a, c, v); r.Property != property {
					t.Errorf("seed %d: taken again: %+v", seed, r)
				}
			}
			if c.Timers == check.Synchronous {
				bounded++
			}
		}
	}
	t.Logf("%d elections: %v; %d with bounded time-outs", seeds, decided, bounded)
	for _, property := range []string{check.Epochs, check.Agreement, check.OneLeader, check.Termination} {
		for _, verdict := range []check.Result{check.Holds, check.Violated} {
			if n := decided[fmt.Sprint(property, " ", verdict)]; n < int(seeds)/30 {
				t.Errorf("%s %s %d times: too few to show anything", property, verdict, n)
			}
		}
	}
}
