package statemachine

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/poundlock/poundlock/algo/algotest"
	"github.com/poundlock/poundlock/algo/algotest/mutant"
	"github.com/poundlock/poundlock/algo/quorum"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/scenario"
	"github.com/poundlock/poundlock/verify/sim"
)

// clients is a model of Memory in which every client wants in once.
func clients(n, k int) check.Config {
	return check.Config{Config: protocol.Config{N: n}, Clients: k, MaxMemory: 64 << 20, Timers: check.NeverFire}
}

// contended is one in which two want in, and whoever gets in stays.
func contended(n int) check.Config {
	c := clients(n, 2)
	c.Stay, c.Properties, c.Reduce = true, []string{check.Exclusion}, []string{check.ReduceSymmetry}
	return c
}

var memoryOptions = algotest.Options{
	Allocations: 1, // a list of who waits grows
	Exhaustive: []check.Config{
		{Config: protocol.Config{N: 1}, Clients: 1, Entries: []int{3}, Properties: []string{"all"}},
		{Config: protocol.Config{N: 3}, Clients: 1, Entries: []int{1}, Properties: []string{"all"}},
		contended(2),
	},
}

func TestConformanceMemory(t *testing.T) { algotest.Run(t, Memory, memoryOptions) }
func FuzzReadMemory(f *testing.F)        { algotest.FuzzRead(f, Memory, memoryOptions) }
func FuzzLoadStateMemory(f *testing.F)   { algotest.FuzzLoadState(f, Memory, memoryOptions) }

// held is a model in which c1 is inside, by a quorum of the servers, and c2 may try: of them some lose their memory.
func held(t *testing.T, n, m, losses int) check.Config {
	c := contended(n)
	c.Options = map[string]int64{"quorum": int64(m)}
	c.Amnesia = losses
	var err error
	if c.Prefix, err = (scenario.Names{Members: n, Clients: true}).Parse(strings.NewReader(letIn(m))); err != nil {
		t.Fatal(err)
	}
	return c
}

// letIn is how c1 gets in, by the first m servers.
func letIn(m int) string {
	lines := []string{"try c1"}
	for _, format := range []string{
		"deliver c1 s%d PREPARE(1,c1(1))", "deliver s%d c1 PROMISE(1,c1(1))",
		"deliver c1 s%d PROPOSE(1,c1(1),c1)", "deliver s%d c1 ACCEPTED(1,c1(1))",
	} {
		for s := range m {
			lines = append(lines, fmt.Sprintf(format, s+1))
		}
	}
	return strings.Join(lines, "\n") + "\n"
}

// Chen et al. 2005, Theorem 4: where n/3 servers may be faulty in an epoch, no algorithm is safe and lets everybody in. Here
// consensus with quorums of m takes the part of any algorithm. It is safe if fewer than 2m-n lose their memory, and it lets
// somebody in if m are up; for one faulty server both are so with four servers, and not with three, whatever m is.
func TestTheorem4(t *testing.T) {
	for _, row := range []struct{ n, m int }{{3, 2}, {3, 3}, {4, 3}} {
		safe := verdict(t, held(t, row.n, row.m, 1), check.Exclusion)
		one := clients(row.n, 1)
		one.Options = map[string]int64{"quorum": int64(row.m)}
		one.Down = []protocol.ID{protocol.ID(row.n - 1)}
		one.Properties = []string{check.Deadlock}
		live := verdict(t, one, check.Deadlock)
		if want := quorum.MemoryLosses(row.n, row.m) >= 1; safe != want {
			t.Errorf("%d servers, quorums of %d: exclusion after a memory loss: %v, want %v", row.n, row.m, safe, want)
		}
		if want := quorum.Silent(row.n, row.m) >= 1; live != want {
			t.Errorf("%d servers, quorums of %d: somebody gets in beside a silent one: %v, want %v", row.n, row.m, live, want)
		}
		if both := row.n > 3; (safe && live) != both {
			t.Errorf("%d servers, quorums of %d stand one faulty server: %v, want %v", row.n, row.m, !both, both)
		}
	}
	if verdict(t, held(t, 4, 3, 2), check.Exclusion) {
		t.Error("four servers stand two memory losses")
	}
}

// verdict is whether a model holds; if it does not, the property falls.
func verdict(t *testing.T, c check.Config, property string) bool {
	t.Helper()
	v, err := check.Run(Memory, c)
	if err != nil || v.Verdict == check.Undecided || v.Verdict == check.Violated && v.Property != property {
		t.Fatalf("%s is %s (%s): %v", v.Property, v.Verdict, v.Bounds, err)
	}
	t.Logf("%s: %s, %d steps, %d states: %s", property, v.Verdict, len(v.Trace), v.States, v.Bounds)
	return v.Verdict == check.Holds
}

// The prefixes in testdata, for the commands of docs/sigma.md, are those of this test.
func TestHeldFiles(t *testing.T) {
	for n := 3; n <= 4; n++ {
		text, err := os.ReadFile(fmt.Sprintf("testdata/held%d.txt", n))
		_, steps, _ := strings.Cut(string(text), "\n")
		if want := letIn(quorum.Majority(n)); err != nil || steps != want {
			t.Errorf("held%d.txt: %v\n%s, want\n%s", n, err, steps, want)
		}
	}
}

// Without a memory loss a majority is enough.
func TestMemoryExclusion(t *testing.T) {
	if !verdict(t, contended(3), check.Exclusion) {
		t.Error("two are inside, and nobody has forgotten anything")
	}
}

// Many clients want in at once, and each gets in, one after the other: who was refused pauses, and a place that is over is told.
func TestMemorySimulated(t *testing.T) {
	for seed := range uint64(10) {
		if fault, err := crowd(seed); fault != "" || err != nil {
			t.Errorf("seed %d: %s, %v", seed, fault, err)
		}
	}
}

func crowd(seed uint64) (string, error) {
	r, err := sim.Run(Memory, sim.Config{
		Config: protocol.Config{N: 5}, Clients: 6, Entries: []int{10}, Seed: seed,
		Delay: sim.Exponential(time.Millisecond), Think: sim.Exponential(10 * time.Millisecond),
	})
	if err == nil && (r.ViolationCount > 0 || r.Entries != 60) {
		return fmt.Sprintf("a crowd by simulation, %d entries, %q", r.Entries, r.Violations), nil
	}
	return "", err
}

// A play is a part of a story: what is delivered, and who is inside after it.
type play struct {
	*algotest.System[Vote]
	fault string
}

func newPlay(n int) *play {
	return &play{System: algotest.NewSystem(Memory, protocol.Config{N: n}, 2)}
}

// deliver delivers the oldest message of each channel, in turn: "c1 s1" is one from c1 to s1. "+" takes the newest.
func (p *play) deliver(channels ...string) {
	for _, ch := range channels {
		name, newest := strings.CutPrefix(ch, "+")
		from, to, _ := strings.Cut(name, " ")
		names := scenario.Names{Members: len(p.Procs) - 2, Clients: true}
		a, _ := names.ID(from)
		b, _ := names.ID(to)
		at := 0
		if newest {
			at = len(p.InFlight(a, b)) - 1
		}
		p.Deliver(a, b, at)
	}
}

func (p *play) inside(what string, want ...protocol.ID) {
	if got := p.Inside(); !slices.Equal(got, want) && p.fault == "" {
		p.fault = fmt.Sprintf("%s by story, %v are inside", what, got)
	}
}

// stories are what models of few steps do not reach.
func stories() (fault string) {
	defer func() {
		if v := recover(); v != nil {
			fault = fmt.Sprint(v)
		}
	}()
	for _, story := range []func() string{forgetful, duel, toldTwice, helped, mixed, latePromise, lateAcceptance} {
		if fault := story(); fault != "" {
			return fault
		}
	}
	return ""
}

func TestMemoryStories(t *testing.T) {
	if fault := stories(); fault != "" {
		t.Error(fault)
	}
}

// A server that forgot everything is told where the others are.
func forgetful() string {
	s := newPlay(3)
	const c1, c2 = protocol.ID(3), protocol.ID(4)
	s.Try(c1)
	s.Settle()
	s.Exit(c1)
	s.Settle()
	s.Procs[0] = Memory.New(0, protocol.Config{N: 3})
	s.Try(c2)
	s.Settle()
	s.inside("a server that forgot", c2)
	for id, p := range s.Procs[:3] {
		if a := p.(*Acceptor); a.place != 2 && s.fault == "" {
			s.fault = fmt.Sprintf("a server that forgot by story, %d is at place %d", id, a.place)
		}
	}
	return s.fault
}

// Two clients refuse each other. The one whose pause ends first comes back with a larger ballot; the other one is told when
// the place is over, and does not wait for its timer.
func duel() string {
	s := newPlay(1)
	const c1, c2 = protocol.ID(1), protocol.ID(2)
	s.Try(c1)
	s.deliver("c1 s1", "s1 c1")
	s.Try(c2)
	s.deliver("c2 s1", "s1 c2", "c1 s1", "s1 c1") // c1 proposes, too late
	s.Step(c1, protocol.Input{Kind: protocol.Timeout, Timer: pauseTimer})
	s.deliver("c1 s1", "c2 s1", "s1 c2", "s1 c1", "c1 s1", "s1 c1")
	s.inside("a duel", c1)
	s.Exit(c1)
	s.Settle()
	s.inside("after a duel", c2)
	return s.fault
}

// All servers tell a client that a place is over; it begins the next one once.
func toldTwice() string {
	s := newPlay(3)
	const c1, c2 = protocol.ID(3), protocol.ID(4)
	s.Try(c1)
	s.Settle()
	s.Try(c2)
	s.Settle()
	s.Exit(c1)
	s.deliver("c1 s1", "c1 s2", "c1 s3", "s1 c2", "s2 c2", "s3 c2")
	s.Settle()
	s.inside("told by all", c2)
	return s.fault
}

// c2 proposes c1, which may be decided; c1 counts that, though the ballot is not its own.
func helped() string {
	s := newPlay(1)
	const c1, c2 = protocol.ID(1), protocol.ID(2)
	s.Try(c1)
	s.deliver("c1 s1", "s1 c1", "c1 s1")
	s.Try(c2)
	s.deliver("c2 s1", "s1 c2", "c2 s1", "+s1 c1")
	s.inside("helped", c1)
	return s.fault
}

// Two acceptances in different ballots are not a majority, in whichever order they arrive.
func mixed() string {
	for _, last := range [][]string{{"s1 c1", "s2 c1"}, {"s2 c1", "s1 c1"}} {
		s := newPlay(3)
		s.Try(3)
		s.deliver("c1 s1", "c1 s2", "s1 c1", "s2 c1", "c1 s1") // s1 has accepted c1 in the ballot of c1
		s.Try(4)
		s.deliver("c2 s1", "c2 s2", "s1 c2", "s2 c2", "c2 s2") // s2 has in that of c2
		s.deliver(last...)
		s.inside("mixed ballots")
		if s.fault != "" {
			return s.fault
		}
	}
	return ""
}

// A promise of an earlier ballot does not count for the next one.
func latePromise() string {
	s := newPlay(3)
	const c1, c2 = protocol.ID(3), protocol.ID(4)
	s.Try(c2)
	s.deliver("c2 s3")
	s.Try(c1)
	s.deliver("c1 s1", "c1 s2", "c1 s3", "s3 c1") // refused
	s.Step(c1, protocol.Input{Kind: protocol.Timeout, Timer: pauseTimer})
	s.deliver("s1 c1", "s2 c1")
	if s.Kinds[Offer] > 0 {
		return "a late promise by story, it counts"
	}
	return s.fault
}

// An acceptance of an earlier place does not count in the next one.
func lateAcceptance() string {
	s := newPlay(3)
	const c1 = protocol.ID(3)
	s.Try(c1)
	s.deliver("c1 s1", "c1 s2", "c1 s3", "s1 c1", "s2 c1", "s3 c1", "c1 s1", "c1 s2", "c1 s3", "s1 c1", "s2 c1")
	s.inside("an acceptance", c1)
	s.Exit(c1)
	s.Try(c1)
	s.deliver("c1 s1", "c1 s2", "c1 s1", "c1 s2", "s1 c1", "s2 c1", "c1 s1", "s1 c1", "s3 c1")
	s.inside("a late acceptance")
	return s.fault
}

func TestMemoryMutants(t *testing.T) {
	mutant.Test(t, mutant.Config{
		Checks: []mutant.Check{
			func() (string, error) { return stories(), nil },
			mutant.Model(Memory, clients(1, 2)),
			mutant.Model(Memory, contended(2)),
			func() (string, error) { return crowd(1) },
			func() (string, error) { return crowd(2) },
			algotest.Examine(Memory, algotest.Options{Allocations: 1, Exhaustive: memoryOptions.Exhaustive[:1], Skip: map[string]string{
				"State": "it is looked at without mutants", "Determinism": "the same", "Codec": "the same",
			}}),
		},
		Inside:   []string{"Acceptor", "Proposer"},
		Patience: 10 * time.Second,
	})
}
