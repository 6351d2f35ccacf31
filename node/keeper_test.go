package node_test

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/poundlock/poundlock/protocol"
)

// The keeper is an algorithm for tests: it shows what a driver does. A user that
// tries tells all members, and enters when all have answered; a member remembers
// the clients that are inside, until they leave or are suspected, and a client that
// is inside counts on those members that it does not suspect.
const (
	enter uint8 = iota
	leave
	answer
)

type keeperProcess struct {
	id      protocol.ID
	c       protocol.Config
	watch   func(keeperEvent)
	clients []protocol.ID // member: inside, in order of arrival
	drained bool          // member: nobody gets in any more
	missing uint64        // client: answers not yet received
	members []protocol.ID // client: those that answered
}

// A keeperEvent is what some process of the keeper got.
type keeperEvent struct {
	At protocol.ID
	protocol.Input
	When time.Time
	Msg  uint8
}

// keeper returns the algorithm. watch, if not nil, sees every event that is not a
// Start.
func keeper(watch func(keeperEvent)) protocol.Algorithm[uint8] {
	return protocol.Algorithm[uint8]{
		Info: protocol.Info{
			Name: "keeper", Users: protocol.Clients, Cancels: true, Drains: true, Detector: protocol.LeaseDetector,
			Messages: []protocol.Message{enter: {Name: "ENTER"}, leave: {Name: "LEAVE"}, answer: {Name: "ANSWER"}},
		},
		New: func(id protocol.ID, c protocol.Config) protocol.Process[uint8] {
			return &keeperProcess{id: id, c: c, watch: watch}
		},
		Fields: func(m uint8, c *protocol.Codec) uint8 {
			protocol.Upto(c, &m, answer)
			return m
		},
		KindOf: func(m uint8) int { return int(m) },
	}
}

func (p *keeperProcess) Inspect() (s protocol.Standing) {
	for _, c := range p.clients {
		s.Holders = append(s.Holders, protocol.Request{User: c})
	}
	s.Supports = slices.Clone(p.members)
	return s
}

func (p *keeperProcess) Step(ev protocol.Event[uint8], out *protocol.Out[uint8]) {
	if p.watch != nil && ev.Kind != protocol.Start {
		p.watch(keeperEvent{p.id, ev.Input, time.Now(), ev.Msg})
	}
	switch ev.Kind {
	case protocol.Try:
		p.missing = uint64(p.c.N)
		out.Broadcast(enter)
	case protocol.Exit, protocol.Cancel:
		p.missing, p.members = 0, nil
		out.Broadcast(leave)
		out.Rem()
	case protocol.Suspect:
		p.forget(ev.From)
		p.members = slices.DeleteFunc(p.members, func(m protocol.ID) bool { return m == ev.From })
	case protocol.Drain:
		p.drained = true
	case protocol.Receive:
		switch ev.Msg {
		case enter:
			if p.drained {
				break
			}
			p.forget(ev.From)
			p.clients = append(p.clients, ev.From)
			out.Send(ev.From, answer)
		case leave:
			p.forget(ev.From)
		case answer:
			if p.missing > 0 {
				p.members = append(p.members, ev.From)
				if p.missing--; p.missing == 0 {
					out.Crit(1)
				}
			}
		}
	}
}

func (p *keeperProcess) forget(c protocol.ID) {
	for k, d := range p.clients {
		if c == d {
			p.clients = append(p.clients[:k], p.clients[k+1:]...)
			return
		}
	}
}

// State implements protocol.Process.
func (p *keeperProcess) State(c *protocol.Codec) {
	c.Uint(&p.missing)
	c.Bool(&p.drained)
	for _, list := range []*[]protocol.ID{&p.clients, &p.members} {
		for i := range protocol.List(c, list) {
			c.AnyID(&(*list)[i])
		}
	}
}

// A diary collects events.
type diary struct {
	mu     sync.Mutex
	events []keeperEvent
}

func (d *diary) add(e keeperEvent) {
	d.mu.Lock()
	d.events = append(d.events, e)
	d.mu.Unlock()
}

// take returns what was collected, and begins anew.
func (d *diary) take() []keeperEvent {
	d.mu.Lock()
	defer d.mu.Unlock()
	events := d.events
	d.events = nil
	return events
}

// has reports whether process at got an event of this kind from from.
func (d *diary) has(at protocol.ID, kind protocol.Kind, from protocol.ID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range d.events {
		if e.At == at && e.Kind == kind && e.From == from {
			return true
		}
	}
	return false
}

func (e keeperEvent) String() string {
	kinds := []string{
		protocol.Try: "try", protocol.Cancel: "cancel", protocol.Exit: "exit",
		protocol.Suspect: "suspect", protocol.Restore: "restore", protocol.Timeout: "timeout", protocol.Drain: "drain",
	}
	who := func(id protocol.ID) string {
		if id < 16 {
			return fmt.Sprintf("s%d", id+1)
		}
		return "client"
	}
	if e.Kind == protocol.Receive {
		return fmt.Sprintf("%s receives %s", who(e.At), []string{"enter", "leave", "answer"}[e.Msg])
	}
	return fmt.Sprintf("%s %s", who(e.At), kinds[e.Kind])
}
