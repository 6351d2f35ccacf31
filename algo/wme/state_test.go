package wme

import (
	"slices"
	"testing"

	"github.com/poundlock/poundlock/protocol"
)

// fed is what a process does with an event.
func fed(p *Process, in protocol.Input, m Message) []protocol.Effect[Message] {
	var out protocol.Out[Message]
	p.Step(protocol.Event[Message]{Input: in, Msg: m}, &out)
	return out.Effects
}

func heard(p *Process, from protocol.ID, m Message) []protocol.Effect[Message] {
	return fed(p, protocol.Input{Kind: protocol.Receive, From: from}, m)
}

func started(a protocol.Algorithm[Message]) *Process {
	p := a.New(0, protocol.Config{N: 3}).(*Process)
	fed(p, protocol.Input{Kind: protocol.Start, Arg: 1}, Message{})
	return p
}

func does(effects []protocol.Effect[Message], act protocol.Do) bool {
	return slices.ContainsFunc(effects, func(e protocol.Effect[Message]) bool { return e.Do == act })
}

func sends(effects []protocol.Effect[Message], kind uint8) *Message {
	i := slices.IndexFunc(effects, func(e protocol.Effect[Message]) bool { return e.Do == protocol.Send && e.Msg.Kind == kind })
	if i < 0 {
		return nil
	}
	return &effects[i].Msg
}

// Two decisions come in one step. After the first one the copy is asked for, after the second one operations are
// missing: the state is not sent before they are here.
func TestCapturedLate(t *testing.T) {
	for _, a := range forms {
		p := started(a)
		bulk := func(records ...Record) *Bulk {
			return &Bulk{Owner: 1, Records: records, Granted: make([]uint64, 3), Lives: []uint64{1, 1, 1}}
		}
		decided := func(instance, done uint64, r Record) []protocol.Effect[Message] {
			return fed(p, protocol.Input{Kind: protocol.Decide, Arg: instance}, Message{Kind: NewEp, Number: done, Done: done, More: bulk(r)})
		}
		decided(0, 2, Record{2, 1, 1, 2, "b"})
		heard(p, 2, Message{Kind: Fetch})
		first := Record{1, 0, 1, 1, "a"}
		if !does(heard(p, 1, Message{Kind: Records, Number: 2, Done: 2, More: bulk(first)}), protocol.Capture) {
			t.Fatalf("%s: the copy is not asked for", a.Name)
		}
		decided(1, 5, Record{5, 4, 1, 5, "e"})
		captured := protocol.Input{Kind: protocol.Captured, Data: "o"}
		if m := sends(fed(p, captured, Message{}), State); m != nil {
			t.Errorf("%s: %s is sent", a.Name, text(*m))
		}
		m := Message{Kind: Records, Epoch: 2, Number: 5, Done: 5, More: bulk(Record{3, 2, 1, 3, "c"}, Record{4, 3, 1, 4, "d"})}
		if !does(heard(p, 1, m), protocol.Capture) {
			t.Errorf("%s: the copy is not asked for again", a.Name)
		}
		if m := sends(fed(p, captured, Message{}), State); m == nil || m.Done != 5 || m.Number != 5 {
			t.Errorf("%s: %v is sent, not what was decided", a.Name, m)
		}
	}
}

// Who waits for the state while this process gets one itself is served with that.
func TestCapturedInstalled(t *testing.T) {
	p := started(First)
	fed(p, protocol.Input{Kind: protocol.Decide}, Message{Kind: NewEp, Number: 2, Done: 2, More: &Bulk{
		Owner: 1, Records: []Record{{2, 1, 1, 2, "b"}}, Granted: make([]uint64, 3), Lives: []uint64{1, 1, 1},
	}})
	heard(p, 2, Message{Kind: Fetch})
	m := Message{Kind: State, Epoch: 3, Number: 4, Done: 4, More: &Bulk{
		Owner: 1, Granted: make([]uint64, 3), Lives: []uint64{1, 1, 1}, Last: make([]uint64, 3), Object: "o",
	}}
	if !does(heard(p, 1, m), protocol.Capture) {
		t.Error("the copy is not asked for")
	}
}

// Who gets the state knows nothing of a life that takes part since. Its request waits there, too.
func TestInstalledRequests(t *testing.T) {
	p := started(First)
	heard(p, 2, Message{Kind: State, Epoch: 3, Number: 4, Done: 4, More: &Bulk{
		Owner: 2, Granted: make([]uint64, 3), Requests: []Claim{{1, 5}}, Lives: []uint64{1, 2, 1}, Last: make([]uint64, 3),
	}})
	if want := []Claim{{1, 5}}; !slices.Equal(p.requests, want) {
		t.Errorf("%v wait, want %v", p.requests, want)
	}
}

// The requests of a life that is over end with the epoch.
func TestRequestsOfOldLife(t *testing.T) { tell(t, oldRequests) }

func oldRequests(a protocol.Algorithm[Message]) string {
	s := system(a, 3)
	s.Try(0)
	s.Try(1)
	s.Settle()
	s.Crash(1)
	s.Recover(1, 2)
	s.Settle()
	for id := range s.Procs {
		if p := s.Procs[id].(*Process); p.lives[1] != 2 || len(p.requests) > 0 {
			return "requests by story, " + textOf(p.requests) + " wait"
		}
	}
	return ""
}
