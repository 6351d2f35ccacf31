package membership

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/poundlock/poundlock/algo/algotest"
	"github.com/poundlock/poundlock/algo/carvalhoroucairol"
	"github.com/poundlock/poundlock/algo/ra2"
	"github.com/poundlock/poundlock/algo/suzukikasami"
	"github.com/poundlock/poundlock/algo/tokengme"
	"github.com/poundlock/poundlock/internal/lane"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
)

// restartedWithin makes all members new lives again and again, each time that long after the last step before, and judges their tokens.
func restartedWithin(d time.Duration) (fault string) {
	w := newWorld(suzukikasami.Algorithm, protocol.Config{N: 3}, 1)
	w.now, w.tick = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano(), 1
	for range 10 {
		w.calm()
		for i := range protocol.ID(3) {
			w.crash(i)
		}
		w.now += int64(d)
	}
	return w.fault
}

// Tokens grow over a restart of all members, if their clocks do.
func TestRestartOfAll(t *testing.T) {
	if fault := restartedWithin(time.Second); fault != "" {
		t.Error(fault)
	}
	if fault := restartedWithin(0); !strings.HasPrefix(fault, "fencing: ") {
		t.Errorf("where clocks stand still: %q, want it to be seen", fault)
	}
}

// fences explores models of an algorithm with the property algotest.Fencing.
func fences[M any](t *testing.T, a protocol.Algorithm[M], models ...model) {
	t.Helper()
	for _, m := range models {
		if !m.in.Adds(t, fmt.Sprintf("%s, %+v", a.Name, m)) {
			continue
		}
		v, err := check.Run(algotest.Fenced(Wrap(a)), m.config(algotest.Fencing))
		if err != nil || v.Verdict != check.Holds {
			t.Errorf("%s, %+v: %s is %s: %s, %v", a.Name, m, v.Property, v.Verdict, v.Reason, err)
		}
		t.Logf("%s: %s in %d states, %.1f s: %s", a.Name, v.Verdict, v.States, v.Seconds, v.Bounds)
	}
}

// Tokens are in order in all runs of small models in which a member crashes, comes back and joins, and sessions break.
func TestFencing(t *testing.T) {
	fences(t, suzukikasami.Algorithm,
		model{n: 2, entries: []int{2}, cut: 2},
		model{entries: []int{1}, crash: 1},
		model{entries: []int{1, 0, 1}, crash: 1, back: 1, in: lane.CI},
		model{entries: []int{2, 1, 0}, cut: 1, in: lane.Long},
	)
	fences(t, tokengme.Algorithm,
		model{entries: []int{1, 0, 1}, apart: true, crash: 1},
		model{entries: []int{1, 0, 1}, apart: true, crash: 1, back: 1, in: lane.CI},
	)
	fences(t, ra2.Algorithm,
		model{entries: []int{1, 0, 1}, apart: true, crash: 1},
		model{entries: []int{1, 0, 1}, apart: true, crash: 1, back: 1, in: lane.CI},
	)
}

// unfenced: an algorithm without fencing tokens has none behind the wrapper either.
func unfenced() string {
	p := Wrap(carvalhoroucairol.Algorithm).New(0, protocol.Config{N: 1}).(*Process[carvalhoroucairol.Message])
	var out protocol.Out[Frame[carvalhoroucairol.Message]]
	p.Step(protocol.Event[Frame[carvalhoroucairol.Message]]{Input: protocol.Input{Kind: protocol.Start, Arg: 1}}, &out)
	p.Step(protocol.Event[Frame[carvalhoroucairol.Message]]{Input: protocol.Input{Kind: protocol.Try}}, &out)
	if k := len(out.Effects); k != 1 || out.Effects[0].Do != protocol.Crit || out.Effects[0].Act.Arg != 0 {
		return fmt.Sprintf("claim: the entry of an algorithm without fencing tokens is %+v", out.Effects)
	}
	if token := p.oldToken(); token != 0 {
		return fmt.Sprintf("claim: an old request of an algorithm without fencing tokens has %d", token)
	}
	return ""
}

func TestUnfenced(t *testing.T) {
	if fault := unfenced(); fault != "" {
		t.Error(fault)
	}
}

// There is room for the tokens of 72 members.
func TestRoom(t *testing.T) {
	for year, fits := range map[int]bool{2026: true, 2098: true, 2110: false} {
		p := &Process[suzukikasami.Message]{n: 72, now: uint64(time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano())}
		p.epoch = protocol.Epoch{Round: p.nextRound(), Leader: 71}
		if p.epoch.Number(72) < math.MaxUint64>>numberBits != fits {
			t.Errorf("in the year %d tokens fit: %t, want %t", year, !fits, fits)
		}
	}
}
