package check_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/poundlock/poundlock/algo/algotest/toys/cells"
	"github.com/poundlock/poundlock/internal/lane"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
)

// A random algorithm with shared memory: for each place of its program and each value that
// an access found, where to go on and which accesses to ask for.
const (
	places  = 4
	finds   = 3 // values 0 to 2
	widest  = 2 // accesses asked for at a time
	cellsOf = 3 // registers
)

type order struct {
	place byte
	enter bool
	asks  []protocol.Act
}

// orders are by kind of event, place, and value.
type orders map[[3]int]order

func drawOrders(r *rand.Rand) orders {
	all := orders{}
	for _, kind := range []protocol.Kind{protocol.Start, protocol.Try, protocol.Value, protocol.Exit} {
		for place := range places {
			for v := range finds {
				o := order{place: byte(r.IntN(places)), enter: r.IntN(3) == 0}
				for n := r.IntN(widest + 1); len(o.asks) < n; {
					a := protocol.Act{Do: []protocol.Do{protocol.Read, protocol.Write, protocol.Write, protocol.Await}[r.IntN(4)]}
					a.To, a.Arg = protocol.ID(r.IntN(cellsOf)), uint64(r.IntN(finds))
					o.asks = append(o.asks, a)
				}
				all[[3]int{int(kind), place, v}] = o
			}
		}
	}
	return all
}

// ordered makes the algorithm. A process asks for no second access to one register, and for writes of
// its own registers only: it remembers in R[0] what is open, and in R[1] the section.
func ordered(all orders, list []protocol.Register) protocol.Algorithm[struct{}] {
	return cells.Of("orders", func(p *cells.Process, ev protocol.Event[struct{}], out *protocol.Out[struct{}]) {
		const remainder, trying, inside = 0, 1, 2
		v := 0
		switch ev.Kind {
		case protocol.Value:
			p.R[0] &^= 1 << ev.From
			v = int(ev.Arg)
		case protocol.Try:
			p.R[1] = trying
		case protocol.Exit:
			p.R[1] = remainder
			out.Rem()
		}
		o := all[[3]int{int(ev.Kind), int(p.PC), v}]
		p.PC = o.place
		if o.enter && p.R[1] == trying {
			p.R[1] = inside
			out.Crit(0)
		}
		for _, a := range o.asks {
			owner := list[a.To].Owner
			if p.R[0]&(1<<a.To) != 0 || a.Do == protocol.Write && owner != protocol.Shared && owner != p.ID {
				continue
			}
			p.R[0] |= 1 << a.To
			out.Effects = append(out.Effects, protocol.Effect[struct{}]{Act: a})
		}
	}, list...)
}

// An openAccess is one that a process has open.
type openAccess struct {
	do       protocol.Do
	register int
	arg      uint64
	begun    bool
}

// An enumeration visits every state by brute force, with rules of its own and nothing numbered or hashed: how
// many there are, and whether two processes are ever inside, or somebody waits and nothing can happen.
type enumeration struct {
	alg       protocol.Algorithm[struct{}]
	list      []protocol.Register
	safe      bool
	states    map[string]bool
	exclusion bool
	deadlock  bool
}

// A brute is one global state.
type brute struct {
	state   [2][]byte
	tries   [2]int
	section [2]protocol.Section
	open    [2][]openAccess
	values  [cellsOf]uint64
	writing [cellsOf]int
}

func (b brute) key() string { return fmt.Sprint(b) }

func (e *enumeration) step(b brute, i int, in protocol.Input) brute {
	p := e.alg.New(protocol.ID(i), protocol.Config{N: 2})
	if b.state[i] != nil {
		if _, err := protocol.LoadState(b.state[i], p); err != nil {
			panic(err)
		}
	}
	var out protocol.Out[struct{}]
	p.Step(protocol.Event[struct{}]{Input: in}, &out)
	b.state[i] = protocol.AppendState(nil, p)
	b.open[i] = slices.Clone(b.open[i])
	for _, f := range out.Effects {
		switch f.Do {
		case protocol.Crit:
			b.section[i] = protocol.InCrit
		case protocol.Rem:
			b.section[i] = protocol.InRem
		default:
			b.open[i] = append(b.open[i], openAccess{f.Do, int(f.To), f.Arg, false})
		}
	}
	slices.SortFunc(b.open[i], func(x, y openAccess) int { return x.register - y.register })
	return b
}

// ends ends access k of process i with a value.
func (e *enumeration) ends(b brute, i, k int, v uint64) brute {
	o := b.open[i][k]
	b.open[i] = slices.Delete(slices.Clone(b.open[i]), k, k+1)
	return e.step(b, i, protocol.Input{Kind: protocol.Value, From: protocol.ID(o.register), Arg: v})
}

// leave returns the states behind b. busy says that something that must happen can: a step of
// an access, or one that changes the state.
func (e *enumeration) leave(b brute) (next []brute, busy bool) {
	for i := range 2 {
		switch {
		case b.section[i] == protocol.InRem && b.tries[i] > 0:
			c := b
			c.tries[i]--
			c.section[i] = protocol.InTry
			next = append(next, e.step(c, i, protocol.Input{Kind: protocol.Try}))
		case b.section[i] == protocol.InCrit:
			c := b
			c.section[i] = protocol.InExit
			next, busy = append(next, e.step(c, i, protocol.Input{Kind: protocol.Exit})), true
		}
		for k, o := range b.open[i] {
			met := func(v uint64) bool { return o.do == protocol.Read || v == 0 || v >= o.arg }
			r := o.register
			c := b
			switch {
			case o.do == protocol.Write && e.safe && !o.begun:
				c.open[i] = slices.Clone(b.open[i])
				c.open[i][k].begun = true
				c.writing[r]++
				next, busy = append(next, c), true
			case o.do == protocol.Write:
				if o.begun {
					c.writing[r]--
				}
				c.values[r] = o.arg
				next, busy = append(next, e.ends(c, i, k, 0)), true
			case b.writing[r] > 0:
				for v := range uint64(finds) {
					if met(v) {
						next = append(next, e.ends(b, i, k, v))
						busy = busy || o.do == protocol.Read
					}
				}
			case met(b.values[r]):
				next, busy = append(next, e.ends(b, i, k, b.values[r])), true
			}
		}
	}
	return next, busy
}

const mostBrute = 3_000

// all visits the states, unless there are too many.
func (e *enumeration) all() bool {
	b := brute{tries: [2]int{2, 2}}
	for r := range b.values {
		b.values[r] = e.list[r].Initial
	}
	for i := range 2 {
		b = e.step(b, i, protocol.Input{Kind: protocol.Start})
	}
	e.states = map[string]bool{b.key(): true}
	for queue := []brute{b}; len(queue) > 0; queue = queue[1:] {
		b := queue[0]
		e.exclusion = e.exclusion || b.section == [2]protocol.Section{protocol.InCrit, protocol.InCrit}
		next, busy := e.leave(b)
		waits := slices.Contains(b.section[:], protocol.InTry) || slices.Contains(b.section[:], protocol.InExit)
		e.deadlock = e.deadlock || waits && !busy
		for _, n := range next {
			if k := n.key(); !e.states[k] {
				e.states[k] = true
				queue = append(queue, n)
			}
		}
		if len(e.states) > mostBrute {
			return false
		}
	}
	return true
}

// Random algorithms with shared memory, against an enumeration by brute force: the same number of
// states, and the same verdicts, each with a run that is one.
func TestMemoryOracle(t *testing.T) {
	verdicts, compared, states := map[string]int{}, 0, 0
	for seed := range lane.Of[uint64](t, "algorithms", 130, 200, 200) {
		r := rand.New(rand.NewPCG(seed, 3))
		list := []protocol.Register{
			{Name: "a", Owner: 0, Most: finds - 1, Initial: uint64(r.IntN(finds))},
			{Name: "b", Owner: 1, Most: finds - 1},
			{Name: "c", Owner: protocol.Shared, Most: finds - 1},
		}
		a := ordered(drawOrders(r), list)
		semantics := []protocol.Semantics{protocol.Atomic, protocol.Safe}[seed%2]
		e := &enumeration{alg: a, list: list, safe: semantics == protocol.Safe}
		if !e.all() {
			continue
		}
		compared++
		c := config(2)
		c.Entries, c.Registers, c.Properties = []int{2}, semantics, []string{check.Model}
		if v := run(t, a, c); v.Verdict != check.Holds || int(v.States) != len(e.states) {
			t.Errorf("seed %d, %s: %s with %d states, want %d", seed, semantics, v.Verdict, v.States, len(e.states))
		} else {
			states += len(e.states)
		}
		for property, violated := range map[string]bool{check.Exclusion: e.exclusion, check.Deadlock: e.deadlock} {
			c.Properties = []string{property}
			v := run(t, a, c)
			if (v.Verdict == check.Violated) != violated {
				t.Errorf("seed %d, %s: %s is %s, want violated %v: %v", seed, semantics, property, v.Verdict, violated, v.Trace)
			}
			if verdicts[fmt.Sprintf("%s %s %s", semantics, property, v.Verdict)]++; v.Verdict == check.Violated {
				if got := retaken(t, a, c, v.Trace); got != property {
					t.Errorf("seed %d: taken again it violates %q, want %s", seed, got, property)
				}
			}
		}
	}
	t.Logf("%d algorithms, %d states: %v", compared, states, verdicts)
	for _, semantics := range []protocol.Semantics{protocol.Atomic, protocol.Safe} {
		for _, property := range []string{check.Exclusion, check.Deadlock} {
			for _, verdict := range []check.Result{check.Holds, check.Violated} {
				if n := verdicts[fmt.Sprintf("%s %s %s", semantics, property, verdict)]; n < 4 {
					t.Errorf("%s %s %s: only %d algorithms", semantics, property, verdict, n)
				}
			}
		}
	}
}

// retaken takes a trace step by step, and returns what it violates at its end.
func retaken(t *testing.T, a protocol.Algorithm[struct{}], c check.Config, trace []string) string {
	w, err := check.NewWalk(a, c)
	if err != nil {
		t.Fatal(err)
	}
	steps, err := w.Names().Parse(strings.NewReader(strings.Join(trace, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range steps {
		if _, err := w.Take(s); err != nil {
			t.Fatal(err)
		}
	}
	property, _ := w.Violation()
	return property
}
