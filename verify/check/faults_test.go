package check_test

import (
	"strings"
	"testing"

	"github.com/poundlock/poundlock/algo/ricartagrawala"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/scenario"
)

// panicOn is a program that enters, and panics as soon as an event makes bad true.
func panicOn(bad func(p *toy, ev protocol.Event[uint8]) bool) program {
	return func(p *toy, ev protocol.Event[uint8], out *protocol.Out[uint8]) {
		enter(p, ev, out)
		if bad(p, ev) {
			panic("found")
		}
	}
}

// server tells whether a toy is one.
func (p *toy) server() bool { return p.id < protocol.ID(p.n) }

// TestFaults asks for the shortest run to an event, which shows when the checker
// lets it happen.
func TestFaults(t *testing.T) {
	restore := func(from protocol.ID, arg uint64) func(*toy, protocol.Event[uint8]) bool {
		return func(p *toy, ev protocol.Event[uint8]) bool {
			return !p.server() && ev.Kind == protocol.Restore && ev.From == from && ev.Arg == arg
		}
	}
	suspected := func(p *toy, ev protocol.Event[uint8]) bool { return p.server() && ev.Kind == protocol.Suspect }
	c := config(2)
	c.Clients, c.Entries = 1, []int{0}
	with := func(amnesia, crash, suspect int) check.Config {
		k := c
		k.Amnesia, k.Crash, k.Suspect = amnesia, crash, suspect
		return k
	}
	for _, test := range []struct {
		name  string
		c     check.Config
		bad   func(*toy, protocol.Event[uint8]) bool
		trace string // "-": none
	}{
		{"incarnation 1", c, func(p *toy, ev protocol.Event[uint8]) bool {
			return ev.Kind == protocol.Start && p.server() && ev.Arg != 1
		}, "-"},
		{"restore at the start", c, restore(1, 1), ""},
		{"no restore without news", with(0, 0, 0), restore(0, 2), "-"},
		{"amnesia starts the next incarnation", with(2, 0, 0), func(p *toy, ev protocol.Event[uint8]) bool {
			return ev.Kind == protocol.Start && ev.Arg == 3
		}, "amnesia s1, amnesia s1"},
		{"clients learn of it", with(1, 0, 0), restore(1, 2), "amnesia s2, restore c1 s2"},
		{"but only of the last one", with(2, 0, 0), restore(0, 3), "amnesia s1, amnesia s1, restore c1 s1"},
		{"crash, then suspicion", with(0, 1, 0), suspected, "crash c1, suspect s1 c1"},
		{"no suspicion of the living", with(1, 0, 0), suspected, "-"},
		{"lapse at the client first", with(0, 0, 1), suspected, "lapse c1 s1, suspect s1 c1"},
		{"a lapse is a suspicion at the client", with(0, 0, 1), func(p *toy, ev protocol.Event[uint8]) bool {
			return !p.server() && ev.Kind == protocol.Suspect && ev.From == 1
		}, "lapse c1 s2"},
		{"a restored lease is not suspected", with(0, 0, 1), func(p *toy, ev protocol.Event[uint8]) bool {
			if ev.Kind == protocol.Restore {
				p.r[0]++
			}
			if ev.Kind == protocol.Suspect && p.server() {
				p.r[1]++
			}
			return !p.server() && p.r[0] == 4
		}, "-"},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := run(t, algorithm(clients, panicOn(test.bad)), test.c)
			if test.trace == "-" {
				wants(t, v, check.Holds, check.Exclusion)
			} else if v.Property != check.Model || strings.Join(v.Trace, ", ") != test.trace {
				t.Errorf("%s: %s, trace %q, want %q", v.Verdict, v.Property, v.Trace, test.trace)
			}
		})
	}
}

// An amnesiac member loses its timers and keeps what it sent; a crashed client
// gets nothing any more, and what it sent arrives.
func TestMessagesOfTheDead(t *testing.T) {
	step := func(p *toy, ev protocol.Event[uint8], out *protocol.Out[uint8]) {
		switch ev.Kind {
		case protocol.Start:
			if p.server() && ev.Arg == 1 {
				out.Send(2, 1)
				out.SetTimer(1, 1, 0)
			}
		case protocol.Timeout:
			if p.r[3] = 1; ev.Arg == 2 {
				panic("a timer of the last life")
			}
		case protocol.Try:
			out.Broadcast(2)
			out.Crit(0)
		case protocol.Exit:
			out.Rem()
		}
	}
	a, c := algorithm(clients, step), config(2)
	c.Clients, c.Amnesia, c.Crash, c.Suspect = 1, 1, 1, 0
	for _, test := range []struct{ prefix, last, err string }{
		{"amnesia s1", "deliver s1 c1 M(1)", ""},
		{"amnesia s1", "timeout s1 1", "no timeout is possible here; "},
		{"timeout s1 1", "timeout s1 1", "possible are: timeout s2 1"},
		{"try c1\ncrash c1", "deliver c1 s1 M(2)", ""},
		{"try c1\ncrash c1", "deliver s1 c1 M(1)", "possible are: deliver c1 s1 M(2); deliver c1 s2 M(2)"},
		{"try c1\ncrash c1", "exit c1", "no exit is possible here"},
		{"crash c1", "crash c1", "no budget left"},
	} {
		names := scenario.Names{Members: 2, Clients: true}
		steps, err := names.Parse(strings.NewReader(test.prefix + "\n" + test.last))
		if err != nil {
			t.Fatal(err)
		}
		k := c
		k.Prefix = steps
		_, err = check.Run(a, k)
		want := strings.TrimPrefix(test.err, "no timeout is possible here; ")
		if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s, %s: error %v, want %q", test.prefix, test.last, err, test.err)
		}
	}
}

// A member that is down gets nothing, and nothing is sent by it. Where the members
// are the users the model has none that is.
func TestDown(t *testing.T) {
	c := config(2)
	c.Clients, c.Down = 1, []protocol.ID{1}
	all := algorithm(clients, func(p *toy, ev protocol.Event[uint8], out *protocol.Out[uint8]) {
		switch {
		case ev.Kind == protocol.Try:
			out.Broadcast(1)
		case ev.Kind == protocol.Receive && int(p.id) < p.n:
			out.Send(ev.From, 2)
		case ev.Kind == protocol.Receive:
			if p.r[0]++; p.r[0] == uint64(p.n) {
				out.Crit(0)
			}
		}
	})
	v := run(t, all, c)
	wants(t, v, check.Violated, check.Deadlock, "try c1", "deliver c1 s1 M(1)", "deliver s1 c1 M(2)")
	if !strings.Contains(v.Bounds, "s2 down") {
		t.Errorf("bounds %q", v.Bounds)
	}
	c.Clients = 0
	if _, err := check.Run(ricartagrawala.Algorithm, c); err == nil || !strings.Contains(err.Error(), "p2 cannot be down") {
		t.Errorf("error %v", err)
	}
}

// Options that differ from their defaults are part of the bounds, also those
// that differ only in the checker.
func TestOptions(t *testing.T) {
	i := clients
	for _, name := range []string{"a", "b", "c"} {
		i.Options = append(i.Options, protocol.Option{Name: name, Default: func(protocol.Config) int64 { return 5 }})
	}
	i.Options[1].InCheck = func(protocol.Config) int64 { return 0 }
	i.Options[2].InCheck = i.Options[1].InCheck
	var seen map[string]int64
	a, c := algorithm(i, enter), config(1)
	inner := a.New
	a.New = func(id protocol.ID, c protocol.Config) protocol.Process[uint8] { seen = c.Options; return inner(id, c) }
	c.Clients, c.Options = 1, map[string]int64{"c": 5}
	v := run(t, a, c)
	if !strings.Contains(v.Bounds, "1 client, b=0, 1 entry") || seen["b"] != 0 || seen["c"] != 5 {
		t.Errorf("options %v, bounds %q", seen, v.Bounds)
	}
	if len(c.Options) != 1 {
		t.Errorf("the caller's options became %v", c.Options)
	}
}

func TestCancel(t *testing.T) {
	step := func(p *toy, ev protocol.Event[uint8], out *protocol.Out[uint8]) {
		switch ev.Kind {
		case protocol.Try:
			out.SetTimer(1, 1, 0)
		case protocol.Cancel:
			panic("cancelled")
		}
	}
	c := config(1)
	c.Clients, c.Cancel = 1, 1
	wants(t, run(t, algorithm(clients, step), c), check.Violated, check.Model, "try c1", "cancel c1")
	c.Cancel = 0
	if v := run(t, algorithm(clients, step), c); v.Property != check.Deadlock {
		t.Errorf("%s: %s", v.Verdict, v.Property)
	}
}

// View.Lost tells which members forgot a user that is not in its remainder.
func TestLost(t *testing.T) {
	a, c := algorithm(clients, enter), config(2)
	a.Invariants = []protocol.Invariant{{Name: "toy/lost", Err: func(v *protocol.View) error {
		if v.Lost[2][1] && !v.Lost[2][0] && !v.Lost[3][1] {
			return protocol.ErrShort
		}
		return nil
	}}}
	c.Amnesia, c.Entries = 1, []int{1, 0}
	c.Properties = []string{"toy/lost"}
	wants(t, run(t, a, c), check.Violated, "toy/lost", "try c1", "amnesia s2")
}

// TestPrefix replays a counterexample, as a whole and in part.
func TestPrefix(t *testing.T) {
	a, c := withoutTieBreak(), config(3)
	names := scenario.Names{Members: 3}
	whole := run(t, a, c)
	for k := range len(whole.Trace) + 1 {
		steps, err := names.Parse(strings.NewReader(strings.Join(whole.Trace[:k], "\n")))
		if err != nil {
			t.Fatal(err)
		}
		c.Prefix = steps
		v := run(t, a, c)
		if v.Verdict != check.Violated || len(v.Trace) != len(whole.Trace) || len(v.Run.Steps) != len(v.Trace) {
			t.Errorf("after %d steps: %s with %d steps, want %d", k, v.Verdict, len(v.Trace), len(whole.Trace))
		}
	}
}

// The line of an idempotent message does not say whether it may arrive again, so
// a prefix with one goes on from both states.
func TestPrefixWithIdempotent(t *testing.T) {
	step := func(p *toy, ev protocol.Event[uint8], out *protocol.Out[uint8]) {
		switch ev.Kind {
		case protocol.Try:
			out.Broadcast(1)
			out.Crit(0)
		case protocol.Exit:
			out.Rem()
		case protocol.Receive:
			if p.r[0]++; p.r[0] == 3 {
				panic("three times")
			}
		}
	}
	a, c := algorithm(peers, step), config(2)
	a.Idempotent = func(uint8) bool { return true }
	c.Entries = []int{1, 0}
	trace := []string{"try p1", "deliver p1 p2 M(1)", "deliver p1 p2 M(1)", "deliver p1 p2 M(1)"}
	wants(t, run(t, a, c), check.Violated, check.Model, trace...)
	steps, err := scenario.Names{Members: 2}.Parse(strings.NewReader(strings.Join(trace[:2], "\n")))
	if err != nil {
		t.Fatal(err)
	}
	c.Prefix = steps
	wants(t, run(t, a, c), check.Violated, check.Model, trace...)
	c.Prefix = append(steps, steps[1], steps[1])
	wants(t, run(t, a, c), check.Violated, check.Model, trace...)
}

// A spaced loss, of memory or of a lease, waits until the one before it is made
// up for.
func TestSpaced(t *testing.T) {
	// Register 0 is the life of a server, or the latest that a client heard of;
	// register 1 of a client whether a lease of its lapsed, which it never makes up.
	a, c := algorithm(clients, func(p *toy, ev protocol.Event[uint8], _ *protocol.Out[uint8]) {
		switch {
		case ev.Kind == protocol.Start && p.server(), ev.Kind == protocol.Restore:
			p.r[0] = max(p.r[0], ev.Arg)
		case ev.Kind == protocol.Suspect && !p.server():
			p.r[1] = 1
		}
	}), config(1)
	a.Unsettled = func(procs []protocol.Stateful) int {
		return int(toyIn(procs[0]).r[0] - toyIn(procs[1]).r[0] + toyIn(procs[1]).r[1])
	}
	a.Invariants = []protocol.Invariant{{Name: "toy/both", Err: func(v *protocol.View) error {
		if toyIn(v.Procs[0]).r[0] == 2 && toyIn(v.Procs[1]).r[1] == 1 {
			return protocol.ErrShort
		}
		return nil
	}}}
	c.Clients, c.Entries, c.Amnesia, c.Suspect, c.Properties = 1, []int{0}, 1, 1, []string{"toy/both"}
	for spaced, steps := range map[int]int{0: 2, 1: 3, 2: 2} {
		c.Spaced = spaced
		v := run(t, a, c)
		if v.Verdict != check.Violated || len(v.Trace) != steps {
			t.Errorf("spaced=%d: %s, %v, want violated after %d steps", spaced, v.Verdict, v.Trace, steps)
		}
		if spaced == 1 {
			wants(t, v, check.Violated, "toy/both", "amnesia s1", "restore c1 s1", "lapse c1 s1")
		}
	}
}

// Who is inside stays, unless it is ejected; and to wait for it is no deadlock.
func TestStay(t *testing.T) {
	step := func(p *toy, ev protocol.Event[uint8], out *protocol.Out[uint8]) {
		switch {
		case ev.Kind == protocol.Try && p.id == 1:
			out.Crit(0)
		case ev.Kind == protocol.Suspect && !p.server():
			out.Ejected()
		case ev.Kind == protocol.Exit:
			p.r[0] = 1
			out.Rem()
		}
	}
	a, c := algorithm(clients, step), config(1)
	a.Invariants = []protocol.Invariant{{Name: "toy/exits", Err: func(v *protocol.View) error {
		if toyIn(v.Procs[1]).r[0] == 1 {
			return protocol.ErrShort
		}
		return nil
	}}}
	c.Clients, c.Properties = 1, []string{"toy/exits"}
	wants(t, run(t, a, c), check.Violated, "toy/exits", "try c1", "exit c1")
	c.Stay = true
	wants(t, run(t, a, c), check.Holds, "")
	c.Suspect, c.Entries = 1, []int{1}
	wants(t, run(t, a, c), check.Violated, "toy/exits", "try c1", "lapse c1 s1", "exit c1")

	// c2 waits for ever: a deadlock, unless c1 is inside.
	c.Clients, c.Suspect, c.Properties, c.Entries = 2, 0, []string{check.Deadlock}, []int{1, 1}
	wants(t, run(t, a, c), check.Violated, check.Deadlock, "try c2")
	c.Prefix = []scenario.Step{{Verb: scenario.Try, Procs: []protocol.ID{1}}}
	wants(t, run(t, a, c), check.Holds, "")
	c.Stay = false
	wants(t, run(t, a, c), check.Violated, check.Deadlock, "try c1", "exit c1", "try c2")
}

// Kept falls when somebody is ejected, and when losses stay; "all" leaves it out.
func TestKept(t *testing.T) {
	step := func(p *toy, ev protocol.Event[uint8], out *protocol.Out[uint8]) {
		switch {
		case ev.Kind == protocol.Try:
			out.Crit(0)
		case ev.Kind == protocol.Suspect && !p.server() && p.r[0] == 0:
			p.r[0] = 1
			out.Ejected()
		case ev.Kind == protocol.Exit:
			out.Rem()
		}
	}
	a, c := algorithm(clients, step), config(1)
	c.Clients, c.Suspect = 1, 1
	c.Prefix = []scenario.Step{{Verb: scenario.Try, Procs: []protocol.ID{1}}}
	c.Stay = true
	for _, all := range [][]string{nil, {"all"}} {
		c.Properties = all
		wants(t, run(t, a, c), check.Holds, check.Exclusion)
	}
	for _, kept := range [][]string{{check.Kept}, {"all", check.Kept}} {
		c.Properties = kept
		wants(t, run(t, a, c), check.Violated, check.Kept, "try c1", "lapse c1 s1")
	}
	c.Suspect = 0
	wants(t, run(t, a, c), check.Holds, "")
	a.Unsettled = func(procs []protocol.Stateful) int { return 1 }
	wants(t, run(t, a, c), check.Violated, check.Kept, "try c1")
}
