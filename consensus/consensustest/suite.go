// Package consensustest is what every implementation of consensus has to pass: the service of a
// driver, and what wraps an algorithm to do without one. Processes propose, hear of decisions,
// crash, and come back with nothing.
//
// What a decision is judged by is what a process hears, at once: that it crashes afterwards makes no
// difference. Each property has broken variants, which the same worlds find.
package consensustest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/poundlock/poundlock/protocol"
)

// The properties, as faults begin with them.
const (
	Validity      = "validity"      // what is decided was proposed, in this instance
	Agreement     = "agreement"     // uniform: no two lives hear of different decisions
	Order         = "order"         // decisions come in the order of instances, each once
	Participation = "participation" // a later life takes no part in an instance of the one before
	Termination   = "termination"   // once suspicions are right, all hear of all decisions
)

// A Service is an implementation of consensus.
type Service[F any] struct {
	// With runs an algorithm over it.
	With func(protocol.Algorithm[uint64]) protocol.Algorithm[F]
	// Bare is the process of the algorithm in one of these.
	Bare func(protocol.Process[F]) protocol.Process[uint64]
	// Instance reports whether only who takes part in an instance sends such a message, and in which
	// one; nil: processes send no messages for it.
	Instance func(F) (instance uint64, part bool)
	Broken   []Broken[F]
}

// A Broken service has a mistake.
type Broken[F any] struct {
	Name string
	Want string // the property that falls
	// With is in place of that of the service, unless it is nil. Its processes may be inside others,
	// of which Bare of Within returns them.
	With func(protocol.Algorithm[uint64]) protocol.Algorithm[F]
	Seed uint64 // of the first world in which it falls, or one before
	// Amnesia: who comes back is taken for who it was.
	Amnesia bool
}

// Within is a process around another one.
type Within[M any] interface{ Bare() protocol.Process[M] }

// Mortal is a process that may crash by itself: it does where Dead returns true.
type Mortal interface{ Dead() bool }

// worlds is how many worlds a suite tries.
func worlds() uint64 {
	if os.Getenv("POUNDLOCK_FULL") != "" {
		return 100_000
	}
	fmt.Println("SHORTENED: consensus is tried in 600 random worlds; POUNDLOCK_FULL=1 tries 100 000")
	return 600
}

// brokenWorlds is how many worlds have to find a mistake.
const brokenWorlds = 10_000

// random runs the world of a seed.
func random[F any](s *Service[F], b *Broken[F], seed uint64) (w *World[F]) {
	r := rand.New(rand.NewPCG(seed, 0))
	f := faults(r.IntN(3))
	if b != nil && b.Amnesia {
		f = returns
	}
	w = newWorld(s, b, 1+r.IntN(most), f, r)
	for range 60 * w.N {
		if w.l.first == "" {
			w.step()
		}
	}
	if w.l.first == "" {
		w.calm()
	}
	return w
}

// Run tests a service.
func Run[F any](t *testing.T, s Service[F]) {
	total := worlds()
	t.Run("random", func(t *testing.T) {
		for seed := range total {
			if w := random(&s, nil, seed); w.l.first != "" {
				report(t, w, seed)
			}
		}
	})
	t.Run("traces", func(t *testing.T) {
		for seed := range total / 10 {
			a, b := random(&s, nil, seed), random(&s, nil, seed)
			if !slices.Equal(a.Trace, b.Trace) {
				t.Fatalf("seed %d: the same world once more has another trace", seed)
			}
		}
	})
	t.Run("minorities", func(t *testing.T) { minorities(t, &s) })
	t.Run("candidates", func(t *testing.T) {
		for seed := range total / 2 {
			if w := candidates(&s, nil, seed); w.l.first != "" {
				report(t, w, seed)
			}
		}
	})
	t.Run("doubts", func(t *testing.T) {
		for seed := range total {
			if w := doubts(&s, nil, seed); w.l.first != "" {
				report(t, w, seed)
			}
		}
	})
	for _, b := range s.Broken {
		t.Run(b.Name, func(t *testing.T) {
			for seed := b.Seed; seed < b.Seed+brokenWorlds; seed++ {
				for _, world := range []func(*Service[F], *Broken[F], uint64) *World[F]{random[F], candidates[F], doubts[F]} {
					w := world(&s, &b, seed)
					if property, _, _ := strings.Cut(w.l.first, ":"); property == b.Want {
						t.Logf("seed %d: %s", seed, w.l.first)
						return
					}
				}
			}
			t.Errorf("%d worlds do not find that %s falls", brokenWorlds, b.Want)
		})
	}
}

func report[F any](t *testing.T, w *World[F], seed uint64) {
	t.Helper()
	for _, line := range w.Trace[max(0, len(w.Trace)-80):] {
		t.Log(line)
	}
	t.Fatalf("seed %d, n=%d, faults %d: %s", seed, w.N, w.faults, w.l.first)
}

// minorities crashes each minority at each first decision, with all that it has sent: the others
// decide the same.
func minorities[F any](t *testing.T, s *Service[F]) {
	for n := 2; n <= most; n++ {
		for set := range 1 << n {
			for seed := range uint64(8) {
				w := newWorld(s, nil, n, crashes, rand.New(rand.NewPCG(seed, 1)))
				for len(w.l.decided) == 0 && w.Deliver1() {
				}
				crashed := 0
				for id := range protocol.ID(n) {
					if set>>id&1 == 1 && 2*(crashed+1) < n {
						crashed++
						w.Kill(id, true)
					}
				}
				if w.calm(); w.l.first != "" {
					report(t, w, seed)
				}
			}
		}
	}
}

// candidates lets several processes coordinate at once: each suspects some before it at first. Whoever
// interrupts whom, one of them ends with a decision, with no further help of detectors.
func candidates[F any](s *Service[F], b *Broken[F], seed uint64) *World[F] {
	r := rand.New(rand.NewPCG(seed, 2))
	w := newWorld(s, b, 2+r.IntN(most-1), crashes, r)
	for a := range protocol.ID(w.N) {
		for b := range a {
			if w.r.IntN(3) > 0 {
				w.Suspect(a, b, true)
			}
		}
	}
	for range w.r.IntN(6 * w.N) {
		w.Deliver1()
	}
	w.calm()
	return w
}

// doubts lets few processes begin with suspicions of each other, and suspect each other more often than
// they trust each other again, so that ballots of several meet in each order: most instances have one
// message that comes at the worst moment. Late messages are as likely to come first. One process crashes, or
// sessions end, in the midst of it.
func doubts[F any](s *Service[F], b *Broken[F], seed uint64) *World[F] {
	r := rand.New(rand.NewPCG(seed, 3))
	f := crashes
	if seed%2 == 1 {
		f = breaks
	}
	w := newWorld(s, b, 3+int(seed%4)/3, f, r)
	for a := range protocol.ID(w.N) {
		for b := range protocol.ID(w.N) {
			if r.IntN(100) < 70 {
				w.Suspect(a, b, true)
			}
		}
	}
	for range 10 * w.N {
		id, other := protocol.ID(r.IntN(w.N)), protocol.ID(r.IntN(w.N))
		switch k := r.IntN(100); {
		case w.l.first != "":
		case k < 12:
			w.Suspect(id, other, r.IntN(100) < 80)
		case k < 27 && f == breaks:
			w.session(id, other)
		case k > 97:
			if ids, _ := w.up(); w.Procs[id] != nil && 2*(len(ids)-1) > w.N {
				w.Kill(id, false)
				w.thin(id)
			}
		case r.IntN(100) < 75:
			w.last()
		default:
			w.Deliver1()
		}
	}
	if w.l.first == "" {
		w.calm()
	}
	return w
}
