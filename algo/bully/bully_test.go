package bully

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

// fire lets time pass: a process that asks hears nothing any more.
func fire(s *algotest.System[Message]) {
	for id, p := range s.Procs {
		if p != nil && p.(*Process).phase == asking {
			s.Step(protocol.ID(id), protocol.Input{Kind: protocol.Timeout, Timer: timer})
		}
	}
	s.Settle()
}

// led says what is wrong unless all live processes follow leader, in one epoch.
func led(s *algotest.System[Message], leader protocol.ID) string {
	for id, p := range s.Procs {
		if p == nil {
			continue
		}
		if l := s.Leaders[id]; l.To != leader || l.Arg != s.Leaders[leader].Arg || p.(*Process).phase != idle {
			return fmt.Sprintf("process %d follows %d in epoch %d: %s", id, l.To, l.Arg, protocol.Show(p))
		}
	}
	return ""
}

// election lets the highest of n processes crash and those in notice be told, and returns
// the messages by kind.
func election(n int, notice ...protocol.ID) (kinds []int, fault string) {
	s := system(n)
	s.Crash(protocol.ID(n - 1))
	for _, id := range notice {
		suspect(s, id, protocol.ID(n-1))
	}
	s.Settle()
	fire(s)
	return s.Kinds, led(s, protocol.ID(n-2))
}

// Best case: the second highest process notices that the leader has crashed. The slides
// count N-2 COORDINATORs; the ELECTION to the dead leader is one message more.
func TestBestCase(t *testing.T) {
	for n := 3; n <= 20; n++ {
		got, fault := election(n, protocol.ID(n-2))
		if want := []int{1, 0, n - 2}; fault != "" || !slices.Equal(got, want) {
			t.Errorf("N=%d: ELECTION, OK, COORDINATOR %v, want %v; %s", n, got, want, fault)
		}
		t.Logf("N=%d: ELECTION %d, OK %d, COORDINATOR %d: %d messages; the slides' N-2 is %d",
			n, got[0], got[1], got[2], sum(got), n-2)
	}
}

// Worst case: the lowest process notices, and makes all others elect. The slides count
// (N-1) + (N-2) + .. + 1 ELECTIONs and N-1 further messages.
func TestWorstCase(t *testing.T) {
	for n := 3; n <= 20; n++ {
		got, fault := election(n, 0)
		if want := worst(n); fault != "" || !slices.Equal(got, want) {
			t.Errorf("N=%d: ELECTION, OK, COORDINATOR %v, want %v; %s", n, got, want, fault)
		}
		t.Logf("N=%d: ELECTION %d, OK %d, COORDINATOR %d: %d messages; the slides' N(N-1)/2 + N-1 is %d",
			n, got[0], got[1], got[2], sum(got), n*(n-1)/2+n-1)
	}
}

// worst is N(N-1)/2 ELECTIONs, with those to the dead leader, (N-1)(N-2)/2 OKs and N-2
// COORDINATORs.
func worst(n int) []int { return []int{n * (n - 1) / 2, (n - 1) * (n - 2) / 2, n - 2} }

func sum(list []int) (s int) {
	for _, k := range list {
		s += k
	}
	return s
}

// The result does not depend on who started, nor on how many did at once: several
// concurrent elections end with one winner. All at once costs what the worst one does, since
// each process takes part in one election at a time.
func TestInitiators(t *testing.T) {
	const n = 6
	for set := 1; set < 1<<(n-1); set++ {
		var notice []protocol.ID
		for id := range protocol.ID(n - 1) {
			if set&(1<<id) != 0 {
				notice = append(notice, id)
			}
		}
		got, fault := election(n, notice...)
		if fault != "" {
			t.Errorf("%v notice: %s", notice, fault)
		}
		if slices.Contains(notice, 0) && !slices.Equal(got, worst(n)) {
			t.Errorf("%v notice: %v messages, want %v as if only the lowest did", notice, got, worst(n))
		}
	}
}

// A process that recovers elects, and takes the lead if it is the highest, in a newer epoch
// than those that it has forgotten.
func TestRecovery(t *testing.T) {
	const n = 4
	s := system(n)
	epochs := []uint64{s.Leaders[0].Arg}
	for life := uint64(2); life < 5; life++ {
		s.Crash(n - 1)
		for id := range protocol.ID(n - 1) {
			suspect(s, id, n-1)
		}
		s.Settle()
		fire(s)
		if fault := led(s, n-2); fault != "" {
			t.Fatal(fault)
		}
		epochs = append(epochs, s.Leaders[0].Arg)
		s.Recover(n-1, life)
		for id := range protocol.ID(n - 1) {
			s.Step(id, protocol.Input{Kind: protocol.Restore, From: n - 1, Arg: life})
		}
		s.Settle()
		fire(s)
		if fault := led(s, n-1); fault != "" {
			t.Fatal(fault)
		}
		epochs = append(epochs, s.Leaders[0].Arg)
	}
	if !slices.IsSorted(epochs) || len(slices.Compact(slices.Clone(epochs))) != len(epochs) {
		t.Errorf("epochs %v, want growing ones", epochs)
	}
}

// The stories return what is wrong.
func TestStories(t *testing.T) {
	for name, story := range map[string]func() string{
		"counts": counts, "recovered": recovered, "doubted": doubted, "overtaken": overtaken, "stale": stale, "patience": patience,
		"partition": partition,
	} {
		if fault := story(); fault != "" {
			t.Errorf("%s: %s", name, fault)
		}
	}
}

func counts() string {
	const n = 5
	for _, x := range []struct {
		notice protocol.ID
		want   []int
	}{{n - 2, []int{1, 0, n - 2}}, {0, worst(n)}} {
		if got, fault := election(n, x.notice); fault != "" || !slices.Equal(got, x.want) {
			return fmt.Sprintf("messages by story, %v: %s", got, fault)
		}
	}
	return ""
}

// recovered: a leader whose crash nobody noticed before it came back leads in another epoch,
// for it has forgotten what it promised. It asks all for the newest epoch, whom it does not
// suspect it tells the next one, and it does not take the one before for its own.
func recovered() string {
	const n = 4
	s := system(n)
	before := s.Leaders[0].Arg
	s.Crash(n - 1)
	s.Recover(n-1, 2)
	s.Settle()
	suspect(s, 1, n-1)
	s.Deliver(1, n-1, 0)
	if s.Kinds[Coordinator] != 0 {
		return "messages by story, a new life leads in an epoch of the old one"
	}
	s.Settle()
	s.Step(1, protocol.Input{Kind: protocol.Restore, From: n - 1, Arg: 2})
	suspect(s, n-1, 0)
	fire(s)
	if got, want := s.Kinds, []int{n - 1 + 3, n - 1 + 3, n - 2}; !slices.Equal(got, want) {
		return fmt.Sprintf("messages by story, %v, want %v", got, want)
	}
	s.Step(n-1, protocol.Input{Kind: protocol.Restore, From: 0})
	s.Settle()
	if fault := led(s, n-1); fault != "" {
		return "agreement by story, " + fault
	}
	if s.Leaders[0].Arg <= before {
		return "epochs by story, the new life leads in the epoch of the old one"
	}
	return ""
}

// doubted: a leader that is suspected by mistake is followed all the same, until it is trusted
// again and there is nothing to wait for.
func doubted() string {
	s := system(3)
	suspect(s, 0, 2)
	s.Settle()
	s.Step(0, protocol.Input{Kind: protocol.Restore, From: 2})
	s.Step(0, protocol.Input{Kind: protocol.Timeout, Timer: timer})
	if fault := led(s, 2); fault != "" {
		return "agreement by story, " + fault
	}
	return ""
}

// overtaken: a late OK changes nothing, and who is told again who leads says so once.
func overtaken() string {
	s := system(3)
	suspect(s, 0, 2)
	s.Step(0, protocol.Input{Kind: protocol.Restore, From: 2})
	s.Deliver(0, 2, 0)
	s.Deliver(2, 0, 1) // COORDINATOR
	s.Settle()
	if fault := led(s, 2); fault != "" {
		return "agreement by story, " + fault
	}
	var out protocol.Out[Message]
	s.Procs[0].Step(protocol.Event[Message]{
		Input: protocol.Input{Kind: protocol.Receive, From: 2}, Msg: Message{Coordinator, protocol.Epoch{Round: 1, Leader: 2}},
	}, &out)
	for _, e := range out.Effects {
		if e.Do == protocol.Leader {
			return "effects by story, the same leader is named again"
		}
	}
	return ""
}

// stale: who leads in an older epoch than somebody has heard of hears of it, and takes the
// lead back at once with a newer one.
func stale() string {
	s := system(3)
	suspect(s, 1, 2) // by mistake, and the answer takes too long
	s.Step(1, protocol.Input{Kind: protocol.Timeout, Timer: timer})
	drop(s, 1, 2)
	s.Settle()
	if s.Leaders[0].To != 1 || s.Leaders[1].To != 1 || s.Leaders[2].To != 2 {
		return "agreement by story, there are not two leaders"
	}
	wrong := s.Leaders[1].Arg
	s.Step(2, protocol.Input{Kind: protocol.Restore, From: 0}) // so that it tells that it leads
	s.Step(1, protocol.Input{Kind: protocol.Restore, From: 2})
	drop(s, 1, 2)
	s.Settle()
	if fault := led(s, 2); fault != "" || s.Leaders[2].Arg <= wrong {
		return fmt.Sprintf("agreement by story, epoch %d after %d: %s", s.Leaders[2].Arg, wrong, fault)
	}
	var out protocol.Out[Message]
	s.Procs[2].Step(protocol.Event[Message]{
		Input: protocol.Input{Kind: protocol.Receive, From: 1}, Msg: Message{Coordinator, protocol.Epoch{Round: 1, Leader: 1}},
	}, &out)
	if len(out.Effects) != 0 {
		return "messages by story, a lower process is asked whether it leads"
	}
	return ""
}

// patience: a process that has an OK does not lead because the time is over.
func patience() string {
	s := system(3)
	s.Crash(2)
	suspect(s, 0, 2)
	s.Deliver(0, 1, 0)
	s.Deliver(1, 0, 0)
	for range 3 {
		s.Step(0, protocol.Input{Kind: protocol.Timeout, Timer: timer})
	}
	if s.Leaders[0].To == 0 {
		return "agreement by story, it leads although a higher process lives"
	}
	return ""
}

// partition has one leader on each side, in different epochs. When it is over the highest
// one wins again, with an epoch that is newer than both.
func partition() string {
	s := system(5)
	sides := [][]protocol.ID{{0, 1}, {2, 3, 4}}
	for side, members := range sides {
		for _, id := range members {
			for _, j := range sides[1-side] {
				suspect(s, id, j)
				drop(s, id, j)
			}
		}
	}
	drain(s, sides)
	for id, p := range s.Procs {
		if p.(*Process).phase == asking {
			s.Step(protocol.ID(id), protocol.Input{Kind: protocol.Timeout, Timer: timer})
		}
	}
	drain(s, sides)
	for side, members := range sides {
		leader := members[len(members)-1]
		for _, id := range members {
			if got := s.Leaders[id].To; got != leader {
				return fmt.Sprintf("agreement by story, on side %d process %d follows %d, want %d", side, id, got, leader)
			}
		}
	}
	if s.Leaders[1].Arg == s.Leaders[4].Arg {
		return fmt.Sprintf("epochs by story, both sides are in epoch %d", s.Leaders[1].Arg)
	}
	newest := max(s.Leaders[1].Arg, s.Leaders[4].Arg)
	for side, members := range sides {
		for _, id := range members {
			for _, j := range sides[1-side] {
				s.Step(id, protocol.Input{Kind: protocol.Restore, From: j})
			}
		}
	}
	s.Settle()
	fire(s)
	if fault := led(s, 4); fault != "" || s.Leaders[4].Arg <= newest {
		return fmt.Sprintf("agreement by story, epoch %d, before %d: %s", s.Leaders[4].Arg, newest, fault)
	}
	return ""
}

// drain delivers what stays on one side, and drops the rest.
func drain(s *algotest.System[Message], sides [][]protocol.ID) {
	for again := true; again; {
		again = false
		for side, members := range sides {
			for _, id := range members {
				for _, j := range sides[1-side] {
					drop(s, id, j)
				}
				for _, j := range members {
					for len(s.InFlight(id, j)) > 0 {
						s.Deliver(id, j, 0)
						again = true
					}
				}
			}
		}
	}
}

func drop(s *algotest.System[Message], from, to protocol.ID) {
	for len(s.InFlight(from, to)) > 0 {
		s.Drop(from, to, 0)
	}
}

// Every text of the catalogue in one place, so that traces can be read.
func TestText(t *testing.T) {
	e := protocol.Epoch{Round: 2, Leader: 1}
	for want, m := range map[string]Message{
		"ELECTION(2,#1)":    {Election, e},
		"ELECTION(none)":    {Kind: Election},
		"OK(2,#1)":          {OK, e},
		"COORDINATOR(2,#1)": {Coordinator, e},
	} {
		if got := Algorithm.Text(m); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
