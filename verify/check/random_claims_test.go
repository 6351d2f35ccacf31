package check_test

import (
	"slices"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
)

// An arrival is a message that reaches a process in a state; again says whether its
// user may still try.
type arrival struct {
	p     toy
	from  protocol.ID
	msg   uint8
	again bool
}

// An arrivalKey names the sender by its distance from the process, which is all that a
// machine for orders knows of ids. What is only noted has no use for clocks.
type arrivalKey struct {
	distance protocol.ID
	r        [4]uint64
	msg      uint8
	again    bool
}

func (a arrival) key() arrivalKey {
	n, r := protocol.ID(a.p.n), a.p.r
	r[1] %= modeUnit
	return arrivalKey{(a.from + n - a.p.id) % n, r, kindOf(a.msg), a.again}
}

// someClock is that of a process while claims are computed: others are near it. Clocks begin
// above it, so that it is some distance from where the checker moves them to.
const (
	someClock  = 2
	firstClock = someClock + 1
)

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
	clock := uint64(0)
	if m.clocks {
		clock = someClock
	}
	for s := range uint64(3) {
		for mode := range uint64(modes) {
			for noted := range uint64(allNoted) {
				for left := range uint64(3) {
					for _, wants := range m.wants() {
						if m.sets != nil && (wants == 0) != (s == uint64(protocol.InRem)) {
							continue
						}
						p := toy{n: m.members, step: m.step, r: [4]uint64{s, mode + modeUnit*clock, noted, left + wanting*wants}}
						for msg := range uint8(kinds) {
							msg = stamped(msg, clock)
							all = append(all, arrival{p, 1, msg, false}, arrival{p, 1, msg, true},
								arrival{p, 2, msg, false}, arrival{p, 2, msg, true})
						}
					}
				}
			}
		}
	}
	for _, a := range all {
		b := m.receive(a.p, a.from, a.msg)
		section := b.p.r[0] == a.p.r[0] || a.p.r[0] == uint64(protocol.InTry) && b.p.r[0] == uint64(protocol.InCrit)
		clocks := m.clocks && (kindOf(a.msg) >= onlyNote || b.p.r[1]/modeUnit != clock)
		c.confluent[a.key()] = b.fault == "" && len(b.sent) == 0 && section && !clocks
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
	first := m.receive(a.p, a.from, a.msg)
	behind := first.p
	commutes := func(before, after took, again bool) bool {
		if before.fault != after.fault || before.fault == check.Model {
			return before.fault == after.fault
		}
		late := m.receive(before.p, a.from, a.msg)
		same := before.group+late.group == first.group+after.group
		return slices.Equal(before.sent, after.sent) && late.p.r == after.p.r && same &&
			c.confluent[arrival{before.p, a.from, a.msg, again}.key()]
	}
	for from := range protocol.ID(m.members) {
		for msg := range uint8(kinds + 2*someClock*onlyNote) {
			if msg >= kinds && !m.clocks {
				break
			}
			if from != a.p.id && !commutes(m.receive(a.p, from, msg), m.receive(behind, from, msg), a.again) {
				return false
			}
		}
	}
	user := func(p toy, kind protocol.Kind, set protocol.Groups) took {
		return m.take(p, protocol.Event[uint8]{Input: protocol.Input{Kind: kind, Data: string(set)}})
	}
	switch protocol.Section(a.p.r[0]) {
	case protocol.InRem:
		for _, wants := range m.wants() {
			set := protocol.Groups("")
			if wants > 0 {
				set = agentSets[wants-1]
			} else if m.sets != nil {
				continue
			}
			if a.again && !commutes(user(a.p, protocol.Try, set), user(behind, protocol.Try, set), true) {
				return false
			}
		}
	case protocol.InCrit:
		return commutes(user(a.p, protocol.Exit, ""), user(behind, protocol.Exit, ""), a.again)
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
	group protocol.Group // into which the user was let
	fault string         // the property that it violates
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
			if t.group = protocol.Group(e.Data); !trying {
				t.fault = check.WellFormed
			}
		}
	}
	return t
}
