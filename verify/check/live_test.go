package check_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/poundlock/poundlock/algo/algotest/mutant"
	"github.com/poundlock/poundlock/algo/ricartagrawala"
	"github.com/poundlock/poundlock/internal/lane"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/scenario"
)

var lastingTests = []struct {
	name string
	test func(t testing.TB)
}{
	{"Ricart-Agrawala", ricartAgrawalaLasts},
	{"queue", queueLasts},
	{"starving queues", starvingQueues},
	{"livelock", livelock},
	{"rest", rest},
	{"timers", timersLast},
	{"messages", messagesLast},
	{"tries", triesNeedNotHappen},
	{"idempotent messages", idempotentLasts},
	{"messages with moved counters", shiftedMessagesLast},
	{"messages that are sent again", lasts},
	{"neglected messages", neglectedMessagesLast},
	{"detectors", detectorsLast},
	{"undecided", undecided},
	{"configuration", lastingConfig},
}

func TestLasting(t *testing.T) {
	for _, test := range lastingTests {
		t.Run(test.name, func(t *testing.T) { test.test(t) })
	}
}

// A recorder notes the first complaint of a test.
type recorder struct {
	testing.TB
	fault string
}

func (r *recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) {
	if first, _, _ := strings.Cut(fmt.Sprintf(format, args...), "\n"); r.fault == "" {
		r.fault = first
	}
}

func (r *recorder) Fatal(args ...any) { panic(fmt.Sprint(args...)) }

func TestMutants(t *testing.T) {
	var checks []mutant.Check
	for _, test := range lastingTests {
		checks = append(checks, func() (string, error) {
			r := &recorder{}
			test.test(r)
			return r.fault, nil
		})
	}
	inside := []string{"worker.serves"}
	full := lane.Long.Runs()
	if full {
		inside = append(inside, "graph", "live", "searcher.answer", "searcher.answers", "worker.class", "choose")
	} else {
		t.Log("only what serves a class is broken: TEST_LANE=long breaks all that decides infinite runs")
	}
	survivors := map[string]string{"worker.serves: o.moved dropped": "a crash, which is no move, is part of no loop: it uses up a budget"}
	if full {
		const interrupted = "matters only if ^C comes while infinite runs are looked at"
		maps.Copy(survivors, map[string]string{
			"live.bypass: w == nil -> false":               interrupted,
			"live.overtaken: l.solver.Stopped() -> false":  interrupted,
			"searcher.answer: r.interrupted() dropped":     interrupted,
			"searcher.answer: !l.solver.Stopped() dropped": interrupted,
			"live.overtaken: w.cycle != nil -> false":      "what comes after the first loop is not asked for",
			"live.enters: a[1+u] != b[1+u] dropped":        "saves time: who does not change does not enter",
			"graph.take: expanded -> true":                 "saves memory: edges of states that were not expanded are true, too",
		})
	}
	mutant.Test(t, mutant.Config{
		Checks:    checks,
		Inside:    inside,
		Patience:  5 * time.Second,
		Survivors: survivors,
		Replace: []mutant.Replacement{
			mutant.Edit("exits are no class", "		if g.owed(a, g.stays) {\n", "		if g.owed(a, g.stays) && a.verb != exit {\n"),
		},
	})
}

// lasting asks for properties of infinite runs.
func lasting(c check.Config, properties ...string) check.Config {
	c.Properties, c.MaxMemory = properties, 64<<20
	return c
}

// ends wants a violation after stem steps, with a loop of some more, and takes the run
// again to see that it is fair.
func ends[M any](t testing.TB, a protocol.Algorithm[M], c check.Config, v check.Verdict, property string, stem, loop int) {
	t.Helper()
	p := v.Properties[slices.IndexFunc(v.Properties, func(p check.Property) bool { return p.Property == property })]
	if p.Verdict != check.Violated || int(p.Loop) != stem || len(p.Trace) != stem+loop {
		t.Errorf("%s: %s, %d steps, loop from %d: want violated, %d and a loop of %d\n%s\n%s",
			property, p.Verdict, len(p.Trace), p.Loop, stem, loop, strings.Join(p.Trace, "\n"), v.Bounds)
		return
	}
	again(t, a, c, p)
}

// again takes a lasso step by step: its loop ends where it began, and each step that
// must happen and is possible in all of its states is taken. A run that rests has
// none.
func again[M any](t testing.TB, a protocol.Algorithm[M], c check.Config, p check.Property) {
	t.Helper()
	w, err := check.NewWalk(a, c)
	if err != nil {
		t.Fatal(err)
	}
	steps, err := w.Names().Parse(strings.NewReader(strings.Join(p.Trace, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	must := func() (lines []string) {
		for _, s := range w.Possible() {
			if slices.Contains([]scenario.Verb{scenario.Deliver, scenario.Timeout, scenario.Exit, scenario.Suspect, scenario.Restore}, s.Verb) {
				lines = append(lines, w.Names().Format(s))
			}
		}
		return lines
	}
	var begin string
	var always []string
	for i := 0; ; i++ {
		if i == int(p.Loop) {
			begin, always = standing(w), must()
		}
		if i == len(steps) {
			break
		}
		if _, err := w.Take(steps[i]); err != nil {
			t.Fatal(err)
		}
		if i >= int(p.Loop) {
			possible := must()
			always = slices.DeleteFunc(always, func(l string) bool { return !slices.Contains(possible, l) })
		}
	}
	if end := standing(w); end != begin {
		t.Errorf("the loop begins with\n%s\nand ends with\n%s", begin, end)
	}
	for _, l := range always {
		if p.Property != check.Bypass && !slices.Contains(p.Trace[p.Loop:], l) {
			t.Errorf("%q is possible in each state of the loop, and never taken\n%s", l, strings.Join(p.Trace, "\n"))
		}
	}
}

func standing(w *check.Walk) string {
	var b strings.Builder
	end := w.Run()
	for _, s := range end.End {
		b.WriteString(s.Process + " " + s.Section + " " + s.Text + "\n")
	}
	for _, f := range end.InFlight {
		b.WriteString(f.From + " to " + f.To + " " + f.Message + "\n")
	}
	return b.String()
}

// Ricart and Agrawala 1981, section 3.3: nobody starves. Clocks go on for ever and are
// moved down, so that all runs are explored.
func ricartAgrawalaLasts(t testing.TB) {
	for _, test := range []struct {
		a protocol.Algorithm[ricartagrawala.Message]
		// While one waits, each of the others may have a request with an earlier timestamp,
		// and make one more before it hears of this one. As printed it may make another one,
		// for it does not hear of the clock of the one that waits.
		bound check.Overtaking
	}{
		{ricartagrawala.Algorithm, check.Overtaking{All: 4, One: 2}},
		{ricartagrawala.Printed, check.Overtaking{All: 5, One: 3}},
	} {
		c := lasting(config(3), check.MakesProgress, check.Starvation, check.Bypass)
		c.Entries = []int{check.Unlimited}
		v := run(t, test.a, c)
		wants(t, v, check.Holds, check.Model)
		bound := v.Properties[len(v.Properties)-1].Bound
		if bound == nil || *bound != test.bound {
			t.Errorf("%q: bound %+v, want %+v", test.a.Variant, bound, test.bound)
		}
	}
}

// The messages of the locks that server 0 gives to clients.
const (
	request uint8 = iota + 1
	grant
	release
	refuse
)

// A queue puts client c into the list of those who wait.
type queue func(list []uint64, c uint64) []uint64

// serve is a lock at server 0. It keeps in r[0] who is inside and in r[1] who waits,
// in base 8. Without a queue it refuses who comes while somebody is inside.
func serve(q queue) program {
	return func(p *toy, ev protocol.Event[uint8], out *protocol.Out[uint8]) {
		if p.id != 0 {
			client(ev, out)
			return
		}
		if ev.Kind != protocol.Receive {
			return
		}
		var list []uint64
		for v := p.r[1]; v > 0; v /= 8 {
			list = append(list, v%8)
		}
		switch {
		case ev.Msg == release:
			p.r[0] = 0
		case p.r[0] == 0:
			list = append(list, uint64(ev.From))
		case q == nil:
			out.Send(ev.From, refuse)
		default:
			list = q(list, uint64(ev.From))
		}
		if p.r[0] == 0 && len(list) > 0 {
			p.r[0], list = list[0], list[1:]
			out.Send(protocol.ID(p.r[0]), grant)
		}
		p.r[1] = 0
		for _, c := range slices.Backward(list) {
			p.r[1] = p.r[1]*8 + c
		}
	}
}

func client(ev protocol.Event[uint8], out *protocol.Out[uint8]) {
	switch {
	case ev.Kind == protocol.Try, ev.Kind == protocol.Receive && ev.Msg == refuse:
		out.Send(0, request)
	case ev.Kind == protocol.Exit:
		out.Send(0, release)
		out.Rem()
	case ev.Kind == protocol.Receive:
		out.Crit(0)
	}
}

var central = protocol.Info{Users: protocol.Clients}

func ofClients(n int) check.Config {
	c := config(1)
	c.Clients, c.Entries = n, []int{check.Unlimited}
	return lasting(c, check.Deadlock, check.MakesProgress, check.Starvation, check.Bypass)
}

// A queue serves everybody. But nobody knows of a request that is on its way: others
// enter as often as they like until it arrives.
func queueLasts(t testing.TB) {
	a := algorithm(central, serve(func(list []uint64, c uint64) []uint64 { return append(list, c) }))
	v := run(t, a, ofClients(2))
	held(t, v, check.Deadlock, check.MakesProgress, check.Starvation)
	ends(t, a, ofClients(2), v, check.Bypass, 3, 5)
	c := ofClients(2)
	c.Entries = []int{3, 1}
	v = run(t, a, c)
	held(t, v, check.Bypass)
	if b := v.Properties[len(v.Properties)-1].Bound; b == nil || *b != (check.Overtaking{All: 3, One: 3}) {
		t.Errorf("bound %+v", b)
	}
}

// Locks in which somebody starves although others make progress.
func starvingQueues(t testing.TB) {
	for _, test := range []struct {
		name       string
		queue      queue
		stem, loop int
	}{
		{"by client id", func(list []uint64, c uint64) []uint64 { return slices.Sorted(slices.Values(append(list, c))) }, 4, 5},
		{"forgets who comes while somebody is inside", func(list []uint64, c uint64) []uint64 { return list }, 7, 0},
		{"refuses who comes while somebody is inside", nil, 1, 7},
	} {
		a := algorithm(central, serve(test.queue))
		c := ofClients(2)
		c.Properties = []string{check.Starvation}
		ends(t, a, c, run(t, a, c), check.Starvation, test.stem, test.loop)
		c.Properties = []string{check.MakesProgress}
		if v := run(t, a, c); v.Verdict != check.Holds && test.loop > 0 {
			t.Errorf("%s: progress is %s\n%s", test.name, v.Verdict, strings.Join(v.Trace, "\n"))
		}
	}
}

// Two users that give way to each other for ever: messages arrive, and nobody enters.
func livelock(t testing.TB) {
	polite := func(p *toy, ev protocol.Event[uint8], out *protocol.Out[uint8]) {
		switch {
		case ev.Kind == protocol.Try:
			p.r[0] = 1
			out.Broadcast(request)
		case ev.Kind == protocol.Exit:
			p.r[0] = 0
			out.Rem()
		case ev.Kind == protocol.Receive && ev.Msg == request && p.r[0] == 0:
			out.Send(ev.From, grant)
		case ev.Kind == protocol.Receive && ev.Msg == request:
			out.Send(ev.From, refuse)
		case ev.Kind == protocol.Receive && ev.Msg == refuse:
			out.Send(ev.From, request)
		case ev.Kind == protocol.Receive:
			out.Crit(0)
		}
	}
	a, c := algorithm(peers, polite), lasting(config(2), check.Deadlock, check.MakesProgress, check.Starvation)
	v := run(t, a, c)
	held(t, v, check.Deadlock)
	if v.Property != check.MakesProgress || !strings.Contains(v.Reason, "the loop of the last 4 steps leads back") {
		t.Errorf("%s: %s", v.Property, v.Reason)
	}
	ends(t, a, c, v, check.MakesProgress, 2, 4)
	ends(t, a, c, v, check.Starvation, 2, 4)
	c.Properties = []string{check.Starvation}
	const both = "starvation: p1 tries for ever, p2 tries for ever: the loop of the last 4 steps"
	if v := run(t, a, c); !strings.HasPrefix(v.Reason, both) {
		t.Errorf("%s, want %s", v.Reason, both)
	}
}

// A run that comes to rest: its loop is empty, and the reason says so.
func rest(t testing.TB) {
	left := func(_ *toy, ev protocol.Event[uint8], out *protocol.Out[uint8]) {
		if ev.Kind == protocol.Try {
			out.Crit(0)
		}
	}
	for _, test := range []struct {
		step   program
		stem   int
		reason string
	}{
		{wait, 1, "starvation: p1 tries for ever: nothing is left that must happen"},
		{left, 2, "starvation: p1 waits for ever to be told rem: nothing is left that must happen"},
	} {
		c := lasting(config(1), check.Starvation)
		v := run(t, algorithm(peers, test.step), c)
		ends(t, algorithm(peers, test.step), c, v, check.Starvation, test.stem, 0)
		if v.Reason != test.reason || int(v.Loop) != test.stem {
			t.Errorf("reason %q, loop %d", v.Reason, v.Loop)
		}
		c.Properties = []string{check.Deadlock, check.MakesProgress}
		if v := run(t, algorithm(peers, test.step), c); v.Property != check.Deadlock || v.Loop != check.NoLoop {
			t.Errorf("%s, loop %d: a deadlock is found before its consequences", v.Property, v.Loop)
		}
	}
}

// chatter is two processes that send each other one message for ever; while that goes
// on, p1 does more, as its tests say.
func chatter(more program) program {
	return func(p *toy, ev protocol.Event[uint8], out *protocol.Out[uint8]) {
		switch {
		case ev.Kind == protocol.Start && p.id == 1, ev.Kind == protocol.Receive && ev.Msg == 1:
			out.Send(1-p.id, 1)
		case ev.Kind == protocol.Exit:
			out.Rem()
		}
		if p.id == 0 {
			more(p, ev, out)
		}
	}
}

func alone() check.Config {
	c := config(2)
	c.Entries = []int{1, 0}
	return lasting(c, check.Starvation)
}

// A timer that is set must fire, unless it is set again and again.
func timersLast(t testing.TB) {
	once := chatter(func(p *toy, ev protocol.Event[uint8], out *protocol.Out[uint8]) {
		switch ev.Kind {
		case protocol.Try:
			out.SetTimer(7, 1, 0)
		case protocol.Timeout:
			out.Crit(0)
		}
	})
	wants(t, run(t, algorithm(peers, once), alone()), check.Holds, check.Model)
	again := chatter(func(p *toy, ev protocol.Event[uint8], out *protocol.Out[uint8]) {
		switch {
		case ev.Kind == protocol.Try:
			p.r[0] = 1
			out.SetTimer(7, 1, 0)
		case ev.Kind == protocol.Timeout:
			p.r[0] = 0
			out.Crit(0)
		case p.r[0] == 1:
			out.SetTimer(7, 1, 0)
		}
	})
	v := run(t, algorithm(peers, again), alone())
	wants(t, v, check.Violated, check.Starvation, "try p1", "deliver p2 p1 M(1)", "deliver p1 p2 M(1)")
	if v.Loop != 1 {
		t.Errorf("loop %d, want 1", v.Loop)
	}
	// One that another step of the same process sets again.
	both := func(p *toy, ev protocol.Event[uint8], out *protocol.Out[uint8]) {
		switch {
		case ev.Kind == protocol.Timeout && ev.Timer == 7:
			out.Crit(0)
		case ev.Kind == protocol.Timeout, ev.Kind == protocol.Try:
			out.SetTimer(7, 1, 0)
			out.SetTimer(8, 1, 0)
		case ev.Kind == protocol.Exit:
			out.Rem()
		}
	}
	second := alone()
	second.Entries = []int{0, 1}
	wants(t, run(t, algorithm(peers, both), second), check.Violated, check.Starvation, "try p2", "timeout p2 8")
	// One that another process sets again is another one.
	other := func(p *toy, ev protocol.Event[uint8], out *protocol.Out[uint8]) {
		switch {
		case p.id == 1 && (ev.Kind == protocol.Start || ev.Kind == protocol.Timeout), ev.Kind == protocol.Try:
			out.SetTimer(7, 1, 0)
		case ev.Kind == protocol.Timeout:
			out.Crit(0)
		case ev.Kind == protocol.Exit:
			out.Rem()
		}
	}
	wants(t, run(t, algorithm(peers, other), alone()), check.Holds, check.Model)
	// Where timers never fire a loop need not wait for one, and a run does not rest while
	// one is set.
	quiet := func(_ *toy, ev protocol.Event[uint8], out *protocol.Out[uint8]) {
		switch ev.Kind {
		case protocol.Try:
			out.SetTimer(7, 1, 0)
		case protocol.Timeout:
			out.Crit(0)
		case protocol.Exit:
			out.Rem()
		}
	}
	c := alone()
	for _, c.Timers = range []check.Timers{check.AnyMoment, check.NeverFire} {
		wants(t, run(t, algorithm(peers, quiet), c), check.Holds, check.Model)
	}
	wants(t, run(t, algorithm(peers, once), c), check.Violated, check.Starvation, "try p1", "deliver p2 p1 M(1)", "deliver p1 p2 M(1)")
}

// Each message in flight arrives, however much else happens.
func messagesLast(t testing.TB) {
	granted := chatter(func(p *toy, ev protocol.Event[uint8], out *protocol.Out[uint8]) {
		switch {
		case ev.Kind == protocol.Try:
			out.Send(1, 2)
		case ev.Kind == protocol.Receive && ev.Msg == 3:
			out.Crit(0)
		}
	})
	a := algorithm(peers, func(p *toy, ev protocol.Event[uint8], out *protocol.Out[uint8]) {
		if p.id == 1 && ev.Kind == protocol.Receive && ev.Msg == 2 {
			out.Send(0, 3)
		}
		granted(p, ev, out)
	})
	c := alone()
	for _, c.FIFO = range []bool{false, true} {
		wants(t, run(t, a, c), check.Holds, check.Model)
	}
}

// Nobody has to try: p1 waits for a try of p2 for ever, while a message goes to and fro.
func triesNeedNotHappen(t testing.TB) {
	a := algorithm(peers, func(p *toy, ev protocol.Event[uint8], out *protocol.Out[uint8]) {
		switch {
		case ev.Kind == protocol.Try && p.id == 1:
			out.Send(0, 2)
			out.Crit(0)
		case ev.Kind == protocol.Receive && ev.Msg == 2:
			out.Crit(0)
		default:
			chatter(func(*toy, protocol.Event[uint8], *protocol.Out[uint8]) {})(p, ev, out)
		}
	})
	c := lasting(config(2), check.Starvation)
	ends(t, a, c, run(t, a, c), check.Starvation, 1, 2)
}

// A message that may arrive any number of times arrives for the last time at last: it
// does not keep the one behind it from the head of their channel.
func idempotentLasts(t testing.TB) {
	a := algorithm(peers, func(p *toy, ev protocol.Event[uint8], out *protocol.Out[uint8]) {
		switch {
		case ev.Kind == protocol.Try:
			out.Send(1, 2)
		case ev.Kind == protocol.Receive && ev.Msg == 2:
			out.Send(0, 1)
			out.Send(0, 3)
		case ev.Kind == protocol.Receive && ev.Msg == 3:
			out.Crit(0)
		case ev.Kind == protocol.Exit:
			out.Rem()
		}
	})
	a.Idempotent = func(m uint8) bool { return m == 1 }
	c := alone()
	c.FIFO = true
	wants(t, run(t, a, c), check.Holds, check.Model)
	// One that is sent again until nobody wants it any more arrives for ever.
	beat := algorithm(peers, func(p *toy, ev protocol.Event[uint8], out *protocol.Out[uint8]) {
		if ev.Kind == protocol.Start && p.id == 1 {
			out.Send(0, 1)
		}
	})
	beat.Idempotent = a.Idempotent
	beat.Stale = func(_, _ protocol.Process[uint8], _ protocol.Channel, _ uint8) bool { return false }
	wants(t, run(t, beat, alone()), check.Violated, check.Starvation, "try p1", "deliver p2 p1 M(1)")
}

// p2 lets p1 in when it hears from it after it has heard from p3, and what p1 sends arrives
// once, maybe too early. Where it is sent again, which an option that nobody gave is there
// for, p1 enters at last.
func lasts(t testing.TB) {
	a := algorithm(peers, func(p *toy, ev protocol.Event[uint8], out *protocol.Out[uint8]) {
		switch {
		case ev.Kind == protocol.Try:
			out.Send(1, 1)
		case ev.Kind == protocol.Start && p.id == 2:
			out.Send(1, 2)
		case ev.Kind == protocol.Receive && ev.Msg == 2:
			p.r[0] = 1
		case ev.Kind == protocol.Receive && ev.Msg == 1 && p.r[0] == 1:
			p.r[0] = 2
			out.Send(0, 3)
		case ev.Kind == protocol.Receive && ev.Msg == 3:
			out.Crit(0)
		case ev.Kind == protocol.Exit:
			out.Rem()
		}
	})
	a.Messages = []protocol.Message{{Name: "M"}}
	a.Options = []protocol.Option{{
		Name: "ask", Default: func(protocol.Config) int64 { return 1 }, InCheck: func(protocol.Config) int64 { return 0 },
	}}
	c := config(3)
	c.Entries = []int{1, 0, 0}
	c.Properties = []string{check.Starvation}
	wants(t, run(t, a, c), check.Violated, check.Starvation, "try p1", "deliver p1 p2 M(1)", "deliver p3 p2 M(2)")
	a.Lasts = func(m uint8) bool { return m == 1 }
	v := run(t, a, c)
	if wants(t, v, check.Holds, check.Model); !strings.Contains(v.Bounds, "M sent again for ever") {
		t.Errorf("the bounds do not say what is sent again: %s", v.Bounds)
	}
	for what, f := range map[string]func(*check.Config){
		"an option that is given": func(c *check.Config) { c.Options = map[string]int64{"ask": 0} },
		"FIFO channels":           func(c *check.Config) { c.FIFO = true },
	} {
		c := c
		if f(&c); run(t, a, c).Verdict != check.Violated {
			t.Errorf("%s: %+v", what, run(t, a, c))
		}
	}
	c.Properties = []string{check.Exclusion}
	if v := run(t, a, c); strings.Contains(v.Bounds, "again") {
		t.Errorf("exclusion takes no messages to be sent again: %s", v.Bounds)
	}
}

// A message with a number of its own is on its way; when it arrives p1 enters, and its
// number becomes the smallest one. Meanwhile others go to and fro, and their numbers,
// which are of another kind, grow: that neglects the one.
func neglectedMessagesLast(t testing.TB) {
	const (
		odd  = 1 // of the one: its number is the rest
		none = 0 // has no number
	)
	one, others := protocol.Counter{User: 1, Least: 1}, protocol.Counter{User: 2, Least: 1}
	a := algorithm(peers, func(p *toy, ev protocol.Event[uint8], out *protocol.Out[uint8]) {
		switch {
		case ev.Kind == protocol.Start:
			if p.r[0], p.r[1] = 1, 1; p.id == 1 {
				out.Send(0, 5*2+odd)
				out.Send(0, 1*2)
				out.Send(0, none)
			}
		case ev.Kind == protocol.Receive && ev.Msg == none:
			out.Send(1-p.id, none)
		case ev.Kind == protocol.Receive && ev.Msg%2 == odd:
			if p.r[0] = uint64(ev.Msg / 2); p.r[2] == 1 {
				out.Crit(0)
			}
			p.r[2] = 2
		case ev.Kind == protocol.Receive:
			p.r[1] = uint64(ev.Msg/2) + 1
			out.Send(1-p.id, uint8(p.r[1]*2))
		case ev.Kind == protocol.Try && p.r[2] == 2:
			out.Crit(0)
		case ev.Kind == protocol.Try:
			p.r[2] = 1
		case ev.Kind == protocol.Exit:
			out.Rem()
		}
	})
	a.MapState = func(p protocol.Process[uint8], f func(protocol.Counter, uint64) uint64) {
		q := p.(*toy)
		q.r[1] = f(others, q.r[1])
		if q.id == 0 {
			q.r[0] = f(one, q.r[0])
		}
	}
	a.MapMsg = func(_ protocol.Channel, m *uint8, f func(protocol.Counter, uint64) uint64) {
		switch {
		case *m%2 == odd:
			*m = uint8(f(one, uint64(*m/2)))*2 + odd
		case *m != none:
			*m = uint8(f(others, uint64(*m/2))) * 2
		}
	}
	wants(t, run(t, a, alone()), check.Holds, check.Model)
}

// p2 keeps three messages on their way to p1, numbered one after the other. They arrive
// in order, each is answered, and the answer brings the next one: a fair run in which
// p1 tries for ever. With numbers relative to the smallest one, one called 3 is on its
// way in every state, and it is always one called 2 that arrives.
func shiftedMessagesLast(t testing.TB) {
	const answer = 255
	a := algorithm(peers, func(p *toy, ev protocol.Event[uint8], out *protocol.Out[uint8]) {
		switch {
		case ev.Kind == protocol.Start && p.id == 0:
			p.r[0] = 1
		case ev.Kind == protocol.Start:
			for p.r[0] = 2; p.r[0] < 5; p.r[0]++ {
				out.Send(0, uint8(p.r[0]))
			}
		case ev.Kind == protocol.Receive && p.id == 1:
			out.Send(0, uint8(p.r[0]))
			p.r[0]++
		case ev.Kind == protocol.Receive && uint64(ev.Msg) == p.r[0]+1:
			p.r[0]++
			out.Send(1, answer)
		case ev.Kind == protocol.Receive && p.r[1] == 1, ev.Kind == protocol.Try && p.r[1] == 2:
			out.Crit(0)
			p.r[1] = 2
		case ev.Kind == protocol.Receive:
			p.r[1] = 2
		case ev.Kind == protocol.Try:
			p.r[1] = 1
		case ev.Kind == protocol.Exit:
			out.Rem()
		}
	})
	number := protocol.Counter{Least: 1}
	a.MapState = func(p protocol.Process[uint8], f func(protocol.Counter, uint64) uint64) {
		p.(*toy).r[0] = f(number, p.(*toy).r[0])
	}
	a.MapMsg = func(_ protocol.Channel, m *uint8, f func(protocol.Counter, uint64) uint64) {
		if *m != answer {
			*m = uint8(f(number, uint64(*m)))
		}
	}
	v := run(t, a, alone())
	if v.Verdict != check.Violated || v.Loop != 1 || len(v.Trace) != 3 {
		t.Errorf("%s, loop %d\n%s", v.Verdict, v.Loop, strings.Join(v.Trace, "\n"))
	}
}

// A client that stopped inside is suspected at last, and only then is the next one let
// in, though another message goes to and fro all the time.
func detectorsLast(t testing.TB) {
	i := protocol.Info{Users: protocol.Clients, Detector: protocol.PerfectDetector, Tolerates: protocol.Crash}
	lock := serve(func(list []uint64, c uint64) []uint64 { return append(list, c) })
	a := algorithm(i, func(p *toy, ev protocol.Event[uint8], out *protocol.Out[uint8]) {
		switch {
		case p.id > 1 && ev.Kind == protocol.Receive && ev.Msg == refuse:
			out.Send(1, refuse)
		case p.id == 1 && (ev.Kind == protocol.Start || ev.Kind == protocol.Receive):
			out.Send(3, refuse)
		case p.id == 0 && ev.Kind == protocol.Suspect && p.r[0] == uint64(ev.From):
			lock(p, protocol.Event[uint8]{Input: protocol.Input{Kind: protocol.Receive, From: ev.From}, Msg: release}, out)
		case p.id == 0 && ev.Kind == protocol.Suspect:
		default:
			lock(p, ev, out)
		}
	})
	c := config(2)
	c.Clients, c.Crash, c.Entries = 2, 1, []int{1, 1}
	c = lasting(c, check.Starvation)
	wants(t, run(t, a, c), check.Holds, check.Model)
	// Who is not interested hears of it again and again: that is a loop.
	ignores := algorithm(i, func(p *toy, ev protocol.Event[uint8], out *protocol.Out[uint8]) {
		if ev.Kind != protocol.Suspect {
			lock(p, ev, out)
		}
	})
	v := run(t, ignores, c)
	wants(t, v, check.Violated, check.Starvation, "try c1", "try c2", "deliver c2 s1 M(1)", "deliver c1 s1 M(1)",
		"crash c2", "suspect s1 c2", "suspect s2 c2")
}

// What is decided in what was explored, and what is not.
func undecided(t testing.TB) {
	a := algorithm(peers, func(p *toy, ev protocol.Event[uint8], out *protocol.Out[uint8]) {
		switch ev.Kind {
		case protocol.Try:
			out.SetTimer(7, 1, 0)
		case protocol.Timeout:
			if p.r[0]++; p.id == 1 && p.r[0] == 3 {
				out.Crit(0)
			} else {
				out.SetTimer(7, 1, 0)
			}
		case protocol.Exit:
			out.Rem()
		}
	})
	c := lasting(config(2), check.Starvation, check.Exclusion, check.Bypass)
	c.Entries = []int{0, 1}
	a.Bounds = []protocol.Bound{protocol.NewBound("r", 2, func(p *toy) uint64 { return p.r[0] })}
	v := run(t, a, c)
	if v.Verdict != check.Undecided || v.Property != check.Starvation {
		t.Errorf("%s: %s; a step was cut, so that nobody knows whether p2 enters", v.Property, v.Verdict)
	}
	held(t, v, check.Exclusion)
	c.Prefix = []scenario.Step{{Verb: scenario.Try, Procs: []protocol.ID{1}}}
	if v := run(t, a, c); v.Verdict != check.Undecided {
		t.Errorf("after a prefix: %s: %s", v.Property, v.Verdict)
	}
	c.Prefix = nil
	a.Bounds[0].Max = 9
	wants(t, run(t, a, c), check.Holds, check.Exclusion)
	// A lasso among what was explored is one.
	c.Entries = []int{1, 1}
	waits := algorithm(peers, func(p *toy, ev protocol.Event[uint8], out *protocol.Out[uint8]) {
		if ev.Kind == protocol.Try && p.id == 1 {
			p.r[0] = 3
		}
	})
	waits.Bounds = a.Bounds
	waits.Bounds[0].Max = 2
	wants(t, run(t, waits, c), check.Violated, check.Starvation, "try p1")
	// So is one in what a cap on memory left.
	c = lasting(config(3), check.Starvation)
	c.Entries, c.MaxMemory, c.NoShift = []int{check.Unlimited}, 4<<20, true
	v = run(t, ricartagrawala.Algorithm, c)
	if last := v.Properties[len(v.Properties)-1]; last.Verdict != check.Undecided || !strings.Contains(v.Bounds, "memory cap") {
		t.Errorf("%s: %s: %s", last.Property, last.Verdict, v.Bounds)
	}
	ghost := ofClients(2)
	ghost.Properties, ghost.MaxMemory = []string{check.Starvation}, 2<<20
	endless := algorithm(central, func(p *toy, ev protocol.Event[uint8], out *protocol.Out[uint8]) {
		if p.id != 0 {
			client(ev, out)
			return
		}
		if p.r[3]++; p.r[3] > 255 {
			p.r[2], p.r[3] = p.r[2]+1, 0
		}
		if ev.Kind == protocol.Receive && ev.Msg == request && ev.From == 1 {
			out.Send(1, grant)
		}
	})
	v = run(t, endless, ghost)
	if v.Verdict != check.Violated || v.Loop != 2 || !strings.Contains(v.Bounds, "memory cap") {
		t.Errorf("%s, loop %d: %s", v.Verdict, v.Loop, v.Bounds)
	}
}

func lastingConfig(t testing.TB) {
	c := lasting(config(1), check.Starvation)
	c.Stay = true
	if _, err := check.Run(algorithm(peers, wait), c); err == nil || !strings.Contains(err.Error(), "starvation cannot be decided: who is inside stays") {
		t.Errorf("error %v", err)
	}
	c.Stay, c.Swarm = false, &check.Swarm{}
	if _, err := check.Run(algorithm(peers, wait), c); err == nil || !strings.Contains(err.Error(), "a swarm keeps no states") {
		t.Errorf("error %v", err)
	}
	c.Swarm, c.Properties = nil, []string{"starving"}
	if _, err := check.Run(algorithm(peers, wait), c); err == nil || !strings.Contains(err.Error(), "unknown property") {
		t.Errorf("error %v", err)
	}
	for _, test := range []struct {
		asked []string
		stay  bool
		want  string
	}{
		{nil, false, "exclusion well-formed deadlock model"},
		{[]string{"all"}, false, "exclusion well-formed deadlock model progress starvation"},
		{[]string{"all"}, true, "exclusion well-formed deadlock model"},
		{[]string{"bypass", "starvation"}, false, "model starvation bypass"},
		{[]string{"all", "kept", "bypass"}, false, "exclusion well-formed deadlock model kept progress starvation bypass"},
	} {
		c.Properties, c.Stay = test.asked, test.stay
		var names []string
		for _, p := range run(t, algorithm(peers, enter), c).Properties {
			names = append(names, p.Property)
		}
		if got := strings.Join(names, " "); got != test.want {
			t.Errorf("%q, who is inside stays: %v: %s, want %s", test.asked, test.stay, got, test.want)
		}
	}
	done := make(chan struct{})
	close(done)
	c.Done, c.Properties = done, []string{check.Starvation}
	wants(t, run(t, algorithm(peers, enter), c), check.Undecided, check.Model)
}

func held(t testing.TB, v check.Verdict, names ...string) {
	t.Helper()
	for _, p := range v.Properties {
		if slices.Contains(names, p.Property) && p.Verdict != check.Holds {
			t.Errorf("%s: %s\n%s", p.Property, p.Verdict, strings.Join(p.Trace, "\n"))
		}
	}
}
