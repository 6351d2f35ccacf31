package sim_test

import (
	"testing"
	"time"

	"github.com/poundlock/poundlock/algo/sigma"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/history"
	"github.com/poundlock/poundlock/verify/sim"
)

// Fencing tokens are ordered while servers restart empty and clocks are within
// their bound, and each part of the scheme is needed: without it some grant gets
// a smaller token than one that had ended. Ten million grants of the first case:
//
//	poundlock-lab sim sigma -n 4 --clients 4 --entries 2500000 --think constant:10ms \
//		--fence on --clock-offset 50ms --amnesia-every 2s
func TestFencing(t *testing.T) {
	const eps = time.Millisecond
	base := func(fence int64, seed uint64) sim.Config {
		return sim.Config{
			Config:  protocol.Config{N: 4, Options: map[string]int64{"fence": fence, "eps": int64(eps)}},
			Clients: 3, Entries: []int{300}, Seed: seed, Think: sim.Exponential(30 * time.Millisecond),
			ClockOffset: eps, AmnesiaEvery: 30 * time.Millisecond,
		}
	}
	for seed := range uint64(10) {
		r := mustRun(t, sigma.Algorithm, base(sigma.FenceOn, seed))
		if r.ViolationsOf[history.Inversion]+r.ViolationsOf[history.Reuse] != 0 || r.Entries != 900 || r.FencedEntries == 0 {
			t.Errorf("seed %d: %+v", seed, r)
		}
	}
	for name, c := range map[string]struct {
		fence int64
		spoil func(*sim.Config)
	}{
		"clocks beyond their bound": {sigma.FenceOn, func(c *sim.Config) { c.ClockOffset = 100 * eps }},
		"restarts without a floor": {sigma.FenceNoFloor, func(c *sim.Config) {
			// Clocks within their bound, so that only the floor is missing.
			c.Options["eps"], c.ClockOffset, c.AmnesiaEvery = int64(50*eps), 50*eps, 5*time.Millisecond
		}},
		"nothing written back": {sigma.FencePiggyback, func(c *sim.Config) {
			c.Delay, c.AmnesiaEvery = sim.Exponential(time.Millisecond), 0
			c.Think = sim.Constant(0)
		}},
	} {
		found := false
		for seed := uint64(0); seed < 20 && !found; seed++ {
			cfg := base(c.fence, seed)
			c.spoil(&cfg)
			found = mustRun(t, sigma.Algorithm, cfg).ViolationsOf[history.Inversion] > 0
		}
		if !found {
			t.Errorf("%s: no inversion in 20 runs", name)
		}
	}
}

// A grant is slow when its user had to send SETTOKEN, and grants before six clock
// bounds do not count.
func TestSlowPathShare(t *testing.T) {
	var token uint64
	on := func(id protocol.ID, ev protocol.Event[note], out *protocol.Out[note]) {
		if ev.Kind == protocol.Try && token%4 == 0 {
			out.Send(0, note{1})
		}
		grabber(func() uint64 { token++; return token })(id, ev, out)
	}
	a := toys(protocol.Clients, on)
	a.Messages = []protocol.Message{{Name: "NOTE"}, {Name: "SETTOKEN"}}
	a.KindOf = func(m note) int { return int(m.Number) }
	c := sim.Config{
		Config: protocol.Config{N: 1}, Clients: 1, Entries: []int{20},
		Think: sim.Constant(9 * time.Millisecond), Hold: sim.Constant(time.Millisecond),
	}
	if r := mustRun(t, a, c); r.FencedEntries != 20 || r.SlowPathShare != 0.25 || r.MessagesByKind["SETTOKEN"] != 5 {
		t.Errorf("%+v", r)
	}
	a.Options = []protocol.Option{{Name: "eps", Default: func(protocol.Config) int64 { return 20e6 }}}
	token = 0
	if r := mustRun(t, a, c); r.FencedEntries != 8 || r.SlowPathShare != 0.25 {
		t.Errorf("%+v", r)
	}
}
