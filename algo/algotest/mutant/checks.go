package mutant

import (
	"errors"
	"fmt"
	"strings"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/sim"
)

// Model explores a within c. Only a violation is a fault: bound the states so
// that the algorithm as written is decided.
func Model[M any](a protocol.Algorithm[M], c check.Config) Check {
	return func() (string, error) {
		fault, _, err := model(a, c)
		return fault, err
	}
}

// undecided begins the fault of a mutant that is too large for a check.
const undecided = "undecided"

// Decided is Model, and it is a fault too when the cap on memory ends the
// exploration: for mutants whose states never repeat, such as those that keep
// what they should have forgotten.
func Decided[M any](a protocol.Algorithm[M], c check.Config) Check {
	return func() (string, error) {
		fault, v, err := model(a, c)
		if v.Verdict == check.Undecided {
			fault = fmt.Sprintf("%s by check, after %d states", undecided, v.States)
		}
		return fault, err
	}
}

// Reduced is Model with reductions, after one without them in which claims are verified.
// It is a fault too when the number of states is another one: a claim that says less than
// the one as written reduces less.
func Reduced[M any](a protocol.Algorithm[M], c check.Config, states int64) Check {
	return func() (string, error) {
		full := c
		full.Reduce, full.Verify = nil, true
		if fault, _, err := model(a, full); fault != "" || err != nil {
			return fault, err
		}
		fault, v, err := model(a, c)
		if fault == "" && v.States != states {
			fault = fmt.Sprintf("%d states, want %d", v.States, states)
		}
		return fault, err
	}
}

func model[M any](a protocol.Algorithm[M], c check.Config) (fault string, v check.Verdict, err error) {
	v, err = check.Run(a, c)
	switch {
	case errors.Is(err, check.ErrClaim):
		return "false claim by check", v, nil
	case err != nil:
		return "", v, err
	case v.Verdict != check.Violated:
		return "", v, nil
	}
	if err := reduced(a, c); err != nil {
		return "", v, err
	}
	reason := ""
	if v.Property == check.Model {
		reason = ": " + strings.TrimPrefix(v.Reason, check.Model+": ")
	}
	return fmt.Sprintf("%s by check, %d steps%s", v.Property, len(v.Trace), reason), v, nil
}

// Simulate runs a. Any violation is a fault.
func Simulate[M any](a protocol.Algorithm[M], c sim.Config) Check {
	return func() (string, error) {
		r, err := sim.Run(a, c)
		if err != nil || len(r.Violations) == 0 {
			return "", err
		}
		return Simulated(r.Violations[0]), nil
	}
}

// Simulated is the fault behind a violation of sim.Result, which is its time, the
// property and what happened.
func Simulated(violation string) string {
	at, text, _ := strings.Cut(violation, " ")
	property, text, _ := strings.Cut(text, ": ")
	return fmt.Sprintf("%s by simulation, at %s: %s", property, at, text)
}

// Panics checks that f panics, with a text that begins with prefix: that the
// algorithm refuses what its model makes impossible.
func Panics(prefix string, f func()) Check {
	return func() (fault string, err error) {
		defer func() {
			if r := recover(); r == nil {
				fault = "refusal by story, the impossible happens without a panic"
			} else if text := fmt.Sprint(r); !strings.HasPrefix(text, prefix) {
				fault = "refusal by story, another panic: " + text
			}
		}()
		f()
		return "", nil
	}
}
