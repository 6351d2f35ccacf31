package hunt

import (
	"fmt"
	"time"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/history"
	"github.com/poundlock/poundlock/verify/scenario"
	"github.com/poundlock/poundlock/verify/sim"
	"github.com/poundlock/poundlock/verify/world"
)

// timePeers draws what a run with time has where there are no clients.
func (p *plan) timePeers(i protocol.Info) {
	const hop = time.Millisecond
	s := &p.config
	if i.Users == protocol.Nobody {
		s.Entries, s.Patience = []int{0}, patience/20 // no long hold makes it wait
	}
	if i.Users == protocol.Clients {
		return
	}
	if i.Detector != protocol.NoDetector {
		s.Detect = p.duration(hop/10, 30*hop)
	}
	if p.has(crashes) && p.has(recoveries) {
		s.RecoverEvery = p.duration(10*hop, time.Second)
	}
	if i.Synchronous { // no message may take longer than a time-out allows
		s.Delay, s.PauseEvery, s.PartitionEvery = sim.Constant(hop), 0, 0
		if s.Detect > 0 {
			s.Detect = p.duration(hop/10, hop)
		}
		if i.Delay != "" {
			p.Options[i.Delay] = int64(hop)
		}
	}
}

// peerFault lets one fault of members happen that the plan has, if one can.
func (w *walker) peerFault() bool {
	i, j := int32(w.r.IntN(w.sys.N)), int32(w.r.IntN(w.sys.N))
	switch w.r.IntN(3) {
	case 0:
		return w.p.has(crashes) && w.Is(int(i)) && w.several(int(i)) && w.take(world.Action{Verb: scenario.Crash, A: i})
	case 1:
		for k := 0; w.Weak && k < w.sys.N && w.Is(int(i)); k++ {
			i = (i + 1) % int32(w.sys.N) // who is away does not matter: that somebody comes back does
		}
		return w.p.has(recoveries) && !w.Is(int(i)) && w.take(world.Action{Verb: scenario.Recover, A: i})
	}
	if w.Mutual {
		return w.p.has(lapses) && w.take(world.Action{Verb: scenario.Lapse, A: i, B: j})
	}
	if w.p.has(storms) && w.r.IntN(2) == 0 {
		return w.burst()
	}
	return w.p.has(mistakes) && w.Is(int(j)) && w.take(world.Action{Verb: scenario.Suspect, A: i, B: j})
}

// forceFault lets a fault happen where nothing else can: an election rests until then.
func (w *walker) forceFault() bool {
	const attempts = 50
	for k := 0; w.Elects() && k < attempts; k++ {
		if w.fault() {
			return true
		}
	}
	return false
}

// unable says why nothing is left to happen although it should, in a calm.
func (w *walker) unable() {
	if w.Elects() {
		if err := w.Leaders(w.Ends, nil).Agreement(w.Names.Of); err != nil {
			w.Report(check.Agreement, err.Error())
		}
	} else if w.trying() >= 0 {
		w.Report(check.Deadlock, w.Users().Deadlock(w.Names.Of, w.Info, len(w.Flight)))
	}
}

// endless says that a calm does not end.
func (w *walker) endless(steps int) {
	if w.Elects() {
		w.Report(Stuck, fmt.Sprintf("stuck: the election goes on after %d steps without a fault", steps))
	} else if u := w.trying(); u >= 0 {
		w.Report(Stuck, fmt.Sprintf("stuck: %s %s, and nobody entered in the last %d steps, without a fault",
			w.Names.Of(protocol.ID(u)), history.Wait(w.Section(u)), steps))
	}
}
