package algotest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/causal"
	"github.com/poundlock/poundlock/verify/check"
)

// lacks are the properties that the algorithm has not, as Info says.
func (s *suite) lacks() []string { return append(slices.Clip(s.alg.Lacks), s.alg.Refuted...) }

// promised returns what a small model must have: of what it asks for, or else of what every
// algorithm has, all that the algorithm does not lack.
func (s *suite) promised(asked []string) []string {
	if len(s.lacks()) == 0 {
		return asked
	}
	var all []string
	for _, name := range check.Properties(s.alg, asked) {
		if !slices.Contains(s.lacks(), name) {
			all = append(all, name)
		}
	}
	return all
}

// lacking: what Info says that the algorithm lacks is violated in one of Options.Lacking.
func (s *suite) lacking() error {
	if len(s.lacks()) == 0 {
		return errNothing
	}
	for _, name := range s.lacks() {
		if name != causal.Order && !check.Knows(s.alg, name) {
			return fmt.Errorf("it lacks %q, which is no property", name)
		}
		violated, bounds := false, ""
		for _, c := range s.Lacking {
			if c.Properties != nil && !slices.Contains(c.Properties, name) {
				continue
			}
			c.Properties = []string{name}
			v, err := s.decide(c, name)
			if err != nil {
				return err
			}
			violated, bounds = violated || v.Verdict == check.Violated, bounds+"\n"+v.Bounds
			if violated {
				break
			}
		}
		if !violated {
			return fmt.Errorf("it says that it lacks %s, which none of the %d models of Options.Lacking violates:%s",
				name, len(s.Lacking), bounds)
		}
	}
	return nil
}

func (s *suite) decide(c check.Config, name string) (check.Verdict, error) {
	if c.MaxMemory == 0 {
		c.MaxMemory = smallMemory
	}
	if name == causal.Order {
		return check.Run(causal.Of(s.alg), c)
	}
	return check.Run(s.alg, c)
}

// elects reports whether the algorithm is an election, which has no users.
func (s *suite) elects() bool { return s.alg.Users == protocol.Nobody }

// holds returns an error unless a model has all that it asks for.
func holds(a protocol.Algorithm[any], c check.Config) error {
	v, err := check.Run(a, c)
	if err != nil || v.Verdict == check.Holds {
		return err
	}
	return fmt.Errorf("%s is %s (%s)\n%s\n%s", v.Property, v.Verdict, v.Bounds, strings.Join(v.Trace, "\n"), v.Reason)
}
