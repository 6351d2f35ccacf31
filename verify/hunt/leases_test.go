package hunt

import (
	"slices"
	"testing"

	"github.com/poundlock/poundlock/internal/lane"
	"github.com/poundlock/poundlock/verify/world"

	"github.com/poundlock/poundlock/algo/algotest/toys/sessions"
	"github.com/poundlock/poundlock/algo/algotest/toys/votes"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/scenario"
)

// Leases of members are hunted with breaks, crashes, recoveries, pauses and revocations: an
// algorithm that is right survives, and each mistake is found, made short, and seen by the
// checker too.
func TestVotes(t *testing.T) {
	c := Config{Config: protocol.Config{N: 3}, Seed: 1, Runs: 600, Workers: 2}
	for _, m := range []votes.Mistake{votes.None, votes.Revokes} {
		r := mustRun(t, votes.Algorithm(m), c)
		for _, v := range r.Violations {
			t.Errorf("mistake %d: run %d: %s: %s %v", m, v.Run, v.Property, v.Reason, v.Trace)
		}
		if r.Entries < 5*r.Runs {
			t.Errorf("mistake %d: %d entries in %d runs: do they do anything?", m, r.Entries, r.Runs)
		}
	}
	for m, steps := range map[votes.Mistake]int{votes.Deaf: 9, votes.Hasty: 7} {
		v := finding(t, votes.Algorithm(m), c)
		if v.Property != check.Exclusion || !v.Replayed || len(v.Trace) > steps+2 || v.Timed {
			t.Errorf("mistake %d: %s after %d steps, replayed %v: %s %v; the shortest has %d",
				m, v.Property, len(v.Trace), v.Replayed, v.Reason, v.Trace, steps)
		}
	}
}

// walks takes untimed runs, and returns how many of them violate a property.
func walks[M any](a protocol.Algorithm[M], property string, rare int64) (found int, reason string) {
	for run := int64(0); run < 4000 || found == 0 && run < rare; run++ {
		c := Config{Config: protocol.Config{N: 3}, Seed: 1}
		p := c.draw(a.Info, false, run, 0)
		if p.timed {
			continue
		}
		m := newModel(protocol.Erase(a), p.system)
		newWalker(m, &p).walk()
		if m.Found != nil && m.Found.Property == property {
			found, reason = found+1, m.Found.Text
		}
	}
	return found, reason
}

// The same with crashes and recoveries.
func TestVotesAfterCrashes(t *testing.T) {
	mistakes := []votes.Mistake{votes.None, votes.Revokes}
	if lane.CI.Adds(t, "a mistake that shows in two of 10 000 runs") {
		mistakes = append(mistakes, votes.Forgets)
	}
	for _, m := range mistakes {
		rare := int64(0)
		if m == votes.Forgets { // some 2 of 10 000 runs
			rare = 40_000
		}
		if found, reason := walks(votes.Algorithm(m), check.Exclusion, rare); (found == 0) != (m != votes.Forgets) {
			t.Errorf("mistake %d: %d violations %s", m, found, reason)
		}
	}
}

// Sessions are as protocol.LeaseDetector says.
func TestSessions(t *testing.T) {
	for _, lie := range []sessions.Lie{sessions.None, sessions.Reverse, sessions.Late, sessions.Repeat} {
		for _, revokes := range []bool{false, true} {
			if found, reason := walks(sessions.Algorithm(lie, revokes), check.Model, 0); (found == 0) != (lie == sessions.None) {
				t.Errorf("lie %d, revokes %v: %d violations %s", lie, revokes, found, reason)
			}
		}
	}
}

// After each step the same news of leases may come next as in the checker.
func TestLeaseNewsIsTheCheckers(t *testing.T) {
	lane.CI.Need(t, "long runs beside the checker")
	count := map[scenario.Verb]int{}
	for _, revokes := range []bool{false, true} {
		a := sessions.Algorithm(sessions.None, revokes)
		for number := range int64(1500) {
			p := (&Config{Config: protocol.Config{N: 3}, Seed: 3}).draw(a.Info, false, number, 0)
			if p.timed {
				continue
			}
			w := newWalker(newModel(protocol.Erase(a), p.system), &p)
			w.walk()
			run := beginning(w.run)
			m := newModel(protocol.Erase(a), p.system)
			steps := m.script(run)
			c := check.Config{Config: m.sys.Config, FIFO: m.sys.FIFO, Entries: []int{check.Unlimited}, Crash: 15, Recover: 15, Suspect: 15, Pause: 15}
			checker, err := check.NewWalk(a, c)
			if err != nil {
				t.Fatal(err)
			}
			m.Reset()
			for k, step := range steps {
				news := m.news()
				if theirs := newsOf(checker); !slices.Equal(news, theirs) {
					t.Fatalf("run %d, after %d steps: %q may come next, in the checker %q", number, k, news, theirs)
				}
				count[step.Verb]++
				if _, err := checker.Take(step); err != nil {
					t.Fatal(err)
				}
				m.do(&run[k])
			}
		}
	}
	for _, verb := range []scenario.Verb{scenario.Lapse, scenario.Suspect, scenario.Restore, scenario.Crash, scenario.Recover} {
		if count[verb] < 20 {
			t.Errorf("%d steps %s: too few to show anything", count[verb], verb)
		}
	}
}

// news are the lines of Ended and Restore that may come next.
func (m *model) news() (lines []string) {
	for p := range m.sys.N {
		for q := range m.sys.N {
			about := scenario.Step{Procs: []protocol.ID{protocol.ID(p), protocol.ID(q)}}
			if m.Notices(p, q)&world.ToSuspect != 0 {
				about.Verb = scenario.Suspect
				lines = append(lines, m.Names.Format(about))
			}
			if m.Notices(p, q)&world.ToRestore != 0 {
				about.Verb = scenario.Restore
				lines = append(lines, m.Names.Format(about))
			}
		}
	}
	slices.Sort(lines)
	return lines
}

// newsOf are those of a walk of the checker.
func newsOf(w *check.Walk) (lines []string) {
	for _, s := range w.Possible() {
		if s.Verb == scenario.Suspect || s.Verb == scenario.Restore {
			lines = append(lines, w.Names().Format(s))
		}
	}
	slices.Sort(lines)
	return lines
}
