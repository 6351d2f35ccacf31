package ra2

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/sim"
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
		Fields: pair.fields,
		KindOf: func(m pair) int { return int(m.short.Kind) },
		Ints:   func(m pair) int { return ints(m.short) },
		Text:   func(m pair) string { return text(m.short) + " " + text(m.whole) },
		Model:  protocol.Model[pair]{MapState: protocol.MapState[pair], MapMsg: protocol.MapMsg(pair.fields)},
	}
}

func (m pair) fields(c *protocol.Codec) pair {
	m.short, m.whole = m.short.fields(c), m.whole.fields(c)
	return m
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

// State implements protocol.Process.
func (p *twin) State(c *protocol.Codec) {
	p.short.State(c)
	p.whole.State(c)
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
	v := newVector(0, n, false)
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
			log := slices.Repeat([]Grant{{c.Of, v.numbers[c.Of]}}, 6) // no news
			log[step%len(log)] = c
			v.merge(listed(log))
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

// Whoever tells whom what, on FIFO channels, everybody knows the maximum of what has been
// told, entry by entry; so it is with states that are loaded, too.
func TestKnown(t *testing.T) {
	if fault := knows(); fault != "" {
		t.Error(fault)
	}
}

func knows() string {
	const n = 12
	random := rand.New(rand.NewPCG(2, 0))
	type told struct {
		g    Grants
		want []uint32
	}
	var all [n]vector
	var plain [n][]uint32
	var channels [n][n][]told
	for i := range all {
		all[i] = newVector(protocol.ID(i), n, false)
		plain[i] = make([]uint32, n)
	}
	spare := newVector(0, n, false) // has been somebody's
	for step := range 50_000 {
		i, j := random.IntN(n), random.IntN(n)
		v := &all[i]
		switch c := &channels[j][i]; {
		case step == 10_000:
			for i := range all { // nearly as many grants as can be counted
				all[i].made = -(pageSize << uint32(i%2))
			}
		case step%5000 == 0:
			if _, err := spare.loaded(v, protocol.ID(i)); err != nil {
				return fmt.Sprintf("known by story, step %d: %v", step, err)
			}
			*v, spare = spare, *v
		case random.IntN(20) == 0:
			for range 1 + random.IntN(5) {
				c := Grant{uint32(random.IntN(n)), uint32(step + 1)}
				v.set(v.write(c))
				plain[i][c.Of] = c.Number
			}
		case random.IntN(2) == 0 && i != j:
			channels[i][j] = append(channels[i][j], told{v.tell(protocol.ID(j)), slices.Clone(plain[i])})
		case len(*c) > 0:
			v.merge((*c)[0].g)
			for k, number := range (*c)[0].want {
				plain[i][k] = max(plain[i][k], number)
			}
			*c = (*c)[1:]
		}
		if !slices.Equal(v.numbers, plain[i]) {
			return fmt.Sprintf("known by story, step %d: %d knows %v, want %v", step, i, v.numbers, plain[i])
		}
	}
	return ""
}

// loaded makes v what other is.
func (v *vector) loaded(other *vector, id protocol.ID) ([]byte, error) {
	c := new(protocol.Codec).Appending(nil)
	other.state(c, id)
	v.state(c.Loading(c.Bytes()), id)
	return c.Rest()
}

// Grants of one leader that came one by one are passed on as one part, but for what had been
// told before, and they are known.
func TestParts(t *testing.T) {
	if fault := parts(); fault != "" {
		t.Error(fault)
	}
}

func parts() string {
	const n = 8
	leader, between := newVector(0, n, false), newVector(1, n, false)
	for i := range uint32(6) {
		leader.set(leader.write(Grant{i + 2, 1}))
		between.merge(leader.tell(1))
		if i == 3 {
			between.tell(2)
		}
	}
	if got := between.tell(3); len(got.log) != 2 || got.Count != 6 {
		return fmt.Sprintf("parts by story, %v is told in %d parts, want 2", got, len(got.log))
	}
	if known := between.known[0]; known != 6 {
		return fmt.Sprintf("parts by story, %d grants of the leader are known, want 6", known)
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
