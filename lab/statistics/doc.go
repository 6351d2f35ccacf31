// Package statistics has the experiment on the intervals of package lab themselves: how
// often they cover what they estimate, where theory knows it.
package statistics

import "github.com/poundlock/poundlock/lab"

// Experiments are those of this package.
var Experiments = []lab.Experiment{Coverage}
