package registers

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/poundlock/poundlock/algo/algotest"
	"github.com/poundlock/poundlock/algo/algotest/mutant"
	"github.com/poundlock/poundlock/algo/bakery"
	"github.com/poundlock/poundlock/algo/dijkstra"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/sim"
)

var (
	deferred = OverMessages(bakery.Awaiting, Deferred)
	polling  = OverMessages(bakery.Awaiting, Polling)
)

// loop is the option for waits that are one after the other.
var loop = map[string]int64{"parallel": 0}

// within is a model of n processes with all properties. Channels are not FIFO.
func within(n int, options map[string]int64, entries ...int) check.Config {
	return check.Config{
		Config: protocol.Config{N: n, Options: options}, Entries: entries, Properties: []string{"all"},
		MaxMemory: 512 << 20,
	}
}

func small(options map[string]int64) algotest.Options {
	return algotest.Options{Options: options, Exhaustive: []check.Config{within(1, options, 3), within(2, options, 3)}}
}

func TestConformance(t *testing.T)            { algotest.Run(t, deferred, small(nil)) }
func TestConformanceLoop(t *testing.T)        { algotest.Run(t, deferred, small(loop)) }
func TestConformancePolling(t *testing.T)     { algotest.Run(t, polling, small(nil)) }
func TestConformancePollingLoop(t *testing.T) { algotest.Run(t, polling, small(loop)) }
func FuzzRead(f *testing.F)                   { algotest.FuzzRead(f, deferred, small(nil)) }
func FuzzLoadState(f *testing.F)              { algotest.FuzzLoadState(f, deferred, small(nil)) }

// A run of each form with contention, event by event.
func TestGolden(t *testing.T) {
	c := sim.Config{Config: protocol.Config{N: 3}, Entries: []int{2}, Think: sim.Exponential(2 * time.Millisecond)}
	algotest.Golden(t, deferred, "run", c)
	algotest.Golden(t, polling, "polling", c)
	c.Options = loop
	algotest.Golden(t, deferred, "loop", c)
}

// What holds with atomic registers holds over messages, which overtake each other.
func TestHolds(t *testing.T) {
	for _, a := range []protocol.Algorithm[Message]{deferred, polling} {
		algotest.Holds(t, a, []check.Config{within(3, loop, 1)}, []check.Config{within(3, nil, 1), within(3, loop, 2, 1, 1)})
	}
}

// An entry takes 6(N-1) messages however many wait and however long messages take, if
// answers are deferred. Who polls sends more.
func TestMessages(t *testing.T) {
	const n, entries = 6, 50
	for name, a := range map[string]protocol.Algorithm[Message]{"deferred": deferred, "polling": polling} {
		r, err := sim.Run(a, sim.Config{
			Config: protocol.Config{N: n}, Entries: []int{entries}, Delay: sim.Exponential(time.Millisecond),
			Think: sim.Constant(0), Hold: sim.Exponential(time.Millisecond),
		})
		if err != nil || r.ViolationCount != 0 {
			t.Fatal(err, r.Violations)
		}
		const want = 6 * (n - 1) * n * entries
		if exact := int(r.Messages) == want; exact != (name == "deferred") || int(r.Messages) < want {
			t.Errorf("%s: %d messages, %d are those without a repeated read", name, r.Messages, want)
		}
		t.Log(name, r.MessagesPerEntry, r.Waiting, r.SyncDelay)
	}
}

// What cannot be shared out is refused, by name.
func TestRefused(t *testing.T) {
	without := bakery.Awaiting
	without.Registers = nil
	mixed := bakery.Awaiting
	mixed.Registers = func(c protocol.Config) []protocol.Register {
		list := bakery.Awaiting.Registers(c)
		list[0], list[1] = list[1], list[0]
		return list
	}
	for want, a := range map[string]protocol.Algorithm[struct{}]{
		"memory: dijkstra: register k has several writers":                      dijkstra.Algorithm,
		"memory: bakery-messages: it has no registers":                          without,
		"memory: bakery-messages: register choosing[2] is number 0 and belongs": mixed,
	} {
		func() {
			defer func() {
				if text := fmt.Sprint(recover()); !strings.HasPrefix(text, want) {
					t.Errorf("got %q, want %q", text, want)
				}
			}()
			OverMessages(a, Deferred)
		}()
	}
}

// Every text in one place, so that traces can be read.
func TestText(t *testing.T) {
	for want, m := range map[string]Message{
		"READ(choosing)":            {Kind: Read},
		"READ(num, until 0 or >=3)": {Kind: Read, Register: 1, V: 3},
		"VALUE(num=7)":              {Kind: Value, Register: 1, V: 7},
	} {
		if got := deferred.Text(m); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// script is a process that does one thing after the other, and notes what it is told.
type script struct {
	protocol.Process[struct{}] // never encoded
	acts                       []protocol.Act
	told                       []uint64
}

func (p *script) Step(ev protocol.Event[struct{}], out *protocol.Out[struct{}]) {
	p.told = append(p.told, ev.Arg)
	out.Effects = append(out.Effects, protocol.Effect[struct{}]{Act: p.acts[0]})
	p.acts = p.acts[1:]
}

// A scripted process is process 1 of 3, which own the registers r and s: these hold 2.
type scripted struct {
	alg   protocol.Algorithm[Message]
	inner *script
	outer protocol.Process[Message]
}

func newScripted(f Form, acts ...protocol.Act) scripted {
	p := &script{acts: acts}
	a := OverMessages(protocol.Algorithm[struct{}]{
		Info: protocol.Info{Registers: func(c protocol.Config) (list []protocol.Register) {
			for i := range 2 * c.N {
				list = append(list, protocol.Register{Name: "rs"[i/c.N:][:1], Owner: protocol.ID(i % c.N), Initial: 2})
			}
			return list
		}},
		New: func(protocol.ID, protocol.Config) protocol.Process[struct{}] { return p },
	}, f)
	return scripted{a, p, a.New(1, protocol.Config{N: 3})}
}

// step tells what the process does about ev.
func (s scripted) step(ev protocol.Event[Message]) string {
	var out protocol.Out[Message]
	s.outer.Step(ev, &out)
	var did []string
	for _, e := range out.Effects {
		if e.Do == protocol.Send {
			did = append(did, fmt.Sprintf("%s to %d", s.alg.Text(e.Msg), e.To))
		} else {
			did = append(did, fmt.Sprint("effect ", e.Do))
		}
	}
	return fmt.Sprintf("%s %d", strings.Join(did, ", "), s.inner.told)
}

func (s scripted) try() string {
	return s.step(protocol.Event[Message]{Input: protocol.Input{Kind: protocol.Try}})
}

func (s scripted) receive(from protocol.ID, m Message) string {
	return s.step(protocol.Event[Message]{Input: protocol.Input{Kind: protocol.Receive, From: from}, Msg: m})
}

// The registers of process 1, and one of process 0.
const (
	r0 = 0
	r1 = 1
	s1 = 4
)

func access(do protocol.Do, register protocol.ID, v uint64) protocol.Act {
	return protocol.Act{Do: do, To: register, Arg: v}
}

var crit = protocol.Act{Do: protocol.Crit}

// stories tells what differs from what is told to be done.
func stories() string {
	var wrong string
	expect := func(got, want string) {
		if got != want && wrong == "" {
			wrong = fmt.Sprintf("accesses by story, %q instead of %q", got, want)
		}
	}
	// Own registers are accessed in the same step. A process that waits is answered by the write that
	// ends its wait, and no other one.
	p := newScripted(Deferred, access(protocol.Write, r1, 5), access(protocol.Read, r1, 0),
		access(protocol.Await, s1, 2), access(protocol.Write, r1, 7), crit)
	expect(p.receive(2, Message{Kind: Read, V: 6}), " []")
	expect(p.receive(0, Message{Kind: Read}), "VALUE(r=2) to 0 []")
	expect(p.try(), "VALUE(r=7) to 2, effect 3 [0 0 5 2 0]")

	// Another's register is waited for by one message, or by as many as it takes.
	p = newScripted(Deferred, access(protocol.Await, r0, 6), crit)
	expect(p.try(), "READ(r, until 0 or >=6) to 0 [0]")
	expect(p.receive(0, Message{Kind: Value, V: 6}), "effect 3 [0 6]")
	p = newScripted(Polling, access(protocol.Await, r0, 6), crit)
	expect(p.try(), "READ(r) to 0 [0]")
	expect(p.receive(0, Message{Kind: Value, V: 5}), "READ(r) to 0 [0]")
	expect(p.receive(0, Message{Kind: Value, V: 6}), "effect 3 [0 6]")
	return wrong
}

func TestStories(t *testing.T) {
	if wrong := stories(); wrong != "" {
		t.Error(wrong)
	}
}

// twice answers an access a second time.
func twice() {
	p := newScripted(Deferred, access(protocol.Read, r0, 0), crit, crit)
	p.try()
	p.receive(0, Message{Kind: Value})
	p.receive(0, Message{Kind: Value})
}

func TestMutants(t *testing.T) {
	mutant.Test(t, mutant.Config{
		Checks: []mutant.Check{
			mutant.Model(deferred, within(1, nil, 1)),
			mutant.Model(deferred, within(2, nil, 2)),
			mutant.Model(polling, within(2, nil, 2)),
			mutant.Model(deferred, within(3, loop, 1)),
			func() (string, error) { return stories(), nil },
			mutant.Panics("memory: ", twice),
			mutant.Panics("memory: ", func() {
				newScripted(Deferred, crit).step(protocol.Event[Message]{Input: protocol.Input{Kind: protocol.Value}})
			}),
		},
		Inside: []string{"Process", "ends"},
		Replace: []mutant.Replacement{
			mutant.Edit("an own access is not told", "p.todo = append(p.todo, protocol.NewValue(p.register(k, p.id), 0))", ""),
			mutant.Edit("write does not write", "p.own[k] = v", ""),
			mutant.Edit("write answers again", "*w = 0", ""),
			mutant.Edit("serve forgets who waits", "p.waiters[p.register(k, from)] = until", ""),
			mutant.Edit("a waiter is told what it waits for", "Message{Kind: Value, Register: uint64(k), V: p.own[k]}", "Message{Kind: Value, Register: uint64(k)}"),
			mutant.Edit("an access stays open", "p.open[r] = 0", ""),
			mutant.Edit("todo is told twice", "p.todo = append(p.todo[:0], in)", "p.todo = append(p.todo, in)"),
		},
	})
}
