package consensus

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/poundlock/poundlock/algotest"
	"github.com/poundlock/poundlock/consensus/consensustest"
	"github.com/poundlock/poundlock/protocol"
)

type (
	frame     = Frame[uint64]
	message   = Paxos[uint64]
	turn      = Turn[uint64, message]
	algorithm = protocol.Algorithm[uint64]
	process   = Process[uint64, message]
)

func TestConformance(t *testing.T) {
	consensustest.Run(t, consensustest.Service[frame]{
		With:     With[uint64],
		Bare:     Algorithm[uint64, message],
		Instance: func(f frame) (uint64, bool) { return f.Instance, f.Kind == Part },
		Broken: []consensustest.Broken[frame]{
			{Name: "who comes back is who it was", Want: consensustest.Agreement, Amnesia: true, Seed: 1700},
			{Name: "promises are forgotten", Want: consensustest.Agreement, Seed: 50, With: broken(mistake{
				before: func(p *synod[uint64], m *message) {
					if m.Kind == Accept {
						p.promised = Ballot{}
					}
				},
			})},
			{Name: "what was accepted is forgotten", Want: consensustest.Agreement, Seed: 550, With: broken(mistake{
				before: func(p *synod[uint64], m *message) {
					if m.Kind == Prepare {
						p.accepted = Ballot{}
					}
				},
			})},
			{Name: "what others have accepted is ignored", Want: consensustest.Agreement, Seed: 550, With: broken(mistake{
				before: func(_ *synod[uint64], m *message) {
					if m.Kind == Promise {
						m.Last = Ballot{}
					}
				},
			})},
			{Name: "agreement of correct processes only", Want: consensustest.Agreement, With: hasten},
			{Name: "takes part before it resumes", Want: consensustest.Participation, With: intrude},
			{Name: "one waits for ever", Want: consensustest.Termination, With: broken(mistake{faithful: true})},
			{Name: "what is lost is lost", Want: consensustest.Termination, With: broken(mistake{terse: true})},
		},
	})
}

// A mistake is what is wrong with an instance of Paxos.
type mistake struct {
	before          func(p *synod[uint64], m *message) // of what it receives
	after           func(p *synod[uint64], t *turn)
	faithful, terse bool
}

func broken(e mistake) func(algorithm) protocol.Algorithm[frame] {
	return func(alg algorithm) protocol.Algorithm[frame] {
		core := paxos[uint64]()
		made := core.New
		core.New = func(alg algorithm, id protocol.ID, n int) Instance[uint64, message] {
			return &mistaken{made(alg, id, n).(*synod[uint64]), e}
		}
		return Over(alg, core)
	}
}

type mistaken struct {
	*synod[uint64]
	mistake
}

func (p *mistaken) Receive(from protocol.ID, m message, t *turn) {
	if p.before != nil {
		p.before(p.synod, &m)
	}
	p.synod.Receive(from, m, t)
	if p.after != nil {
		p.after(p.synod, t)
	}
}

func (p *mistaken) GiveUp(j protocol.ID, t *turn) {
	if !p.faithful {
		p.synod.GiveUp(j, t)
	}
}

func (p *mistaken) Repeat(j protocol.ID, t *turn) {
	if !p.terse {
		p.synod.Repeat(j, t)
	}
}

// Process 0 coordinates, and waits for the ballot of 1, which was begun when 1 suspected 0, and which 3
// refuses for one of 2, which crashed. It goes on because 1 says so; and again, where 1 has said so
// before its ballot came to 0.
func TestLostBallot(t *testing.T) {
	silent := broken(mistake{after: func(_ *synod[uint64], t *turn) { t.lost = false }})
	hasty := broken(mistake{after: func(_ *synod[uint64], t *turn) { t.again = false }})
	for _, c := range []struct {
		name  string
		with  func(algorithm) protocol.Algorithm[frame]
		early bool // 1 has said so before
		want  int  // processes that hear of a decision
	}{
		{"right", With[uint64], false, 3},
		{"right, early", With[uint64], true, 3},
		{"who lost is silent", silent, false, 0},
		{"who lost does not say so again", hasty, true, 0},
	} {
		decided := 0
		s := algotest.NewSystem(c.with(proposers(&decided)), protocol.Config{N: 4}, 0)
		suspect := func(a, b protocol.ID) { s.Step(a, protocol.Input{Kind: protocol.Suspect, From: b}) }
		get := func(from, to protocol.ID, kind uint8) {
			for k, f := range s.InFlight(from, to) {
				if f.Kind == kind || f.Part != nil && kind == Part+1+f.Part.Kind {
					s.Deliver(from, to, k)
					return
				}
			}
			t.Fatalf("%s: no message %d is on its way from %d to %d", c.name, kind, from, to)
		}
		const prepare, promise, refuse = Part + 1 + Prepare, Part + 1 + Promise, Part + 1 + Refuse
		proposals := func() {
			for slices.ContainsFunc(s.InFlight(1, 0), func(f frame) bool { return f.Kind == Propose }) {
				get(1, 0, Propose)
			}
		}
		suspect(2, 0)
		suspect(2, 1) // 2 coordinates
		get(2, 3, prepare)
		suspect(1, 0) // 1 does, too
		s.Step(1, protocol.Input{Kind: protocol.Restore, From: 0})
		proposals()
		if !c.early {
			get(1, 0, prepare)
			get(0, 1, promise)
		}
		get(1, 3, prepare)
		get(3, 1, refuse)
		if c.early {
			proposals()
			get(1, 0, prepare)
		}
		s.Crash(2) // and nobody else hears of its ballot
		for to := range protocol.ID(4) {
			for len(s.InFlight(2, to)) > 0 {
				s.Drop(2, to, 0)
			}
		}
		for _, a := range []protocol.ID{0, 1, 3} {
			suspect(a, 2)
		}
		s.Settle()
		if decided != c.want {
			t.Errorf("%s: %d processes hear of a decision, want %d", c.name, decided, c.want)
		}
	}
}

// Process 2 has not heard of decision 0, and asks process 0, which came back and resumed after it: that
// one says so, and 2 asks 1, which knows. Its algorithm hears Restore, in case nobody knew.
func TestGone(t *testing.T) {
	for _, said := range []bool{true, false} {
		decided, restored := 0, 0
		a := proposers(&decided)
		made := a.New
		a.New = func(id protocol.ID, c protocol.Config) protocol.Process[uint64] {
			return &listener{made(id, c), &restored}
		}
		s := algotest.NewSystem(With(a), protocol.Config{N: 3}, 0)
		drop := func(from, to protocol.ID, kind uint8) {
			for k := len(s.InFlight(from, to)) - 1; k >= 0; k-- {
				if f := s.InFlight(from, to)[k]; f.Kind == kind || kind == Inner {
					s.Drop(from, to, k)
				}
			}
		}
		s.Crash(0)
		drop(0, 1, Inner)
		drop(0, 2, Inner)
		s.Step(2, protocol.Input{Kind: protocol.Suspect, From: 0})
		s.Step(1, protocol.Input{Kind: protocol.Suspect, From: 0})
		for decided == 0 {
			for _, ch := range []protocol.Channel{{From: 1, To: 2}, {From: 2, To: 1}} {
				if len(s.InFlight(ch.From, ch.To)) > 0 {
					s.Deliver(ch.From, ch.To, 0)
				}
			}
		}
		drop(1, 2, Decided)
		s.Recover(0, 2)
		s.Step(0, protocol.Input{Kind: protocol.Captured})
		s.Step(2, protocol.Input{Kind: protocol.Restore, From: 0})
		for len(s.InFlight(2, 0)) > 0 {
			s.Deliver(2, 0, 0)
		}
		if !said {
			drop(0, 2, Gone)
		}
		s.Settle()
		want, heard := 1, 1
		if said {
			want, heard = 2, 2
		}
		if decided != want || restored < heard || !said && restored > heard {
			t.Errorf("said: %v: %d processes hear of the decision, and Restore comes %d times; want %d and %d", said, decided, restored, want, heard)
		}
	}
}

// A listener counts Restore.
type listener struct {
	protocol.Process[uint64]
	restored *int
}

func (p *listener) Step(ev protocol.Event[uint64], out *protocol.Out[uint64]) {
	if ev.Kind == protocol.Restore {
		*p.restored++
	}
	p.Process.Step(ev, out)
}

// A proposer proposes a value, and counts whether it is decided. One that came back resumes with
// instance 1.
type proposer struct {
	id      protocol.ID
	decided *int
}

func proposers(decided *int) algorithm {
	a := values
	a.New = func(id protocol.ID, _ protocol.Config) protocol.Process[uint64] { return &proposer{id, decided} }
	return a
}

func (p *proposer) Step(ev protocol.Event[uint64], out *protocol.Out[uint64]) {
	switch {
	case ev.Kind == protocol.Start && ev.Arg <= 1:
		out.Propose(0, uint64(p.id))
	case ev.Kind == protocol.Captured:
		out.Resume(1)
	case ev.Kind == protocol.Decide:
		*p.decided++
	}
}

func (p *proposer) AppendState(b []byte) []byte { return b }

func (p *proposer) LoadState(b []byte) ([]byte, error) { return b, nil }

// Around is a process around one of Paxos.
type around struct{ protocol.Process[frame] }

func (p around) Bare() protocol.Process[frame] { return p.Process }

// A hasty process hears of its own value as soon as it asks others to accept it, and crashes. Those
// that are left agree.
type hasty struct {
	around
	dead bool
}

func hasten(alg algorithm) protocol.Algorithm[frame] {
	out := With(alg)
	out.New = func(id protocol.ID, c protocol.Config) protocol.Process[frame] {
		return &hasty{around: around{With(alg).New(id, c)}}
	}
	return out
}

func (p *hasty) Dead() bool { return p.dead }

func (p *hasty) Step(ev protocol.Event[frame], out *protocol.Out[frame]) {
	p.Process.Step(ev, out)
	for _, e := range out.Effects {
		if m := e.Msg.Part; m != nil && m.Kind == Accept && e.Msg.Instance == 1 && !p.dead {
			p.dead = true
			decision := protocol.Input{Kind: protocol.Decide, Arg: e.Msg.Instance}
			Algorithm(p.Process).Step(protocol.Event[uint64]{Input: decision, Msg: m.Value}, &protocol.Out[uint64]{})
		}
	}
	if p.dead {
		out.Reset()
	}
}

// An intruder takes part at once when it comes back.
type intruder struct{ around }

func intrude(alg algorithm) protocol.Algorithm[frame] {
	out := With(alg)
	out.New = func(id protocol.ID, c protocol.Config) protocol.Process[frame] {
		return intruder{around{With(alg).New(id, c)}}
	}
	return out
}

func (p intruder) Step(ev protocol.Event[frame], out *protocol.Out[frame]) {
	p.Process.(*process).present = true
	p.Process.Step(ev, out)
}

// What is written is read back, and nothing else is.
func TestCodec(t *testing.T) {
	a := With(values)
	frames := []frame{
		{Msg: 5},
		{Kind: Propose, Instance: 7, Msg: 5},
		{Kind: Decided, Instance: 7, Msg: 5},
		{Kind: Abstain, Instance: 7},
		{Kind: Ask, Instance: 7},
		{Kind: Gone, Instance: 7},
	}
	for kind := Prepare; kind <= Refuse; kind++ {
		m := message{Kind: kind, Ballot: Ballot{Round: 3, Leader: 2}, Last: Ballot{Round: 1}}
		if m.valued() {
			m.Value = 5
		}
		frames = append(frames, frame{Kind: Part, Instance: 7, Part: &m})
	}
	for _, f := range frames {
		b := a.Append(nil, f)
		if got, rest, err := a.Read(b); err != nil || !reflect.DeepEqual(got, f) || len(rest) > 0 {
			t.Errorf("%+v is read back as %+v, %v", f, got, err)
		}
		for k := range b {
			if _, _, err := a.Read(b[:k]); err == nil {
				t.Errorf("%d bytes of %d are read", k, len(b))
			}
		}
	}
}

// values have no use but to be decided.
var values = algorithm{
	Info:   protocol.Info{Name: "values", Consensus: true},
	Append: func(b []byte, v uint64) []byte { return append(b, byte(v)) },
	Read: func(b []byte) (uint64, []byte, error) {
		if len(b) == 0 {
			return 0, nil, protocol.ErrShort
		}
		return uint64(b[0]), b[1:], nil
	},
	Ints: func(uint64) int { return 1 },
	Text: func(v uint64) string { return fmt.Sprint(v) },
}

// A decision costs what doc.go says, also where all others suspect the first process by mistake.
func TestCost(t *testing.T) {
	for n := 2; n <= 9; n++ {
		last := protocol.ID(n - 1)
		for _, c := range []struct {
			who       protocol.ID
			suspected int
			want      consensustest.Cost
		}{
			{0, 0, consensustest.Cost{Messages: 5 * (n - 1), First: 4, All: 5}},
			{last, 0, consensustest.Cost{Messages: 5*(n-1) + 1, First: 5, All: 6}},
			{1, 1, consensustest.Cost{Messages: 5 * (n - 1), First: 4, All: 5}},
		} {
			if got := consensustest.Measure(With[uint64], n, c.who, c.suspected); got != c.want {
				t.Errorf("n=%d, process %d proposes, %d suspected: %+v, want %+v", n, c.who, c.suspected, got, c.want)
			}
		}
	}
}
