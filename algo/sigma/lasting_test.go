package sigma

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/poundlock/poundlock/internal/lane"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
)

// lasting asks for starvation and progress of two clients with one entry each.
func lasting(n int) check.Config {
	return check.Config{
		Config: protocol.Config{N: n}, Clients: 2, MaxMemory: 512 << 20,
		Properties: []string{check.MakesProgress, check.Starvation},
	}
}

// With one of four servers down the other three are just enough, and nobody starves: with
// FIFO channels without any CHECK, and without FIFO channels where CHECKs have RELEASEs sent
// again (see asked). The default form needs no CHECK there either.
func TestNobodyStarves(t *testing.T) {
	fifo := func(c *check.Config) { c.FIFO = true }
	never := func(c *check.Config) { c.Timers = check.NeverFire }
	alone := func(c *check.Config) { c.Options = map[string]int64{"check": 0} }
	cancels := func(c *check.Config) { c.N, c.Down, c.Cancel = 2, nil, 1 }
	for _, test := range []struct {
		name   string
		a      protocol.Algorithm[Message]
		change func(*check.Config)
		large  bool
	}{
		{"literal, FIFO channels", Literal, fifo, false},
		{"literal, two servers, a try given up", Literal, cancels, false},
		{"literal", Literal, func(*check.Config) {}, true},
		{"default, FIFO channels", Algorithm, fifo, false},
		{"default, two servers, a try given up", Algorithm, cancels, false},
		{"default", Algorithm, func(*check.Config) {}, false},
		{"default, timers never fire", Algorithm, never, false},
		{"default, without CHECK", Algorithm, alone, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.large && !lane.Long.Runs() {
				t.Skip("a million states take 12 s of two processors: set TEST_LANE=long; two servers and FIFO channels are decided anyway")
			}
			c := lasting(4)
			c.Down = []protocol.ID{3}
			test.change(&c)
			v, err := check.Run(test.a, c)
			if err != nil || v.Verdict != check.Holds {
				t.Errorf("%s (%s), error %v\n%s", v.Verdict, v.Bounds, err, strings.Join(v.Trace, "\n"))
			}
			t.Logf("%d states: %s", v.States, v.Bounds)
		})
	}
}

// The reason for CHECK: a REQUEST that is overtaken by the RELEASE of its client leaves a
// support for nobody behind, and where no other server can make up for it the other client
// polls for ever. In the literal form that may be a REQUEST that was repeated (line 16). The
// default form repeats none to the same life of a server: there it takes a client that gives
// up, whose first REQUEST is still on its way.
func TestWithoutChecks(t *testing.T) {
	without := lasting(2)
	without.Options = map[string]int64{"check": 0}
	if v, err := check.Run(Algorithm, without); err != nil || v.Verdict != check.Holds {
		t.Errorf("default, nobody gives up: %s (%s), error %v", v.Verdict, v.Bounds, err)
	}
	for _, a := range []protocol.Algorithm[Message]{Literal, Algorithm} {
		if a.Variant == "" {
			without.Cancel = 1
		}
		v, err := check.Run(a, without)
		if err != nil || v.Verdict != check.Violated || v.Loop == check.NoLoop {
			t.Fatalf("%q: %s (%s), error %v", a.Variant, v.Verdict, v.Bounds, err)
		}
		overtaken := false
		for _, client := range []string{"c1", "c2"} {
			late := func(l string) bool {
				return strings.HasPrefix(l, "deliver "+client) && strings.Contains(l, " REQUEST(1")
			}
			if k := slices.IndexFunc(v.Trace, func(l string) bool {
				return strings.HasPrefix(l, "deliver "+client) && strings.Contains(l, " RELEASE(1")
			}); k >= 0 {
				overtaken = overtaken || slices.ContainsFunc(v.Trace[k:], late)
			}
		}
		if !overtaken {
			t.Errorf("%q: no REQUEST comes after the RELEASE of its client:\n%s", a.Variant, strings.Join(v.Trace, "\n"))
		}
		if slices.ContainsFunc(v.Trace[v.Loop:], func(l string) bool { return strings.HasPrefix(l, "try") }) {
			t.Errorf("%q: somebody tries in the loop:\n%s", a.Variant, strings.Join(v.Trace, "\n"))
		}
	}
}

// repeated says what asked rests on: in every state each server that supports an epoch that
// its client has left asks it, and the client answers RELEASE and stays as it is.
func repeated(a protocol.Algorithm[Message]) protocol.Invariant {
	return protocol.Invariant{Name: "sigma/asked", Err: func(v *protocol.View) error {
		step := func(id protocol.ID, in protocol.Input, m Message) (before, after []byte, sent []Message) {
			p := a.New(id, v.Config)
			before = protocol.AppendState(nil, v.Procs[id])
			if _, err := protocol.LoadState(before, p); err != nil {
				panic(err)
			}
			var out protocol.Out[Message]
			p.Step(protocol.Event[Message]{Input: in, Msg: m}, &out)
			for _, e := range out.Effects {
				if e.Do == protocol.Send {
					sent = append(sent, e.Msg)
				}
			}
			return before, protocol.AppendState(nil, p), sent
		}
		for j, s := range protocol.Procs[server](v) {
			owners, _ := s.table()
			if len(owners) == 0 {
				continue
			}
			owner := owners[0]
			if v.Procs[owner.client] == nil || currentTime(v, owner.client) == owner.time {
				continue
			}
			_, _, asks := step(j, protocol.Input{Kind: protocol.Timeout, Timer: checkTimer}, Message{})
			if want := (Message{Kind: Check, Time: owner.time}); !slices.Equal(asks, []Message{want}) {
				return fmt.Errorf("#%d asks %v", j, asks)
			}
			before, after, answer := step(owner.client, protocol.Input{Kind: protocol.Receive, From: j}, asks[0])
			if want := (Message{Kind: Release, Time: owner.time}); !slices.Equal(answer, []Message{want}) || !bytes.Equal(before, after) {
				return fmt.Errorf("#%d answers %v", owner.client, answer)
			}
		}
		return nil
	}}
}

// deaf ignores CHECKs.
type deaf struct{ protocol.Process[Message] }

func (d deaf) Step(ev protocol.Event[Message], out *protocol.Out[Message]) {
	if ev.Kind != protocol.Receive || ev.Msg.Kind != Check {
		d.Process.Step(ev, out)
	}
}

func TestAsked(t *testing.T) {
	for _, a := range []protocol.Algorithm[Message]{Literal, Algorithm} {
		c := check.Config{
			Config: protocol.Config{N: 2}, Clients: 2, Cancel: 1, Timers: check.NeverFire, MaxMemory: 128 << 20,
			Properties: []string{"sigma/asked"}, // a support for nobody, and no CHECK, is a deadlock
		}
		b := a
		b.Invariants = []protocol.Invariant{repeated(a)}
		if v, err := check.Run(b, c); err != nil || v.Verdict != check.Holds {
			t.Errorf("%q: %s, %s, error %v", a.Variant, v.Verdict, v.Reason, err)
		}
		hearing := a.New
		a.New = func(id protocol.ID, c protocol.Config) protocol.Process[Message] { return deaf{hearing(id, c)} }
		b.Invariants = []protocol.Invariant{repeated(a)}
		if v, err := check.Run(b, c); err != nil || v.Property != "sigma/asked" {
			t.Errorf("%q, clients that ignore CHECKs: %s of %q, error %v", a.Variant, v.Verdict, v.Property, err)
		}
	}
}
