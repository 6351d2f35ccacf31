package membership

import (
	"fmt"
	"testing"

	"github.com/poundlock/poundlock/algo/algotest/mutant"
	"github.com/poundlock/poundlock/algo/ra2"
	"github.com/poundlock/poundlock/algo/suzukikasami"
	"github.com/poundlock/poundlock/algo/tokengme"
	"github.com/poundlock/poundlock/protocol"
)

// refusals are steps that the model makes impossible.
func refusals() (checks []mutant.Check) {
	receive := func(kind uint8, n *Note, change func(*Process[suzukikasami.Message])) {
		checks = append(checks, mutant.Panics("recovery: ", func() {
			s := tell(suzukikasami.Algorithm, 3, 1)
			change(s.procs[1].(*Process[suzukikasami.Message]))
			f := Frame[suzukikasami.Message]{Kind: kind, Epoch: protocol.Epoch{Round: 1}, Note: n}
			s.step(1, protocol.Input{Kind: protocol.Receive}, f)
		}))
	}
	receive(Start, &Note{}, func(*Process[suzukikasami.Message]) {})
	receive(Resume, nil, func(p *Process[suzukikasami.Message]) { p.section = protocol.InCrit })
	receive(Resume, nil, func(p *Process[suzukikasami.Message]) { p.old.pending = true })
	return checks
}

// impatient: a process that wants to enter at once or not at all is told that there is no majority, and
// who waits is not.
func impatient() string {
	for _, late := range []bool{false, true} {
		for _, arg := range []uint64{protocol.TryWait, protocol.TryOnce} {
			s := tell(suzukikasami.Algorithm, 3, 1)
			try := func() {
				s.users[1] = protocol.InTry
				s.step(1, protocol.Input{Kind: protocol.Try, Arg: arg}, Frame[suzukikasami.Message]{})
			}
			if !late {
				try()
			}
			s.lapse(1, 0)
			s.lapse(1, 2)
			if late {
				try()
			}
			if told := s.users[1] == protocol.InRem; told != (arg == protocol.TryOnce) {
				return fmt.Sprintf("claim by story, a try %d (late: %v) is told of no majority: %v", arg, late, told)
			}
		}
	}
	return ""
}

// A witness is a process of an algorithm that keeps what it was asked last.
type witness struct {
	protocol.Process[suzukikasami.Message]
	last protocol.Input
}

func (w *witness) Step(ev protocol.Event[suzukikasami.Message], _ *protocol.Out[suzukikasami.Message]) {
	w.last = ev.Input
}

// handedOn: the algorithm knows who does not want to wait.
func handedOn() string {
	for _, arg := range []uint64{protocol.TryWait, protocol.TryOnce} {
		s := tell(suzukikasami.Algorithm, 3, 1)
		w := &witness{}
		s.procs[1].(*Process[suzukikasami.Message]).inner = w
		in := protocol.Input{Kind: protocol.Try, Arg: arg}
		if s.step(1, in, Frame[suzukikasami.Message]{}); w.last != in {
			return fmt.Sprintf("claim by story, the algorithm gets %+v for %+v", w.last, in)
		}
	}
	return ""
}

// inVain: who exits while a RESTART waits for it tells the old instance nothing.
func inVain() string {
	s := tell(suzukikasami.Algorithm, 3, 1)
	s.try(1, "")
	s.get(1, 0, Inner)
	s.get(0, 1, Inner)
	s.try(0, "")
	s.get(0, 1, Inner)
	s.crashes(2)
	s.get(1, 0, Notify)
	s.get(0, 1, Restart)
	if s.users[1] != protocol.InCrit {
		return "claim by story, #1 is not inside"
	}
	s.exit(1)
	joined := false
	for _, l := range s.mail {
		if l.from == 1 && l.f.Kind == Inner {
			return "claim by story, #1 tells the old instance of its exit"
		}
		joined = joined || l.from == 1 && l.f.Kind == Done
	}
	if !joined {
		return "claim by story, #1 does not join"
	}
	return ""
}

// mostWanted: of the groups that the first one wants, the one that most want is next.
func mostWanted() string {
	p := Wrap(tokengme.Several).New(0, protocol.Config{N: 3}).(*Process[tokengme.Message])
	for _, w := range []struct {
		wants []protocol.Groups
		best  protocol.Group
		who   int
	}{
		{[]protocol.Groups{"a,b", "a", "b"}, "a", 2},
		{[]protocol.Groups{"a,b", "a", "a"}, "a", 3},
		{[]protocol.Groups{"a,b", "b", "b"}, "b", 3},
		{[]protocol.Groups{"!a", "!a", "!a"}, "!a", 1},
	} {
		p.lead.wants = w.wants
		if best, who := p.best(upTo(3)); best != w.best || who.len() != w.who {
			return fmt.Sprintf("claim by story, of %q best is %q, of %v", w.wants, best, who)
		}
	}
	return ""
}

// keptEarly: frames that come before their time are kept by sender, and those of one sender as
// they came where the algorithm needs that.
func keptEarly() string {
	if got, want := keeps(suzukikasami.Algorithm), "1/2 1/3 2/1 2/4 "; got != want {
		return fmt.Sprintf("claim by story, kept are %s, want %s", got, want)
	}
	if got, want := keeps(ra2.Algorithm), "1/3 1/2 2/1 2/4 "; got != want {
		return fmt.Sprintf("claim by story, kept for channels in order are %s, want %s", got, want)
	}
	return ""
}

// keeps is what a process keeps of four frames, by sender and round.
func keeps[M any](a protocol.Algorithm[M]) (kept string) {
	p := Wrap(a).New(0, protocol.Config{N: 3}).(*Process[M])
	for _, f := range []struct {
		from  protocol.ID
		round uint64
	}{{2, 1}, {1, 3}, {2, 4}, {1, 2}} {
		p.wait(f.from, Frame[M]{Kind: Resume, Epoch: protocol.Epoch{Round: f.round}})
	}
	for _, e := range p.later {
		kept += fmt.Sprintf("%d/%d ", e.from, e.f.Epoch.Round)
	}
	return kept
}

func TestRefusals(t *testing.T) {
	for i, refuses := range refusals() {
		if fault, err := refuses(); fault != "" || err != nil {
			t.Errorf("%d: %s %v", i, fault, err)
		}
	}
	for _, story := range []func() string{impatient, handedOn, inVain, mostWanted, keptEarly} {
		if fault := story(); fault != "" {
			t.Error(fault)
		}
	}
}
