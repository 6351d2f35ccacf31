package tokenring

import "github.com/poundlock/poundlock/protocol"

// The kinds of Message.
const (
	Token uint8 = iota
	Request
)

var (
	tokenOnly = []protocol.Message{Token: {Name: "TOKEN"}}
	messages  = []protocol.Message{Token: {Name: "TOKEN"}, Request: {Name: "REQUEST"}}
)

// A Message is TOKEN or REQUEST.
type Message struct {
	Kind uint8
	Back bool // of a TOKEN on a bidirectional ring: on its way from successor to predecessor
}

const source = "Le Lann: Distributed Systems - Towards a Formal Approach, IFIP Congress 1977"

// Algorithm is the default form: the token never rests.
var Algorithm = algorithm(protocol.Info{
	Title:    "a token that goes round a ring for ever",
	Source:   source,
	Messages: tokenOnly,
	Claims:   perpetualClaims,
}, false, false)

// Resting is the form whose token stays with who used it last until somebody asks.
var Resting = algorithm(protocol.Info{
	Variant:  "resting",
	Title:    "the same with a token that rests until somebody asks",
	Source:   "Martin: Distributed Mutual Exclusion on a Ring of Processes, Science of Computer Programming 1985",
	Messages: messages,
	Claims:   restingClaims,
}, true, false)

// Bidirectional is the form whose token turns round after each use.
var Bidirectional = algorithm(protocol.Info{
	Variant:  "bidirectional",
	Title:    "the same with a token that turns round after each use",
	Source:   source,
	Lacks:    []string{"starvation"},
	Messages: tokenOnly,
	Claims:   bidirectionalClaims,
}, false, true)

func algorithm(i protocol.Info, resting, bothWays bool) protocol.Algorithm[Message] {
	i.Name, i.Family, i.Users = "token-ring", protocol.Token, protocol.Members
	return protocol.Algorithm[Message]{
		Info: i,
		New: func(id protocol.ID, c protocol.Config) protocol.Process[Message] {
			return &Process{id: id, n: c.N, resting: resting, bothWays: bothWays, token: id == protocol.ID(c.N-1)}
		},
		Fields: func(m Message, c *protocol.Codec) Message { return m.fields(c, bothWays) },
		KindOf: func(m Message) int { return int(m.Kind) },
		Ints:   func(m Message) int { return ints(m, bothWays) },
		Text:   text,
		Model: protocol.Model[Message]{
			Invariants: []protocol.Invariant{oneToken},
		},
	}
}

// oneToken is behind mutual exclusion.
var oneToken = protocol.OneToken("token-ring/token",
	func(p *Process) bool { return p.token }, func(m Message) bool { return m.Kind == Token })

// Process is one participant: p_i of the ring p_0, .., p_(n-1).
type Process struct {
	id       protocol.ID
	n        int
	resting  bool
	bothWays bool

	section protocol.Section // InRem, InTry or InCrit; in InTry it has no token
	token   bool             // it holds the token
	back    bool             // it is inside with a token that came from its successor
	asked   bool             // it has asked its predecessor for the token since it had it last
	wanted  bool             // its successor has asked it, since it passed the token on
}

// Step implements protocol.Process.
func (p *Process) Step(ev protocol.Event[Message], out *protocol.Out[Message]) {
	switch ev.Kind {
	case protocol.Start:
		if p.token {
			p.pass(false, out)
		}
	case protocol.Try:
		p.try(out)
	case protocol.Exit:
		p.exit(out)
	case protocol.Receive:
		switch ev.Msg.Kind {
		case Token:
			p.onToken(ev.Msg.Back, out)
		case Request:
			p.onRequest(out)
		}
	default:
		panic("tokenring: unexpected event")
	}
}

// try enters with the token, which only one that rests can have here, and else waits
// for it.
func (p *Process) try(out *protocol.Out[Message]) {
	if p.token {
		p.enter(out)
		return
	}
	p.section = protocol.InTry
	if p.resting {
		p.ask(out)
	}
}

// onToken uses the token or passes it on.
func (p *Process) onToken(back bool, out *protocol.Out[Message]) {
	if p.token || back && !p.bothWays || p.resting && !p.asked {
		panic("tokenring: a TOKEN that cannot be")
	}
	p.token, p.asked = true, false
	if p.section == protocol.InTry {
		p.back = back
		p.enter(out)
		return
	}
	p.pass(back, out)
}

func (p *Process) enter(out *protocol.Out[Message]) {
	p.section = protocol.InCrit
	out.Crit(0)
}

// exit passes the token on; on a bidirectional ring to where it came from.
func (p *Process) exit(out *protocol.Out[Message]) {
	p.section = protocol.InRem
	out.Rem()
	p.pass(p.back != p.bothWays, out)
}

// onRequest gives a token that rests here to the successor, who asks for it, and else
// hands the question on.
func (p *Process) onRequest(out *protocol.Out[Message]) {
	if p.wanted || !p.resting {
		panic("tokenring: a REQUEST that cannot be")
	}
	p.wanted = true
	switch {
	case !p.token:
		p.ask(out)
	case p.section == protocol.InRem:
		p.pass(false, out)
	}
}

// ask asks the predecessor for the token, once: it is all the same to it for how many
// processes. The token comes through here to all of them.
func (p *Process) ask(out *protocol.Out[Message]) {
	if !p.asked {
		p.asked = true
		out.Send(p.neighbour(true), Message{Kind: Request})
	}
}

// pass sends the token to the predecessor or the successor, unless it rests: where nobody
// asked for it, or where there is nobody else.
func (p *Process) pass(back bool, out *protocol.Out[Message]) {
	if p.n == 1 || p.resting && !p.wanted {
		return
	}
	out.Send(p.neighbour(back), Message{Kind: Token, Back: back})
	p.token, p.back, p.wanted = false, false, false
}

// neighbour is the predecessor or the successor.
func (p *Process) neighbour(back bool) protocol.ID {
	step := 1
	if back {
		step = p.n - 1
	}
	return (p.id + protocol.ID(step)) % protocol.ID(p.n)
}
