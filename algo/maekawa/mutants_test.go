package maekawa

import (
	"testing"

	"github.com/poundlock/poundlock/algo/algotest"
	"github.com/poundlock/poundlock/algo/algotest/mutant"
	"github.com/poundlock/poundlock/algo/quorum"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
)

// The form that asks votes back, each guard removed once. The mutants with names are among
// others the mistakes that Sanders and others found in published versions.
func TestMutants(t *testing.T) {
	mutant.Test(t, mutant.Config{
		Checks: []mutant.Check{
			mutant.Decided(Algorithm, model(3, "all", unlimited)),
			mutant.Decided(Algorithm, model(4, "all", unlimited, unlimited, 0, 0)),
			mutant.Model(Algorithm, model(4, "all", 1, 1, 1, 0)),
			func() (string, error) { return impossible(), nil },
			func() (string, error) { return voter(), nil },
			// What only the memory of a process shows, not its encoding.
			algotest.Examine(Algorithm, algotest.Options{Skip: map[string]string{
				"Exhaustive": "done above", "Allocations": "cannot fail by a wrong step", "Events": "done above",
			}}),
			mutant.Reduced(Algorithm, check.Config{
				Config: protocol.Config{N: 4}, Entries: []int{1, 1, 1, 0}, Reduce: []string{check.ReduceOrder},
			}, 8077),
		},
		Outside: map[string]string{
			"votes":        "a property, not the machine",
			"BasicProcess": "TestBasicMutants",
			"forms":        "TestSets",
		},
		Replace: []mutant.Replacement{
			mutant.Edit("nobody tells who came first that it no longer does", "p.send(p.queue[1].ID, Message{Kind: Failed}, out)", ""),
			mutant.Edit("nobody tells who comes later", "p.send(r.ID, Message{Kind: Failed}, out)", ""),
			mutant.Edit("no vote is asked back", "p.send(p.vote.ID, Message{Kind: Inquire}, out)", ""),
			mutant.Edit("an INQUIRE that comes too early is forgotten", "*a = inquired", ""),
			mutant.Edit("FAILED does not give back what was asked for", "p.yield(j, out)", "_ = j"),
			mutant.Edit("a vote is given back twice", "*p.answer(to) = failed", ""),
			mutant.Edit("who is inside gives votes back", "clear(p.answers)", ""),
			mutant.Edit("who gives its vote back is forgotten", "p.wait(p.vote)", ""),
			mutant.Edit("who gives its vote back comes first again", "p.wait(p.vote)", "p.queue = slices.Insert(p.queue, 0, p.vote)"),
			mutant.Edit("requests wait in the order of arrival", "p.queue = slices.Insert(p.queue, k, r)", "k = len(p.queue)\n\tp.queue = append(p.queue, r)"),
			mutant.Edit("the next one is asked for its vote already", "p.vote, p.asked = r, false", "p.vote = r"),
			mutant.Edit("the vote is not free again", "p.vote, p.asked = protocol.Stamp{}, false", "p.asked = false"),
			mutant.Edit("who gets the vote still waits", "p.queue = slices.Delete(p.queue, 0, 1)\n\tp.voteFor", "p.voteFor"),
			mutant.Edit("a request is as early as the last one", "Time: p.clock + 1", "Time: 1"),
			mutant.Edit("no message raises the clock", "p.clock = max(p.clock, ev.Msg.Time)", ""),
			mutant.Edit("a message lowers the clock", "p.clock = max(p.clock, ev.Msg.Time)", "p.clock = ev.Msg.Time"),
			mutant.Edit("votes do not tell how late the others are", "m.Time = p.queue[len(p.queue)-1].Time", ""),
			mutant.Edit("votes tell of the first one only", "m.Time = p.queue[len(p.queue)-1].Time", "m.Time = p.queue[0].Time"),
			mutant.Edit("exit stays inside", "p.section = protocol.InRem\n\tout.Rem()\n\tfor _, j := range p.voters {\n\t\tp.send(j, Message{Kind: Release}, out)", "out.Rem()\n\tfor _, j := range p.voters {\n\t\tp.send(j, Message{Kind: Release}, out)"),
		},
	})
}

// impossible: what the model excludes is refused by name.
func impossible() string {
	type event struct {
		from protocol.ID
		kind uint8
	}
	for _, test := range []struct {
		at     protocol.ID
		before []event // of asked; the last one is impossible
		text   string
	}{
		{0, []event{{3, Reply}}, "an answer of who was not asked"},
		{3, []event{{0, Reply}}, "a REPLY that nobody waits for"},
		{0, []event{{1, Reply}, {1, Reply}}, "a REPLY that nobody waits for"},
		{3, []event{{0, Failed}}, "a FAILED that says nothing new"},
		{0, []event{{1, Reply}, {1, Failed}}, "a FAILED that says nothing new"},
		{2, []event{{0, Yield}}, "a YIELD of what was not asked back"},
		{1, []event{{0, Yield}}, "a YIELD of what was not asked back"},
		{2, []event{{0, Release}}, "a RELEASE of a vote that it has not"},
		{3, []event{{0, Release}}, "a RELEASE of a vote that it has not"},
	} {
		s := asked()
		fault, _ := mutant.Panics("maekawa: "+test.text, func() {
			for _, e := range test.before {
				var out protocol.Out[Message]
				s.Procs[test.at].Step(protocol.Event[Message]{
					Input: protocol.Input{Kind: protocol.Receive, From: e.from}, Msg: Message{Kind: e.kind},
				}, &out)
			}
		})()
		if fault != "" {
			return fault + ", instead of " + test.text
		}
	}
	return ""
}

// voter: of many requests at one voter each is told once that it does not come first, and
// the vote is asked back once. Majorities of nine let it have five requests.
func voter() string {
	p := Algorithm.New(4, protocol.Config{N: 9, Options: map[string]int64{"sets": int64(quorum.Majorities)}})
	for _, step := range []struct {
		from protocol.ID
		m    Message
		to   protocol.ID
		want string
	}{
		{3, Message{Request, 9}, 3, "REPLY"},
		{2, Message{Request, 4}, 3, "INQUIRE"},
		{1, Message{Request, 3}, 2, "FAILED"},
		{0, Message{Request, 5}, 0, "FAILED"},
		{3, Message{Kind: Yield}, 1, "REPLY(9)"},
		{1, Message{Kind: Release}, 2, "REPLY(9)"},
		{1, Message{Request, 10}, 1, "FAILED"},
		{2, Message{Kind: Release}, 0, "REPLY(10)"},
		{0, Message{Kind: Release}, 3, "REPLY(10)"},
		{3, Message{Kind: Release}, 1, "REPLY"},
	} {
		var out protocol.Out[Message]
		p.Step(protocol.Event[Message]{Input: protocol.Input{Kind: protocol.Receive, From: step.from}, Msg: step.m}, &out)
		if len(out.Effects) != 1 || out.Effects[0].To != step.to || text(out.Effects[0].Msg) != step.want {
			return "voter by story, " + text(step.m) + " is not answered by one " + step.want
		}
	}
	return ""
}

func TestVoter(t *testing.T) {
	for _, fault := range []string{impossible(), voter()} {
		if fault != "" {
			t.Error(fault)
		}
	}
}

// The basic form, and the one with the handler as printed.
func TestBasicMutants(t *testing.T) {
	safe := "exclusion,well-formed"
	mutant.Test(t, mutant.Config{
		Checks: []mutant.Check{
			mutant.Model(Basic, model(3, "all", 2, 2, 0)), // two of them do not deadlock
			mutant.Decided(Basic, model(2, safe, unlimited)),
			mutant.Decided(Basic, model(3, safe, unlimited)),
			mutant.Model(Basic, model(4, safe, 1)),
			mutant.Panics("maekawa: ", func() {
				var out protocol.Out[Message]
				Basic.New(0, protocol.Config{N: 3}).Step(protocol.Event[Message]{
					Input: protocol.Input{Kind: protocol.Receive, From: 1}, Msg: Message{Kind: Reply},
				}, &out)
			}),
			func() (string, error) {
				v, err := check.Run(PrintedVote, with(quorum.Slides, model(3, "exclusion", 1)))
				if err == nil && (v.Verdict != check.Violated || len(v.Trace) != 6) {
					return "exclusion by story, the printed vote does not violate it", nil
				}
				return "", err
			},
			func() (string, error) { return queued(), nil },
		},
		Inside: []string{"BasicProcess"},
		Replace: []mutant.Replacement{
			mutant.Edit("a vote is not remembered", "p.voted = true", ""),
			mutant.Edit("a vote is for ever", "p.voted = false", ""),
			mutant.Edit("votes of the last request count", "protocol.InCrit, 0", "protocol.InCrit, p.replies"),
			mutant.Edit("votes are not counted", "p.replies++", ""),
			mutant.Edit("who gets the vote still waits", "p.queue = slices.Delete(p.queue, 0, 1)\n\t\tp.vote(", "p.vote("),
			mutant.Edit("the last one is served first", "next := p.queue[0]\n\t\tp.queue = slices.Delete(p.queue, 0, 1)", "next := p.queue[len(p.queue)-1]\n\t\tp.queue = p.queue[:len(p.queue)-1]"),
			mutant.Edit("who must wait is forgotten", "p.queue = append(p.queue, j)", ""),
		},
	})
}

// queued: a process that asks a process that has voted, or that is inside, waits for its vote; the
// votes come in the order of requests. The slides, "upon receiving a request" and "on
// receipt of a release".
func queued() string {
	s := algotest.NewSystem(PrintedVote, protocol.Config{N: 3}, 0)
	s.Try(0)
	s.Deliver(0, 1, 0)
	s.Deliver(1, 0, 0)
	s.Try(2)
	if s.Deliver(2, 0, 0); len(s.InFlight(0, 2)) > 0 {
		return "queue by story, who is inside votes, although state = HELD"
	}
	s = algotest.NewSystem(Basic, protocol.Config{N: 4}, 0)
	s.Try(2)
	s.Settle()
	for _, j := range []protocol.ID{1, 0} {
		s.Try(j)
		s.Deliver(j, 2, 0)
	}
	s.Exit(2)
	if len(s.InFlight(2, 1)) != 1 || len(s.InFlight(2, 0)) != 1 { // to 0 there is RELEASE alone
		return "queue by story, the vote does not go to who asked first"
	}
	return ""
}

func TestQueue(t *testing.T) {
	if fault := queued(); fault != "" {
		t.Error(fault)
	}
}
