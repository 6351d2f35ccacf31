package statemachine

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/poundlock/poundlock/algo/algotest"
	"github.com/poundlock/poundlock/internal/lane"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/history"
)

// A storm is a run of random steps: messages in any order, false suspicions, also of coordinators, and
// crashes of a minority. Then it calms down, and everybody gets what it wants.
type storm struct {
	*algotest.System[Message]
	alg       protocol.Algorithm[Message]
	r         *rand.Rand
	n         int
	suspected map[protocol.Channel]bool // From suspects To
	ops       int
	delivered int
	log       []string
	seen      map[string]int // what happened how often
}

func newStorm(a protocol.Algorithm[Message], seed uint64) *storm {
	r := rand.New(rand.NewPCG(seed, 0))
	n := 1 + r.IntN(5)
	return &storm{
		System: algotest.NewSystem(a, protocol.Config{N: n}, 0), alg: a, r: r, n: n,
		suspected: map[protocol.Channel]bool{}, seen: map[string]int{},
	}
}

func (w *storm) note(what, format string, args ...any) {
	w.seen[what]++
	w.log = append(w.log, what+" "+fmt.Sprintf(format, args...))
}

func (w *storm) up() (ids []protocol.ID) {
	for id, p := range w.Procs {
		if p != nil {
			ids = append(ids, protocol.ID(id))
		}
	}
	return ids
}

func (w *storm) suspect(a, b protocol.ID, yes bool) {
	if ch := (protocol.Channel{From: a, To: b}); w.suspected[ch] != yes {
		w.suspected[ch] = yes
		kind := protocol.Restore
		if yes {
			kind = protocol.Suspect
		}
		w.note("suspects", "%d, %d: %v", a, b, yes)
		w.Step(a, protocol.Input{Kind: kind, From: b})
	}
}

// user makes the user of a process do something.
func (w *storm) user(id protocol.ID, leave bool) {
	switch w.Users[id] {
	case protocol.InRem:
		if !leave {
			w.note("tries", "%d", id)
			w.Try(id)
		}
	case protocol.InCrit:
		if !leave && w.r.IntN(3) > 0 {
			w.ops++
			w.note("issues", "%d, %d", id, w.ops)
			w.Issue(id, fmt.Sprint("op", w.ops))
			return
		}
		w.note("exits", "%d", id)
		w.Exit(id)
	case protocol.InLost:
		w.note("ejected", "%d", id)
		w.Exit(id)
	}
}

func (w *storm) deliver(from, to protocol.ID, k int) {
	if w.delivered++; w.delivered > 100_000 {
		panic("it does not come to rest")
	}
	m := w.InFlight(from, to)[k]
	w.note(messages[m.Kind].Name, "to %d from %d: %s", to, from, w.alg.Text(m))
	w.Deliver(from, to, k)
}

func (w *storm) step() {
	up := w.up()
	id, other := up[w.r.IntN(len(up))], protocol.ID(w.r.IntN(w.n))
	switch k := w.r.IntN(100); {
	case k < 70:
		if flight := w.InFlight(other, id); len(flight) > 0 {
			w.deliver(other, id, w.r.IntN(len(flight)))
		}
	case k < 90:
		w.user(id, false)
	case k < 97:
		if other != id {
			w.suspect(id, other, w.Procs[other] == nil || w.r.IntN(3) == 0)
		}
	case k < 99:
		w.reload(id)
	default:
		if 2*(len(up)-1) > w.n {
			w.note("crashes", "%d", id)
			w.Crash(id)
		}
	}
}

// reload puts a process in the place of another one, with its state; and messages are what they
// are read back as.
func (w *storm) reload(id protocol.ID) {
	state := protocol.AppendState(nil, w.Procs[id])
	p := w.alg.New(id, protocol.Config{N: w.n})
	rest, err := protocol.LoadState(state, p)
	if again := protocol.AppendState(nil, p); err != nil || len(rest) > 0 || !bytes.Equal(again, state) {
		panic(fmt.Sprintf("state %x is loaded as %x, %v, %d bytes left", state, again, err, len(rest)))
	}
	w.Procs[id] = p
	for to := range protocol.ID(w.n) {
		for _, m := range w.InFlight(id, to) {
			b := w.alg.Append(nil, m)
			got, rest, err := w.alg.Read(b)
			if err != nil || len(rest) > 0 || !bytes.Equal(w.alg.Append(nil, got), b) || w.alg.Text(got) != w.alg.Text(m) {
				panic(fmt.Sprintf("message %s is read as %s, %v", w.alg.Text(m), w.alg.Text(got), err))
			}
		}
	}
}

func (w *storm) settle() {
	for again := true; again; {
		again = false
		for _, to := range w.up() {
			for from := range protocol.ID(w.n) {
				for ; len(w.InFlight(from, to)) > 0; again = true {
					w.deliver(from, to, 0)
				}
			}
		}
	}
}

// calm ends the faults, and lets everybody finish.
func (w *storm) calm() string {
	w.note("calm", "")
	for _, a := range w.up() {
		for b := range protocol.ID(w.n) {
			if a != b {
				w.suspect(a, b, w.Procs[b] == nil)
			}
		}
	}
	w.settle()
	for range 2 * w.n {
		for _, id := range w.up() {
			w.user(id, true)
			w.settle()
		}
	}
	for _, id := range w.up() {
		if w.Users[id] != protocol.InRem {
			return fmt.Sprintf("process %d is not done: section %d, %s", id, w.Users[id], protocol.Show(w.Procs[id]))
		}
	}
	if f := w.Object.Unfinished(); f.Property != "" {
		return f.Property + ": " + f.Text
	}
	for _, id := range w.up() {
		w.Try(id)
		w.settle()
		if in := w.Inside(); !slices.Equal(in, []protocol.ID{id}) {
			return fmt.Sprintf("%v are inside, and not %d: %s", in, id, protocol.Show(w.Procs[id]))
		}
		w.Exit(id)
		w.settle()
	}
	return ""
}

// run runs one world, and returns what is wrong in it.
func (w *storm) run(steps int) (fault string) {
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

// worlds is how many storms a test makes of each form.
func worlds(t *testing.T) uint64 {
	t.Helper()
	return lane.Of[uint64](t, "worlds of each form", 300, 1000, 200_000)
}

func TestStorm(t *testing.T) {
	for _, a := range forms {
		seen := map[string]int{}
		for seed := range worlds(t) {
			w := newStorm(a, seed)
			if fault := w.run(400); fault != "" {
				for _, line := range w.log[max(0, len(w.log)-60):] {
					t.Log(line)
				}
				t.Fatalf("%q, seed %d, n=%d, %d steps: %s", a.Variant, seed, w.n, len(w.log), fault)
			}
			for what, k := range w.seen {
				seen[what] += k
			}
		}
		for _, what := range []string{"issues", "ejected", "crashes", "PROMISE"} {
			if seen[what] < 100 {
				t.Errorf("%q: %s %d times: these storms show little", a.Variant, what, seen[what])
			}
		}
	}
}

// A broken process is one of which a part is wrong: what it gets, or what it does.
type broken struct {
	*Process
	before func(p *Process, ev *protocol.Event[Message])
	after  func(p *Process, ev protocol.Event[Message], out *protocol.Out[Message])
}

func (p broken) Step(ev protocol.Event[Message], out *protocol.Out[Message]) {
	if p.before != nil {
		p.before(p.Process, &ev)
	}
	p.Process.Step(ev, out)
	if p.after != nil {
		p.after(p.Process, ev, out)
	}
}

// of is an algorithm whose processes are all broken.
func (p broken) of(a protocol.Algorithm[Message]) protocol.Algorithm[Message] {
	original := a.New
	a.New = func(id protocol.ID, c protocol.Config) protocol.Process[Message] {
		p.Process = original(id, c).(*Process)
		return p
	}
	return a
}

// Storms notice each rule that is broken, by the property that it is there for.
func TestStormBroken(t *testing.T) {
	for _, b := range []struct {
		name string
		broken
		finds string // a part of the fault
		in    []protocol.Algorithm[Message]
	}{
		{"a promise keeps silent about what was accepted", broken{before: func(_ *Process, ev *protocol.Event[Message]) {
			if ev.Msg.Kind == Promise {
				ev.Msg.Log = nil
			}
		}}, history.OneCopy, forms},
		{"who has promised a ballot accepts in an earlier one", broken{before: func(p *Process, ev *protocol.Event[Message]) {
			if ev.Kind == protocol.Receive && ev.Msg.Kind == Propose && !p.leading {
				p.ballot = min(p.ballot, ev.Msg.Ballot)
			}
		}}, history.OneCopy, forms},
		{"a promise of an earlier ballot counts", broken{before: func(p *Process, ev *protocol.Event[Message]) {
			if ev.Msg.Kind == Promise {
				ev.Msg.Ballot = p.ballot
			}
		}}, history.OneCopy, forms[:1]},
		{"one process counts for all", broken{before: func(p *Process, ev *protocol.Event[Message]) {
			if ev.Kind == protocol.Receive && ev.Msg.Kind == Accepted {
				s := p.at(ev.Msg.Place)
				if len(s.votes) == 0 && !s.Decided {
					s.votes = []vote{{ev.Msg.Ballot, protocol.NewSet(p.n)}}
				}
				for i := range s.votes {
					for id := range protocol.ID(p.n) {
						s.votes[i].by.Add(id)
					}
				}
			}
		}}, history.OneCopy, forms[:1]}, // announced, it goes wrong too rarely
		{"operations of those who are ejected are executed", broken{
			after: func(p *Process, ev protocol.Event[Message], out *protocol.Out[Message]) {
				c := ev.Msg.Command
				if ev.Kind == protocol.Receive && ev.Msg.Kind == Propose && c.Do == Invoke && c.Section <= p.ended[c.Who] {
					out.Invoke(c.Op, ev.Msg.Place)
				}
			},
		}, history.Failed, forms},
		{"nobody coordinates after a crash", broken{before: func(_ *Process, ev *protocol.Event[Message]) {
			if ev.Kind == protocol.Suspect && ev.From == 0 {
				ev.Kind = protocol.Restore
			}
		}}, "is not done", forms},
		{"sections of those who crashed do not end", broken{before: func(p *Process, _ *protocol.Event[Message]) {
			if len(p.queue) > 0 {
				p.asked = p.queue[0]
			}
		}}, "is not done", forms},
	} {
		for _, a := range b.in {
			a = b.of(a)
			others, found := map[string]int{}, false
			for seed := uint64(0); seed < 2000 && !found; seed++ {
				if fault := newStorm(a, seed).run(400); strings.Contains(fault, b.finds) {
					found = true
				} else if fault != "" {
					others[fault]++
				}
			}
			if !found {
				t.Errorf("%q, %s: found %v, want %s", a.Variant, b.name, others, b.finds)
			}
		}
	}
}
