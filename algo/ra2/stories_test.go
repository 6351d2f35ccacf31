package ra2

import (
	"fmt"
	"slices"
	"testing"

	"github.com/poundlock/poundlock/protocol"
)

// Stories that are checks of mutants, too: each returns what is wrong, "" if nothing is.
func TestStories(t *testing.T) {
	for _, story := range []func() string{synchronization, invitations, followers, spared, choices} {
		if fault := story(); fault != "" {
			t.Error(fault)
		}
	}
}

func (s system) inside(story string, want ...protocol.ID) string {
	if got := s.Inside(); !slices.Equal(got, want) {
		return fmt.Sprintf("%s by story, inside is %v, want %v", story, got, want)
	}
	return ""
}

// From the last exit of one group it takes one message delay to the entry of the leader of
// the next, and one more to that of a follower, here 3, who has not the permission of 2.
// Mittal and Mohan 2007, sections 1.1 and 4.3.
func synchronization() string {
	s := start(4, nil)
	s.try(0, "a")
	s.Settle()
	for id, wants := range []string{1: "b", 2: "c", 3: "b"} {
		if id > 0 {
			s.try(protocol.ID(id), wants)
			s.Settle()
		}
	}
	s.Exit(0)
	for _, want := range [][]protocol.ID{{1}, {1, 3}} {
		s.wave()
		if fault := s.inside("synchronization", want...); fault != "" {
			return fault
		}
	}
	return ""
}

// A process that comes for the group of a leader that is inside is invited, and enters although others
// have not answered; with invite=entry it must have all answers.
func invitations() string {
	for invite, inside := range map[int64][]protocol.ID{InviteArrivals: {0, 2}, InviteOnEntry: {0}} {
		s := start(3, with("invite", invite))
		s.try(0, "a")
		s.Settle()
		s.try(1, "b") // and waits for 0
		s.Settle()
		s.try(2, "a")
		s.Settle()
		if fault := s.inside("invitations", inside...); fault != "" {
			return fault
		}
	}
	return ""
}

// Followers invite nobody, neither who waits when they enter nor who comes later: else a
// group could go on for ever. So 3 waits for 1, who came before.
func followers() string {
	for _, early := range []bool{true, false} {
		s := start(4, nil)
		s.try(0, "a")
		s.Settle()
		s.try(1, "b")
		s.Settle()
		s.try(2, "a")
		s.Deliver(2, 0, 0)
		s.Exit(0) // 2 is invited, and 1 must wait for it
		if early {
			s.try(3, "a")
			s.Deliver(3, 2, 0)
		}
		s.Settle()
		if !early {
			s.try(3, "a")
		}
		s.Settle()
		if fault := s.inside("followers", 2); fault != "" {
			return fault
		}
	}
	return ""
}

// A process that is known to be invited gets no REPLY, not even one that was deferred, and no second
// START; and a leader sends no second REPLY.
func spared() string {
	// 0 leads, and knows from 2's REPLY, or from nobody, that 1 was invited by 2.
	p := newProcess(0, protocol.Config{N: 3}).(*Process)
	step := func(in protocol.Input, m Message) (sent []Message) {
		var out protocol.Out[Message]
		p.Step(protocol.Event[Message]{Input: in, Msg: m}, &out)
		for _, e := range out.Effects {
			if e.Do == protocol.Send {
				sent = append(sent, e.Msg)
			}
		}
		return sent
	}
	from := func(id protocol.ID) protocol.Input { return protocol.Input{Kind: protocol.Receive, From: id} }
	grant := func(number uint32) Grants { return listed([]Grant{{1, number}}) }
	try, exit := protocol.Input{Kind: protocol.Try, Data: "a"}, protocol.Input{Kind: protocol.Exit}

	step(try, Message{})
	step(from(1), Message{Kind: Request, Time: 2, Group: "b"}) // deferred
	step(from(2), Message{Kind: Reply, Number: 1, Grants: grant(1)})
	step(from(1), Message{Kind: Reply, Number: 1, Done: 1}) // 1 has been in and out
	if p.section != protocol.InCrit {
		return "spared by story, 0 is not inside"
	}
	if sent := step(exit, Message{}); len(sent) != 0 {
		return fmt.Sprintf("spared by story, a REPLY to a request that is done: %v", sent)
	}
	step(try, Message{})
	step(from(1), Message{Kind: Request, Time: 9, Group: "b"}) // deferred
	step(from(2), Message{Kind: Start, Number: 2, Grants: grant(2)})
	if sent := step(exit, Message{}); len(sent) != 0 {
		return fmt.Sprintf("spared by story, a deferred REPLY to who is invited: %v", sent)
	}
	step(from(2), Message{Kind: Reply, Grants: grant(3)})
	if sent := step(from(1), Message{Kind: Request, Time: 10, Group: "a"}); len(sent) != 0 {
		return fmt.Sprintf("spared by story, a REPLY to who is invited: %v", sent)
	}
	step(try, Message{})
	step(from(1), Message{Kind: Reply, Number: 3, Done: 2})
	if sent := step(from(2), Message{Kind: Reply, Number: 3}); len(sent) != 0 || !p.leads {
		return fmt.Sprintf("spared by story, a second invitation: %v", sent)
	}
	step(exit, Message{})

	// 2 has the permission of 0 for b before 0 asks for a, and is in its turn before 0 leads.
	step(from(2), Message{Kind: Request, Time: 20, Group: "b"})
	step(try, Message{})
	step(from(1), Message{Kind: Reply, Number: 4, Done: 3})
	step(from(2), Message{Kind: Reply, Number: 4})
	if sent := step(exit, Message{}); len(sent) != 0 {
		return fmt.Sprintf("spared by story, a second REPLY of a leader: %v", sent)
	}
	return ""
}

// What the options do to the vector on messages: 0 invites 2, and tells 1 when it leaves, and
// again when 1 asks again.
func choices() string {
	for _, c := range []struct {
		options       map[string]int64
		first, second string
		ints          int
	}{
		{nil, "[#2:1]", "[]", 4},
		{with("entry", 1), "[#2:1]", "[]", 3},
		{with("full", 1), "[#2:1]", "[#2:1]", 4},
		{with("selfgrant", 1), "[#0:1,#2:1]", "[]", 6},
	} {
		s := start(3, c.options)
		s.try(0, "a")
		s.Settle()
		s.try(1, "b")
		s.Settle()
		s.try(2, "a")
		s.Settle()
		s.Exit(0)
		m := s.InFlight(0, 1)[0]
		if got := m.Grants.String(); got != c.first || ints(m) != c.ints {
			return fmt.Sprintf("options by story, %v: told %s with %d integers, want %s with %d", c.options, got, ints(m), c.first, c.ints)
		}
		s.Settle()
		s.Exit(2)
		s.Settle()
		s.Exit(1)
		s.try(1, "b")
		s.Deliver(1, 0, 0)
		if got := s.InFlight(0, 1)[0].Grants.String(); got != c.second {
			return fmt.Sprintf("options by story, %v: told %s again, want %s", c.options, got, c.second)
		}
	}
	return ""
}
