package consensus

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/poundlock/poundlock/protocol"
)

// The kinds of Frame.
const (
	Inner    uint8 = iota // a message of the algorithm
	Propose               // a proposal, for who coordinates
	Prepare               // a ballot begins
	Promise               // no smaller ballot is taken part in; with what was accepted in Last, if that is one
	Accept                // the value of a ballot
	Accepted              // it is accepted
	Refuse                // a larger ballot was promised: Last
	Decided               // the value is decided
	Abstain               // the sender takes no part
	Ask                   // what was decided from this instance on
	Gone                  // that is not known here any more
)

var kinds = []protocol.Message{
	Propose: {Name: "PROPOSE"}, Prepare: {Name: "PREPARE"}, Promise: {Name: "PROMISE"}, Accept: {Name: "ACCEPT"},
	Accepted: {Name: "ACCEPTED"}, Refuse: {Name: "REFUSE"}, Decided: {Name: "DECIDED"}, Abstain: {Name: "ABSTAIN"},
	Ask: {Name: "ASK"}, Gone: {Name: "GONE"},
}

// A Ballot is one attempt to decide, of the process that leads it.
type Ballot = protocol.Epoch

// A Frame is a message of the algorithm, or one about an instance.
type Frame[M any] struct {
	Kind     uint8
	Instance uint64
	Ballot   Ballot
	Last     Ballot
	Msg      M // of the algorithm; or the value, of Propose, Accept, Decided, and Promise where Last is one
}

// valued reports whether a frame has a message or a value.
func (f Frame[M]) valued() bool {
	switch f.Kind {
	case Inner, Propose, Accept, Decided:
		return true
	case Promise:
		return f.Last != Ballot{}
	}
	return false
}

// keep is how many decisions a process remembers for those that lag behind.
const keep = 64

// With runs an algorithm that has Info.Consensus without such a service. It panics where the
// algorithm has no use for one.
func With[M any](alg protocol.Algorithm[M]) protocol.Algorithm[Frame[M]] {
	if !alg.Consensus {
		panic(fmt.Sprintf("consensus: %s has nothing to decide", alg.Name))
	}
	w := &wrapper[M]{alg}
	out := protocol.Algorithm[Frame[M]]{
		Info:   alg.Info,
		New:    w.new,
		Append: w.append,
		Read:   w.read,
		KindOf: w.kindOf,
		Ints:   w.ints,
		Text:   w.text,
		Show:   w.show,
	}
	out.Consensus = false
	if alg.Unsettled != nil {
		out.Unsettled = func(procs []protocol.Process[Frame[M]]) int {
			inner := make([]protocol.Process[M], len(procs))
			for id, p := range procs {
				if p != nil {
					inner[id] = Algorithm(p)
				}
			}
			return alg.Unsettled(inner)
		}
	}
	for _, m := range kinds[Propose:] {
		m.Overhead = true
		out.Messages = append(slices.Clip(out.Messages), m)
	}
	return out
}

type wrapper[M any] struct{ alg protocol.Algorithm[M] }

func (w *wrapper[M]) append(b []byte, f Frame[M]) []byte {
	b = append(b, f.Kind)
	if f.Kind != Inner {
		b = binary.AppendUvarint(b, f.Instance)
		b = f.Last.Append(f.Ballot.Append(b))
	}
	if f.valued() {
		b = w.alg.Append(b, f.Msg)
	}
	return b
}

func (w *wrapper[M]) read(b []byte) (f Frame[M], rest []byte, err error) {
	r := protocol.Reader{Rest: b}
	if f.Kind = uint8(r.Max(uint64(Gone))); f.Kind != Inner {
		f.Instance = r.Uint()
		f.Ballot, f.Last = r.Epoch(^protocol.ID(0)), r.Epoch(^protocol.ID(0))
	}
	if r.Err == nil && f.valued() {
		f.Msg, r.Rest, r.Err = w.alg.Read(r.Rest)
	}
	return f, r.Rest, r.Err
}

func (w *wrapper[M]) kindOf(f Frame[M]) int {
	if f.Kind == Inner {
		return w.alg.KindOf(f.Msg)
	}
	return len(w.alg.Messages) + int(f.Kind-Propose)
}

func (w *wrapper[M]) ints(f Frame[M]) int {
	k := 0
	if f.Kind != Inner {
		k = 5
	}
	if f.valued() {
		k += w.alg.Ints(f.Msg)
	}
	return k
}

func (w *wrapper[M]) text(f Frame[M]) string {
	if f.Kind == Inner {
		return w.alg.Text(f.Msg)
	}
	text := fmt.Sprintf("%s(%d,%s", kinds[f.Kind].Name, f.Instance, f.Ballot.Text())
	if f.Last != (Ballot{}) {
		text += "," + f.Last.Text()
	}
	if f.valued() {
		text += "," + w.alg.Text(f.Msg)
	}
	return text + ")"
}
