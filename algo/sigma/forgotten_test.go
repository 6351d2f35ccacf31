package sigma_test

import (
	"testing"

	"github.com/poundlock/poundlock/algo/sigma"
	"github.com/poundlock/poundlock/internal/lane"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
)

// An ignorant client hears that its lease at a server is over only when it begins the next session there: until then it
// counts on a server that has forgotten it.
type ignorant struct {
	protocol.Process[sigma.Message]
	over uint64 // the servers at which that is so
}

func (i *ignorant) Step(ev protocol.Event[sigma.Message], out *protocol.Out[sigma.Message]) {
	switch server := uint64(1) << ev.From; {
	case ev.Kind == protocol.Suspect:
		i.over |= server
		return
	case ev.Kind == protocol.Restore && i.over&server != 0:
		i.over &^= server
		i.Process.Step(protocol.Event[sigma.Message]{Input: protocol.NewSuspect(ev.From)}, out)
	}
	i.Process.Step(ev, out)
}

func (i *ignorant) State(c *protocol.Codec) {
	c.Uint(&i.over)
	i.Process.State(c)
}

// A server that forgets a client which does not know it, because something between them has ended the server's half of their
// connection (node.Config.EndWithConnection), is one that has lost its memory, and counts in the same budget: 2m-n-1
// of them let nobody in beside the client, and one more does.
func TestForgottenClient(t *testing.T) {
	a := sigma.Algorithm
	a.New = func(id protocol.ID, c protocol.Config) protocol.Process[sigma.Message] {
		p := sigma.Algorithm.New(id, c)
		if id < protocol.ID(c.N) {
			return p
		}
		return &ignorant{Process: p}
	}
	a.Unsettled, a.Invariants, a.Stale, a.Confluent, a.MapState, a.MapMsg = nil, nil, nil, nil, nil, nil
	for _, x := range []struct {
		n, quorum, forget int // 2m-n-1 may
		want              check.Result
		long              bool
	}{
		{2, 2, 1, check.Holds, false},
		{2, 2, 2, check.Violated, false},
		{3, 2, 1, check.Violated, false},
		{3, 3, 2, check.Holds, true},
		{4, 3, 1, check.Holds, true},
	} {
		if x.long && !lane.Long.Adds(t, "a larger model") {
			continue
		}
		v, err := check.Run(a, check.Config{
			Config:  protocol.Config{N: x.n, Options: map[string]int64{"quorum": int64(x.quorum), "promise": 1}},
			Clients: 2, Suspect: x.forget, FIFO: true, Timers: check.NeverFire, Properties: []string{check.Exclusion},
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("n=%d m=%d, %d forget: %s in %d states", x.n, x.quorum, x.forget, v.Verdict, v.States)
		if v.Verdict != x.want {
			t.Errorf("n=%d m=%d, %d forget: %s, want %s: %s", x.n, x.quorum, x.forget, v.Verdict, x.want, v.Reason)
		}
	}
}
