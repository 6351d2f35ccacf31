package consensus

import (
	"testing"

	"github.com/poundlock/poundlock/internal/lane"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/wrap/consensus/consensustest"
)

// narrow has room for so many envelopes of later instances.
func narrow(early int) func(algorithm) protocol.Algorithm[frame] {
	return func(alg algorithm) protocol.Algorithm[frame] {
		return over(alg, paxos[uint64], room{usual.decisions, early, usual.bytes})
	}
}

// A mute process does not ask for what it has dropped.
type mute struct{ *process }

func (p mute) Unwrap() any { return p.process }

func (p mute) Step(ev protocol.Event[frame], out *protocol.Out[frame]) {
	clear(p.missed)
	p.process.Step(ev, out)
}

func silent(alg algorithm) protocol.Algorithm[frame] {
	a := narrow(0)(alg)
	made := a.New
	a.New = func(id protocol.ID, c protocol.Config) protocol.Process[frame] { return mute{made(id, c).(*process)} }
	return a
}

// All properties hold where no envelope of a later instance has room.
func TestConformanceRoom(t *testing.T) {
	consensustest.Run(t, consensustest.Service[frame]{
		With:     narrow(0),
		Instance: func(f frame) (uint64, bool) { return f.Instance, f.Kind == Part },
		Broken:   []consensustest.Broken[frame]{{Name: "what was dropped is not asked for", Want: consensustest.Termination, In: consensustest.Seeds{consensustest.Random: 40, consensustest.Minorities: 1, consensustest.Candidates: 8, consensustest.Doubts: 1, consensustest.Followers: 6}, With: silent}},
	})
}

// Decisions that are kept, and envelopes that wait, have so many bytes at most, but for the last decision.
func TestRoomBytes(t *testing.T) {
	lane.CI.Need(t, "two seconds of large messages")
	const size, most = 1 << 20, 16
	a := values
	a.New = func(protocol.ID, protocol.Config) protocol.Process[uint64] {
		return &proposer{1, func(protocol.ID, uint64) {}}
	}
	large := func(size int) {
		a.Fields = func(v uint64, c *protocol.Codec) uint64 {
			v = values.Fields(v, c)
			for range size {
				zero := false
				c.Bool(&zero)
			}
			return v
		}
	}
	large(size)
	p := With(a).New(1, protocol.Config{N: 3}).(*process)
	var out protocol.Out[frame]
	feed := func(f frame) {
		out.Reset()
		p.Step(protocol.Event[frame]{Input: protocol.Input{Kind: protocol.Receive, From: 0}, Msg: f}, &out)
	}
	p.present = true
	for k := range uint64(40) {
		feed(frame{Kind: Propose, Instance: 1 + k})
	}
	if k := len(p.early); k >= most || k < most-2 {
		t.Errorf("%d envelopes wait, want less than %d", k, most)
	}
	for k := range uint64(40) {
		feed(frame{Kind: Decided, Instance: k})
	}
	if k := len(p.decisions); k >= most || k < most-2 {
		t.Errorf("%d decisions are kept, want less than %d", k, most)
	}
	again := With(a).New(1, protocol.Config{N: 3}).(*process)
	if _, err := protocol.LoadState(protocol.AppendState(nil, p), again); err != nil || again.decisions[0] != p.decisions[0] {
		t.Errorf("%+v is loaded as %+v, %v", p.decisions[0], again.decisions[0], err)
	}
	large(usual.bytes)
	p = With(a).New(1, protocol.Config{N: 3}).(*process)
	p.present = true
	feed(frame{Kind: Decided})
	feed(frame{Kind: Decided, Instance: 1})
	if k := len(p.decisions); k != 1 {
		t.Errorf("%d decisions are kept, want the last one", k)
	}
}
