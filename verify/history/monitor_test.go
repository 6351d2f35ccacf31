package history

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/poundlock/poundlock/protocol"
)

// newMonitor returns a monitor of users 0..users-1.
func newMonitor(users int) *Monitor {
	m := new(Monitor)
	m.Reset(users)
	return m
}

// A step of a hand-made history: at time at, user does or is told what.
type step struct {
	at    int64 // ms
	user  int
	what  string
	token uint64
}

func play(users int, steps ...step) *Monitor {
	m := newMonitor(users)
	feed(m, steps...)
	return m
}

func feed(m *Monitor, steps ...step) {
	for _, s := range steps {
		at := s.at * 1e6
		switch s.what {
		case "try":
			m.Input(s.user, at, protocol.Input{Kind: protocol.Try})
		case "exit":
			m.Input(s.user, at, protocol.Input{Kind: protocol.Exit})
		case "crit":
			m.Act(s.user, at, protocol.Act{Do: protocol.Crit, Arg: s.token})
		case "rem":
			m.Act(s.user, at, protocol.Act{Do: protocol.Rem})
		case "ejected":
			m.Act(s.user, at, protocol.Act{Do: protocol.Ejected})
		case "crash":
			m.Crash(s.user, at)
		default:
			panic(s.what)
		}
	}
}

// grant is a whole critical section.
func grant(user int, try, crit, exit int64, token uint64) []step {
	return []step{{try, user, "try", 0}, {crit, user, "crit", token}, {exit, user, "exit", 0}, {exit, user, "rem", 0}}
}

// User 0 enters at 2 and leaves at 5; users 1 and 2 wait meanwhile, 2 is let in
// before 1 though 1 tried first, and nobody waits when 1 leaves.
func TestMeasures(t *testing.T) {
	m := play(3,
		step{0, 0, "try", 0}, step{2, 0, "crit", 0}, step{2, 1, "try", 0}, step{3, 2, "try", 0},
		step{5, 0, "exit", 0}, step{5, 0, "rem", 0},
		step{6, 2, "crit", 0}, step{8, 2, "exit", 0}, step{8, 2, "rem", 0},
		step{11, 1, "crit", 0}, step{12, 1, "exit", 0}, step{13, 1, "rem", 0},
		step{20, 0, "try", 0}, step{22, 0, "crit", 0}, step{25, 0, "exit", 0}, step{25, 0, "rem", 0},
	)
	got := m.Measures()
	want := Measures{
		Entries:    4,
		Waiting:    Summary{Count: 4, Mean: 4, P50: 2, P99: 9, Max: 9},     // 2, 3, 9, 2
		Response:   Summary{Count: 4, Mean: 6.5, P50: 5, P99: 11, Max: 11}, // 5, 5, 11, 5
		SyncDelay:  Summary{Count: 2, Mean: 2, P50: 1, P99: 3, Max: 3},     // 5 to 6, 8 to 11; nobody waited at 12
		Throughput: 160,                                                    // 4 in 25 ms
		Jain:       (2./25 + 1./10 + 1./5) * (2./25 + 1./10 + 1./5) / (3 * (4./625 + 1./100 + 1./25)),
		MaxBypass:  1, // user 2 went before user 1
	}
	if d := got.Jain - want.Jain; d > 1e-12 || d < -1e-12 {
		t.Errorf("Jain %v, want %v", got.Jain, want.Jain)
	}
	got.Jain = want.Jain
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if m.Total() != 0 {
		t.Error(m.Violations())
	}
}

func TestBypassCountsOthersOnly(t *testing.T) {
	steps := []step{{0, 0, "try", 0}}
	for k := int64(1); k <= 5; k++ {
		steps = append(steps, grant(1, 10*k, 10*k+1, 10*k+2, 0)...)
	}
	steps = append(steps, step{100, 0, "crit", 0})
	if got := play(2, steps...).Measures().MaxBypass; got != 5 {
		t.Errorf("bypass %d, want 5", got)
	}
}

// A user that gives up ends no synchronization delay, and one that is the only
// waiter takes the hand-over with it.
func TestGivingUp(t *testing.T) {
	steps := append(grant(0, 0, 1, 5, 0), step{6, 1, "rem", 0})
	steps = append(steps[:2], append([]step{{2, 1, "try", 0}}, steps[2:]...)...)
	steps = append(steps, grant(0, 7, 9, 10, 0)...)
	m := play(2, steps...)
	got := m.Measures()
	if got.GaveUp != 1 || got.Entries != 2 || got.SyncDelay.Max != 0 || m.Total() != 0 {
		t.Errorf("%+v %v", got, m.Violations())
	}
}

// From Ejected on a user is no longer inside, and its grant has ended.
func TestEjected(t *testing.T) {
	m := play(2,
		step{0, 0, "try", 0}, step{0, 1, "try", 0}, step{1, 0, "crit", 7}, step{4, 0, "ejected", 0},
		step{6, 1, "crit", 8}, step{7, 0, "exit", 0}, step{7, 0, "rem", 0}, step{8, 1, "exit", 0}, step{8, 1, "rem", 0})
	got := m.Measures()
	if m.Total() != 0 || got.Ejected != 1 || got.SyncDelay.Max != 2 || got.Entries != 2 {
		t.Errorf("%+v %v", got, m.Violations())
	}
}

func TestCrash(t *testing.T) {
	m := play(3,
		step{0, 0, "try", 0}, step{0, 1, "try", 0}, step{0, 2, "try", 0}, step{1, 0, "crit", 5}, step{2, 0, "crash", 0},
		step{3, 2, "crash", 0}, step{4, 1, "crit", 5})
	if m.counts[Reuse] != 1 || m.Total() != 1 {
		t.Errorf("the token of a crashed holder was used again, got %v", m.Violations())
	}
	if got := m.Measures(); got.SyncDelay.Max != 2 {
		t.Errorf("%+v", got)
	}
}

func TestViolations(t *testing.T) {
	for name, c := range map[string]struct {
		property string
		steps    []step
	}{
		"two inside": {Exclusion, []step{
			{0, 0, "try", 0}, {0, 1, "try", 0}, {1, 0, "crit", 0}, {2, 1, "crit", 0},
		}},
		"crit without try":    {WellFormed, []step{{0, 0, "crit", 0}}},
		"crit twice":          {WellFormed, []step{{0, 0, "try", 0}, {1, 0, "crit", 0}, {2, 0, "crit", 0}}},
		"rem twice":           {WellFormed, append(grant(0, 0, 1, 2, 0), step{3, 0, "rem", 0})},
		"rem at first":        {WellFormed, []step{{0, 0, "rem", 0}}},
		"rem inside":          {WellFormed, []step{{0, 0, "try", 0}, {1, 0, "crit", 0}, {2, 0, "rem", 0}}},
		"ejected outside":     {WellFormed, []step{{0, 0, "ejected", 0}}},
		"a driver exits rem":  {WellFormed, []step{{0, 0, "exit", 0}}},
		"smaller token later": {Inversion, append(grant(0, 0, 1, 2, 9), grant(1, 3, 4, 5, 8)...)},
		"equal token later":   {Reuse, append(grant(0, 0, 1, 2, 9), grant(1, 3, 4, 5, 9)...)},
		"smaller than an earlier one": {Inversion, append(append(grant(0, 0, 1, 2, 9),
			grant(1, 3, 4, 5, 10)...), grant(0, 6, 7, 8, 9)...)},
	} {
		m := play(2, c.steps...)
		if m.Total() != 1 || m.counts[c.property] != 1 || len(m.Violations()) != 1 {
			t.Errorf("%s: got %v, want one %s", name, m.Violations(), c.property)
		}
	}
}

// Tokens of grants that overlap may come in any order: only what has ended binds.
func TestTokensOfOverlappingGrants(t *testing.T) {
	m := play(2,
		step{0, 0, "try", 0}, step{0, 1, "try", 0}, step{1, 0, "crit", 9}, step{2, 1, "crit", 8},
		step{3, 0, "exit", 0}, step{3, 0, "rem", 0}, step{4, 1, "exit", 0}, step{4, 1, "rem", 0})
	if m.counts[Inversion] != 0 || m.counts[Reuse] != 0 || m.counts[Exclusion] != 1 {
		t.Error(m.Violations())
	}
	m = play(2, step{0, 0, "try", 0}, step{0, 1, "try", 0}, step{1, 0, "crit", 7}, step{2, 1, "crit", 7})
	if m.counts[Reuse] != 1 {
		t.Error("two holders with one token:", m.Violations())
	}
	if m := play(2, append(grant(0, 0, 1, 2, 0), grant(1, 3, 4, 5, 0)...)...); m.Total() != 0 {
		t.Error("grants without tokens:", m.Violations())
	}
}

func TestViolationsAreBoundedAndCounted(t *testing.T) {
	m := newMonitor(1)
	m.Name = func(int) string { return "c1" }
	for at := range int64(1000) {
		m.Act(0, at, protocol.Act{Do: protocol.Crit})
	}
	if len(m.Violations()) != keep || m.Total() != 1000 || m.Counts()[WellFormed] != 1000 {
		t.Errorf("%d kept, %d counted", len(m.Violations()), m.Total())
	}
	want := "0s well-formed: c1 was told crit in its remainder section"
	if got := fmt.Sprint(m.Violations()[0]); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestHistogram(t *testing.T) {
	var h Histogram
	if h.Mean() != 0 || h.Percentile(50) != 0 || h.Summary() != (Summary{}) {
		t.Error("an empty histogram is not zero")
	}
	for v := int64(1); v <= 100_000; v++ {
		h.Add(v * 1000)
	}
	if h.Mean() != 50_000_500 || h.max != 100_000_000 || h.count != 100_000 {
		t.Errorf("mean %v max %v", h.Mean(), h.max)
	}
	for _, p := range []float64{1, 50, 90, 99, 100} {
		exact := p * 1e6
		if got := float64(h.Percentile(p)); got < exact || got > exact*(1+1./64) {
			t.Errorf("p%v = %v, want %v and less than 1/64 more", p, got, exact)
		}
	}
}

// Values that repeat come out exact, and so does a mean whose sum exceeds 64 bits.
func TestHistogramIsExactWhereItCan(t *testing.T) {
	var h Histogram
	for range 10 {
		h.Add(2_000_000)
		h.Add(3_000_000)
	}
	if h.Percentile(50) != 2_000_000 || h.Percentile(51) != 3_000_000 {
		t.Error(h.Percentile(50), h.Percentile(51))
	}
	var large Histogram
	for range 10 {
		large.Add(1<<62 + 1<<61)
	}
	large.Add(-1)
	if want := float64(1<<62+1<<61) / 11 * 10; large.Mean() < want*(1-1e-12) || large.Mean() > want*(1+1e-12) {
		t.Errorf("mean %v, want %v", large.Mean(), want)
	}
}

// A monitor that was reset remembers nothing, and takes nothing away from whoever
// has its violations.
func TestReset(t *testing.T) {
	steps := append(grant(1, 5, 7, 9, 3), grant(0, 10, 11, 12, 8)...)
	m := play(3, step{0, 2, "try", 0}, step{100, 2, "crit", 9}, step{101, 1, "try", 0}, step{102, 1, "crit", 9})
	kept := m.Violations()
	before := fmt.Sprint(kept)
	for _, users := range []int{2, 4} {
		m.Reset(users)
		feed(m, steps...)
		fresh := play(users, steps...)
		if got, want := m.Measures(), fresh.Measures(); got != want || m.Total() != 0 {
			t.Errorf("%d users: %+v, %v\nwant %+v", users, got, m.Violations(), want)
		}
		feed(m, step{20, 0, "try", 0}, step{21, 0, "crit", 1})
	}
	if len(kept) == 0 || fmt.Sprint(kept) != before {
		t.Errorf("the violations became %v, and were %s", kept, before)
	}
}
