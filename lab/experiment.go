package lab

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// An Experiment is a question, and how to answer it.
type Experiment struct {
	Name  string // as one types it, such as classics/costs
	Title string // one line
	// Plan says what to try. It is a function of the scale alone.
	Plan func(Scale) Plan
	// Least and Most bound the points of the sweep at which it can be tried alone (Options.Point), also
	// those that are not in its plan; 0: at none.
	Least, Most int
}

// A Scale says how much to try.
type Scale string

// The scales, from seconds to as long as it takes.
const (
	Quick   Scale = "quick"
	Default Scale = "default"
	Full    Scale = "full"
)

// A Plan is what is tried, and how it is reported.
type Plan struct {
	Sweep          string   // the quantity that is varied, such as N
	Labels         []string // of configurations: the names of their columns
	Configurations []Configuration
	Measures       []Column
	// Trials is the name under which trials are kept; default that of the experiment. Where
	// experiments have one in common, configurations of the same labels and the same setup
	// are the same, and tried once.
	Trials string
	// Report makes tables, figures and files of what came out. It depends on its
	// argument only.
	Report func(*Results) Report
}

// A Configuration is one thing that is tried.
type Configuration struct {
	// Labels name it, one for each of Plan.Labels. No two configurations of a plan have
	// the same.
	Labels []string
	Points []int // of the sweep, at which it is tried
	// Replications is how many seeds there are, from 1 on; 0 is 1.
	Replications int
	// Most is how many there may be at last: as long as Enough says no of the samples at a
	// point, half as many again are tried there. 0: as many as Replications. All that Enough
	// looks at must be tried with the same Replications, Most and Enough.
	Most   int
	Enough func(r *Results, point int) bool
	// Cost estimates how long a trial takes; nil: unknown.
	Cost func(point int) time.Duration
	// Setup says all that decides a sample beside the code, the point and the seed: how
	// many entries, which options. It is part of the cache's key.
	Setup string
	// Try makes one trial. It is called from several goroutines. It returns an error if
	// ctx ended before it knew its sample; one that is short need not look.
	Try func(ctx context.Context, point int, seed uint64) (Sample, error)
	// Expect says what to expect at a point; nil: nothing.
	Expect func(point int) []Expectation
}

// Name is the configuration in messages and keys.
func (c *Configuration) Name() string { return strings.Join(c.Labels, " / ") }

// A Sample is what one trial found out. It is kept as JSON.
type Sample struct {
	Values map[string]float64 `json:"values,omitempty"` // of measures; one that is absent was not defined in this trial
	Texts  map[string]string  `json:"texts,omitempty"`  // what is no number
	Files  map[string]string  `json:"files,omitempty"`  // by name, to be written beside the report
}

// An Expectation is the interval in which a measure should lie.
type Expectation struct {
	Measure     string
	Least, Most float64
	// Formula is the interval as one writes it, and Published what the source says where
	// that differs.
	Formula, Published string
}

// Exactly expects one number.
func Exactly(measure string, v float64, formula, published string) Expectation {
	return Expectation{Measure: measure, Least: v, Most: v, Formula: formula, Published: published}
}

// complete fills in defaults, and returns what is wrong with a plan: a mistake of who
// wrote the experiment.
func (p *Plan) complete() error {
	names := map[string]bool{}
	for i := range p.Configurations {
		c := &p.Configurations[i]
		switch {
		case len(c.Labels) != len(p.Labels):
			return fmt.Errorf("%q has %d labels, want %d", c.Name(), len(c.Labels), len(p.Labels))
		case names[c.Name()]:
			return fmt.Errorf("two configurations are called %q", c.Name())
		case c.Replications < 0:
			return fmt.Errorf("%q has %d replications, want at least 1", c.Name(), c.Replications)
		case c.Most != 0 && (c.Most < c.Replications || c.Enough == nil):
			return fmt.Errorf("%q has at most %d replications, want at least %d, and to know when they are enough",
				c.Name(), c.Most, max(1, c.Replications))
		case len(c.Points) == 0:
			return fmt.Errorf("%q is tried nowhere", c.Name())
		case len(slices.Compact(slices.Sorted(slices.Values(c.Points)))) != len(c.Points):
			return fmt.Errorf("%q is tried twice at one point", c.Name())
		}
		names[c.Name()] = true
		c.Replications = max(1, c.Replications)
	}
	if len(p.Configurations) == 0 {
		return fmt.Errorf("nothing to try")
	}
	return nil
}
