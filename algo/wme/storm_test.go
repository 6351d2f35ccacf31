package wme

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/poundlock/poundlock/algo/algotest"
	"github.com/poundlock/poundlock/internal/lane"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/history"
	"github.com/poundlock/poundlock/verify/scenario"
	"github.com/poundlock/poundlock/wrap/consensus"
	"github.com/poundlock/poundlock/wrap/consensus/raft"
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
	splits    bool                      // consensus is not uniform: an instance may be decided again
	loses     bool                      // sessions end, and with them what is on its way: with option heal
	apart     map[protocol.Channel]bool // pairs without a session: both directions
	names     scenario.Names
	log       []scenario.Step
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

func (w *storm[M]) note(v scenario.Verb, text string, procs ...protocol.ID) scenario.Step {
	s := scenario.Step{Verb: v, Procs: procs, Text: text}
	w.log = append(w.log, s)
	return s
}

// line is a step that was noted, as a scenario has it.
func (w *storm[M]) line(s scenario.Step) string { return w.names.Text(w.names.Format(s)) }

// do takes a step, which is possible.
func (w *storm[M]) do(v scenario.Verb, text string, procs ...protocol.ID) {
	if s := w.note(v, text, procs...); !w.take(s) {
		panic("not possible: " + w.line(s))
	}
}

// take takes a step, if it is possible.
func (w *storm[M]) take(s scenario.Step) bool {
	if len(s.Procs) > 0 && s.Verb != scenario.Deliver && s.Verb != scenario.Lose {
		if up := w.Procs[s.Procs[0]] != nil; up == (s.Verb == scenario.Recover) {
			return false
		}
	}
	switch s.Verb {
	case scenario.Try, scenario.Cancel, scenario.Issue, scenario.Exit:
		return w.input(s)
	case scenario.Deliver, scenario.Lose:
		from, to := s.Procs[0], s.Procs[1]
		k := slices.IndexFunc(w.InFlight(from, to), w.called(s.Text))
		switch {
		case k < 0:
			return false
		case s.Verb == scenario.Lose:
			w.Drop(from, to, k)
		default:
			w.Deliver(from, to, k)
		}
	case scenario.Suspect, scenario.Restore:
		kind := protocol.Restore
		if s.Verb == scenario.Suspect {
			kind = protocol.Suspect
		}
		a, b := s.Procs[0], s.Procs[1]
		w.suspected[protocol.Channel{From: a, To: b}] = kind == protocol.Suspect
		w.Step(a, protocol.Input{Kind: kind, From: b, Arg: w.lives[b]})
	case scenario.Crash:
		w.crash(s.Procs[0])
	case scenario.Recover:
		id := s.Procs[0]
		if w.lives[id]++; w.amnesia {
			w.lives[id] = 1
		}
		w.Recover(id, w.lives[id])
	case scenario.Decide:
		return w.decide(s.Text)
	case scenario.Hear:
		return w.Decided(s.Procs[0])
	}
	return true
}

// input is a step of a user.
func (w *storm[M]) input(s scenario.Step) bool {
	kinds := map[scenario.Verb]protocol.Kind{
		scenario.Try: protocol.Try, scenario.Cancel: protocol.Cancel, scenario.Issue: protocol.Issue, scenario.Exit: protocol.Exit,
	}
	id, in := s.Procs[0], protocol.Input{Kind: kinds[s.Verb], Data: s.Text}
	section := w.Users[id]
	if history.Input(&section, id, in) != nil {
		return false
	}
	w.Step(id, in)
	return true
}

// decide decides what a step says: an instance and a message that is proposed there.
func (w *storm[M]) decide(text string) bool {
	number, text, _ := strings.Cut(text, " ")
	instance, err := strconv.ParseUint(number, 10, 64)
	k := slices.IndexFunc(w.Proposals(instance), w.called(text))
	if err != nil || k < 0 || w.Decides(instance) && !w.splits {
		return false
	}
	w.Forget(instance)
	w.Decide(instance, k)
	return true
}

// called finds messages by their text.
func (w *storm[M]) called(text string) func(M) bool {
	text = w.names.Text(text)
	return func(m M) bool { return w.names.Text(w.alg.Text(m)) == text }
}

func (w *storm[M]) suspect(a, b protocol.ID, yes bool) {
	switch {
	case w.suspected[protocol.Channel{From: a, To: b}] == yes:
	case yes:
		w.do(scenario.Suspect, "", a, b)
	default:
		w.do(scenario.Restore, "", a, b)
	}
}

// user makes the user of a process do something.
func (w *storm[M]) user(id protocol.ID, leave bool) {
	switch w.Users[id] {
	case protocol.InRem:
		if !leave {
			w.do(scenario.Try, "", id)
		}
	case protocol.InTry:
		if !leave && w.r.IntN(8) == 0 {
			w.do(scenario.Cancel, "", id)
		}
	case protocol.InCrit:
		if !leave && w.r.IntN(3) > 0 {
			w.ops++
			w.do(scenario.Issue, fmt.Sprint("op", w.ops), id)
			return
		}
		w.do(scenario.Exit, "", id)
	case protocol.InLost:
		w.do(scenario.Exit, "", id)
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
		if w.alg.Spare(protocol.States(w.Procs), id) {
			w.do(scenario.Crash, "", id)
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
		w.apart[ch] = yes
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
			w.drop(ch.From, ch.To, 0)
		}
	}
}

func (w *storm[M]) drop(from, to protocol.ID, k int) {
	w.note(scenario.Lose, w.alg.Text(w.InFlight(from, to)[k]), from, to)
	w.Drop(from, to, k)
}

// reload puts a process in the place of another one, with its state; messages are what they are read
// back as; and votes with one number have one last operation.
func (w *storm[M]) reload(id protocol.ID) {
	state := protocol.AppendState(nil, w.Procs[id])
	p := w.alg.New(id, w.config)
	rest, err := protocol.LoadState(state, p)
	if again := protocol.AppendState(nil, p); err != nil || len(rest) > 0 || !bytes.Equal(again, state) {
		panic(fmt.Sprintf("state %x is loaded as %x, %v, %d bytes left", state, again, err, len(rest)))
	}
	w.Procs[id] = p
	votes := w.bare(p).votes
	for _, a := range votes {
		for _, b := range votes {
			if a.More != nil && b.More != nil && a.Number == b.Number && a.Done != b.Done {
				panic(fmt.Sprintf("votes differ, %s and %s", text(a), text(b)))
			}
		}
	}
	for to := range protocol.ID(w.n) {
		for _, m := range w.InFlight(id, to) {
			b := w.alg.Append(nil, m)
			got, rest, err := w.alg.Read(b)
			if again := w.alg.Append(nil, got); err != nil || len(rest) > 0 || !bytes.Equal(again, b) {
				panic(fmt.Sprintf("message %s is read as %s, %v", w.alg.Text(m), w.alg.Text(got), err))
			}
			if !w.alg.Fits(m, w.n, false) {
				panic(fmt.Sprintf("message %s does not fit", w.alg.Text(m)))
			}
		}
	}
}

func (w *storm[M]) crash(id protocol.ID) {
	w.Crash(id)
	for to := range protocol.ID(w.n) {
		for k := len(w.InFlight(id, to)); w.loses && k > 0; k-- {
			if w.r.IntN(2) == 0 {
				w.drop(id, to, k-1)
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
	if w.Procs[id] != nil {
		return
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
	w.do(scenario.Recover, "", id)
	for _, j := range w.up() {
		if j != id && !w.suspected[protocol.Channel{From: j, To: id}] {
			w.do(scenario.Restore, "", j, id)
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
		panic("stuck: it does not come to rest")
	}
	w.note(scenario.Deliver, w.alg.Text(w.InFlight(from, to)[k]), from, to)
	w.Deliver(from, to, k)
	if w.loses && w.suspected[protocol.Channel{From: to, To: from}] {
		w.Step(to, protocol.Input{Kind: protocol.Suspect, From: from})
	}
}

// hear tells a process what is decided in its epoch, which may be the k-th proposal.
func (w *storm[M]) hear(id protocol.ID, k int) bool {
	e := w.bare(w.Procs[id]).curEp
	if list := w.Proposals(e); !w.Decides(e) && len(list) > 0 {
		w.note(scenario.Decide, fmt.Sprint(e, " ", w.alg.Text(list[k%len(list)])))
		w.Decide(e, k%len(list))
	}
	w.note(scenario.Hear, "", id)
	if w.Decided(id) {
		return true
	}
	w.log = w.log[:len(w.log)-1]
	return false
}

// calm ends the faults, and lets everybody finish.
func (w *storm[M]) calm() string {
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
		if p := w.bare(w.Procs[id]); w.Users[id] != protocol.InRem || p.block || !p.joined() {
			return fmt.Sprintf("stuck: process %d is not done: section %d, %s", id, w.Users[id], protocol.Show(w.Procs[id]))
		}
	}
	if f := w.Object.Unfinished(); f.Property != "" {
		return f.Property + ": " + f.Text
	}
	w.Object.Calm()
	for _, id := range w.up() { // the token goes round, and each operation has an outcome: nobody is ejected any more
		w.do(scenario.Try, "", id)
		w.settle()
		if w.Users[id] != protocol.InCrit {
			return fmt.Sprintf("stuck: process %d does not get in: %s", id, protocol.Show(w.Procs[id]))
		}
		w.do(scenario.Issue, fmt.Sprint("last", id), id)
		w.settle()
		if w.Users[id] != protocol.InCrit {
			return fmt.Sprintf("stuck: process %d has no outcome: %s", id, protocol.Show(w.Procs[id]))
		}
		w.do(scenario.Exit, "", id)
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
	w := storming(a, bare, c)
	w.r = r
	return w
}

func storming[M any](a protocol.Algorithm[M], bare func(protocol.Process[M]) *Process, c protocol.Config) *storm[M] {
	return &storm[M]{
		System: algotest.NewSystem(a, c, 0), alg: a, config: c, bare: bare, n: c.N,
		suspected: map[protocol.Channel]bool{}, apart: map[protocol.Channel]bool{},
		lives: slices.Repeat([]uint64{1}, c.N), names: scenario.Names{Members: c.N},
	}
}

// worlds is how many storms a test makes of each form.
func worlds(t *testing.T) uint64 {
	t.Helper()
	return lane.Of[uint64](t, "worlds of each form", 500, 1500, 200_000)
}

func storms[M any](t *testing.T, a protocol.Algorithm[M], worlds uint64, bare func(protocol.Process[M]) *Process, loses bool) {
	for seed := range worlds {
		w := newStorm(a, bare, seed)
		w.loses = loses && w.config.Options[heal.Name] == 1
		if fault := w.run(400); fault != "" {
			for _, s := range w.log[max(0, len(w.log)-60):] {
				t.Log(w.line(s))
			}
			t.Fatalf("%s, seed %d, n=%d, %d steps: %s", a.Name, seed, w.n, len(w.log), fault)
		}
	}
}

func own(p protocol.Process[Message]) *Process { return p.(*Process) }

func TestStorm(t *testing.T) {
	for _, a := range forms {
		storms(t, a, worlds(t), own, false)
	}
}

// stormed is what storms of a form find, from one seed to another.
func stormed(a protocol.Algorithm[Message], from, to uint64) string {
	for seed := from; seed < to; seed++ {
		if fault := newStorm(a, own, seed).run(400); fault != "" {
			property, _, _ := strings.Cut(fault, ":")
			return fmt.Sprintf("%s by storm, seed %d: %s", property, seed, fault)
		}
	}
	return ""
}

// Storms see what happens where a process that comes back takes part at once: its life before has
// logged an operation, and it votes without.
func TestStormAmnesia(t *testing.T) {
	for _, a := range forms {
		found := map[string]bool{}
		for seed := range uint64(1500) {
			w := newStorm(a, own, seed)
			w.amnesia = true
			property, _, _ := strings.Cut(w.run(400), ":")
			found[property] = true
		}
		if !found[history.OneCopy] || !found[history.Outcome] {
			t.Errorf("%s: found %v, want %s and %s", a.Name, found, history.OneCopy, history.Outcome)
		}
	}
}

// ejecting is a form whose processes eject whoever issues an operation in an epoch in which some holds.
func ejecting(a protocol.Algorithm[Message], some func(epoch uint64) bool) protocol.Algorithm[Message] {
	return mangle(a, func(p *Process, ev protocol.Event[Message], out *protocol.Out[Message]) {
		if ev.Kind == protocol.Issue && !p.block && some(p.curEp) {
			p.eject(out)
			return
		}
		p.Step(ev, out)
	})
}

// Storms see that users are ejected for nothing: before anything has happened, and after the last suspicion.
func TestStormEjects(t *testing.T) {
	bare := func(p protocol.Process[Message]) *Process { return p.(*mangled).Process }
	for property, some := range map[string]func(epoch uint64) bool{
		history.Groundless:        func(uint64) bool { return true },
		history.OperationProgress: func(epoch uint64) bool { return epoch > 0 },
	} {
		for _, a := range forms {
			found := map[string]bool{}
			for seed := range uint64(100) {
				w := newStorm(ejecting(a, some), bare, seed)
				got, _, _ := strings.Cut(w.run(400), ":")
				found[got] = true
			}
			if !found[property] {
				t.Errorf("%s: found %v, want %s", a.Name, found, property)
			}
		}
	}
}

// Storms see that an operation comes between those of another section: a process that is ejected is not told, and its copy
// executes what it issues then.
func TestStormSections(t *testing.T) {
	bare := func(p protocol.Process[Message]) *Process { return p.(*mangled).Process }
	for _, a := range forms {
		a = mangle(a, func(p *Process, ev protocol.Event[Message], out *protocol.Out[Message]) {
			if ev.Kind == protocol.Issue && p.state == lost {
				out.Invoke(ev.Data, p.executed+1)
				out.Outcome()
				return
			}
			p.Step(ev, out)
			out.Effects = slices.DeleteFunc(out.Effects, func(e protocol.Effect[Message]) bool { return e.Do == protocol.Ejected })
		})
		found := map[string]bool{}
		for seed := range uint64(400) {
			got, _, _ := strings.Cut(newStorm(a, bare, seed).run(400), ":")
			found[got] = true
		}
		if !found[history.Contiguous] {
			t.Errorf("%s: found %v, want %s", a.Name, found, history.Contiguous)
		}
	}
}

// TestStorm over channels alone.
func TestStormConsensus(t *testing.T) {
	for _, a := range forms {
		storms(t, consensus.With(a), worlds(t), func(p protocol.Process[consensus.Frame[Message]]) *Process {
			return bare(p)
		}, false)
	}
}

// TestStormConsensus over sessions that end, with what is on its way.
func TestStormSessions(t *testing.T) {
	for _, a := range forms {
		storms(t, consensus.With(a), worlds(t), func(p protocol.Process[consensus.Frame[Message]]) *Process {
			return bare(p)
		}, true)
	}
}

// TestStormSessions over raft, in a fifth of the worlds: each takes five times as long.
func TestStormRaft(t *testing.T) {
	for _, a := range forms {
		storms(t, raft.With(a), worlds(t)/5, func(p protocol.Process[raft.Frame[Message]]) *Process {
			return bare(p)
		}, true)
	}
}

// What Snapshot does not find in the message is not installed: a driver could not look at it first.
func TestSnapshot(t *testing.T) {
	for what, snapshot := range map[string]func(Message) (string, bool){
		"nothing":  nil,
		"no STATE": func(Message) (string, bool) { return "", false },
		"a part":   func(m Message) (string, bool) { object, ok := snapshot(m); return object[:len(object)/2], ok },
	} {
		a := Second
		a.Snapshot = snapshot
		if !stormsTell(a, own) || !stormsTell(consensus.With(a), agreeing) {
			t.Errorf("%s: nobody sees that it is wrong", what)
		}
	}
}

// stormsTell reports whether some storm tells of an object that no message has brought.
func stormsTell[M any](a protocol.Algorithm[M], bare func(protocol.Process[M]) *Process) bool {
	for seed := range uint64(100) {
		w := newStorm(a, bare, seed)
		w.loses = true
		if strings.Contains(w.run(400), "which no message of this step has brought") {
			return true
		}
	}
	return false
}
