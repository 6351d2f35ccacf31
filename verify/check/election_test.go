package check_test

import (
	"strings"
	"testing"

	"github.com/poundlock/poundlock/algo/algotest"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/scenario"
)

// electors are processes of an election whose detector may be wrong.
var electors = protocol.Info{
	Users: protocol.Nobody, Family: protocol.Election, Detector: protocol.UnreliableDetector,
	Tolerates: protocol.Crash | protocol.Recovery,
}

// The registers of a process that announces.
const (
	suspected = iota // a set
	epoch            // the last one that it named, plus 1
	leader           // whom it named, plus 1
)

// announce is an election without messages: everybody names the highest id that it does not
// suspect. The leader of epoch e is e mod n, so that epochs of different leaders differ.
func announce(p *toy, ev protocol.Event[uint8], out *protocol.Out[uint8]) {
	note(p, ev)
	n := uint64(p.n)
	if top := highest(p); p.r[leader] != top+1 {
		next := p.r[epoch]/n*n + top
		if next < p.r[epoch] {
			next += n
		}
		p.r[leader], p.r[epoch] = top+1, next+1
		out.Leader(protocol.ID(top), next)
	}
}

// note keeps whom p suspects.
func note(p *toy, ev protocol.Event[uint8]) {
	switch ev.Kind {
	case protocol.Suspect:
		p.r[suspected] |= 1 << ev.From
	case protocol.Restore:
		p.r[suspected] &^= 1 << ev.From
	}
}

// highest is the highest id that p does not suspect.
func highest(p *toy) uint64 {
	top := uint64(p.id)
	for j := range uint64(p.n) {
		if p.r[suspected]>>j&1 == 0 {
			top = max(top, j)
		}
	}
	return top
}

// ignoring is announce without Restore.
func ignoring(p *toy, ev protocol.Event[uint8], out *protocol.Out[uint8]) {
	if ev.Kind != protocol.Restore {
		announce(p, ev, out)
	}
}

// reusing counts epochs by itself: two processes give one number to different leaders.
func reusing(p *toy, ev protocol.Event[uint8], out *protocol.Out[uint8]) {
	note(p, ev)
	if top := highest(p); p.r[leader] != top+1 {
		p.r[leader] = top + 1
		p.r[epoch]++
		out.Leader(protocol.ID(top), p.r[epoch])
	}
}

// sinking takes the id of the leader for the epoch.
func sinking(p *toy, ev protocol.Event[uint8], out *protocol.Out[uint8]) {
	note(p, ev)
	if top := highest(p); p.r[leader] != top+1 {
		p.r[leader] = top + 1
		out.Leader(protocol.ID(top), top)
	}
}

// restless is announce; a suspicion sends a message around for ever.
func restless(p *toy, ev protocol.Event[uint8], out *protocol.Out[uint8]) {
	before := p.r[suspected]
	announce(p, ev, out)
	if ev.Kind == protocol.Receive || p.r[suspected] > before && p.r[3] == 0 {
		p.r[3] = 1
		to := (p.id + 1) % protocol.ID(p.n)
		if p.r[suspected]>>to&1 == 1 {
			to = (to + 1) % protocol.ID(p.n)
		}
		if to != p.id {
			out.Send(to, 1)
		}
	}
}

// talking tells a user something, which an election has not.
func talking(_ *toy, ev protocol.Event[uint8], out *protocol.Out[uint8]) {
	switch ev.Kind {
	case protocol.Start:
		out.Leader(1, 0)
	case protocol.Suspect:
		out.Crit(0)
	}
}

func TestElections(t *testing.T) {
	for _, c := range []struct {
		what                    string
		do                      program
		n                       int
		crash, recover, suspect int
		properties              string
		want                    check.Result
		property                string
		steps                   int
	}{
		{"no fault", announce, 3, 0, 0, 0, "all", check.Holds, "", 0},
		{"two crashes", announce, 3, 2, 0, 0, "all one-leader", check.Holds, "", 0},
		{"a crash and a recovery", announce, 3, 1, 1, 0, "all", check.Holds, "", 0},
		{"two crashes, two recoveries and a mistake", announce, 3, 2, 2, 1, "all", check.Holds, "", 0},
		{"a mistake makes two leaders for a while", announce, 3, 0, 0, 1, "one-leader", check.Violated, check.OneLeader, 1},
		{"epochs reused after mistakes", reusing, 3, 0, 0, 3, "", check.Violated, check.Epochs, 3},
		{"epochs that go down", sinking, 3, 1, 0, 0, "", check.Violated, check.Epochs, 2},
		{"the end of a mistake ignored", ignoring, 3, 0, 0, 1, "", check.Violated, check.Agreement, 2},
		{"a recovery ignored", ignoring, 3, 1, 1, 0, "", check.Violated, check.Agreement, 4},
		{"a message goes around for ever", restless, 3, 1, 0, 0, "termination", check.Violated, check.Termination, 7},
		{"a user of an election", talking, 2, 1, 0, 0, "", check.Violated, check.Model, 2},
	} {
		config := config(c.n)
		config.Crash, config.Recover, config.Suspect = c.crash, c.recover, c.suspect
		config.Properties = strings.Fields(c.properties)
		for _, config.FIFO = range []bool{false, true} {
			a := algorithm(electors, c.do)
			v := run(t, a, config)
			if v.Verdict != c.want || c.want == check.Violated && (v.Property != c.property || len(v.Trace) != c.steps) {
				t.Errorf("%s: %s %s after %d steps, want %s %s after %d\n%s\n%s\n%s", c.what, v.Verdict, v.Property,
					len(v.Trace), c.want, c.property, c.steps, v.Bounds, strings.Join(v.Trace, "\n"), v.Reason)
			}
			if v.Property == check.Termination && v.Verdict == check.Violated {
				if r := algotest.Repeat(t, a, config, v); r.Property != check.Termination {
					t.Errorf("%s: taken again: %+v", c.what, r)
				}
			}
		}
	}
}

// ping asks the other process, and names itself if no answer comes within its time, or if the
// other one crashes later.
func ping(p *toy, ev protocol.Event[uint8], out *protocol.Out[uint8]) {
	const asks, answers, tick = 1, 2, 7
	const decided = 0 // a register
	switch {
	case ev.Kind == protocol.Start && p.id == 0:
		out.Send(1, asks)
		out.SetTimer(tick, 1, 0)
	case ev.Kind == protocol.Start:
		out.Leader(p.id, uint64(p.id))
	case ev.Kind == protocol.Receive && ev.Msg == asks:
		out.Send(0, answers)
	case ev.Kind == protocol.Receive && p.r[decided] == 0:
		out.StopTimer(tick)
		p.r[decided] = 1
		out.Leader(1, 1)
	case ev.Kind == protocol.Timeout, ev.Kind == protocol.Suspect && p.r[decided] == 1:
		p.r[decided] = 2
		out.Leader(0, 2)
	}
}

// Time-outs that exceed a round trip are right about who crashed; others are not.
func TestBoundedTimeouts(t *testing.T) {
	i := electors
	i.Synchronous = true
	for _, timers := range []check.Timers{check.AnyMoment, check.Synchronous, ""} {
		c := config(2)
		c.Crash, c.Timers = 1, timers
		v := run(t, algorithm(i, ping), c)
		want, says := check.Holds, "time-outs exceed a round trip"
		if timers == check.AnyMoment {
			want, says = check.Violated, "at any moment"
		}
		if v.Verdict != want || !strings.Contains(v.Bounds, says) {
			t.Errorf("timers %q: %s %s, want %s\n%s\n%s", timers, v.Verdict, v.Property, want, v.Bounds, strings.Join(v.Trace, "\n"))
		}
	}
}

// nag ticks and tells the next process, which is patient until its own time-out; then it
// says that it is enough.
func nag(p *toy, ev protocol.Event[uint8], out *protocol.Out[uint8]) {
	const tick, tell, enough = 1, 1, 2
	switch {
	case ev.Kind == protocol.Start:
		out.Leader(1, 1)
		out.SetTimer(tick, 1, 0)
	case ev.Kind == protocol.Timeout && p.id == 0:
		out.Send(1, tell)
		out.SetTimer(tick, 1, 0)
	case ev.Kind == protocol.Timeout:
		out.Send(0, enough)
	case ev.Kind == protocol.Receive && ev.Msg == enough:
		out.StopTimer(tick)
	}
}

// A bounded time-out is possible again and again, not all the time, and a fair run has it all
// the same.
func TestBoundedTimeoutsAreFair(t *testing.T) {
	c := config(2)
	c.Timers, c.Properties, c.FIFO = check.Synchronous, []string{"all"}, true
	if v := run(t, algorithm(electors, nag), c); v.Verdict != check.Holds {
		t.Errorf("%s %s: %s\n%s", v.Verdict, v.Property, v.Reason, strings.Join(v.Trace, "\n"))
	}
}

// What an election does not have is refused by name.
func TestElectionsRefuse(t *testing.T) {
	for want, change := range map[string]func(*check.Config){
		`unknown property "exclusion"`:              func(c *check.Config) { c.Properties = []string{check.Exclusion} },
		`unknown property "starvation"`:             func(c *check.Config) { c.Properties = []string{check.Starvation} },
		"entries [2]: it is an election":            func(c *check.Config) { c.Entries = []int{2} },
		"1 clients: it is an election":              func(c *check.Config) { c.Clients = 1 },
		"recover=1: nobody comes back":              func(c *check.Config) { c.Recover = 1 },
		"p1 cannot be down":                         func(c *check.Config) { c.Down = []protocol.ID{0} },
		"amnesia=1: its model has no such step":     func(c *check.Config) { c.Amnesia = 1 },
		"want any, never or synchronous":            func(c *check.Config) { c.Timers = "sometimes" },
		"cancel=1: its model has no such step":      func(c *check.Config) { c.Cancel = 1 },
		"not possible here: there is no process":    func(c *check.Config) { c.Prefix = steps(t, "recover p1") },
		"possible are: suspect p1 p2":               func(c *check.Config) { c.Prefix = steps(t, "crash p2\nsuspect p2 p1"); c.Crash = 1 },
		"no restore is possible here":               func(c *check.Config) { c.Prefix = steps(t, "restore p1 p2") },
		"unknown property \"one leader\": want all": func(c *check.Config) { c.Properties = []string{"one leader"} },
	} {
		c := config(2)
		change(&c)
		_, err := check.Run(algorithm(electors, announce), c)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// steps are the lines of a scenario of two processes.
func steps(t *testing.T, lines string) []scenario.Step {
	t.Helper()
	list, err := scenario.Names{Members: 2}.Parse(strings.NewReader(lines))
	if err != nil {
		t.Fatal(err)
	}
	return list
}
