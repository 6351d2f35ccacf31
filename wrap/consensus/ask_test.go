package consensus

import (
	"slices"
	"testing"

	"github.com/poundlock/poundlock/protocol"
)

// An insistent process asks at each Suspect, though it has asked already.
type insistent struct{ *process }

func (p insistent) Unwrap() any { return p.process }

func (p insistent) Step(ev protocol.Event[frame], out *protocol.Out[frame]) {
	clear(p.told)
	p.process.Step(ev, out)
}

// A negligent process asks only when it begins to suspect somebody.
type negligent struct{ *process }

func (p negligent) Unwrap() any { return p.process }

func (p negligent) Step(ev protocol.Event[frame], out *protocol.Out[frame]) {
	if ev.Kind != protocol.Suspect || !p.suspected[ev.From] {
		p.process.Step(ev, out)
		return
	}
	for j := range p.told {
		p.told[j] = true
	}
	p.process.Step(ev, out)
	clear(p.told)
}

// A forgetful process keeps no question for later.
type forgetful struct{ *process }

func (p forgetful) Unwrap() any { return p.process }

func (p forgetful) Step(ev protocol.Event[frame], out *protocol.Out[frame]) {
	p.process.Step(ev, out)
	p.early = slices.DeleteFunc(p.early, func(e early[uint64, message]) bool { return e.envelope.Kind == Ask })
}

// A coy process asks nobody where it coordinates.
type coy struct{ *process }

func (p coy) Unwrap() any { return p.process }

func (p coy) Step(ev protocol.Event[frame], out *protocol.Out[frame]) {
	p.news = false
	p.process.Step(ev, out)
	if ev.Msg.Kind == Decided && p.coordinator() == p.id {
		out.Effects = slices.DeleteFunc(out.Effects, func(e protocol.Effect[frame]) bool { return e.Msg.Kind == Ask })
	}
}

// within makes processes of those of Paxos.
func within(wrap func(*process) protocol.Process[frame]) func(algorithm) protocol.Algorithm[frame] {
	return func(alg algorithm) protocol.Algorithm[frame] {
		a := With(alg)
		made := a.New
		a.New = func(id protocol.ID, c protocol.Config) protocol.Process[frame] { return wrap(made(id, c).(*process)) }
		return a
	}
}

var (
	insists  = within(func(p *process) protocol.Process[frame] { return insistent{p} })
	forgets  = within(func(p *process) protocol.Process[frame] { return forgetful{p} })
	shies    = within(func(p *process) protocol.Process[frame] { return coy{p} })
	neglects = within(func(p *process) protocol.Process[frame] { return negligent{p} })
)

// electorate is an algorithm of n voters, and these.
func electorate(n int) (algorithm, []*voter) {
	procs := make([]*voter, n)
	a := values
	a.New = func(id protocol.ID, _ protocol.Config) protocol.Process[uint64] {
		procs[id] = &voter{id: id}
		return procs[id]
	}
	return a, procs
}

// Process 2 suspects 1 all the time. It asks 0 once in an instance, however often it hears so. In the next instance
// 1 decides, and crashes; what it has sent to 0 is lost. Process 2 has heard of the decision, and compares with
// 0 again: otherwise 0 would stay behind, and the next decision, for which 2 counts on it, would never be made.
func TestAsk(t *testing.T) {
	for _, c := range []struct {
		name  string
		with  func(algorithm) protocol.Algorithm[frame]
		asks  int // of 2 in the first instance
		heard int // decisions at 0, and at 2
	}{
		{"right", With[uint64], 1, 3},
		{"asks each time", insists, 5, 3},
		{"asks when it begins to suspect", neglects, 1, 1},
	} {
		a, procs := electorate(3)
		s := newStory(t, c.with(a), 3)
		s.Step(0, protocol.Input{Kind: protocol.Try})
		for range 5 {
			s.suspect(2, 1)
		}
		if k := len(s.InFlight(2, 0)); k != c.asks {
			t.Errorf("%s: process 2 asks %d times in one instance, want %d", c.name, k, c.asks)
		}
		s.Settle() // instance 0 is decided
		s.suspect(1, 0)
		s.Try(1)
		for _, kinds := range [][2]uint8{{prepare, promise}, {accept, accepted}} {
			s.get(1, 2, kinds[0])
			s.suspect(2, 1)
			s.get(2, 1, kinds[1])
		}
		s.get(1, 2, Decided)
		s.suspect(2, 1)
		s.Crash(1)
		s.lose(1)
		s.suspect(0, 1)
		s.suspect(2, 1)
		s.Try(2)
		s.Settle()
		if zero, two := len(procs[0].heard), len(procs[2].heard); zero != c.heard || two != max(c.heard, 2) {
			t.Errorf("%s: processes 0 and 2 hear of %d and %d decisions, want %d and %d", c.name, zero, two, c.heard, max(c.heard, 2))
		}
	}
}

// Processes 1, 3 and 4 decide twice, and 1 and 4 crash; what 1 has sent to 0 and 2 is lost, and these have compared before
// they hear of it. Process 3 asks 0, which coordinates and is told of both decisions. It tells 2 of the first one, which waits
// for that, and asks it because of the other one.
func TestRelay(t *testing.T) {
	for _, c := range []struct {
		name string
		with func(algorithm) protocol.Algorithm[frame]
		want int // decisions at 2
	}{
		{"right", With[uint64], 2},
		{"who coordinates asks nobody", shies, 1},
		{"a question that comes early is lost", forgets, 1},
	} {
		a, procs := electorate(5)
		s := newStory(t, c.with(a), 5)
		s.suspect(1, 0)
		for range 2 {
			s.Step(1, protocol.Input{Kind: protocol.Try})
			for _, kinds := range [][2]uint8{{prepare, promise}, {accept, accepted}} {
				for _, j := range []protocol.ID{3, 4} {
					s.get(1, j, kinds[0])
					s.get(j, 1, kinds[1])
				}
			}
			s.get(1, 3, Decided)
			s.get(1, 4, Decided)
		}
		for _, j := range []protocol.ID{1, 4} {
			s.Crash(j)
			s.lose(j)
		}
		for _, j := range []protocol.ID{0, 2, 3} {
			s.suspect(j, 1)
			s.suspect(j, 4)
			s.Settle()
		}
		if zero, two := len(procs[0].heard), len(procs[2].heard); zero != 2 || two != c.want {
			t.Errorf("%s: processes 0 and 2 hear of %d and %d decisions, want 2 and %d", c.name, zero, two, c.want)
		}
	}
}

// A follower proposes nothing where it is process 2, and hears of Restore.
type follower struct {
	proposer
	restored *int
}

func (p *follower) Step(ev protocol.Event[uint64], out *protocol.Out[uint64]) {
	switch {
	case ev.Kind == protocol.Start && p.id == 2:
		return
	case ev.Kind == protocol.Restore && p.id == 2:
		*p.restored++
	}
	p.proposer.Step(ev, out)
}

// A life that takes no part yet is asked by who lacks a decision. It answers when it takes part: who knew the decision may
// have crashed since, and nobody is asked twice.
func TestAskOfComer(t *testing.T) {
	decided, restored := 0, 0
	a := proposers(nil)
	a.New = func(id protocol.ID, _ protocol.Config) protocol.Process[uint64] {
		return &follower{proposer{id, count(&decided)}, &restored}
	}
	s := newStory(t, With(a), 3)
	s.Crash(0)
	s.lose(0)
	s.suspect(1, 0)
	s.suspect(2, 0)
	for decided == 0 {
		for _, ch := range []protocol.Channel{{From: 1, To: 2}, {From: 2, To: 1}} {
			if len(s.InFlight(ch.From, ch.To)) > 0 {
				s.Deliver(ch.From, ch.To, 0)
			}
		}
	}
	s.Recover(0, 2)
	s.Step(2, protocol.Input{Kind: protocol.Restore, From: 0})
	for len(s.InFlight(2, 0)) > 0 {
		s.Deliver(2, 0, 0)
	}
	s.Step(0, protocol.Input{Kind: protocol.Captured})
	s.Crash(1)
	s.lose(1)
	s.suspect(0, 1)
	s.suspect(2, 1)
	before := restored
	s.Settle()
	if restored == before {
		t.Errorf("who lacks a decision that nobody knows does not hear that it is behind: %s", protocol.Show(s.Procs[2]))
	}
}
