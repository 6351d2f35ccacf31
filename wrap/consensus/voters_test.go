package consensus

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/poundlock/poundlock/internal/lane"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
)

// A voter is consensus as the whole algorithm: its user tries, and is out again when there is a decision. Nobody
// is ever inside, which would only multiply the states.
type voter struct {
	id    protocol.ID
	tries bool
	bids  uint64   // a bit for each instance in which it has proposed
	heard []uint64 // decisions, by instance
}

// Step implements protocol.Process.
func (p *voter) Step(ev protocol.Event[uint64], out *protocol.Out[uint64]) {
	switch ev.Kind {
	case protocol.Try:
		p.tries = true
		p.bids |= 1 << len(p.heard)
		out.Propose(uint64(len(p.heard)), uint64(p.id))
	case protocol.Decide:
		p.heard = append(p.heard, ev.Msg)
		if p.tries {
			p.tries = false
			out.Rem()
		}
	}
}

// State implements protocol.Process.
func (p *voter) State(c *protocol.Codec) {
	c.Bool(&p.tries)
	c.Uint(&p.bids)
	c.Words(protocol.List(c, &p.heard))
}

// voters are these over a core, with ballots of so many rounds.
func voters(core func(*algorithm) Core[uint64, message], rounds uint64) protocol.Algorithm[frame] {
	a := values
	a.Name, a.Users, a.Detector, a.Tolerates = "voters", protocol.Members, protocol.UnreliableDetector, protocol.Crash
	a.Majority = true
	a.New = func(id protocol.ID, _ protocol.Config) protocol.Process[uint64] { return &voter{id: id} }
	out := Over(a, core)
	out.Bounds = []protocol.Bound{protocol.NewBound("rounds", rounds, round)}
	out.Invariants = []protocol.Invariant{{Name: "voters/agreement", Err: agreement}, {Name: "voters/validity", Err: validity}}
	return out
}

func voterOf(p any) *voter {
	v, _ := protocol.As[*voter](p)
	return v
}

func round(p *process) uint64 {
	switch c := p.Core().(type) {
	case *synod[uint64]:
		return max(c.round, c.promised.Round)
	case *mistaken:
		return max(c.round, c.promised.Round)
	}
	return 0
}

// agreement: no two have heard of different decisions.
func agreement(v *protocol.View) error {
	for a, p := range v.Procs {
		for b, q := range v.Procs[:a] {
			if p == nil || q == nil {
				continue
			}
			one, other := voterOf(p).heard, voterOf(q).heard
			for k := range min(len(one), len(other)) {
				if one[k] != other[k] {
					return fmt.Errorf("#%d has heard of %d in instance %d, and #%d of %d", a, one[k], k, b, other[k])
				}
			}
		}
	}
	return nil
}

// validity: what is decided was proposed by a process, which is what it is.
func validity(v *protocol.View) error {
	for a, p := range v.Procs {
		if p == nil {
			continue
		}
		for k, id := range voterOf(p).heard {
			if q := v.Procs[id]; q != nil && voterOf(q).bids>>k&1 == 0 {
				return fmt.Errorf("#%d has heard of %d in instance %d, which #%d has not proposed", a, id, k, id)
			}
		}
	}
	return nil
}

// A poll is a model of voters, and how many states it has.
type poll struct {
	c      check.Config
	rounds uint64
	states int64
}

func polls(n int, entries ...int) check.Config {
	return check.Config{
		Config: protocol.Config{N: n}, Entries: entries, Suspect: 1, MaxMemory: 4 << 30,
		Properties: []string{"voters/agreement", "voters/validity", check.Deadlock},
	}
}

// Paxos keeps agreement and validity with messages in any order and a suspicion by mistake, and each user hears of a
// decision, as far as ballots go.
func TestVoters(t *testing.T) {
	list := []poll{{polls(3, 1, 0, 0), 2, 5052}, {polls(2, 1, 1), 4, 205946}}
	large := []poll{{polls(3, 0, 1, 0), 2, 4210877}}
	if lane.Long.Runs() {
		list = append(list, large...)
	} else {
		fmt.Printf("SHORTENED: %d of %d models of Paxos; TEST_LANE=long takes all\n", len(list), len(list)+len(large))
	}
	for _, m := range list {
		v := asked(t, voters(paxos[uint64], m.rounds), m.c)
		t.Logf("%d states, depth %d, %.1f s: %s", v.States, v.Depth, v.Seconds, v.Bounds)
		if v.Verdict != check.Holds || v.States != m.states {
			t.Errorf("%s of %s: %s, %d states, want %d\n%s", v.Verdict, v.Property, v.Reason, v.States, m.states, strings.Join(v.Trace, "\n"))
		}
	}
}

func asked(t *testing.T, a protocol.Algorithm[frame], c check.Config) check.Verdict {
	t.Helper()
	v, err := check.Run(a, c)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// What a ballot has left behind counts in the next one.
func TestVotersBroken(t *testing.T) {
	for _, c := range []struct {
		name  string
		m     mistake
		steps int
	}{
		{"promises are forgotten", forgetsPromises, 11},
		{"what was accepted is forgotten", forgetsAccepted, 11},
	} {
		v := asked(t, voters(mistakenly(c.m), 2), polls(3, 1, 1, 0))
		if v.Property != "voters/agreement" || len(v.Trace) != c.steps {
			t.Errorf("%s: %s of %s: %s, after %d steps, want agreement violated after %d", c.name, v.Verdict, v.Property, v.Reason, len(v.Trace), c.steps)
		}
	}
}

// Envelopes of instances that are over are forgotten, which changes no verdict, unless they are to be answered:
// the checker refutes each larger claim.
func TestMoot(t *testing.T) {
	c := polls(3, 1, 0, 0)
	a := voters(paxos[uint64], 2)
	honest := a.Moot
	a.Moot = nil
	if v := asked(t, a, c); v.Verdict != check.Holds || v.States != 56079 {
		t.Errorf("without the claim: %s, %d states, want 56079", v.Verdict, v.States)
	}
	for name, wrong := range map[string]func(p *process, e frame) bool{
		"what is to be answered": func(p *process, e frame) bool { return e.Kind != Ask && e.Instance < p.instance },
		"ASK":                    func(p *process, e frame) bool { return e.Kind == Ask && e.Instance < p.instance },
		"the present instance":   func(p *process, e frame) bool { return e.Kind == Part && e.Instance == p.instance },
	} {
		a.Moot = func(to protocol.Process[frame], from protocol.ID, e frame) bool {
			return honest(to, from, e) || e.Kind != Inner && wrong(to.(*process), e)
		}
		if _, err := check.Run(a, c); !errors.Is(err, check.ErrClaim) {
			t.Errorf("%s: %v, want a false claim", name, err)
		}
	}
}
