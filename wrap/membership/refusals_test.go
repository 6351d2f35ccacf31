package membership

import (
	"fmt"
	"slices"
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

// asideTold: whoever is inside when its process is asked to leave its instance is told that somebody waits, and stays; one that
// cannot share hears nothing.
func asideTold() string {
	s, alone := tell(tokengme.Algorithm, 3, 1), tell(suzukikasami.Algorithm, 3, 1)
	s.try(0, "a")
	p := s.of(0)
	s.step(0, protocol.Input{Kind: protocol.Receive, From: 1}, Frame[tokengme.Message]{Kind: Notify, Epoch: p.epoch, Note: &Note{Old: true}})
	alone.try(2, "")
	alone.rest()
	alone.step(2, protocol.Input{Kind: protocol.Receive, From: 1}, Frame[suzukikasami.Message]{Kind: Notify, Epoch: p.epoch, Note: &Note{Old: true}})
	if s.users[0] != protocol.InCrit || !p.active || len(s.told) == 0 || alone.users[2] != protocol.InCrit || len(alone.told) > 0 {
		return claim("who is to leave is told %v, and %v where nobody shares", s.told, alone.told)
	}
	return ""
}

// staysInside: whoever is inside when it joins counts on those with which it has had sessions since it entered, and on nobody who
// came back since, until all have joined; whatever it joins then. It may leave and try again before START tells it who waits for that.
func staysInside() string {
	s := tell(tokengme.Algorithm, 5, 1)
	p := s.of(4)
	s.try(4, "a")
	s.rest()
	s.renew(4, 3)
	s.get(4, 0, Notify)
	s.get(3, 0, Notify)
	s.get(0, 4, Restart)
	first := p.epoch
	s.crashes(0)
	for j := range protocol.ID(5) {
		s.get(j, 1, Notify)
	}
	s.get(1, 4, Restart)
	if !first.Before(p.epoch) || first.Round < 2 || s.users[4] != protocol.InCrit || p.support() != collect(5, func(j protocol.ID) bool { return j == 1 || j == 2 || j == 4 }) {
		return claim("#4 is in section %d of %s, after %s, and counts on %v", s.users[4], p.epoch.Text(), first.Text(), p.support())
	}
	if s.lapse(4, 3); s.users[4] != protocol.InCrit {
		return claim("#4 is ejected though a majority is left")
	}
	if s.lapse(4, 2); s.users[4] != protocol.InLost {
		return claim("#4 is inside without a majority since it entered")
	}
	s = tell(tokengme.Algorithm, 3, 1)
	s.try(1, "a")
	s.rest()
	s.crashes(2)
	s.deliver(func(l letter[tokengme.Message]) bool { return l.f.Kind != Start })
	s.try(0, "b")
	s.exit(1)
	s.try(1, "c")
	if s.rest(); s.users[0] != protocol.InCrit || s.users[1] != protocol.InTry {
		return claim("who left before START: the users are in sections %v", s.users)
	}
	s.exit(0)
	if s.rest(); s.users[1] != protocol.InCrit {
		return claim("who left before START and tried again is not in")
	}
	return ""
}

// comesLater: a user that tries while an instance is suspended comes in beside who is inside, also where its WANT overtakes its LEAVE,
// until somebody tries who does not fit: then nobody does, and who is inside is told, unless the algorithm tells nothing.
func comesLater() string {
	s := tell(tokengme.Algorithm, 4, 1)
	in := func(what string, want ...protocol.Section) string {
		if s.rest(); !slices.Equal(s.users[:3], want) {
			return claim("%s: the users are in sections %v, want %v", what, s.users[:3], want)
		}
		return ""
	}
	const try, crit = protocol.InTry, protocol.InCrit
	s.try(1, "a")
	s.rest()
	s.crashes(3)
	s.rest()
	s.try(2, "a")
	s.try(0, "a")
	if fault := in("those who come later", crit, crit, crit); fault != "" {
		return fault
	}
	for _, i := range []protocol.ID{1, 2} {
		s.exit(i)
		s.try(i, "a")
		s.newest(i, 0, Want)
	}
	if fault := in("those who come again", crit, crit, crit); fault != "" {
		return fault
	}
	if len(s.told) > 0 {
		return claim("%v are told that somebody waits", s.told)
	}
	s.exit(2)
	s.rest()
	s.try(2, "b")
	s.rest()
	if slices.Sort(s.told); !slices.Equal(s.told, []protocol.ID{0, 1}) {
		return claim("%v are told that somebody waits, want 0 and 1", s.told)
	}
	s.exit(1)
	s.try(1, "a")
	if fault := in("who comes after one that does not fit", crit, try, try); fault != "" {
		return fault
	}
	s.exit(0)
	if s.rest(); s.users[1] == s.users[2] {
		return claim("who waited: the users are in sections %v", s.users[:3])
	}
	writes := tell(tokengme.Algorithm, 3, 1)
	writes.try(1, "!w")
	writes.rest()
	writes.crashes(2)
	writes.rest()
	writes.try(0, "!w")
	if writes.fault != "" || writes.users[0] != try {
		return claim("a writer is inside with another one")
	}
	silent := tell(ra2.Algorithm, 3, 1)
	silent.try(1, "a")
	silent.rest()
	silent.crashes(2)
	silent.rest()
	if silent.try(0, "b"); silent.sent(0, Want) > 0 {
		return claim("#0 says that somebody waits, where nobody is told")
	}
	alone := tell(suzukikasami.Algorithm, 4, 1)
	alone.try(1, "")
	alone.rest()
	alone.crashes(3)
	alone.rest()
	if alone.try(2, ""); alone.sent(2, Want) > 0 {
		return claim("#2 says WANT where nobody shares")
	}
	return ""
}

// comesEarly: a user that tries before all have joined is an old request like the others; and who hears that somebody waits before its
// own START is told as it enters.
func comesEarly() string {
	s := tell(tokengme.Algorithm, 3, 1)
	s.try(1, "a")
	s.rest()
	s.crashes(2)
	s.get(1, 0, Notify)
	s.try(0, "a")
	if s.rest(); s.users[0] != protocol.InCrit {
		return claim("who tried before all had joined waits")
	}
	s = tell(tokengme.Algorithm, 4, 1)
	s.try(1, "a")
	s.rest()
	s.try(2, "a")
	s.crashes(3)
	s.deliver(func(l letter[tokengme.Message]) bool { return l.f.Kind != Inner && l.f.Kind != Start })
	s.try(0, "b")
	s.get(0, 2, Want)
	if s.rest(); s.users[2] != protocol.InCrit || !slices.Contains(s.told, 2) {
		return claim("who enters after somebody tried that does not fit: section %d, told are %v", s.users[2], s.told)
	}
	s = tell(tokengme.Algorithm, 5, 1)
	s.try(1, "a")
	s.try(2, "a")
	s.rest()
	s.crashes(3)
	s.deliver(func(l letter[tokengme.Message]) bool { return l.f.Kind != Start })
	s.exit(1)
	s.try(1, "a")
	if s.rest(); s.users[1] != protocol.InCrit {
		return claim("who left before START and tried again does not come in")
	}
	s = tell(tokengme.Algorithm, 5, 1)
	s.try(1, "a")
	s.rest()
	s.crashes(3)
	s.deliver(func(l letter[tokengme.Message]) bool { return l.f.Kind != Start })
	s.exit(1)
	if s.lapse(1, 4); !s.of(1).active {
		return claim("who has left counts on those that it needed inside")
	}
	s = tell(tokengme.Algorithm, 3, 1)
	for i := range s.procs {
		s.of(protocol.ID(i)).phases = 2
	}
	s.try(1, "a")
	s.crashes(2)
	s.deliver(func(l letter[tokengme.Message]) bool { return l.f.Kind != Inner })
	if !slices.Equal(s.told, []protocol.ID{1}) {
		return claim("with two phases %v hear that somebody may wait, want 1", s.told)
	}
	s = tell(tokengme.Algorithm, 4, 1)
	s.try(1, "a")
	s.rest()
	s.try(2, "b")
	s.crashes(3)
	s.deliver(func(l letter[tokengme.Message]) bool { return l.f.Kind != Inner })
	if !slices.Equal(s.told, []protocol.ID{1}) {
		return claim("an old request waits for who is inside: %v are told", s.told)
	}
	return ""
}

// comesForAnother: who was inside, left before START and tries for another group does not change that of those who still are.
func comesForAnother() string {
	s := tell(tokengme.Algorithm, 4, 1)
	s.try(1, "a")
	s.rest()
	s.try(2, "a")
	s.rest()
	s.crashes(3)
	s.get(1, 0, Notify)
	s.get(2, 0, Notify)
	s.get(0, 1, Restart)
	s.exit(1)
	s.try(1, "b")
	s.get(1, 0, Done, Want)
	if s.rest(); s.fault != "" || s.users[1] != protocol.InTry || s.users[2] != protocol.InCrit {
		return claim("who tries for another group: %s, the users are in sections %v", s.fault, s.users[:3])
	}
	s.exit(2)
	if s.rest(); s.users[1] != protocol.InCrit {
		return claim("who tried for another group does not come in")
	}
	return ""
}

// wantsBefore: a WANT of an instance is no old request of the next one, which is under way: its user may be in and out before that.
func wantsBefore() string {
	s := tell(tokengme.Algorithm, 4, 1)
	s.try(1, "a")
	s.rest()
	s.crashes(3)
	s.rest()
	s.try(2, "b")
	s.comes(3, 0, 1, 2)
	s.get(3, 0, Join)
	s.get(2, 0, Want)
	s.exit(1)
	s.get(1, 0, Leave)
	s.deliver(func(l letter[tokengme.Message]) bool { return l.f.Kind == Resume || l.f.Kind == Inner })
	if p := s.of(0); s.users[2] != protocol.InCrit || !p.epoch.Before(p.lead.epoch) {
		return claim("#2 is in section %d of %s, before %s", s.users[2], p.epoch.Text(), p.lead.epoch.Text())
	}
	s.exit(2)
	if s.rest(); s.of(0).linked != upTo(4) || !s.of(2).running {
		return claim("after a WANT that came before it #0 waits in an instance of %v", s.of(0).linked)
	}
	return s.fault
}

// lastIsTold: whoever is inside with the last group of old requests hears of who tries meanwhile, also where another group came before.
func lastIsTold() string {
	s := tell(tokengme.Algorithm, 4, 1)
	s.try(0, "a")
	s.rest()
	s.try(1, "b")
	s.crashes(3)
	s.rest()
	if s.exit(0); s.users[0] != protocol.InRem {
		return claim("#0 is in section %d", s.users[0])
	}
	if s.rest(); s.users[1] != protocol.InCrit {
		return claim("after #0 #1 is in section %d", s.users[1])
	}
	s.try(2, "a")
	if s.rest(); s.users[1] != protocol.InCrit || !slices.Contains(s.told, 1) {
		return claim("#2 waits for #1, which is in section %d, and told are %v", s.users[1], s.told)
	}
	return ""
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
	for _, story := range []func() string{
		impatient, handedOn, inVain, mostWanted, keptEarly, asideTold, staysInside, comesLater, comesEarly, comesForAnother, wantsBefore, lastIsTold,
	} {
		if fault := story(); fault != "" {
			t.Error(fault)
		}
	}
}
