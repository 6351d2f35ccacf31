package ringelection

import (
	"fmt"
	"slices"
	"testing"

	"github.com/poundlock/poundlock/algo/algotest"
	"github.com/poundlock/poundlock/protocol"
)

func system(n int) *algotest.System[Message] {
	return algotest.NewSystem(Algorithm, protocol.Config{N: n}, 0)
}

func suspect(s *algotest.System[Message], id, j protocol.ID) {
	s.Step(id, protocol.Input{Kind: protocol.Suspect, From: j})
}

func restore(s *algotest.System[Message], id, j protocol.ID) {
	s.Step(id, protocol.Input{Kind: protocol.Restore, From: j})
}

// led says what is wrong unless all live processes follow leader, in one epoch, and none
// takes part in an election.
func led(s *algotest.System[Message], leader protocol.ID) string {
	for id, p := range s.Procs {
		if p == nil {
			continue
		}
		if l := s.Leaders[id]; l.To != leader || l.Arg != s.Leaders[leader].Arg || len(p.(*Process).list) > 0 {
			return fmt.Sprintf("agreement by story, process %d follows %d in epoch %d: %s", id, l.To, l.Arg, protocol.Show(p))
		}
	}
	return ""
}

// A load is one of the ways to elect whose messages are counted: ELECTIONs and COORDINATORs.
var loads = []struct {
	name    string
	slides  string
	run     func(s *algotest.System[Message], n protocol.ID)
	leader  func(n int) int
	formula string
	want    func(n int) []int
}{
	{
		"all alive, one suspects the leader by mistake", "2N",
		func(s *algotest.System[Message], n protocol.ID) { suspect(s, 0, n-1) },
		func(n int) int { return n - 1 }, "N + N", func(n int) []int { return []int{n, n, 0} },
	},
	{
		"the predecessor of the crashed leader notices, and skips it", "2N",
		func(s *algotest.System[Message], n protocol.ID) { s.Crash(n - 1); suspect(s, n-2, n-1) },
		func(n int) int { return n - 2 }, "(N-1) + (N-1)", func(n int) []int { return []int{n - 1, n - 1, 0} },
	},
	{
		"the first process notices, and the predecessor after it has probed the leader", "2N",
		func(s *algotest.System[Message], n protocol.ID) {
			s.Crash(n - 1)
			suspect(s, 0, n-1)
			s.Settle()
			suspect(s, n-2, n-1)
		},
		func(n int) int { return n - 2 }, "(N-1) + 1 + (N-1)", func(n int) []int { return []int{n, n - 1, 0} },
	},
	{
		"all notice at once", "2N",
		func(s *algotest.System[Message], n protocol.ID) {
			s.Crash(n - 1)
			for id := range n - 1 {
				suspect(s, id, n-1)
			}
		},
		func(n int) int { return n - 2 }, "(2N-3) + (N-1)", func(n int) []int { return []int{2*n - 3, n - 1, 0} },
	},
}

func TestMessages(t *testing.T) {
	for _, l := range loads {
		for n := 3; n <= 20; n++ {
			s := system(n)
			l.run(s, protocol.ID(n))
			s.Settle()
			got, want := s.Kinds, l.want(n)
			if fault := led(s, protocol.ID(l.leader(n))); fault != "" || !slices.Equal(got, want) {
				t.Errorf("%s, N=%d: ELECTION, COORDINATOR, RECOVERED %v, want %v; %s", l.name, n, got, want, fault)
			}
			t.Logf("%s, N=%d: ELECTION %d, COORDINATOR %d, %s; the slides' %s is %d",
				l.name, n, got[0], got[1], l.formula, l.slides, 2*n)
		}
	}
}

// The result does not depend on who started, nor on how many did at once: concurrent
// initiators announce the same winner.
func TestInitiators(t *testing.T) {
	const n = 6
	for set := 1; set < 1<<(n-1); set++ {
		s := system(n)
		s.Crash(n - 1)
		for id := range protocol.ID(n - 1) {
			if set&(1<<id) != 0 {
				suspect(s, id, n-1)
			}
		}
		s.Settle()
		for id := range protocol.ID(n - 1) {
			suspect(s, id, n-1)
		}
		s.Settle()
		if fault := led(s, n-2); fault != "" {
			t.Errorf("initiators %b: %s", set, fault)
		}
	}
}

func TestStories(t *testing.T) {
	for name, story := range map[string]func() string{
		"messages": messagesOf, "initiator": initiator, "holder": holder, "recovered": recovered, "partition": partition,
		"stale": stale, "once": announcedOnce, "crossing": crossing, "former": former, "quiet": quiet,
	} {
		if fault := story(); fault != "" {
			t.Errorf("%s: %s", name, fault)
		}
	}
}

// messagesOf is TestMessages for one size.
func messagesOf() string {
	const n = 5
	for _, l := range loads {
		s := system(n)
		l.run(s, n)
		s.Settle()
		if fault := led(s, protocol.ID(l.leader(n))); fault != "" || !slices.Equal(s.Kinds, l.want(n)) {
			return fmt.Sprintf("messages by story, %v when %s: %s", s.Kinds, l.name, fault)
		}
	}
	return ""
}

// initiator: an initiator that dies during its election does not leave an ELECTION that goes
// round for ever: the first process after it finds its own id, and announces in its place.
func initiator() string {
	s := system(5)
	s.Crash(4)
	suspect(s, 1, 4)
	s.Deliver(1, 2, 0)
	s.Crash(1)
	suspect(s, 3, 4)
	suspect(s, 0, 1)
	s.Settle()
	suspect(s, 0, 4)
	suspect(s, 2, 1)
	suspect(s, 2, 4)
	suspect(s, 3, 1)
	s.Settle()
	return led(s, 3)
}

// holder: what a process that dies had in its hands goes on, from the one before it.
func holder() string {
	s := system(5)
	s.Crash(4)
	suspect(s, 3, 4)
	s.Deliver(3, 0, 0)
	s.Deliver(0, 1, 0)
	s.Crash(1)
	s.Settle()
	suspect(s, 0, 1)
	s.Settle()
	if s.Leaders[3].To != 3 {
		return "agreement by story, the election was lost with who died"
	}
	s = system(5)
	s.Crash(4)
	suspect(s, 3, 4)
	for _, hop := range []protocol.ID{3, 0, 1, 2} {
		s.Deliver(hop, map[protocol.ID]protocol.ID{3: 0, 0: 1, 1: 2, 2: 3}[hop], 0)
	}
	s.Deliver(3, 0, 0) // COORDINATOR
	s.Deliver(0, 1, 0)
	s.Crash(1)
	suspect(s, 0, 1)
	s.Settle()
	if fault := led(s, 3); fault != "" {
		return fault
	}
	return ""
}

// recovered: a process that comes back before anybody notices is told what its former life was, by its
// predecessor alone. A leader leads in a newer epoch then.
func recovered() string {
	s := system(4)
	before := s.Leaders[0].Arg
	s.Crash(3)
	s.Recover(3, 2)
	if s.Leaders[3].Arg != 0 {
		return "epochs by story, a new life leads before it knows an epoch"
	}
	s.Deliver(3, 2, 0)
	s.Deliver(2, 3, 0)
	if s.Leaders[3].Arg != 0 {
		return "epochs by story, a new life leads in the epoch of the old one"
	}
	s.Settle()
	if got, want := s.Kinds, []int{4, 1 + 4, 3}; !slices.Equal(got, want) {
		return fmt.Sprintf("messages by story, %v, want %v", got, want)
	}
	if fault := led(s, 3); fault != "" || s.Leaders[0].Arg <= before {
		return fmt.Sprintf("agreement by story, epoch %d: %s", s.Leaders[0].Arg, fault)
	}
	// The same of one that does not lead: nobody elects.
	s = system(4)
	s.Crash(1)
	s.Recover(1, 2)
	s.Settle()
	if got, want := s.Kinds, []int{0, 2, 3}; !slices.Equal(got, want) {
		return fmt.Sprintf("messages by story, %v, want %v", got, want)
	}
	// When everybody has come back, the last one makes its predecessor elect.
	s = system(2)
	s.Crash(0)
	s.Crash(1)
	s.Recover(0, 2)
	s.Recover(1, 2)
	s.Settle()
	if fault := led(s, 1); fault != "" || s.Leaders[0].Arg == 0 {
		return fmt.Sprintf("agreement by story, epoch %d of those who came back: %s", s.Leaders[0].Arg, fault)
	}
	// Alone in the world, it leads.
	s = system(1)
	s.Crash(0)
	s.Recover(0, 2)
	if s.Leaders[0].Arg == 0 {
		return "agreement by story, nobody leads where one is alone"
	}
	return led(s, 0)
}

// crossing: two copies of the ELECTION of who died meet each other, and one of them goes on.
func crossing() string {
	s := system(3)
	s.Crash(2)
	suspect(s, 1, 2) // sends [1] to 0
	s.Recover(2, 2)
	restore(s, 1, 2) // and [1] to 2
	s.Crash(1)
	s.Deliver(1, 0, 0)
	s.Deliver(1, 2, 0)
	suspect(s, 0, 1)
	suspect(s, 2, 1)
	s.Settle()
	return led(s, 2)
}

// former: a process that has come back does not lead the epoch of its former life that somebody wants
// to end, and leaves the election of who knew no more than itself.
func former() string {
	s := system(3)
	s.Crash(2)
	s.Recover(2, 2)
	var out protocol.Out[Message]
	receive := func(m Message) {
		s.Procs[2].Step(protocol.Event[Message]{Input: protocol.Input{Kind: protocol.Receive, From: 1}, Msg: m}, &out)
	}
	receive(Message{Kind: Election, IDs: []uint64{1}})
	out.Reset()
	receive(Message{Kind: Election, Epoch: protocol.Epoch{Round: 1, Leader: 2}, IDs: []uint64{0}})
	if len(out.Effects) != 1 || out.Effects[0].Do != protocol.Send || out.Effects[0].To != 0 {
		return fmt.Sprintf("epochs by story, a new life does %v", out.Effects)
	}
	return ""
}

// quiet: only a change of the successor is a reason to tell it something, and what is sent
// is frozen.
func quiet() string {
	s := system(4)
	suspect(s, 0, 2)
	restore(s, 0, 2)
	if s.Sent != 0 {
		return "messages by story, it tells its successor what that knows"
	}
	suspect(s, 0, 3)
	s.Procs[0].(*Process).list[0] = 3
	if s.InFlight(0, 1)[0].IDs[0] != 0 {
		return "messages by story, one changes on its way"
	}
	return ""
}

// partition has one leader on each side, in different epochs. When it is over the highest
// one wins again, with an epoch that is newer than both.
func partition() string {
	s := system(5)
	sides := [][]protocol.ID{{0, 1}, {2, 3, 4}}
	across := func(do func(id, j protocol.ID)) {
		for side, members := range sides {
			for _, id := range members {
				for _, j := range sides[1-side] {
					do(id, j)
				}
			}
		}
	}
	across(func(id, j protocol.ID) { suspect(s, id, j) })
	for again := true; again; {
		across(func(id, j protocol.ID) {
			for len(s.InFlight(id, j)) > 0 {
				s.Drop(id, j, 0)
			}
		})
		again = false
		for _, members := range sides {
			for _, id := range members {
				for _, j := range members {
					if len(s.InFlight(id, j)) > 0 {
						s.Deliver(id, j, 0)
						again = true
					}
				}
			}
		}
	}
	for _, members := range sides {
		leader := members[len(members)-1]
		for _, id := range members {
			if got := s.Leaders[id].To; got != leader {
				return fmt.Sprintf("agreement by story, process %d follows %d, want %d", id, got, leader)
			}
		}
	}
	if s.Leaders[1].Arg == s.Leaders[4].Arg {
		return "epochs by story, both sides are in one"
	}
	newest := max(s.Leaders[1].Arg, s.Leaders[4].Arg)
	across(func(id, j protocol.ID) { restore(s, id, j) })
	s.Settle()
	if fault := led(s, 4); fault != "" || s.Leaders[4].Arg <= newest {
		return fmt.Sprintf("agreement by story, epoch %d after %d: %s", s.Leaders[4].Arg, newest, fault)
	}
	return ""
}

// stale: who elects in an epoch that is over, or announces one, is told of the newest.
func stale() string {
	for _, kind := range []uint8{Election, Coordinator} {
		s := system(3)
		s.Crash(2)
		suspect(s, 1, 2)
		suspect(s, 0, 2)
		s.Settle()
		sent := s.Kinds[Coordinator]
		var out protocol.Out[Message]
		m := Message{Kind: kind, Epoch: protocol.Epoch{Round: 1, Leader: 2}}
		if kind == Election {
			m.IDs = []uint64{1}
		}
		s.Procs[0].Step(protocol.Event[Message]{Input: protocol.Input{Kind: protocol.Receive, From: 1}, Msg: m}, &out)
		if len(out.Effects) != 1 || out.Effects[0].Msg.Kind != Coordinator || out.Effects[0].To != 1 {
			return fmt.Sprintf("messages by story, %v in answer to %s, after %d COORDINATORs", out.Effects, text(m), sent)
		}
	}
	return ""
}

// announcedOnce: an ELECTION that comes back twice, because somebody was suspected by mistake
// on its way, is announced once.
func announcedOnce() string {
	s := system(4)
	suspect(s, 0, 3) // by mistake: 0 elects
	s.Deliver(0, 1, 0)
	suspect(s, 1, 2) // by mistake: 1 hands on again, to 3
	s.Settle()
	if s.Kinds[Election] != 6 {
		return fmt.Sprintf("messages by story, %d ELECTIONs, want 4, one from 1 to 3, and that one from 3 to 0", s.Kinds[Election])
	}
	before := s.Leaders[0].Arg
	restore(s, 0, 3)
	restore(s, 1, 2)
	s.Settle()
	if fault := led(s, 3); fault != "" {
		return fault
	}
	if s.Leaders[0].Arg != before {
		return "epochs by story, one election began two of them"
	}
	return ""
}

// Every text of the catalogue in one place, so that traces can be read.
func TestText(t *testing.T) {
	e := protocol.Epoch{Round: 2, Leader: 1}
	for want, m := range map[string]Message{
		"ELECTION(2,#1,[#0,#2])": {Election, e, []uint64{0, 2}},
		"ELECTION(none,[#0])":    {Kind: Election, IDs: []uint64{0}},
		"COORDINATOR(2,#1)":      {Kind: Coordinator, Epoch: e},
		"RECOVERED":              {Kind: Recovered},
	} {
		if got := Algorithm.Text(m); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
