package algotest

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/poundlock/poundlock/protocol"
)

// The toy is a lock that member 0 gives away in the order of (time, id). It is
// correct unless it has a defect, and each defect is one that the suite must
// find.
type defect string

const (
	lossyCodec       defect = "the codec loses large times"
	endlessMessage   defect = "the decoder takes an empty message for a REQUEST"
	sameText         defect = "the text leaves the time out"
	unknownKind      defect = "a message has no kind"
	sharedMemory     defect = "a message shares memory with the state"
	missingField     defect = "the encoding of the state has 0 for the clock"
	forgottenField   defect = "State does not visit the clock"
	unstableEncoding defect = "the encoding of the state depends on chance"
	remains          defect = "loading a state leaves some of the last one"
	endlessState     defect = "the decoder of states ignores its error"
	absoluteClock    defect = "a step depends on the value of the clock"
	unmappedMessage  defect = "MapMsg forgets the message"
	chance           defect = "a step depends on chance"
	garbage          defect = "a step allocates"
	takesAnything    defect = "an impossible event is ignored"
	refusesCancel    defect = "an event that the model allows panics"
	wrongClaim       defect = "the claim is too low"
	noExclusion      defect = "everybody is let in"
	noTitle          defect = "there is no title"
	busyShow         defect = "to show a state changes it"
	manyLines        defect = "a state is shown on two lines"
	halfAClaim       defect = "MapState without MapMsg"
	anyOrder         defect = "every message is said to be confluent"
	ownTokens        defect = "fencing tokens are the ids of processes"
	equalIDs         defect = "members are said to be interchangeable"
)

const (
	request uint8 = iota
	grant
	release
)

type message struct {
	Kind    uint8
	Time    uint64
	Waiting []uint64 // in a grant: who else waits
}

func toy(d defect) protocol.Algorithm[message] {
	n := func(c protocol.Config) float64 { return float64(c.N) }
	factor := 3.0
	if d == wrongClaim {
		factor = 2
	}
	// Member 0 needs no message, and everybody else three.
	messages := func(c protocol.Config) float64 { return factor * (n(c) - 1) / n(c) }
	a := protocol.Algorithm[message]{
		Info: protocol.Info{
			Name: "toy", Title: "ask member 0", Source: "none", Users: protocol.Members, Cancels: d == refusesCancel,
			Ordered:  true,
			Messages: []protocol.Message{{Name: "REQUEST"}, {Name: "GRANT"}, {Name: "RELEASE"}},
			Claims:   []protocol.Claim{{Load: protocol.LowLoad, Measure: protocol.Messages, Least: messages, Most: messages}},
		},
		New: func(id protocol.ID, c protocol.Config) protocol.Process[message] {
			return &process{id: id, defect: d}
		},
		Fields: func(m message, c *protocol.Codec) message {
			switch rest, _ := c.Rest(); {
			case d == lossyCodec && !c.Reading():
				m.Time = min(m.Time, 9)
			case d == endlessMessage && c.Reading() && len(rest) == 0:
				return message{}
			case d == unmappedMessage && c.Moving():
				return m
			}
			protocol.Upto(c, &m.Kind, release)
			c.Clock(&m.Time)
			if m.Kind == grant {
				c.Words(protocol.List(c, &m.Waiting))
			}
			return m
		},
		KindOf: func(m message) int {
			if d == unknownKind && m.Kind == release {
				return -1
			}
			return int(m.Kind)
		},
		Ints: func(m message) int { return 1 + len(m.Waiting) },
		Text: func(m message) string {
			if d == sameText {
				m.Time = 0
			}
			return fmt.Sprintf("%d(%d)%v", m.Kind, m.Time, m.Waiting)
		},
	}
	a.MapState, a.MapMsg = protocol.MapState[message], protocol.MapMsg(a.Fields)
	if d == noTitle {
		a.Title = ""
	}
	if d == halfAClaim {
		a.MapMsg = nil
	}
	if d == anyOrder {
		a.Confluent = func(protocol.Process[message], protocol.ID, message, bool) bool { return true }
	}
	if d == equalIDs {
		a.Interchangeable = func(protocol.Config) bool { return true }
		a.Permute = func(protocol.Process[message], func(protocol.ID) protocol.ID) {}
	}
	return a
}

type waiter struct{ time, id uint64 }

type process struct {
	id     protocol.ID
	defect defect

	clock uint64
	busy  bool     // of member 0: somebody is inside
	queue []waiter // of member 0, ordered
	ids   []uint64 // scratch
	waste *int
}

var dice = rand.New(rand.NewPCG(1, 2))

// Show implements protocol.Shower.
func (p *process) Show() string {
	if p.defect == busyShow {
		p.clock++
	}
	if p.defect == manyLines {
		return "clock\n"
	}
	return fmt.Sprint("clock ", p.clock)
}

func (p *process) Step(ev protocol.Event[message], out *protocol.Out[message]) {
	if p.defect == garbage {
		p.waste = new(int)
	}
	if p.defect == chance && dice.IntN(50) == 0 {
		p.clock++
	}
	switch ev.Kind {
	case protocol.Start:
	case protocol.Try:
		p.clock++
		p.toServer(message{Kind: request, Time: p.clock}, out)
	case protocol.Exit:
		out.Rem()
		p.toServer(message{Kind: release, Time: p.clock}, out)
	case protocol.Receive:
		p.clock = max(p.clock, ev.Msg.Time)
		if ev.Msg.Kind == grant {
			out.Crit(p.token())
		} else {
			p.serve(ev.From, ev.Msg, out)
		}
	default:
		if p.defect != takesAnything {
			panic("toy: unexpected event")
		}
	}
}

func (p *process) token() uint64 {
	if p.defect == ownTokens {
		return 1 + uint64(p.id)
	}
	return 0
}

func (p *process) toServer(m message, out *protocol.Out[message]) {
	if p.id == 0 {
		p.serve(0, m, out)
	} else {
		out.Send(0, m)
	}
}

func (p *process) serve(from protocol.ID, m message, out *protocol.Out[message]) {
	if m.Kind == request {
		w := waiter{m.Time, uint64(from)}
		i, _ := slices.BinarySearchFunc(p.queue, w, func(a, b waiter) int {
			if a.time < b.time || a.time == b.time && a.id < b.id {
				return -1
			}
			return 1
		})
		p.queue = slices.Insert(p.queue, i, w)
	} else {
		p.busy = false
	}
	if p.defect == absoluteClock && p.clock%1000 == 7 {
		return // and so somebody waits a little longer
	}
	for len(p.queue) > 0 && (!p.busy || p.defect == noExclusion) {
		next := p.queue[0]
		p.queue = append(p.queue[:0], p.queue[1:]...)
		p.busy = true
		if next.id == uint64(p.id) {
			out.Crit(p.token())
			continue
		}
		p.ids = p.ids[:0]
		for _, w := range p.queue {
			p.ids = append(p.ids, w.id)
		}
		waiting := p.ids
		if p.defect != sharedMemory {
			waiting = out.Words(len(p.ids))
			copy(waiting, p.ids)
		}
		out.Send(protocol.ID(next.id), message{Kind: grant, Time: p.clock, Waiting: waiting})
	}
}

func (p *process) State(c *protocol.Codec) {
	if clock := uint64(0); p.defect == missingField && !c.Reading() {
		c.Clock(&clock)
	} else if p.defect != forgottenField {
		c.Clock(&p.clock)
	}
	c.Bool(&p.busy)
	queue := &p.queue
	switch remaining := slices.Clone(p.queue); {
	case p.defect == endlessState && c.Reading():
		visit(c, queue)
		rest, _ := c.Rest()
		c.Loading(rest) // which forgets what is wrong
	case p.defect == unstableEncoding && !c.Reading():
		dice.Shuffle(len(remaining), func(i, j int) { remaining[i], remaining[j] = remaining[j], remaining[i] })
		visit(c, &remaining)
	default:
		visit(c, queue)
		if p.defect == remains && c.Reading() {
			p.queue = append(remaining, p.queue...)
		}
	}
}

func visit(c *protocol.Codec, queue *[]waiter) {
	for i := range protocol.List(c, queue) {
		c.Clock(&(*queue)[i].time)
		c.Uint(&(*queue)[i].id)
	}
}
