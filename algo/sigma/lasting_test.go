package sigma

import (
	"slices"
	"strings"
	"testing"

	"github.com/poundlock/poundlock/check"
	"github.com/poundlock/poundlock/protocol"
)

// lasting asks for starvation and progress of two clients with one entry each.
func lasting(n int) check.Config {
	return check.Config{
		Config: protocol.Config{N: n}, Clients: 2, MaxMemory: 512 << 20,
		Properties: []string{check.MakesProgress, check.Starvation},
	}
}

// With one of four servers down the other three are just enough, and nobody starves as
// long as channels are FIFO; without timeouts the default form does not either way.
func TestNobodyStarves(t *testing.T) {
	for _, a := range []protocol.Algorithm[Message]{Literal, Algorithm} {
		for _, fifo := range []bool{true, false} {
			c := lasting(4)
			if c.Down, c.FIFO = []protocol.ID{3}, fifo; !fifo {
				c.Timers = check.NeverFire
			}
			if !fifo && a.Variant != "" {
				continue // see TestWithoutChecks
			}
			v, err := check.Run(a, c)
			if err != nil || v.Verdict != check.Holds {
				t.Errorf("%q: %s (%s), error %v\n%s", a.Variant, v.Verdict, v.Bounds, err, strings.Join(v.Trace, "\n"))
			}
		}
	}
}

// The reason for CHECK: a REQUEST that is repeated and overtaken by the RELEASE of its
// client leaves a support for nobody behind, and where no other server can make up for
// it the other client polls for ever.
func TestWithoutChecks(t *testing.T) {
	for _, a := range []protocol.Algorithm[Message]{Literal, Algorithm} {
		v, err := check.Run(a, lasting(2))
		if err != nil || v.Verdict != check.Violated || v.Loop == check.NoLoop {
			t.Fatalf("%q: %s (%s), error %v", a.Variant, v.Verdict, v.Bounds, err)
		}
		release := slices.IndexFunc(v.Trace, func(l string) bool { return strings.Contains(l, " RELEASE(1") })
		if release < 0 || !slices.ContainsFunc(v.Trace[release:], func(l string) bool { return strings.Contains(l, "c1 s2 REQUEST(1") }) {
			t.Errorf("%q: no REQUEST of c1 comes after its RELEASE:\n%s", a.Variant, strings.Join(v.Trace, "\n"))
		}
		for _, l := range v.Trace[v.Loop:] {
			if strings.HasPrefix(l, "try") || strings.Contains(l, "c1") && !strings.Contains(l, "RESPONSE(c1") {
				t.Errorf("%q: c1, which has left, takes part in the loop: %s", a.Variant, l)
			}
		}
	}
}
