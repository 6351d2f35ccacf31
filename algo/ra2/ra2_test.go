package ra2

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/poundlock/poundlock/algo/algotest"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/sim"
)

// one is for models in which each user wants one of these groups.
func one(groups ...protocol.Groups) [][]protocol.Groups { return [][]protocol.Groups{groups} }

// mixed are wants of three users, as different as few can be.
var mixed = [][]protocol.Groups{{"1"}, {"1", "2"}, {"2"}}

var suite = algotest.Options{
	Allocations: 0.01, // what messages tell of the vector is in blocks
	Exhaustive: []check.Config{
		{Config: protocol.Config{N: 1}, Entries: []int{3}},
		{Config: protocol.Config{N: 2}, Entries: []int{2}, Wants: one("!w", "1", "2")},
		{Config: protocol.Config{N: 3}, Wants: mixed},
	},
}

// with is a form with suite other than the default ones.
func with(name string, value int64, more ...any) map[string]int64 {
	o := map[string]int64{name: value}
	for i := 0; i < len(more); i += 2 {
		o[more[i].(string)] = int64(more[i+1].(int))
	}
	return o
}

func TestConformance(t *testing.T) { algotest.Run(t, Algorithm, suite) }
func TestConformanceOptions(t *testing.T) {
	o := suite
	o.Options = with("invite", InviteOnEntry, "full", 1, "selfgrant", 1, "entry", 1)
	o.Exhaustive = nil
	for _, c := range suite.Exhaustive[:2] {
		c.Options = o.Options
		o.Exhaustive = append(o.Exhaustive, c)
	}
	algotest.Run(t, Algorithm, o)
}
func FuzzRead(f *testing.F)      { algotest.FuzzRead(f, Algorithm, suite) }
func FuzzLoadState(f *testing.F) { algotest.FuzzLoadState(f, Algorithm, suite) }

// A run with contention, event by event.
func TestGolden(t *testing.T) {
	algotest.Golden(t, Algorithm, "run", sim.Config{
		Config: protocol.Config{N: 4}, Entries: []int{2}, Delay: sim.Exponential(time.Millisecond),
		Think: sim.Exponential(time.Millisecond), Hold: sim.Constant(2 * time.Millisecond),
	})
}

// What every algorithm should have, starvation freedom and concurrent entry included, which
// are about infinite runs.
func TestModels(t *testing.T) {
	model := func(o map[string]int64, wants [][]protocol.Groups, entries ...int) check.Config {
		return check.Config{
			Config: protocol.Config{N: 3, Options: o}, Entries: entries, Wants: wants,
			Properties: []string{"all"}, MaxMemory: 1 << 30,
		}
	}
	entry := with("invite", InviteOnEntry)
	two := check.Config{
		Config: protocol.Config{N: 2}, Entries: []int{check.Unlimited}, Wants: one("!w", "1", "2"), MaxMemory: 1 << 30,
	}
	algotest.Holds(t, Algorithm,
		[]check.Config{model(nil, mixed, 1), model(entry, mixed, 1), two},
		[]check.Config{
			model(nil, one("1", "2"), 1), model(entry, one("1", "2"), 1), model(nil, one("!w", "1", "2"), 1),
			model(with("selfgrant", 1), one("1", "2"), 1), model(with("full", 1), one("1", "2"), 1),
			model(nil, mixed, 2, 1, 1), model(entry, mixed, 2, 1, 1), model(nil, mixed, 1, 1, 2), model(entry, mixed, 1, 2, 1),
			model(nil, [][]protocol.Groups{{"1"}, {"2"}, {"2"}}, 2, 2, 2),
			model(entry, [][]protocol.Groups{{"1"}, {"2"}, {"2"}}, 2, 2, 2),
		})
}

// forms are the suite that change what is sent.
func forms() map[string]map[string]int64 {
	return map[string]map[string]int64{
		"default": nil, "on entry": with("invite", InviteOnEntry), "selfgrant": with("selfgrant", 1), "full": with("full", 1),
	}
}

func run(t *testing.T, c sim.Config) sim.Result {
	t.Helper()
	r, err := sim.Run(Algorithm, c)
	if err != nil || r.ViolationCount != 0 {
		t.Fatal(err, r.Violations)
	}
	return r
}

// At most 3(n-1) messages a request over all of a run, of which n-1 are REQUESTs. Mittal and
// Mohan 2007, section 1.1.
func TestMessages(t *testing.T) {
	if fault, err := counts(); fault != "" || err != nil {
		t.Error(fault, err)
	}
}

func counts() (fault string, err error) {
	const n, entries = 10, 50
	for name, o := range forms() {
		for _, groups := range []int{1, 2, 3, 20} {
			for seed := range uint64(4) {
				r, err := sim.Run(Algorithm, sim.Config{
					Config: protocol.Config{N: n, Options: o}, Entries: []int{entries}, Groups: groups, Seed: seed,
					Think: sim.Exponential(10 * time.Millisecond * time.Duration(seed%2)),
					Delay: sim.Exponential(time.Millisecond), Hold: sim.Exponential(time.Millisecond),
				})
				if err != nil || r.ViolationCount > 0 {
					return fmt.Sprint("violation by simulation, ", r.Violations), err
				}
				const each = n * entries * (n - 1)
				if got := r.MessagesByKind["REQUEST"]; got != each {
					return fmt.Sprintf("messages by simulation, %s, %d groups: %d REQUESTs, want %d", name, groups, got, each), nil
				}
				if got := r.MessagesPerEntry / (n - 1); got > 3.0 {
					return fmt.Sprintf("messages by simulation, %s, %d groups: %.3f(n-1) an entry, want at most %g(n-1)", name, groups, got, 3.0), nil
				}
			}
		}
	}
	return "", nil
}

// One user at a time: 2(n-1) messages and two message delays, and none of them a START.
func TestLightLoad(t *testing.T) {
	const n = 10
	r := run(t, sim.Config{
		Config: protocol.Config{N: n}, Entries: []int{20}, Groups: 3,
		Think: sim.Constant(time.Second), Delay: sim.Constant(time.Millisecond),
	})
	if r.MessagesPerEntry != 2*(n-1) || r.MessagesByKind["START"] != 0 || r.Waiting.Mean != 2 {
		t.Errorf("%v messages an entry, %d STARTs, waiting %v ms", r.MessagesPerEntry, r.MessagesByKind["START"], r.Waiting.Mean)
	}
}

// All n processes are inside at once where they want one group; and under load with many
// groups more are than without invitations.
func TestConcurrency(t *testing.T) {
	const n = 20
	c := sim.Config{
		Config: protocol.Config{N: n}, Entries: []int{20}, Groups: 1,
		Think: sim.Constant(0), Delay: sim.Exponential(time.Millisecond), Hold: sim.Constant(100 * time.Millisecond),
	}
	if r := run(t, c); r.Concurrency.Max != n {
		t.Errorf("at most %d are inside together, who all want one group; want %d", r.Concurrency.Max, n)
	}
	c.Groups = 10
	if r := run(t, c); r.Concurrency.Mean < 1.8 {
		t.Errorf("with 10 groups %.2f are inside, want about two", r.Concurrency.Mean)
	}
}

type system struct{ *algotest.System[Message] }

func start(n int, o map[string]int64) system {
	return system{algotest.NewSystem(Algorithm, protocol.Config{N: n, Options: o}, 0)}
}

func (s system) try(id protocol.ID, wants string) {
	s.Step(id, protocol.Input{Kind: protocol.Try, Data: wants})
}

// wave delivers what is on its way now, and nothing that is sent meanwhile: a message delay.
func (s system) wave() {
	type flight struct {
		from, to protocol.ID
		k        int
	}
	var list []flight
	for from := range s.Procs {
		for to := range s.Procs {
			f := flight{protocol.ID(from), protocol.ID(to), 0}
			if f.k = len(s.InFlight(f.from, f.to)); f.k > 0 {
				list = append(list, f)
			}
		}
	}
	for _, f := range list {
		for range f.k {
			s.Deliver(f.from, f.to, 0)
		}
	}
}

// The hazard of invitations: follower 2 has given its permission to 1, who wants another
// group, and leader 0 gives its own when it leaves, before 2 does. The vector on that REPLY
// tells 1 to wait for 2, and the second REPLY of 2 that it need no longer.
func TestFollower(t *testing.T) {
	s := start(3, nil)
	s.try(0, "a")
	s.try(1, "b")
	s.Deliver(1, 2, 0)
	s.Deliver(2, 1, 0) // 2's permission
	s.try(2, "a")
	s.Settle()
	if got := s.Inside(); !slices.Equal(got, []protocol.ID{0, 2}) {
		t.Fatalf("inside is %v, want the leader and its follower", got)
	}
	s.Exit(0)
	s.Settle()
	if got := s.Inside(); !slices.Equal(got, []protocol.ID{2}) {
		t.Fatalf("inside is %v, want the follower alone", got)
	}
	s.Exit(2)
	s.Deliver(2, 1, 0)
	if got := s.Inside(); !slices.Equal(got, []protocol.ID{1}) {
		t.Fatalf("inside is %v, want 1", got)
	}
}

// An exclusive group is not shared with its like, and who leads in it invites nobody.
func TestExclusive(t *testing.T) {
	for _, wants := range []string{"!w", ""} {
		s := start(4, nil)
		for id := range protocol.ID(4) {
			s.try(id, wants)
		}
		s.Settle()
		for id := range protocol.ID(4) {
			if got := s.Inside(); !slices.Equal(got, []protocol.ID{id}) {
				t.Fatalf("%q: inside is %v, want %d", wants, got, id)
			}
			s.Exit(id)
			s.Settle()
		}
		if s.Kinds[Start] != 0 {
			t.Errorf("%q: %d STARTs, want none", wants, s.Kinds[Start])
		}
	}
}

// Integers count for a group, a number, and one or two for an entry of the vector.
func TestTextAndIntegers(t *testing.T) {
	for _, c := range []struct {
		m    Message
		text string
		ints int
	}{
		{Message{Kind: Request, Time: 7, Group: "!w"}, "REQUEST(7,!w)", 2},
		{Message{Kind: Reply, Each: 2, Number: 3, Done: 2}, "REPLY(3,2,[])", 2},
		{Message{Kind: Reply, Each: 1, Number: 3, Done: 2, Grants: Grants{listed([]Grant{{1, 4}, {0, 2}, {1, 5}}).log, 2}}, "REPLY(3,2,[#0:2,#1:5])", 4},
		{Message{Kind: Start, Each: 2, Number: 3, Time: 8, Grants: listed([]Grant{{1, 4}})}, "START(3,8,[#1:4])", 3},
	} {
		if got := Algorithm.Text(c.m); got != c.text || Algorithm.Ints(c.m) != c.ints {
			t.Errorf("%q with %d integers, want %q with %d", got, Algorithm.Ints(c.m), c.text, c.ints)
		}
	}
}
