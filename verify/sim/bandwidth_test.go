package sim_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/poundlock/poundlock/algo/ricartagrawala"
	"github.com/poundlock/poundlock/algo/suzukikasami"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/sim"
)

// sizes has p1 send notes of so many integers when it tries, one to all and one to p2 each, and
// returns when p2 and p3 got them, as number@time in µs.
func sizes(t *testing.T, c sim.Config, numbers ...uint64) (got []string) {
	t.Helper()
	start := int64(0)
	on := func(id protocol.ID, ev protocol.Event[note], out *protocol.Out[note]) {
		switch ev.Kind {
		case protocol.Start:
			start = ev.Now
		case protocol.Receive:
			got = append(got, fmt.Sprintf("p%d %d@%d", id+1, ev.Msg.Number, (ev.Now-start)/1000))
		case protocol.Try:
			if id == 0 {
				for _, k := range numbers {
					out.Broadcast(note{k})
					out.Send(1, note{k})
				}
			}
			out.SetTimer(1, int64(time.Second), 0)
		case protocol.Timeout:
			out.Crit(0)
		case protocol.Exit:
			out.Rem()
		}
	}
	a := toys(protocol.Members, on)
	a.Ints = func(m note) int { return int(m.Number) }
	c.N, c.Entries, c.Think = 3, []int{1}, sim.Constant(3*time.Second)
	mustRun(t, a, c)
	return got
}

// A message of k integers takes 32k/(1000B) ms at B kbit/ms, and each copy of a broadcast the
// same. What is shorter overtakes, unless channels are FIFO.
func TestBandwidth(t *testing.T) {
	for _, c := range []struct {
		fifo      bool
		bandwidth float64
		want      []string
	}{
		{false, 0, []string{"p2 10@1000", "p3 10@1000", "p2 10@1000", "p2 1@1000", "p3 1@1000", "p2 1@1000"}},
		{false, 1, []string{"p2 1@1032", "p3 1@1032", "p2 1@1032", "p2 10@1320", "p3 10@1320", "p2 10@1320"}},
		{false, 3.2, []string{"p2 1@1010", "p3 1@1010", "p2 1@1010", "p2 10@1100", "p3 10@1100", "p2 10@1100"}},
		{true, 3.2, []string{"p2 10@1100", "p3 10@1100", "p2 10@1100", "p2 1@1100", "p3 1@1100", "p2 1@1100"}},
	} {
		cfg := sim.Config{Bandwidth: c.bandwidth, FIFO: c.fifo, Delay: sim.Constant(time.Millisecond)}
		if got := sizes(t, cfg, 10, 1); !slices.Equal(got, c.want) {
			t.Errorf("%v kbit/ms, FIFO %v: %q, want %q", c.bandwidth, c.fifo, got, c.want)
		}
	}
}

// Where all messages have one size, a bandwidth is a longer constant delay: run by run the same.
func TestBandwidthOfEqualMessages(t *testing.T) {
	c := saturated(5, 20, sim.Constant(time.Millisecond))
	with := c
	with.Bandwidth = 3.2
	c.Delay = sim.Constant(1010 * time.Microsecond) // one integer
	if a, b := trace(t, ricartagrawala.Algorithm, with), trace(t, ricartagrawala.Algorithm, c); a != b {
		t.Error("two runs differ")
	}
	with.Bandwidth = 1.6
	if trace(t, ricartagrawala.Algorithm, with) == trace(t, ricartagrawala.Algorithm, c) {
		t.Error("half the bandwidth is the same run")
	}
}

// The item that stands for all copies of a broadcast changes nothing but the time that a run takes: with
// FIFO channels there is one item for each copy, and where a process broadcasts one message at a time
// no message waits for another one.
func TestBandwidthOfBroadcasts(t *testing.T) {
	c := saturated(6, 20, sim.Constant(time.Millisecond))
	c.Bandwidth, c.Think = 1, sim.Constant(time.Second)
	one := trace(t, suzukikasami.Algorithm, c)
	c.FIFO = true
	if trace(t, suzukikasami.Algorithm, c) != one {
		t.Error("two runs differ")
	}
}
