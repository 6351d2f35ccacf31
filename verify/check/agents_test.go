package check_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
)

// An agent is a process of a random algorithm with infinite runs. Who receives a message
// sends at most one, and who tries or exits sends none if entries have no end: so messages
// stay few. Clocks are compared, never read.
type agent struct {
	rules    map[cue]deed
	looks    bool // what it wants matters
	id       protocol.ID
	n        protocol.ID
	starters protocol.ID // the agents below it send a message when they start

	at    protocol.Section
	mode  uint64
	wants uint64 // the place in agentSets of what its user wanted, from 1; 0: no groups, or in its remainder section
	clock uint64
}

// agentSets are the sets of groups that users want.
var agentSets = []protocol.Groups{"a", "b", "!w", "a,b", "!w,a", "!w,b"}

// A cue is what an agent's next deed depends on.
type cue struct {
	kind    protocol.Kind
	mode    uint64
	what    uint64 // the kind of the message, the timer, or of news of a member what they are
	compare int    // its clock with the agent's
	wants   uint64
}

// A deed is what an agent does.
type deed struct {
	mode       uint64
	send       uint64 // the kind, 0: nothing
	tells      bool   // the kind says whether the agent wants what stands at an even place, too
	back       bool   // to who the event is about, not to the next agent
	merge, add bool   // the clock becomes the larger one; and goes on
	enter, rem bool
	pick       int    // the group of those wanted, by its place; -1: one that is not wanted
	set, stop  uint32 // timers, 0: none
	eject      bool   // its user, if it is inside
	revoke     bool   // the lease of the next agent
}

const (
	agentModes = 3
	agentKinds = 3 // from 1
	told       = 4 // is added to a kind
	kindUnit   = 8 // a message is its clock times this, and its kind
)

// State implements protocol.Process.
func (p *agent) State(c *protocol.Codec) {
	protocol.Upto(c, &p.at, protocol.InIssue)
	c.Uints(&p.mode, &p.wants, &p.clock)
}

// about is what an agent sees of an event.
func (p *agent) about(ev protocol.Event[uint64]) cue {
	c := cue{kind: ev.Kind, mode: p.mode}
	switch ev.Kind {
	case protocol.Timeout:
		c.what = uint64(ev.Timer)
	case protocol.Receive:
		c.what, c.compare = ev.Msg%kindUnit, cmp.Compare(ev.Msg/kindUnit, p.clock)
	case protocol.Start, protocol.Restore: // a later life
		if ev.Arg > 1 {
			c.what = 1
		}
	case protocol.Suspect:
		c.what = ev.Arg
	}
	if (ev.Kind == protocol.Suspect || ev.Kind == protocol.Restore) && ev.From == p.next() {
		c.what += 2
	}
	if p.looks {
		c.wants = p.wants
	}
	return c
}

func (p *agent) next() protocol.ID { return (p.id + 1) % p.n }

func (p *agent) Step(ev protocol.Event[uint64], out *protocol.Out[uint64]) {
	switch ev.Kind {
	case protocol.Start:
		p.clock = 1
	case protocol.Try:
		p.at = protocol.InTry
		for k, set := range agentSets {
			if string(set) == ev.Data {
				p.wants = uint64(k + 1)
			}
		}
	case protocol.Exit:
		p.at = protocol.InExit
	case protocol.Cancel:
		p.at, p.wants = protocol.InRem, 0
		out.Rem()
		return
	}
	d := p.rules[p.about(ev)]
	p.mode = d.mode
	if d.merge && ev.Kind == protocol.Receive {
		p.clock = max(p.clock, ev.Msg/kindUnit)
	}
	if d.add {
		p.clock++
	}
	p.send(d, ev, out)
	if d.set > 0 {
		out.SetTimer(d.set, 0, 0)
	}
	if d.stop > 0 {
		out.StopTimer(d.stop)
	}
	if d.revoke {
		out.Revoke(p.next())
	}
	switch {
	case d.enter && p.at == protocol.InTry:
		p.at = protocol.InCrit
		out.CritIn(p.granted(d), 0)
	case d.eject && p.at == protocol.InCrit:
		p.at = protocol.InLost
		out.Ejected()
	case d.rem && p.at == protocol.InExit:
		p.at, p.wants = protocol.InRem, 0
		out.Rem()
	}
}

func (p *agent) send(d deed, ev protocol.Event[uint64], out *protocol.Out[uint64]) {
	if d.send == 0 || ev.Kind == protocol.Start && p.id >= p.starters {
		return
	}
	to, kind := p.next(), d.send
	if d.back && (ev.Kind == protocol.Receive || ev.Kind == protocol.Suspect || ev.Kind == protocol.Restore) {
		to = ev.From
	}
	if d.tells && p.wants%2 == 1 {
		kind += told
	}
	out.Send(to, p.clock*kindUnit+kind)
}

// granted is the group into which a deed lets the user.
func (p *agent) granted(d deed) protocol.Group {
	if p.wants == 0 {
		return ""
	}
	set, k := agentSets[p.wants-1], d.pick
	if k < 0 {
		return "c"
	}
	for g := range set.All() {
		if k%set.Len() == 0 {
			return g
		}
		k--
	}
	panic("a set has as many groups as Len says")
}

// agents draws an algorithm and what of it is explored.
func agents(seed uint64) (protocol.Algorithm[uint64], check.Config) {
	r := rand.New(rand.NewPCG(seed, 11))
	odds := func(percent int) bool { return r.IntN(100) < percent }
	c := config(2 + r.IntN(2))
	info := protocol.Info{Name: "agents", Cancels: true, Tolerates: protocol.Crash}
	info.Grouped, info.Several = odds(60), true
	if odds(40) {
		info.Detector, info.Tolerates = protocol.LeaseDetector, protocol.Crash|protocol.Recovery
	}
	leases := info.Detector == protocol.LeaseDetector
	endless, clocks, timers, lively := odds(60), odds(50), odds(40), odds(70)
	starters := protocol.ID(1 + r.IntN(2))
	if info.Grouped || leases { // these have more states each
		c.N, starters = 2+max(0, r.IntN(5)-3), 1
		clocks, timers, lively = clocks && odds(50), timers && odds(40), lively && odds(30)
	}
	if c.MaxMemory = 24 << 20; endless {
		c.Entries = []int{check.Unlimited}
	}
	c.FIFO = odds(40)
	for _, budget := range []*int{&c.Crash, &c.Cancel} {
		if odds(20) || leases && budget == &c.Crash && odds(40) {
			*budget = 1
		}
	}
	if leases {
		c.Suspect, c.Recover = r.IntN(2), r.IntN(1+c.Crash)
		clocks = clocks && c.Recover == 0 // a later life would be behind
	}
	if info.Grouped {
		c.Wants = agentWants(r, c.N)
	}
	rules := map[cue]deed{}
	enter, looks, unwanted, replies := 5+r.IntN(95), info.Grouped && odds(70), r.IntN(2)*r.IntN(20), 80
	if info.Grouped || leases {
		replies = 40 + r.IntN(50)
	}
	draw := func(k cue) {
		d := deed{mode: k.mode, merge: clocks && odds(90), add: clocks && odds(15), enter: odds(enter), rem: odds(95), tells: odds(70)}
		if odds(50) {
			d.mode = uint64(r.IntN(agentModes))
		}
		user := k.kind == protocol.Try || k.kind == protocol.Exit
		news := k.kind == protocol.Suspect || k.kind == protocol.Restore
		if k.kind == protocol.Receive && (lively || odds(replies)) || k.kind == protocol.Start || (user && !endless || news) && odds(50) {
			d.send, d.back = 1+uint64(r.IntN(agentKinds)), odds(50)
		}
		if timers && k.kind != protocol.Start {
			d.set, d.stop = uint32(max(0, r.IntN(6)-3)), uint32(max(0, r.IntN(8)-5))
		}
		if d.pick = r.IntN(2); odds(unwanted) {
			d.pick = -1
		}
		d.eject, d.revoke = leases && news && odds(50), leases && odds(5)
		rules[k] = d
	}
	for mode := range uint64(agentModes) {
		for wants := range uint64(len(agentSets) + 1) {
			if wants > 0 && !looks {
				break
			}
			for _, kind := range []protocol.Kind{protocol.Start, protocol.Try, protocol.Exit, protocol.Suspect, protocol.Restore} {
				for what := range uint64(4) {
					draw(cue{kind, mode, what, 0, wants})
				}
			}
			for what := range uint64(agentKinds + 1) {
				draw(cue{protocol.Timeout, mode, what, 0, wants})
			}
			for what := range uint64(kindUnit) {
				for compare := -1; compare <= 1; compare++ {
					draw(cue{protocol.Receive, mode, what, compare, wants})
				}
			}
		}
	}
	a := protocol.Algorithm[uint64]{
		Info: info,
		New: func(id protocol.ID, c protocol.Config) protocol.Process[uint64] {
			return &agent{rules: rules, looks: looks, id: id, n: protocol.ID(c.N), starters: starters}
		},
		Fields: func(m uint64, c *protocol.Codec) uint64 {
			c.Uint(&m)
			return m
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

// agentWants draws what each user wants: all the same, or each something else.
func agentWants(r *rand.Rand, users int) (all [][]protocol.Groups) {
	same := r.IntN(3) == 0
	for range users {
		if same && len(all) > 0 {
			all = append(all, all[0])
			continue
		}
		list := []protocol.Groups{agentSets[r.IntN(len(agentSets))]}
		if other := agentSets[r.IntN(len(agentSets))]; other != list[0] && r.IntN(2) == 0 {
			list = append(list, other)
		}
		all = append(all, list)
	}
	return all
}
