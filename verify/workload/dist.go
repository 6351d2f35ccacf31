package workload

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// A Shape is a family of distributions.
type Shape uint8

// The shapes. Default is that of the zero Dist: the default of its place.
const (
	Default Shape = iota
	ConstantShape
	ExponentialShape
	UniformShape
	SkewedShape
)

var shapes = [...]string{"default", "constant", "exponential", "uniform", "skewed"}

// isRange reports whether a distribution of shape s has two bounds.
func (s Shape) isRange() bool { return s == UniformShape || s == SkewedShape }

// A Dist is a distribution of durations. The zero value stands for the default.
type Dist struct {
	Shape Shape
	A, B  time.Duration // constant A; exponential of mean A; uniform in [A, B]; skewed in [A, B]. B is A where it says nothing
}

// Constant is always d.
func Constant(d time.Duration) Dist { return Dist{ConstantShape, d, d} }

// Exponential has the given mean.
func Exponential(mean time.Duration) Dist { return Dist{ExponentialShape, mean, mean} }

// Uniform lies in [lo, hi].
func Uniform(lo, hi time.Duration) Dist { return Dist{UniformShape, lo, hi} }

// Skewed lies in [lo, hi], each order of magnitude as often: of messages, nearly
// any may overtake nearly any other.
func Skewed(lo, hi time.Duration) Dist { return Dist{SkewedShape, lo, hi} }

// Longest bounds every duration of a run, far below where sums would overflow.
const Longest = 1000 * 24 * time.Hour

// ParseDist reads constant:D, exponential:MEAN, uniform:LO,HI or skewed:LO,HI.
func ParseDist(text string) (Dist, error) {
	bad := func(why string) (Dist, error) {
		return Dist{}, fmt.Errorf("workload: %q is not a distribution: %s; "+
			"want constant:D, exponential:MEAN, uniform:LO,HI or skewed:LO,HI, such as constant:1ms", text, why)
	}
	name, rest, _ := strings.Cut(text, ":")
	var ds []time.Duration
	for a := range strings.SplitSeq(rest, ",") {
		d, err := time.ParseDuration(a)
		if err != nil {
			return bad(fmt.Sprintf("%q is not a duration", a))
		}
		ds = append(ds, d)
	}
	shape := Shape(max(0, slices.Index(shapes[:], name)))
	if shape == Default || len(ds) > 2 || shape.isRange() != (len(ds) == 2) {
		return bad("unknown name or number of durations")
	}
	d := Dist{shape, ds[0], ds[len(ds)-1]}
	if err := d.Check(); err != nil {
		return bad(err.Error())
	}
	return d, nil
}

// Check says what is wrong with d, which is not the default.
func (d Dist) Check() error {
	switch {
	case d.Shape > SkewedShape:
		return fmt.Errorf("unknown shape %d", d.Shape)
	case d.A < 0 || d.B < 0:
		return fmt.Errorf("%v is negative", min(d.A, d.B))
	case d.A > Longest || d.B > Longest:
		return fmt.Errorf("%v is longer than %v", max(d.A, d.B), Longest)
	case d.Shape.isRange() && d.A > d.B:
		return fmt.Errorf("%v is after %v", d.A, d.B)
	case d.Shape == SkewedShape && d.A == 0:
		return fmt.Errorf("%v has no order of magnitude", d.A)
	}
	return nil
}

// Mean returns the mean.
func (d Dist) Mean() time.Duration {
	switch {
	case d.Shape == UniformShape:
		return (d.A + d.B) / 2
	case d.Shape == SkewedShape && d.A < d.B:
		return time.Duration(float64(d.B-d.A) / math.Log(float64(d.B)/float64(d.A)))
	}
	return d.A
}

// String returns the form that ParseDist reads.
func (d Dist) String() string {
	text := shapes[d.Shape]
	if d.Shape != Default {
		text += ":" + d.A.String()
	}
	if d.Shape.isRange() {
		text += "," + d.B.String()
	}
	return text
}

// Draw takes the next value from a stream. A constant takes no random number.
func (d Dist) Draw(r *Stream) time.Duration {
	switch d.Shape {
	case ExponentialShape:
		return time.Duration(r.ExpFloat64() * float64(d.A))
	case UniformShape:
		return d.A + time.Duration(r.Int64N(int64(d.B-d.A)+1))
	case SkewedShape:
		return min(d.B, time.Duration(float64(d.A)*math.Pow(float64(d.B)/float64(d.A), r.Float64())))
	}
	return d.A
}

// A Purpose is what a stream of random numbers is for.
type Purpose uint64

// The purposes.
const (
	ForDelay Purpose = iota + 1
	ForJitter
	ForClock
	ForThink
	ForHold
	ForFaults
	ForChannels
	ForRegisters
	ForGroups
	ForConsensus
	ForDowngrades
)

// A Stream is the random numbers of one purpose of one process or user. It points
// into itself, and is never copied.
type Stream struct {
	rand.Rand
	source rand.PCG
}

// Begin makes s begin. The two words of its state are mixed, because near states of
// PCG begin alike.
func (s *Stream) Begin(seed uint64, p Purpose, of uint64) {
	a := mix(seed + mix(uint64(p)))
	s.source.Seed(a, mix(a+mix(of)))
	s.Rand = *rand.New(&s.source)
}

// mix is the output function of SplitMix64: a bijection in which each bit of x
// changes half of the result's.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
