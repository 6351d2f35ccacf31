package sigma

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/poundlock/poundlock/algo/algotest"
	"github.com/poundlock/poundlock/algo/quorum"
	"github.com/poundlock/poundlock/internal/lane"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
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
				with(model(2, options), rooms),
				with(model(2, options), func(c *check.Config) { rooms(c); c.UntilTold = true }),
				with(model(2, options), func(c *check.Config) {
					either(c)
					c.Wants = [][]protocol.Groups{{"r,s"}, {"s,r"}}
				}),
				with(model(2, options), func(c *check.Config) { c.Crash, c.Suspect = 1, 1 }),
			}}
			if options != nil {
				o.Exhaustive = o.Exhaustive[:5]
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

// The wire form of each kind of message.
func TestWireForm(t *testing.T) {
	for _, c := range []struct {
		m          Message
		wire, text string
	}{
		{Message{Kind: Request, Time: 5}, "00 05 00 00", "REQUEST(5)"},
		{Message{Kind: Request, Time: 5, Serial: 2, Stage: Again}, "00 05 02 01", "REQUEST(5 serial=2 again)"},
		{Message{Kind: Request, Time: 300, Stage: Inside}, "00 ac 02 00 02", "REQUEST(300 inside)"},
		{
			Message{Kind: Response, Owner: 9, Time: 5, Inc: 3, Serial: 1, Token: 4},
			"01 05 09 03 01 04",
			"RESPONSE(#9@5 inc=3 serial=1 token=4)",
		},
		{Message{Kind: Request, Time: 5, After: 7}, "11 05 00 00 07", "REQUEST(5 head=7)"},
		{Message{Kind: Request, Time: 5, Stage: Again, Group: 'r', After: 7}, "11 05 00 04 72 07", "REQUEST(5 head=7 group=r again)"},
		{Message{Kind: Yield, Time: 5, Serial: 1}, "02 05 01", "YIELD(5 serial=1)"},
		{Message{Kind: Yield, Time: 5, Serial: 1, After: 300}, "12 05 01 ac 02", "YIELD(5 head=300 serial=1)"},
		{Message{Kind: Release, Time: 5}, "03 05", "RELEASE(5)"},
		{Message{Kind: Inquiry, Time: 5}, "04 05", "INQUIRY(5)"},
		{Message{Kind: Check, Time: 5}, "05 05", "CHECK(5)"},
		{Message{Kind: SetToken, Time: 5, Serial: 1, Token: 7}, "06 05 01 07", "SETTOKEN(5 serial=1 token=7)"},
		{Message{Kind: Recorded, Time: 5, Token: 7}, "07 05 07", "RECORDED(5 token=7)"},
		{Message{Kind: Refused, Time: 5, Token: 7}, "08 05 07", "REFUSED(5 token=7)"},
		{Message{Kind: Recall, Time: 5, Inc: 3, Serial: 1}, "09 05 03 01", "RECALL(5 inc=3 serial=1)"},
		{Message{Kind: Draining, Inc: 3}, "0a 03", "DRAINING(inc=3)"},
		{
			Message{Kind: Promise, Owner: 9, After: 4, Time: 5, Inc: 3, Serial: 1, Token: 7},
			"0c 05 09 04 03 01 07",
			"PROMISE(5 after #9@4 inc=3 serial=1 token=7)",
		},
		{Message{Kind: Transfer, Time: 5, Owner: 9}, "13 05 09", "TRANSFER(5 to #9)"},
		{Message{Kind: Release, Time: 5, After: 1, Token: 7}, "0e 05 07", "RELEASE(5 ended token=7)"},
		{
			Message{Kind: Response, Owner: 9, Time: 5, Inc: 3, Serial: 1, Token: 4, After: 1},
			"0f 05 09 03 01 04",
			"RESPONSE(#9@5 ended inc=3 serial=1 token=4)",
		},
		{Message{Kind: Request, Time: 5, Stage: Again, Group: 'r'}, "00 05 00 04 72", "REQUEST(5 group=r again)"},
		{Message{Kind: Response, Owner: 9, Time: 5, Inc: 3, Group: 'r'}, "10 05 09 03 00 72", "RESPONSE(#9@5 inc=3 group=r)"},
		{
			Message{Kind: Response, Owner: 9, Time: 5, Inc: 3, Serial: 1, Token: 4, Group: 'r', Stage: Wanted},
			"0d 05 09 03 01 04 72",
			"RESPONSE(#9@5 inc=3 serial=1 token=4 group=r wanted)",
		},
		{Message{Kind: Downgrade, Time: 5, Group: 'r'}, "0b 05 72 00", "DOWNGRADE(5 group=r)"},
		{Message{Kind: Downgrade, Time: 5, Group: 'r', After: 300}, "0b 05 72 ac 02", "DOWNGRADE(5 head=300 group=r)"},
		{Message{Kind: Request, Time: 5, Group: 's', Token: 'r'}, "00 05 00 06 73 72 00", "REQUEST(5 group=s,r)"},
		{Message{Kind: Request, Time: 5, Stage: Inside, Group: 's', Token: 'r', Inc: 't'}, "00 05 00 08 73 72 74", "REQUEST(5 group=s,r,t inside)"},
	} {
		b := Algorithm.Append(nil, c.m)
		if got := fmt.Sprintf("% x", b); got != c.wire {
			t.Errorf("%s is %s, want %s", c.text, got, c.wire)
		}
		if got := Algorithm.Text(c.m); got != c.text {
			t.Errorf("text %s, want %s", got, c.text)
		}
		m, rest, err := Algorithm.Read(b)
		if m != c.m || len(rest) > 0 || err != nil {
			t.Errorf("%s is read as %+v, %d bytes left, %v", c.text, m, len(rest), err)
		}
	}
	for _, bad := range [][]byte{
		{0, 5, 0, 3},
		{0, 5, 0},
		{9, 5, 3},
		{10},
		{11, 5},
		{13, 5, 0, 7},
		{15, 5},
		{16, 5, 9, 3, 0, 0},
		{0, 5, 0, 6, 73, 0, 72},
		{0, 5, 0, 9, 73, 72, 72},
		{19, 5},
		{20, 5, 1, 7},
	} {
		if m, _, err := Algorithm.Read(bad); err == nil {
			t.Errorf("% x is read as %+v", bad, m)
		}
	}
	for _, text := range []protocol.Group{"", "!w", "readers"} {
		m := Message{Kind: Request, Time: 5, Group: share(text)}
		got, rest, err := Algorithm.Read(Algorithm.Append(nil, m))
		if got != m || len(rest) > 0 || err != nil {
			t.Errorf("a request for %q is read as %+v, %v", text, got, err)
		}
	}
	// A queue out of order is no state.
	s := newServer(0, protocol.Config{N: 4})
	s.owner = entry{request{9, 1}, 1}
	for _, w := range []waiter{{entry: entry{request{7, 5}, 0}}, {entry: entry{request{8, 4}, 0}, mode: inside}} {
		s.insert(w)
	}
	b := protocol.AppendState(nil, s)
	if _, err := protocol.LoadState(b, s); err != nil {
		t.Errorf("its own state is refused: %v", err)
	}
	const waits, rest = 6, 2 // client, time, serial, group, head start, whether it is inside; group and number of those that share
	w := len(b) - rest - waits
	b[w+5], b[w-1] = b[w-1], b[w+5]
	if _, err := protocol.LoadState(b, s); err == nil {
		t.Error("a queue out of order is accepted")
	}
	b[w+5], b[w-1] = b[w-1], b[w+5]
	b = slices.Insert(b, w, b[w:w+waits]...)
	b[w-waits-1]++ // the number of waiters
	if _, err := protocol.LoadState(b, s); err == nil {
		t.Error("a request that waits twice is accepted")
	}
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
			if c.losses > 1 {
				lane.CI.Need(t, "a trace of 16 steps, after six seconds")
			}
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
