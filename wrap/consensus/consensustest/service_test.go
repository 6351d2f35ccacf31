package consensustest

import (
	"testing"

	"github.com/poundlock/poundlock/protocol"
)

// The service of algotest.
func TestService(t *testing.T) {
	s := Service[uint64]{
		With: func(a protocol.Algorithm[uint64]) protocol.Algorithm[uint64] { return a },
	}
	for _, m := range mistakes {
		in := []string{Random, Minorities, Candidates, Doubts, Followers}
		if m.want == Determinism {
			in = []string{Traces}
		}
		b := Broken[uint64]{Name: m.name, Want: m.want, With: with(m.step), In: Seeds{}}
		for _, name := range in {
			b.In[name] = 0
		}
		s.Broken = append(s.Broken, b)
	}
	Run(t, s)
}
