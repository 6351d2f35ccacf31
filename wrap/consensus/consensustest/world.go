package consensustest

import (
	"bytes"
	"fmt"
	"math/rand/v2"

	"github.com/poundlock/poundlock/algo/algotest"
	"github.com/poundlock/poundlock/protocol"
)

// A World is a run of random steps: messages in any order, false suspicions, crashes of a minority,
// and either returns or sessions that end, with what is on its way in them. Then it calms down, and
// everything is decided.
type World[F any] struct {
	*algotest.System[F]
	N     int
	Lives []uint64 // by process
	Trace []string

	s         *Service[F]
	broken    *Broken[F]
	alg       protocol.Algorithm[F]
	l         *ledger
	r         *rand.Rand
	faults    faults
	suspected map[protocol.Channel]bool // From suspects To
	cut       map[protocol.Channel]bool // no session: From is the lesser
}

// Faults that exclude each other: a process that comes back may find that a decision is known to few, and needs
// channels that deliver it.
type faults uint8

const (
	crashes faults = iota // what crashed processes have sent may be lost
	returns
	breaks // and crashes
)

// newWorld starts n processes, of which some propose nothing.
func newWorld[F any](s *Service[F], b *Broken[F], n int, f faults, r *rand.Rand, follow ...int) *World[F] {
	w := &World[F]{
		N: n, Lives: make([]uint64, n), s: s, broken: b, l: newLedger(), r: r, faults: f,
		suspected: map[protocol.Channel]bool{}, cut: map[protocol.Channel]bool{},
	}
	for _, id := range follow {
		w.l.follows[id] = true
	}
	with := s.With
	if b != nil && b.With != nil {
		with = b.With
	}
	w.alg = with(tellers(w.l))
	made := w.alg.New
	w.alg.New = func(id protocol.ID, c protocol.Config) protocol.Process[F] {
		return &watched[F]{Process: made(id, c), w: w}
	}
	for id := range w.Lives {
		w.Lives[id] = 1
	}
	w.System = algotest.NewSystem(w.alg, protocol.Config{N: n}, 0)
	return w
}

// A watched process is one whose messages are looked at: whether it takes part where it must not.
type watched[F any] struct {
	protocol.Process[F]
	w *World[F]
}

// Unwrap returns it.
func (p *watched[F]) Unwrap() any { return p.Process }

// Step implements protocol.Process.
func (p *watched[F]) Step(ev protocol.Event[F], out *protocol.Out[F]) {
	p.Process.Step(ev, out)
	if p.w.s.Instance == nil {
		return
	}
	me := tellerIn(p.Process)
	for _, e := range out.Effects {
		if e.Do != protocol.Send && e.Do != protocol.Broadcast {
			continue
		}
		if k, part := p.w.s.Instance(e.Msg); part && (!me.present || k < me.first) {
			p.w.l.fault(fmt.Sprintf("%s: process %d, life %d, sends %s", Participation, me.id, me.life, p.w.alg.Text(e.Msg)))
		}
	}
}

// tellerIn is the process of the algorithm in another one.
func tellerIn(p any) *teller {
	t, _ := protocol.As[*teller](p)
	return t
}

func (w *World[F]) teller(id protocol.ID) *teller { return tellerIn(w.Procs[id]) }

func (w *World[F]) note(format string, args ...any) {
	w.Trace = append(w.Trace, fmt.Sprintf(format, args...))
}

// up are the processes that have not crashed, and parts how many of them take part.
func (w *World[F]) up() (ids []protocol.ID, parts int) {
	for id, p := range w.Procs {
		if p != nil {
			ids = append(ids, protocol.ID(id))
			if w.teller(protocol.ID(id)).present {
				parts++
			}
		}
	}
	return ids, parts
}

// Suspect makes process a suspect b, which is said as often as it comes, or trust it again.
func (w *World[F]) Suspect(a, b protocol.ID, yes bool) {
	ch := protocol.Channel{From: a, To: b}
	if a == b || !yes && !w.suspected[ch] || w.Procs[a] == nil {
		return
	}
	w.suspected[ch] = yes
	kind := protocol.Restore
	if yes {
		kind = protocol.Suspect
	}
	w.note("%d suspects %d: %v", a, b, yes)
	w.Step(a, protocol.Input{Kind: kind, From: b, Arg: w.Lives[b]})
}

// Kill crashes a process. What it has sent is lost, too, if silenced is set.
func (w *World[F]) Kill(id protocol.ID, silenced bool) {
	w.note("%d crashes", id)
	w.Crash(id)
	for j := range protocol.ID(w.N) {
		delete(w.suspected, protocol.Channel{From: id, To: j})
		if silenced {
			w.lose(id, j)
		}
	}
}

func (w *World[F]) lose(from, to protocol.ID) {
	for len(w.InFlight(from, to)) > 0 {
		w.Drop(from, to, 0)
	}
}

// thin loses some of what a process has sent, or all.
func (w *World[F]) thin(id protocol.ID) {
	kept := w.r.IntN(3)
	for to := range protocol.ID(w.N) {
		for k := len(w.InFlight(id, to)) - 1; k >= 0; k-- {
			if w.r.IntN(4) >= kept {
				w.note("%d never gets of %d %s", to, id, w.alg.Text(w.InFlight(id, to)[k]))
				w.Drop(id, to, k)
			}
		}
	}
}

// recover lets a process come back, as a new life that has lost everything.
func (w *World[F]) recover(id protocol.ID) {
	w.Lives[id]++
	life := w.Lives[id]
	if w.amnesia() {
		life = 1
	}
	w.note("%d is back", id)
	w.Recover(id, life)
	for j := range protocol.ID(w.N) {
		if j != id && w.Procs[j] != nil && !w.suspected[protocol.Channel{From: j, To: id}] {
			w.Step(j, protocol.NewRestore(id, w.Lives[id]))
		}
	}
}

func (w *World[F]) amnesia() bool { return w.broken != nil && w.broken.Amnesia }

// Deliver1 delivers any one message, or tells a process a decision of the service. It reports
// whether there was one.
func (w *World[F]) Deliver1() bool {
	full := w.full()
	ids, _ := w.up()
	if k := w.r.IntN(len(full) + len(ids)); k < len(full) {
		ch := full[k]
		w.get(ch.From, ch.To, w.r.IntN(len(w.InFlight(ch.From, ch.To))))
		return true
	}
	for _, k := range w.r.Perm(len(ids)) {
		if w.hear(ids[k]) {
			return true
		}
	}
	if len(full) > 0 {
		w.get(full[0].From, full[0].To, 0)
	}
	return len(full) > 0
}

// full are the channels in which messages are on their way.
func (w *World[F]) full() (list []protocol.Channel) {
	for a := range protocol.ID(w.N) {
		for b := range protocol.ID(w.N) {
			if len(w.InFlight(a, b)) > 0 {
				list = append(list, protocol.Channel{From: a, To: b})
			}
		}
	}
	return list
}

// last delivers the message that was sent last in any one channel.
func (w *World[F]) last() {
	if full := w.full(); len(full) > 0 {
		ch := full[w.r.IntN(len(full))]
		w.get(ch.From, ch.To, len(w.InFlight(ch.From, ch.To))-1)
	}
}

func (w *World[F]) get(from, to protocol.ID, k int) {
	m := w.InFlight(from, to)[k]
	if w.cut[pair(from, to)] {
		w.note("%d loses of %d %s", to, from, w.alg.Text(m))
		w.Drop(from, to, k)
		return
	}
	w.note("%d gets of %d %s", to, from, w.alg.Text(m))
	w.Deliver(from, to, k)
	if w.suspected[protocol.Channel{From: to, To: from}] {
		w.Suspect(to, from, true) // it is a level
	}
}

// hear decides what somebody proposed to the service, and tells it to a process.
func (w *World[F]) hear(id protocol.ID) bool {
	k := w.teller(id).next
	if list := w.Proposals(k); !w.Decides(k) && len(list) > 0 {
		i := w.r.IntN(len(list))
		w.note("instance %d is decided: %s", k, w.alg.Text(list[i]))
		w.Decide(k, i)
	}
	heard := w.Decided(id)
	if heard {
		w.note("%d hears", id)
	}
	return heard
}

func pair(a, b protocol.ID) protocol.Channel { return protocol.Channel{From: min(a, b), To: max(a, b)} }

// end ends the session of two processes: what is on its way in it is lost, and what is sent until the
// next one. Both suspect each other.
func (w *World[F]) end(a, b protocol.ID) {
	if a == b || w.cut[pair(a, b)] {
		return
	}
	w.note("the session of %d and %d ends", a, b)
	w.cut[pair(a, b)] = true
	w.lose(a, b)
	w.lose(b, a)
	for _, ch := range []protocol.Channel{{From: a, To: b}, {From: b, To: a}} {
		w.Suspect(ch.From, ch.To, true)
	}
}

// session ends the session of two processes, or begins the next one.
func (w *World[F]) session(a, b protocol.ID) {
	if w.cut[pair(a, b)] {
		w.renew(a, b)
	} else if w.Procs[b] != nil {
		w.end(a, b)
	}
}

// renew begins the next session, of which both hear, a first.
func (w *World[F]) renew(a, b protocol.ID) {
	w.note("%d and %d have a session", a, b)
	w.lose(a, b)
	w.lose(b, a)
	delete(w.cut, pair(a, b))
	for _, ch := range []protocol.Channel{{From: a, To: b}, {From: b, To: a}} {
		if w.Procs[ch.To] != nil {
			w.suspected[ch] = true // it may have been restored by mistake meanwhile
			w.Suspect(ch.From, ch.To, false)
		}
	}
}

// reload puts a process in the place of another one, with its state.
func (w *World[F]) reload(id protocol.ID) {
	if w.broken != nil {
		return
	}
	state := protocol.AppendState(nil, w.Procs[id])
	p := w.alg.New(id, protocol.Config{N: w.N})
	rest, err := protocol.LoadState(state, p)
	if again := protocol.AppendState(nil, p); err != nil || len(rest) > 0 || !bytes.Equal(again, state) {
		w.l.fault(fmt.Sprintf("state %x is loaded as %x, %v, %d bytes left", state, again, err, len(rest)))
	}
	w.Procs[id] = p
}

// codec writes and reads all messages on their way.
func (w *World[F]) codec(id protocol.ID) {
	for to := range protocol.ID(w.N) {
		for _, m := range w.InFlight(id, to) {
			b := w.alg.Append(nil, m)
			got, rest, err := w.alg.Read(b)
			if err != nil || len(rest) > 0 || w.alg.Text(got) != w.alg.Text(m) || !bytes.Equal(w.alg.Append(nil, got), b) {
				w.l.fault(fmt.Sprintf("message %s is read as %s, %v", w.alg.Text(m), w.alg.Text(got), err))
			}
		}
	}
}

func (w *World[F]) step() {
	ids, parts := w.up()
	id, other := ids[w.r.IntN(len(ids))], protocol.ID(w.r.IntN(w.N))
	switch k := w.r.IntN(100); {
	case k < 10:
		w.Suspect(id, other, w.r.IntN(2) == 0)
	case k == 10:
		w.reload(id)
	case k == 11:
		w.codec(id)
	case k < 14, k < 18 && w.faults == returns:
		if t := w.teller(id); !t.present || 2*(parts-1) > w.N {
			w.Kill(id, (w.faults != returns || w.amnesia()) && w.r.IntN(2) == 0)
		}
	case k < 24 && w.faults == returns:
		if w.Procs[other] == nil && w.Lives[other] < 15 {
			w.recover(other)
		}
	case k < 17 && w.faults == breaks:
		w.session(id, other)
	default:
		w.Deliver1()
	}
	if m, ok := protocol.As[Mortal](w.Procs[id]); ok && m.Dead() {
		w.Kill(id, true)
	}
}

// calm ends the faults: suspicions are right from now on, and everything that is on its way arrives.
func (w *World[F]) calm() {
	if w.l.first != "" {
		return
	}
	w.note("calm")
	for a := range protocol.ID(w.N) {
		for b := range a {
			if w.cut[pair(a, b)] {
				w.renew(a, b)
			}
		}
	}
	for _, a := range w.r.Perm(w.N) {
		for _, b := range w.r.Perm(w.N) {
			w.Suspect(protocol.ID(a), protocol.ID(b), w.Procs[b] == nil)
		}
	}
	w.rest()
}

// rest delivers everything, and looks whether all have heard of all decisions.
func (w *World[F]) rest() {
	for left := 50_000; w.l.first == "" && w.Deliver1(); left-- {
		if left == 0 {
			w.l.fault(Termination + ": it does not come to rest")
		}
	}
	ids, _ := w.up()
	procs := make([]*teller, 0, w.N)
	for _, id := range ids {
		procs = append(procs, w.teller(id))
	}
	w.l.rest(procs)
}
