package histogram_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/poundlock/poundlock/internal/histogram"
)

// A bound belongs to its bucket, and what is a nanosecond longer to the next one.
func TestBounds(t *testing.T) {
	for i := range histogram.Buckets {
		var h histogram.Histogram
		h.Add(histogram.Bound(i))
		h.Add(histogram.Bound(i) + 1)
		s := h.Snapshot()
		if s.Counts[i] != 1 || s.Counts[i+1] != 1 || s.Count != 2 {
			t.Errorf("bound %v: %v", histogram.Bound(i), s.Counts)
		}
	}
	var h histogram.Histogram
	h.Add(-time.Second)
	h.Add(0)
	h.Add(math.MaxInt64)
	s := h.Snapshot()
	if s.Counts[0] != 2 || s.Counts[histogram.Buckets] != 1 {
		t.Errorf("extremes: %v", s.Counts)
	}
	if want := time.Duration(math.MaxInt64).Seconds(); s.Sum != want {
		t.Errorf("the sum is %v, want %v", s.Sum, want)
	}
}

// A quantile is the bound that follows the exact one, and the mean is exact.
func TestQuantiles(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		var h histogram.Histogram
		all := make([]time.Duration, 1+r.IntN(500))
		sum := 0.0
		for i := range all {
			all[i] = time.Duration(math.Exp(r.Float64()*19) * float64(10*time.Microsecond))
			sum += all[i].Seconds()
			h.Add(all[i])
		}
		slices.Sort(all)
		s := h.Snapshot()
		if got, want := s.Mean().Seconds(), sum/float64(len(all)); math.Abs(got-want) > 1e-6*want {
			t.Fatalf("mean %v, want %v", got, want)
		}
		for _, q := range []float64{0, 0.01, 0.5, 0.9, 0.99, 1} {
			exact := all[max(1, int(math.Ceil(q*float64(len(all)))))-1]
			got := s.Quantile(q)
			if got < exact || got >= 2*exact && got > histogram.First {
				t.Fatalf("quantile %v: %v, the exact one is %v", q, got, exact)
			}
		}
	}
	if s := (histogram.Snapshot{}); s.Quantile(0.5) != 0 || s.Mean() != 0 {
		t.Error("an empty one has quantiles")
	}
}

// Nothing is lost when many goroutines add, and adding allocates nothing.
func TestConcurrent(t *testing.T) {
	var h histogram.Histogram
	var wg sync.WaitGroup
	const each, goroutines = 1000, 8
	for range goroutines {
		wg.Go(func() {
			for range each {
				h.Add(time.Second)
			}
		})
	}
	wg.Wait()
	s := h.Snapshot()
	s.Merge(s)
	if s.Count != 2*each*goroutines || s.Sum != 2*each*goroutines {
		t.Errorf("%d durations of %v seconds", s.Count, s.Sum)
	}
	if a := testing.AllocsPerRun(100, func() { h.Add(time.Second) }); a != 0 {
		t.Errorf("%v allocations", a)
	}
}
