package clitest

import (
	"testing"
	"time"

	"github.com/spf13/pflag"
)

// An other is a flag whose type help does not know.
type other struct{}

func (*other) Set(string) error { return nil }
func (*other) String() string   { return "0s" }
func (*other) Type() string     { return "other" }

// What Help looks for is noticed.
func TestBadFlags(t *testing.T) {
	s := pflag.NewFlagSet("", pflag.ContinueOnError)
	s.Var(&other{}, "wait", "give up after `DURATION`; 0 is --try")
	s.Int("limit", -1, "list `NUMBER` at most (default 100)")
	s.Duration("max-hold", time.Second, "at most `DURATION` (default never)")
	s.String("name", "", "which one")
	s.Duration("good", time.Second, "`DURATION` of it")
	if bad := BadFlags(s); len(bad) != 4 {
		t.Errorf("4 flags are wrong, these were found: %q", bad)
	}
}
