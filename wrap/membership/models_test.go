package membership

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/poundlock/poundlock/algo/centralised"
	"github.com/poundlock/poundlock/algo/ra2"
	"github.com/poundlock/poundlock/algo/suzukikasami"
	"github.com/poundlock/poundlock/algo/tokengme"
	"github.com/poundlock/poundlock/internal/lane"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/scenario"
)

// A model is one of n processes, 3 unless it says so.
type model struct {
	n                int
	phases           int64 // 0: the default
	entries          []int
	apart            bool              // p3 wants another group than p1 and p2
	wants            []protocol.Groups // by process; nil: 1 or 2
	crash, back, cut int
	fifo             bool
	begin            []string  // lines of a scenario: what the model begins with
	told             bool      // who is inside leaves when it is told that somebody waits who does not share
	finite           bool      // properties of finite runs only
	queues           bool      // a restart may serve two groups, and meet one who comes back for the second: it waits
	in               lane.Lane // the shortest lane that explores it
}

// parts breaks the sessions of process p with both others: it is told so first, or they are.
func parts(p int, first bool) (lines []string) {
	for q := 1; q <= 3; q++ {
		switch {
		case q == p:
		case first:
			lines = append(lines, fmt.Sprintf("lapse p%d p%d", p, q))
		default:
			lines = append(lines, fmt.Sprintf("lapse p%d p%d", q, p))
		}
	}
	return lines
}

func (m model) config(asked ...string) check.Config {
	c := check.Config{
		Config: protocol.Config{N: max(m.n, 2)}, Entries: m.entries, Crash: m.crash, Recover: m.back, Suspect: m.cut,
		Properties: asked, MaxMemory: 3 << 30, FIFO: m.fifo, UntilTold: m.told,
	}
	if m.n == 0 {
		c.N = 3
	}
	if m.apart {
		m.wants = []protocol.Groups{"1", "1", "2"}
	}
	for _, g := range m.wants {
		c.Wants = append(c.Wants, []protocol.Groups{g})
	}
	steps, err := scenario.Names{Members: c.N}.Parse(strings.NewReader(strings.Join(m.begin, "\n")))
	if err != nil {
		panic(err)
	}
	c.Prefix = steps
	if m.phases > 0 {
		c.Options = map[string]int64{phasesOption: m.phases}
	}
	return c
}

// kept are the properties that an algorithm has with the wrapper: all but check.ConcurrentEntry, which needs three phases.
var kept = []string{check.Exclusion, check.WellFormed, check.Deadlock, "recovery/tags", check.MakesProgress, check.Starvation}

func explore[M any](t *testing.T, a protocol.Algorithm[M], models ...model) {
	t.Helper()
	for _, m := range models {
		c := m.config(kept...)
		if m.phases == 0 && a.Grouped && !m.queues {
			c.Properties = append(slices.Clip(c.Properties), check.ConcurrentEntry)
		}
		if m.finite {
			c.Properties = nil
		}
		if m.phases > 0 {
			m.in = max(m.in, lane.CI)
		}
		if !m.in.Adds(t, fmt.Sprintf("%s, %+v", a.Name, m)) {
			continue
		}
		v, err := check.Run(Wrap(a), c)
		if err != nil {
			t.Errorf("%s, %+v: %v", a.Name, m, err)
			continue
		}
		t.Logf("%s, %d phases: %s in %d states, %.1f s: %s", a.Name, m.phases, v.Verdict, v.States, v.Seconds, v.Bounds)
		if v.Verdict != check.Holds {
			t.Errorf("%s, %+v: %s is %s: %s", a.Name, m, v.Property, v.Verdict, v.Reason)
			if v.Run != nil {
				for _, e := range v.Run.Steps {
					t.Log(e.Line, e.Did())
				}
			}
		}
	}
}

// The wrapper keeps the properties of an algorithm through a crash, a crash and a join, and
// sessions that break in one direction or both, at any moment.
func TestModels(t *testing.T) {
	explore(t, suzukikasami.Algorithm,
		model{entries: []int{1}},
		model{n: 2, entries: []int{1}, cut: 2},
		model{entries: []int{1}, crash: 1},
		model{phases: 2, entries: []int{1}, crash: 1},
		model{phases: 1, entries: []int{1}, crash: 1},
		model{entries: []int{0}, cut: 1},
		model{entries: []int{0}, crash: 1, back: 1},
		model{entries: []int{1, 0, 0}, cut: 1},
		model{phases: 1, entries: []int{1, 0, 0}, cut: 1},
		model{entries: []int{0, 1, 0}, cut: 1, in: lane.CI},
		model{entries: []int{0, 0, 1}, cut: 1, in: lane.CI},
		model{entries: []int{0, 0, 1}, crash: 1, back: 1, in: lane.CI},
		model{phases: 2, entries: []int{0, 0, 1}, crash: 1, back: 1},
		model{phases: 1, entries: []int{0, 0, 1}, crash: 1, back: 1},
		model{phases: 2, entries: []int{1, 0, 0}, cut: 1},
		model{entries: []int{1}, cut: 1, in: lane.Long},
		model{entries: []int{1}, crash: 1, back: 1, in: lane.Long},
	)
	explore(t, tokengme.Algorithm,
		model{entries: []int{0, 0, 1}, crash: 1},
		model{entries: []int{0, 1, 1}, crash: 1},
		model{phases: 2, entries: []int{0, 1, 1}, crash: 1},
		model{phases: 1, entries: []int{0, 1, 1}, crash: 1},
		model{entries: []int{1}, crash: 1, in: lane.Long},
		model{phases: 1, entries: []int{1}, crash: 1, in: lane.Long},
		model{entries: []int{0, 0, 1}, cut: 1, in: lane.CI},
		model{entries: []int{0, 0, 1}, crash: 1, back: 1, in: lane.CI},
		model{n: 2, entries: []int{1}, told: true, crash: 1},
		model{entries: []int{1, 0, 1}, apart: true, told: true, crash: 1},
		model{entries: []int{1, 0, 1}, apart: true, told: true, cut: 1, in: lane.Long},
		model{entries: []int{1, 0, 1}, apart: true, told: true, crash: 1, back: 1, in: lane.Long},
		model{phases: 2, entries: []int{0, 0, 1}, cut: 1, in: lane.Long},
		model{phases: 1, entries: []int{0, 0, 1}, cut: 1, in: lane.Long},
		model{phases: 2, entries: []int{0, 0, 1}, crash: 1, back: 1, in: lane.Long},
		model{phases: 1, entries: []int{0, 0, 1}, crash: 1, back: 1, in: lane.Long},
		model{entries: []int{1, 0, 1}, apart: true, cut: 1, in: lane.Long},
		model{entries: []int{1, 0, 1}, apart: true, crash: 1, back: 1, in: lane.Long},
	)
	explore(t, centralised.Algorithm,
		model{entries: []int{1}, crash: 1},
		model{phases: 2, entries: []int{1}, crash: 1},
		model{phases: 1, entries: []int{1}, crash: 1},
		model{entries: []int{0, 0, 1}, crash: 1, back: 1, in: lane.CI},
		model{entries: []int{0, 0, 1}, cut: 1, in: lane.CI},
		model{entries: []int{1, 0, 1}, cut: 1, in: lane.Long},
		model{entries: []int{1}, crash: 1, back: 1, in: lane.Long},
	)
	either := []protocol.Groups{"1", "1,2", "2"}
	explore(t, tokengme.Several,
		model{entries: []int{0, 1, 1}, wants: either, crash: 1},
		model{phases: 2, entries: []int{0, 1, 1}, wants: either, crash: 1},
		model{phases: 1, entries: []int{0, 1, 1}, wants: either, crash: 1},
		model{entries: []int{1}, wants: either, crash: 1},
		model{entries: []int{0, 1, 0}, wants: either, crash: 1, back: 1, in: lane.CI},
		model{entries: []int{0, 1, 0}, wants: either, cut: 1, in: lane.CI},
		model{entries: []int{0, 1, 1}, wants: either, cut: 1, in: lane.Long},
		model{entries: []int{0, 1, 1}, wants: either, crash: 1, back: 1, in: lane.Long},
	)
	explore(t, tokengme.Bounded, // the numbers of requests are reset after the second one
		model{n: 2, entries: []int{3, 1}, crash: 1},
		model{n: 2, entries: []int{3, 1}, cut: 1, queues: true},
		model{n: 2, entries: []int{2, 1}, crash: 1, back: 1, queues: true},
		model{entries: []int{0, 0, 3}, crash: 1, in: lane.CI},
		model{phases: 2, entries: []int{0, 0, 3}, crash: 1},
		model{phases: 1, entries: []int{0, 0, 3}, crash: 1},
		model{entries: []int{0, 1, 3}, crash: 1, in: lane.Long},
		model{entries: []int{0, 0, 3}, cut: 1, in: lane.Long},
		model{entries: []int{0, 0, 3}, crash: 1, back: 1, in: lane.Long},
	)
	explore(t, ra2.Algorithm,
		model{entries: []int{0, 0, 1}, crash: 1},
		model{entries: []int{0, 1, 1}, crash: 1},
		model{phases: 2, entries: []int{0, 0, 1}, crash: 1},
		model{phases: 1, entries: []int{0, 0, 1}, crash: 1},
		model{entries: []int{0}, cut: 1},
		model{entries: []int{0}, crash: 1, back: 1},
		model{entries: []int{0, 0, 1}, cut: 1},
		model{entries: []int{0, 0, 1}, crash: 1, back: 1},
		model{phases: 2, entries: []int{0, 0, 1}, cut: 1, in: lane.Long},
		model{phases: 1, entries: []int{0, 0, 1}, cut: 1, in: lane.Long},
		model{phases: 2, entries: []int{0, 0, 1}, crash: 1, back: 1, in: lane.Long},
		model{phases: 1, entries: []int{0, 0, 1}, crash: 1, back: 1, in: lane.Long},
		model{entries: []int{1}, crash: 1, in: lane.Long},
		model{entries: []int{1, 0, 1}, apart: true, cut: 1, in: lane.Long},
		model{entries: []int{1, 0, 1}, apart: true, crash: 1, back: 1, in: lane.Long},
	)
}

// A partition of one process breaks two sessions. Here both break before anything else happens; who
// is told then, what is sent, and that the process is there again and joins comes in every order. With
// TEST_LANE=long each of the two breaks at any moment.
func TestModelsOfPartitions(t *testing.T) {
	lane.CI.Need(t, "models with two broken sessions take ten seconds")
	explore(t, suzukikasami.Algorithm,
		model{entries: []int{0, 0, 1}, cut: 2, begin: parts(1, false)},
		model{entries: []int{0, 0, 1}, cut: 2, begin: parts(3, true)},
		model{entries: []int{0, 0, 1}, cut: 2, begin: parts(3, false)},
		model{entries: []int{0, 0, 1}, cut: 2, begin: parts(2, true)},
		model{entries: []int{0, 1, 0}, cut: 2, begin: parts(2, false)},
		model{entries: []int{0}, cut: 2, begin: parts(1, true), finite: true, in: lane.Long},
		model{entries: []int{1}, cut: 2, begin: parts(1, false), in: lane.Long},
		model{entries: []int{1}, cut: 2, begin: parts(3, true), in: lane.Long},
		model{entries: []int{0}, cut: 2, fifo: true, finite: true, in: lane.Long},
	)
	explore(t, tokengme.Algorithm,
		model{entries: []int{0, 0, 1}, cut: 2, begin: parts(1, false)},
		model{entries: []int{0, 0, 1}, cut: 2, begin: parts(3, true)},
		model{entries: []int{0, 0, 1}, cut: 2, begin: parts(3, false), in: lane.Long},
		model{entries: []int{0, 0, 1}, cut: 2, begin: parts(2, false), in: lane.Long},
		model{entries: []int{1, 0, 1}, apart: true, cut: 2, begin: parts(1, false)},
		model{entries: []int{1, 0, 1}, apart: true, cut: 2, begin: parts(3, true), in: lane.Long},
		model{entries: []int{1, 0, 1}, apart: true, cut: 2, begin: parts(3, false), in: lane.Long},
	)
	explore(t, ra2.Algorithm,
		model{entries: []int{0, 0, 1}, cut: 2, begin: parts(1, false)},
		model{entries: []int{0, 0, 1}, cut: 2, begin: parts(3, true)},
		model{entries: []int{0, 0, 1}, cut: 2, begin: parts(3, false), in: lane.Long},
		model{entries: []int{0, 0, 1}, cut: 2, begin: parts(2, false), in: lane.Long},
		model{entries: []int{1, 0, 1}, apart: true, cut: 2, begin: parts(1, false)},
		model{entries: []int{1, 0, 1}, apart: true, cut: 2, begin: parts(3, true)},
		model{entries: []int{1, 0, 1}, apart: true, cut: 2, begin: parts(3, false), in: lane.Long},
		model{entries: []int{0}, cut: 2, finite: true, in: lane.Long},
	)
	stays := model{entries: []int{1, 1, 0}, cut: 2, begin: parts(1, false)}
	v, err := check.Run(probed(suzukikasami.Algorithm, steady), stays.config(check.Exclusion))
	if err != nil || v.Verdict != check.Violated {
		t.Errorf("where who lost both others stays in its instance, %s is %s, %v", v.Property, v.Verdict, err)
	}
}

// A restart of fewer phases waits for who is inside, and with it whoever wants the same group.
func TestConcurrentEntry(t *testing.T) {
	for phases := range int64(2) {
		m := model{phases: 1 + phases, entries: []int{0, 1, 1}, crash: 1}
		v, err := check.Run(Wrap(tokengme.Algorithm), m.config(check.ConcurrentEntry))
		if err != nil || v.Verdict != check.Violated || v.Property != check.ConcurrentEntry {
			t.Errorf("%d phases: %s is %s, %v: want %s violated", m.phases, v.Property, v.Verdict, err, check.ConcurrentEntry)
		}
	}
}
