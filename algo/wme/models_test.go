package wme

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/poundlock/poundlock/internal/lane"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/history"
)

// A checked is one configuration of the checker, and how many states it has with each form.
type checked struct {
	name   string
	c      check.Config
	states [2]int64
}

func small(n int, entries ...int) check.Config {
	return check.Config{
		Config: protocol.Config{N: n}, Entries: entries, Operations: []int{1}, Properties: []string{"all"}, MaxMemory: 1 << 30,
	}
}

func with(c check.Config, suspect, crash int) check.Config {
	c.Suspect, c.Crash = suspect, crash
	return c
}

// models are those of every run of the tests, and those that take minutes.
func models() (quick, long []checked) {
	two := small(3, 1, 0, 0)
	two.Operations = []int{2}
	return []checked{
		{"two users, three sections", with(small(2, 2, 1), 1, 0), [2]int64{27168, 22622}},
		{"three processes", small(3, 1, 0, 0), [2]int64{66, 30}},
	}, []checked{
		{"two users, three sections, two suspicions", with(small(2, 2, 1), 2, 0), [2]int64{1190798, 1042160}},
		{"three processes, a suspicion", with(small(3, 1, 0, 0), 1, 0), [2]int64{114711, 58665}},
		{"three processes, two operations", with(two, 1, 0), [2]int64{839102, 200743}},
	}
}

// In small models, with messages in any order, decisions of any proposal at any time, and a failure detector
// that is wrong, all properties hold.
func TestModels(t *testing.T) {
	quick, long := models()
	explore(t, quick, long)
}

func explore(t *testing.T, quick, long []checked) {
	t.Helper()
	list := quick
	if lane.Long.Runs() {
		list = append(list, long...)
	} else {
		fmt.Printf("SHORTENED: %d of %d models; TEST_LANE=long takes all\n", len(quick), len(quick)+len(long))
	}
	for _, m := range list {
		for i, a := range forms {
			v, err := check.Run(a, m.c)
			if err != nil {
				t.Fatal(err)
			}
			if v.Verdict != check.Holds {
				t.Errorf("%s, %s: %s of %s: %s\n%s\n%s", a.Name, m.name, v.Verdict, v.Property, v.Reason, v.Bounds, strings.Join(v.Trace, "\n"))
			} else if v.States != m.states[i] {
				t.Errorf("%s, %s: %d states, want %d", a.Name, m.name, v.States, m.states[i])
			}
		}
	}
}

// A mangled process is one with a step of its own.
type mangled struct {
	*Process
	step func(p *Process, ev protocol.Event[Message], out *protocol.Out[Message])
}

func (m *mangled) Unwrap() any { return m.Process }

func (m *mangled) Step(ev protocol.Event[Message], out *protocol.Out[Message]) {
	m.step(m.Process, ev, out)
}

// mangle is a form whose processes have that step.
func mangle(a protocol.Algorithm[Message], step func(p *Process, ev protocol.Event[Message], out *protocol.Out[Message])) protocol.Algorithm[Message] {
	honest := a.New
	a.New = func(id protocol.ID, c protocol.Config) protocol.Process[Message] {
		return &mangled{honest(id, c).(*Process), step}
	}
	a.Moot = nil // it is of a Process, and so are these
	return a
}

// The checker finds what is wrong with algorithms close to these.
func TestMangled(t *testing.T) {
	for _, m := range []struct {
		name  string
		c     check.Config
		found string
		forms []protocol.Algorithm[Message]
		step  func(p *Process, ev protocol.Event[Message], out *protocol.Out[Message])
	}{
		{
			"what is logged counts as executed when an epoch ends", with(small(2, 1, 0), 1, 0), history.Failed, forms,
			func(p *Process, ev protocol.Event[Message], out *protocol.Out[Message]) {
				if ev.Kind == protocol.Decide {
					p.executed = p.top
				}
				p.Step(ev, out)
			},
		},
		{
			"nobody asks anew in a new epoch", with(small(2, 1, 1), 1, 0), check.Deadlock, forms,
			func(p *Process, ev protocol.Event[Message], out *protocol.Out[Message]) {
				p.Step(ev, out)
				if ev.Kind == protocol.Decide {
					out.Effects = slices.DeleteFunc(out.Effects, func(e protocol.Effect[Message]) bool {
						return e.Do == protocol.Broadcast && e.Msg.Kind == Request
					})
				}
			},
		},
		{
			"one vote is enough", with(small(3, 1, 0, 0), 1, 0), history.Failed, forms[:1],
			func(p *Process, ev protocol.Event[Message], out *protocol.Out[Message]) {
				p.Step(ev, out)
				if p.block && !p.proposed {
					p.proposed = true
					out.Propose(p.curEp, p.proposal())
				}
			},
		},
		{
			"whoever issues an operation is ejected", small(2, 1, 0), history.Groundless, forms,
			func(p *Process, ev protocol.Event[Message], out *protocol.Out[Message]) {
				if ev.Kind == protocol.Issue {
					p.eject(out)
					return
				}
				p.Step(ev, out)
			},
		},
		{
			"whoever issues an operation after the first epoch is ejected", with(small(2, 1, 0), 1, 0), check.OperationProgress, forms,
			func(p *Process, ev protocol.Event[Message], out *protocol.Out[Message]) {
				if ev.Kind == protocol.Issue && p.curEp > 0 && !p.block {
					p.eject(out)
					return
				}
				p.Step(ev, out)
			},
		},
		{
			"a copy goes back", with(small(2, 1, 0), 1, 0), history.OneCopy, forms,
			func(p *Process, ev protocol.Event[Message], out *protocol.Out[Message]) {
				if p.Step(ev, out); ev.Kind == protocol.Decide && p.executed > 0 {
					out.Install("0")
				}
			},
		},
	} {
		for _, a := range m.forms {
			a = mangle(a, m.step)
			if m.c.Properties = nil; m.found == check.OperationProgress { // no other infinite runs
				m.c.Properties = []string{m.found}
			}
			v, err := check.Run(a, m.c)
			if err != nil {
				t.Fatal(err)
			}
			if v.Verdict != check.Violated || v.Property != m.found {
				t.Errorf("%s, %s: %s of %s (%s), want %s\n%s", a.Name, m.name, v.Verdict, v.Property, v.Reason, m.found,
					strings.Join(v.Trace, "\n"))
			}
		}
	}
}

// Forgetting messages that can do nothing any more changes no verdict.
func TestMoot(t *testing.T) {
	for _, a := range forms {
		c := with(small(2, 1, 1), 1, 0)
		forgets, err := check.Run(a, c)
		if err != nil {
			t.Fatal(err)
		}
		a.Moot = nil
		keeps, err := check.Run(a, c)
		if err != nil {
			t.Fatal(err)
		}
		if forgets.Verdict != check.Holds || keeps.Verdict != check.Holds || forgets.States >= keeps.States {
			t.Errorf("%s: %s with %d states, and with all messages %s with %d",
				a.Name, forgets.Verdict, forgets.States, keeps.Verdict, keeps.States)
		}
	}
}
