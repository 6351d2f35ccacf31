package check_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
)

// A rebirth is how p2 begins a later life.
type rebirth func(p *toy, out *protocol.Out[uint8])

// reborn is two members with clocks: p1 enters after p2 has taken over its clock, so that
// p2 is behind by one at most while it lives.
func reborn(again rebirth) (protocol.Algorithm[uint8], check.Config) {
	i := protocol.Info{Tolerates: protocol.Crash | protocol.Recovery | protocol.Amnesia, Incarnations: true}
	a := clocked(i, func(p *toy, ev protocol.Event[uint8], out *protocol.Out[uint8]) {
		switch {
		case ev.Kind == protocol.Start && ev.Arg > 1:
			if p.id == 1 {
				again(p, out)
			}
		case ev.Kind == protocol.Start:
			p.r[0] = 1
		case ev.Kind == protocol.Try && p.r[0] == 0: // in a later life
			out.Crit(0)
		case ev.Kind == protocol.Try:
			p.r[0]++
			out.Send(1, uint8(p.r[0]))
		case ev.Kind == protocol.Receive && p.id == 1:
			p.r[0] = uint64(ev.Msg)
			out.Send(0, ev.Msg)
		case ev.Kind == protocol.Receive && p.r[0] == uint64(ev.Msg):
			out.Crit(0)
		case ev.Kind == protocol.Exit:
			out.Rem()
		}
	})
	c := config(2)
	c.Entries, c.Properties = []int{check.Unlimited, 0}, []string{"toy/behind"}
	return a, c
}

// plain is the least message that holds no counter.
const plain = 128

// clocked makes an algorithm of toys whose first register is a clock that all share, and
// whose second one counts for p2; 0 is none. p2 must not be far behind.
func clocked(i protocol.Info, step program) protocol.Algorithm[uint8] {
	a := algorithm(i, step)
	clock, own := protocol.Counter{Least: 1}, protocol.Counter{Member: 1, Time: 1, Least: 1}
	a.MapState = func(p protocol.Process[uint8], f func(protocol.Counter, uint64) uint64) {
		for k, c := range []protocol.Counter{clock, own} {
			if r := &p.(*toy).r[k]; *r > 0 {
				*r = f(c, *r)
			}
		}
	}
	a.MapMsg = func(_ protocol.Channel, m *uint8, f func(protocol.Counter, uint64) uint64) {
		if *m < plain {
			*m = uint8(f(clock, uint64(*m)))
		}
	}
	a.Invariants = []protocol.Invariant{{Name: "toy/behind", Err: func(v *protocol.View) error {
		if v.Procs[0] == nil || v.Procs[1] == nil {
			return nil
		}
		if p2 := toyIn(v.Procs[1]).r[0]; p2 > 0 && toyIn(v.Procs[0]).r[0] > p2+4 {
			return errors.New("p2 is far behind")
		}
		return nil
	}}}
	return a
}

// A later life that begins with a constant is as far behind the clocks of others as these
// have come, which states with clocks that were moved do not show.
func TestLaterLives(t *testing.T) {
	constant := func(p *toy, _ *protocol.Out[uint8]) { p.r[0] = 1 }
	says := func(_ *toy, out *protocol.Out[uint8]) { out.Send(0, 1) }
	nothing := func(*toy, *protocol.Out[uint8]) {}
	ofItsOwn := func(p *toy, _ *protocol.Out[uint8]) { p.r[1] = 1 }
	for fault, give := range map[string]func(c *check.Config){
		"amnesia p2": func(c *check.Config) { c.Amnesia = 1 },
		"recover p2": func(c *check.Config) { c.Crash, c.Recover = 1, 1 },
	} {
		for name, honest := range map[string]rebirth{"nothing": nothing, "a counter of its own": ofItsOwn} {
			a, c := reborn(honest)
			give(&c)
			if v := run(t, a, c); v.Verdict != check.Holds {
				t.Errorf("%s with %s: %s: %s", fault, name, v.Verdict, v.Reason)
			}
		}
		for name, lie := range map[string]rebirth{"a constant": constant, "a message": says} {
			a, c := reborn(lie)
			give(&c)
			for _, workers := range []int{1, 2} {
				c.Workers = workers
				_, err := check.Run(a, c)
				if !errors.Is(err, check.ErrClaim) || !strings.Contains(err.Error(), `after "`+fault+`" a counter begins`) {
					t.Errorf("%s with %s, %d workers: %v, want a false claim", fault, name, workers, err)
				}
			}
			c.Swarm = &check.Swarm{Searches: 1, Bits: 16}
			if _, err := check.Run(a, c); !errors.Is(err, check.ErrClaim) {
				t.Errorf("a swarm, %s with %s: %v, want a false claim", fault, name, err)
			}
		}
		a, c := reborn(constant)
		give(&c)
		c.NoShift = true
		if v := run(t, a, c); v.Verdict != check.Violated {
			t.Errorf("%s with a constant, and clocks as they are: %s, want %s", fault, v.Verdict, check.Violated)
		}
	}
}

// late is two members: p1 has a clock, and enters after p2 has answered, which takes the clock
// over if it has one. It has none before the first event of a kind.
func late(kind protocol.Kind, begin program) (protocol.Algorithm[uint8], check.Config) {
	i, c := peers, config(2)
	c.Entries, c.Properties = []int{check.Unlimited, 1}, []string{"toy/behind"}
	if kind == protocol.Suspect {
		i, c.Suspect = protocol.Info{Detector: protocol.LeaseDetector, Tolerates: protocol.Crash | protocol.Recovery}, 1
	}
	a := clocked(i, func(p *toy, ev protocol.Event[uint8], out *protocol.Out[uint8]) {
		switch {
		case ev.Kind == protocol.Start && p.id == 0:
			p.r[0] = 1
			out.Send(1, plain)
		case ev.Kind == protocol.Start:
			out.SetTimer(1, 0, 0)
		case ev.Kind == kind && p.id == 1 && ev.Msg%plain == 0 && p.r[0]+p.r[1] == 0:
			begin(p, ev, out)
		case ev.Kind == protocol.Try && p.id == 0:
			p.r[0]++
			out.Send(1, uint8(p.r[0]))
		case ev.Kind == protocol.Receive && p.id == 1 && ev.Msg < plain:
			if p.r[0] > 0 {
				p.r[0] = uint64(ev.Msg)
			}
			out.Send(0, ev.Msg)
		case ev.Kind == protocol.Receive && p.id == 0 && p.r[0] == uint64(ev.Msg):
			out.Crit(0)
		case ev.Kind == protocol.Exit:
			out.Rem()
		}
	})
	return a, c
}

// A step that makes a clock out of nothing is as wrong as a later life that begins with one.
func TestBegunCounters(t *testing.T) {
	constant := func(p *toy, _ protocol.Event[uint8], _ *protocol.Out[uint8]) { p.r[0] = 1 }
	says := func(_ *toy, _ protocol.Event[uint8], out *protocol.Out[uint8]) { out.Send(0, 1) }
	ofItsOwn := func(p *toy, _ protocol.Event[uint8], _ *protocol.Out[uint8]) { p.r[1] = 1 }
	for kind, event := range map[protocol.Kind]string{
		protocol.Try: "try p2", protocol.Receive: "deliver p1 p2 M(128)", protocol.Timeout: "timeout p2 1", protocol.Suspect: "lapse p2 p1",
	} {
		for name, honest := range map[string]program{"nothing": wait, "a counter of its own": ofItsOwn} {
			a, c := late(kind, honest)
			if v := run(t, a, c); v.Verdict != check.Holds {
				t.Errorf("%s with %s: %s: %s", event, name, v.Verdict, v.Reason)
			}
		}
		for name, lie := range map[string]program{"a constant": constant, "a message": says} {
			a, c := late(kind, lie)
			for _, workers := range []int{1, 2} {
				c.Workers = workers
				_, err := check.Run(a, c)
				if !errors.Is(err, check.ErrClaim) || !strings.Contains(err.Error(), `after "`+event+`" a counter begins`) {
					t.Errorf("%s with %s, %d workers: %v, want a false claim", event, name, workers, err)
				}
			}
		}
		a, c := late(kind, constant)
		c.NoShift = true
		if v := run(t, a, c); v.Verdict != check.Violated {
			t.Errorf("%s with a constant, and clocks as they are: %s, want %s", event, v.Verdict, check.Violated)
		}
		c.NoShift = false
		c.Break(false, false, true)
		if v := run(t, a, c); v.Verdict != check.Holds {
			t.Errorf("%s with a constant, and a claim that is believed: %s; so there is no need to verify it", event, v.Verdict)
		}
	}
}

// Who has no clock, and takes over that of a message, makes a claim that is true.
func TestClockOfAMessage(t *testing.T) {
	a, c := late(protocol.Receive, wait)
	step := a.New
	a.New = func(id protocol.ID, k protocol.Config) protocol.Process[uint8] {
		p := step(id, k).(*toy)
		inner := p.step
		p.step = func(p *toy, ev protocol.Event[uint8], out *protocol.Out[uint8]) {
			if inner(p, ev, out); p.id == 1 && ev.Kind == protocol.Receive && ev.Msg < plain {
				p.r[0] = uint64(ev.Msg)
			}
		}
		return p
	}
	if v := run(t, a, c); v.Verdict != check.Holds {
		t.Errorf("%s: %s", v.Verdict, v.Reason)
	}
}
