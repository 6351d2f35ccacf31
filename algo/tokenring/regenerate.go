package tokenring

import "github.com/poundlock/poundlock/protocol"

// Tokens that are made anew are numbered. The kinds of Numbered beyond TOKEN are between a
// leader and the others.
const (
	Lost    = Token + 1 + iota // maybe: to who has crashed
	Ask                        // who has the token?
	Have                       // this process has
	HaveNot                    // and takes none from now on that is older than the question
)

var numbered = []protocol.Message{
	Token: {Name: "TOKEN"}, Lost: {Name: "LOST"}, Ask: {Name: "ASK"}, Have: {Name: "HAVE"}, HaveNot: {Name: "HAVENOT"},
}

// Numbered is a message of Regenerating.
type Numbered struct {
	Kind   uint8
	Number Number
}

// A Number tells tokens apart, and the questions for them. Numbers are ordered by epoch.
type Number struct {
	Epoch uint64 // of the leader that asked first; 0: the token of the beginning
	Count uint64 // of its questions
}

// Before reports whether m is older than o.
func (m Number) Before(o Number) bool {
	return m.Epoch < o.Epoch || m.Epoch == o.Epoch && m.Count < o.Count
}

// Regenerating is the form whose token is made anew when it is lost with a process that
// crashes. It runs with an election beside it, by package withleader.
var Regenerating = regenerating("regenerate", "the same with crashes: the ring closes, and a leader makes a lost token anew", true)

// NoEpoch is the same without the numbers of tokens: an old one that turns up again counts.
var NoEpoch = regenerating("no-epoch", "the same, but an old token that turns up again is taken for the new one", false, "exclusion")

func regenerating(variant, title string, checks bool, lacks ...string) protocol.Algorithm[Numbered] {
	return protocol.Algorithm[Numbered]{
		Info: protocol.Info{
			Name:      "token-ring",
			Variant:   variant,
			Title:     title,
			Source:    source,
			Family:    protocol.Token,
			Users:     protocol.Members,
			Detector:  protocol.PerfectDetector,
			Elector:   true,
			Tolerates: protocol.Crash,
			Lacks:     lacks,
			Messages:  numbered,
			Claims:    perpetualClaims,
		},
		New: func(id protocol.ID, c protocol.Config) protocol.Process[Numbered] {
			return &Keeper{
				id: id, n: c.N, checks: checks, token: id == protocol.ID(c.N-1),
				suspected: protocol.NewSet(c.N), missing: protocol.NewSet(c.N),
			}
		},
		Fields: Numbered.fields,
		KindOf: func(m Numbered) int { return int(m.Kind) },
		Ints:   numberedInts,
		Text:   numberedText,
	}
}

// Keeper is one participant.
type Keeper struct {
	id     protocol.ID
	n      int
	checks bool // it takes no token that is older than its number

	where     protocol.Section // InRem, InTry or InCrit; in InTry it has no token
	token     bool             // it holds the token, whose number is
	number    Number           // the newest of a token or a question that it has seen
	epoch     uint64           // the newest that it has heard of
	leader    protocol.ID      // of that epoch, who is known before anything happens
	suspected protocol.Set     // who has crashed
	missing   protocol.Set     // of a leader that asks: whose answers it waits for
}

// Step implements protocol.Process.
func (p *Keeper) Step(ev protocol.Event[Numbered], out *protocol.Out[Numbered]) {
	switch ev.Kind {
	case protocol.Start:
		if p.token {
			p.pass(out)
		}
	case protocol.Try:
		p.where = protocol.InTry
		if p.token {
			p.use(out)
		}
	case protocol.Exit:
		p.where = protocol.InRem
		out.Rem()
		p.pass(out)
	case protocol.Lead:
		p.lead(ev.From, ev.Arg, out)
	case protocol.Suspect:
		p.bury(ev.From, out)
	case protocol.Receive:
		switch ev.Msg.Kind {
		case Token:
			p.onToken(ev.Msg.Number, out)
		case Lost:
			if p.leads() {
				p.ask(out)
			}
		case Ask:
			p.onAsk(ev.From, ev.Msg.Number, out)
		default:
			p.onAnswer(ev.From, ev.Msg, out)
		}
	default:
		panic("tokenring: unexpected event")
	}
}

// onToken takes the token, unless it is one from before a question that this process has
// answered: it said that it has none, and so there may be another one.
func (p *Keeper) onToken(n Number, out *protocol.Out[Numbered]) {
	switch {
	case p.checks && n.Before(p.number):
		return
	case p.token && p.checks:
		panic("tokenring: a second TOKEN")
	case p.token: // without numbers there are several, and none of them rests
		if next := p.successor(); next != p.id {
			out.Send(next, Numbered{Token, n})
		}
		return
	}
	if p.number.Before(n) {
		p.number = n
	}
	p.found()
	p.token = true
	p.use(out)
}

// use enters with the token, or passes it on.
func (p *Keeper) use(out *protocol.Out[Numbered]) {
	if p.where == protocol.InTry {
		p.where = protocol.InCrit
		out.Crit(0)
		return
	}
	p.pass(out)
}

// pass sends the token to the next process that is not known to have crashed. It stays
// where nobody else is left.
func (p *Keeper) pass(out *protocol.Out[Numbered]) {
	if next := p.successor(); next != p.id {
		out.Send(next, Numbered{Token, p.number})
		p.token = false
	}
}

// lead begins an epoch. Whatever made a new leader necessary may have taken the token away.
func (p *Keeper) lead(leader protocol.ID, epoch uint64, out *protocol.Out[Numbered]) {
	if epoch <= p.epoch {
		return
	}
	first := p.epoch == 0
	p.epoch, p.leader = epoch, leader
	p.found()
	switch {
	case first:
	case p.leads():
		p.ask(out)
	case p.successor() != p.next(p.id): // the leader before may not have heard of it
		out.Send(leader, Numbered{Kind: Lost})
	}
}

// bury closes the ring. Who may have sent the token to who has crashed tells the leader:
// only when it knows of the crash is the search of use, for until then it would send the
// next token there, too.
func (p *Keeper) bury(j protocol.ID, out *protocol.Out[Numbered]) {
	before := p.successor()
	p.suspected.Add(j)
	switch {
	case p.leads() && (before == j || p.awaits(j)): // it may have had it, and passed it on
		p.ask(out)
	case before == j:
		out.Send(p.leader, Numbered{Kind: Lost})
	}
}

// ask asks all live processes for the token, by a number that is new. A process that has answered a
// newer leader leaves it to that one: its own number would be older.
func (p *Keeper) ask(out *protocol.Out[Numbered]) {
	p.found()
	if p.token || p.epoch < p.number.Epoch {
		return
	}
	p.number = Number{p.epoch, p.number.Count + 1}
	for j := range protocol.ID(p.n) {
		if j != p.id && !p.suspects(j) {
			p.missing.Add(j)
			out.Send(j, Numbered{Ask, p.number})
		}
	}
	p.regenerate(out)
}

// onAsk answers the newest question. A token that is here takes its number.
func (p *Keeper) onAsk(from protocol.ID, n Number, out *protocol.Out[Numbered]) {
	if n.Before(p.number) {
		return
	}
	p.number = n
	p.found() // the own question, if there is one, is old
	answer := uint8(HaveNot)
	if p.token {
		answer = Have
	}
	out.Send(from, Numbered{answer, n})
}

// onAnswer ends the search when somebody has the token, or nobody.
func (p *Keeper) onAnswer(from protocol.ID, m Numbered, out *protocol.Out[Numbered]) {
	switch {
	case m.Number != p.number || !p.awaits(from):
	case m.Kind == Have:
		p.found()
	default:
		p.missing.Remove(from)
		p.regenerate(out)
	}
}

func (p *Keeper) awaits(j protocol.ID) bool { return p.missing.Has(j) }

// regenerate makes the token anew when all have answered that they have none, and take no
// old one.
func (p *Keeper) regenerate(out *protocol.Out[Numbered]) {
	if p.missing.Len() > 0 {
		return
	}
	p.token = true
	p.use(out)
}

// found ends the search.
func (p *Keeper) found() { p.missing.Clear() }

func (p *Keeper) leads() bool { return p.leader == p.id }

// successor is the next process on the ring that has not crashed, or the own id.
func (p *Keeper) successor() protocol.ID { return p.suspected.After(p.id, p.n) }

func (p *Keeper) next(j protocol.ID) protocol.ID { return (j + 1) % protocol.ID(p.n) }

func (p *Keeper) suspects(j protocol.ID) bool { return p.suspected.Has(j) }
