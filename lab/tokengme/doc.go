// Package tokengme repeats the experiments of N. Mittal, P. K. Mohan, "A priority-based
// distributed group mutual exclusion algorithm when group access is non-uniform", Journal of
// Parallel and Distributed Computing 67(7), 2007, section 4: TokenGME against RA2, and two
// schemes of selection against each other.
package tokengme

import (
	"slices"

	"github.com/poundlock/poundlock/lab"
)

// Experiments are those of this package: one for each figure, one for all of them, and one
// about selection.
var Experiments = append(each(), All, Selection)

// All has every figure and every claim.
var All = lab.Experiment{
	Name:  "tokengme/all",
	Title: "TokenGME, RA2, and schemes of selection: the figures of Mittal and Mohan, and what they say of them",
	Plan:  func(s lab.Scale) lab.Plan { return plan(s, figures...) },
}

func each() (list []lab.Experiment) {
	for _, f := range figures {
		list = append(list, lab.Experiment{
			Name: "tokengme/" + f.name, Title: f.title,
			Plan: func(s lab.Scale) lab.Plan { return plan(s, f) },
		})
	}
	return slices.Clip(list)
}
