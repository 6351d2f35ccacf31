package check_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/poundlock/poundlock/algo/algotest"
	"github.com/poundlock/poundlock/internal/lane"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/history"
	"github.com/poundlock/poundlock/verify/scenario"
)

var (
	weakly   = protocol.Info{Weak: true}
	agreeing = protocol.Info{Consensus: true}
)

// op is the name of the first operation of a process.
func op(id protocol.ID) string { return fmt.Sprintf("p%d.1", id+1) }

// single is an object of two processes of which p1 single has a user. Its operation is executed at p1, and
// then at p2, which is told.
func single(p *toy, ev protocol.Event[uint8], out *protocol.Out[uint8]) {
	switch ev.Kind {
	case protocol.Try:
		out.Crit(0)
	case protocol.Issue:
		out.Invoke(ev.Data, 1)
		out.Send(1-p.id, 1)
		out.Outcome()
	case protocol.Receive:
		out.Invoke(op(ev.From), 1)
	case protocol.Exit:
		out.Rem()
	}
}

// Each property of an object is violated by an algorithm that breaks it, and not by one close to it.
func TestObject(t *testing.T) {
	with := func(change program) program {
		return func(p *toy, ev protocol.Event[uint8], out *protocol.Out[uint8]) { change(p, ev, out) }
	}
	on := func(kind protocol.Kind, change program) program {
		return with(func(p *toy, ev protocol.Event[uint8], out *protocol.Out[uint8]) {
			if ev.Kind == kind {
				change(p, ev, out)
				return
			}
			single(p, ev, out)
		})
	}
	type event = protocol.Event[uint8]
	type out = protocol.Out[uint8]
	trace := func(more ...string) []string { return append([]string{"try p1", "issue p1 p1.1"}, more...) }
	for _, c := range []struct {
		name     string
		step     program
		entries  []int
		property string // "": all hold; Failed: no other one is asked for
		trace    []string
	}{
		{"right", single, []int{1, 0}, "", nil},
		{"nobody else is told", on(protocol.Issue, func(_ *toy, ev event, o *out) {
			o.Invoke(ev.Data, 1)
			o.Outcome()
		}), []int{1, 0}, history.Lagging, trace("exit p1")},
		{"told, not executed", on(protocol.Issue, func(_ *toy, _ event, o *out) { o.Outcome() }), []int{1, 0}, history.Outcome, trace()},
		{"another one", on(protocol.Receive, func(_ *toy, _ event, o *out) { o.Invoke("p1.2", 1) }), []int{1, 0}, history.OneCopy, trace("deliver p1 p2 M(1)")},
		{"twice", on(protocol.Receive, func(_ *toy, ev event, o *out) {
			o.Invoke(op(ev.From), 1)
			o.Invoke(op(ev.From), 2)
		}), []int{1, 0}, history.OneCopy, trace("deliver p1 p2 M(1)")},
		{"ejected, and executed", on(protocol.Issue, func(p *toy, _ event, o *out) {
			o.Send(1-p.id, 1)
			o.Ejected()
		}), []int{1, 0}, history.Failed, trace("deliver p1 p2 M(1)")},
		{"ejected for nothing", on(protocol.Issue, func(_ *toy, _ event, o *out) { o.Ejected() }), []int{1, 0}, history.Groundless, trace()},
		{"no outcome", on(protocol.Issue, func(p *toy, ev event, o *out) {
			o.Invoke(ev.Data, 1)
			o.Send(1-p.id, 1)
		}), []int{1, 0}, check.Deadlock, trace("deliver p1 p2 M(1)")},
		{"two outcomes", on(protocol.Issue, func(_ *toy, ev event, o *out) {
			o.Invoke(ev.Data, 1)
			o.Outcome()
			o.Outcome()
		}), []int{1, 0}, check.WellFormed, trace()},
		{"before the copy is whole", func(p *toy, ev event, o *out) {
			if ev.Kind == protocol.Issue && p.id == 1 { // its operation is the second one
				o.Invoke(op(0), 1)
			}
			single(p, ev, o)
		}, []int{1, 1}, history.OneCopy, nil},
	} {
		k := config(2)
		k.Entries, k.Properties = c.entries, []string{"all"}
		if c.property == history.Failed {
			k.Properties = []string{history.Failed}
		}
		v := run(t, algorithm(weakly, c.step), k)
		if c.property == "" && v.Verdict != check.Holds || c.property != "" && v.Property != c.property {
			t.Errorf("%s: %s of %s (%s)\n%s", c.name, v.Verdict, v.Property, v.Reason, strings.Join(v.Trace, "\n"))
			continue
		}
		if c.trace != nil {
			wants(t, v, check.Violated, c.property, c.trace...)
		}
		k.Exact, k.Workers = true, 1
		if w := run(t, algorithm(weakly, c.step), k); w.Verdict != v.Verdict || w.States != v.States || !slices.Equal(w.Trace, v.Trace) {
			t.Errorf("%s: one worker says %s of %s after %d states, others %s after %d", c.name, w.Verdict, w.Property, w.States, v.Verdict, v.States)
		}
		if c.property != "" && c.property != history.Failed && v.Verdict == check.Violated {
			replay(t, algorithm(weakly, c.step), 2, v)
			k.Swarm, k.Exact, k.Properties = &check.Swarm{Searches: 4, Bits: 16}, false, []string{c.property}
			if w := run(t, algorithm(weakly, c.step), k); w.Verdict != check.Violated || w.Property != c.property {
				t.Errorf("%s: a swarm says %s of %s", c.name, w.Verdict, w.Property)
			}
		}
	}
}

// Who is suspected by mistake may be ejected, and nobody once that is over and all is at rest.
func TestOperationProgress(t *testing.T) {
	doubtful := weakly
	doubtful.Detector = protocol.UnreliableDetector
	type event = protocol.Event[uint8]
	type out = protocol.Out[uint8]
	const doubts, doubted = 1, 2 // in r[0]
	// ejecting ejects whoever issues an operation while its process is in one of some states.
	ejecting := func(when ...uint64) program {
		return func(p *toy, ev event, o *out) {
			switch ev.Kind {
			case protocol.Suspect:
				p.r[0] = doubts
			case protocol.Restore:
				p.r[0] = doubted
			case protocol.Issue:
				if slices.Contains(when, p.r[0]) {
					o.Ejected()
					return
				}
				single(p, ev, o)
			default:
				single(p, ev, o)
			}
		}
	}
	for _, c := range []struct {
		name     string
		step     program
		property string // "": all hold
		trace    []string
	}{
		{"never", ejecting(), "", nil},
		{"while another one is suspected", ejecting(doubts), "", nil},
		{"after that", ejecting(doubted), check.OperationProgress, []string{"suspect p1 p2", "restore p1 p2", "try p1", "issue p1 p1.1"}},
		{"whatever happens", ejecting(0, doubts, doubted), history.Groundless, []string{"try p1", "issue p1 p1.1"}},
	} {
		k := config(2)
		k.Entries, k.Suspect, k.Properties = []int{1, 0}, 1, []string{"all"}
		v := run(t, algorithm(doubtful, c.step), k)
		if c.property == "" && v.Verdict != check.Holds || c.property != "" && v.Property != c.property {
			t.Errorf("%s: %s of %s (%s)\n%s", c.name, v.Verdict, v.Property, v.Reason, strings.Join(v.Trace, "\n"))
			continue
		}
		if c.property == "" {
			continue
		}
		wants(t, v, check.Violated, c.property, c.trace...)
		w, err := check.NewWalk(algorithm(doubtful, c.step), k)
		if err != nil {
			t.Fatal(err)
		}
		names := w.Names()
		steps, err := names.Parse(strings.NewReader(strings.Join(v.Trace, "\n")))
		if err != nil {
			t.Fatal(err)
		}
		for i, st := range steps {
			if _, err := w.Take(st); err != nil {
				t.Fatal(err)
			}
			if property, _ := w.Violation(); (property == c.property) != (i == len(steps)-1) {
				t.Errorf("%s: after step %d a walk finds %q", c.name, i, property)
			}
		}
	}
}

// Who waits for an outcome is said to, in the search and in a walk.
func TestNoOutcome(t *testing.T) {
	a := algorithm(weakly, func(p *toy, ev protocol.Event[uint8], out *protocol.Out[uint8]) {
		if ev.Kind != protocol.Issue {
			single(p, ev, out)
		}
	})
	k := config(2)
	k.Entries = []int{1, 0}
	for property, want := range map[string]string{
		check.Deadlock:      "deadlock: p1 waits for the outcome of its operation, and nothing that must happen changes the state",
		check.MakesProgress: "progress: from here on somebody waits all the time, and nobody ever enters, nor has an outcome",
	} {
		k.Properties = []string{property}
		if v := run(t, a, k); v.Property != property || !strings.Contains(v.Reason, want) {
			t.Errorf("%s: %s", v.Property, v.Reason)
		}
	}
}

// Precedence, freshness and contiguity need two users, whose operations p1 puts into a sequence.
func TestSequence(t *testing.T) {
	// Everybody may be inside at any time, and what is issued is executed in the order in which p1
	// hears of it: that is one copy, and nothing more.
	sequence := func(p *toy, ev protocol.Event[uint8], out *protocol.Out[uint8]) {
		name := func(m uint8) string { return fmt.Sprintf("p%d.%d", m/8+1, m%8) }
		do := func(m uint8) { // p1 executes it, and tells the others
			out.Invoke(name(m), 1)
			p.r[0]++
			out.Broadcast(m | uint8(p.r[0])<<4)
		}
		switch ev.Kind {
		case protocol.Try:
			out.Crit(0)
		case protocol.Exit:
			out.Rem()
		case protocol.Issue:
			p.r[1]++
			if m := uint8(p.id)*8 + uint8(p.r[1]); p.id == 0 {
				do(m)
				out.Outcome()
			} else {
				out.Send(0, m)
			}
		case protocol.Receive:
			m := ev.Msg & 15
			if p.id == 0 {
				do(m)
				break
			}
			out.Invoke(name(m), 1) // FIFO channels: in order
			if m/8 == 1 {
				out.Outcome()
			}
		}
	}
	for property, ops := range map[string]int{history.Contiguous: 2, history.Fresh: 1} {
		k := config(2)
		k.Operations, k.FIFO, k.Properties = []int{ops}, true, []string{property}
		v := run(t, algorithm(weakly, sequence), k)
		if v.Verdict != check.Violated || v.Property != property {
			t.Fatalf("%s: %s of %s (%s)", property, v.Verdict, v.Property, v.Reason)
		}
		replay(t, algorithm(weakly, sequence), 2, v)
		k.Properties = []string{history.OneCopy, history.Outcome, history.Failed, history.Lagging, check.WellFormed, check.Deadlock}
		if v := run(t, algorithm(weakly, sequence), k); v.Verdict != check.Holds {
			t.Errorf("%s of %s: %s\n%s", v.Verdict, v.Property, v.Reason, strings.Join(v.Trace, "\n"))
		}
	}
	// What p2 had open when it crashed is executed behind a section that began later.
	k := config(2)
	k.FIFO, k.Crash, k.Properties = true, 1, []string{history.Precedence}
	crashing := weakly
	crashing.Tolerates = protocol.Crash
	v := run(t, algorithm(crashing, sequence), k)
	wants(t, v, check.Violated, history.Precedence,
		"try p2", "issue p2 p2.1", "crash p2", "try p1", "issue p1 p1.1", "deliver p2 p1 M(9)")
	replay(t, algorithm(crashing, sequence), 2, v)
}

// replay takes a trace in another driver, and fails unless the last step is wrong there, too: where a
// step can be.
func replay[M any](t *testing.T, a protocol.Algorithm[M], n int, v check.Verdict) {
	t.Helper()
	a.Messages = []protocol.Message{{Name: "M"}}
	names := scenario.Names{Members: n}
	steps, err := names.Parse(strings.NewReader(strings.Join(v.Trace, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	s := algotest.NewSystem(a, protocol.Config{N: n}, 0)
	for i, st := range steps {
		wrong := ""
		func() {
			defer func() {
				if r := recover(); r != nil {
					wrong = fmt.Sprint(r)
				}
			}()
			take(t, a, s, names, st)
		}()
		last := i == len(steps)-1
		atRest := v.Property == check.Deadlock || v.Property == history.Lagging || v.Property == "toy/second"
		if last && v.Property == history.Lagging && s.Object.Unfinished() == (history.Fault{}) {
			t.Errorf("the copies are alike after\n%s", strings.Join(v.Trace, "\n"))
		}
		if found := strings.HasPrefix(wrong, v.Property) || v.Property == check.WellFormed && wrong != ""; found != (last && !atRest) {
			t.Errorf("step %d, %q: another driver finds %q, and the checker %s after\n%s",
				i, v.Trace[i], wrong, v.Property, strings.Join(v.Trace, "\n"))
		}
	}
}

// take takes a step of a scenario.
func take[M any](t *testing.T, a protocol.Algorithm[M], s *algotest.System[M], names scenario.Names, st scenario.Step) {
	t.Helper()
	in := func(list []M) int {
		k := slices.IndexFunc(list, func(m M) bool {
			return strings.HasSuffix(st.Text, names.Text(a.Text(m)))
		})
		if k < 0 {
			t.Fatalf("%s: there is no such message", names.Format(st))
		}
		return k
	}
	switch st.Verb {
	case scenario.Try:
		s.Try(st.Procs[0])
	case scenario.Exit:
		s.Exit(st.Procs[0])
	case scenario.Issue:
		s.Issue(st.Procs[0], st.Text)
	case scenario.Deliver:
		s.Deliver(st.Procs[0], st.Procs[1], in(s.InFlight(st.Procs[0], st.Procs[1])))
	case scenario.Suspect:
		s.Step(st.Procs[0], protocol.Input{Kind: protocol.Suspect, From: st.Procs[1]})
	case scenario.Restore:
		s.Step(st.Procs[0], protocol.Input{Kind: protocol.Restore, From: st.Procs[1], Arg: 1})
	case scenario.Crash:
		s.Crash(st.Procs[0])
	case scenario.Decide:
		var instance uint64
		if _, err := fmt.Sscan(st.Text, &instance); err != nil {
			t.Fatal(err)
		}
		s.Decide(instance, in(s.Proposals(instance)))
	case scenario.Hear:
		if !s.Decided(st.Procs[0]) {
			t.Fatalf("%s: there is no decision", names.Format(st))
		}
	default:
		t.Fatalf("a step %s", st.Verb)
	}
}

// A bidder proposes its number once it is told to, in instance after instance, and remembers what it heard.
func bidder(p *toy, ev protocol.Event[uint8], out *protocol.Out[uint8]) {
	switch ev.Kind {
	case protocol.Start:
		out.Propose(0, uint8(p.id)+1)
	case protocol.Decide:
		p.r[0] = p.r[0]*10 + uint64(ev.Msg)
		if ev.Arg == 0 {
			out.Propose(1, uint8(p.id)+1)
		}
	}
}

// Every proposal may be decided, everybody hears the same, in the order of instances, and in the end everything.
func TestConsensus(t *testing.T) {
	a := algorithm(agreeing, bidder)
	k := config(2)
	k.Entries = []int{0}
	heard := map[[2]uint64]bool{}
	a.Invariants = []protocol.Invariant{{Name: "toy/heard", Err: func(v *protocol.View) error {
		heard[[2]uint64{toyIn(v.Procs[0]).r[0], toyIn(v.Procs[1]).r[0]}] = true
		return nil
	}}}
	if v := run(t, a, k); v.Verdict != check.Holds {
		t.Fatalf("%s: %s", v.Verdict, v.Reason)
	}
	want := map[[2]uint64]bool{{0, 0}: true}
	for _, first := range []uint64{1, 2} {
		want[[2]uint64{first, 0}], want[[2]uint64{0, first}], want[[2]uint64{first, first}] = true, true, true
		for _, second := range []uint64{1, 2} {
			both := first*10 + second
			want[[2]uint64{both, first}], want[[2]uint64{first, both}], want[[2]uint64{both, both}] = true, true, true
		}
		// Who heard nothing has not proposed in the second instance.
		own := [2]uint64{first*10 + 1, 0}
		other := [2]uint64{0, first*10 + 2}
		want[own], want[other] = true, true
	}
	for h := range want {
		if !heard[h] {
			t.Errorf("nobody heard %v", h)
		}
	}
	for h := range heard {
		if !want[h] {
			t.Errorf("they heard %v", h)
		}
	}
	a.Invariants = []protocol.Invariant{{Name: "toy/second", Err: func(v *protocol.View) error {
		if toyIn(v.Procs[0]).r[0] == 21 {
			return fmt.Errorf("#0 heard 2 and 1")
		}
		return nil
	}}}
	v := run(t, a, k)
	wants(t, v, check.Violated, "toy/second", "decide 0 M(2)", "hear p1", "decide 1 M(1)", "hear p1")
	replay(t, a, 2, v)
	w, err := check.NewWalk(a, k)
	if err != nil {
		t.Fatal(err)
	}
	names := w.Names()
	steps, err := names.Parse(strings.NewReader("decide 0 M(2)\nhear p1\nhear p2\ndecide 1 M(1)\nhear p1"))
	if err != nil {
		t.Fatal(err)
	}
	for _, st := range steps {
		if _, err := w.Take(st); err != nil {
			t.Fatal(err)
		}
	}
	if property, _ := w.Violation(); property != "toy/second" {
		t.Errorf("a walk finds %q", property)
	}
}

// A dealer is a process of a random algorithm of an object and consensus: what it does depends on a mode,
// and on the event.
type dealer struct {
	rules map[[3]uint64][]uint8
	id, n protocol.ID
	mode  uint64
	next  uint64
}

// State implements protocol.Process.
func (p *dealer) State(c *protocol.Codec) { c.Uints(&p.mode, &p.next) }

func (p *dealer) Step(ev protocol.Event[uint8], out *protocol.Out[uint8]) {
	what := uint64(ev.Msg)
	switch ev.Kind {
	case protocol.Start:
		out.Propose(0, uint8(p.id))
		return
	case protocol.Exit:
		out.Rem()
		return
	case protocol.Suspect, protocol.Restore:
		what = uint64(ev.From)
	case protocol.Decide:
		p.next = ev.Arg + 1
	}
	for _, deed := range p.rules[[3]uint64{uint64(ev.Kind), p.mode, what}] {
		switch deed {
		case 0, 1:
			p.mode = uint64(deed)
		case 2:
			out.Crit(0)
		case 3:
			out.Outcome()
		case 4:
			out.Ejected()
		case 5, 6:
			out.Invoke(op(protocol.ID(deed-5)), 1)
		case 7:
			if p.next < 2 {
				out.Propose(p.next, uint8(p.id)+2)
			}
		default:
			if ev.Kind != protocol.Receive || p.mode == 0 {
				out.Send(1-p.id, deed-8)
			}
		}
	}
}

func dealt(r *rand.Rand) protocol.Algorithm[uint8] {
	rules := map[[3]uint64][]uint8{}
	for _, kind := range []protocol.Kind{protocol.Try, protocol.Issue, protocol.Receive, protocol.Decide, protocol.Suspect, protocol.Restore} {
		for mode := range uint64(2) {
			for what := range uint64(4) {
				var deeds []uint8
				if kind == protocol.Try && r.IntN(3) > 0 {
					deeds = []uint8{2}
				}
				for range r.IntN(3) {
					deeds = append(deeds, uint8(r.IntN(10)))
				}
				switch kind { // so that runs end
				case protocol.Receive:
					deeds = slices.DeleteFunc(deeds, func(d uint8) bool { return d >= 8 })
				case protocol.Suspect, protocol.Restore:
					deeds = slices.DeleteFunc(deeds, func(d uint8) bool { return d >= 5 && d != 7 })
				}
				rules[[3]uint64{uint64(kind), mode, what}] = deeds
			}
		}
	}
	a := algorithm(protocol.Info{Weak: true, Consensus: true, Detector: protocol.UnreliableDetector, Tolerates: protocol.Crash}, nil)
	a.Name = "dealer"
	b := a
	b.New = func(id protocol.ID, c protocol.Config) protocol.Process[uint8] {
		return &dealer{rules: rules, id: id, n: protocol.ID(c.N)}
	}
	return b
}

// Random algorithms: that a decision is made where somebody hears of it, and not before, changes no verdict;
// and what is found is found by another driver.
func TestDecisionsApart(t *testing.T) {
	draws := lane.Of(t, "algorithms", 12, 12, 3000)
	found := map[string]int{}
	for seed := range uint64(draws) {
		a := dealt(rand.New(rand.NewPCG(seed, 1)))
		k := config(2)
		k.Suspect, k.Crash = int(seed%2), int(seed/2%2)
		for _, property := range append(check.Properties(a, nil), "") {
			k := k
			if property != "" {
				k.Properties = []string{property}
			}
			v := run(t, a, k)
			k.Apart()
			w := run(t, a, k)
			// Of several that the same number of steps violates any may be found first.
			if v.Verdict != w.Verdict || property != "" && v.Property != w.Property {
				t.Fatalf("seed %d, %s: %s of %s, and with decisions apart %s of %s (%s)\n%s", seed, property, v.Verdict, v.Property,
					w.Verdict, w.Property, w.Reason, strings.Join(w.Trace, "\n"))
			}
			if v.Verdict == check.Holds && v.States > w.States {
				t.Errorf("seed %d, %s: %d states, with decisions apart only %d", seed, property, v.States, w.States)
			}
			if v.Verdict == check.Violated {
				found[v.Property]++
			}
			if property == "" && v.Verdict == check.Violated {
				replay(t, a, 2, v)
				replay(t, a, 2, w)
			}
		}
	}
	for _, p := range []string{history.OneCopy, history.Failed, history.Outcome, history.Lagging, check.WellFormed, check.Deadlock} {
		if found[p] == 0 {
			t.Errorf("no algorithm violates %s: %v", p, found)
		}
	}
}
