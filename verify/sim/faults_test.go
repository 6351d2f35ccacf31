package sim_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/poundlock/poundlock/algo/ricartagrawala"
	"github.com/poundlock/poundlock/algo/sigma"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/scenario"
	"github.com/poundlock/poundlock/verify/sim"
)

// clerk is a lock that one server, s1, hands out in the order of requests. Its
// clients send NOTE(1) to ask and NOTE(2) to leave; NOTE(3) is the grant. It
// knows no faults, and only shows what a driver makes of them.
func clerk(detector protocol.Detector) protocol.Algorithm[note] {
	var queue []protocol.ID
	serve := func(out *protocol.Out[note]) {
		if len(queue) > 0 {
			out.Send(queue[0], note{3})
		}
	}
	drop := func(id protocol.ID, out *protocol.Out[note]) {
		for i, c := range queue {
			if c == id {
				if queue = append(queue[:i], queue[i+1:]...); i == 0 {
					serve(out)
				}
				return
			}
		}
	}
	a := toys(protocol.Clients, func(id protocol.ID, ev protocol.Event[note], out *protocol.Out[note]) {
		switch {
		case ev.Kind == protocol.Try:
			out.Send(0, note{1})
		case ev.Kind == protocol.Exit:
			out.Rem()
			out.Send(0, note{2})
		case ev.Kind == protocol.Start && id == 0:
			queue = nil
		case ev.Kind == protocol.Suspect && id == 0:
			drop(ev.From, out)
		case ev.Kind == protocol.Receive && ev.Msg.Number == 1:
			if queue = append(queue, ev.From); len(queue) == 1 {
				serve(out)
			}
		case ev.Kind == protocol.Receive && ev.Msg.Number == 2:
			drop(ev.From, out)
		case ev.Kind == protocol.Receive:
			out.Crit(0)
		}
	})
	a.Detector = detector
	return a
}

// faultsOf parses lines for one server and two clients.
func faultsOf(t *testing.T, lines string) []scenario.Step {
	t.Helper()
	steps, err := scenario.Names{Members: 1, Clients: true}.Parse(strings.NewReader(lines))
	if err != nil {
		t.Fatal(err)
	}
	return steps
}

// clerkRun has c1 try at 0 and c2 at 5ms, each once.
func clerkRun(t *testing.T, d protocol.Detector, lines string) string {
	t.Helper()
	return trace(t, clerk(d), sim.Config{
		Config: protocol.Config{N: 1}, Clients: 2, Entries: []int{1}, Faults: faultsOf(t, lines),
		Think: sim.Constant(10 * time.Millisecond), Hold: sim.Constant(20 * time.Millisecond), Lease: 50 * time.Millisecond,
		Patience: 1000,
	})
}

func TestNoFault(t *testing.T) {
	same(t, clerkRun(t, protocol.NoDetector, ""), `
try c1
at 1ms deliver c1 s1 NOTE(1)
at 2ms deliver s1 c1 NOTE(3)
# at 2ms c1 crit
at 5ms try c2
at 6ms deliver c2 s1 NOTE(1)
at 22ms exit c1
# at 22ms c1 rem
at 23ms deliver c1 s1 NOTE(2)
at 24ms deliver s1 c2 NOTE(3)
# at 24ms c2 crit
at 44ms exit c2
# at 44ms c2 rem`)
}

// What happens to a paused process happens at the end of the pause, in order.
func TestPause(t *testing.T) {
	same(t, clerkRun(t, protocol.NoDetector, "at 500us pause s1 for 7ms\nat 15ms pause c1 for 20ms"), `
try c1
at 500µs pause s1 for 7ms
at 5ms try c2
at 7.5ms deliver c1 s1 NOTE(1)
at 7.5ms deliver c2 s1 NOTE(1)
at 8.5ms deliver s1 c1 NOTE(3)
# at 8.5ms c1 crit
at 15ms pause c1 for 20ms
at 35ms exit c1
# at 35ms c1 rem
at 36ms deliver c1 s1 NOTE(2)
at 37ms deliver s1 c2 NOTE(3)
# at 37ms c2 crit
at 57ms exit c2
# at 57ms c2 rem`)
}

// What a process sends during its pause leaves when the pause ends. A server that is
// told to drain hears of it even then.
func TestPausedSender(t *testing.T) {
	a := toys(protocol.Clients, func(id protocol.ID, ev protocol.Event[note], out *protocol.Out[note]) {
		grabber(noToken)(id, ev, out)
		if ev.Kind == protocol.Drain {
			out.Send(1, note{7})
		}
	})
	a.Drains = true
	same(t, trace(t, a, sim.Config{
		Config: protocol.Config{N: 1}, Clients: 1, Entries: []int{1}, Hold: sim.Constant(20 * time.Millisecond),
		Faults: faultsOf(t, "at 1ms pause s1 for 9ms\nat 2ms drain s1"),
	}), `
try c1
# c1 crit
at 1ms pause s1 for 9ms
at 2ms drain s1
at 11ms deliver s1 c1 NOTE(7)
at 20ms exit c1
# at 20ms c1 rem`)
}

func TestPartition(t *testing.T) {
	same(t, clerkRun(t, protocol.NoDetector, "at 500us partition c1 for 9500us"), `
try c1
at 500µs partition c1 for 9.5ms
at 5ms try c2
at 6ms deliver c2 s1 NOTE(1)
at 7ms deliver s1 c2 NOTE(3)
# at 7ms c2 crit
at 10ms deliver c1 s1 NOTE(1)
at 27ms exit c2
# at 27ms c2 rem
at 28ms deliver c2 s1 NOTE(2)
at 29ms deliver s1 c1 NOTE(3)
# at 29ms c1 crit
at 49ms exit c1
# at 49ms c1 rem`)
}

// A client with a new id takes over what the crashed one had left. The member
// suspects the crashed one after a delay, and whenever it hears of it again.
func TestCrash(t *testing.T) {
	same(t, trace(t, clerk(protocol.PerfectDetector), sim.Config{
		Config: protocol.Config{N: 1}, Clients: 1, Entries: []int{2},
		Faults: faultsOf(t, "at 500us partition c1 for 6500us\nat 1ms crash c1"),
		Think:  sim.Constant(10 * time.Millisecond),
	}), `
try c1
at 500µs partition c1 for 6.5ms
at 1ms crash c1
at 2ms suspect s1 c1
at 7ms deliver c1 s1 NOTE(1)
at 7ms suspect s1 c1
at 11ms try c2
at 12ms deliver c2 s1 NOTE(1)
at 13ms deliver s1 c2 NOTE(3)
# at 13ms c2 crit
at 14ms exit c2
# at 14ms c2 rem
at 15ms deliver c2 s1 NOTE(2)
at 24ms try c2
at 25ms deliver c2 s1 NOTE(1)
at 26ms deliver s1 c2 NOTE(3)
# at 26ms c2 crit
at 27ms exit c2
# at 27ms c2 rem`)
}

// Suspicions are told again after a start, leases have the new incarnation one
// delay later, and a message on its way reaches the next life.
func TestAmnesia(t *testing.T) {
	same(t, clerkRun(t, protocol.LeaseDetector, "at 500us amnesia s1\nat 15ms crash c2\nat 67ms amnesia s1"), `
restore c1 s1
restore c2 s1
try c1
at 500µs amnesia s1
at 1ms deliver c1 s1 NOTE(1)
at 1.5ms restore c1 s1
at 1.5ms restore c2 s1
at 2ms deliver s1 c1 NOTE(3)
# at 2ms c1 crit
at 5ms try c2
at 6ms deliver c2 s1 NOTE(1)
at 15ms crash c2
at 22ms exit c1
# at 22ms c1 rem
at 23ms deliver c1 s1 NOTE(2)
at 25ms restore c3 s1
at 25ms try c3
at 26ms deliver c3 s1 NOTE(1)
at 66ms suspect s1 c2
at 67ms amnesia s1
at 67ms suspect s1 c2
at 67ms deliver s1 c3 NOTE(3)
# at 67ms c3 crit
at 68ms restore c3 s1
at 87ms exit c3
# at 87ms c3 rem`)
}

// A separation that is longer than the lease: the client hears of it first, the
// member after it, and the client again when they have met. What was on its way
// is lost with the session, and so is what the client sends before the next one.
func TestLapse(t *testing.T) {
	same(t, clerkRun(t, protocol.LeaseDetector, "at 1500us partition c1 for 88500us"), `
restore c1 s1
restore c2 s1
try c1
at 1ms deliver c1 s1 NOTE(1)
at 1.5ms partition c1 for 88.5ms
at 5ms try c2
at 6ms deliver c2 s1 NOTE(1)
at 51.5ms lapse c1 s1
at 52.5ms suspect s1 c1
at 53.5ms deliver s1 c2 NOTE(3)
# at 53.5ms c2 crit
at 73.5ms exit c2
# at 73.5ms c2 rem
at 74.5ms deliver c2 s1 NOTE(2)
at 91ms restore c1 s1`)
}

// A separation that a lease outlasts is only a delay, and two without a gap count
// as one.
func TestLeasesOutlastShortSeparations(t *testing.T) {
	for lines, lapses := range map[string]int{
		"at 10ms partition c1 for 49ms":                                 0,
		"at 10ms partition c1 for 50ms":                                 0,
		"at 10ms partition c1 for 51ms":                                 1,
		"at 10ms pause c1 for 51ms":                                     1,
		"at 10ms pause s1 for 51ms":                                     2,
		"at 10ms pause c1 for 30ms\nat 30ms partition c1 for 29ms":      0,
		"at 10ms pause c1 for 30ms\nat 30ms partition c1 for 31ms":      1,
		"at 10ms pause c1 for 30ms\nat 45ms partition c1 for 31ms":      0,
		"at 10ms partition s1 for 100ms\nat 20ms partition s1 for 80ms": 2,
		"at 10ms pause s1 for 51ms\nat 20ms amnesia s1":                 2,
	} {
		out := trace(t, clerk(protocol.LeaseDetector), sim.Config{
			Config: protocol.Config{N: 1}, Clients: 2, Entries: []int{2}, Faults: faultsOf(t, lines),
			Think: sim.Constant(3 * time.Second), Hold: sim.Constant(0), Lease: 50 * time.Millisecond, Patience: 1000,
		})
		if got := strings.Count(out, "lapse"); got != lapses {
			t.Errorf("%q: %d lapses, want %d:\n%s", lines, got, lapses, out)
		}
		if strings.Count(out, "suspect") != lapses || strings.Count(out, "restore") != 2+lapses {
			t.Errorf("%q: each lapse is followed by a suspicion and a new lease:\n%s", lines, out)
		}
	}
}

// Even with every fault at once Sigma keeps its promise while no more servers
// forget than it stands, and each run ends.
func TestSigmaUnderFaults(t *testing.T) {
	for seed := range uint64(5) {
		r := mustRun(t, sigma.Algorithm, sim.Config{
			Config: protocol.Config{N: 4}, Clients: 6, Entries: []int{150}, Seed: seed,
			Delay: sim.Exponential(time.Millisecond), Think: sim.Exponential(20 * time.Millisecond),
			Lease: time.Second, AmnesiaEvery: time.Minute, CrashEvery: time.Second, PauseEvery: 2 * time.Second,
			PartitionEvery: 3 * time.Second,
		})
		if r.ViolationCount != 0 || r.Crashes == 0 || r.Entries != 900 {
			t.Errorf("seed %d: %d entries, %d crashes, %v", seed, r.Entries, r.Crashes, r.Violations)
		}
	}
}

// What a model excludes is refused, in its words.
func TestConfig(t *testing.T) {
	ok := sim.Config{Config: protocol.Config{N: 4}}
	for name, c := range map[string]struct {
		edit func(*sim.Config)
		want string
	}{
		"no member":         {func(c *sim.Config) { c.N = 0 }, "0 members"},
		"too many":          {func(c *sim.Config) { c.N = 1 << 40 }, "members: want 1 to"},
		"clients of a peer": {func(c *sim.Config) { c.Clients = 2 }, "its users are its members"},
		"no entries":        {func(c *sim.Config) { c.Entries = []int{0} }, "nobody enters"},
		"entries for three": {func(c *sim.Config) { c.Entries = []int{1, 2, 3} }, "3 numbers of entries for 4 users"},
		"negative delay":    {func(c *sim.Config) { c.Delay = sim.Constant(-1) }, "delay: -1ns is negative"},
		"uniform backwards": {func(c *sim.Config) { c.Hold = sim.Uniform(2, 1) }, "hold: 2ns is after 1ns"},
		"unknown option": {func(c *sim.Config) {
			c.Options = map[string]int64{"x": 1}
		}, `no option "x": it has no options`},
		"memory loss":        {func(c *sim.Config) { c.AmnesiaEvery = 1 }, "memory loss: its model has no memory loss"},
		"crash":              {func(c *sim.Config) { c.CrashEvery = 1 }, "its model has no crashes"},
		"down":               {func(c *sim.Config) { c.Down = []protocol.ID{1} }, "its model has no memory loss"},
		"negative period":    {func(c *sim.Config) { c.PauseEvery = -1 }, "pause-every -1ns"},
		"negative lease":     {func(c *sim.Config) { c.Lease = -1 }, "lease -1ns"},
		"large clock offset": {func(c *sim.Config) { c.ClockOffset = 2 * time.Hour }, "clock-offset 2h0m0s"},
		"a crash at a time": {func(c *sim.Config) {
			c.Faults = []scenario.Step{{Verb: scenario.Crash, Procs: []protocol.ID{1}}}
		}, "its model has no crashes"},
		"a process too many": {func(c *sim.Config) {
			c.Faults = []scenario.Step{{Verb: scenario.Pause, Procs: []protocol.ID{4}, For: 1}}
		}, "there is no process p5"},
		"no fault": {func(c *sim.Config) {
			c.Faults = []scenario.Step{{Verb: scenario.Try, Procs: []protocol.ID{1}}}
		}, "faults are amnesia, drain, crash, pause, partition, cut, recover, suspect, restore"},
	} {
		cfg := ok
		c.edit(&cfg)
		_, err := sim.Run(ricartagrawala.Algorithm, cfg)
		if !errors.Is(err, sim.ErrConfig) || !strings.Contains(fmt.Sprint(err), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	for name, c := range map[string]struct {
		edit func(*sim.Config)
		want string
	}{
		"quorum":           {func(c *sim.Config) { c.Options = map[string]int64{"quorum": 5} }, "quorum=5"},
		"options":          {func(c *sim.Config) { c.Options = map[string]int64{"x": 1} }, "its options are quorum, check"},
		"nobody left":      {func(c *sim.Config) { c.Down = []protocol.ID{0, 1, 2, 3} }, "no member is left"},
		"down client":      {func(c *sim.Config) { c.Down = []protocol.ID{4} }, "there is no member"},
		"negative clients": {func(c *sim.Config) { c.Clients = -1 }, "-1 clients"},
		"fault of a member that is down": {func(c *sim.Config) {
			c.Down, c.Faults = []protocol.ID{1}, []scenario.Step{{Verb: scenario.Amnesia, Procs: []protocol.ID{1}}}
		}, "s2 is down"},
		"negative space":   {func(c *sim.Config) { c.Spaced = -1 }, "spaced=-1: want at least 0"},
		"nothing to space": {func(c *sim.Config) { c.Spaced = 1 }, "there are no memory losses to be spaced"},
		"drain of a client": {func(c *sim.Config) {
			c.Faults = []scenario.Step{{Verb: scenario.Drain, Procs: []protocol.ID{4}}}
		}, "want one member, of an algorithm whose members drain"},
		"crash of a server": {func(c *sim.Config) {
			c.Faults = []scenario.Step{{Verb: scenario.Crash, Procs: []protocol.ID{1}}}
		}, "only a user's process can crash"},
		"amnesia of a client": {func(c *sim.Config) {
			c.Faults = []scenario.Step{{Verb: scenario.Amnesia, Procs: []protocol.ID{4}}}
		}, "only a member can lose its memory"},
	} {
		cfg := ok
		c.edit(&cfg)
		_, err := sim.Run(sigma.Algorithm, cfg)
		if !errors.Is(err, sim.ErrConfig) || !strings.Contains(fmt.Sprint(err), c.want) {
			t.Errorf("sigma: %s: %v, want %q", name, err, c.want)
		}
	}
	spaced, drain := ok, ok
	spaced.AmnesiaEvery, spaced.Spaced = time.Second, 1
	if _, err := sim.Run(sigma.Literal, spaced); !errors.Is(err, sim.ErrConfig) ||
		!strings.Contains(fmt.Sprint(err), "make up for no losses") {
		t.Errorf("losses spaced in a form that makes up for none: %v", err)
	}
	drain.Faults = []scenario.Step{{Verb: scenario.Drain, Procs: []protocol.ID{1}}}
	if _, err := sim.Run(sigma.Literal, drain); !errors.Is(err, sim.ErrConfig) ||
		!strings.Contains(fmt.Sprint(err), "whose members drain") {
		t.Errorf("drain of a form that has none: %v", err)
	}
}
