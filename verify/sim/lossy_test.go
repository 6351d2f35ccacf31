package sim_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/sim"
)

// writers send notes whenever they try, one to each member of three and as many to
// all, and let their users in at once. heard is called for each that arrives.
func writers(heard func(from, to protocol.ID, number uint64)) protocol.Algorithm[note] {
	number := uint64(0)
	a := toys(protocol.Members, func(id protocol.ID, ev protocol.Event[note], out *protocol.Out[note]) {
		switch ev.Kind {
		case protocol.Receive:
			heard(ev.From, id, ev.Msg.Number)
		case protocol.Try:
			number++
			out.Broadcast(note{number})
			for j := range protocol.ID(3) {
				if j != id {
					number++
					out.Send(j, note{number})
				}
			}
		}
		grabber(noToken)(id, ev, out)
	})
	a.Tolerates |= protocol.Loss | protocol.Duplication
	return a
}

func lossyRun() sim.Config {
	return sim.Config{
		Config: protocol.Config{N: 3}, Entries: []int{1000}, Loss: 0.2, Dup: 0.1,
		Think: sim.Exponential(time.Second), Hold: sim.Constant(0),
	}
}

// Every message arrives as often as the channels' part of the result says, and that is
// as often as was asked for.
func TestLossAndDuplication(t *testing.T) {
	for name, delay := range map[string]sim.Dist{
		"one delay": sim.Constant(time.Millisecond), "delays": sim.Exponential(time.Millisecond),
	} {
		got := 0
		c := lossyRun()
		c.Delay = delay
		r := mustRun(t, writers(func(protocol.ID, protocol.ID, uint64) { got++ }), c)
		sent := float64(r.Messages)
		late := r.Messages - r.Lost + r.Duplicated - got // on their way at the end
		if sent != 12000 || late < 0 || late > 4 {
			t.Errorf("%s: %v sent, %d lost, %d repeated, %d arrived", name, sent, r.Lost, r.Duplicated, got)
		}
		near := func(k int, share float64) bool { return math.Abs(float64(k)/sent-share) < 0.015 }
		if !near(r.Lost, 0.2) || !near(r.Duplicated, 0.8*0.1) {
			t.Errorf("%s: of %v messages %d were lost and %d repeated", name, sent, r.Lost, r.Duplicated)
		}
	}
}

// A repeated message is no newer than it was, where channels keep the order.
func TestDuplicatesKeepTheOrder(t *testing.T) {
	for _, fifo := range []bool{true, false} {
		last, disorder := map[[2]protocol.ID]uint64{}, 0
		c := lossyRun()
		c.FIFO, c.Delay, c.Think = fifo, sim.Exponential(time.Second), sim.Exponential(time.Millisecond)
		mustRun(t, writers(func(from, to protocol.ID, number uint64) {
			if number < last[[2]protocol.ID{from, to}] {
				disorder++
			}
			last[[2]protocol.ID{from, to}] = number
		}), c)
		if (disorder == 0) != fifo {
			t.Errorf("fifo=%v: %d out of order", fifo, disorder)
		}
	}
}

// Users try at the same times whatever the channels do.
func TestLossLeavesTheWorkload(t *testing.T) {
	tries := func(loss float64) []string {
		c := lossyRun()
		c.Entries, c.Loss, c.Dup = []int{20}, loss, 0
		lines := strings.Split(trace(t, writers(func(protocol.ID, protocol.ID, uint64) {}), c), "\n")
		return slices.DeleteFunc(lines, func(line string) bool { return !strings.Contains(line, "try") })
	}
	if reliable := tries(0); len(reliable) != 60 || !slices.Equal(tries(0.5), reliable) {
		t.Errorf("%d tries, others with losses", len(reliable))
	}
}

func TestLossErrors(t *testing.T) {
	for want, change := range map[string]func(*sim.Config){
		"loss 1: want a probability of at least 0 and below 1": func(c *sim.Config) { c.Loss = 1 },
		"loss -0.1: want a probability":                        func(c *sim.Config) { c.Loss = -0.1 },
		"dup NaN: want a probability":                          func(c *sim.Config) { c.Dup = math.NaN() },
	} {
		c := lossyRun()
		change(&c)
		if _, err := sim.Run(writers(nil), c); !errors.Is(err, sim.ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	a := writers(nil)
	a.Tolerates = 0
	if _, err := sim.Run(a, lossyRun()); !errors.Is(err, sim.ErrConfig) || !errors.Is(err, protocol.ErrReliable) {
		t.Errorf("channels that an algorithm does not bear: %v", err)
	}
}

// What is sent again is counted apart.
func TestRetransmissions(t *testing.T) {
	a := toys(protocol.Members, func(id protocol.ID, ev protocol.Event[note], out *protocol.Out[note]) {
		if ev.Kind == protocol.Try {
			out.Send(1-id, note{1})
			out.Resend(1-id, note{1})
			out.Resend(1-id, note{1})
		}
		grabber(noToken)(id, ev, out)
	})
	r := mustRun(t, a, sim.Config{Config: protocol.Config{N: 2}, Entries: []int{5}})
	if r.Messages != 10 || r.Retransmitted != 20 {
		t.Errorf("%d messages, %d sent again", r.Messages, r.Retransmitted)
	}
}
