package consensus

import (
	"fmt"
	"slices"

	"github.com/poundlock/poundlock/protocol"
)

// The kinds of Envelope.
const (
	Inner   uint8 = iota // a message of the algorithm
	Propose              // a proposal, for who coordinates
	Decided              // the value is decided
	Abstain              // the sender takes no part
	Ask                  // for what was decided from this instance on, and said in it: it may be lost
	Gone                 // what was decided in this instance is not known here, or no more
	Part                 // a message of the core
)

var kinds = []protocol.Message{
	Propose: {Name: "PROPOSE"}, Decided: {Name: "DECIDED"}, Abstain: {Name: "ABSTAIN"}, Ask: {Name: "ASK"},
	Gone: {Name: "GONE"},
}

// An Envelope is a message of the algorithm, or one about an instance.
type Envelope[M, P any] struct {
	Kind     uint8
	Instance uint64
	Msg      M  // of the algorithm; or the value, of Propose and Decided
	Part     *P // of the core, of Part; frozen
}

// valued reports whether an envelope has a message or a value.
func (e Envelope[M, P]) valued() bool {
	return e.Kind == Inner || e.Kind == Propose || e.Kind == Decided
}

// A Core is a protocol that decides one instance, for an algorithm. Its functions are those of a
// protocol.Algorithm, for its messages.
type Core[M, P any] struct {
	Messages []protocol.Message
	New      func(id protocol.ID, n int) Instance[M, P]
	Fields   func(m P, c *protocol.Codec) P
	KindOf   func(m P) int
	Fits     func(m P, n int) bool // as protocol.Algorithm.Fits, which the algorithm has then
	Asks     func(m P) bool        // for an answer: a process that knows the decision tells it to who sent this
	Ints     func(m P) int
	Text     func(m P) string // without the name of its kind
}

// An Instance is what a core is at one process: where it takes part, and until the instance is
// decided.
type Instance[M, P any] interface {
	// Lead: this process coordinates, and is to have a value decided: v, unless another one may be
	// decided already. It is called again after each event while this is so.
	Lead(v M, t *Turn[M, P])
	// Receive takes a message.
	Receive(from protocol.ID, m P, t *Turn[M, P])
	// GiveUp expects nothing of j any more: it does not coordinate, may have crashed or be a new life.
	GiveUp(j protocol.ID, t *Turn[M, P])
	// Repeat sends j again what it may have to answer.
	Repeat(j protocol.ID, t *Turn[M, P])
	// State is that of a protocol.Process.
	State(c *protocol.Codec)
	// Show is the state for people.
	Show() string
}

// A Turn is what an instance can see and do in one event.
type Turn[M, P any] struct {
	// Trusts reports whether a process is not suspected, and takes part as far as is known.
	Trusts func(j protocol.ID) bool

	effects  []protocol.Effect[P]
	lost     bool
	to       protocol.ID
	again    bool
	from     protocol.ID
	adopts   bool
	proposal M
	decided  bool
	value    M
}

// Send sends m to a process.
func (t *Turn[M, P]) Send(to protocol.ID, m P) {
	t.effects = append(t.effects, protocol.Effect[P]{Act: protocol.Act{Do: protocol.Send, To: to}, Msg: m})
}

// Broadcast sends m to all others.
func (t *Turn[M, P]) Broadcast(m P) {
	t.effects = append(t.effects, protocol.Effect[P]{Act: protocol.Act{Do: protocol.Broadcast}, Msg: m})
}

// Lose says that this process no longer attempts to have a value decided, because of process to:
// who coordinates is asked again, unless it is that one. Lose to itself: because of nobody.
func (t *Turn[M, P]) Lose(to protocol.ID) { t.lost, t.to = true, to }

// Again says that process from answers an attempt of this process that is over, so that it may wait
// for it: if it coordinates it is asked again.
func (t *Turn[M, P]) Again(from protocol.ID) { t.again, t.from = true, from }

// Adopt says that this process has a proposal, if it had none.
func (t *Turn[M, P]) Adopt(v M) { t.adopts, t.proposal = true, v }

// Decide says that the instance is decided. All others are told.
func (t *Turn[M, P]) Decide(v M) { t.decided, t.value = true, v }

// A room bounds the decisions that a process remembers for those that lag behind, and the envelopes of later
// instances that wait.
type room struct {
	decisions, early int
	bytes            int // of each of them, encoded
}

var usual = room{64, 1024, 16 << 20}

// Over runs an algorithm that has Info.Consensus without such a service, over a core. It panics
// where the algorithm has no use for one.
func Over[M, P any](alg protocol.Algorithm[M], core func(*protocol.Algorithm[M]) Core[M, P]) protocol.Algorithm[Envelope[M, P]] {
	return over(alg, core, usual)
}

func over[M, P any](alg protocol.Algorithm[M], core func(*protocol.Algorithm[M]) Core[M, P], room room) protocol.Algorithm[Envelope[M, P]] {
	if !alg.Consensus {
		panic(fmt.Sprintf("consensus: %s has nothing to decide", alg.Name))
	}
	w := &wrapper[M, P]{alg: alg, room: room}
	w.core = core(&w.alg)
	out := protocol.Algorithm[Envelope[M, P]]{
		Info:   alg.Info,
		New:    w.new,
		Fields: w.fields,
		KindOf: w.kindOf,
		Ints:   w.ints,
		Text:   w.text,
		Model:  protocol.Model[Envelope[M, P]]{Moot: w.moot},
	}
	out.Consensus = false
	if alg.Fits != nil {
		out.Fits = w.fits
	}
	if alg.Snapshot != nil {
		out.Snapshot = func(e Envelope[M, P]) (object string, ok bool) {
			if e.Kind == Inner {
				object, ok = alg.Snapshot(e.Msg)
			}
			return object, ok
		}
	}
	out.Unsettled = alg.Unsettled
	out.Messages = slices.Clip(alg.Messages)
	for _, m := range slices.Concat(kinds[Propose:], w.core.Messages) {
		m.Overhead = true
		out.Messages = append(out.Messages, m)
	}
	return out
}

type wrapper[M, P any] struct {
	alg  protocol.Algorithm[M]
	core Core[M, P]
	room room
}

// asks reports whether who knows the decision is to answer with it.
func (w *wrapper[M, P]) asks(e Envelope[M, P]) bool {
	return e.Kind == Propose || e.Kind == Part && w.core.Asks(*e.Part)
}

// moot: an envelope of an instance that is over does nothing more, unless it is to be answered.
func (w *wrapper[M, P]) moot(to protocol.Process[Envelope[M, P]], from protocol.ID, e Envelope[M, P]) bool {
	p := to.(*Process[M, P])
	if e.Kind == Inner {
		return w.alg.Moot != nil && w.alg.Moot(p.inner, from, e.Msg)
	}
	return e.Instance < p.instance && e.Kind != Ask && !w.asks(e)
}

func (w *wrapper[M, P]) fields(e Envelope[M, P], c *protocol.Codec) Envelope[M, P] {
	if protocol.Upto(c, &e.Kind, Part); e.Kind != Inner {
		c.Uint(&e.Instance)
	}
	switch {
	case e.valued():
		e.Msg = w.alg.Visit(e.Msg, c)
	case e.Kind == Part:
		protocol.Nested(c, protocol.Pointer(c, &e.Part), w.core.Fields)
	}
	return e
}

// fits: what an instance is about is never proposed itself.
func (w *wrapper[M, P]) fits(e Envelope[M, P], n int, proposed bool) bool {
	switch {
	case proposed:
		return false
	case e.Kind == Part:
		return w.core.Fits(*e.Part, n)
	}
	return !e.valued() || w.alg.Fits(e.Msg, n, e.Kind != Inner)
}

func (w *wrapper[M, P]) kindOf(e Envelope[M, P]) int {
	k := len(w.alg.Messages) + int(e.Kind-Propose)
	switch e.Kind {
	case Inner:
		return w.alg.KindOf(e.Msg)
	case Part:
		return k + w.core.KindOf(*e.Part)
	}
	return k
}

func (w *wrapper[M, P]) ints(e Envelope[M, P]) int {
	k := 0
	if e.Kind != Inner {
		k++
	}
	if e.valued() {
		k += w.alg.Ints(e.Msg)
	}
	if e.Kind == Part {
		k += w.core.Ints(*e.Part)
	}
	return k
}

func (w *wrapper[M, P]) text(e Envelope[M, P]) string {
	switch {
	case e.Kind == Inner:
		return w.alg.Text(e.Msg)
	case e.Kind == Part:
		return fmt.Sprintf("%s(%d,%s)", w.core.Messages[w.core.KindOf(*e.Part)].Name, e.Instance, w.core.Text(*e.Part))
	case e.valued():
		return fmt.Sprintf("%s(%d,%s)", kinds[e.Kind].Name, e.Instance, w.alg.Text(e.Msg))
	}
	return fmt.Sprintf("%s(%d)", kinds[e.Kind].Name, e.Instance)
}
