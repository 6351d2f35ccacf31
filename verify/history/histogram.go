package history

import (
	"math"
	"math/bits"
)

// A Histogram keeps durations in bounded memory: mean and maximum are exact, and
// a percentile is a value that occurred, less than 1/64 from the exact one.
//
// Buckets are 64 to each power of two. Each keeps the largest value that fell
// into it, so that values which repeat, such as multiples of one constant
// message delay, come out exact.
type Histogram struct {
	count    uint64
	high, lo uint64 // the sum, in 128 bits
	max      int64
	octaves  [58]*octave // of all positive int64; nil: no value fell into it
}

// An octave has the values from one power of two to the next; the first one has those
// below perOctave.
type octave [perOctave]bucket

type bucket struct {
	count uint64
	max   int64
}

const perOctave = 64

// Add records v nanoseconds; a negative v counts as 0.
func (h *Histogram) Add(v int64) {
	v = max(v, 0)
	h.count++
	var carry uint64
	h.lo, carry = bits.Add64(h.lo, uint64(v), 0)
	h.high += carry
	h.max = max(h.max, v)
	i := index(v)
	o := h.octaves[i/perOctave]
	if o == nil {
		o = new(octave)
		h.octaves[i/perOctave] = o
	}
	b := &o[i%perOctave]
	b.count++
	b.max = max(b.max, v)
}

// reset is an empty histogram in the memory of h.
func (h *Histogram) reset() Histogram {
	for _, o := range h.octaves {
		if o != nil {
			*o = octave{}
		}
	}
	return Histogram{octaves: h.octaves}
}

// index is v itself below 64; above, the power of two and the six bits that
// follow the leading one.
func index(v int64) int {
	if v < perOctave {
		return int(v)
	}
	shift := bits.Len64(uint64(v)) - 7
	return shift*perOctave + int(v>>shift)
}

// Mean is the mean in nanoseconds, 0 without values.
func (h *Histogram) Mean() float64 {
	if h.count == 0 {
		return 0
	}
	if q, r := bits.Div64(h.high%h.count, h.lo, h.count); h.high < h.count {
		return float64(q) + float64(r)/float64(h.count)
	}
	return (math.Ldexp(float64(h.high), 64) + float64(h.lo)) / float64(h.count)
}

// Percentile returns the smallest kept value that at least p percent of the
// values do not exceed, 0 without values.
func (h *Histogram) Percentile(p float64) int64 {
	rank := max(1, uint64(math.Ceil(p/100*float64(h.count))))
	for _, o := range h.octaves {
		if o == nil {
			continue
		}
		for _, b := range o {
			if b.count >= rank {
				return b.max
			}
			rank -= b.count
		}
	}
	return h.max
}

// A Summary is what is printed of a Histogram, in milliseconds.
type Summary struct {
	Count uint64  `json:"count"` // of values: where it is 0 the rest says nothing
	Mean  float64 `json:"mean"`
	P50   float64 `json:"p50"`
	P99   float64 `json:"p99"`
	Max   float64 `json:"max"`
}

// Summary sums h up.
func (h *Histogram) Summary() Summary {
	const ms = 1e6
	return Summary{
		Count: h.count,
		Mean:  h.Mean() / ms,
		P50:   float64(h.Percentile(50)) / ms,
		P99:   float64(h.Percentile(99)) / ms,
		Max:   float64(h.max) / ms,
	}
}
