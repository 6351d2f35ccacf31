// Package network has the experiments that put what the simulator predicts beside what a network does: the same workload, with
// every algorithm that nodes run. Unlike all others they take real time, and what they measure depends on the machine.
package network

import "github.com/poundlock/poundlock/lab"

// Experiments are those of this package.
var Experiments = []lab.Experiment{Classics, Groups}
