package sim_test

import (
	"strings"
	"testing"
	"time"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/sim"
	"github.com/poundlock/poundlock/wrap/consensus/consensustest"
)

// What decides here passes the suite of all that decide, through crashes, returns, pauses and partitions. Users only
// keep a run going.
func TestConsensusService(t *testing.T) {
	crashed := 0
	consensustest.RunDriver(t, func(a protocol.Algorithm[uint64], seed uint64) (up []protocol.ID) {
		n := 2 + int(seed%4)
		trace := &strings.Builder{}
		mustRun(t, a, sim.Config{
			Config: protocol.Config{N: n}, Entries: []int{10}, Seed: seed, Think: sim.Constant(20 * time.Millisecond),
			Delay: sim.Exponential(time.Millisecond), CrashEvery: 30 * time.Millisecond, RecoverEvery: 15 * time.Millisecond,
			PauseEvery: 20 * time.Millisecond, PartitionEvery: 30 * time.Millisecond, Detect: 4 * time.Millisecond,
			FaultsUntil: 100 * time.Millisecond, Trace: trace,
		})
		down := make([]bool, n)
		for line := range strings.Lines(trace.String()) {
			if f := strings.Fields(line); len(f) == 4 && (f[2] == "crash" || f[2] == "recover") {
				down[f[3][1]-'1'] = f[2] == "crash"
				crashed++
			}
		}
		for id, gone := range down {
			if !gone {
				up = append(up, protocol.ID(id))
			}
		}
		return up
	}, 100, protocol.Crash|protocol.Recovery)
	if crashed < 100 {
		t.Errorf("%d crashes and returns, want at least 100", crashed)
	}
}
