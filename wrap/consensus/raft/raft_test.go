package raft

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	etcd "go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/poundlock/poundlock/algo/algotest"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/wrap/consensus"
	"github.com/poundlock/poundlock/wrap/consensus/consensustest"
)

type (
	frame     = Frame[uint64]
	message   = Message[uint64]
	turn      = consensus.Turn[uint64, message]
	algorithm = protocol.Algorithm[uint64]
)

func TestConformance(t *testing.T) {
	consensustest.Run(t, consensustest.Service[frame]{
		With: func(alg algorithm) protocol.Algorithm[frame] {
			return with(alg, func(v any) { t.Errorf("the library panics: %v", v) })
		},
		Instance:   func(f frame) (uint64, bool) { return f.Instance, f.Kind == consensus.Part },
		Interrupts: true,
		Broken: []consensustest.Broken[frame]{
			{Name: "who comes back is who it was", Want: consensustest.Agreement, In: consensustest.Seeds{consensustest.Random: 210}, With: With[uint64], Amnesia: true},
			{Name: "votes are forgotten", Want: consensustest.Agreement, In: consensustest.Seeds{consensustest.Random: 383, consensustest.Doubts: 333}, With: broken(mistake{
				before: func(p *group[uint64], m message) bool {
					if m.Kind == Vote && p.hard() != nil {
						s := p.stored()
						s.hard = &raftpb.HardState{Term: s.hard.Term, Commit: s.hard.Commit}
						p.start(s)
					}
					return true
				},
			})},
			{Name: "logs are forgotten", Want: consensustest.Agreement, In: consensustest.Seeds{consensustest.Minorities: 7, consensustest.Doubts: 2, consensustest.Followers: 32}, With: broken(mistake{
				before: func(p *group[uint64], m message) bool {
					if m.Kind == Vote && p.hard() != nil {
						p.start(stored{hard: &raftpb.HardState{Term: p.hard().Term, Vote: p.hard().Vote}})
					}
					return true
				},
			})},
			{Name: "who stood once does not again", Want: consensustest.Termination, In: consensustest.Seeds{consensustest.Random: 5, consensustest.Minorities: 1, consensustest.Candidates: 0, consensustest.Doubts: 2, consensustest.Followers: 1}, With: broken(mistake{once: true})},
			{Name: "who has the longer log does not stand", Want: consensustest.Termination, In: consensustest.Seeds{consensustest.Random: 39, consensustest.Minorities: 1, consensustest.Candidates: 1, consensustest.Doubts: 9, consensustest.Followers: 6}, With: broken(mistake{
				before: func(_ *group[uint64], m message) bool { return m.Kind != Turn },
			})},
			{Name: "old terms are left without an answer", Want: consensustest.Termination, In: consensustest.Seeds{consensustest.Random: 33, consensustest.Minorities: 268, consensustest.Doubts: 553}, With: broken(mistake{
				before: func(p *group[uint64], m message) bool { return m.Term >= p.hard().GetTerm() || !m.asks() },
			})},
			{Name: "what is lost is lost", Want: consensustest.Termination, In: consensustest.Seeds{consensustest.Random: 25, consensustest.Doubts: 7}, With: broken(mistake{terse: true})},
			{Name: "who had its turn is waited for", Want: consensustest.Termination, In: consensustest.Seeds{consensustest.Followers: 1390}, With: broken(mistake{waits: true})},
			{Name: "decides before others have it", Want: consensustest.Agreement, In: consensustest.Seeds{consensustest.Random: 26, consensustest.Minorities: 0, consensustest.Candidates: 45, consensustest.Doubts: 8, consensustest.Followers: 1}, With: broken(mistake{premature: true})},
			{Name: "draws lots", Want: consensustest.Determinism, In: consensustest.Seeds{consensustest.Traces: 8}, With: broken(mistake{lots: true})},
		},
	})
}

// A mistake is what is wrong with a group.
type mistake struct {
	before      func(p *group[uint64], m message) bool // false: it does not receive m
	once, terse bool
	waits       bool // for who had its turn, and is refused by this one
	premature   bool // whoever leads decides at once
	lots        bool // answers are left out by chance
}

func broken(e mistake) func(algorithm) protocol.Algorithm[frame] {
	return func(alg algorithm) protocol.Algorithm[frame] {
		return consensus.Over(alg, func(alg *algorithm) consensus.Core[uint64, message] {
			c := core(alg, func(any) {})
			made := c.New
			c.New = func(id protocol.ID, n int) consensus.Instance[uint64, message] {
				return &mistaken{group: made(id, n).(*group[uint64]), mistake: e}
			}
			return c
		})
	}
}

type mistaken struct {
	*group[uint64]
	mistake
	stood bool
}

func (p *mistaken) Lead(v uint64, t *turn) {
	if !p.once || !p.stood {
		p.stood = true
		p.group.Lead(v, t)
	}
}

func (p *mistaken) Receive(from protocol.ID, m message, t *turn) {
	if p.lots && m.Kind == Old && rand.IntN(2) == 0 {
		return
	}
	turned := p.turned && p.ahead == from && m.Kind == Vote
	if p.before == nil || p.before(p.group, m) {
		p.group.Receive(from, m, t)
	}
	if p.waits && turned && p.ahead == p.id && !p.attempt {
		p.turned, p.ahead = true, from
	}
	if p.premature && p.held && p.role() == etcd.StateLeader {
		t.Decide(p.value)
	}
}

func (p *mistaken) Repeat(j protocol.ID, t *turn) {
	if !p.terse {
		p.group.Repeat(j, t)
	}
}

// A decision costs what doc.go says, also where all others suspect the first process by mistake.
func TestCost(t *testing.T) {
	for n := 2; n <= 9; n++ {
		last, messages := protocol.ID(n-1), 7*(n-1)+2*(n/2-1)
		for _, c := range []struct {
			who       protocol.ID
			suspected int
			want      consensustest.Cost
		}{
			{0, 0, consensustest.Cost{Messages: messages, First: 6, All: 7}},
			{last, 0, consensustest.Cost{Messages: messages + 1, First: 7, All: 8}},
			{1, 1, consensustest.Cost{Messages: messages, First: 6, All: 7}},
		} {
			if got := consensustest.Measure(With[uint64], n, c.who, c.suspected); got != c.want {
				t.Errorf("n=%d, process %d proposes, %d suspected: %+v, want %+v", n, c.who, c.suspected, got, c.want)
			}
		}
	}
}

// A message that makes the library panic is as good as lost, wherever it comes in a run: the process
// goes on from what it has stored. What no process would send is not even read.
func TestHostile(t *testing.T) {
	entry := []Entry[uint64]{{Term: 1, Held: true, Value: 9}}
	panics := 0
	a := with(proposers, func(any) { panics++ })
	for _, m := range []message{
		{Kind: Heartbeat, Term: 1, Commit: 9},
		{Kind: AppendResp, Term: 1, Index: 9},
		{Kind: AppendResp, Term: 1, Index: 9, Reject: true, Hint: 8, LogTerm: 1},
		{Kind: Append, Term: 1, Index: 1, LogTerm: 1, Entries: entry},
		{Kind: Append, Term: 1, Index: 0, Commit: 2, Entries: entry},
		{Kind: Append, Term: 1, Index: most, LogTerm: 1, Commit: most},
		{Kind: Vote, Term: most, LogTerm: most, Index: most},
		{Kind: HeartbeatResp, Term: 1},
		{Kind: Turn, Entries: []Entry[uint64]{{Held: true, Value: 9}}},
	} {
		f := frame{Kind: consensus.Part, Part: &m}
		if _, _, err := a.Read(a.Append(nil, f)); err != nil {
			t.Errorf("%s is not read: %v", a.Text(f), err)
		}
		for delivered := range 12 {
			for id := range protocol.ID(3) {
				s := algotest.NewSystem(a, protocol.Config{N: 3}, 0)
				for k := range delivered {
					for ch := range protocol.ID(9) {
						if from, to := (ch+protocol.ID(k))%3, ch/3; len(s.InFlight(from, to)) > 0 {
							s.Deliver(from, to, 0)
							break
						}
					}
				}
				p := s.Procs[id]
				p.Step(protocol.Event[frame]{Input: protocol.Input{Kind: protocol.Receive, From: (id + 1) % 3}, Msg: f}, &protocol.Out[frame]{})
				state, q := protocol.AppendState(nil, p), a.New(id, protocol.Config{N: 3})
				if rest, err := protocol.LoadState(state, q); err != nil || len(rest) > 0 || !bytes.Equal(protocol.AppendState(nil, q), state) {
					t.Errorf("%s: state %x is not loaded: %v", a.Text(f), state, err)
				}
				s.Settle()
			}
		}
	}
	if panics == 0 {
		t.Error("nothing makes the library panic: this shows nothing")
	}
	for _, m := range []message{
		{Kind: Vote},
		{Kind: Vote, Term: most + 1},
		{Kind: Vote, Term: 1, LogTerm: 2},
		{Kind: Append, Term: 1, Entries: []Entry[uint64]{{Term: 2}}},
		{Kind: Append, Term: 3, LogTerm: 2, Entries: []Entry[uint64]{{Term: 1}}},
		{Kind: Append, Term: 3, Entries: []Entry[uint64]{{}}},
		{Kind: Turn},
		{Kind: Turn, Entries: []Entry[uint64]{{Term: 1, Held: true}}},
		{Kind: Old + 1, Term: 1},
	} {
		if _, _, err := a.Read(a.Append(nil, frame{Kind: consensus.Part, Part: &m})); err == nil {
			t.Errorf("%+v is read", m)
		}
	}
}

// What the library draws by lot and logs is without effect: see TestConformance/traces. And a state
// that no process has is refused.
func TestLoadState(t *testing.T) {
	s := algotest.NewSystem(With(proposers), protocol.Config{N: 3}, 0)
	s.Deliver(0, 1, 0)
	s.Deliver(1, 0, 0)
	for _, p := range s.Procs {
		state := protocol.AppendState(nil, p)
		for i := range state {
			for _, v := range []byte{0, 1, 2, 7, 127} {
				bad := slices.Clone(state)
				bad[i] = v
				_, _ = protocol.LoadState(bad, With(proposers).New(0, protocol.Config{N: 3})) // and no panic escapes
				if _, err := protocol.LoadState(state[:i], With(proposers).New(0, protocol.Config{N: 3})); err == nil {
					t.Fatalf("%d bytes of %d are a state", i, len(state))
				}
			}
		}
	}
}

// Proposers propose what their id is.
var proposers = algorithm{
	Info: protocol.Info{Name: "proposers", Consensus: true},
	New:  func(id protocol.ID, _ protocol.Config) protocol.Process[uint64] { return proposer(id) },
	Fields: func(v uint64, c *protocol.Codec) uint64 {
		protocol.Upto(c, &v, math.MaxUint8)
		return v
	},
	Ints: func(uint64) int { return 1 },
	Text: func(v uint64) string { return fmt.Sprint(v) },
}

type proposer protocol.ID

func (p proposer) Step(ev protocol.Event[uint64], out *protocol.Out[uint64]) {
	if ev.Kind == protocol.Start {
		out.Propose(0, uint64(p))
	}
}

// State implements protocol.Process.
func (p proposer) State(c *protocol.Codec) {}
