package workload

import (
	"math"
	"testing"
	"time"
)

func TestParseDist(t *testing.T) {
	for text, want := range map[string]Dist{
		"constant:1ms":        Constant(time.Millisecond),
		"constant:0ms":        Constant(0),
		"exponential:20us":    Exponential(20 * time.Microsecond),
		"uniform:1ms,3s":      Uniform(time.Millisecond, 3*time.Second),
		"uniform:2ms,2ms":     Uniform(2*time.Millisecond, 2*time.Millisecond),
		"constant:24000h0m0s": Constant(Longest),
	} {
		got, err := ParseDist(text)
		if err != nil || got != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
		if again, err := ParseDist(got.String()); err != nil || again != got {
			t.Errorf("%q became %q, which is %v, %v", text, got, again, err)
		}
	}
	for _, text := range []string{
		"", "constant", "constant:", "constant:1", "constant:-1ms", "constant:1ms,2ms", "exponential:1ms,2ms",
		"uniform:1ms", "uniform:3ms,1ms", "uniform:1ms,2ms,3ms", "normal:1ms", "constant:24001h", "default:1ms",
	} {
		if d, err := ParseDist(text); err == nil {
			t.Errorf("%q is %v", text, d)
		}
	}
}

func TestDistributions(t *testing.T) {
	const n = 200_000
	const ms = float64(time.Millisecond)
	for _, c := range []struct {
		d           Dist
		mean, sigma float64
		least, most float64
	}{
		{Constant(3 * time.Millisecond), 3 * ms, 0, 3 * ms, 3 * ms},
		{Exponential(3 * time.Millisecond), 3 * ms, 3 * ms, 0, math.Inf(1)},
		{Uniform(time.Millisecond, 5*time.Millisecond), 3 * ms, 4 * ms / math.Sqrt(12), ms, 5 * ms},
	} {
		var r Stream
		r.Begin(1, ForDelay, 0)
		var sum, squares float64
		for range n {
			v := float64(c.d.Draw(&r))
			if v < c.least || v > c.most {
				t.Fatalf("%v drew %v", c.d, v)
			}
			sum += v
			squares += v * v
		}
		mean := sum / n
		sigma := math.Sqrt(max(0, squares/n-mean*mean))
		if math.Abs(mean-c.mean) > 0.01*c.mean || math.Abs(sigma-c.sigma) > 0.02*c.mean || float64(c.d.Mean()) != c.mean {
			t.Errorf("%v: mean %v, standard deviation %v; want %v, %v", c.d, mean, sigma, c.mean, c.sigma)
		}
	}
}

// Streams of near seeds, purposes and owners are unrelated: no two begin alike,
// and the first draws of many are spread evenly.
func TestStreams(t *testing.T) {
	seen := map[uint64]bool{}
	var low int
	for seed := range uint64(10) {
		for p := ForDelay; p <= ForFaults; p++ {
			for of := range uint64(100) {
				var s Stream
				s.Begin(seed, p, of)
				v := s.Uint64()
				if seen[v] {
					t.Fatalf("stream %d %d %d begins like another one", seed, p, of)
				}
				seen[v] = true
				if v < 1<<63 {
					low++
				}
			}
		}
	}
	if half := len(seen) / 2; low < half-200 || low > half+200 {
		t.Errorf("%d of %d first draws are in the lower half", low, len(seen))
	}
}
