package gate

import (
	"errors"
	"os"
	"testing"

	"github.com/poundlock/poundlock/algo/algotest/mutant"
)

// TestGate has the name of the test that starts it.
func TestGate(t *testing.T) { mutant.Test(t, mutant.Config{Checks: []mutant.Check{check, drain}}) }

// TestBrokenCheck cannot be made.
func TestBrokenCheck(t *testing.T) {
	mutant.Test(t, mutant.Config{Checks: []mutant.Check{
		func() (string, error) { return "", errors.New("no such model") },
	}})
}

// TestRedHerring finds a fault in the gate as written.
func TestRedHerring(t *testing.T) {
	mutant.Test(t, mutant.Config{Checks: []mutant.Check{
		func() (string, error) { return "exclusion, 3 steps", nil },
	}})
}

// TestSilent never reaches mutant.Test.
func TestSilent(*testing.T) { os.Stdout.WriteString("nothing to say\n") }

func check() (string, error) {
	g := Gate{most: 1}
	if !g.Enter(false, true) || g.Enter(false, true) || g.Enter(false, false) {
		return "tickets", nil
	}
	if !g.Enter(true, false) || !g.Same(Gate{inside: 2, most: 1}) {
		return "staff", nil
	}
	if g.Depth(0) != 2 {
		return "depth", nil
	}
	g.Leave()
	if g.inside != 1 {
		return "leave", nil
	}
	return "", nil
}

func drain() (string, error) {
	g := Gate{inside: 3}
	if g.Drain() == 0 {
		return "drain", nil
	}
	return "", nil
}
