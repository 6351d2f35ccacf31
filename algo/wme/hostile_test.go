package wme

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/wrap/consensus"
)

type frame = consensus.Frame[Message]

// Process 2 of three sends what it likes. What fits makes nobody panic, whatever it does to the object.
func TestHostile(t *testing.T) {
	for _, a := range forms {
		for seed := range uint64(300) {
			if v := lie(consensus.With(a), seed); v != nil {
				t.Fatalf("%s, seed %d: %v", a.Name, seed, v)
			}
		}
	}
}

// Each part of Fits is needed.
func TestHostileUnfit(t *testing.T) {
	vote := &Bulk{Granted: make([]uint64, 3), Lives: make([]uint64, 3)}
	for what, m := range map[string]Message{
		"a message of nobody":             {Kind: Grant, Number: 1, Who: 3},
		"an owner that is nobody":         {Kind: NewEp, More: &Bulk{Owner: 3, Granted: vote.Granted, Lives: vote.Lives}},
		"a record of nobody":              {Kind: NewEp, More: &Bulk{Records: []Record{{Number: 1, Who: 3}}, Granted: vote.Granted, Lives: vote.Lives}},
		"a request of nobody":             {Kind: NewEp, More: &Bulk{Granted: vote.Granted, Lives: vote.Lives, Requests: []Claim{{Who: 3}}}},
		"more processes":                  {Kind: NewEp, More: &Bulk{Granted: vote.Granted, Lives: make([]uint64, 4)}},
		"fewer processes":                 {Kind: NewEp, More: &Bulk{Granted: vote.Granted, Lives: make([]uint64, 2)}},
		"grants of more processes":        {Kind: Records, More: &Bulk{Granted: make([]uint64, 4)}},
		"lives with operations":           {Kind: Records, More: vote},
		"a state without operations":      {Kind: State, More: vote},
		"a state with too few operations": {Kind: State, More: &Bulk{Granted: vote.Granted, Lives: vote.Lives, Last: make([]uint64, 2)}},
	} {
		for _, f := range []frame{
			{Msg: m},
			{Kind: consensus.Propose, Msg: m},
			{Kind: consensus.Decided, Msg: m},
			{Kind: consensus.Part, Part: &consensus.Paxos[Message]{Kind: consensus.Accept, Value: m}},
		} {
			if a := consensus.With(First); a.Fits(f, 3, false) {
				t.Errorf("%s fits: %s", what, a.Text(f))
			}
		}
	}
	a := consensus.With(First)
	for _, f := range []frame{
		{Kind: consensus.Decided, Msg: Message{Kind: Request}},
		{Kind: consensus.Part, Part: &consensus.Paxos[Message]{Kind: consensus.Prepare, Ballot: consensus.Ballot{Round: 1, Leader: 3}}},
	} {
		if a.Fits(f, 3, false) {
			t.Errorf("it fits: %s", a.Text(f))
		}
	}
	a.Fits = func(frame, int, bool) bool { return true }
	for seed := range uint64(300) {
		if lie(a, seed) != nil {
			return
		}
	}
	t.Error("nobody needs Fits")
}

// lie is a run in which process 2 lies to the others. It returns what makes one of them panic.
func lie(a protocol.Algorithm[frame], seed uint64) (v any) {
	type letter struct {
		from, to protocol.ID
		msg      frame
	}
	const n = 3
	r := rand.New(rand.NewPCG(seed, 1))
	c := protocol.Config{N: n}
	procs := []protocol.Process[frame]{a.New(0, c), a.New(1, c)}
	sections := make([]protocol.Section, n)
	var letters []letter
	var step func(id protocol.ID, ev protocol.Event[frame])
	step = func(id protocol.ID, ev protocol.Event[frame]) {
		var out protocol.Out[frame]
		procs[id].Step(ev, &out)
		captures := false
		for _, e := range out.Effects {
			switch e.Do {
			case protocol.Send:
				letters = append(letters, letter{id, e.To, e.Msg})
			case protocol.Broadcast:
				letters = append(letters, letter{id, 1 - id, e.Msg})
			case protocol.Crit, protocol.Outcome:
				sections[id] = protocol.InCrit
			case protocol.Ejected:
				sections[id] = protocol.InLost
			case protocol.Rem:
				sections[id] = protocol.InRem
			case protocol.Capture:
				captures = true
			}
		}
		if captures {
			step(id, protocol.Event[frame]{Input: protocol.Input{Kind: protocol.Captured}})
		}
	}
	input := func(id protocol.ID, in protocol.Input) { step(id, protocol.Event[frame]{Input: in}) }
	defer func() {
		if p := recover(); p != nil {
			v = p
		}
	}()
	input(0, protocol.Input{Kind: protocol.Start, Arg: 1})
	input(1, protocol.Input{Kind: protocol.Start, Arg: 1 + seed%2}) // it may have come back
	for range 300 {
		id := protocol.ID(r.IntN(2))
		switch k := r.IntN(10); {
		case k < 4 && len(letters) > 0:
			l := letters[0]
			if letters = letters[1:]; l.to < 2 {
				step(l.to, protocol.Event[frame]{Input: protocol.Input{Kind: protocol.Receive, From: l.from}, Msg: l.msg})
			}
		case k < 7:
			f, rest, err := a.Read(a.Append(nil, anyFrame(r)))
			if err == nil && len(rest) == 0 && a.Fits(f, n, false) {
				step(id, protocol.Event[frame]{Input: protocol.Input{Kind: protocol.Receive, From: 2}, Msg: f})
			}
		case k == 7:
			in := protocol.Input{Kind: protocol.Suspect, From: (id + 1 + protocol.ID(r.IntN(2))) % n}
			if r.IntN(2) == 0 {
				in.Kind, in.Arg = protocol.Restore, 1
			}
			input(id, in)
		case sections[id] == protocol.InRem:
			sections[id] = protocol.InTry
			input(id, protocol.Input{Kind: protocol.Try})
		case sections[id] == protocol.InCrit && r.IntN(2) == 0:
			sections[id] = protocol.InIssue
			input(id, protocol.Input{Kind: protocol.Issue, Data: "x"})
		case sections[id] == protocol.InCrit || sections[id] == protocol.InLost:
			input(id, protocol.Input{Kind: protocol.Exit})
		}
	}
	return nil
}

// anyFrame is a message with small numbers. Some of its ids and lengths are of a larger system.
func anyFrame(r *rand.Rand) frame {
	number := func() uint64 {
		if r.IntN(50) == 0 {
			return ^uint64(0)
		}
		return r.Uint64N(6)
	}
	size := func() int { // 3, mostly
		if r.IntN(100) == 0 {
			return 5
		}
		return 3
	}
	who := func() protocol.ID { return protocol.ID(r.IntN(size())) }
	list := func(k int) (list []uint64) {
		for range k {
			list = append(list, number())
		}
		return list
	}
	kind := func() uint8 { return uint8(r.IntN(len(messages))) }
	message := func(kind uint8) Message {
		m := Message{Kind: kind, Epoch: number(), Number: number(), Done: number(), Who: who(), ID: number(), Op: "y"}
		if kind == NewEp || kind == Records || kind == State {
			m.More = &Bulk{Owner: who(), Granted: list(size()), Requests: []Claim{{who(), number()}}}
			if kind != Records {
				m.More.Lives = list(size())
			}
			if kind == State {
				m.More.Last = list(size())
			}
			for k, at := 0, uint64(0); k < r.IntN(4); k++ {
				before := number()
				at += 1 + r.Uint64N(3)
				m.More.Records = append(m.More.Records, Record{Number: at, Before: before, Who: who(), ID: number(), Op: fmt.Sprint(at)})
			}
		}
		return m
	}
	value := func() Message {
		if r.IntN(50) == 0 {
			return message(kind())
		}
		return message(NewEp)
	}
	ballot := func() consensus.Ballot { return consensus.Ballot{Round: 1 + r.Uint64N(3), Leader: who()} }
	f := frame{Kind: uint8(r.IntN(int(consensus.Part) + 1)), Instance: number()}
	switch f.Kind {
	case consensus.Inner:
		f.Msg = message(kind())
	case consensus.Propose, consensus.Decided:
		f.Msg = value()
	case consensus.Part:
		f.Part = &consensus.Paxos[Message]{Kind: uint8(r.IntN(int(consensus.Refuse) + 1)), Ballot: ballot(), Last: ballot(), Value: value()}
	}
	return f
}
