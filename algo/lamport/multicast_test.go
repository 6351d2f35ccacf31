package lamport

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/poundlock/poundlock/algo/algotest"
	"github.com/poundlock/poundlock/algo/algotest/mutant"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/causal"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/sim"
)

var multicastOptions = algotest.Options{
	Allocations: 1, // a queue grows
	Exhaustive: []check.Config{
		{Config: protocol.Config{N: 1}, Entries: []int{3}, Operations: []int{2}, Properties: []string{"all"}},
		{Config: protocol.Config{N: 2}, Entries: []int{2}, Properties: []string{"all"}},
		{Config: protocol.Config{N: 3}, Entries: []int{1, 1, 0}, Operations: []int{0}},
	},
}

func TestConformanceMulticast(t *testing.T) { algotest.Run(t, Multicast, multicastOptions) }
func FuzzReadMulticast(f *testing.F)        { algotest.FuzzRead(f, Multicast, multicastOptions) }
func FuzzLoadStateMulticast(f *testing.F)   { algotest.FuzzLoadState(f, Multicast, multicastOptions) }

func TestConformanceMulticastUnordered(t *testing.T) {
	o := multicastOptions
	o.Exhaustive = o.Exhaustive[:1]
	two := protocol.Config{N: 2}
	o.Lacking = []check.Config{
		{Config: two, Entries: []int{2}, Operations: []int{0}, Properties: []string{"deadlock", "progress", "starvation", causal.Order}},
		{Config: two, Operations: []int{2}, Properties: []string{"one-copy", "contiguous", "fresh"}},
	}
	algotest.Run(t, MulticastUnordered, o)
}

// A run with contention, event by event.
func TestGoldenMulticast(t *testing.T) {
	algotest.Golden(t, Multicast, "multicast", sim.Config{
		Config: protocol.Config{N: 3}, Entries: []int{1}, Think: sim.Exponential(2 * time.Millisecond),
	})
}

// bare is totally ordered multicast by itself: a user that tries sends a command, and is in when that is delivered.
// It sends another one when it leaves, and waits for nothing. A process remembers what it sent and delivered.
type bare struct {
	Replica // which executes nothing

	known     []protocol.Stamp // sent, or arrived
	sent      []sending
	delivered []protocol.Stamp
}

// A sending is a command, and what its sender knew before.
type sending struct {
	protocol.Stamp
	before []protocol.Stamp
}

func (p *bare) Step(ev protocol.Event[MulticastMessage], out *protocol.Out[MulticastMessage]) {
	switch ev.Kind {
	case protocol.Try, protocol.Exit:
		if ev.Kind == protocol.Exit {
			out.Rem()
		}
		p.multicast(Command{}, out)
		s := protocol.Stamp{Time: out.Effects[len(out.Effects)-1].Msg.Time, ID: p.id}
		p.sent = append(p.sent, sending{s, slices.Clone(p.known)})
		p.known = append(p.known, s)
	case protocol.Receive:
		if p.receive(ev.From, ev.Msg, out); ev.Msg.Kind == Tell {
			p.known = append(p.known, protocol.Stamp{Time: ev.Msg.Time, ID: ev.From})
		}
	}
	for p.stable() {
		c := p.deliver()
		mine := func(s protocol.Stamp) bool { return s.ID == p.id }
		p.delivered = append(p.delivered, c.Stamp)
		if n := len(slices.DeleteFunc(slices.Clone(p.delivered), func(s protocol.Stamp) bool { return !mine(s) })); mine(c.Stamp) && n%2 == 1 {
			out.Crit(0)
		}
	}
}

func (p *bare) stamps(c *protocol.Codec, list *[]protocol.Stamp) {
	for i := range protocol.List(c, list) {
		c.Stamp(&(*list)[i], p.n)
	}
}

func (p *bare) State(c *protocol.Codec) {
	p.Replica.State(c)
	p.stamps(c, &p.known)
	p.stamps(c, &p.delivered)
	for i := range protocol.List(c, &p.sent) {
		c.Stamp(&p.sent[i].Stamp, p.n)
		p.stamps(c, &p.sent[i].before)
	}
}

// ordered is the algorithm of bare processes, with what totally ordered multicast promises. Those are
// properties of what is delivered, so they hold whatever the state machine above makes of it.
func ordered(a protocol.Algorithm[MulticastMessage]) protocol.Algorithm[MulticastMessage] {
	a.Weak, a.Model = false, protocol.Model[MulticastMessage]{}
	a.New = func(id protocol.ID, c protocol.Config) protocol.Process[MulticastMessage] {
		return &bare{Replica: *Multicast.New(id, c).(*Replica)}
	}
	for name, err := range map[string]func([]*bare) error{
		"same": same, "once": once, "sent": wasSent, "happened-before": happenedBefore,
	} {
		a.Invariants = append(a.Invariants, protocol.Invariant{Name: "multicast/" + name, Err: func(v *protocol.View) error {
			var procs []*bare
			for _, p := range protocol.Procs[*bare](v) {
				procs = append(procs, p)
			}
			return err(procs)
		}})
	}
	return a
}

// same: of any two processes one has delivered what the other one has, in the same order, and maybe more.
func same(procs []*bare) error {
	for _, p := range procs {
		for _, q := range procs {
			if n := min(len(p.delivered), len(q.delivered)); !slices.Equal(p.delivered[:n], q.delivered[:n]) {
				return fmt.Errorf("#%d has delivered %v, and #%d %v", p.id, p.delivered, q.id, q.delivered)
			}
		}
	}
	return nil
}

// once: nothing is delivered twice.
func once(procs []*bare) error {
	for _, p := range procs {
		for i, s := range p.delivered {
			if slices.Contains(p.delivered[:i], s) {
				return fmt.Errorf("#%d has delivered %v twice", p.id, s)
			}
		}
	}
	return nil
}

// wasSent: nothing is invented.
func wasSent(procs []*bare) error {
	for _, p := range procs {
		for _, s := range p.delivered {
			if !slices.ContainsFunc(procs[s.ID].sent, func(o sending) bool { return o.Stamp == s }) {
				return fmt.Errorf("#%d has delivered %v, which nobody sent", p.id, s)
			}
		}
	}
	return nil
}

// happenedBefore: what its sender knew of is delivered before a command, its own earlier ones too.
func happenedBefore(procs []*bare) error {
	for _, p := range procs {
		for i, s := range p.delivered {
			for _, o := range procs[s.ID].sent {
				for _, b := range o.before {
					if o.Stamp == s && !slices.Contains(p.delivered[:i], b) {
						return fmt.Errorf("#%d has delivered %v, and not %v before it", p.id, s, b)
					}
				}
			}
		}
	}
	return nil
}

var multicastProperties = []string{
	"multicast/same", "multicast/once", "multicast/sent", "multicast/happened-before", check.Deadlock,
}

// delivers is a model of bare processes in which users send so many commands each.
func delivers(commands ...int) check.Config {
	return check.Config{
		Config: protocol.Config{N: len(commands)}, Entries: commands, MaxMemory: 256 << 20, Properties: multicastProperties,
	}
}

// All deliver the same commands in the same order, each once, and none before one that happened before it.
// The lecture, totally ordered multicast.
func TestMulticast(t *testing.T) {
	for _, c := range []check.Config{delivers(2, 1), delivers(1, 1), delivers(1, 0, 0)} {
		v, err := check.Run(ordered(Multicast), c)
		if err != nil || v.Verdict != check.Holds {
			t.Errorf("%s is %s (%s): %v\n%q", v.Property, v.Verdict, v.Bounds, err, v.Trace)
		}
		t.Logf("%d states: %s", v.States, v.Bounds)
	}
}

// Where an acknowledgement may overtake a command, two processes deliver in different orders.
func TestMulticastUnordered(t *testing.T) {
	for property, steps := range map[string]int{"multicast/same": 4, "multicast/happened-before": 5} {
		c := delivers(2, 2)
		c.Properties = []string{property}
		v, err := check.Run(ordered(MulticastUnordered), c)
		shortest(t, v, err, property, steps)
	}
}

// Copies execute the same operations, and who enters has executed all before. Here three processes at the same time
// want in, and each message takes as long as it likes.
func TestMulticastSimulated(t *testing.T) {
	for seed := range uint64(20) {
		r, err := sim.Run(Multicast, sim.Config{
			Config: protocol.Config{N: 5}, Entries: []int{20}, Operations: []int{2}, Seed: seed,
			Delay: sim.Exponential(time.Millisecond), Think: sim.Exponential(20 * time.Millisecond),
		})
		if err != nil || r.ViolationCount > 0 || r.Entries != 100 {
			t.Errorf("seed %d: %d entries, %q, %v", seed, r.Entries, r.Violations, err)
		}
	}
}

// Each command costs n-1 TELLs, and as many RECEIVEDs of each process that gets one.
func TestMulticastMessages(t *testing.T) {
	for n := 1; n <= 6; n++ {
		s := algotest.NewSystem(Multicast, protocol.Config{N: n}, 0)
		for i, part := range []func(){func() { s.Try(0) }, func() { s.Issue(0, "a") }, func() { s.Exit(0) }} {
			part()
			s.Settle()
			if want := []int{(i + 1) * (n - 1), (i + 1) * (n - 1) * (n - 1)}; !slices.Equal(s.Kinds, want) {
				t.Errorf("n=%d, after command %d: %v messages, want %v", n, i+1, s.Kinds, want)
			}
		}
		for id, copied := range s.Copies {
			if !slices.Equal(copied, []string{"a"}) {
				t.Errorf("n=%d: process %d has executed %q", n, id, copied)
			}
		}
	}
}

// concurrent is a story in which a command of process 1 arrives after everything that process 0 needs for its own.
func concurrent() (fault string) {
	defer func() {
		if v := recover(); v != nil {
			fault = fmt.Sprint(v)
		}
	}()
	s := algotest.NewSystem(Multicast, protocol.Config{N: 2}, 0)
	s.Try(0)
	s.Try(1)
	s.Deliver(1, 0, 0) // as late as its own, of a process that comes later
	if got := s.Inside(); !slices.Equal(got, []protocol.ID{0}) {
		return fmt.Sprintf("a later command by story, %v are inside", got)
	}
	s.Settle()
	s.Exit(0)
	s.Settle()
	if got := s.Inside(); !slices.Equal(got, []protocol.ID{1}) {
		return fmt.Sprintf("who has left by story, %v are inside", got)
	}
	return ""
}

func TestMulticastConcurrent(t *testing.T) {
	if fault := concurrent(); fault != "" {
		t.Error(errors.New(fault))
	}
}

func TestMulticastMutants(t *testing.T) {
	model := func(entries, operations []int) mutant.Check {
		return mutant.Decided(Multicast, check.Config{
			Config: protocol.Config{N: len(entries)}, Entries: entries, Operations: operations,
			Properties: []string{"all"}, MaxMemory: 64 << 20,
		})
	}
	mutant.Test(t, mutant.Config{
		Checks: []mutant.Check{
			model([]int{3}, []int{2}),
			model([]int{1, 1}, []int{1}),
			model([]int{1, 0, 0}, []int{1}),
			mutant.Decided(ordered(Multicast), delivers(2, 1)),
			mutant.Decided(ordered(Multicast), delivers(1, 0, 0)),
			func() (string, error) { return concurrent(), nil },
			mutant.Model(causal.Of(Multicast), check.Config{
				Config: protocol.Config{N: 2}, Entries: []int{2}, Operations: []int{0}, Properties: []string{causal.Order}, MaxMemory: 64 << 20,
			}),
			mutant.Model(MulticastUnordered, check.Config{
				Config: protocol.Config{N: 2}, Properties: []string{check.Model}, MaxMemory: 64 << 20,
			}),
			algotest.Examine(Multicast, algotest.Options{Allocations: 1, Exhaustive: multicastOptions.Exhaustive[:1]}),
		},
		Outside: map[string]string{
			"Process": "mutual exclusion: TestMutants", "confluent": "the same",
			"Replica.Waiting": "what drivers ask, not the machine",
		},
		Replace: []mutant.Replacement{
			mutant.Edit("multicast: the clock stands still", "o.clock++\n\to.insert(", "o.insert("),
			mutant.Edit("multicast does not deliver to itself", "o.insert(stamped{protocol.Stamp{Time: o.clock, ID: o.id}, c})", ""),
			mutant.Edit("receive does not merge the clock", "o.clock = max(o.clock, m.Time)", ""),
			mutant.Edit("receive takes over any clock", "o.clock = max(o.clock, m.Time)", "o.clock = m.Time"),
			mutant.Edit("receive does not remember whom it heard", "o.heard[from] = max(o.heard[from], m.Time)", ""),
			mutant.Edit("receive does not queue", "o.insert(stamped{protocol.Stamp{Time: m.Time, ID: from}, m.Command})", ""),
			mutant.Edit("receive tells nobody", "out.Broadcast(MulticastMessage{Kind: Received, Time: o.clock})", ""),
			mutant.Edit("receive tells the sender only", "out.Broadcast(MulticastMessage{Kind: Received, Time: o.clock})",
				"out.Send(from, MulticastMessage{Kind: Received, Time: o.clock})"),
			mutant.Edit("receive: the clock stands still", "o.clock++\n\t\tout", "out"),
			mutant.Edit("insert appends", "o.queue = slices.Insert(o.queue, i, c)", "_, o.queue = i, append(o.queue, c)"),
			mutant.Edit("exit tells nobody", "p.multicast(Command{Do: Exit}, out)", ""),
			mutant.Edit("execute keeps a section", "p.sections = slices.Delete(p.sections, 0, 1)", ""),
			mutant.Edit("execute lets nobody in after another", "p.sections = slices.Delete(p.sections, 0, 1)\n\t\t\tp.admit(out)",
				"p.sections = slices.Delete(p.sections, 0, 1)"),
		},
	})
}
