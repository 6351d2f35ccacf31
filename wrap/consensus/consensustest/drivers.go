package consensustest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/poundlock/poundlock/protocol"
)

// A Driver runs an algorithm with the consensus that it serves, in a run of its own for each seed, until nothing is
// left to happen. It returns who is up then.
type Driver func(a protocol.Algorithm[uint64], seed uint64) (up []protocol.ID)

// RunDriver judges the service of a driver by what processes hear, in runs with so many seeds; and services
// made of it with a mistake each, of which these runs find every one. Users that try are let in, which keeps a run going;
// that they exclude each other is not asked. Of the faults members tolerate those that are given.
func RunDriver(t *testing.T, d Driver, seeds uint64, tolerates protocol.Faults) {
	t.Run("service", func(t *testing.T) {
		heard := 0
		for seed := range seeds {
			l := drive(d, nil, seed, tolerates)
			if heard += len(l.decided); l.first != "" {
				t.Fatalf("seed %d: %s\n%s", seed, l.first, strings.Join(l.trace, "\n"))
			}
		}
		if heard < instances*int(seeds) {
			t.Errorf("%d decisions in %d runs: want at least %d in each", heard, seeds, instances)
		}
	})
	for _, m := range mistakes {
		t.Run(m.name, func(t *testing.T) {
			finds(t, m.want, 0, seeds, "runs", func(seed uint64) *ledger { return drive(d, m.step, seed, tolerates) })
		})
	}
}

// drive runs a seed twice.
func drive(d Driver, step func(*mistaken, event, *effects), seed uint64, tolerates protocol.Faults) *ledger {
	first, l := driveOnce(d, step, seed, tolerates), driveOnce(d, step, seed, tolerates)
	if !slices.Equal(first.trace, l.trace) {
		l.first = fmt.Sprintf("%s: processes hear %d events, and then %d others", Determinism, len(first.trace), len(l.trace))
	}
	return l
}

func driveOnce(d Driver, step func(*mistaken, event, *effects), seed uint64, tolerates protocol.Faults) *ledger {
	l := newLedger()
	a := tellers(l)
	if step != nil {
		a = with(step)(a)
	}
	a.Tolerates, a.Incarnations, a.Majority = tolerates, true, true
	a.Unsettled = func(procs []protocol.Stateful) (k int) {
		for _, p := range procs {
			if p != nil && !tellerIn(p).present {
				k++
			}
		}
		return k
	}
	procs := map[protocol.ID]*teller{} // the last life of each
	made := a.New
	a.New = func(id protocol.ID, c protocol.Config) protocol.Process[uint64] {
		p := made(id, c)
		procs[id] = tellerIn(p)
		procs[id].traces = true
		return p
	}
	var up []*teller
	for _, id := range d(a, seed) {
		up = append(up, procs[id])
	}
	if l.first == "" {
		l.rest(up)
	}
	return l
}
