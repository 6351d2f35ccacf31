package raymond

import (
	"fmt"
	"math"
	"slices"

	"github.com/poundlock/poundlock/protocol"
)

// A Message is one of the two, which carry nothing.
type Message uint8

// The messages.
const (
	Request Message = iota
	Privilege
)

var messages = []protocol.Message{Request: {Name: "REQUEST"}, Privilege: {Name: "PRIVILEGE"}}

// Algorithm is Raymond's.
var Algorithm = protocol.Algorithm[Message]{
	Info: protocol.Info{
		Name:     "raymond",
		Title:    "one token in a tree, whose every process knows the way to it",
		Source:   "Raymond: A Tree-Based Algorithm for Distributed Mutual Exclusion, ACM TOCS 1989",
		Family:   protocol.Token,
		Users:    protocol.Members,
		Messages: messages,
		Options:  options,
		Claims:   claims,
	},
	New: func(id protocol.ID, c protocol.Config) protocol.Process[Message] {
		return &Process{id: id, tree: treeOf(c), holder: treeOf(c).toward(id, protocol.ID(c.N-1))}
	},
	Fields: Message.fields,
	KindOf: func(m Message) int { return int(m) },
	Ints:   func(Message) int { return 0 },
	Text:   func(m Message) string { return messages[m].Name },
	Model: protocol.Model[Message]{Invariants: []protocol.Invariant{protocol.OneToken("raymond/token",
		func(p *Process) bool { return p.holder == p.id }, func(m Message) bool { return m == Privilege })}},
}

var options = []protocol.Option{{
	Name:    "k",
	Default: func(protocol.Config) int64 { return 2 },
	Range:   func(protocol.Config) (least, most int64) { return 1, math.MaxInt32 },
	Sound:   func(protocol.Config) (least, most int64) { return 1, 4 },
	Doc:     "how many processes stand below one in the tree, at most (default 2)",
}}

// The claims hold for E >= 10 entries of each process. At low load the processes come in turn, the
// holder of the first token last: the token is always at the process before. Under load each process serves
// its neighbours in turn, so that the token goes round the tree, after a REQUEST each time.
var claims = []protocol.Claim{
	protocol.Exactly(protocol.LowLoad, protocol.ToEnter, there, "2d"),
	protocol.Exactly(protocol.LowLoad, protocol.Messages, there, "2d"),
	protocol.Exactly(protocol.LowLoad, protocol.Waiting, there, "2d"),
	protocol.Between(protocol.HighLoad, protocol.Messages, protocol.AllButOne(3.6), protocol.AllButOne(4), "4(N-1)/N"),
	protocol.Between(protocol.HighLoad, protocol.SyncDelay, protocol.AllButOne(1.8), protocol.AllButOne(2), "2(N-1)/N"),
}

// there is 2d on average, d being the distance from each process to the one before it in turn.
func there(c protocol.Config) float64 {
	t, sum := treeOf(c), 0
	for i := range t.n {
		for j := (i + 1) % t.n; j != i; j = t.toward(j, i) {
			sum++
		}
	}
	return 2 * float64(sum) / float64(t.n)
}

// A tree has process 0 as its root, and k processes below each one as long as there are more.
type tree struct{ n, k protocol.ID }

func treeOf(c protocol.Config) tree {
	return tree{protocol.ID(c.N), protocol.ID(protocol.Info{Options: options}.Option(c, "k"))}
}

func (t tree) above(i protocol.ID) protocol.ID { return (i - 1) / t.k } // not of 0

// toward is the neighbour of i that leads to j, or i itself. Who stands above has the smaller id.
func (t tree) toward(i, j protocol.ID) protocol.ID {
	for j > i && t.above(j) != i {
		j = t.above(j)
	}
	if j < i {
		return t.above(i)
	}
	return j
}

// Process is one node. The names are those of the paper.
type Process struct {
	id     protocol.ID
	tree   tree
	holder protocol.ID   // HOLDER: the neighbour that leads to the token, or id
	using  bool          // USING: inside
	queue  []protocol.ID // REQUEST_Q: who wants the token from here, id for its own user
	asked  bool          // ASKED: a REQUEST is sent to holder, and not answered
}

// Step implements protocol.Process. Each event ends with the two procedures of the paper.
func (p *Process) Step(ev protocol.Event[Message], out *protocol.Out[Message]) {
	switch ev.Kind {
	case protocol.Start:
	case protocol.Try:
		p.queue = append(p.queue, p.id)
	case protocol.Exit:
		p.using = false
		out.Rem()
	case protocol.Receive:
		p.receive(ev.From, ev.Msg)
	default:
		panic("raymond: unexpected event")
	}
	p.assignPrivilege(out)
	p.makeRequest(out)
}

// receive remembers who asks, or takes the token.
func (p *Process) receive(from protocol.ID, m Message) {
	if m == Privilege {
		if from != p.holder || !p.asked {
			panic("raymond: a PRIVILEGE that nobody asked for")
		}
		p.holder = p.id
		return
	}
	if p.tree.toward(p.id, from) != from || slices.Contains(p.queue, from) {
		panic(fmt.Sprintf("raymond: a REQUEST of #%d that cannot be", from))
	}
	p.queue = append(p.queue, from)
}

// assignPrivilege is ASSIGN_PRIVILEGE: a token that rests here goes to the head of the queue.
func (p *Process) assignPrivilege(out *protocol.Out[Message]) {
	if p.holder != p.id || p.using || len(p.queue) == 0 {
		return
	}
	p.holder, p.asked = p.queue[0], false
	p.queue = append(p.queue[:0], p.queue[1:]...)
	if p.holder == p.id {
		p.using = true
		out.Crit(0)
		return
	}
	out.Send(p.holder, Privilege)
}

// makeRequest is MAKE_REQUEST: one REQUEST for all in the queue.
func (p *Process) makeRequest(out *protocol.Out[Message]) {
	if p.holder != p.id && len(p.queue) > 0 && !p.asked {
		p.asked = true
		out.Send(p.holder, Request)
	}
}
