package wme

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/poundlock/poundlock/algo/algotest"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/history"
	"github.com/poundlock/poundlock/wrap/consensus"
)

// narrow is a storm whose processes keep next to nothing: of what they have executed, of what comes too early, and
// after an operation that they lack. Sessions end, so that they lack some.
func narrow(a protocol.Algorithm[Message], seed uint64) *storm[frame] {
	r := rand.New(rand.NewPCG(seed, 2))
	w := storming(consensus.With(a), inner, protocol.Config{N: 2 + r.IntN(4), Options: map[string]int64{
		carry.Name: 1, keep.Name: 1, room.Name: 1 + r.Int64N(6*overhead), stability.Name: r.Int64N(2),
	}})
	w.r, w.loses = r, true
	return w
}

func inner(p protocol.Process[frame]) *Process { return bare(p) }

func bare(p any) *Process {
	q, _ := protocol.As[*Process](p)
	return q
}

// A watched process has a step of its own.
type watched struct {
	*Process
	step func(p *Process, ev protocol.Event[Message], out *protocol.Out[Message])
}

func (w *watched) Unwrap() any { return w.Process }

func (w *watched) Step(ev protocol.Event[Message], out *protocol.Out[Message]) {
	w.step(w.Process, ev, out)
}

func watching(a protocol.Algorithm[Message], step func(*Process, protocol.Event[Message], *protocol.Out[Message])) protocol.Algorithm[Message] {
	honest := a.New
	a.New = func(id protocol.ID, c protocol.Config) protocol.Process[Message] {
		return &watched{honest(id, c).(*Process), step}
	}
	a.Moot = nil
	return a
}

// All properties hold where there is room for next to nothing, and nothing takes more.
func TestStormRoom(t *testing.T) {
	dropped, waited := 0, 0
	for _, a := range forms {
		a = watching(a, func(p *Process, ev protocol.Event[Message], out *protocol.Out[Message]) {
			p.Step(ev, out)
			if p.missed > 0 {
				dropped++
			}
			if p.full() {
				waited++
			}
			early := 0
			for _, e := range p.early {
				if e.msg.Kind != Sync {
					early += e.msg.size()
				}
			}
			i, _ := p.find(p.executed + 1)
			if early > p.room || size(p.opHist[:i]) > p.room || i > p.keep {
				panic(fmt.Sprintf("memory: %d bytes wait, %d operations of %d bytes are kept, with %d and %d",
					early, i, size(p.opHist[:i]), p.keep, p.room))
			}
		})
		for seed := range worlds(t) / 5 {
			if fault := narrow(a, seed).run(400); fault != "" {
				t.Fatalf("%s, seed %d: %s", a.Name, seed, fault)
			}
		}
	}
	if dropped == 0 || waited == 0 {
		t.Errorf("%d times something was dropped, %d times something waited", dropped, waited)
	}
}

// gapped is a system of three where process 2 lacks operation a, and has b, after which it logs one more.
func gapped(a protocol.Algorithm[Message], roomy bool) *algotest.System[Message] {
	options := map[string]int64{carry.Name: 1, keep.Name: 2}
	if roomy {
		options = map[string]int64{carry.Name: 1, room.Name: 2 * (overhead + 1)}
	}
	s := algotest.NewSystem(a, protocol.Config{N: 3, Options: options}, 0)
	s.Try(0)
	for _, op := range []string{"a", "b"} {
		s.Issue(0, op)
		exchange(s, 0, 1)
	}
	wavers(s, 2, 0)
	exchange(s, 0, 1)
	for k, m := range s.InFlight(2, 1) {
		if m.Kind == NewEp {
			s.Deliver(2, 1, k)
			break
		}
	}
	exchange(s, 0, 1)
	for _, ch := range []protocol.Channel{{From: 0, To: 2}, {From: 1, To: 2}, {From: 2, To: 0}, {From: 2, To: 1}} {
		for len(s.InFlight(ch.From, ch.To)) > 0 {
			s.Drop(ch.From, ch.To, 0)
		}
	}
	s.Decide(0, 0)
	for id := range protocol.ID(3) {
		s.Decided(id)
	}
	exchange(s, 0, 1)
	return s
}

// last delivers the last message of a kind, if there is one.
func last(s *algotest.System[Message], from, to protocol.ID, kind uint8) {
	for k := len(s.InFlight(from, to)) - 1; k >= 0; k-- {
		if s.InFlight(from, to)[k].Kind == kind {
			s.Deliver(from, to, k)
			return
		}
	}
}

// A process that lacks an operation logs no more than it has room for, and acknowledges no more. Once it is healed it
// gets the rest.
func TestFull(t *testing.T) {
	tell(t, full)
	logs := func(a protocol.Algorithm[Message]) string { return full(unbounded(a, false)) }
	if fault := told(logs); !strings.HasPrefix(fault, "memory") {
		t.Errorf("a process that logs all: %q", fault)
	}
	forgets := func(a protocol.Algorithm[Message]) string { return full(unbounded(a, true)) }
	if fault := told(forgets); fault == "" || strings.HasPrefix(fault, "memory") {
		t.Errorf("a process that forgets what it has acknowledged: %q", fault)
	}
}

// unbounded logs everything, and forgets it again if so.
func unbounded(a protocol.Algorithm[Message], forgets bool) protocol.Algorithm[Message] {
	return watching(a, func(p *Process, ev protocol.Event[Message], out *protocol.Out[Message]) {
		keep, room := p.keep, p.room
		if !p.current() {
			p.keep, p.room = 1<<20, 1<<30
		}
		p.Step(ev, out)
		p.keep, p.room = keep, room
		if i, _ := p.find(p.executed + 1); forgets && p.full() {
			p.opHist = p.opHist[:i+2]
		}
	})
}

func full(a protocol.Algorithm[Message]) string {
	for _, roomy := range []bool{false, true} {
		s := gapped(a, roomy)
		p := bare(s.Procs[2])
		ops := []string{"a", "b"}
		for k := range 20 {
			op := string(rune('c' + k))
			ops = append(ops, op)
			s.Issue(0, op)
			last(s, 0, 2, Invoke)
			exchange(s, 0, 1)
		}
		if i, _ := p.find(p.executed + 1); p.current() || len(p.opHist)-i > 2 || len(p.early) > 20 {
			return fmt.Sprintf("memory by story, %d operations are logged after one that is missing, %d messages wait", len(p.opHist)-i, len(p.early))
		}
		// An operation that 2 has got, and 1 has not, is committed by both or by nobody.
		s.Issue(0, "y")
		lose(s, 0, 1, Invoke)
		last(s, 0, 2, Invoke)
		last(s, 2, 0, Ack)
		if s.Users[0] == protocol.InCrit { // it has an outcome
			ops = append(ops, "y")
		}
		s.Crash(0)
		for id := range protocol.ID(3) {
			for len(s.InFlight(0, id)) > 0 {
				s.Drop(0, id, 0)
			}
		}
		suspects(s, 1, 0)
		suspects(s, 2, 0)
		s.Settle()
		if fault := alike(s, ops...); fault != "" {
			return fault
		}
	}
	return ""
}

// What comes too early and has no room is asked for when its time has come: in this epoch, and in a later one.
func TestShed(t *testing.T) {
	tell(t, shed)
	mute := func(a protocol.Algorithm[Message]) string {
		return shed(watching(a, func(p *Process, ev protocol.Event[Message], out *protocol.Out[Message]) {
			p.Step(ev, out)
			p.missed, p.late = 0, false
		}))
	}
	if fault := told(mute); !strings.HasPrefix(fault, "copies") {
		t.Errorf("a process that does not ask: %q", fault)
	}
}

func shed(a protocol.Algorithm[Message]) string {
	for _, later := range []bool{false, true} {
		s := algotest.NewSystem(a, protocol.Config{N: 3, Options: map[string]int64{room.Name: 1}}, 0)
		s.Try(0)
		if later {
			suspects(s, 1, 2)
			wavers(s, 1, 0)
			exchange(s, 0, 1)
			s.Decide(0, 0)
			s.Decided(0)
			s.Decided(1)
			exchange(s, 0, 1)
		}
		ops := []string{}
		for k := range 5 {
			ops = append(ops, fmt.Sprint(k))
			s.Issue(0, ops[k])
			exchange(s, 0, 1)
			if later || k > 0 {
				last(s, 0, 2, Invoke)
			}
		}
		if k := len(bare(s.Procs[2]).early); k > 0 {
			return fmt.Sprintf("memory by story, %d messages wait", k)
		}
		for from := range protocol.ID(2) { // they are heard of no more
			for _, kind := range []uint8{DoInvoke, Ack} {
				lose(s, from, 2, kind)
			}
		}
		if later {
			s.Decided(2)
		}
		s.Settle()
		if fault := alike(s, ops...); fault != "" {
			return fault
		}
	}
	return ""
}

// roomless are models where nothing that comes too early has room, one operation is kept that is logged, and of an
// end of an epoch one is told.
func roomless() (quick, long []checked) {
	none := func(c check.Config) check.Config {
		c.Options = map[string]int64{keep.Name: 1, carry.Name: 1, room.Name: 1, heal.Name: 1}
		return c
	}
	two := none(with(small(2, 1, 0), 1, 0))
	two.Operations = []int{2}
	return []checked{
		{"no room, a suspicion", none(with(small(2, 1, 0), 1, 0)), [2]int64{26727, 5717}},
		{"no room, two users, three sections", none(small(2, 2, 1)), [2]int64{27378, 144}},
	}, []checked{
		{"no room, a suspicion, two operations", two, [2]int64{1087124, 27886}},
		{"no room, three processes", none(small(3, 1, 0, 0)), [2]int64{14612, 238}},
	}
}

// In these, too, all properties hold, and the checker finds a process that does not ask for what it has dropped.
func TestModelsRoom(t *testing.T) {
	quick, long := roomless()
	explore(t, quick, long)
	mute := watching(First, func(p *Process, ev protocol.Event[Message], out *protocol.Out[Message]) {
		p.Step(ev, out)
		p.missed, p.late = 0, false
	})
	for _, m := range quick {
		if v, err := check.Run(mute, m.c); err != nil || v.Verdict != check.Violated || v.Property != history.Lagging {
			t.Errorf("%s: %s of %s (%s), %v", m.name, v.Verdict, v.Property, v.Reason, err)
		}
	}
}

// Another one may have offered more while this process waited for the state that it had asked for.
func TestOfferedMore(t *testing.T) {
	p := started(First)
	heard(p, 1, Message{Kind: Ahead, Number: 2, Done: 2})
	heard(p, 2, Message{Kind: Ahead, Number: 3, Done: 3})
	effects := heard(p, 1, Message{Kind: State, Number: 3, Done: 2, More: &Bulk{
		Granted: make([]uint64, 3), Lives: []uint64{1, 1, 1}, Last: make([]uint64, 3), Records: []Record{{3, 2, 0, 3, "c"}},
	}})
	if !slices.ContainsFunc(effects, func(e protocol.Effect[Message]) bool {
		return e.Do == protocol.Broadcast && e.Msg.Kind == Sync && e.Msg.Done == 2
	}) {
		t.Error("it does not ask again")
	}
}
