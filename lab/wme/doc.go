// Package wme has the experiment on weak mutual exclusion: Table 1 of P. Romano, L. Rodrigues, "An Efficient Weak
// Mutual Exclusion Algorithm", measured.
package wme

import "github.com/poundlock/poundlock/lab"

// Experiments are those of this package.
var Experiments = []lab.Experiment{Table1}
