package wme

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/poundlock/poundlock/algotest"
	"github.com/poundlock/poundlock/consensus"
	"github.com/poundlock/poundlock/history"
	"github.com/poundlock/poundlock/protocol"
)

// A storm is a run of random steps: messages in any order, false suspicions, decisions at any
// time, crashes of a minority and returns. Then it calms down, and everybody gets what it wants.
type storm[M any] struct {
	*algotest.System[M]
	alg       protocol.Algorithm[M]
	config    protocol.Config
	bare      func(protocol.Process[M]) *Process
	r         *rand.Rand
	n         int
	suspected map[protocol.Channel]bool // From suspects To
	lives     []uint64
	ops       int
	delivered int
	amnesia   bool                      // who comes back is taken for who it was
	loses     bool                      // sessions end, and with them what is on its way: with option heal
	apart     map[protocol.Channel]bool // pairs without a session: both directions
	log       []string
}

func (w *storm[M]) note(format string, args ...any) {
	w.log = append(w.log, fmt.Sprintf(format, args...))
}

func (w *storm[M]) up() (ids []protocol.ID) {
	for id, p := range w.Procs {
		if p != nil {
			ids = append(ids, protocol.ID(id))
		}
	}
	return ids
}

func (w *storm[M]) any(ids []protocol.ID) protocol.ID { return ids[w.r.IntN(len(ids))] }

func (w *storm[M]) suspect(a, b protocol.ID, yes bool) {
	ch := protocol.Channel{From: a, To: b}
	if w.suspected[ch] == yes {
		return
	}
	w.suspected[ch] = yes
	kind := protocol.Restore
	if yes {
		kind = protocol.Suspect
	}
	w.note("%d suspects %d: %v", a, b, yes)
	w.Step(a, protocol.Input{Kind: kind, From: b, Arg: w.lives[b]})
}

// user makes the user of a process do something.
func (w *storm[M]) user(id protocol.ID, leave bool) {
	switch w.Users[id] {
	case protocol.InRem:
		if !leave {
			w.note("%d tries", id)
			w.Try(id)
		}
	case protocol.InTry:
		if !leave && w.r.IntN(8) == 0 {
			w.note("%d cancels", id)
			w.Step(id, protocol.Input{Kind: protocol.Cancel})
		}
	case protocol.InCrit:
		if !leave && w.r.IntN(3) > 0 {
			w.ops++
			w.note("%d issues %d", id, w.ops)
			w.Issue(id, fmt.Sprint("op", w.ops))
			return
		}
		w.note("%d exits", id)
		w.Exit(id)
	case protocol.InLost:
		w.note("%d exits, ejected", id)
		w.Exit(id)
	}
}

func (w *storm[M]) step() {
	id := w.any(w.up())
	w.lose()
	switch k := w.r.IntN(100); {
	case k < 60:
		var full []protocol.Channel
		for a := range protocol.ID(w.n) {
			for b := range protocol.ID(w.n) {
				if len(w.InFlight(a, b)) > 0 {
					full = append(full, protocol.Channel{From: a, To: b})
				}
			}
		}
		if len(full) > 0 {
			ch := full[w.r.IntN(len(full))]
			w.deliver(ch.From, ch.To, w.r.IntN(len(w.InFlight(ch.From, ch.To))))
		}
	case k < 80:
		w.user(id, false)
	case k < 86:
		if other := w.any(w.up()); other != id {
			w.suspect(id, other, w.r.IntN(2) == 0)
		}
	case k < 92:
		w.hear(id, w.r.IntN(8))
	case k == 92:
		w.reload(id)
	case k < 96:
		if w.alg.Spare(w.Procs, id) {
			w.note("%d crashes", id)
			w.crash(id)
		}
	case k < 98:
		if other := w.any(w.up()); other != id && w.loses {
			w.part(id, other, !w.apart[protocol.Channel{From: id, To: other}])
		}
	default:
		w.recover(protocol.ID(w.r.IntN(w.n)))
	}
}

// part ends the session of two processes, or begins the next one. Both hear of either.
func (w *storm[M]) part(a, b protocol.ID, yes bool) {
	for _, ch := range []protocol.Channel{{From: a, To: b}, {From: b, To: a}} {
		if w.apart[ch] == yes {
			return
		}
		if w.apart[ch] = yes; yes {
			w.note("%v are apart", ch)
		}
	}
	for _, ch := range []protocol.Channel{{From: a, To: b}, {From: b, To: a}} {
		w.suspected[ch] = !yes // the next one begins with a Restore, whatever was before
		w.suspect(ch.From, ch.To, yes)
	}
}

// lose loses what is on its way between processes that are apart.
func (w *storm[M]) lose() {
	for ch, yes := range w.apart {
		for yes && len(w.InFlight(ch.From, ch.To)) > 0 {
			w.Drop(ch.From, ch.To, 0)
		}
	}
}

// reload puts a process in the place of another one, with its state; and messages are what they
// are read back as.
func (w *storm[M]) reload(id protocol.ID) {
	state := w.Procs[id].AppendState(nil)
	p := w.alg.New(id, w.config)
	rest, err := p.LoadState(state)
	if again := p.AppendState(nil); err != nil || len(rest) > 0 || !bytes.Equal(again, state) {
		panic(fmt.Sprintf("state %x is loaded as %x, %v, %d bytes left", state, again, err, len(rest)))
	}
	w.Procs[id] = p
	for to := range protocol.ID(w.n) {
		for _, m := range w.InFlight(id, to) {
			b := w.alg.Append(nil, m)
			got, rest, err := w.alg.Read(b)
			if again := w.alg.Append(nil, got); err != nil || len(rest) > 0 || !bytes.Equal(again, b) {
				panic(fmt.Sprintf("message %s is read as %s, %v", w.alg.Text(m), w.alg.Text(got), err))
			}
		}
	}
}

func (w *storm[M]) crash(id protocol.ID) {
	w.Crash(id)
	for to := range protocol.ID(w.n) {
		for k := len(w.InFlight(id, to)); w.loses && k > 0; k-- {
			if w.r.IntN(2) == 0 {
				w.Drop(id, to, k-1)
			}
		}
	}
	for ch := range w.suspected {
		if ch.From == id {
			delete(w.suspected, ch)
		}
	}
}

func (w *storm[M]) recover(id protocol.ID) {
	if w.Procs[id] == nil {
		w.lives[id]++
		w.note("%d is back", id)
		if w.amnesia {
			w.lives[id] = 1
		}
		for ch := range w.apart {
			if ch.From == id || ch.To == id {
				delete(w.apart, ch)
			}
		}
		if w.loses {
			for _, j := range w.up() {
				w.suspect(j, id, true)
				w.suspected[protocol.Channel{From: j, To: id}] = false
			}
		}
		w.Recover(id, w.lives[id])
		for _, j := range w.up() {
			if j != id && !w.suspected[protocol.Channel{From: j, To: id}] {
				w.Step(j, protocol.Input{Kind: protocol.Restore, From: id, Arg: w.lives[id]})
			}
		}
	}
}

// settle delivers everything, and decides what is proposed.
func (w *storm[M]) settle() {
	for again := true; again; {
		again = false
		for a := range protocol.ID(w.n) {
			for b := range protocol.ID(w.n) {
				for again = again || len(w.InFlight(a, b)) > 0; len(w.InFlight(a, b)) > 0; {
					w.deliver(a, b, 0)
				}
			}
		}
		for _, id := range w.up() {
			again = w.hear(id, 0) || again
		}
	}
}

func (w *storm[M]) deliver(from, to protocol.ID, k int) {
	if w.delivered++; w.delivered > 100_000 {
		panic("it does not come to rest")
	}
	w.note("%d gets of %d %s", to, from, w.alg.Text(w.InFlight(from, to)[k]))
	w.Deliver(from, to, k)
}

// hear tells a process what is decided in its epoch, which may be the k-th proposal.
func (w *storm[M]) hear(id protocol.ID, k int) bool {
	if e := w.bare(w.Procs[id]).epoch; !w.Decides(e) && len(w.Proposals(e)) > 0 {
		k %= len(w.Proposals(e))
		w.note("epoch %d is decided: %s", e, w.alg.Text(w.Proposals(e)[k]))
		w.Decide(e, k)
	}
	heard := w.Decided(id)
	if heard {
		w.note("%d hears a decision", id)
	}
	return heard
}

// calm ends the faults, and lets everybody finish.
func (w *storm[M]) calm() string {
	w.note("calm")
	w.lose()
	for a := range protocol.ID(w.n) {
		for b := range a {
			if w.Procs[a] != nil && w.Procs[b] != nil {
				w.part(a, b, false)
			}
		}
	}
	for _, a := range w.up() {
		for b := range protocol.ID(w.n) {
			if a != b {
				w.suspect(a, b, w.Procs[b] == nil)
			}
		}
	}
	w.settle()
	for range 4 * w.n {
		for _, id := range w.up() {
			w.user(id, true)
			w.settle()
		}
	}
	for _, id := range w.up() {
		if p := w.bare(w.Procs[id]); w.Users[id] != protocol.InRem || p.blocked || !p.joined {
			return fmt.Sprintf("process %d is not done: section %d, %s", id, w.Users[id], w.alg.Show(w.Procs[id]))
		}
	}
	if f := w.Object.Unfinished(); f.Property != "" {
		return f.Text
	}
	for _, id := range w.up() { // the token goes round
		w.Try(id)
		w.settle()
		if w.Users[id] != protocol.InCrit {
			return fmt.Sprintf("process %d does not get in: %s", id, w.alg.Show(w.Procs[id]))
		}
		w.Exit(id)
	}
	return ""
}

// storms runs one world, and returns what is wrong in it.
func (w *storm[M]) run(steps int) (fault string) {
	defer func() {
		if v := recover(); v != nil {
			fault = fmt.Sprint(v)
		}
	}()
	for range steps {
		w.step()
	}
	return w.calm()
}

func newStorm[M any](a protocol.Algorithm[M], bare func(protocol.Process[M]) *Process, seed uint64) *storm[M] {
	r := rand.New(rand.NewPCG(seed, 0))
	n := 2 + r.IntN(4)
	c := protocol.Config{N: n, Options: map[string]int64{
		carry.Name: 1 + r.Int64N(4), keep.Name: 1 + r.Int64N(8), stability.Name: r.Int64N(2), heal.Name: r.Int64N(2),
	}}
	return &storm[M]{
		System: algotest.NewSystem(a, c, 0), alg: a, config: c, bare: bare, r: r, n: n,
		suspected: map[protocol.Channel]bool{}, apart: map[protocol.Channel]bool{}, lives: slices.Repeat([]uint64{1}, n),
	}
}

// worlds is how many storms a test makes of each form.
func worlds() uint64 {
	if os.Getenv("POUNDLOCK_FULL") != "" {
		return 200_000
	}
	fmt.Println("SHORTENED: storms try 1500 worlds of each form; POUNDLOCK_FULL=1 tries 200 000")
	return 1500
}

func storms[M any](t *testing.T, a protocol.Algorithm[M], bare func(protocol.Process[M]) *Process, loses bool) {
	for seed := range worlds() {
		w := newStorm(a, bare, seed)
		w.loses = loses && w.config.Options[heal.Name] == 1
		if fault := w.run(400); fault != "" {
			for _, line := range w.log[max(0, len(w.log)-60):] {
				t.Log(line)
			}
			t.Fatalf("%s, seed %d, n=%d, %d steps: %s", a.Name, seed, w.n, len(w.log), fault)
		}
	}
}

func TestStorm(t *testing.T) {
	for _, a := range forms {
		storms(t, a, func(p protocol.Process[Message]) *Process { return p.(*Process) }, false)
	}
}

// Storms see what happens where a process that comes back takes part at once: its life before has
// logged an operation, and it votes without.
func TestStormAmnesia(t *testing.T) {
	for _, a := range forms {
		found := map[string]bool{}
		for seed := range uint64(1500) {
			w := newStorm(a, func(p protocol.Process[Message]) *Process { return p.(*Process) }, seed)
			w.amnesia = true
			property, _, _ := strings.Cut(w.run(400), ":")
			found[property] = true
		}
		if !found[history.OneCopy] || !found[history.Outcome] {
			t.Errorf("%s: found %v, want %s and %s", a.Name, found, history.OneCopy, history.Outcome)
		}
	}
}

// TestStorm over channels alone.
func TestStormConsensus(t *testing.T) {
	for _, a := range forms {
		storms(t, consensus.With(a), func(p protocol.Process[consensus.Frame[Message]]) *Process {
			return consensus.Algorithm(p).(*Process)
		}, false)
	}
}

// TestStormConsensus over sessions that end, with what is on its way.
func TestStormSessions(t *testing.T) {
	for _, a := range forms {
		storms(t, consensus.With(a), func(p protocol.Process[consensus.Frame[Message]]) *Process {
			return consensus.Algorithm(p).(*Process)
		}, true)
	}
}
