package lab

import (
	"math"
	"slices"
	"sync"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

const confidence = 0.95

// An Estimate is a mean with half the width of its confidence interval, after Student.
type Estimate struct {
	Mean, Half float64 // Half is 0 if there is one value only
	N          int
}

// Least is the lower end of the interval.
func (e Estimate) Least() float64 { return e.Mean - e.Half }

// Most is the upper end of the interval.
func (e Estimate) Most() float64 { return e.Mean + e.Half }

// Covers reports whether v lies in the interval.
func (e Estimate) Covers(v float64) bool { return e.Least() <= v && v <= e.Most() }

// Within reports whether the interval is at most so wide, relative to the mean, on either
// side. One value alone has no interval.
func (e Estimate) Within(relative float64) bool {
	return e.N > 1 && e.Half <= relative*math.Abs(e.Mean)
}

// EstimateOf estimates the mean of what values are a sample of. There must be one.
func EstimateOf(values []float64) Estimate {
	e := Estimate{Mean: stat.Mean(values, nil), N: len(values)}
	if e.N > 1 {
		e.Half = student(e.N) * stat.StdErr(stat.StdDev(values, nil), float64(e.N))
	}
	return e
}

// Among widens the interval so that with k of its kind all hold together, with 95 % or more
// (Bonferroni).
func (e Estimate) Among(k int) Estimate {
	if e.N > 1 {
		e.Half *= studentAmong(e.N, k) / student(e.N)
	}
	return e
}

// student is the quantile for the mean of n values whose variance is estimated.
func student(n int) float64 { return studentAmong(n, 1) }

// studentAmong is the same where k means are looked at.
func studentAmong(n, k int) float64 {
	key := [2]int{n, k}
	if q, ok := quantiles.Load(key); ok {
		return q.(float64)
	}
	q := distuv.StudentsT{Sigma: 1, Nu: float64(n - 1)}.Quantile(1 - (1-confidence)/2/float64(k))
	quantiles.Store(key, q)
	return q
}

// quantiles are those asked for before: a report asks for few of them, many thousand times, and
// finding one takes as long as all else that it does.
var quantiles sync.Map

// A Ratio is that of two means.
type Ratio struct {
	Estimate
	Over, Under float64 // the means
	// Removed is the part of the variance that pairing takes away: 0 where the two do not
	// depend on each other, near 1 where they go together, negative where they go apart.
	Removed float64
}

// RatioOf estimates mean(a)/mean(b). Values at the same index belong together: they were
// measured with the same random numbers. Without them in both, only those are looked at
// that have a partner; there must be one.
//
// The interval is that of the mean of a - r*b, with r the ratio itself (the delta method,
// with Student's quantile): what moves a and b alike does not widen it.
func RatioOf(a, b []float64) Ratio {
	n := min(len(a), len(b))
	a, b = a[:n], b[:n]
	above, below := stat.Mean(a, nil), stat.Mean(b, nil)
	r := Ratio{Estimate: Estimate{Mean: above / below, N: n}, Over: above, Under: below}
	if n < 2 {
		return r
	}
	rest := make([]float64, n)
	for i := range rest {
		rest[i] = (a[i] - r.Mean*b[i]) / below
	}
	paired := stat.Variance(rest, nil)
	r.Half = student(n) * math.Sqrt(paired/float64(n))
	alone := (stat.Variance(a, nil) + r.Mean*r.Mean*stat.Variance(b, nil)) / (below * below)
	if alone > 0 {
		r.Removed = 1 - paired/alone
	}
	return r
}

// QuotientOf estimates the product of the means over the line divided by that of those under
// it. Values are paired as in RatioOf, which is the case of one on either side: what stands on
// both sides cancels.
func QuotientOf(over, under [][]float64) Estimate {
	n := math.MaxInt
	for _, values := range slices.Concat(over, under) {
		n = min(n, len(values))
	}
	e := Estimate{Mean: 1, N: n}
	rest := make([]float64, n) // of the logarithm, to first order
	for i, values := range slices.Concat(over, under) {
		mean, sign := stat.Mean(values[:n], nil), 1.0
		if i < len(over) {
			e.Mean *= mean
		} else {
			e.Mean /= mean
			sign = -1
		}
		for k := range rest {
			rest[k] += sign * values[k] / mean
		}
	}
	if n > 1 {
		e.Half = student(n) * e.Mean * math.Sqrt(stat.Variance(rest, nil)/float64(n))
	}
	return e
}
