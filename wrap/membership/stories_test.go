package membership

import (
	"fmt"
	"slices"
	"testing"

	"github.com/poundlock/poundlock/algo/suzukikasami"
	"github.com/poundlock/poundlock/protocol"
)

// A story runs processes through events in a given order.
type story[M any] struct {
	alg     protocol.Algorithm[Frame[M]]
	c       protocol.Config
	procs   []protocol.Process[Frame[M]]
	mail    []letter[M]
	users   []protocol.Section
	fault   string // two inside who share nothing
	group   []string
	revokes [][2]protocol.ID // of sessions that have not lapsed
	told    []protocol.ID    // who was told that somebody waits
}

// tell begins a story of n processes, each of which begins that life.
func tell[M any](a protocol.Algorithm[M], n int, life uint64) *story[M] {
	s := &story[M]{alg: Wrap(a), c: protocol.Config{N: n}, users: make([]protocol.Section, n), group: make([]string, n)}
	s.procs = make([]protocol.Process[Frame[M]], n)
	for i := range protocol.ID(n) {
		s.begin(i, life)
	}
	return s
}

func (s *story[M]) begin(i protocol.ID, life uint64) {
	s.procs[i] = s.alg.New(i, s.c)
	s.step(i, protocol.Input{Kind: protocol.Start, Arg: life}, Frame[M]{})
}

func (s *story[M]) step(i protocol.ID, in protocol.Input, f Frame[M]) {
	var out protocol.Out[Frame[M]]
	s.procs[i].Step(protocol.Event[Frame[M]]{Input: in, Msg: f}, &out)
	for _, e := range out.Effects {
		switch e.Do {
		case protocol.Send:
			s.mail = append(s.mail, letter[M]{from: i, to: e.To, f: e.Msg})
		case protocol.Revoke:
			s.revokes = append(s.revokes, [2]protocol.ID{i, e.To})
		case protocol.Crit:
			for j, u := range s.users {
				if u == protocol.InCrit && !protocol.Group(s.group[j]).Shares(protocol.Group(e.Data)) {
					s.fault = fmt.Sprintf("exclusion by story, #%d and #%d", j, i)
				}
			}
			s.users[i], s.group[i] = protocol.InCrit, e.Data
		case protocol.Rem:
			s.users[i] = protocol.InRem
		case protocol.Ejected:
			s.users[i] = protocol.InLost
		case protocol.Wanted:
			s.told = append(s.told, i)
		}
	}
}

func (s *story[M]) try(i protocol.ID, wants string) {
	s.users[i] = protocol.InTry
	s.step(i, protocol.Input{Kind: protocol.Try, Data: wants}, Frame[M]{})
}

// exit: the user of i leaves if it is inside.
func (s *story[M]) exit(i protocol.ID) {
	if s.users[i] == protocol.InCrit || s.users[i] == protocol.InLost {
		s.users[i] = protocol.InExit
		s.step(i, protocol.Input{Kind: protocol.Exit}, Frame[M]{})
	}
}

// get delivers the messages of such kinds that are under way, until none is.
func (s *story[M]) get(from, to protocol.ID, kinds ...uint8) {
	s.deliver(func(l letter[M]) bool { return l.from == from && l.to == to && slices.Contains(kinds, l.f.Kind) })
}

// rest delivers all messages, and breaks and renews what is revoked, until nothing is due.
func (s *story[M]) rest() {
	for s.deliver(func(letter[M]) bool { return true }); len(s.revokes) > 0; s.deliver(func(letter[M]) bool { return true }) {
		s.renew(s.revokes[0][0], s.revokes[0][1])
	}
}

func (s *story[M]) deliver(due func(letter[M]) bool) {
	for {
		k := slices.IndexFunc(s.mail, due)
		if k < 0 {
			return
		}
		l := s.mail[k]
		s.mail = slices.Delete(s.mail, k, k+1)
		s.step(l.to, protocol.Input{Kind: protocol.Receive, From: l.from}, l.f)
	}
}

// newest delivers the last message of a kind.
func (s *story[M]) newest(from, to protocol.ID, kind uint8) {
	for k, l := range slices.Backward(s.mail) {
		if l.from == from && l.to == to && l.f.Kind == kind {
			s.mail = slices.Delete(s.mail, k, k+1)
			s.step(to, protocol.Input{Kind: protocol.Receive, From: from}, l.f)
			return
		}
	}
}

// lapse: i has lost j, and what j sent to it.
func (s *story[M]) lapse(i, j protocol.ID) {
	s.mail = slices.DeleteFunc(s.mail, func(l letter[M]) bool { return l.from == j && l.to == i })
	s.revokes = slices.DeleteFunc(s.revokes, func(r [2]protocol.ID) bool { return r == [2]protocol.ID{i, j} })
	s.step(i, protocol.Input{Kind: protocol.Suspect, From: j, Arg: protocol.Lapsed}, Frame[M]{})
}

func (s *story[M]) end(i, j protocol.ID) {
	s.step(i, protocol.Input{Kind: protocol.Suspect, From: j, Arg: protocol.Ended}, Frame[M]{})
}

func (s *story[M]) restore(i, j protocol.ID) {
	s.step(i, protocol.Input{Kind: protocol.Restore, From: j, Arg: 1}, Frame[M]{})
}

// renew: the session of i and j breaks, and another one begins.
func (s *story[M]) renew(i, j protocol.ID) {
	s.lapse(i, j)
	s.lapse(j, i)
	s.end(i, j)
	s.end(j, i)
	s.meet(i, j)
}

// meet: a session of i and j begins.
func (s *story[M]) meet(i, j protocol.ID) {
	s.restore(i, j)
	s.restore(j, i)
}

// crashes: i crashes, all others notice, and it comes back.
func (s *story[M]) crashes(i protocol.ID) {
	s.mail = slices.DeleteFunc(s.mail, func(l letter[M]) bool { return l.to == i || l.from == i })
	for j := range protocol.ID(s.c.N) {
		if j != i {
			s.lapse(j, i)
			s.end(j, i)
		}
	}
}

func (s *story[M]) returns(i protocol.ID) {
	s.begin(i, 2)
	for j := range protocol.ID(s.c.N) {
		if j != i {
			s.end(i, j)
			s.restore(i, j)
			s.restore(j, i)
		}
	}
}

// overtakes ends the stories of #1, who may wrongly count on #2: it is inside when #0 loses
// it, and goes on with #2.
func (s *story[M]) overtakes() string {
	s.get(1, 0, Done)
	s.get(0, 1, Resume)
	s.get(0, 2, Resume)
	s.try(1, "a")
	s.get(1, 0, Inner)
	s.get(0, 1, Inner)
	s.lapse(1, 0)
	s.lapse(0, 1)
	s.end(0, 1)
	s.get(0, 2, Restart)
	s.get(2, 0, Done)
	s.get(0, 2, Resume)
	s.try(2, "a")
	s.get(2, 0, Inner)
	s.get(0, 2, Inner)
	return s.fault
}

// The session of #1 and #2 breaks and comes back after #2 has joined an instance, and before #1
// would: it is in vain, because #2 does not know any more that #1 counts on it.
func cameBack() string {
	s := tell(suzukikasami.Algorithm, 3, 1)
	s.renew(1, 2)
	s.newest(1, 0, Notify)
	s.newest(2, 0, Notify)
	s.get(0, 2, Restart)
	s.get(2, 0, Done)
	s.renew(1, 2)
	s.newest(0, 1, Restart)
	return s.overtakes()
}

// The same, where #2 joins from outside.
func joinCameBack() string {
	s := tell(suzukikasami.Algorithm, 3, 1)
	s.crashes(2)
	s.get(1, 0, Notify)
	s.get(0, 1, Restart)
	s.get(1, 0, Done)
	s.get(0, 1, Resume)
	s.returns(2)
	s.get(2, 0, Join)
	s.get(0, 2, Restart)
	s.get(2, 0, Done)
	s.renew(1, 2)
	s.get(0, 1, Restart)
	return s.overtakes()
}

// #1 begins an instance that #2 refuses, because it has joined a newer one, of #0, which
// crashed: #1 begins another one.
func refusedLast() string {
	s := tell(suzukikasami.Algorithm, 3, 1)
	s.renew(0, 2)
	s.newest(2, 0, Notify)
	s.renew(0, 1)
	s.newest(1, 0, Notify)
	s.get(0, 2, Restart)
	s.lapse(1, 0)
	s.get(2, 1, Notify) // of the time when #2 had lost #0
	s.lapse(2, 0)
	s.end(1, 0)
	s.end(2, 0)
	s.mail = slices.DeleteFunc(s.mail, func(l letter[suzukikasami.Message]) bool { return l.to == 0 })
	s.newest(2, 1, Notify)
	s.rest()
	s.try(1, "")
	s.rest()
	if s.users[1] != protocol.InCrit {
		return "stuck by story, #1"
	}
	return s.fault
}

// #1 is asked to join with #2, which is linked with it, and has not said JOIN in their session:
// #2 may have joined in an earlier one, and have left that again.
func unheard() string {
	s := tell(suzukikasami.Algorithm, 3, 1)
	n := &Note{Number: 1, Set: upTo(3), Joins: only(2)}
	s.tells(0, 1, Frame[suzukikasami.Message]{Kind: Restart, Epoch: protocol.Epoch{Round: 2}, Note: n})
	if s.sent(1, Done) > 0 {
		return "exclusion by story, #1 joins with #2, of which it has heard nothing"
	}
	return ""
}

func TestStories(t *testing.T) {
	for _, s := range []func() string{cameBack, joinCameBack, refusedLast, unheard} {
		if fault := s(); fault != "" {
			t.Error(fault)
		}
	}
}
