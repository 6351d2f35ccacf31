package sim_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/history"
	"github.com/poundlock/poundlock/verify/scenario"
	"github.com/poundlock/poundlock/verify/sim"
)

// An announcer is a process of an election without messages: it names the highest id that
// it does not suspect. The leader of epoch e is e mod n, so that epochs of different leaders
// differ.
type announcer struct {
	toy
	n, suspected  uint64
	leader, epoch uint64 // the last ones, plus 1
	deaf, reuses  bool   // two mistakes
}

func (p *announcer) Step(ev protocol.Event[note], out *protocol.Out[note]) {
	switch {
	case ev.Kind == protocol.Suspect:
		p.suspected |= 1 << ev.From
	case ev.Kind == protocol.Restore && !p.deaf:
		p.suspected &^= 1 << ev.From
	}
	top := uint64(p.id)
	for j := range p.n {
		if p.suspected>>j&1 == 0 {
			top = max(top, j)
		}
	}
	if p.leader == top+1 {
		return
	}
	next := p.epoch/p.n*p.n + top
	if next < p.epoch {
		next += p.n
	}
	if p.leader = top + 1; p.reuses {
		next = p.epoch
	}
	p.epoch = next + 1
	out.Leader(protocol.ID(top), next)
}

// Random crashes leave one member, and a majority to an algorithm that needs one.
func TestCrashesLeaveMajority(t *testing.T) {
	for _, n := range []int{1, 2, 3, 4, 5} {
		for needs, want := range map[bool]int{false: n - 1, true: (n - 1) / 2} {
			a := toys(protocol.Members, grabber(noToken))
			a.Majority = needs
			r := mustRun(t, a, sim.Config{
				Config: protocol.Config{N: n}, Entries: []int{1}, Think: sim.Constant(time.Second), Hold: sim.Constant(0),
				CrashEvery: time.Millisecond,
			})
			if r.Crashes != want {
				t.Errorf("n=%d, majority %v: %d crashes, want %d", n, needs, r.Crashes, want)
			}
		}
	}
}

// announcers is an election.
func announcers(detector protocol.Detector, change func(*announcer)) protocol.Algorithm[note] {
	a := toys(protocol.Nobody, nil)
	a.Family, a.Detector, a.Tolerates = protocol.Election, detector, protocol.Crash|protocol.Recovery
	a.New = func(id protocol.ID, c protocol.Config) protocol.Process[note] {
		p := &announcer{toy: toy{id: id}, n: uint64(c.N)}
		if change != nil {
			change(p)
		}
		return p
	}
	return a
}

func electing(n int) sim.Config { return sim.Config{Config: protocol.Config{N: n}} }

// said lists who named whom, in the order of time.
func said(r sim.Result) (list []string) {
	for _, l := range r.Leaders {
		list = append(list, time.Duration(l.AtNS).String()+" "+l.Process+">"+l.Leader)
	}
	return list
}

// faultsOf3 are the lines of a scenario of at most three members without clients.
func faultsOf3(t *testing.T, lines string) []scenario.Step {
	t.Helper()
	steps, err := scenario.Names{Members: 3}.Parse(strings.NewReader(lines))
	if err != nil {
		t.Fatal(err)
	}
	return steps
}

func TestElection(t *testing.T) {
	for _, c := range []struct {
		what, faults string
		detect       time.Duration
		until        time.Duration
		change       func(*announcer)
		want         string // who named whom, after the start
		violates     string
	}{
		{"crash and recovery", "at 5ms crash p3\nat 40ms recover p3", 0, 0, nil, "15ms p1>p2, 15ms p2>p2, 40ms p3>p3, 41ms p1>p3, 41ms p2>p3", ""},
		{"it is back before anybody notices", "at 5ms crash p3\nat 9ms recover p3", 0, 0, nil, "9ms p3>p3", ""},
		{"one alone notices", "at 5ms crash p3\nat 7ms suspect p1 p3", sim.Silent, 0, nil, "7ms p1>p2", history.Agreement},
		{"an early suspicion", "at 5ms crash p3\nat 7ms suspect p1 p3", 0, 0, nil, "7ms p1>p2, 15ms p2>p2", ""},
		{"a false suspicion", "at 5ms suspect p2 p3", 0, 0, nil, "5ms p2>p2, 15ms p2>p3", ""},
		{"one that a line ends", "at 5ms suspect p2 p3\nat 8ms restore p2 p3", sim.Silent, 0, nil, "5ms p2>p2, 8ms p2>p3", ""},
		{"the end is not heard", "at 5ms suspect p2 p3", 0, 0, func(p *announcer) { p.deaf = true }, "5ms p2>p2", history.Agreement},
		{"a partition", "at 5ms partition p3 for 30ms", 0, 0, nil, "15ms p1>p2, 15ms p2>p2, 36ms p1>p3, 36ms p2>p3", ""},
		{"one leader a side", "at 5ms partition p3 for 30ms", 0, 20 * time.Millisecond, nil, "15ms p1>p2, 15ms p2>p2", ""},
		{"a side of its own", "at 5ms partition p1 for 30ms", 0, 20 * time.Millisecond, nil, "15ms p1>p1", ""},
		{"a short one", "at 5ms partition p3 for 9ms", 0, 0, nil, "", ""},
		{"a pause", "at 5ms pause p3 for 30ms", 0, 0, nil, "15ms p1>p2, 15ms p2>p2, 36ms p1>p3, 36ms p2>p3", ""},
		{
			"epochs used again", "at 5ms suspect p2 p3\nat 20ms crash p3\nat 40ms crash p2", 0, 0, func(p *announcer) { p.reuses = true },
			"5ms p2>p2, 15ms p2>p3, 30ms p1>p2, 30ms p2>p2, 50ms p1>p1", history.Epochs,
		},
	} {
		config := electing(3)
		config.Faults, config.Detect, config.Until = faultsOf3(t, c.faults), c.detect, c.until
		r := mustRun(t, announcers(protocol.UnreliableDetector, c.change), config)
		got := said(r)
		if len(got) < 3 || !slices.Equal(got[:3], []string{"0s p1>p3", "0s p2>p3", "0s p3>p3"}) {
			t.Errorf("%s: it begins with %v", c.what, got)
			continue
		}
		if now := strings.Join(got[3:], ", "); now != c.want {
			t.Errorf("%s: %s, want %s", c.what, now, c.want)
		}
		if c.violates == "" && r.ViolationCount > 0 || c.violates != "" && r.ViolationsOf[c.violates] == 0 {
			t.Errorf("%s: %v, want %q", c.what, r.Violations, c.violates)
		}
		if r.LeadersNamed != len(r.Leaders) || r.Epochs == 0 {
			t.Errorf("%s: %d leaders named, %d listed, %d epochs", c.what, r.LeadersNamed, len(r.Leaders), r.Epochs)
		}
		if _, err := json.Marshal(r); err != nil {
			t.Errorf("%s: %v", c.what, err)
		}
	}
}

// Random crashes and recoveries come to an end, and everybody agrees.
func TestElectionAtRandom(t *testing.T) {
	for seed := range uint64(20) {
		c := electing(5)
		c.Seed, c.CrashEvery, c.RecoverEvery, c.PartitionEvery = seed, 70*time.Millisecond, 50*time.Millisecond, 90*time.Millisecond
		c.FaultsUntil = 2 * time.Second
		r := mustRun(t, announcers(protocol.UnreliableDetector, nil), c)
		if r.ViolationCount > 0 || r.Crashes < 20 || r.Recoveries < 20 || r.LeadersNamed < 50 {
			t.Errorf("seed %d: %v; %d crashes, %d recoveries, %d leaders named", seed, r.Violations, r.Crashes, r.Recoveries, r.LeadersNamed)
		}
	}
}

// A heir is one of two processes that hand a token to each other. Whoever hears that the
// other one crashed has it.
type heir struct {
	toy
	has, wants, inside, owes bool
	deaf                     bool // a mistake
}

func (p *heir) Step(ev protocol.Event[note], out *protocol.Out[note]) {
	const ask, give = 1, 2
	switch other := 1 - p.id; {
	case ev.Kind == protocol.Start:
		p.has = p.id == 0
	case ev.Kind == protocol.Try:
		if p.wants = true; !p.has {
			out.Send(other, note{ask})
		}
	case ev.Kind == protocol.Exit:
		p.inside = false
		out.Rem()
	case ev.Kind == protocol.Receive && ev.Msg.Number == ask:
		p.owes = true
	case ev.Kind == protocol.Receive, ev.Kind == protocol.Suspect && !p.deaf:
		p.has = true
	}
	if p.has && p.wants {
		p.wants, p.inside = false, true
		out.Crit(0)
	}
	if p.has && p.owes && !p.inside {
		p.has, p.owes = false, false
		out.Send(1-p.id, note{give})
	}
}

// Members that are users crash; who is left takes over, unless it does not listen.
func TestCrashOfMember(t *testing.T) {
	for _, deaf := range []bool{false, true} {
		a := toys(protocol.Members, nil)
		a.Detector, a.Tolerates = protocol.PerfectDetector, protocol.Crash
		a.New = func(id protocol.ID, _ protocol.Config) protocol.Process[note] {
			return &heir{toy: toy{id: id}, deaf: deaf}
		}
		c := electing(2)
		c.Entries, c.Think, c.Hold = []int{50}, sim.Constant(3*time.Millisecond), sim.Constant(2*time.Millisecond)
		c.Faults = faultsOf3(t, "at 41ms crash p1")
		r := mustRun(t, a, c)
		if deaf {
			if r.ViolationsOf["stuck"] != 1 {
				t.Errorf("deaf: %v, want it stuck", r.Violations)
			}
			continue
		}
		if r.ViolationCount > 0 || r.Crashes != 1 || r.Entries < 51 || r.Entries > 99 {
			t.Errorf("%v: %d crashes, %d entries", r.Violations, r.Crashes, r.Entries)
		}
	}
}

func TestElectionConfig(t *testing.T) {
	unreliable, perfect := announcers(protocol.UnreliableDetector, nil), announcers(protocol.PerfectDetector, nil)
	for _, c := range []struct {
		a      protocol.Algorithm[note]
		want   string
		change func(*sim.Config)
	}{
		{unreliable, "entries [3]: it is an election", func(c *sim.Config) { c.Entries = []int{3} }},
		{unreliable, "2 clients: it is an election", func(c *sim.Config) { c.Clients = 2 }},
		{unreliable, "random faults without end", func(c *sim.Config) { c.CrashEvery = time.Second }},
		{unreliable, "recover-every: nobody crashes", func(c *sim.Config) { c.RecoverEvery, c.Until = time.Second, time.Minute }},
		{unreliable, "want 2 processes, all different", func(c *sim.Config) { c.Faults = faultsOf3(t, "suspect p1 p1") }},
		{unreliable, "detect -2ns", func(c *sim.Config) { c.Detect = -2 }},
		{perfect, "suspects nobody that has not crashed", func(c *sim.Config) { c.Faults = faultsOf3(t, "suspect p1 p2") }},
		{toys(protocol.Members, grabber(noToken)), "detect: its members suspect no members", func(c *sim.Config) { c.Detect = 1 }},
		{toys(protocol.Members, grabber(noToken)), "no member that comes back", func(c *sim.Config) { c.Faults = faultsOf3(t, "recover p1") }},
		{toys(protocol.Members, grabber(noToken)), "suspect no members", func(c *sim.Config) { c.Faults = faultsOf3(t, "suspect p1 p2") }},
		{toys(protocol.Clients, grabber(noToken)), "faults are amnesia, drain, crash, pause, partition, cut", func(c *sim.Config) { c.Faults = faultsOf(t, "suspect s1 c1") }},
	} {
		config := electing(3)
		c.change(&config)
		if _, err := sim.Run(c.a, config); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}
