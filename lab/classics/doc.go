// Package classics has the experiments on the classical algorithms: what they cost and
// what they satisfy, beside what their sources say.
package classics

import "github.com/poundlock/poundlock/lab"

// Experiments are those of this package.
var Experiments = []lab.Experiment{Costs, Elections, Properties}
