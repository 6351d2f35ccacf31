package consensus

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/poundlock/poundlock/protocol"
)

// A Process is one of an algorithm, with what decides its instances beside it.
type Process[M, P any] struct {
	w     *wrapper[M, P]
	inner protocol.Process[M]
	out   protocol.Out[M] // of inner
	turn  Turn[M, P]
	id    protocol.ID
	n     int

	present   bool   // takes part: a later life does not before it resumes
	instance  uint64 // the one that it takes part in
	suspected []bool
	unfit     []bool // by process: takes no part in this instance, as it says
	waits     []bool // by process: has asked this one, and counts on it to hear of the decision
	told      []bool // by process: was asked by this one, and is not given up since
	news      bool   // has heard of a decision from another one since it asked all
	wish      bool   // somebody has a proposal for this instance:
	proposal  M
	asked     protocol.ID    // who was sent the proposal last; this process: nobody
	core      Instance[M, P] // nil: nobody has begun the instance, as far as is known

	decisions []decision[M] // the last ones
	early     []early[M, P] // envelopes of later instances
	missed    []bool        // by process: one of its envelopes was dropped, for want of room
}

// A decision is what some instance ended with.
type decision[M any] struct {
	instance uint64
	value    M
	size     int // bytes, encoded
}

// An early envelope is one of a later instance.
type early[M, P any] struct {
	from     protocol.ID
	envelope Envelope[M, P]
	size     int // bytes, encoded
}

func (w *wrapper[M, P]) new(id protocol.ID, c protocol.Config) protocol.Process[Envelope[M, P]] {
	p := &Process[M, P]{
		w: w, inner: w.alg.New(id, c), id: id, n: c.N, asked: id,
		suspected: make([]bool, c.N), unfit: make([]bool, c.N), waits: make([]bool, c.N), told: make([]bool, c.N),
		missed: make([]bool, c.N),
	}
	p.turn.Trusts = p.trusts
	return p
}

// Core is what decides the present instance; nil where nobody has begun it, as far as is known.
func (p *Process[M, P]) Core() Instance[M, P] { return p.core }

// Step implements protocol.Process.
func (p *Process[M, P]) Step(ev protocol.Event[Envelope[M, P]], out *protocol.Out[Envelope[M, P]]) {
	if ev.Kind == protocol.Receive && ev.Msg.Kind != Inner {
		p.receive(ev.From, ev.Msg, out)
		return
	}
	switch ev.Kind {
	case protocol.Start:
		p.present = ev.Arg <= 1
	case protocol.Suspect:
		p.suspected[ev.From] = true
		p.giveUp(ev.From, out)
		p.seek(out)
	case protocol.Restore:
		p.suspected[ev.From], p.unfit[ev.From] = false, false
		p.giveUp(ev.From, out)
		p.ask(ev.From, out)
	}
	p.feed(protocol.Event[M]{Input: ev.Input, Msg: ev.Msg.Msg}, out)
	p.goOn(out)
}

func (p *Process[M, P]) trusts(j protocol.ID) bool {
	return j < protocol.ID(p.n) && !p.suspected[j] && !p.unfit[j]
}

// giveUp expects nothing of a process any more: it may have crashed, or be a new life.
func (p *Process[M, P]) giveUp(j protocol.ID, out *protocol.Out[Envelope[M, P]]) {
	p.told[j] = false
	if p.asked == j {
		p.asked = p.id
	}
	if p.core != nil {
		p.core.GiveUp(j, &p.turn)
		p.act(out)
	}
}

// ask asks a process for what may be lost here, unless it was asked in this instance and is not given up since.
// Whoever of the two hears of the decision first tells the other one.
func (p *Process[M, P]) ask(j protocol.ID, out *protocol.Out[Envelope[M, P]]) {
	if p.present && j != p.id && !p.told[j] {
		p.waits[j], p.told[j] = true, true
		p.send(j, Envelope[M, P]{Kind: Ask}, out)
	}
}

// seek asks the coordinator. Who coordinates asks all that it trusts where it has heard of a decision from another one: what
// that one has sent to them may be lost.
func (p *Process[M, P]) seek(out *protocol.Out[Envelope[M, P]]) {
	c := p.coordinator()
	if c != p.id {
		p.ask(c, out)
		return
	}
	if !p.present || !p.news {
		return
	}
	p.news = false
	for j := range protocol.ID(p.n) {
		if p.trusts(j) {
			p.ask(j, out)
		}
	}
}

// feed gives the algorithm an event.
func (p *Process[M, P]) feed(ev protocol.Event[M], out *protocol.Out[Envelope[M, P]]) {
	p.out.Reset()
	p.inner.Step(ev, &p.out)
	resumes := false
	for _, e := range p.out.Effects {
		switch e.Do {
		case protocol.Propose:
			if e.Arg != p.instance || !p.present && !resumes {
				panic("consensus: a proposal for another instance than the next one")
			}
			p.adopt(e.Msg)
		case protocol.Resume:
			resumes = true
			p.resume(e.Arg)
		default:
			out.Effects = append(out.Effects, protocol.Effect[Envelope[M, P]]{Act: e.Act, Msg: Envelope[M, P]{Msg: e.Msg}})
		}
	}
	if resumes {
		p.useEarly(out)
	}
}

// resume takes part from an instance on.
func (p *Process[M, P]) resume(instance uint64) {
	p.present = true
	if instance > p.instance {
		p.instance = instance
		p.clear()
	}
}

// clear forgets the instance that is over.
func (p *Process[M, P]) clear() {
	var none M
	clear(p.unfit)
	clear(p.waits)
	clear(p.told)
	p.wish, p.proposal, p.asked, p.core = false, none, p.id, nil
}

// adopt takes a proposal, if it is the first.
func (p *Process[M, P]) adopt(m M) {
	if !p.wish {
		p.wish, p.proposal = true, m
	}
}

// coordinator is the least process that is trusted.
func (p *Process[M, P]) coordinator() protocol.ID {
	for j := range p.id {
		if p.trusts(j) {
			return j
		}
	}
	return p.id
}

// begin makes the core of this instance where it is missing.
func (p *Process[M, P]) begin() Instance[M, P] {
	if p.core == nil {
		p.core = p.w.core.New(p.id, p.n)
	}
	return p.core
}

// goOn does what is to be done with a proposal: have it decided, or let the coordinator do it.
func (p *Process[M, P]) goOn(out *protocol.Out[Envelope[M, P]]) {
	if !p.wish || !p.present {
		return
	}
	switch c := p.coordinator(); {
	case c == p.id:
		p.begin().Lead(p.proposal, &p.turn)
		p.act(out)
	case c != p.asked:
		p.asked = c
		p.send(c, Envelope[M, P]{Kind: Propose, Msg: p.proposal}, out)
	}
}

// act does what the core asks for.
func (p *Process[M, P]) act(out *protocol.Out[Envelope[M, P]]) {
	t := &p.turn
	for _, e := range t.effects {
		out.Effects = append(out.Effects, protocol.Effect[Envelope[M, P]]{
			Act: e.Act, Msg: Envelope[M, P]{Kind: Part, Instance: p.instance, Part: &e.Msg},
		})
	}
	if t.lost && t.to != p.coordinator() || t.again && t.from == p.asked {
		p.asked = p.id
	}
	if t.adopts {
		p.adopt(t.proposal)
	}
	decided, value := t.decided, t.value
	*t = Turn[M, P]{Trusts: p.trusts, effects: t.effects[:0]}
	if decided {
		out.Broadcast(Envelope[M, P]{Kind: Decided, Instance: p.instance, Msg: value})
		p.decide(value, out)
	}
}

// receive takes an envelope about an instance.
func (p *Process[M, P]) receive(from protocol.ID, e Envelope[M, P], out *protocol.Out[Envelope[M, P]]) {
	switch {
	case e.Kind == Ask && p.present:
		p.compare(from, e, out)
	case !p.present: // others go on without it, and its life before, unless it resumes in time
		if e.Kind == Propose || e.Kind == Part {
			out.Send(from, Envelope[M, P]{Kind: Abstain, Instance: e.Instance})
		}
		p.store(from, e)
	case e.Instance > p.instance:
		p.store(from, e)
	case e.Instance == p.instance:
		p.use(from, e, out)
	case p.w.asks(e):
		p.remind(from, e.Instance, out)
	}
}

// compare tells a process that asks in an instance what it lacks, and sends again what it was sent
// before; or it asks that one for what is lacking here, and answers when it is there itself: it may be told
// of that decision, too, by who tells nobody else any more.
func (p *Process[M, P]) compare(from protocol.ID, e Envelope[M, P], out *protocol.Out[Envelope[M, P]]) {
	if e.Instance > p.instance {
		p.store(from, e)
		p.told[from] = false // it may have answered when it was not that far
		p.ask(from, out)
		return
	}
	if e.Instance < p.instance {
		p.remind(from, e.Instance, out)
	} else {
		p.waits[from] = true
	}
	if p.asked == from {
		p.asked = p.id
	}
	if p.core != nil {
		p.core.Repeat(from, &p.turn)
		p.act(out)
	}
	if p.coordinator() == p.id { // it may be asked for what others lack, too
		p.seek(out)
	}
	p.goOn(out)
}

// remind tells a process that lags behind what was decided from an instance on. A process that does not know
// it, because it resumed later, or any more, says so: another one may know.
func (p *Process[M, P]) remind(to protocol.ID, from uint64, out *protocol.Out[Envelope[M, P]]) {
	i := slices.IndexFunc(p.decisions, func(d decision[M]) bool { return d.instance == from })
	if i < 0 {
		out.Send(to, Envelope[M, P]{Kind: Gone, Instance: from})
		return
	}
	for _, d := range p.decisions[i:] {
		out.Send(to, Envelope[M, P]{Kind: Decided, Instance: d.instance, Msg: d.value})
	}
}

// use takes an envelope about the instance that this process takes part in.
func (p *Process[M, P]) use(from protocol.ID, e Envelope[M, P], out *protocol.Out[Envelope[M, P]]) {
	p.unfit[from] = e.Kind == Abstain || e.Kind == Gone
	switch e.Kind {
	case Propose:
		p.adopt(e.Msg)
		p.waits[from] = true
		p.giveUp(from, out) // it does not coordinate
	case Part:
		p.begin().Receive(from, *e.Part, &p.turn)
		p.act(out)
	case Decided:
		for j, waits := range p.waits {
			if waits && protocol.ID(j) != from {
				p.send(protocol.ID(j), e, out)
			}
		}
		p.news = true
		p.decide(e.Msg, out)
		return
	case Abstain:
		p.giveUp(from, out)
	case Gone: // the algorithm is to ask for more than decisions, in case nobody knows this one
		p.giveUp(from, out)
		p.ask(p.coordinator(), out)
		if !p.suspected[from] {
			p.feed(protocol.Event[M]{Input: protocol.Input{Kind: protocol.Restore, From: from}}, out)
		}
	}
	p.goOn(out)
}

// decide ends the instance.
func (p *Process[M, P]) decide(value M, out *protocol.Out[Envelope[M, P]]) {
	instance := p.instance
	p.remember(instance, value)
	p.instance++
	p.clear()
	p.feed(protocol.Event[M]{Input: protocol.NewDecide(instance), Msg: value}, out)
	p.goOn(out)
	p.useEarly(out)
}

// remember keeps a decision for those that lag behind, and the last ones before it as far as there is room.
func (p *Process[M, P]) remember(instance uint64, value M) {
	p.decisions = append(p.decisions, decision[M]{instance, value, len(p.w.alg.Append(nil, value))})
	size := 0
	for i := len(p.decisions) - 1; i >= 0; i-- {
		if size += p.decisions[i].size; i < len(p.decisions)-p.w.room.decisions || size > p.w.room.bytes && i < len(p.decisions)-1 {
			p.decisions = slices.Delete(p.decisions, 0, i+1)
			return
		}
	}
}

// store keeps an early envelope, in an order that does not depend on when it came. Where too many wait
// those of the last instances are dropped, and their senders asked when this process takes part in a later one.
func (p *Process[M, P]) store(from protocol.ID, e Envelope[M, P]) {
	key := p.key(from, e)
	at, found := slices.BinarySearchFunc(p.early, key, func(o early[M, P], key []byte) int {
		return slices.Compare(p.key(o.from, o.envelope), key)
	})
	if found {
		return
	}
	p.early = slices.Insert(p.early, at, early[M, P]{from, e, len(key)})
	size := 0
	for _, o := range p.early {
		size += o.size
	}
	for k := len(p.early) - 1; len(p.early) > p.w.room.early || size > p.w.room.bytes; k-- {
		size -= p.early[k].size
		p.missed[p.early[k].from] = true
		p.early = slices.Delete(p.early, k, k+1)
	}
}

func (p *Process[M, P]) key(from protocol.ID, e Envelope[M, P]) []byte {
	b := binary.BigEndian.AppendUint64(nil, e.Instance)
	c := new(protocol.Codec).Appending(binary.BigEndian.AppendUint64(b, uint64(from)))
	p.w.fields(e, c)
	return c.Bytes()
}

// useEarly takes the envelopes that are early no more, and asks for those that were dropped.
func (p *Process[M, P]) useEarly(out *protocol.Out[Envelope[M, P]]) {
	for len(p.early) > 0 && p.early[0].envelope.Instance <= p.instance {
		e := p.early[0]
		p.early = slices.Delete(p.early, 0, 1)
		p.receive(e.from, e.envelope, out)
		if p.suspected[e.from] { // as where a driver says so again with a message
			p.seek(out)
		}
	}
	for j, missed := range p.missed {
		if missed {
			p.missed[j] = false
			p.ask(protocol.ID(j), out)
		}
	}
}

func (p *Process[M, P]) send(to protocol.ID, e Envelope[M, P], out *protocol.Out[Envelope[M, P]]) {
	e.Instance = p.instance
	out.Send(to, e)
}

// State implements protocol.Process.
func (p *Process[M, P]) State(c *protocol.Codec) {
	c.Bools(&p.present, &p.news)
	c.Uint(&p.instance)
	c.ID(&p.asked, p.n)
	for _, list := range [...][]bool{p.suspected, p.unfit, p.waits, p.told, p.missed} {
		c.Flags(list)
	}
	p.wish = visitIf(c, p.wish, &p.proposal, &p.w.alg)
	for i := range protocol.List(c, &p.decisions) {
		d := &p.decisions[i]
		c.Uint(&d.instance)
		before, _ := c.Rest()
		protocol.Nested(c, &d.value, p.w.alg.Visit)
		if after, _ := c.Rest(); c.Reading() {
			d.size = len(before) - len(after)
		}
	}
	for i := range protocol.List(c, &p.early) {
		e := &p.early[i]
		c.ID(&e.from, p.n)
		if protocol.Nested(c, &e.envelope, p.w.fields); c.Reading() {
			e.size = len(p.key(e.from, e.envelope))
		}
	}
	begun := p.core != nil
	if c.Bool(&begun); c.Reading() {
		p.core = nil
	}
	if begun {
		p.begin().State(c)
	}
	p.inner.State(c)
}

// visitIf visits whether there is a message, and the message.
func visitIf[M any](c *protocol.Codec, there bool, m *M, alg *protocol.Algorithm[M]) bool {
	if c.Reading() {
		*m = *new(M)
	}
	if c.Bool(&there); there {
		protocol.Nested(c, m, alg.Visit)
	}
	return there
}

// Unwrap returns the algorithm's own process.
func (p *Process[M, P]) Unwrap() any { return p.inner }

// Show is the state of the algorithm's process, and where this one is in its instance.
func (p *Process[M, P]) Show() string {
	text := ""
	if s, ok := protocol.As[protocol.Shower](p.inner); ok {
		text = s.Show() + "; "
	}
	if !p.present {
		return text + "takes no part"
	}
	text += fmt.Sprintf("instance %d", p.instance)
	if p.core != nil {
		text += ", " + p.core.Show()
	}
	return text
}
