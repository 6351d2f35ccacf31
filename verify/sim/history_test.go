package sim_test

import (
	"bytes"
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/poundlock/poundlock/algo/sigma"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/history"
	"github.com/poundlock/poundlock/verify/sim"
)

// recorded runs sigma, and judges what it has recorded.
func recorded(t *testing.T, fence int64, seed uint64) (sim.Result, *history.Report) {
	t.Helper()
	var file bytes.Buffer
	out, err := history.NewWriter(&file, history.Header{Clock: history.Virtual})
	if err != nil {
		t.Fatal(err)
	}
	r := mustRun(t, sigma.Algorithm, sim.Config{
		Config:  protocol.Config{N: 4, Options: map[string]int64{"fence": fence, "eps": int64(time.Millisecond)}},
		Clients: 3, Entries: []int{300}, Seed: seed, Think: sim.Constant(0), Delay: sim.Exponential(time.Millisecond),
		ClockOffset: time.Millisecond, History: out,
	})
	in, err := history.NewReader("run", &file)
	if err != nil {
		t.Fatal(err)
	}
	h, err := history.Read([]*history.Reader{in}, history.Bounds{})
	if err != nil {
		t.Fatal(err)
	}
	return r, h
}

// A history that is recorded and read again is the one that the simulator judged, also
// where tokens are not what they should be.
func TestHistory(t *testing.T) {
	rejected := 0
	for seed := range uint64(5) {
		for _, fence := range []int64{sigma.FenceOn, sigma.FencePiggyback} {
			r, h := recorded(t, fence, seed)
			m := h.Measures
			if m.Entries != 900 || m.Entries != r.Entries || m.Waiting != r.Waiting || m.Response != r.Response ||
				m.SyncDelay != r.SyncDelay || m.MaxBypass != r.MaxBypass {
				t.Errorf("%+v\nwant %+v", m, r)
			}
			counts := map[string]uint64{}
			for _, v := range h.Verdicts {
				if v.Count > 0 {
					counts[v.Property] = v.Count
				}
			}
			if !maps.Equal(counts, r.ViolationsOf) || h.Accepted != (r.ViolationCount == 0) || !h.Files[0].Ended {
				t.Errorf("%v, want %v", counts, r.ViolationsOf)
			}
			if !h.Accepted {
				rejected++
			}
		}
	}
	if rejected == 0 {
		t.Error("no history was rejected: tokens that are not written back are in order")
	}
}

type nowhere struct{}

func (nowhere) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestHistoryError(t *testing.T) {
	c := sim.Config{Config: protocol.Config{N: 4}, Clients: 2}
	var err error
	if c.History, err = history.NewWriter(nowhere{}, history.Header{Clock: history.Virtual}); err != nil {
		t.Fatal(err)
	}
	if _, err := sim.Run(sigma.Algorithm, c); err == nil || errors.Is(err, sim.ErrConfig) {
		t.Errorf("a history that cannot be written: %v", err)
	}
}
