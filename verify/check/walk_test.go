package check_test

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/poundlock/poundlock/algo/ricartagrawala"
	"github.com/poundlock/poundlock/algo/sigma"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/scenario"
)

// walked takes a run, and returns the walk at its end.
func walked[M any](t *testing.T, a protocol.Algorithm[M], c check.Config, lines []string) *check.Walk {
	t.Helper()
	w, err := check.NewWalk(a, c)
	if err != nil {
		t.Fatal(err)
	}
	steps, err := w.Names().Parse(strings.NewReader(strings.Join(lines, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range steps {
		if property, err := w.Violation(); err != nil {
			t.Fatalf("%s before the end: %v", property, err)
		}
		if _, err := w.Take(s); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// A trace is a run of the algorithm itself, though the search moves counters: each
// step is possible, and only the last one violates the property.
func TestTraceIsARun(t *testing.T) {
	late := func(entries int) check.Config { // exits and timestamps come before the violation
		c := config(2)
		c.Entries = []int{entries, 1}
		return c
	}
	broken := ricartagrawala.Algorithm
	tries := func(v *protocol.View) error {
		for _, m := range protocol.InFlight[ricartagrawala.Message](v) {
			if m.Kind == ricartagrawala.Request && v.Users[0] == protocol.InTry && v.Users[1] == protocol.InCrit {
				return errors.New("#0 tries")
			}
		}
		return nil
	}
	broken.Invariants = []protocol.Invariant{{Name: "tries", Err: tries}}
	for name, test := range map[string]struct {
		verdict check.Verdict
		walk    func(lines []string) *check.Walk
	}{
		"tie break": {
			run(t, withoutTieBreak(), late(3)),
			func(lines []string) *check.Walk { return walked(t, withoutTieBreak(), late(3), lines) },
		},
		"invariant": {
			run(t, broken, late(3)),
			func(lines []string) *check.Walk { return walked(t, broken, late(3), lines) },
		},
	} {
		v := test.verdict
		if v.Verdict != check.Violated || len(v.Trace) < 4 {
			t.Fatalf("%s: %s %q", name, v.Verdict, v.Trace)
		}
		w := test.walk(v.Trace)
		if property, err := w.Violation(); property != v.Property || err == nil || err.Error() != v.Reason {
			t.Errorf("%s: %s, %v at the end; the search found %s: %s", name, property, err, v.Property, v.Reason)
		}
		end := w.Run()
		if !slices.Equal(end.End, v.Run.End) || !slices.Equal(end.InFlight, v.Run.InFlight) {
			t.Errorf("%s: ends with %v %v, the search with %v %v", name, end.End, end.InFlight, v.Run.End, v.Run.InFlight)
		}
	}
}

// Two entries of one process have two timestamps, though the search moves them.
func TestTraceKeepsClocks(t *testing.T) {
	a, c := ricartagrawala.Algorithm, config(2)
	waits := func(v *protocol.View) error {
		for _, m := range protocol.InFlight[ricartagrawala.Message](v) {
			if m.Kind == ricartagrawala.Request && v.Users[0] == protocol.InRem && v.Users[1] == protocol.InTry {
				return errors.New("now")
			}
		}
		return nil
	}
	a.Invariants = []protocol.Invariant{{Name: "now", Err: waits}}
	c.Entries, c.Properties = []int{check.Unlimited}, []string{"now"}
	names := scenario.Names{Members: 2}
	var err error
	c.Prefix, err = names.Parse(strings.NewReader(`
try p1
deliver p1 p2 REQUEST(1)
deliver p2 p1 REPLY(1)
exit p1
try p1
deliver p1 p2 REQUEST(2)
deliver p2 p1 REPLY(2)
exit p1`))
	if err != nil {
		t.Fatal(err)
	}
	v := run(t, a, c)
	last := v.Run.Steps[len(v.Run.Steps)-1]
	if got := strings.Join(last.Did(), ""); v.Verdict != check.Violated || got != "p2 sends REQUEST(3) to p1" {
		t.Errorf("%s: the last step: %q", v.Verdict, got)
	}
}

// Whatever is possible can be taken, and what is not leaves the walk where it was.
func TestWalk(t *testing.T) {
	c := check.Config{
		Config: protocol.Config{N: 3}, Clients: 2, Entries: []int{2},
		Amnesia: 1, Crash: 1, Suspect: 1, Cancel: 1, Drain: 1,
	}
	w, err := check.NewWalk(sigma.Algorithm, c)
	if err != nil {
		t.Fatal(err)
	}
	first := w.Run()
	if got, want := strings.Join(first.Processes, " "), "s1 s2 s3 c1 c2"; got != want {
		t.Errorf("processes %s, want %s", got, want)
	}
	random := rand.New(rand.NewPCG(1, 1))
	verbs := map[scenario.Verb]int{}
	for range 40 {
		w.Reset()
		if states := w.Run().End; !slices.Equal(states, first.End) {
			t.Fatalf("reset to %v, want %v", states, first.End)
		}
		for range 80 {
			steps := w.Possible()
			if len(steps) == 0 {
				break
			}
			before := w.Run()
			impossible := scenario.Step{Verb: scenario.Deliver, Procs: []protocol.ID{3, 0}, Text: "NOTHING(1)", Line: 7}
			var e *check.ImpossibleError
			if _, err := w.Take(impossible); !errors.As(err, &e) || e.Step.Line != 7 ||
				!strings.Contains(err.Error(), `line 7: "deliver c1 s1 NOTHING(1)"`) {
				t.Fatalf("took what is impossible: %v", err)
			}
			if after := w.Run(); !reflect.DeepEqual(before, after) {
				t.Fatal("an impossible step changed the state")
			}
			s := steps[random.IntN(len(steps))]
			event, err := w.Take(s)
			if err != nil {
				t.Fatal(err)
			}
			if event.Line != w.Names().Format(s) || event.Verb != s.Verb {
				t.Fatalf("took %q, and the event is %+v", w.Names().Format(s), event)
			}
			verbs[s.Verb]++
			if property, err := w.Violation(); err != nil && property != check.Deadlock && property != check.Exclusion {
				t.Fatalf("%s: %v", property, err)
			}
		}
	}
	if len(verbs) != 11 {
		t.Errorf("only these steps were taken: %v", verbs)
	}
}

// What a step did is told: who enters with which token, what is lost and why.
func TestEffects(t *testing.T) {
	step := func(p *toy, ev protocol.Event[uint8], out *protocol.Out[uint8]) {
		switch {
		case ev.Kind == protocol.Try:
			out.Broadcast(1)
			out.Crit(17)
		case ev.Kind == protocol.Suspect && !p.server():
			out.Send(ev.From, 2)
			out.Ejected()
		case ev.Kind == protocol.Start && p.server() && ev.Arg == 2:
			out.Send(1, 3)
		case ev.Kind == protocol.Exit:
			out.GiveUp(protocol.NoMajority)
		}
	}
	a, c := algorithm(clients, step), config(1)
	c.Clients, c.Suspect, c.Amnesia, c.Crash = 1, 1, 1, 1
	w, err := check.NewWalk(a, c)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct{ line, did string }{
		{"try c1", "c1 sends M(1) to s1; c1 enters with token 17"},
		{"lapse c1 s1", "c1 sends M(2) to s1 (lost: no lease); c1 lost its critical section"},
		{"exit c1", "c1 is in its remainder section: no majority of the processes is in reach"},
		{"amnesia s1", "s1 sends M(3) to c1 (lost: no lease)"},
		{"crash c1", ""},
	} {
		steps, err := w.Names().Parse(strings.NewReader(x.line))
		if err != nil {
			t.Fatal(err)
		}
		event, err := w.Take(steps[0])
		if got := strings.Join(event.Did(), "; "); err != nil || got != x.did {
			t.Errorf("%s did %q, %v; want %q", x.line, got, err, x.did)
		}
	}
	states := w.Run().End
	if states[1].Section != "crashed" {
		t.Errorf("at the end %v", states)
	}
}

// A run ends with a step that must not happen, and a violation of the first state
// is one too.
func TestWalkIsOver(t *testing.T) {
	a := algorithm(peers, panicOn(func(_ *toy, ev protocol.Event[uint8]) bool { return ev.Kind == protocol.Try }))
	w := walked(t, a, config(2), []string{"try p1"})
	if property, err := w.Violation(); property != check.Model || err == nil {
		t.Errorf("%s, %v", property, err)
	}
	if _, err := w.Take(w.Possible()[0]); err == nil || !strings.Contains(err.Error(), "the run is over: model: panic: found") {
		t.Errorf("it goes on: %v", err)
	}
	w.Reset()
	if _, err := w.Violation(); err != nil {
		t.Errorf("after a reset: %v", err)
	}
	a = algorithm(peers, panicOn(func(_ *toy, ev protocol.Event[uint8]) bool { return ev.Kind == protocol.Start }))
	w = walked(t, a, config(2), nil)
	w.Reset()
	if property, err := w.Violation(); property != check.Model || err == nil || len(w.Possible()) != 0 {
		t.Errorf("%s, %v, then %v", property, err, w.Possible())
	}
}
