package reliable

import (
	"fmt"
	"testing"
	"time"

	"github.com/poundlock/poundlock/algo/sigma"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/sim"
)

// steady simulates a client that stays inside for long, while its server asks each
// millisecond whether it still lives, on channels that lose a third. It is a fault if
// ever more waits than is sent within a few hundred milliseconds.
func steady() (string, error) {
	const most = 300
	w, waiting := Wrap(sigma.Algorithm), 0
	create := w.New
	w.New = func(id protocol.ID, c protocol.Config) protocol.Process[Frame[sigma.Message]] {
		return watched{create(id, c).(*Process[sigma.Message]), &waiting}
	}
	w.Unsettled = nil // it expects no process around the wrapper
	r, err := sim.Run(w, sim.Config{
		Config: protocol.Config{N: 1, Options: map[string]int64{"check": 1e6}}, Clients: 1, Entries: []int{1},
		Hold: sim.Constant(20 * time.Second), Loss: 0.33, Seed: 1,
	})
	switch {
	case err != nil:
		return "", err
	case r.ViolationCount > 0:
		return "simulated, " + r.Violations[0], nil
	case r.MessagesByKind["CHECK"] < 10_000:
		return "", fmt.Errorf("link: only %d messages in twenty seconds", r.MessagesByKind["CHECK"])
	case waiting > most:
		return fmt.Sprintf("backlog: %d messages are not acknowledged", waiting), nil
	}
	return "", nil
}

// A watched process notes how much waits at most.
type watched struct {
	*Process[sigma.Message]
	most *int
}

func (p watched) Step(ev protocol.Event[Frame[sigma.Message]], out *protocol.Out[Frame[sigma.Message]]) {
	p.Process.Step(ev, out)
	for q := range p.others {
		*p.most = max(*p.most, q.window.Unacked())
	}
}

// A steady flow of messages does not outrun a channel that loses much.
func TestSteadyFlow(t *testing.T) {
	if fault, err := steady(); fault != "" || err != nil {
		t.Error(fault, err)
	}
}
