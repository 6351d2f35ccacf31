package hunt

import (
	"testing"

	"github.com/poundlock/poundlock/check"
	"github.com/poundlock/poundlock/internal/sessions"
	"github.com/poundlock/poundlock/internal/votes"
	"github.com/poundlock/poundlock/protocol"
)

// Leases of members are hunted with breaks, crashes, recoveries, pauses and revocations: an
// algorithm that is right survives, and each mistake is found, made short, and seen by the
// checker too.
func TestVotes(t *testing.T) {
	// Without a majority nobody enters, which is no mistake.
	c := Config{Config: protocol.Config{N: 3}, Seed: 1, Runs: 600, Workers: 2, without: crashes}
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
func walks[M any](a protocol.Algorithm[M], property string) (found int, reason string) {
	for run := range int64(4000) {
		c := Config{Config: protocol.Config{N: 3}, Seed: 1}
		p := c.draw(a.Info, false, run, 0)
		if p.timed {
			continue
		}
		m := newModel(a, p.system)
		newWalker(m, &p).walk()
		if m.found != nil && m.found.property == property {
			found, reason = found+1, m.found.reason
		}
	}
	return found, reason
}

// The same with crashes and recoveries.
func TestVotesAfterCrashes(t *testing.T) {
	for _, m := range []votes.Mistake{votes.None, votes.Revokes, votes.Forgets} {
		if found, reason := walks(votes.Algorithm(m), check.Exclusion); (found == 0) != (m != votes.Forgets) {
			t.Errorf("mistake %d: %d violations %s", m, found, reason)
		}
	}
}

// Sessions are as protocol.LeaseDetector says.
func TestSessions(t *testing.T) {
	for _, lie := range []sessions.Lie{sessions.None, sessions.Reverse, sessions.Late, sessions.Repeat} {
		for _, revokes := range []bool{false, true} {
			if found, reason := walks(sessions.Algorithm(lie, revokes), check.Model); (found == 0) != (lie == sessions.None) {
				t.Errorf("lie %d, revokes %v: %d violations %s", lie, revokes, found, reason)
			}
		}
	}
}
