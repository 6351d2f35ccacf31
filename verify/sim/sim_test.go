package sim_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/poundlock/poundlock/algo/dijkstra"
	"github.com/poundlock/poundlock/algo/ricartagrawala"
	"github.com/poundlock/poundlock/algo/sigma"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/scenario"
	"github.com/poundlock/poundlock/verify/sim"
)

var (
	constant    = sim.Constant(time.Millisecond)
	exponential = sim.Exponential(time.Millisecond)
)

// saturated has every user try for ever, so to speak.
func saturated(n, entries int, delay sim.Dist) sim.Config {
	return sim.Config{
		Config: protocol.Config{N: n}, Entries: []int{entries}, Delay: delay, Think: sim.Constant(0),
	}
}

// Ricart & Agrawala 1981: 2(n-1) messages an entry; a request and a reply to
// wait for when nobody competes; one reply from one holder to the next.
func TestCostsOfRicartAgrawala(t *testing.T) {
	low := mustRun(t, ricartagrawala.Algorithm, sim.Config{
		Config: protocol.Config{N: 10}, Think: sim.Constant(time.Second),
	})
	if low.MessagesPerEntry != 18 || low.Waiting.Mean != 2 || low.Waiting.Max != 2 || low.ViolationCount != 0 {
		t.Errorf("low load: %+v", low)
	}
	if low.Entries != 1000 || low.MessagesByKind["REQUEST"] != 9000 || low.MessagesByKind["REPLY"] != 9000 ||
		low.OverheadMessages != 0 || low.IntegersPerMessage != 1 || low.Response.Mean != 3 || low.MaxBypass != 0 {
		t.Errorf("low load: %+v", low)
	}
	high := mustRun(t, ricartagrawala.Algorithm, sim.Config{
		Config: protocol.Config{N: 10}, Think: sim.Constant(0), Hold: sim.Constant(time.Millisecond),
	})
	if high.MessagesPerEntry != 18 || high.SyncDelay.Mean != 1 || high.SyncDelay.Max != 1 || high.ViolationCount != 0 {
		t.Errorf("high load: %+v", high)
	}
	// The saturated lock changes hands every 2 ms, each time after the others.
	if high.Jain < 0.999 || high.MaxBypass != 9 || high.Throughput < 499 || high.Throughput > 501 {
		t.Errorf("high load: %+v", high)
	}
}

// CHECK is no message of the algorithm's own, and a member that is down costs
// messages that nobody answers.
func TestOverheadAndDown(t *testing.T) {
	r := mustRun(t, sigma.Algorithm, sim.Config{
		Config: protocol.Config{N: 4}, Clients: 1, Entries: []int{10}, Hold: sim.Constant(3500 * time.Millisecond),
	})
	if r.MessagesByKind["CHECK"] != 120 || r.OverheadMessages != 120 || r.Messages != 120 || r.MessagesPerEntry != 12 {
		t.Errorf("%+v", r)
	}
	r = mustRun(t, sigma.Algorithm, sim.Config{
		Config: protocol.Config{N: 4}, Clients: 1, Entries: []int{10}, Down: []protocol.ID{3},
	})
	if r.MessagesByKind["REQUEST"] != 40 || r.MessagesByKind["RESPONSE"] != 30 || r.ViolationCount != 0 {
		t.Errorf("%+v", r)
	}
}

// stormy has a draw of every kind in it.
func stormy(seed uint64) sim.Config {
	return sim.Config{
		Config: protocol.Config{N: 4}, Clients: 5, Entries: []int{10, 20, 30, 40, 50}, Seed: seed, Digest: true,
		Delay: sim.Exponential(time.Millisecond), Think: sim.Uniform(0, 10*time.Millisecond),
		Hold: sim.Exponential(time.Millisecond), AmnesiaEvery: 10 * time.Second, CrashEvery: 100 * time.Millisecond,
		PauseEvery: time.Second, PartitionEvery: time.Second,
		Lease: 200 * time.Millisecond, ClockOffset: 10 * time.Millisecond,
	}
}

// A run is a value: equal seeds, equal logs and results; other seeds, others.
func TestDeterminism(t *testing.T) {
	digests := map[string]uint64{}
	for seed := range uint64(3) {
		a, b := mustRun(t, sigma.Algorithm, stormy(seed)), mustRun(t, sigma.Algorithm, stormy(seed))
		if a.LogSHA256 != b.LogSHA256 || a.Events != b.Events || a.Waiting != b.Waiting || a.Messages != b.Messages {
			t.Errorf("seed %d: %+v\nand %+v", seed, a, b)
		}
		if before, is := digests[a.LogSHA256]; is || len(a.LogSHA256) != 64 {
			t.Errorf("seeds %d and %d have digest %q", before, seed, a.LogSHA256)
		}
		digests[a.LogSHA256] = seed
	}
}

// The digest is that of the trace, which is a scenario; neither changes the run.
func TestTrace(t *testing.T) {
	var b bytes.Buffer
	c := stormy(1)
	c.Trace = &b
	traced := mustRun(t, sigma.Algorithm, c)
	sum := sha256.Sum256(b.Bytes())
	if got := hex.EncodeToString(sum[:]); got != traced.LogSHA256 {
		t.Errorf("the trace has digest %s, the run %s", got, traced.LogSHA256)
	}
	c.Trace, c.Digest = nil, false
	quiet := mustRun(t, sigma.Algorithm, c)
	if quiet.Events != traced.Events || quiet.Waiting != traced.Waiting || quiet.LogSHA256 != "" {
		t.Errorf("with trace %+v\nwithout %+v", traced, quiet)
	}
	steps, err := scenario.Names{Members: 4, Clients: true}.Parse(&b)
	if err != nil || len(steps) < 1000 {
		t.Errorf("%d steps, %v", len(steps), err)
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestTraceError(t *testing.T) {
	_, err := sim.Run(ricartagrawala.Algorithm, sim.Config{Config: protocol.Config{N: 2}, Trace: full{}})
	if err == nil || errors.Is(err, sim.ErrConfig) || !strings.Contains(err.Error(), "disk full") {
		t.Error(err)
	}
}

// Two algorithms see the same workload: their users think equally long, however
// many random numbers their messages take.
func TestEqualWorkloads(t *testing.T) {
	first := func(out string) (at []string) {
		for _, line := range strings.Split(out, "\n") {
			if strings.Contains(line, " try ") && strings.HasSuffix(line, "1") {
				at = append(at, strings.Fields(line)[1])
			}
		}
		return at
	}
	// Waiting is the same as well where nobody competes and delays are constant.
	c := sim.Config{
		Config: protocol.Config{N: 2}, Entries: []int{20, 1},
		Think: sim.Exponential(time.Hour), Hold: sim.Exponential(time.Second),
	}
	a := first(trace(t, ricartagrawala.Algorithm, c))
	c.N, c.Clients = 4, 2
	b := first(trace(t, sigma.Algorithm, c))
	if len(a) != 19 || strings.Join(a, " ") != strings.Join(b, " ") {
		t.Errorf("tries at\n%v\nand at\n%v", a, b)
	}
}

func TestOneMember(t *testing.T) {
	r := mustRun(t, ricartagrawala.Algorithm, sim.Config{Config: protocol.Config{N: 1}})
	if r.Entries != 100 || r.Messages != 0 || r.MessagesPerEntry != 0 || r.IntegersPerMessage != 0 ||
		r.ViolationCount != 0 {
		t.Errorf("%+v", r)
	}
}

// A user without entries never tries, and the run ends when the others are done.
func TestIdleUsers(t *testing.T) {
	r := mustRun(t, ricartagrawala.Algorithm, sim.Config{Config: protocol.Config{N: 4}, Entries: []int{0, 5, 0, 2}})
	if r.Entries != 7 || r.Messages != 7*2*3 {
		t.Errorf("%d entries with %d messages, want 7 with 42", r.Entries, r.Messages)
	}
	for _, none := range [][]int{{0}, {0, 0, 0, 0}, {-1}} {
		if _, err := sim.Run(ricartagrawala.Algorithm, sim.Config{Config: protocol.Config{N: 4}, Entries: none}); !errors.Is(err, sim.ErrConfig) {
			t.Errorf("entries %v: %v, want %v", none, err, sim.ErrConfig)
		}
	}
}

func TestProgress(t *testing.T) {
	calls := 0
	c := sim.Config{
		Config: protocol.Config{N: 30}, Entries: []int{800}, Think: sim.Constant(0),
		Progress: func(p sim.Progress) {
			if calls++; p.Entries < 0 || p.Entries > p.Total || p.Total != 24_000 {
				t.Errorf("%d of %d", p.Entries, p.Total)
			}
		},
	}
	if mustRun(t, ricartagrawala.Algorithm, c); calls == 0 {
		t.Error("no call of Progress")
	}
	// Many that poll registers enter late: what goes on shows in events and virtual time.
	var last sim.Progress
	calls = 0
	c = sim.Config{
		Config: protocol.Config{N: 1000}, Entries: []int{1}, Think: sim.Constant(0), Patience: 300_000,
		Progress: func(p sim.Progress) {
			if calls++; p.Events <= last.Events || p.Now < last.Now {
				t.Errorf("%+v after %+v", p, last)
			}
			last = p
		},
	}
	r, err := sim.Run(dijkstra.Algorithm, c)
	if err != nil || calls < 3 || last.Entries > 3 || last.Now == 0 {
		t.Errorf("%v, %d calls of Progress, the last one %+v of %d events", err, calls, last, r.Events)
	}
}
