package ra2

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/poundlock/poundlock/check"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/sim"
)

// A pair is a message as it is, and the same with the whole vector.
type pair struct{ short, whole Message }

// A twin is one process twice: one that sends differences, and one that sends whole vectors.
type twin struct {
	short, whole *Process
	outs         [2]protocol.Out[Message]
}

// twins is the algorithm in which all that differs between the two panics.
func twins() protocol.Algorithm[pair] {
	return protocol.Algorithm[pair]{
		Info: Algorithm.Info,
		New: func(id protocol.ID, c protocol.Config) protocol.Process[pair] {
			whole := c
			whole.Options = with("full", 1)
			return &twin{short: newProcess(id, c).(*Process), whole: newProcess(id, whole).(*Process)}
		},
		Append: func(b []byte, m pair) []byte { return appendMessage(appendMessage(b, m.short), m.whole) },
		Read: func(b []byte) (m pair, rest []byte, err error) {
			if m.short, rest, err = readMessage(b); err == nil {
				m.whole, rest, err = readMessage(rest)
			}
			return m, rest, err
		},
		KindOf: func(m pair) int { return int(m.short.Kind) },
		Ints:   func(m pair) int { return ints(m.short) },
		Text:   func(m pair) string { return text(m.short) + " " + text(m.whole) },
		Model: protocol.Model[pair]{
			MapState: func(p protocol.Process[pair], f func(protocol.Counter, uint64) uint64) {
				mapState(p.(*twin).short, f)
				mapState(p.(*twin).whole, f)
			},
			MapMsg: func(ch protocol.Channel, m *pair, f func(protocol.Counter, uint64) uint64) {
				mapMsg(ch, &m.short, f)
				mapMsg(ch, &m.whole, f)
			},
		},
	}
}

func (p *twin) Step(ev protocol.Event[pair], out *protocol.Out[pair]) {
	for i, q := range []*Process{p.short, p.whole} {
		p.outs[i].Reset()
		m := ev.Msg.short
		if i == 1 {
			m = ev.Msg.whole
		}
		q.Step(protocol.Event[Message]{Input: ev.Input, Msg: m}, &p.outs[i])
	}
	short, whole := p.outs[0].Effects, p.outs[1].Effects
	if !slices.Equal(p.short.granted.numbers, p.whole.granted.numbers) {
		panic(fmt.Sprintf("the vector is %v by differences, and is %v", p.short.granted.numbers, p.whole.granted.numbers))
	}
	if len(short) != len(whole) {
		panic("one does more than the other")
	}
	for i, e := range short {
		if e.Act != whole[i].Act {
			panic("one does something else than the other")
		}
		out.Effects = append(out.Effects, protocol.Effect[pair]{Act: e.Act, Msg: pair{e.Msg, whole[i].Msg}})
	}
}

func (p *twin) AppendState(b []byte) []byte { return p.whole.AppendState(p.short.AppendState(b)) }

func (p *twin) LoadState(b []byte) ([]byte, error) {
	b, err := p.short.LoadState(b)
	if err != nil {
		return nil, err
	}
	return p.whole.LoadState(b)
}

// On FIFO channels everybody knows as much from differences as from whole vectors, in every
// state. Singhal and Kshemkalyani 1992.
func TestVector(t *testing.T) {
	v, err := check.Run(twins(), check.Config{Config: protocol.Config{N: 3}, Wants: mixed, MaxMemory: 1 << 30})
	if err != nil || v.Verdict != check.Holds {
		t.Errorf("%s is %s (%s), %v: %s", v.Property, v.Verdict, v.Bounds, err, v.Reason)
	}
	for n, entries := range map[int]int{5: 100, 30: 10} {
		r, err := sim.Run(twins(), sim.Config{
			Config: protocol.Config{N: n}, Entries: []int{entries}, Groups: 3, Delay: sim.Exponential(time.Millisecond),
			Think: sim.Exponential(5 * time.Millisecond), Hold: sim.Exponential(time.Millisecond),
		})
		if err != nil || r.ViolationCount > 0 {
			t.Error(err, r.Violations)
		}
	}
}

// Whatever changes, what messages tell is what changed since the last one to the same
// process, and what was told stays as it was; through many logs.
func TestTell(t *testing.T) {
	if fault := tells(); fault != "" {
		t.Error(fault)
	}
}

func tells() string {
	const n = 70
	random := rand.New(rand.NewPCG(1, 0))
	v := newVector(n, false)
	changed := make([]map[uint32]uint32, n) // for each process: what it has not been told
	for j := range changed {
		changed[j] = map[uint32]uint32{}
	}
	type told struct {
		g    Grants
		want map[uint32]uint32
	}
	var all []told
	for step := range 20_000 {
		if random.IntN(3) > 0 {
			c := Grant{uint32(random.IntN(n)), uint32(step + 1)}
			v.merge(Grants{[]Grant{{c.Of, v.numbers[c.Of]}, c}, 1}) // the first is no news
			for j := range changed {
				changed[j][c.Of] = c.Number
			}
			continue
		}
		j := random.IntN(n)
		all = append(all, told{v.tell(protocol.ID(j)), changed[j]})
		changed[j] = map[uint32]uint32{}
	}
	for i, x := range all {
		got := x.g.List()
		ok := len(got) == len(x.want) && x.g.Count == len(got)
		for _, c := range got {
			ok = ok && x.want[c.Of] == c.Number
		}
		if !ok {
			return fmt.Sprintf("vector by story, message %d tells %v, %d entries; want %v", i, x.g, x.g.Count, x.want)
		}
	}
	return ""
}

// unordered is the algorithm on channels that are not FIFO.
func unordered() protocol.Algorithm[Message] {
	a := Algorithm
	a.FIFO = false
	return a
}

// What FIFO channels are for, with whole vectors, too: a REQUEST that is overtaken by a later
// one is taken for that, and a REPLY that overtakes a REQUEST says in vain that it is done.
func TestChannels(t *testing.T) {
	for _, o := range []map[string]int64{nil, with("full", 1)} {
		for _, c := range []struct {
			property string
			entries  []int
		}{{check.Deadlock, []int{1, 1, 1}}, {check.Exclusion, []int{1, 2, 1}}} {
			m := check.Config{
				Config: protocol.Config{N: 3, Options: o}, Entries: c.entries,
				Wants: [][]protocol.Groups{{"1"}, {"1"}, {"2"}}, Properties: []string{c.property}, MaxMemory: 256 << 20,
			}
			v, err := check.Run(unordered(), m)
			if err != nil || v.Verdict != check.Violated || v.Property != c.property {
				t.Errorf("%v: %s is %s (%s), %v; want %s violated", o, v.Property, v.Verdict, v.Bounds, err, c.property)
			}
			if v, err := check.Run(Algorithm, m); err != nil || v.Verdict != check.Holds {
				t.Errorf("%v, FIFO: %s is %s (%s), %v", o, v.Property, v.Verdict, v.Bounds, err)
			}
		}
	}
}
