package membership

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/poundlock/poundlock/algo/ra2"
	"github.com/poundlock/poundlock/algo/suzukikasami"
	"github.com/poundlock/poundlock/algo/tokengme"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/scenario"
	"github.com/poundlock/poundlock/verify/sim"
)

// A probe takes the steps of a process in place of it.
type probe[M any] struct {
	*Process[M]
	step stepper[M]
}

type stepper[M any] func(p *Process[M], ev protocol.Event[Frame[M]], out *protocol.Out[Frame[M]])

func (p probe[M]) Step(ev protocol.Event[Frame[M]], out *protocol.Out[Frame[M]]) {
	p.step(p.Process, ev, out)
}

// probed is Wrap with each process behind a probe.
func probed[M any](a protocol.Algorithm[M], step stepper[M]) protocol.Algorithm[Frame[M]] {
	w := Wrap(a)
	fresh := w.New
	w.New = func(id protocol.ID, c protocol.Config) protocol.Process[Frame[M]] {
		return probe[M]{fresh(id, c).(*Process[M]), step}
	}
	w.Bounds, w.Invariants = nil, nil
	return w
}

func right[M any](p *Process[M], ev protocol.Event[Frame[M]], out *protocol.Out[Frame[M]]) {
	p.Step(ev, out)
}

// deaf processes never hear that a session broke.
func deaf[M any](p *Process[M], ev protocol.Event[Frame[M]], out *protocol.Out[Frame[M]]) {
	if ev.Kind != protocol.Suspect {
		p.Step(ev, out)
	}
}

// chatty processes tell all others of their sessions when one breaks, and not one coordinator.
func chatty[M any](p *Process[M], ev protocol.Event[Frame[M]], out *protocol.Out[Frame[M]]) {
	p.Step(ev, out)
	if ev.Kind == protocol.Suspect && p.active {
		for j := range p.reach().without(p.id).all {
			p.notify(j, out)
		}
	}
}

// steady processes never leave their instance: they pretend that a session that broke lasts.
func steady[M any](p *Process[M], ev protocol.Event[Frame[M]], out *protocol.Out[Frame[M]]) {
	p.Step(ev, out)
	if p.active {
		p.linked = p.members
	}
}

func simulate[M any](t *testing.T, a protocol.Algorithm[Frame[M]], script string, c sim.Config) sim.Result {
	t.Helper()
	steps, err := scenario.Names{Members: c.N}.Parse(strings.NewReader(script))
	if err != nil {
		t.Fatal(err)
	}
	c.Faults = steps
	r, err := sim.Run(a, c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// counted makes processes count what they send by kind.
func counted[M any](step stepper[M], sent *[kinds]int) stepper[M] {
	return func(p *Process[M], ev protocol.Event[Frame[M]], out *protocol.Out[Frame[M]]) {
		step(p, ev, out)
		for _, e := range out.Effects {
			if e.Do == protocol.Send {
				sent[e.Msg.Kind]++
			}
		}
	}
}

// ofRestarts reports whether messages of a kind are those of a restart.
func ofRestarts(kind uint8) bool { return kind != Inner && kind != Leave }

// bill says what is wrong with the messages of a crash and of a join of each of three processes.
// A request may cost that many messages of the algorithm and LEAVEs.
func bill[M any](t *testing.T, a protocol.Algorithm[M], step stepper[M], n, request int) string {
	t.Helper()
	for victim := 1; victim <= n; victim += max(1, (n-1)/2) {
		c := sim.Config{
			Config: protocol.Config{N: n}, Seed: uint64(victim), Entries: []int{20}, Patience: 1 << 20,
			Think: sim.Exponential(300 * time.Millisecond), Hold: sim.Exponential(20 * time.Millisecond),
		}
		if a.Grouped {
			c.Groups = 3
		}
		crash := fmt.Sprintf("at 1s crash p%d\n", victim)
		var once, twice [kinds]int
		one := simulate(t, probed(a, counted(step, &once)), crash, c)
		both := simulate(t, probed(a, counted(step, &twice)), crash+fmt.Sprintf("at 3s recover p%d\n", victim), c)
		if len(one.Violations)+len(both.Violations) > 0 {
			return fmt.Sprintf("n=%d: %v %v", n, one.Violations, both.Violations)
		}
		crashed, joined := 0, 0
		for kind := range kinds {
			if x, y := once[kind], twice[kind]-once[kind]; ofRestarts(kind) {
				crashed, joined = crashed+x, joined+y
				if x > n-1 || y > n-1 || y < 0 {
					return fmt.Sprintf("n=%d, p%d: %d and %d messages %s, want %d at most", n, victim, x, y, messages[kind].Name, n-1)
				}
			}
		}
		if crashed == 0 || crashed > 5*(n-1) || joined == 0 || joined > 5*(n-1) {
			return fmt.Sprintf("n=%d, p%d: %d messages for a crash and %d for a join, want 1 to %d", n, victim, crashed, joined, 5*(n-1))
		}
		rest := twice[Inner] + twice[Leave]
		if most := request * (int(both.Entries) + 1); rest > most { // and the request of who crashes
			return fmt.Sprintf("n=%d, p%d: %d other messages for %d entries, want %d at most", n, victim, rest, both.Entries, most)
		}
	}
	return ""
}

// A crash costs at most 5(n-1) messages and a join, too, at most n-1 of each kind, whoever it
// is (section 5.3.3).
func TestBill(t *testing.T) {
	for _, n := range []int{3, 5, 9} {
		for _, fault := range []string{
			bill(t, suzukikasami.Algorithm, right, n, 2*n-1),
			bill(t, tokengme.Algorithm, right, n, 2*n-1),
			bill(t, ra2.Algorithm, right, n, 3*(n-1)+1),
		} {
			if fault != "" {
				t.Error(fault)
			}
		}
	}
	if bill(t, tokengme.Algorithm, chatty, 9, 17) == "" {
		t.Error("n-1 NOTIFYs of each process do not show")
	}
	if bill(t, tokengme.Algorithm, deaf, 5, 9) == "" {
		t.Error("that nobody hears of a crash does not show")
	}
}

// Where faults overlap, a restart ends before it is done, and a part of its messages was in
// vain: there are fewer all the same, as long as there is a majority. Where there is none
// any more, all who are left say JOIN to each other.
func TestOverlap(t *testing.T) {
	share := func(n int, seed uint64, step stepper[tokengme.Message]) float64 {
		var sent [kinds]int
		r := simulate(t, probed(tokengme.Algorithm, counted(step, &sent)), "", sim.Config{
			Config: protocol.Config{N: n}, Seed: seed, Entries: []int{20}, Groups: 3, Delay: sim.Exponential(2 * time.Millisecond),
			Think: sim.Exponential(100 * time.Millisecond), Hold: sim.Exponential(5 * time.Millisecond), Patience: 1 << 20,
			CrashEvery: 40 * time.Millisecond, RecoverEvery: 40 * time.Millisecond, FaultsUntil: 3 * time.Second,
		})
		if r.ViolationCount > 0 || r.Crashes < 10 {
			t.Fatalf("n=%d, seed %d: %d crashes, %v", n, seed, r.Crashes, r.Violations)
		}
		all := 0
		for kind, k := range sent {
			if ofRestarts(uint8(kind)) {
				all += k
			}
		}
		if rest, most := sent[Inner]+sent[Leave], (2*n-1)*(int(r.Entries)+r.Crashes); rest > most {
			t.Errorf("n=%d, seed %d: %d other messages for %d entries and %d crashes, want %d at most", n, seed, rest, r.Entries, r.Crashes, most)
		}
		return float64(all) / float64(5*(n-1)*(r.Crashes+r.Recoveries))
	}
	for _, n := range []int{3, 5, 9} {
		worst := 0.0
		for seed := range uint64(20) {
			worst = max(worst, share(n, seed, right))
		}
		t.Logf("n=%d: at most %.2f of 5(n-1) messages a fault", n, worst)
		if worst > 1 {
			t.Errorf("n=%d: %.2f of 5(n-1) messages a fault, want 1 at most", n, worst)
		}
	}
	if share(9, 0, chatty) <= 1 {
		t.Error("that all tell all does not show")
	}
}

// parted says what is wrong in a run in which some of five are apart from the others from 1 s
// to 6 s.
func parted[M any](t *testing.T, a protocol.Algorithm[M], step stepper[M], script string, minority ...protocol.ID) string {
	t.Helper()
	const n = 5
	entered := make([][]time.Duration, n)
	told := make([]int, n)
	begin := time.Duration(0)
	r := simulate(t, probed(a, func(p *Process[M], ev protocol.Event[Frame[M]], out *protocol.Out[Frame[M]]) {
		if ev.Kind == protocol.Start {
			begin = time.Duration(ev.Now)
		}
		step(p, ev, out)
		for _, e := range out.Effects {
			switch {
			case e.Do == protocol.Crit:
				entered[p.id] = append(entered[p.id], time.Duration(ev.Now)-begin)
			case e.Do == protocol.Rem && e.Reason() == protocol.NoMajority && time.Duration(ev.Now)-begin < 6*time.Second:
				told[p.id]++
			}
		}
	}), script, sim.Config{
		Config: protocol.Config{N: n, Options: map[string]int64{tellOption: 1}}, Entries: []int{150}, Patience: 1 << 20,
		Think: sim.Exponential(50 * time.Millisecond), Hold: sim.Exponential(5 * time.Millisecond), Lease: 200 * time.Millisecond,
	})
	if r.ViolationCount > 0 {
		return r.Violations[0]
	}
	within := func(p protocol.ID, from, to time.Duration) (k int) {
		for _, at := range entered[p] {
			if from <= at && at < to {
				k++
			}
		}
		return k
	}
	for p := range protocol.ID(n) {
		before, during, after := within(p, 0, time.Second), within(p, 2*time.Second, 6*time.Second), within(p, 7*time.Second, time.Hour)
		apart := slices.Contains(minority, p)
		switch {
		case before == 0 || after == 0:
			return fmt.Sprintf("p%d: %d entries before and %d after", p+1, before, after)
		case apart && during > 0:
			return fmt.Sprintf("p%d enters %d times without a majority", p+1, during)
		case apart && told[p] == 0:
			return fmt.Sprintf("p%d is not told of it", p+1)
		case !apart && (during < 5 || told[p] > 0):
			return fmt.Sprintf("p%d enters %d times, and is told %d times that it has no majority", p+1, during, told[p])
		}
	}
	return ""
}

// Under a partition in either direction or in both a majority goes on, nobody of the minority
// is inside, and each is told why; when it ends they enter again.
func TestParted(t *testing.T) {
	oneWay := func(from, to []int) (script string) {
		for _, i := range from {
			for _, j := range to {
				script += fmt.Sprintf("at 1s cut p%d p%d for 5s\n", i, j)
			}
		}
		return script
	}
	for _, m := range []struct {
		script   string
		minority []protocol.ID
	}{
		{"at 1s partition p1,p2 for 5s\n", []protocol.ID{0, 1}},
		{"at 1s partition p4,p5 for 5s\n", []protocol.ID{3, 4}},
		{"at 1s partition p1 for 5s\n", []protocol.ID{0}},
		{"at 1s partition p5 for 5s\n", []protocol.ID{4}},
		{oneWay([]int{1, 2}, []int{3, 4, 5}), []protocol.ID{0, 1}},
		{oneWay([]int{3, 4, 5}, []int{1, 2}), []protocol.ID{0, 1}},
		{oneWay([]int{5}, []int{1, 2, 3, 4}), []protocol.ID{4}},
	} {
		for _, fault := range []string{
			parted(t, suzukikasami.Algorithm, right, m.script, m.minority...),
			parted(t, tokengme.Algorithm, right, m.script, m.minority...),
			parted(t, ra2.Algorithm, right, m.script, m.minority...),
		} {
			if fault != "" {
				t.Errorf("%s%s", m.script, fault)
			}
		}
		if parted(t, tokengme.Algorithm, deaf, m.script, m.minority...) == "" || parted(t, tokengme.Algorithm, steady, m.script, m.minority...) == "" {
			t.Errorf("%sa broken wrapper does not show", m.script)
		}
	}
}

// cutForGood says what is wrong where two of five never reach each other any more, and then one
// crashes.
func cutForGood(t *testing.T) string {
	t.Helper()
	for _, m := range []struct{ a, b, crashed int }{{4, 5, 2}, {3, 5, 4}, {1, 5, 3}, {2, 5, 1}, {1, 2, 5}} {
		const n = 5
		late := make([]int, n)
		begin := time.Duration(0)
		count := func(p *Process[ra2.Message], ev protocol.Event[Frame[ra2.Message]], out *protocol.Out[Frame[ra2.Message]]) {
			if ev.Kind == protocol.Start {
				begin = time.Duration(ev.Now)
			}
			p.Step(ev, out)
			for _, e := range out.Effects {
				if e.Do == protocol.Crit && time.Duration(ev.Now)-begin > 5*time.Second {
					late[p.id]++
				}
			}
		}
		script := fmt.Sprintf("at 1s cut p%d p%d for 1h\nat 3s crash p%d\n", m.a, m.b, m.crashed)
		r := simulate(t, probed(ra2.Algorithm, count), script, sim.Config{
			Config: protocol.Config{N: n}, Entries: []int{150}, Groups: 2, Until: 15 * time.Second,
			Think: sim.Exponential(50 * time.Millisecond), Hold: sim.Exponential(5 * time.Millisecond), Lease: 200 * time.Millisecond,
		})
		who := len(slices.DeleteFunc(late, func(k int) bool { return k < 20 }))
		if r.ViolationCount > 0 || who < 3 {
			return fmt.Sprintf("%s%v, %d enter after 5 s, want 3", script, r.Violations, who)
		}
	}
	return ""
}

// A process that has no session with one of the others, and can join no instance with it, does not hold
// up the others.
func TestCutForGood(t *testing.T) {
	if fault := cutForGood(t); fault != "" {
		t.Error(fault)
	}
}
