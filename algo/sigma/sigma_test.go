package sigma

import (
	"maps"
	"testing"

	"github.com/poundlock/poundlock/algotest"
	"github.com/poundlock/poundlock/check"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/quorum"
)

// model is a small model of n servers and two clients with one entry each.
func model(n int, options map[string]int64) check.Config {
	return check.Config{Config: protocol.Config{N: n, Options: options}, Clients: 2, MaxMemory: 512 << 20}
}

func with(c check.Config, f func(*check.Config)) check.Config {
	c.Options = maps.Clone(c.Options)
	f(&c)
	return c
}

func TestConformance(t *testing.T) {
	for name, options := range map[string]map[string]int64{
		"plain":  nil,
		"fenced": {"fence": FenceOn},
	} {
		t.Run(name, func(t *testing.T) {
			o := algotest.Options{Sizes: []int{4, 7}, Options: options, Exhaustive: []check.Config{
				model(1, options),
				model(2, options),
				with(model(2, options), func(c *check.Config) { c.Crash, c.Suspect = 1, 1 }),
			}}
			if options != nil {
				o.Exhaustive = o.Exhaustive[:2]
				o.Skip = map[string]string{"Claims": "the first grants after a start pay for recording a token"}
			}
			algotest.Run(t, Algorithm, o)
		})
	}
}

func TestConformanceLiteral(t *testing.T) {
	algotest.Run(t, Literal, algotest.Options{Sizes: []int{4, 7}, Exhaustive: []check.Config{
		model(1, nil),
		model(2, nil),
		with(model(2, nil), func(c *check.Config) { c.Crash, c.Cancel = 1, 1 }),
	}})
}

func FuzzRead(f *testing.F) { algotest.FuzzRead(f, Algorithm, algotest.Options{}) }
func FuzzLoadState(f *testing.F) {
	algotest.FuzzLoadState(f, Algorithm, algotest.Options{Sizes: []int{4, 7}})
}

func FuzzLoadStateLiteral(f *testing.F) {
	algotest.FuzzLoadState(f, Literal, algotest.Options{Sizes: []int{4, 7}})
}

// With f >= n/3 faulty servers there are runs with two holders, and Theorem 4 says
// that no algorithm avoids them. In a shortest one each client takes 2m+1 steps,
// and each server that both use loses its memory in between.
func TestTheorem4(t *testing.T) {
	for _, c := range []struct {
		name      string
		algorithm protocol.Algorithm[Message]
		n, m      int
		losses    int
	}{
		{"literal, two thirds of 3", Literal, 3, quorum.TwoThirds(3), 1},
		{"two thirds of 3", Algorithm, 3, quorum.TwoThirds(3), 1},
		{"literal, majority of 3", Literal, 3, quorum.Majority(3), 1},
		{"literal, two thirds of 4 after two losses", Literal, 4, quorum.TwoThirds(4), 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := model(c.n, map[string]int64{"quorum": int64(c.m)})
			k.Amnesia, k.Properties = c.losses, []string{check.Exclusion}
			v, err := check.Run(c.algorithm, k)
			if err != nil {
				t.Fatal(err)
			}
			want := 2*(2*c.m+1) + c.losses
			if v.Verdict != check.Violated || v.Property != check.Exclusion || len(v.Trace) != want {
				t.Errorf("%s: %s after %d steps, want exclusion violated after %d\n%s",
					v.Verdict, v.Property, len(v.Trace), want, v.Bounds)
			}
		})
	}
}

// A server whose clock is wrong is no more than a silent one: what it refuses, the
// others may grant, and its clock is nobody's.
func TestWrongServerClock(t *testing.T) {
	const now = int64(1e15)
	c := newClient(9, protocol.Config{N: 4})
	var out protocol.Out[Message]
	step := func(in protocol.Input, m Message) {
		in.Now = now
		c.Step(protocol.Event[Message]{Input: in, Msg: m}, &out)
	}
	for j := range protocol.ID(4) {
		step(protocol.Input{Kind: protocol.Restore, From: j, Arg: 1}, Message{})
	}
	step(protocol.Input{Kind: protocol.Try}, Message{})
	ahead := uint64(now + 7200e9)
	step(protocol.Input{Kind: protocol.Receive, From: 0}, Message{Kind: Refused, Time: uint64(now), Token: ahead})
	for j := range protocol.ID(3) {
		step(protocol.Input{Kind: protocol.Receive, From: 1 + j},
			Message{Kind: Response, Owner: 9, Time: uint64(now), Inc: 1, Serial: 1})
	}
	if c.section != protocol.InCrit || c.time != uint64(now) || c.last != uint64(now) {
		t.Errorf("section %d, request %d, clock %d; want inside with %d", c.section, c.time, c.last, now)
	}
}
