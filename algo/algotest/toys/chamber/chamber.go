// Package chamber is a small algorithm for group mutual exclusion, to test drivers with: a
// coordinator lets requests in by the order of their arrival, each as soon as those that are
// inside share with it. Broken forms of it show that a driver notices.
package chamber

import (
	"fmt"
	"slices"

	"github.com/poundlock/poundlock/protocol"
)

// A Form is the algorithm, or what is wrong with it.
type Form string

// The forms. All but Sound are broken.
const (
	Sound         Form = ""
	IgnoresGroups Form = "ignores-groups" // whoever asks is let in: exclusion
	AloneTogether Form = "alone-together" // exclusive groups are shared: exclusion
	Unwanted      Form = "unwanted"       // all get the group of who was first: well-formed
	Overtakes     Form = "overtakes"      // who shares overtakes who waits: starvation
	OneByOne      Form = "one-by-one"     // nobody shares: concurrent entry
)

// The kinds of Message.
const (
	Request uint8 = iota
	Granted
	Released
)

var messages = []protocol.Message{Request: {Name: "REQUEST"}, Granted: {Name: "GRANTED"}, Released: {Name: "RELEASED"}}

// A Message is its kind, with the groups that a Request wants, or the one that is Granted.
type Message struct {
	Kind   uint8
	Groups protocol.Groups
}

// Algorithm returns a form of the algorithm.
func Algorithm(form Form) protocol.Algorithm[Message] {
	return protocol.Algorithm[Message]{
		Info: protocol.Info{
			Name:     "chamber",
			Variant:  string(form),
			Title:    "a coordinator of groups",
			Source:   "a test",
			Family:   protocol.Permission,
			Users:    protocol.Members,
			Grouped:  true,
			Several:  true,
			Messages: messages,
		},
		New:    func(id protocol.ID, _ protocol.Config) protocol.Process[Message] { return &process{id: id, form: form} },
		Fields: Message.fields,
		KindOf: func(m Message) int { return int(m.Kind) },
		Ints: func(m Message) int {
			if m.Kind == Released {
				return 0
			}
			return m.Groups.Len()
		},
		Text: func(m Message) string {
			if m.Kind == Released {
				return "RELEASED"
			}
			return fmt.Sprintf("%s(%s)", messages[m.Kind].Name, m.Groups)
		},
	}
}

// coordinator is who grants.
const coordinator protocol.ID = 0

// process is one participant. All but wanted is the coordinator's.
type process struct {
	id     protocol.ID
	form   Form
	wanted protocol.Groups // while its user tries

	inside int            // grants that have not been released
	group  protocol.Group // of the last of them, "" where there is none
	queue  []request      // in the order of arrival
}

// A request waits at the coordinator.
type request struct {
	from   protocol.ID
	wanted protocol.Groups
}

// Waiting is how many wait at the coordinator.
func (p *process) Waiting() int { return len(p.queue) }

// Step implements protocol.Process.
func (p *process) Step(ev protocol.Event[Message], out *protocol.Out[Message]) {
	switch ev.Kind {
	case protocol.Start:
	case protocol.Try:
		p.wanted = protocol.Groups(ev.Data)
		p.tell(Message{Request, p.wanted}, out)
	case protocol.Exit:
		out.Rem()
		p.tell(Message{Kind: Released}, out)
	case protocol.Receive:
		if ev.Msg.Kind == Granted {
			p.enter(protocol.Group(ev.Msg.Groups), out)
		} else {
			p.coordinate(ev.From, ev.Msg, out)
		}
	default:
		panic("chamber: unexpected event")
	}
}

// tell takes a message to the coordinator.
func (p *process) tell(m Message, out *protocol.Out[Message]) {
	if p.id == coordinator {
		p.coordinate(p.id, m, out)
		return
	}
	out.Send(coordinator, m)
}

func (p *process) enter(g protocol.Group, out *protocol.Out[Message]) {
	if p.wanted == "" {
		panic("chamber: a grant that nobody waits for")
	}
	p.wanted = ""
	out.CritIn(g, 0)
}

// coordinate handles a Request, which may overtake the Released that was sent before it, or
// a Released.
func (p *process) coordinate(from protocol.ID, m Message, out *protocol.Out[Message]) {
	if p.id != coordinator {
		panic("chamber: a request to who is no coordinator")
	}
	if m.Kind == Request {
		p.queue = append(p.queue, request{from, m.Groups})
	} else if p.inside--; p.inside == 0 {
		p.group = ""
	}
	for i := 0; i < len(p.queue); {
		r := p.queue[i]
		g, ok := p.grantable(r.wanted)
		switch {
		case ok:
			p.queue = slices.Delete(p.queue, i, i+1)
			p.inside++
			p.group = g
			if r.from == p.id {
				p.enter(g, out)
			} else {
				out.Send(r.from, Message{Granted, protocol.Groups(g)})
			}
		case p.form == Overtakes:
			i++
		default:
			return
		}
	}
}

// grantable is the group that who wants some may have now, if there is one.
func (p *process) grantable(wanted protocol.Groups) (protocol.Group, bool) {
	var first protocol.Group
	for g := range wanted.All() {
		first = g
		break
	}
	switch {
	case p.inside == 0 || p.form == IgnoresGroups:
		return first, true
	case p.form == OneByOne:
		return "", false
	case p.form == Unwanted:
		return p.group, !p.group.Exclusive()
	}
	shared := !p.group.Exclusive() || p.form == AloneTogether
	return p.group, shared && wanted.Has(p.group)
}

// State implements protocol.Process.
func (p *process) State(c *protocol.Codec) {
	visit(c, &p.wanted)
	protocol.Upto(c, &p.inside, 1<<20)
	visit(c, &p.group)
	for i := range protocol.List(c, &p.queue) {
		c.AnyID(&p.queue[i].from)
		visit(c, &p.queue[i].wanted)
	}
}

func (m Message) fields(c *protocol.Codec) Message {
	protocol.Upto(c, &m.Kind, Released)
	visit(c, &m.Groups)
	c.Want((m.Kind == Released) == (m.Groups == ""))
	return m
}

// visit visits a set of groups in its one form, or "".
func visit[T ~string](c *protocol.Codec, groups *T) {
	protocol.Text(c, groups)
	if c.Reading() && *groups != "" {
		g, err := protocol.ParseGroups(string(*groups))
		c.Want(err == nil && string(g) == string(*groups))
	}
}
