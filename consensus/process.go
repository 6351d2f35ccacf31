package consensus

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/poundlock/poundlock/protocol"
)

// A Process is one of an algorithm, and an acceptor, proposer and learner beside it.
type Process[M any] struct {
	w     *wrapper[M]
	inner protocol.Process[M]
	out   protocol.Out[M] // of inner
	id    protocol.ID
	n     int

	present   bool   // takes part: a later life does not before it resumes
	instance  uint64 // the one that it takes part in
	suspected []bool
	unfit     []bool // by process: takes no part in this instance, as it says
	wish      bool   // somebody has a proposal for this instance:
	proposal  M
	promised  Ballot      // takes part in no smaller ballot
	accepted  Ballot      // none: nothing
	value     M           // accepted
	asked     protocol.ID // who was sent the proposal last; this process: nobody
	ahead     protocol.ID // whose larger ballot this one waits for; this process: nobody's
	round     uint64      // the largest one of a ballot that it knows of

	ballot   Ballot // its own, which is under way; none: it has none
	answers  []bool // by process: of this ballot, promised or accepted
	choosing bool   // it has no majority of promises yet
	best     Ballot // the largest one that they have accepted
	choice   M      // the value of the ballot

	decisions []decision[M] // the last ones
	early     []early[M]    // frames of later instances
}

// A decision is what some instance ended with.
type decision[M any] struct {
	instance uint64
	value    M
}

// An early frame is one of a later instance.
type early[M any] struct {
	from  protocol.ID
	frame Frame[M]
}

func (w *wrapper[M]) new(id protocol.ID, c protocol.Config) protocol.Process[Frame[M]] {
	return &Process[M]{
		w: w, inner: w.alg.New(id, c), id: id, n: c.N,
		asked: id, ahead: id, suspected: make([]bool, c.N), unfit: make([]bool, c.N), answers: make([]bool, c.N),
	}
}

// Algorithm is the process of the algorithm alone.
func Algorithm[M any](p protocol.Process[Frame[M]]) protocol.Process[M] { return p.(*Process[M]).inner }

// Step implements protocol.Process.
func (p *Process[M]) Step(ev protocol.Event[Frame[M]], out *protocol.Out[Frame[M]]) {
	if ev.Kind == protocol.Receive && ev.Msg.Kind != Inner {
		p.receive(ev.From, ev.Msg, out)
		return
	}
	switch ev.Kind {
	case protocol.Start:
		p.present = ev.Arg <= 1
	case protocol.Suspect:
		p.suspected[ev.From] = true
		p.giveUp(ev.From)
		p.ask(out)
	case protocol.Restore:
		p.suspected[ev.From], p.unfit[ev.From] = false, false
		p.giveUp(ev.From)
		p.repeat(ev.From, out)
	}
	p.feed(protocol.Event[M]{Input: ev.Input, Msg: ev.Msg.Msg}, out)
	p.turn(out)
}

// giveUp expects nothing of a process any more: it may have crashed, or be a new life.
func (p *Process[M]) giveUp(j protocol.ID) {
	if p.asked == j {
		p.asked = p.id
	}
	if p.ahead == j {
		p.ahead = p.id
	}
}

// repeat makes up for what a process may have lost, or this one of what it has sent: their session
// may have ended.
func (p *Process[M]) repeat(j protocol.ID, out *protocol.Out[Frame[M]]) {
	p.ask(out)
	switch {
	case p.ballot == Ballot{} || p.answers[j]:
	case p.choosing:
		p.send(j, Frame[M]{Kind: Prepare, Ballot: p.ballot}, out)
	default:
		p.send(j, Frame[M]{Kind: Accept, Ballot: p.ballot, Msg: p.choice}, out)
	}
}

// ask asks all others what was decided: of a decision that this process should have heard of from
// one whose session has ended, some may have heard.
func (p *Process[M]) ask(out *protocol.Out[Frame[M]]) {
	if p.present {
		p.broadcast(Frame[M]{Kind: Ask}, out)
	}
}

// feed gives the algorithm an event.
func (p *Process[M]) feed(ev protocol.Event[M], out *protocol.Out[Frame[M]]) {
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
			out.Effects = append(out.Effects, protocol.Effect[Frame[M]]{Act: e.Act, Msg: Frame[M]{Msg: e.Msg}})
		}
	}
	if resumes {
		p.useEarly(out)
	}
}

// resume takes part from an instance on.
func (p *Process[M]) resume(instance uint64) {
	p.present = true
	if instance > p.instance {
		p.instance = instance
		p.clear()
	}
}

// clear forgets the instance that is over.
func (p *Process[M]) clear() {
	var none M
	clear(p.unfit)
	clear(p.answers)
	p.wish, p.proposal, p.value, p.choice = false, none, none, none
	p.promised, p.accepted, p.ballot, p.best, p.round, p.choosing = Ballot{}, Ballot{}, Ballot{}, Ballot{}, 0, false
	p.asked, p.ahead = p.id, p.id
}

// adopt takes a proposal, if it is the first.
func (p *Process[M]) adopt(m M) {
	if !p.wish {
		p.wish, p.proposal = true, m
	}
}

// coordinator is the least process that is trusted, and takes part as far as is known.
func (p *Process[M]) coordinator() protocol.ID {
	for j := range protocol.ID(p.n) {
		if j == p.id || !p.suspected[j] && !p.unfit[j] {
			return j
		}
	}
	return p.id
}

// turn does what is to be done with a proposal: make a ballot, or let the coordinator do it.
func (p *Process[M]) turn(out *protocol.Out[Frame[M]]) {
	if !p.wish || !p.present {
		return
	}
	switch c := p.coordinator(); {
	case c == p.id && p.ballot == Ballot{} && p.ahead == p.id:
		p.begin(out)
	case c != p.id && c != p.asked:
		p.asked = c
		p.send(c, Frame[M]{Kind: Propose, Msg: p.proposal}, out)
	}
}

// begin begins a ballot larger than all that are known.
func (p *Process[M]) begin(out *protocol.Out[Frame[M]]) {
	p.round = max(p.round, p.promised.Round) + 1
	p.ballot, p.choosing = Ballot{Round: p.round, Leader: p.id}, true
	clear(p.answers)
	p.promised = p.ballot
	p.best, p.choice = p.accepted, p.value
	p.broadcast(Frame[M]{Kind: Prepare, Ballot: p.ballot}, out)
	p.count(p.id, out)
}

// count counts an answer to the ballot, and goes on with a majority.
func (p *Process[M]) count(from protocol.ID, out *protocol.Out[Frame[M]]) {
	p.answers[from] = true
	k := 0
	for _, yes := range p.answers {
		if yes {
			k++
		}
	}
	if 2*k <= p.n {
		return
	}
	if !p.choosing {
		f := Frame[M]{Kind: Decided, Msg: p.choice}
		p.broadcast(f, out)
		p.decide(f.Msg, out)
		return
	}
	if p.best == (Ballot{}) {
		p.choice = p.proposal
	}
	p.choosing = false
	clear(p.answers)
	p.accepted, p.value = p.ballot, p.choice
	p.broadcast(Frame[M]{Kind: Accept, Ballot: p.ballot, Msg: p.choice}, out)
	p.count(p.id, out)
}

// receive takes a frame about an instance.
func (p *Process[M]) receive(from protocol.ID, f Frame[M], out *protocol.Out[Frame[M]]) {
	asks := f.Kind == Ask || f.Kind == Propose || f.Kind == Prepare || f.Kind == Accept
	switch {
	case !p.present: // others go on without it, and its life before, unless it resumes in time
		if f.Kind < Decided {
			out.Send(from, Frame[M]{Kind: Abstain, Instance: f.Instance})
		}
		p.store(early[M]{from, f})
	case f.Kind == Ask && f.Instance > p.instance:
		p.send(from, Frame[M]{Kind: Ask}, out)
	case f.Kind == Ask && f.Instance == p.instance: // it knows as much
	case f.Instance > p.instance:
		p.store(early[M]{from, f})
	case f.Instance == p.instance:
		p.use(from, f, out)
	case asks:
		p.remind(from, f.Instance, out)
	}
}

// remind tells a process that lags behind what was decided from an instance on. Who does not know
// it, because it resumed later, or any more, takes no part: another one may know.
func (p *Process[M]) remind(to protocol.ID, from uint64, out *protocol.Out[Frame[M]]) {
	i := slices.IndexFunc(p.decisions, func(d decision[M]) bool { return d.instance == from })
	if i < 0 {
		out.Send(to, Frame[M]{Kind: Gone, Instance: from})
		return
	}
	for _, d := range p.decisions[i:] {
		out.Send(to, Frame[M]{Kind: Decided, Instance: d.instance, Msg: d.value})
	}
}

// use takes a frame about the instance that this process takes part in.
func (p *Process[M]) use(from protocol.ID, f Frame[M], out *protocol.Out[Frame[M]]) {
	switch f.Kind {
	case Propose:
		p.adopt(f.Msg)
		p.giveUp(from) // it does not coordinate
		p.turn(out)
	case Prepare, Accept:
		p.answer(from, f, out)
	case Promise:
		if f.Ballot == p.ballot && p.choosing {
			if p.best.Before(f.Last) {
				p.best, p.choice = f.Last, f.Msg
			}
			p.count(from, out)
		}
	case Accepted:
		if f.Ballot == p.ballot && !p.choosing {
			p.count(from, out)
		}
	case Refuse:
		p.round = max(p.round, f.Last.Round)
		if f.Ballot == p.ballot {
			p.yield(f.Last.Leader, out)
			p.urge(out)
		}
	case Decided:
		p.decide(f.Msg, out)
	case Abstain, Gone:
		p.unfit[from] = true
		p.giveUp(from)
		if f.Kind == Gone && !p.suspected[from] { // the algorithm is to ask for more than decisions
			p.feed(protocol.Event[M]{Input: protocol.Input{Kind: protocol.Restore, From: from}}, out)
		}
		p.turn(out)
	}
}

// yield ends the own ballot for a larger one: that of a process that is trusted goes first, for
// otherwise two could refuse each other for ever.
func (p *Process[M]) yield(to protocol.ID, out *protocol.Out[Frame[M]]) {
	p.ballot, p.ahead = Ballot{}, p.id
	if !p.suspected[to] && !p.unfit[to] {
		p.ahead = to
	}
	p.turn(out)
}

// urge gives the proposal to the process that this one waits for: if that has ended its ballot, it
// lets this one know.
func (p *Process[M]) urge(out *protocol.Out[Frame[M]]) {
	if p.ahead != p.id && p.wish {
		p.send(p.ahead, Frame[M]{Kind: Propose, Msg: p.proposal}, out)
	}
}

// answer is what an acceptor does.
func (p *Process[M]) answer(from protocol.ID, f Frame[M], out *protocol.Out[Frame[M]]) {
	if f.Ballot.Before(p.promised) {
		p.send(from, Frame[M]{Kind: Refuse, Ballot: f.Ballot, Last: p.promised}, out)
		return
	}
	p.promised = f.Ballot // this holds for its own ballot, too
	p.yield(from, out)
	if f.Kind == Prepare {
		p.send(from, Frame[M]{Kind: Promise, Ballot: f.Ballot, Last: p.accepted, Msg: p.value}, out)
		return
	}
	p.accepted, p.value = f.Ballot, f.Msg
	p.send(from, Frame[M]{Kind: Accepted, Ballot: f.Ballot}, out)
}

// decide ends the instance.
func (p *Process[M]) decide(value M, out *protocol.Out[Frame[M]]) {
	instance := p.instance
	if p.decisions = append(p.decisions, decision[M]{instance, value}); len(p.decisions) > keep {
		p.decisions = slices.Delete(p.decisions, 0, 1)
	}
	p.instance++
	p.clear()
	p.feed(protocol.Event[M]{Input: protocol.Input{Kind: protocol.Decide, Arg: instance}, Msg: value}, out)
	p.turn(out)
	p.useEarly(out)
}

// maxEarly bounds the frames of later instances that wait. A process that lags so much is told
// the state by the algorithm.
const maxEarly = 1024

// store keeps an early frame, in an order that does not depend on when it came.
func (p *Process[M]) store(e early[M]) {
	at, found := slices.BinarySearchFunc(p.early, e, func(a, b early[M]) int {
		return slices.Compare(p.key(a), p.key(b))
	})
	if !found && len(p.early) < maxEarly {
		p.early = slices.Insert(p.early, at, e)
	}
}

func (p *Process[M]) key(e early[M]) []byte {
	b := binary.BigEndian.AppendUint64(nil, e.frame.Instance)
	return p.w.append(append(b, byte(e.from)), e.frame)
}

// useEarly takes the frames that are early no more.
func (p *Process[M]) useEarly(out *protocol.Out[Frame[M]]) {
	for len(p.early) > 0 && p.early[0].frame.Instance <= p.instance {
		e := p.early[0]
		p.early = slices.Delete(p.early, 0, 1)
		p.receive(e.from, e.frame, out)
	}
}

func (p *Process[M]) send(to protocol.ID, f Frame[M], out *protocol.Out[Frame[M]]) {
	f.Instance = p.instance
	out.Send(to, f)
}

func (p *Process[M]) broadcast(f Frame[M], out *protocol.Out[Frame[M]]) {
	f.Instance = p.instance
	out.Broadcast(f)
}

// AppendState implements protocol.Process.
func (p *Process[M]) AppendState(b []byte) []byte {
	b = protocol.AppendBool(b, p.present)
	b = binary.AppendUvarint(binary.AppendUvarint(binary.AppendUvarint(b, p.instance), uint64(p.asked)), p.round)
	b = binary.AppendUvarint(b, uint64(p.ahead))
	for _, list := range [][]bool{p.suspected, p.unfit, p.answers} {
		for _, v := range list {
			b = protocol.AppendBool(b, v)
		}
	}
	b = protocol.AppendBool(b, p.choosing)
	for _, v := range []Ballot{p.promised, p.accepted, p.ballot, p.best} {
		b = v.Append(b)
	}
	b = p.w.appendIf(b, p.wish, p.proposal)
	b = p.w.appendIf(b, p.accepted != Ballot{}, p.value)
	b = p.w.appendIf(b, p.chosen(), p.choice)
	b = binary.AppendUvarint(b, uint64(len(p.decisions)))
	for _, d := range p.decisions {
		b = p.w.alg.Append(binary.AppendUvarint(b, d.instance), d.value)
	}
	b = binary.AppendUvarint(b, uint64(len(p.early)))
	for _, e := range p.early {
		b = p.w.append(binary.AppendUvarint(b, uint64(e.from)), e.frame)
	}
	return p.inner.AppendState(b)
}

// chosen reports whether the ballot under way has a value.
func (p *Process[M]) chosen() bool {
	return p.ballot != Ballot{} && (!p.choosing || p.best != Ballot{})
}

func (w *wrapper[M]) appendIf(b []byte, present bool, m M) []byte {
	if b = protocol.AppendBool(b, present); present {
		b = w.alg.Append(b, m)
	}
	return b
}

// LoadState implements protocol.Process.
func (p *Process[M]) LoadState(b []byte) ([]byte, error) {
	r := protocol.Reader{Rest: b}
	p.present, p.instance, p.asked, p.round = r.Bool(), r.Uint(), protocol.ID(r.Max(uint64(p.n-1))), r.Uint()
	p.ahead = protocol.ID(r.Max(uint64(p.n - 1)))
	for _, list := range [][]bool{p.suspected, p.unfit, p.answers} {
		for i := range list {
			list[i] = r.Bool()
		}
	}
	p.choosing = r.Bool()
	for _, v := range []*Ballot{&p.promised, &p.accepted, &p.ballot, &p.best} {
		*v = r.Epoch(protocol.ID(p.n - 1))
	}
	p.wish, p.proposal = p.w.readIf(&r)
	_, p.value = p.w.readIf(&r)
	_, p.choice = p.w.readIf(&r)
	p.decisions = p.decisions[:0]
	for range r.Len() {
		p.decisions = append(p.decisions, decision[M]{r.Uint(), readWith(&r, p.w.alg.Read)})
	}
	p.early = p.early[:0]
	for range r.Len() {
		p.early = append(p.early, early[M]{protocol.ID(r.Max(uint64(p.n - 1))), readWith(&r, p.w.read)})
	}
	if r.Err != nil {
		return nil, r.Err
	}
	return p.inner.LoadState(r.Rest)
}

func (w *wrapper[M]) readIf(r *protocol.Reader) (present bool, m M) {
	if present = r.Bool(); present {
		m = readWith(r, w.alg.Read)
	}
	return present, m
}

func readWith[T any](r *protocol.Reader, read func([]byte) (T, []byte, error)) (v T) {
	if r.Err == nil {
		v, r.Rest, r.Err = read(r.Rest)
	}
	return v
}

// show is the state of the algorithm's process, and where this one is in its instance.
func (w *wrapper[M]) show(q protocol.Process[Frame[M]]) string {
	p := q.(*Process[M])
	text := ""
	if w.alg.Show != nil {
		text = w.alg.Show(p.inner) + "; "
	}
	switch {
	case !p.present:
		return text + "takes no part"
	case p.ballot != Ballot{}:
		return fmt.Sprintf("%sinstance %d, ballot %s", text, p.instance, p.ballot.Text())
	}
	return fmt.Sprintf("%sinstance %d, promised %s", text, p.instance, p.promised.Text())
}
