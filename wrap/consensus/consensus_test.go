package consensus

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/poundlock/poundlock/algo/algotest"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/wrap/consensus/consensustest"
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
		Instance: func(f frame) (uint64, bool) { return f.Instance, f.Kind == Part },
		Broken: []consensustest.Broken[frame]{
			{Name: "who comes back is who it was", Want: consensustest.Agreement, In: consensustest.Seeds{consensustest.Random: 1155}, Amnesia: true},
			{Name: "promises are forgotten", Want: consensustest.Agreement, In: consensustest.Seeds{consensustest.Random: 383, consensustest.Minorities: 19, consensustest.Candidates: 65, consensustest.Doubts: 177, consensustest.Followers: 99}, With: broken(forgetsPromises)},
			{Name: "what was accepted is forgotten", Want: consensustest.Agreement, In: consensustest.Seeds{consensustest.Random: 719, consensustest.Minorities: 10, consensustest.Candidates: 9, consensustest.Doubts: 41, consensustest.Followers: 11}, With: broken(forgetsAccepted)},
			{Name: "what others have accepted is ignored", Want: consensustest.Agreement, In: consensustest.Seeds{consensustest.Random: 719, consensustest.Minorities: 10, consensustest.Candidates: 9, consensustest.Doubts: 41, consensustest.Followers: 11}, With: broken(mistake{
				before: func(_ *synod[uint64], m *message) {
					if m.Kind == Promise {
						m.Last = Ballot{}
					}
				},
			})},
			{Name: "leads before it accepts", Want: consensustest.Agreement, In: consensustest.Seeds{consensustest.Candidates: 2939, consensustest.Doubts: 598}, With: broken(mistake{hurried: true})},
			{Name: "who lost is silent", Want: consensustest.Termination, In: consensustest.Seeds{consensustest.Doubts: 19}, With: broken(silence)},
			{Name: "who lost does not say so again", Want: consensustest.Termination, In: consensustest.Seeds{consensustest.Minorities: 2458}, With: broken(once)},
			{Name: "agreement of correct processes only", Want: consensustest.Agreement, In: consensustest.Seeds{consensustest.Random: 0, consensustest.Minorities: 0, consensustest.Candidates: 0, consensustest.Doubts: 10, consensustest.Followers: 0}, With: hasten},
			{Name: "takes part before it resumes", Want: consensustest.Participation, In: consensustest.Seeds{consensustest.Random: 5}, With: intrude},
			{Name: "one waits for ever", Want: consensustest.Termination, In: consensustest.Seeds{consensustest.Random: 5, consensustest.Minorities: 0, consensustest.Doubts: 26, consensustest.Followers: 1}, With: broken(mistake{faithful: true})},
			{Name: "what is lost is lost", Want: consensustest.Termination, In: consensustest.Seeds{consensustest.Random: 71, consensustest.Doubts: 7}, With: broken(mistake{terse: true})},
			{Name: "decides before others accept", Want: consensustest.Agreement, In: consensustest.Seeds{consensustest.Random: 26, consensustest.Minorities: 0, consensustest.Candidates: 3, consensustest.Doubts: 8, consensustest.Followers: 1}, With: broken(mistake{premature: true})},
			{Name: "nobody gives way", Want: consensustest.Termination, In: consensustest.Seeds{consensustest.Candidates: 0}, With: broken(mistake{stubborn: true})},
			{Name: "asks when it begins to suspect", Want: consensustest.Termination, In: consensustest.Seeds{consensustest.Followers: 28}, With: neglects},
			{Name: "who coordinates asks nobody", Want: consensustest.Termination, In: consensustest.Seeds{consensustest.Followers: 23351}, With: shies},
			{Name: "draws lots", Want: consensustest.Determinism, In: consensustest.Seeds{consensustest.Traces: 0}, With: broken(mistake{lots: true})},
		},
	})
}

// A mistake is what is wrong with an instance of Paxos.
type mistake struct {
	before   func(p *synod[uint64], m *message) // of what it receives
	after    func(p *synod[uint64], t *turn)
	faithful bool // waits for who is suspected
	terse    bool // repeats nothing
	hurried  bool // on ACCEPT, begins its own ballot before it accepts
	// premature: decides when it asks others to accept; stubborn: leads at once where it gave way; lots: begins with a round
	// that the order of a map draws.
	premature, stubborn, lots bool
}

var (
	forgetsPromises = mistake{before: func(p *synod[uint64], m *message) {
		if m.Kind == Accept {
			p.promised = Ballot{}
		}
	}}
	forgetsAccepted = mistake{before: func(p *synod[uint64], m *message) {
		if m.Kind == Prepare {
			p.accepted = Ballot{}
		}
	}}
	silence = mistake{after: func(_ *synod[uint64], t *turn) { t.lost = false }}
	once    = mistake{after: func(_ *synod[uint64], t *turn) { t.again = false }}
)

func broken(e mistake) func(algorithm) protocol.Algorithm[frame] {
	return func(alg algorithm) protocol.Algorithm[frame] { return Over(alg, mistakenly(e)) }
}

// mistakenly is Paxos with a mistake.
func mistakenly(e mistake) func(*algorithm) Core[uint64, message] {
	return func(alg *algorithm) Core[uint64, message] {
		core := paxos(alg)
		made := core.New
		core.New = func(id protocol.ID, n int) Instance[uint64, message] {
			return &mistaken{synod: made(id, n).(*synod[uint64]), mistake: e}
		}
		return core
	}
}

type mistaken struct {
	*synod[uint64]
	mistake
	proposal *uint64 // of Lead; nil: it has not led
}

func (p *mistaken) Lead(v uint64, t *turn) {
	p.proposal = &v
	if p.stubborn {
		p.ahead = p.id
	}
	if p.lots && p.round == 0 {
		for k := range map[uint64]bool{1: true, 2: true} {
			p.round = k
		}
	}
	p.synod.Lead(v, t)
}

// overtake does what answer does for an ACCEPT, in the wrong order.
func (p *mistaken) overtake(from protocol.ID, m message, t *turn) {
	p.promised = m.Ballot
	p.yield(from, t)
	p.synod.Lead(*p.proposal, t)
	p.accepted, p.value = m.Ballot, m.Value
	t.Send(from, message{Kind: Accepted, Ballot: m.Ballot})
}

func (p *mistaken) leads(t *turn) bool {
	for j := range p.id {
		if t.Trusts(j) {
			return false
		}
	}
	return p.proposal != nil
}

func (p *mistaken) Receive(from protocol.ID, m message, t *turn) {
	if p.hurried && m.Kind == Accept && !m.Ballot.Before(p.promised) && p.leads(t) {
		p.overtake(from, m, t)
		return
	}
	if p.before != nil {
		p.before(p.synod, &m)
	}
	chose := p.choosing
	p.synod.Receive(from, m, t)
	if p.premature && chose && !p.choosing && p.ballot != (Ballot{}) {
		t.Decide(p.choice)
	}
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

// A story delivers one message after the other.
type story struct {
	*algotest.System[frame]
	t *testing.T
	n int
}

func newStory(t *testing.T, a protocol.Algorithm[frame], n int) story {
	return story{algotest.NewSystem(a, protocol.Config{N: n}, 0), t, n}
}

// The kinds of Paxos, as on and get want them: beyond those of envelopes.
const (
	prepare  = Part + 1 + Prepare
	promise  = Part + 1 + Promise
	accept   = Part + 1 + Accept
	accepted = Part + 1 + Accepted
	refuse   = Part + 1 + Refuse
)

func (s story) find(from, to protocol.ID, kind uint8) int {
	return slices.IndexFunc(s.InFlight(from, to), func(f frame) bool {
		return f.Kind == kind || f.Part != nil && kind == Part+1+f.Part.Kind
	})
}

// on reports whether a message of a kind is on its way.
func (s story) on(from, to protocol.ID, kind uint8) bool { return s.find(from, to, kind) >= 0 }

func (s story) get(from, to protocol.ID, kind uint8) {
	s.t.Helper()
	k := s.find(from, to, kind)
	if k < 0 {
		s.t.Fatalf("no message %d is on its way from %d to %d", kind, from, to)
	}
	s.Deliver(from, to, k)
}

func (s story) suspect(a, b protocol.ID) { s.Step(a, protocol.Input{Kind: protocol.Suspect, From: b}) }

// lose loses all that a process has sent.
func (s story) lose(from protocol.ID) {
	for to := range protocol.ID(s.n) {
		for len(s.InFlight(from, to)) > 0 {
			s.Drop(from, to, 0)
		}
	}
}

// Process 0 coordinates, and waits for the ballot of 1, which was begun when 1 suspected 0, and which 3
// refuses for one of 2, which crashed. It goes on because 1 says so; and again, where 1 has said so
// before its ballot came to 0.
func TestLostBallot(t *testing.T) {
	for _, c := range []struct {
		name  string
		with  func(algorithm) protocol.Algorithm[frame]
		early bool // 1 has said so before
		want  int  // processes that hear of a decision
	}{
		{"right", With[uint64], false, 3},
		{"right, early", With[uint64], true, 3},
		{"who lost is silent", broken(silence), false, 0},
		{"who lost does not say so again", broken(once), true, 0},
	} {
		decided := 0
		s := newStory(t, c.with(proposers(count(&decided))), 4)
		proposals := func() {
			for s.on(1, 0, Propose) {
				s.get(1, 0, Propose)
			}
		}
		s.suspect(2, 0)
		s.suspect(2, 1) // 2 coordinates
		s.get(2, 3, prepare)
		s.suspect(1, 0) // 1 does, too
		s.Step(1, protocol.Input{Kind: protocol.Restore, From: 0})
		proposals()
		if !c.early {
			s.get(1, 0, prepare)
			s.get(0, 1, promise)
		}
		s.get(1, 3, prepare)
		s.get(3, 1, refuse)
		if c.early {
			proposals()
			s.get(1, 0, prepare)
		}
		s.Crash(2) // and nobody else hears of its ballot
		s.lose(2)
		for _, a := range []protocol.ID{0, 1, 3} {
			s.suspect(a, 2)
		}
		s.Settle()
		if decided != c.want {
			t.Errorf("%s: %d processes hear of a decision, want %d", c.name, decided, c.want)
		}
	}
}

// The same, where 1 ends its ballot because 2 asks with a larger one, which is lost: 0 and 1 trust each other, and
// each waits for the other one, unless 1 says so: after its PREPARE has come to 0, and where it comes last.
func TestLostBallotOfThree(t *testing.T) {
	for _, c := range []struct {
		name string
		with func(algorithm) protocol.Algorithm[frame]
		late bool // the PREPARE of 1 comes after all that it proposes
		want int
	}{
		{"right", With[uint64], false, 2},
		{"right, late", With[uint64], true, 2},
		{"who lost does not say so again", broken(once), true, 0},
	} {
		decided := 0
		s := newStory(t, c.with(proposers(count(&decided))), 3)
		proposals := func() {
			for s.on(1, 0, Propose) {
				s.get(1, 0, Propose)
			}
		}
		s.suspect(1, 0)
		s.Step(1, protocol.Input{Kind: protocol.Restore, From: 0})
		proposals()
		if !c.late {
			s.get(1, 0, prepare)
		}
		s.suspect(2, 0)
		s.suspect(2, 1)
		s.get(2, 1, prepare)
		if c.late {
			proposals()
			s.get(1, 0, prepare)
		}
		s.Crash(2)
		s.lose(2)
		s.suspect(0, 2)
		s.suspect(1, 2)
		s.Settle()
		if decided != c.want {
			t.Errorf("%s: %d processes hear of a decision, want %d", c.name, decided, c.want)
		}
	}
}

// Process 1 suspects 0, which leads, and leads, too. Its ACCEPT comes to 0 before its PREPARE, when 0 suspects
// it, and asks with a larger ballot at once: only if 0 has accepted by then, 2 hears of the value that 1 decides.
func TestAcceptFirst(t *testing.T) {
	for _, c := range []struct {
		name string
		with func(algorithm) protocol.Algorithm[frame]
		same bool
	}{
		{"right", With[uint64], true},
		{"leads before it accepts", broken(mistake{hurried: true}), false},
	} {
		heard := map[protocol.ID]uint64{}
		s := newStory(t, c.with(proposers(func(id protocol.ID, v uint64) { heard[id] = v })), 3)
		s.suspect(1, 0)
		s.suspect(0, 1)
		s.get(1, 2, prepare)
		s.get(2, 1, promise)
		s.get(1, 0, accept)
		s.get(0, 1, accepted)
		for s.on(0, 2, prepare) { // of the first ballot, and the second
			s.get(0, 2, prepare)
		}
		s.get(2, 0, promise)
		s.get(0, 2, accept)
		s.get(2, 0, accepted)
		s.Settle()
		if len(heard) != 3 || c.same != (heard[0] == heard[1]) {
			t.Errorf("%s: processes hear of %v", c.name, heard)
		}
	}
}

// Process 2 has not heard of decision 0, and asks process 0, which came back and resumed after it: that
// one says so, and 2 asks 1, which knows. Its algorithm hears Restore, in case nobody knew.
func TestGone(t *testing.T) {
	for _, said := range []bool{true, false} {
		decided, restored := 0, 0
		a := proposers(count(&decided))
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

// A proposer proposes a value, and says what is decided. One that came back resumes with
// instance 1.
type proposer struct {
	id   protocol.ID
	hear func(id protocol.ID, v uint64)
}

func proposers(hear func(id protocol.ID, v uint64)) algorithm {
	a := values
	a.New = func(id protocol.ID, _ protocol.Config) protocol.Process[uint64] { return &proposer{id, hear} }
	return a
}

// count counts who hears.
func count(heard *int) func(protocol.ID, uint64) {
	return func(protocol.ID, uint64) { *heard++ }
}

func (p *proposer) Step(ev protocol.Event[uint64], out *protocol.Out[uint64]) {
	switch {
	case ev.Kind == protocol.Start && ev.Arg <= 1:
		out.Propose(0, uint64(p.id))
	case ev.Kind == protocol.Captured:
		out.Resume(1)
	case ev.Kind == protocol.Decide:
		p.hear(p.id, ev.Msg)
	}
}

// State implements protocol.Process.
func (p *proposer) State(c *protocol.Codec) {}

// Around is a process around one of Paxos.
type around struct{ protocol.Process[frame] }

func (p around) Unwrap() any { return p.Process }

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
			inner, _ := protocol.As[protocol.Process[uint64]](p.Process)
			inner.Step(protocol.Event[uint64]{Input: decision, Msg: m.Value}, &protocol.Out[uint64]{})
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
	Fields: small,
	KindOf: func(uint64) int { return 0 },
	Ints:   func(uint64) int { return 1 },
	Text:   func(v uint64) string { return fmt.Sprint(v) },
}

func small(v uint64, c *protocol.Codec) uint64 {
	protocol.Upto(c, &v, math.MaxUint8)
	return v
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
