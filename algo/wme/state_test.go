package wme

import (
	"fmt"
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
func TestCapturedLate(t *testing.T) { tell(t, capturedLate) }

func capturedLate(a protocol.Algorithm[Message]) string {
	p := started(a)
	bulk := func(records ...Record) *Bulk {
		return &Bulk{Owner: 1, Records: records, Granted: make([]uint64, 3), Lives: []uint64{1, 1, 1}}
	}
	decided := func(instance, done uint64, r Record) []protocol.Effect[Message] {
		return fed(p, protocol.Input{Kind: protocol.Decide, Arg: instance}, Message{Kind: NewEp, Number: done, Done: done, More: bulk(r)})
	}
	decided(0, 2, Record{2, 1, 1, 2, "b"})
	if does(heard(p, 2, Message{Kind: Fetch}), protocol.Capture) {
		return "state by story, the copy is asked for though it lacks operations"
	}
	first := Record{1, 0, 1, 1, "a"}
	if !does(heard(p, 1, Message{Kind: Records, Number: 2, Done: 2, More: bulk(first)}), protocol.Capture) {
		return "state by story, the copy is not asked for"
	}
	decided(1, 5, Record{5, 4, 1, 5, "e"})
	captured := protocol.Input{Kind: protocol.Captured, Data: "o"}
	if m := sends(fed(p, captured, Message{}), State); m != nil {
		return fmt.Sprintf("state by story, %s is sent", text(*m))
	}
	m := Message{Kind: Records, Epoch: 2, Number: 5, Done: 5, More: bulk(Record{3, 2, 1, 3, "c"}, Record{4, 3, 1, 4, "d"})}
	if !does(heard(p, 1, m), protocol.Capture) {
		return "state by story, the copy is not asked for again"
	}
	if m := sends(fed(p, captured, Message{}), State); m == nil || m.Done != 5 || m.Number != 5 {
		return fmt.Sprintf("state by story, %v is sent, not what was decided", m)
	}
	return ""
}

// A process that waits for the state while this process gets one itself is served with that.
func TestCapturedInstalled(t *testing.T) { tell(t, capturedInstalled) }

func capturedInstalled(a protocol.Algorithm[Message]) string {
	p := started(a)
	fed(p, protocol.Input{Kind: protocol.Decide}, Message{Kind: NewEp, Number: 2, Done: 2, More: &Bulk{
		Owner: 1, Records: []Record{{2, 1, 1, 2, "b"}}, Granted: make([]uint64, 3), Lives: []uint64{1, 1, 1},
	}})
	heard(p, 2, Message{Kind: Fetch})
	m := Message{Kind: State, Epoch: 3, Number: 4, Done: 4, More: &Bulk{
		Owner: 1, Granted: make([]uint64, 3), Lives: []uint64{1, 1, 1}, Last: make([]uint64, 3), Object: "o",
	}}
	if !does(heard(p, 1, m), protocol.Capture) {
		return "state by story, the copy is not asked for"
	}
	return ""
}

// A process that gets the state knows nothing of a life that takes part since. Its request waits there, too.
func TestInstalledRequests(t *testing.T) { tell(t, installedRequests) }

func installedRequests(a protocol.Algorithm[Message]) string {
	p := started(a)
	heard(p, 2, Message{Kind: State, Epoch: 3, Number: 4, Done: 4, More: &Bulk{
		Owner: 2, Granted: make([]uint64, 3), Requests: []Claim{{1, 5}}, Lives: []uint64{1, 2, 1}, Last: make([]uint64, 3),
	}})
	if want := []Claim{{1, 5}}; !slices.Equal(p.reqs, want) {
		return fmt.Sprintf("requests by story, %v wait, want %v", p.reqs, want)
	}
	return ""
}

// The owner asks again once it has passed the token on. A process that gets a state in which only its request has arrived,
// and not its grant, takes neither for granted.
func TestInstalledOwner(t *testing.T) { tell(t, installedOwner) }

func installedOwner(a protocol.Algorithm[Message]) string {
	p := started(a)
	heard(p, 2, Message{Kind: State, Epoch: 3, Number: 4, Done: 4, More: &Bulk{
		Owner: 2, Granted: []uint64{0, 0, 4}, Requests: []Claim{{2, 5}}, Lives: []uint64{1, 1, 1}, Last: make([]uint64, 3),
	}})
	fed(p, protocol.Input{Kind: protocol.Try}, Message{})
	if !does(heard(p, 2, Message{Kind: Grant, Epoch: 3, Number: 5, Who: p.id, ID: p.reqID}), protocol.Crit) {
		return "requests by story, who has the token does not enter"
	}
	fed(p, protocol.Input{Kind: protocol.Exit}, Message{})
	if p.curOwner != 2 || p.granted[2] != 5 {
		return fmt.Sprintf("requests by story, the token goes to %d, which is granted %d, want 5 of the owner before", p.curOwner, p.granted[2])
	}
	return ""
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
		if p := s.Procs[id].(*Process); p.lives[1] != 2 || len(p.reqs) > 0 {
			return "requests by story, " + fmt.Sprint(p.reqs) + " wait"
		}
	}
	return ""
}

// steps are the stories of one process that is told what happens.
var steps = []func(protocol.Algorithm[Message]) string{
	capturedLate, capturedInstalled, installedRequests, installedOwner, aheads, states, installs, waitsOnce, forgets, asksNew, useless, dead,
}

func TestSteps(t *testing.T) {
	for _, story := range steps {
		tell(t, story)
	}
}

// A process alone, of three, with the default options but heal.
func alone(a protocol.Algorithm[Message], life uint64, healing int64) *Process {
	p := a.New(0, protocol.Config{N: 3, Options: map[string]int64{heal.Name: healing}}).(*Process)
	fed(p, protocol.Input{Kind: protocol.Start, Arg: life}, Message{})
	return p
}

// bulk has an owner, and operations of process 1.
func bulk(owner protocol.ID, records ...Record) *Bulk {
	return &Bulk{Owner: owner, Records: records, Granted: make([]uint64, 3), Lives: []uint64{1, 1, 1}, Last: make([]uint64, 3)}
}

// decided lets a process hear what its epoch is decided to be: its last operation is done.
func decided(p *Process, done uint64, records ...Record) []protocol.Effect[Message] {
	return fed(p, protocol.Input{Kind: protocol.Decide, Arg: p.curEp}, Message{Kind: NewEp, Number: done, Done: done, More: bulk(1, records...)})
}

// answers says what is wrong unless these are the kinds of what is sent, and nothing else is done.
func answers(what string, got []protocol.Effect[Message], want ...uint8) string {
	var kinds []uint8
	for _, e := range got {
		if e.Do != protocol.Send && e.Do != protocol.Broadcast {
			return fmt.Sprintf("state by story, %s: effect %v", what, e.Do)
		}
		kinds = append(kinds, e.Msg.Kind)
	}
	if !slices.Equal(kinds, want) {
		return fmt.Sprintf("cost by story, %s: sent kinds %v, want %v", what, kinds, want)
	}
	return ""
}

// The state is asked for where it is lacked, and of one that is not suspected. Where a later epoch has begun elsewhere the
// decision comes by consensus; when that does not happen either, it is asked for, too.
func aheads(a protocol.Algorithm[Message]) string {
	ahead := func(epoch, number, done uint64) Message {
		return Message{Kind: Ahead, Epoch: epoch, Number: number, Done: done}
	}
	even, late, calm, voted, waits := alone(a, 1, 1), alone(a, 1, 1), alone(a, 1, 0), alone(a, 1, 1), alone(a, 1, 1)
	decided(even, 0)
	decided(even, 0)
	fed(voted, protocol.Input{Kind: protocol.Suspect, From: 0}, Message{})
	fed(waits, protocol.Input{Kind: protocol.Suspect, From: 1}, Message{})
	return first(
		answers("nothing is lacked", heard(even, 2, ahead(2, 0, 0))),
		answers("an epoch before", heard(even, 2, ahead(1, 3, 0))),
		answers("records are lacked", heard(even, 2, ahead(2, 3, 0)), Sync),
		answers("operations are lacked", heard(even, 2, ahead(2, 3, 2)), Fetch),
		answers("operations are lacked still", heard(even, 1, ahead(2, 3, 2))),
		answers("it has voted", heard(voted, 2, ahead(0, 3, 0))),
		answers("a later epoch", heard(late, 2, ahead(5, 0, 0))),
		answers("this epoch, after a later one", heard(late, 2, ahead(0, 0, 0))),
		answers("a later epoch, twice", heard(late, 2, ahead(5, 0, 0)), Fetch),
		answers("a decision after a later epoch", decided(late, 0), Sync),
		answers("a later epoch, without heal", heard(calm, 2, ahead(5, 0, 0))),
		answers("a decision, without heal", decided(calm, 0)),
		answers("an offer of who is suspected", heard(waits, 1, ahead(0, 3, 2))),
		answers("another offer", heard(waits, 2, ahead(0, 3, 2)), Fetch),
	)
}

// A state is taken where it has what is lacked, but not in place of what a process has voted for, nor of the life before.
func states(a protocol.Algorithm[Message]) string {
	state := func(epoch, done uint64) Message {
		return Message{Kind: State, Epoch: epoch, Number: done, Done: done, More: bulk(1)}
	}
	takes := func(what string, p *Process, m Message, want, wantResume bool) string {
		effects := heard(p, 2, m)
		if got, resumes := does(effects, protocol.Install), does(effects, protocol.Resume); got != want || resumes != wantResume {
			return fmt.Sprintf("state by story, %s: install %v, resume %v", what, got, resumes)
		}
		return ""
	}
	votes := func(p *Process) *Process {
		fed(p, protocol.Input{Kind: protocol.Suspect, From: p.curOwner}, Message{})
		if !p.block {
			panic("it has not voted")
		}
		return p
	}
	owned := func(p *Process) *Process { decided(p, 0); return p } // epoch 1, and 1 owns the token
	wide := alone(a, 1, 1)
	decided(wide, 5, Record{5, 4, 1, 5, "e"})
	asks := func(what string, p *Process, m Message) string { // again, since it has asked
		heard(p, 2, Message{Kind: Ahead, Epoch: 1, Number: 3, Done: 3})
		if !slices.ContainsFunc(heard(p, 2, m), func(e protocol.Effect[Message]) bool { return e.Do == protocol.Broadcast && e.Msg.Kind == Sync }) {
			return fmt.Sprintf("state by story, %s: it does not ask again", what)
		}
		return ""
	}
	hole := func() *Process { p := alone(a, 1, 1); decided(p, 3, Record{3, 2, 1, 3, "c"}); return p }
	return first(
		takes("nothing is lacked", owned(alone(a, 1, 1)), state(1, 0), false, false),
		takes("of the life before", alone(a, 2, 1), state(1, 3), false, false),
		takes("this epoch", owned(alone(a, 1, 1)), state(1, 3), true, false),
		takes("this epoch, when it has voted", votes(owned(alone(a, 1, 1))), state(1, 3), false, false),
		takes("a later epoch, when it has voted", votes(owned(alone(a, 1, 1))), state(2, 3), true, true),
		takes("an epoch before", owned(alone(a, 1, 1)), state(0, 3), false, false),
		asks("of the life before", alone(a, 2, 1), state(1, 3)),
		asks("it is not enough", wide, state(1, 3)),
		takes("what it has voted for", votes(hole()), state(1, 3), true, false),
	)
}

// A process that has installed the state has no operations before it: it offers it, and logs none of them.
func installs(a protocol.Algorithm[Message]) string {
	p := alone(a, 1, 1)
	decided(p, 0)
	heard(p, 2, Message{Kind: State, Epoch: 1, Number: 5, Done: 5, More: bulk(1)})
	offers := answers("who lacks operations", heard(p, 2, Message{Kind: Sync, Epoch: 1, Number: 5, Done: 3}), Ahead)
	heard(p, 2, Message{Kind: Records, Epoch: 1, Number: 5, Done: 5, More: bulk(1, Record{4, 3, 1, 4, "d"}, Record{5, 4, 1, 5, "e"})})
	if len(p.opHist) > 0 {
		return "cost by story, it logs what it has executed: " + fmt.Sprint(p.opHist)
	}
	return offers
}

// A message that comes twice, too early, waits once; and not any more when the epoch ends.
func waitsOnce(a protocol.Algorithm[Message]) string {
	p := alone(a, 1, 1)
	decided(p, 0)
	for range 2 {
		heard(p, 1, Message{Kind: Invoke, Epoch: 1, Number: 5, Who: 1, ID: 1, Op: "e"})
	}
	if len(p.early) != 1 {
		return fmt.Sprintf("cost by story, %d messages wait, want 1", len(p.early))
	}
	fed(p, protocol.Input{Kind: protocol.Suspect, From: 1}, Message{})
	if len(p.early) > 0 {
		return "cost by story, a message waits for an epoch that ends"
	}
	return ""
}

// What is known of other processes never becomes less, and without option stability it is not counted.
func forgets(a protocol.Algorithm[Message]) string {
	p := a.New(0, protocol.Config{N: 3}).(*Process)
	q := a.New(0, protocol.Config{N: 3, Options: map[string]int64{stability.Name: 0}}).(*Process)
	for _, p := range []*Process{p, q} {
		fed(p, protocol.Input{Kind: protocol.Start, Arg: 1}, Message{})
		decided(p, 3, Record{1, 0, 1, 1, "a"}, Record{2, 1, 1, 2, "b"}, Record{3, 2, 1, 3, "c"})
		for _, done := range []uint64{2, 1} {
			heard(p, 2, Message{Kind: Request, Epoch: 1, ID: 1, Done: done})
			heard(p, 1, Message{Kind: Request, Epoch: 1, ID: 1, Done: done})
		}
	}
	if p.done[1] != 2 || p.done[2] != 2 || p.stable != 2 {
		return fmt.Sprintf("cost by story, all have executed %d, of %v", p.stable, p.done)
	}
	heard(p, 1, Message{Kind: Grant, Epoch: 1, Number: 4, Who: 2, ID: 1, Done: 1})
	if p.stable != 2 || slices.Max(q.done) > 0 {
		return fmt.Sprintf("cost by story, all have executed %d, and %v without stability", p.stable, q.done)
	}
	heard(p, 1, Message{Kind: Records, Epoch: 1, Number: 4, Done: 2, More: bulk(1)})
	if p.committed != 3 {
		return fmt.Sprintf("service by story, %d is committed, and no longer 3", p.committed)
	}
	return ""
}

// Where no messages are lost who comes back, or lacks operations, asks each new life all the same; and who asks is answered,
// in its epoch.
func asksNew(a protocol.Algorithm[Message]) string {
	restore := func(p *Process) []protocol.Effect[Message] {
		return fed(p, protocol.Input{Kind: protocol.Restore, From: 2, Arg: 2}, Message{})
	}
	hole, waits := alone(a, 1, 0), alone(a, 1, 0)
	decided(hole, 3, Record{3, 2, 1, 3, "c"})
	decided(waits, 0)
	fed(waits, protocol.Input{Kind: protocol.Try}, Message{})
	return first(
		answers("of an epoch before", heard(waits, 1, Message{Kind: Sync})),
		answers("of this epoch", heard(waits, 1, Message{Kind: Sync, Epoch: 1}), Request),
		answers("who takes part", restore(alone(a, 1, 0))),
		answers("who comes back", restore(alone(a, 2, 0)), Sync),
		answers("who lacks operations", restore(hole), Sync),
	)
}

// Operations that do not help are answered by nothing, and nobody is given a copy who did not ask for one.
func useless(a protocol.Algorithm[Message]) string {
	p := alone(a, 1, 1)
	decided(p, 3, Record{3, 2, 1, 3, "c"})
	records := func(list ...Record) Message {
		return Message{Kind: Records, Epoch: 1, Number: 3, Done: 3, More: bulk(1, list...)}
	}
	fault := first(
		answers("no operations", heard(p, 2, records())),
		answers("operations after those that it lacks", heard(p, 2, records(Record{3, 2, 1, 3, "c"}))),
	)
	if effects := heard(p, 2, records(Record{1, 0, 1, 1, "a"}, Record{2, 1, 1, 2, "b"})); fault == "" && does(effects, protocol.Capture) {
		fault = "cost by story, the copy is asked for in vain"
	}
	return fault
}

// What is moot, and what is not.
func dead(a protocol.Algorithm[Message]) string {
	vote, grant, invoke := Message{Kind: NewEp, More: bulk(1)}, Message{Kind: Grant, Who: 1}, Message{Kind: Invoke, Who: 1}
	in := func(m Message, epoch, number, id uint64) Message {
		m.Epoch, m.Number, m.ID = epoch, number, id
		return m
	}
	joins := alone(a, 2, 1)
	running := func(stable int64) *Process {
		p := a.New(0, protocol.Config{N: 3, Options: map[string]int64{stability.Name: stable}}).(*Process)
		fed(p, protocol.Input{Kind: protocol.Start, Arg: 1}, Message{})
		decided(p, 0)
		heard(p, 1, Message{Kind: Grant, Epoch: 1, Number: 1, Who: 1, ID: 4})
		heard(p, 1, Message{Kind: Invoke, Epoch: 1, Number: 2, Who: 1, ID: 1, Op: "a"})
		heard(p, 1, Message{Kind: Invoke, Epoch: 1, Number: 3, Who: 1, ID: 2, Op: "b"})
		return p // 2 is committed, 3 is not
	}
	p, q, voted, proposed := running(0), running(1), running(0), running(0)
	fed(voted, protocol.Input{Kind: protocol.Suspect, From: 1}, Message{})
	fed(proposed, protocol.Input{Kind: protocol.Suspect, From: 1}, Message{})
	heard(proposed, 2, in(vote, 1, 0, 0))
	request, ack, do := Message{Kind: Request}, Message{Kind: Ack}, Message{Kind: DoInvoke}
	for i, c := range []struct {
		to   *Process
		m    Message
		want bool
	}{
		{joins, in(invoke, 0, 1, 1), false},
		{joins, in(invoke, 0, 0, 1), false},
		{p, Message{Kind: Sync}, false},
		{p, in(invoke, 2, 1, 1), false},
		{p, in(invoke, 0, 9, 1), true},
		{q, in(invoke, 0, 9, 1), true},
		{p, in(vote, 1, 0, 0), false},
		{voted, in(vote, 1, 0, 0), false},
		{proposed, in(vote, 1, 0, 0), true},
		{voted, in(invoke, 1, 4, 3), true},
		{p, in(invoke, 1, 4, 3), false},
		{p, in(grant, 1, 4, 5), false},
		{p, in(invoke, 1, 3, 2), true},
		{p, in(grant, 1, 3, 4), true},
		{q, in(request, 1, 0, 4), false},
		{p, in(request, 1, 0, 4), true},
		{p, in(request, 1, 0, 5), false},
		{p, in(ack, 1, 2, 0), true},
		{p, in(ack, 1, 3, 0), false},
		{p, in(do, 1, 2, 0), true},
		{p, in(do, 1, 3, 0), false},
		{q, in(do, 1, 2, 0), false},
	} {
		if got := moot(c.to, 1, c.m); got != c.want {
			return fmt.Sprintf("claim by story, case %d: %s is moot: %v", i, text(c.m), got)
		}
	}
	return ""
}
