package check_test

import (
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/poundlock/poundlock/check"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/scenario"
)

// A machine is a random algorithm: what a process does is drawn for each of its modes
// and each event. Its registers are its section, its mode, what it noted (a set), and
// how many messages it may still send, so that all runs end.
//
// With clients it is symmetric: servers do not know their ids, and a client notes which
// of them answered. Without, it is for orders: messages of some kinds are only noted,
// and what is noted matters in some modes.
type machine struct {
	seed    uint64
	members int
	clients int
	rows    map[event]row
	wrong   uint64 // the mode that the invariant excludes, where nothing is noted
	known   *claims
}

const (
	modes    = 3
	kinds    = 4
	allNoted = 4 // the values of what a process of an order's machine noted
)

// An event of a machine, as far as what happens depends on it.
type event struct {
	server bool
	mode   uint64
	noted  uint64 // how many, or 0 where this mode does not look
	kind   protocol.Kind
	msg    uint8
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
}

func newMachine(seed uint64, clients int) *machine {
	m := &machine{seed: seed, members: 3, clients: clients, rows: map[event]row{}}
	r := rand.New(rand.NewPCG(seed, uint64(clients)))
	odds := func(percent int) bool { return r.IntN(100) < percent }
	m.wrong = uint64(r.IntN(modes))
	looks := map[uint64]bool{}
	for mode := range uint64(modes) {
		looks[mode] = odds(40)
	}
	for _, server := range []bool{false, true} {
		for mode := range uint64(modes) {
			for noted := range uint64(allNoted) {
				for _, kind := range []protocol.Kind{protocol.Try, protocol.Exit, protocol.Cancel, protocol.Receive} {
					for msg := range uint8(kinds) {
						e := event{server, mode, noted, kind, msg}
						if (noted > 0 && !looks[mode]) || kind != protocol.Receive && msg > 0 {
							continue
						}
						w := row{mode: mode}
						switch {
						case clients == 0 && kind == protocol.Receive && msg < 2 && odds(90):
							w.note = 1 << msg
						default:
							if odds(50) {
								w.mode = uint64(r.IntN(modes))
							}
							w.note, w.forget = uint64(r.IntN(allNoted)), odds(10)
							for range r.IntN(3) {
								w.send = append(w.send, uint8(r.IntN(kinds)))
								w.to = append(w.to, uint8(r.IntN(3)))
							}
							w.enter, w.twice, w.panic = odds(30), odds(1), odds(1)
						}
						m.rows[e] = w
					}
				}
			}
		}
	}
	return m
}

func (m *machine) row(p *toy, ev protocol.Event[uint8]) row {
	noted := p.r[2]
	if m.clients > 0 {
		noted = uint64(min(ones(p.r[2]), allNoted-1))
	}
	e := event{m.clients > 0 && int(p.id) < m.members, p.r[1], noted, ev.Kind, 0}
	if ev.Kind == protocol.Receive {
		e.msg = ev.Msg
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

// step is the program of a toy.
func (m *machine) step(p *toy, ev protocol.Event[uint8], out *protocol.Out[uint8]) {
	switch ev.Kind {
	case protocol.Start:
		p.r[3] = 2
		return
	case protocol.Suspect, protocol.Restore:
		return
	case protocol.Try:
		p.r[0] = uint64(protocol.InTry)
	case protocol.Exit, protocol.Cancel:
		p.r[0] = uint64(protocol.InRem)
		out.Rem("")
	}
	w := m.row(p, ev)
	if w.panic {
		panic("a row that panics")
	}
	p.r[1] = w.mode
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
		out.Crit(0)
	}
}

func (m *machine) sends(p *toy, ev protocol.Event[uint8], w row, out *protocol.Out[uint8]) {
	for k, msg := range w.send {
		if p.r[3] == 0 {
			return
		}
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
	info := protocol.Info{Cancels: true, Tolerates: protocol.Amnesia | protocol.Crash}
	if m.clients > 0 {
		info.Users = protocol.Clients
	}
	a := algorithm(info, m.step)
	a.Invariants = []protocol.Invariant[uint8]{{Name: "toy/mode", Err: func(v *protocol.View[uint8]) error {
		for _, p := range v.Procs {
			if p != nil && m.excluded(p.(*toy)) {
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
	if m.known == nil {
		m.known = m.claims()
	}
	claims := m.known
	a.Confluent = func(p protocol.Process[uint8], from protocol.ID, msg uint8, again bool) bool {
		t := p.(*toy)
		return claims.confluent[arrival{*t, from, msg, again}.key()]
	}
	a.Invariants[0].Stable = claims.stable
	return a
}

func (m *machine) excluded(p *toy) bool { return p.r[1] == m.wrong && p.r[2] == 0 && p.r[3] == 0 }

// An arrival is a message that reaches a process in a state; again says whether its
// user may still try.
type arrival struct {
	p     toy
	from  protocol.ID
	msg   uint8
	again bool
}

// An arrivalKey names the sender by its distance from the process, which is all that a
// machine for orders knows of ids.
type arrivalKey struct {
	distance protocol.ID
	r        [4]uint64
	msg      uint8
	again    bool
}

func (a arrival) key() arrivalKey {
	n := protocol.ID(a.p.n)
	return arrivalKey{(a.from + n - a.p.id) % n, a.p.r, a.msg, a.again}
}

type claims struct {
	confluent map[arrivalKey]bool
	stable    bool
}

// claims computes which claims of confluence are true of a machine for orders: the
// greatest set that agrees with the definition, over all states of a process, be they
// reachable or not.
func (m *machine) claims() *claims {
	var all []arrival
	c := &claims{confluent: map[arrivalKey]bool{}, stable: true}
	for s := range uint64(3) {
		for mode := range uint64(modes) {
			for noted := range uint64(allNoted) {
				for left := range uint64(3) {
					p := toy{n: m.members, step: m.step, r: [4]uint64{s, mode, noted, left}}
					for msg := range uint8(kinds) {
						all = append(all, arrival{p, 1, msg, false}, arrival{p, 1, msg, true},
							arrival{p, 2, msg, false}, arrival{p, 2, msg, true})
					}
				}
			}
		}
	}
	for _, a := range all {
		b := m.receive(a.p, a.from, a.msg)
		section := b.p.r[0] == a.p.r[0] || a.p.r[0] == uint64(protocol.InTry) && b.p.r[0] == uint64(protocol.InCrit)
		c.confluent[a.key()] = b.fault == "" && len(b.sent) == 0 && section
	}
	for changed := true; changed; {
		changed = false
		for _, a := range all {
			if c.confluent[a.key()] && !m.holds(c, a) {
				c.confluent[a.key()], changed = false, true
			}
		}
	}
	for _, a := range all {
		after := m.receive(a.p, a.from, a.msg).p
		if c.confluent[a.key()] && m.excluded(&a.p) && !m.excluded(&after) {
			c.stable = false
		}
	}
	return c
}

// holds reports whether a commutes with all other events.
func (m *machine) holds(c *claims, a arrival) bool {
	behind := m.receive(a.p, a.from, a.msg).p
	commutes := func(before, after took, again bool) bool {
		if before.fault != after.fault || before.fault == check.Model {
			return before.fault == after.fault
		}
		late := m.receive(before.p, a.from, a.msg).p
		return slices.Equal(before.sent, after.sent) && late.r == after.p.r &&
			c.confluent[arrival{before.p, a.from, a.msg, again}.key()]
	}
	for from := range protocol.ID(m.members) {
		for msg := range uint8(kinds) {
			if from != a.p.id && !commutes(m.receive(a.p, from, msg), m.receive(behind, from, msg), a.again) {
				return false
			}
		}
	}
	user := func(p toy, kind protocol.Kind) took {
		return m.take(p, protocol.Event[uint8]{Input: protocol.Input{Kind: kind}})
	}
	switch protocol.Section(a.p.r[0]) {
	case protocol.InRem:
		return !a.again || commutes(user(a.p, protocol.Try), user(behind, protocol.Try), true)
	case protocol.InCrit:
		return commutes(user(a.p, protocol.Exit), user(behind, protocol.Exit), a.again)
	}
	return true
}

type letter struct {
	all bool
	to  protocol.ID
	msg uint8
}

// A took is a step that a copy of a process took.
type took struct {
	p     toy
	sent  []letter
	fault string // the property that it violates
}

func (m *machine) receive(p toy, from protocol.ID, msg uint8) took {
	return m.take(p, protocol.Event[uint8]{Input: protocol.Input{Kind: protocol.Receive, From: from}, Msg: msg})
}

func (m *machine) take(p toy, ev protocol.Event[uint8]) (t took) {
	defer func() {
		if recover() != nil {
			t = took{fault: check.Model}
		}
	}()
	trying := p.r[0] == uint64(protocol.InTry) || ev.Kind == protocol.Try
	var out protocol.Out[uint8]
	p.Step(ev, &out)
	t.p = p
	for _, e := range out.Effects {
		switch e.Do {
		case protocol.Send, protocol.Broadcast:
			t.sent = append(t.sent, letter{e.Do == protocol.Broadcast, e.To, e.Msg})
		case protocol.Crit:
			if !trying {
				t.fault = check.WellFormed
			}
		}
	}
	return t
}

// TestRandomMachines compares reduced searches of random machines with full ones, for
// each property on its own.
func TestRandomMachines(t *testing.T) {
	machines := 15
	if os.Getenv("POUNDLOCK_FULL") != "" {
		machines = 400
	} else {
		t.Log("SHORTENED: POUNDLOCK_FULL=1 draws 400 machines")
	}
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
	c.Clients, c.MaxMemory, c.Workers = m.clients, 6<<20, 1
	r := rand.New(rand.NewPCG(seed, 7))
	c.FIFO = r.IntN(2) == 0
	for _, budget := range []*int{&c.Amnesia, &c.Crash, &c.Cancel} {
		if r.IntN(4) == 0 {
			*budget = 1
		}
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
