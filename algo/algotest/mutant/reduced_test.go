package mutant

import (
	"errors"
	"fmt"
	"testing"

	"github.com/poundlock/poundlock/verify/check"
)

// A violation that reductions hide is an error, and so is a search that cannot be made. A
// claim that is found false is none: the mutant is noticed.
func TestAgain(t *testing.T) {
	broken := errors.New("no such configuration")
	for _, test := range []struct {
		verdict check.Result
		err     error
		wrong   bool
	}{
		{check.Violated, nil, false},
		{check.Holds, nil, true},
		{check.Undecided, nil, true},
		{"", fmt.Errorf("%w: sends something", check.ErrClaim), false},
		{"", broken, true},
	} {
		reduce := 0
		err := again(func(c check.Config) (check.Verdict, error) {
			reduce = len(c.Reduce)
			return check.Verdict{Verdict: test.verdict}, test.err
		}, check.Config{})
		if (err != nil) != test.wrong || reduce != 2 {
			t.Errorf("%q, %v with %d reductions: %v", test.verdict, test.err, reduce, err)
		}
	}
}
