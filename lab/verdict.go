package lab

import "math"

// A Verdict compares what was found with what was expected. As a cell of a table it is
// counted in the report.
type Verdict string

// The verdicts of measures.
const (
	Equal   Verdict = "equal"
	Within  Verdict = "within interval"
	Differs Verdict = "differs"
)

// The verdicts of properties.
const (
	AsClaimed Verdict = "as claimed"           // it holds, as its source says
	Violated  Verdict = "violated as expected" // its source says so
	Refuted   Verdict = "refuted"              // its source is wrong, as is known
	NotFound  Verdict = "violation not found"  // its source says that it is violated; within the bounds it is not
	Undecided Verdict = "undecided"            // within the bounds
)

// The verdicts of what a source has measured.
const (
	Reproduced    Verdict = "reproduced"
	Partly        Verdict = "partly reproduced" // the direction, and not the size
	NotReproduced Verdict = "not reproduced"
)

// verdicts are all of them, in the order in which reports count them.
var verdicts = []Verdict{Equal, Within, AsClaimed, Violated, Refuted, NotFound, Reproduced, Partly, NotReproduced, Differs, Undecided}

// Fine reports whether v is what was expected: nobody has to look.
func (v Verdict) Fine() bool { return v != Differs && v != Undecided }

// rounding is how far a sum of floating point numbers may be from what it should be,
// relative to it.
const rounding = 1e-9

// Verdict compares what trials gave with what was expected. What was expected and not
// measured differs.
func (x Expectation) Verdict(values []float64) Verdict {
	if len(values) == 0 {
		return Differs
	}
	slack := rounding * max(1, math.Abs(x.Least), math.Abs(x.Most))
	exact := x.Least == x.Most
	for _, v := range values {
		exact = exact && math.Abs(v-x.Least) <= slack
	}
	e := EstimateOf(values)
	switch {
	case exact:
		return Equal
	case e.Mean+e.Half >= x.Least-slack && e.Mean-e.Half <= x.Most+slack:
		return Within
	}
	return Differs // also where one of them is no number
}
