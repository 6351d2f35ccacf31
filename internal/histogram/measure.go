// Package histogram counts durations in a few fixed buckets, each twice as wide
// as the one before, so that the histograms of all processes can be added up.
package histogram

import (
	"math"
	"math/bits"
	"sync/atomic"
	"time"
)

const (
	// First is the upper bound of the first bucket. The following ones are twice,
	// four times, .. as large.
	First = 32 * time.Microsecond
	// Buckets is their number: up to 4295 seconds. A last one, of what is longer,
	// has no bound.
	Buckets = 28
)

// A Histogram counts durations. The zero Histogram is empty. Any number of
// goroutines may use it; Add neither allocates nor waits.
type Histogram struct {
	counts [Buckets + 1]atomic.Uint64
	sum    atomic.Uint64 // bits of a float64: in whole nanoseconds it could overflow within days
}

// Add counts d; a negative d counts as 0.
func (h *Histogram) Add(d time.Duration) {
	h.counts[bucket(d)].Add(1)
	for {
		old := h.sum.Load()
		sum := math.Float64bits(math.Float64frombits(old) + max(d, 0).Seconds())
		if h.sum.CompareAndSwap(old, sum) {
			return
		}
	}
}

// bucket is the first one whose bound d does not exceed.
func bucket(d time.Duration) int {
	if d <= First {
		return 0
	}
	return min(bits.Len64(uint64((d-1)/First)), Buckets)
}

// Bound is the upper bound of a bucket, which belongs to it.
func Bound(bucket int) time.Duration { return First << bucket }

// Snapshot returns what was counted so far.
func (h *Histogram) Snapshot() Snapshot {
	s := Snapshot{Counts: make([]uint64, len(h.counts)), Sum: math.Float64frombits(h.sum.Load())}
	for i := range h.counts {
		s.Counts[i] = h.counts[i].Load()
		s.Count += s.Counts[i]
	}
	return s
}

// A Snapshot is what a Histogram had counted at one moment. The zero Snapshot is
// empty.
type Snapshot struct {
	Count  uint64   // durations
	Sum    float64  // of all of them, in seconds
	Counts []uint64 // by bucket: of at most 32µs, 64µs, 128µs, .. 4295s, and of longer ones; nil: all 0
}

// Merge adds what another one has counted.
func (s *Snapshot) Merge(o Snapshot) {
	s.Count += o.Count
	s.Sum += o.Sum
	if s.Counts == nil {
		s.Counts = make([]uint64, Buckets+1)
	}
	for i, k := range o.Counts {
		s.Counts[i] += k
	}
}

// Mean is the mean, 0 without durations.
func (s Snapshot) Mean() time.Duration {
	if s.Count == 0 {
		return 0
	}
	return time.Duration(s.Sum / float64(s.Count) * float64(time.Second))
}

// Quantile is the least bound of a bucket that at least the share q of the
// durations do not exceed, and the largest bound where there is none: at most
// twice the exact quantile between 32µs and 4295s. It is 0 without durations.
func (s Snapshot) Quantile(q float64) time.Duration {
	if s.Count == 0 {
		return 0
	}
	rank := min(max(1, uint64(math.Ceil(q*float64(s.Count)))), s.Count)
	for i, k := range s.Counts {
		if k >= rank {
			return Bound(min(i, Buckets-1))
		}
		rank -= k
	}
	return Bound(Buckets - 1)
}
