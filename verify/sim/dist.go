package sim

import (
	"time"

	"github.com/poundlock/poundlock/verify/workload"
)

// Dist and Popularity are those of package workload, which all drivers share.
type (
	Dist       = workload.Dist
	Popularity = workload.Popularity
)

// Constant is always d.
func Constant(d time.Duration) Dist { return workload.Constant(d) }

// Exponential has the given mean.
func Exponential(mean time.Duration) Dist { return workload.Exponential(mean) }

// Uniform lies in [lo, hi].
func Uniform(lo, hi time.Duration) Dist { return workload.Uniform(lo, hi) }

// Skewed lies in [lo, hi], each order of magnitude as often: of messages, nearly
// any may overtake nearly any other.
func Skewed(lo, hi time.Duration) Dist { return workload.Skewed(lo, hi) }
