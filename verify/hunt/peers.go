package hunt

import (
	"fmt"
	"slices"
	"time"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/history"
	"github.com/poundlock/poundlock/verify/scenario"
	"github.com/poundlock/poundlock/verify/sim"
)

// peers reports whether there are no clients: members crash, and suspect each other.
func (m *model[M]) peers() bool { return m.alg.Users != protocol.Clients }

// elects reports whether the algorithm is an election.
func (m *model[M]) elects() bool { return m.alg.Users == protocol.Nobody }

// mortal reports whether process i may crash.
func (m *model[M]) mortal(i int) bool { return m.isUser(i) || m.elects() }

// several reports whether more than one user lives, and enough members do without process i.
func (m *model[M]) several(i int) bool {
	k := 0
	for j := range m.procs {
		if m.mortal(j) && m.procs[j].process != nil {
			k++
		}
	}
	return k > 1 && (!m.peers() || m.alg.Spare(m.processes(), protocol.ID(i)))
}

// canDoubt reports whether the detector may tell member a that it suspects member b: b
// crashed, or a suspects it, or it is a mistake.
func (m *model[M]) canDoubt(a, b int) bool {
	if m.alg.Detector == protocol.NoDetector || a == b || m.procs[a].process == nil {
		return false
	}
	return m.procs[b].process == nil || m.alg.Detector == protocol.UnreliableDetector
}

// doubt lets member a suspect member b.
func (m *model[M]) doubt(a, b int) {
	m.procs[a].doubts |= 1 << b
	m.input(a, protocol.Input{Kind: protocol.Suspect, From: protocol.ID(b)})
}

// canTrust reports whether the detector may tell member a that member b is up: it suspects it, or does not know that
// life of it.
func (m *model[M]) canTrust(a, b int) bool {
	p := &m.procs[a]
	if p.process == nil || m.procs[b].process == nil {
		return false
	}
	return p.doubts&(1<<b) != 0 || m.renews && p.known[b] != m.procs[b].life
}

// meets: process i begins, and knows who is there.
func (m *model[M]) meets(i int) {
	if !m.renews {
		return
	}
	p := &m.procs[i]
	p.known = fresh(p.known, m.sys.N)
	for j := range p.known {
		p.known[j] = m.procs[j].life
	}
}

func (m *model[M]) trust(a, b int) {
	m.procs[a].doubts &^= 1 << b
	if m.renews {
		m.procs[a].known[b] = m.procs[b].life
	}
	m.input(a, protocol.Input{Kind: protocol.Restore, From: protocol.ID(b), Arg: m.procs[b].life})
}

// recovers lets a member that crashed come back empty.
func (m *model[M]) recovers(c *choice) bool {
	i := int(c.a)
	p := &m.procs[i]
	if !m.peers() || i >= m.sys.N || p.process != nil || m.alg.Tolerates&protocol.Recovery == 0 {
		return false
	}
	p.life++
	if m.mutual {
		m.unleased(i)
	}
	m.meets(i)
	m.stepping = true
	p.process = m.alg.New(protocol.ID(i), m.sys.Config)
	m.stepping = false
	m.input(i, protocol.Input{Kind: protocol.Start, Arg: p.life})
	return true
}

// lead records whom process i names.
func (m *model[M]) lead(i int, a protocol.Act) {
	if !m.elects() {
		return // it is for those who watch
	}
	t, name := history.Term{Epoch: a.Arg, Leader: a.To}, m.names().Of
	for _, err := range []error{m.procs[i].leading.Name(t), m.terms.Add(t, name)} {
		if err != nil {
			m.report(check.Epochs, err.Error())
		}
	}
}

// agree reports that live processes do not name one leader, the highest of them, where
// nothing is left that must happen.
func (m *model[M]) agree() {
	all := make(history.Leaders, m.sys.N)
	for i := range all {
		all[i] = m.procs[i].leading
		all[i].Up = m.procs[i].process != nil
	}
	if err := all.Agreement(m.names().Of); err != nil {
		m.report(check.Agreement, err.Error())
	}
}

// waiting reports whether a timer of process i does not fire yet because time-outs are
// bounded: see check.Synchronous.
func (m *model[M]) waiting(i int) bool {
	if !m.alg.Synchronous {
		return false
	}
	near := func(f message[M]) bool { return int(f.from) == i || int(f.to) == i }
	if slices.ContainsFunc(m.flight, near) {
		return true
	}
	if !m.peers() || m.alg.Detector == protocol.NoDetector {
		return false
	}
	if m.mutual {
		return m.leaseNews(i)
	}
	for q := range m.sys.N {
		gone, doubted := m.procs[q].process == nil, m.procs[i].doubts&(1<<q) != 0
		if q != i && (gone != doubted || !gone && m.procs[q].doubts&(1<<i) != 0) {
			return true
		}
	}
	return false
}

// mistaken is how many suspicions of a run are mistakes.
func (m *model[M]) mistaken(run []choice) (k int) {
	if !m.peers() || m.mutual {
		return 0
	}
	m.reset()
	for _, c := range run {
		a, b := int(c.a), int(c.b)
		if c.verb == scenario.Suspect && m.procs[b].process != nil && m.procs[a].doubts&(1<<b) == 0 {
			k++
		}
		m.do(&c)
	}
	return k
}

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

// tellPeer lets the detector of a member tell it what it must.
func (w *walker[M]) tellPeer() bool {
	if w.mutual {
		return w.tellLease()
	}
	first := w.r.IntN(w.sys.N)
	for k := range w.sys.N {
		j := (first + k) % w.sys.N
		if w.procs[j].process == nil || w.stands(j) {
			continue
		}
		for q := range w.sys.N {
			c := choice{verb: scenario.Suspect, a: int32(j), b: int32(q)}
			switch gone := w.procs[q].process == nil; {
			case q == j:
			case gone && w.procs[j].told&(1<<q) == 0:
				w.procs[j].told |= 1 << q
				return w.take(c)
			case !gone && w.canTrust(j, q):
				c.verb = scenario.Restore
				return w.take(c)
			}
		}
	}
	return false
}

// told forgets what members were told of who crashed: a detector repeats it.
func (w *walker[M]) told() {
	for i := range w.procs {
		w.procs[i].told = 0
	}
}

// peerFault lets one fault of members happen that the plan has, if one can.
func (w *walker[M]) peerFault() bool {
	i, j := int32(w.r.IntN(w.sys.N)), int32(w.r.IntN(w.sys.N))
	switch w.r.IntN(3) {
	case 0:
		return w.p.has(crashes) && w.procs[i].process != nil && w.several(int(i)) && w.take(choice{verb: scenario.Crash, a: i})
	case 1:
		for k := 0; w.alg.Weak && k < w.sys.N && w.procs[i].process != nil; k++ {
			i = (i + 1) % int32(w.sys.N) // who is away does not matter: that somebody comes back does
		}
		return w.p.has(recoveries) && w.procs[i].process == nil && w.take(choice{verb: scenario.Recover, a: i})
	}
	if w.mutual {
		return w.p.has(lapses) && w.take(choice{verb: scenario.Lapse, a: i, b: j})
	}
	if w.p.has(storms) && w.r.IntN(2) == 0 {
		return w.gust()
	}
	return w.p.has(mistakes) && w.procs[j].process != nil && w.take(choice{verb: scenario.Suspect, a: i, b: j})
}

// strike lets a fault happen where nothing else can: an election rests until then.
func (w *walker[M]) strike() bool {
	const attempts = 50
	for k := 0; w.elects() && k < attempts; k++ {
		if w.fault() {
			return true
		}
	}
	return false
}

// unable says why nothing is left to happen although it should, in a calm.
func (w *walker[M]) unable() {
	if w.elects() {
		w.agree()
	} else if w.trying() >= 0 {
		users := slices.Clone(w.users)
		for i := range users {
			if w.procs[i].process == nil {
				users[i] = protocol.InRem
			}
		}
		w.report(check.Deadlock, users.Deadlock(w.names().Of, w.alg.Info, len(w.flight)))
	}
}

// endless says that a calm does not end.
func (w *walker[M]) endless(steps int) {
	if w.elects() {
		w.report(Stuck, fmt.Sprintf("stuck: the election goes on after %d steps without a fault", steps))
	} else if u := w.trying(); u >= 0 {
		w.report(Stuck, fmt.Sprintf("stuck: %s %s, and nobody entered in the last %d steps, without a fault",
			w.names().Of(protocol.ID(u)), history.Wait(w.users[u]), steps))
	}
}
