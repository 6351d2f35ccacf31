package check_test

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/poundlock/poundlock/internal/lane"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/scenario"
)

// A machine is a random algorithm: what a process does is drawn for each of its modes
// and each event. Its registers are its section, its mode, what it noted (a set), and
// how many messages it may still send, so that all runs end.
//
// With clients it is symmetric: servers do not know their ids, and a client notes which
// of them answered. Without, it is for orders: messages of some kinds are only noted,
// and what is noted matters in some modes.
//
// A machine for orders may have groups: above what it may still send stands what its user
// wants. It may have clocks, too, above its mode and the kind of a message that is not only
// noted: they are compared and taken over.
type machine struct {
	seed    uint64
	members int
	clients int
	rows    map[event]row
	wrong   uint64 // the mode that the invariant excludes, where nothing is noted
	known   *claims

	sets   [][]protocol.Groups // what each user wants; nil: no groups
	looks  bool                // what its user wants matters
	clocks bool
	lie    lie
}

// A lie makes some claims of a machine false.
type lie int

const (
	honest lie = iota
	rash       // all that arrives is confluent
	rigid      // clocks are compared with a constant
)

const (
	modes    = 3
	modeUnit = 4 // a clock times this is added to a mode
	kinds    = 4
	onlyNote = 2 // kinds below it are only noted; others have a clock times this added to them
	allNoted = 4 // the values of what a process of an order's machine noted
)

// An event of a machine, as far as what happens depends on it.
type event struct {
	server bool
	mode   uint64
	noted  uint64 // how many, or 0 where this mode does not look
	kind   protocol.Kind
	msg    uint8

	wants   uint64 // of the user, or 0 where that does not matter
	compare int    // the clock of the message with that of the process
}

// A row says what happens.
type row struct {
	mode   uint64
	note   uint64 // what to note: a set, or in a client whether to note who sent it
	forget bool
	send   []uint8 // kinds
	to     []uint8 // to whom: 0 all others of the other side, 1 who sent this, 2 the next process
	enter  bool    // let the user in, if it tries
	twice  bool    // even if it does not: not well-formed
	panic  bool

	pick int  // the group to let the user into
	add  bool // to the clock
}

func newMachine(seed uint64, clients int) *machine {
	m := &machine{seed: seed, members: 3, clients: clients}
	m.draw(rand.New(rand.NewPCG(seed, uint64(clients))))
	return m
}

// newGroupMachine draws a machine for orders with groups, and perhaps with clocks.
func newGroupMachine(seed uint64) *machine {
	r := rand.New(rand.NewPCG(seed, 23))
	m := &machine{seed: seed, members: 3, sets: agentWants(r, 3), looks: r.IntN(3) > 0, clocks: r.IntN(2) == 0}
	m.draw(r)
	return m
}

// draw draws the rows of m.
func (m *machine) draw(r *rand.Rand) {
	m.rows = map[event]row{}
	odds := func(percent int) bool { return r.IntN(100) < percent }
	m.wrong = uint64(r.IntN(modes))
	looks := map[uint64]bool{}
	for mode := range uint64(modes) {
		looks[mode] = odds(40)
	}
	enter, faulty := 30, 1
	if m.sets != nil {
		enter, faulty = 5+r.IntN(25), max(0, r.IntN(4)-2)
	}
	fill := func(e event) {
		w := row{mode: e.mode}
		switch {
		case m.clients == 0 && e.kind == protocol.Receive && e.msg < onlyNote && odds(90):
			w.note = 1 << e.msg
		default:
			if odds(50) {
				w.mode = uint64(r.IntN(modes))
			}
			w.note, w.forget = uint64(r.IntN(allNoted)), odds(10)
			for range r.IntN(3) {
				w.send = append(w.send, uint8(r.IntN(kinds)))
				w.to = append(w.to, uint8(r.IntN(3)))
			}
			w.enter, w.twice, w.panic = odds(enter), odds(faulty), odds(faulty)
		}
		if m.sets != nil {
			w.pick, w.add = r.IntN(2), m.clocks && odds(40)
			w.enter = w.enter || e.kind == protocol.Receive && odds(enter)
		}
		m.rows[e] = w
	}
	for _, server := range []bool{false, true} {
		for mode := range uint64(modes) {
			for noted := range uint64(allNoted) {
				for _, kind := range []protocol.Kind{protocol.Try, protocol.Exit, protocol.Cancel, protocol.Receive} {
					for msg := range uint8(kinds) {
						e := event{server: server, mode: mode, noted: noted, kind: kind, msg: msg}
						if (noted > 0 && !looks[mode]) || kind != protocol.Receive && msg > 0 {
							continue
						}
						if m.sets == nil {
							fill(e)
							continue
						}
						for _, e.wants = range m.wants() {
							for e.compare = -1; e.compare <= 1; e.compare++ {
								fill(e)
							}
						}
					}
				}
			}
		}
	}
}

// wants are the numbers of the sets that users want, as they stand in registers, and 0.
func (m *machine) wants() []uint64 {
	list := []uint64{0}
	for _, sets := range m.sets {
		for _, set := range sets {
			list = append(list, uint64(1+slices.Index(agentSets, set)))
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func (m *machine) row(p *toy, ev protocol.Event[uint8]) row {
	noted := p.r[2]
	if m.clients > 0 {
		noted = uint64(min(ones(p.r[2]), allNoted-1))
	}
	e := event{server: m.clients > 0 && int(p.id) < m.members, mode: p.r[1] % modeUnit, noted: noted, kind: ev.Kind}
	if m.looks {
		e.wants = p.r[3] / wanting
	}
	if ev.Kind == protocol.Receive {
		e.msg = kindOf(ev.Msg)
		if m.clocks && e.msg >= onlyNote {
			e.compare = cmp.Compare(clockOf(ev.Msg), p.r[1]/modeUnit)
		}
	}
	if m.clocks && m.lie == rigid {
		e.compare = cmp.Compare(someClock, p.r[1]/modeUnit)
	}
	w, drawn := m.rows[e]
	if !drawn {
		e.noted = 0
		w = m.rows[e]
	}
	return w
}

func ones(set uint64) (n int) {
	for ; set != 0; set &= set - 1 {
		n++
	}
	return n
}

// stamped is a message of a kind with a clock, if it is of a kind that has one; clockOf is
// 0 where it has not.
func stamped(kind uint8, clock uint64) uint8 {
	if kind < onlyNote {
		return kind
	}
	return kind + onlyNote*uint8(clock)
}

func clockOf(msg uint8) uint64 { return max(uint64(msg/onlyNote), 1) - 1 }

func kindOf(msg uint8) uint8 {
	if msg < onlyNote {
		return msg
	}
	return onlyNote + msg%onlyNote
}

// step is the program of a toy.
func (m *machine) step(p *toy, ev protocol.Event[uint8], out *protocol.Out[uint8]) {
	switch ev.Kind {
	case protocol.Start:
		p.r[3] = 2
		if m.clocks {
			p.r[1] = modeUnit * firstClock
		}
		return
	case protocol.Suspect, protocol.Restore:
		return
	case protocol.Try:
		p.r[0] = uint64(protocol.InTry)
		p.r[3] += wanting * uint64(1+slices.Index(agentSets, protocol.Groups(ev.Data)))
	case protocol.Exit, protocol.Cancel:
		p.r[0], p.r[3] = uint64(protocol.InRem), p.r[3]%wanting
		out.Rem()
	}
	w := m.row(p, ev)
	if w.panic {
		panic("a row that panics")
	}
	clock := p.r[1] / modeUnit
	if ev.Kind == protocol.Receive && m.clocks {
		clock = max(clock, clockOf(ev.Msg))
	}
	if w.add {
		clock++
	}
	p.r[1] = w.mode + modeUnit*clock
	switch client := int(p.id) >= m.members; {
	case w.forget:
		p.r[2] = 0
	case client && ev.Kind == protocol.Receive && w.note&1 != 0:
		p.r[2] |= 1 << ev.From
	case !client:
		p.r[2] = (p.r[2] | w.note) % allNoted
	}
	m.sends(p, ev, w, out)
	if w.enter && p.r[0] == uint64(protocol.InTry) || w.twice && ev.Kind == protocol.Receive {
		p.r[0] = uint64(protocol.InCrit)
		out.CritIn((&agent{wants: p.r[3] / wanting}).granted(deed{pick: w.pick}), 0)
	}
}

func (m *machine) sends(p *toy, ev protocol.Event[uint8], w row, out *protocol.Out[uint8]) {
	for k, msg := range w.send {
		if p.r[3]%wanting == 0 {
			return
		}
		msg = stamped(msg, p.r[1]/modeUnit)
		p.r[3]--
		switch server := int(p.id) < m.members; {
		case w.to[k] == 1 && ev.Kind == protocol.Receive:
			out.Send(ev.From, msg)
		case m.clients > 0 && server:
			for c := range m.clients {
				out.Send(protocol.ID(m.members+c), msg)
			}
		case m.clients == 0 && w.to[k] == 2:
			out.Send((p.id+1)%protocol.ID(m.members), msg)
		default:
			out.Broadcast(msg)
		}
	}
}

// algorithm is the machine with all the claims that are true of it.
func (m *machine) algorithm() protocol.Algorithm[uint8] {
	info := protocol.Info{Cancels: true, Tolerates: protocol.Amnesia | protocol.Crash, Grouped: m.sets != nil, Several: true}
	if m.clients > 0 {
		info.Users = protocol.Clients
	}
	a := algorithm(info, m.step)
	a.Invariants = []protocol.Invariant{{Name: "toy/mode", Err: func(v *protocol.View) error {
		for _, p := range protocol.Procs[*toy](v) {
			if m.excluded(p) {
				return errors.New("a process is in the wrong mode")
			}
		}
		return nil
	}}}
	if m.clients > 0 {
		a.Interchangeable = func(protocol.Config) bool { return true }
		a.Permute = func(p protocol.Process[uint8], f func(protocol.ID) protocol.ID) {
			t := p.(*toy)
			if int(t.id) < m.members {
				return
			}
			set := uint64(0)
			for j := range m.members {
				set |= t.r[2] >> j & 1 << f(protocol.ID(j))
			}
			t.r[2] = set
		}
		return a
	}
	if m.clocks {
		clock := protocol.Counter{Least: 1}
		a.MapState = func(p protocol.Process[uint8], f func(protocol.Counter, uint64) uint64) {
			t := p.(*toy)
			t.r[1] = t.r[1]%modeUnit + modeUnit*f(clock, t.r[1]/modeUnit)
		}
		a.MapMsg = func(_ protocol.Channel, msg *uint8, f func(protocol.Counter, uint64) uint64) {
			if *msg >= onlyNote {
				*msg = stamped(kindOf(*msg), f(clock, clockOf(*msg)))
			}
		}
	}
	if m.known == nil {
		m.known = m.claims()
	}
	claims := m.known
	a.Confluent = func(p protocol.Process[uint8], from protocol.ID, msg uint8, again bool) bool {
		t := p.(*toy)
		return m.lie == rash || claims.confluent[arrival{*t, from, msg, again}.key()]
	}
	a.Invariants[0].Stable = claims.stable
	return a
}

func (m *machine) excluded(p *toy) bool {
	return p.r[1]%modeUnit == m.wrong && p.r[2] == 0 && p.r[3]%wanting == 0
}

// TestRandomMachines compares reduced searches of random machines with full ones, for
// each property on its own.
func TestRandomMachines(t *testing.T) {
	machines := lane.Of(t, "machines", 5, 15, 400)
	for _, kind := range []struct {
		name    string
		clients int
	}{{check.ReduceOrder, 0}, {check.ReduceSymmetry, 2}} {
		t.Run(kind.name, func(t *testing.T) {
			var reduced, violated int
			var states, of int64
			for seed := range uint64(machines) {
				m := newMachine(seed, kind.clients)
				c := m.config(seed)
				for _, full := range m.verdicts(t, c, nil) {
					k := c
					k.Properties = []string{full.Property}
					if full.Verdict == check.Undecided {
						continue
					}
					k.Reduce = []string{kind.name}
					v, err := check.Run(m.algorithm(), k)
					if err != nil || v.Verdict != full.Verdict {
						t.Fatalf("seed %d: %s is %s with %s (%v), without %s: %s", seed, full.Property, v.Verdict, kind.name, err,
							full.Verdict, full.Bounds)
					}
					if v.States < full.States && full.Verdict == check.Holds {
						reduced++
						states, of = states+v.States, of+full.States
					}
					if v.Verdict == check.Violated {
						violated++
						m.replays(t, k, v)
					}
				}
			}
			t.Logf("%d machines: %d searches reduced, from %d to %d states; %d violations", machines, reduced, of, states, violated)
			if reduced < machines/4 || violated < machines/2 {
				t.Errorf("%d searches reduced and %d violations: too few to show anything", reduced, violated)
			}
		})
	}
}

func (m *machine) config(seed uint64) check.Config {
	c := config(m.members)
	c.Clients, c.MaxMemory, c.Workers, c.Wants = m.clients, 6<<20, 1, m.sets
	r := rand.New(rand.NewPCG(seed, 7))
	c.FIFO = r.IntN(2) == 0
	for _, budget := range []*int{&c.Amnesia, &c.Crash, &c.Cancel} {
		if r.IntN(4) == 0 {
			*budget = 1
		}
	}
	if m.sets != nil {
		c.MaxMemory = 3 << 20
	}
	if m.clocks {
		c.Amnesia = 0 // a later life would be behind
	}
	return c
}

// verdicts checks each property on its own.
func (m *machine) verdicts(t *testing.T, c check.Config, reduce []string) (all []check.Verdict) {
	t.Helper()
	for _, property := range []string{check.Exclusion, check.WellFormed, check.Deadlock, check.Model, "toy/mode"} {
		c.Properties, c.Reduce = []string{property}, reduce
		v := run(t, m.algorithm(), c)
		v.Property = property
		all = append(all, v)
	}
	return all
}

func (m *machine) replays(t *testing.T, c check.Config, v check.Verdict) {
	t.Helper()
	names := scenario.Names{Members: m.members, Clients: m.clients > 0}
	steps, err := names.Parse(strings.NewReader(strings.Join(v.Trace, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	c.Prefix, c.Reduce = steps, nil
	again, err := check.Run(m.algorithm(), c)
	if err != nil || again.Verdict != check.Violated || len(again.Trace) != len(v.Trace) {
		t.Fatalf("seed %d: replayed, %s after %d steps (%v), want violated after %d\n%s", m.seed, again.Verdict,
			len(again.Trace), err, len(v.Trace), strings.Join(v.Trace, "\n"))
	}
}
