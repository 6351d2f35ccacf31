// Package groups has the experiment on locks that holders share: Sigma, which the lock service runs, beside TokenGME and
// RA2.
package groups

import "github.com/poundlock/poundlock/lab"

// Experiments are those of this package.
var Experiments = []lab.Experiment{Compare}
