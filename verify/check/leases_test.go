package check_test

import (
	"strings"
	"testing"

	"github.com/poundlock/poundlock/algo/algotest/toys/chamber"
	"github.com/poundlock/poundlock/algo/algotest/toys/sessions"
	"github.com/poundlock/poundlock/algo/algotest/toys/votes"
	"github.com/poundlock/poundlock/internal/lane"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/scenario"
)

// faulty returns a configuration of n members with budgets for crashes, recoveries and
// breaks of sessions. The first two try.
func faulty(n, crash, recover, suspect int) check.Config {
	c := config(n)
	c.Entries = make([]int, n)
	c.Entries[0], c.Entries[1] = 1, 1
	c.Crash, c.Recover, c.Suspect = crash, recover, suspect
	return c
}

// All faults at once take a minute.
func TestVotesUnderAllFaults(t *testing.T) {
	lane.CI.Need(t, "four seconds")
	c := faulty(3, 1, 1, 1)
	if !lane.Long.Runs() {
		t.Log("SHORTENED to one entry: TEST_LANE=long lets two members enter")
		c.Entries[1] = 0
	}
	if v := run(t, votes.Algorithm(votes.None), c); v.Verdict != check.Holds {
		t.Errorf("%s %s: %s %q", v.Verdict, v.Property, v.Reason, v.Trace)
	}
}

// An algorithm that is safe only because Ended comes after the other one's Lapsed is so
// under each fault; each of its mistakes is found.
func TestVotes(t *testing.T) {
	for _, test := range []struct {
		mistake votes.Mistake
		c       check.Config
		want    check.Result
		steps   int
	}{
		{votes.None, faulty(3, 0, 0, 1), check.Holds, 0},
		{votes.None, faulty(3, 1, 0, 0), check.Holds, 0},
		{votes.None, faulty(3, 1, 1, 0), check.Holds, 0},
		{votes.Revokes, faulty(3, 0, 0, 0), check.Holds, 0},
		{votes.Deaf, faulty(3, 0, 0, 1), check.Violated, 9},
		{votes.Hasty, faulty(3, 0, 0, 1), check.Violated, 7},
		{votes.Hasty, faulty(3, 1, 0, 0), check.Holds, 0}, // who crashed has no vote
		{votes.Forgets, faulty(3, 0, 0, 1), check.Holds, 0},
		{votes.Forgets, faulty(3, 1, 1, 0), check.Violated, 13},
	} {
		v := run(t, votes.Algorithm(test.mistake), test.c)
		if v.Verdict != test.want || len(v.Trace) != test.steps || v.Verdict == check.Violated && v.Property != check.Exclusion {
			t.Errorf("mistake %d, %v: %s %s after %d steps: %s %q; want %s after %d",
				test.mistake, test.c.Faults(), v.Verdict, v.Property, len(v.Trace), v.Reason, v.Trace, test.want, test.steps)
		}
	}
}

// Whoever waits gets in when faults end: breaks, crashes, recoveries and revocations
// come to their end in fair runs.
func TestVotesGoOn(t *testing.T) {
	for _, test := range []struct {
		mistake votes.Mistake
		c       check.Config
	}{
		{votes.None, faulty(3, 0, 0, 1)},
		{votes.None, faulty(3, 1, 0, 0)},
		{votes.Revokes, faulty(3, 0, 0, 0)},
	} {
		test.c.Properties = []string{"all"}
		if v := run(t, votes.Algorithm(test.mistake), test.c); v.Verdict != check.Holds {
			t.Errorf("mistake %d, %v: %s %s: %s %q", test.mistake, test.c.Faults(), v.Verdict, v.Property, v.Reason, v.Trace)
		}
	}
}

// Who tries may wait while no majority is up, if the algorithm says so, and not while one is.
func TestMajority(t *testing.T) {
	for _, test := range []struct {
		mistake  votes.Mistake
		says     bool
		n, crash int
		want     string // the property that is violated
	}{
		{votes.None, true, 2, 1, ""},
		{votes.None, true, 3, 2, ""},
		{votes.None, false, 2, 1, check.Deadlock},
		{votes.None, false, 3, 1, ""},
		{votes.None, false, 3, 2, check.Deadlock},
		{votes.Silent, true, 3, 1, check.Deadlock},
	} {
		a, c := votes.Algorithm(test.mistake), faulty(test.n, test.crash, 0, 0)
		if test.mistake == votes.Silent {
			c.Recover = 1
		}
		a.Majority, c.Entries = test.says, []int{1, 0, 0}[:test.n]
		for _, properties := range [][]string{{"all"}, {check.MakesProgress}, {check.Starvation}} {
			c.Properties = properties
			v, want := run(t, a, c), test.want
			if want != "" && properties[0] != "all" {
				want = properties[0]
			}
			if v.Verdict == check.Holds && want != "" || v.Verdict == check.Violated && v.Property != want || v.Verdict == check.Undecided {
				t.Errorf("mistake %d, majority %v, n=%d, %v: %s %s %s, want %q violated", test.mistake, test.says, test.n, c.Faults(),
					v.Verdict, v.Property, v.Trace, want)
			}
			if told := strings.Contains(v.Bounds, "no majority of the members is up"); told != (test.says && 2*(test.n-test.crash) <= test.n) {
				t.Errorf("majority %v, n=%d, %v: bounds %q", test.says, test.n, c.Faults(), v.Bounds)
			}
		}
	}
}

// The same of concurrent entry: a chamber whose coordinator crashed answers nobody.
func TestMajorityShares(t *testing.T) {
	for _, says := range []bool{true, false} {
		a, c := chamber.Algorithm(chamber.Sound), config(2)
		a.Tolerates, a.Majority = protocol.Crash, says
		c.Crash, c.Properties = 1, []string{check.ConcurrentEntry}
		if v := run(t, a, c); (v.Verdict == check.Holds) != says {
			t.Errorf("majority %v: %s %s", says, v.Verdict, v.Trace)
		}
	}
}

// Sessions are as protocol.LeaseDetector says, with and without FIFO channels, and a
// watcher to whom something else is told says so.
func TestSessions(t *testing.T) {
	for _, test := range []struct {
		lie     sessions.Lie
		revokes bool
		c       check.Config
		want    check.Result
	}{
		{sessions.None, false, faulty(2, 0, 0, 3), check.Holds},
		{sessions.None, true, faulty(2, 0, 0, 1), check.Holds},
		{sessions.None, false, faulty(2, 2, 2, 1), check.Holds},
		{sessions.None, true, faulty(2, 1, 1, 0), check.Holds},
		{sessions.Reverse, false, faulty(2, 0, 0, 1), check.Violated},
		{sessions.Reverse, false, faulty(2, 1, 0, 0), check.Violated},
		{sessions.Late, false, faulty(2, 0, 0, 2), check.Violated},
		{sessions.Repeat, false, faulty(2, 0, 0, 0), check.Violated},
	} {
		for _, fifo := range []bool{false, true} {
			test.c.Properties, test.c.FIFO = []string{check.Model}, fifo
			v := run(t, sessions.Algorithm(test.lie, test.revokes), test.c)
			if v.Verdict != test.want {
				t.Errorf("lie %d, revokes %v, %v, FIFO %v: %s %s: %s %q",
					test.lie, test.revokes, test.c.Faults(), fifo, v.Verdict, v.Property, v.Reason, v.Trace)
			}
		}
	}
}

// TestSessionSteps follows single runs: what may happen when.
func TestSessionSteps(t *testing.T) {
	const broken = "lapse p1 p2\nlapse p2 p1\n"
	const apart = broken + "suspect p1 p2\nsuspect p2 p1\n"
	for _, test := range []struct{ prefix, last, err string }{
		{"", "suspect p1 p2", "no suspect"},
		{"", "restore p1 p2", "no restore"},
		{"lapse p1 p2", "suspect p1 p2", "no suspect"}, // only after the other's Lapsed
		{"lapse p1 p2", "suspect p2 p1", "no suspect"},
		{"lapse p1 p2", "lapse p1 p3", "possible are: lapse p2 p1"}, // that is another session
		{"try p1\nlapse p2 p1", "deliver p1 p2 LETTER(1)", "not possible here"},
		{"try p1\nlapse p1 p2", "deliver p1 p2 LETTER(1)", ""},
		{broken, "suspect p2 p1", ""},
		{broken + "suspect p2 p1", "restore p2 p1", "no restore"},
		{apart, "restore p2 p1", ""},
		{apart + "restore p2 p1", "deliver p2 p1 LETTER(2)", "not possible here"}, // it is held
		{apart + "restore p2 p1\nrestore p1 p2", "deliver p2 p1 LETTER(2)", ""},
		{apart + "restore p2 p1\ncrash p2\nrecover p2", "restore p1 p2", "no restore"},
		{"crash p2", "suspect p1 p2", "no suspect"},
		{"crash p2\nlapse p1 p2", "suspect p1 p2", ""},
		{"crash p2\nlapse p1 p2\nrecover p2", "restore p1 p2", "no restore"},
		{"crash p2\nlapse p1 p2\nrecover p2", "suspect p2 p3", "possible are: suspect p1 p2; suspect p2 p1"},
		{"crash p2\nlapse p1 p2\nrecover p2\nsuspect p1 p2\nsuspect p2 p1", "restore p1 p2", ""},
		{"crash p2\nlapse p1 p2\nrecover p2\nsuspect p1 p2\nsuspect p2 p1", "restore p2 p1", ""},
	} {
		steps, err := scenario.Names{Members: 3}.Parse(strings.NewReader(test.prefix + "\n" + test.last))
		if err != nil {
			t.Fatal(err)
		}
		c := faulty(3, 1, 1, 1)
		c.Prefix, c.Properties, c.MaxMemory = steps, []string{check.Model}, 1<<20
		_, err = check.Run(sessions.Algorithm(sessions.None, false), c)
		if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%q, %s: error %v, want %q", test.prefix, test.last, err, test.err)
		}
	}
}

// Members that are interchangeable are so with their sessions; the order of steps matters,
// because a message may be lost at any moment.
func TestSessionsReduced(t *testing.T) {
	for _, test := range []struct {
		lie sessions.Lie
		c   check.Config
	}{
		{sessions.None, faulty(3, 1, 1, 0)}, {sessions.None, faulty(3, 1, 0, 1)}, {sessions.Late, faulty(3, 0, 0, 2)},
	} {
		lie, c := test.lie, test.c
		c.Entries, c.Properties = []int{0}, []string{check.Model}
		whole := run(t, sessions.Algorithm(lie, false), c)
		c.Reduce = []string{check.ReduceSymmetry, check.ReduceOrder}
		v := run(t, sessions.Algorithm(lie, false), c)
		if v.Verdict != whole.Verdict || len(v.Trace) != len(whole.Trace) || 2*v.States > whole.States && lie == sessions.None {
			t.Errorf("lie %d: %s after %d steps in %d states, reduced %s after %d in %d",
				lie, whole.Verdict, len(whole.Trace), whole.States, v.Verdict, len(v.Trace), v.States)
		}
		for _, want := range []string{"reduced by symmetry", "not reduced by order: messages are lost"} {
			if !strings.Contains(v.Bounds, want) {
				t.Errorf("bounds %q: want %q", v.Bounds, want)
			}
		}
	}
}
