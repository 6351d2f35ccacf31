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
	"slices"
	"strings"
	"testing"

	"github.com/poundlock/poundlock/internal/lane"
	"github.com/poundlock/poundlock/protocol"
)

// The properties, as faults begin with them.
const (
	Validity      = "validity"      // what is decided was proposed, in this instance
	Agreement     = "agreement"     // uniform: no two lives hear of different decisions
	Order         = "order"         // decisions come in the order of instances, each once
	Participation = "participation" // a later life takes no part in an instance of the one before
	Termination   = "termination"   // once suspicions are right, all hear of all decisions that somebody has heard of who is up
	Determinism   = "determinism"   // equal seeds, equal traces
)

// The scenarios.
const (
	Random     = "random"     // anything happens at any time
	Traces     = "traces"     // the same, twice
	Minorities = "minorities" // who decides crashes at once with others, and all that they have sent is lost
	Candidates = "candidates" // several coordinate at once
	Doubts     = "doubts"     // messages come at the worst moment
	Followers  = "followers"  // some propose nothing
)

// A Service is an implementation of consensus.
type Service[F any] struct {
	// With runs an algorithm over it.
	With func(protocol.Algorithm[uint64]) protocol.Algorithm[F]
	// Instance reports whether only who takes part in an instance sends such a message, and in which
	// one; nil: processes send no messages for it.
	Instance func(F) (instance uint64, part bool)
	// Interrupts: several that coordinate may interrupt each other for as long as they suspect each other by mistake.
	Interrupts bool
	Broken     []Broken[F]
}

// Seeds has the scenarios that find a mistake, each with the seed of the first world in which the property falls, or one
// before.
type Seeds map[string]uint64

// A Broken service has a mistake.
type Broken[F any] struct {
	Name string
	Want string // the property that falls
	In   Seeds
	// With is in place of that of the service, unless it is nil. Its processes may be inside others:
	// see protocol.As.
	With func(protocol.Algorithm[uint64]) protocol.Algorithm[F]
	// Amnesia: who comes back is taken for who it was.
	Amnesia bool
}

// Mortal is a process that may crash by itself: it does where Dead returns true.
type Mortal interface{ Dead() bool }

// worlds is how many worlds a suite tries.
func worlds() uint64 {
	if lane.Long.Runs() {
		return 100_000
	}
	fmt.Println("SHORTENED: consensus is tried in 600 random worlds; TEST_LANE=long tries 100 000")
	return 600
}

// brokenWorlds is how many worlds of a scenario have to find a mistake.
const brokenWorlds = 10_000

// A scenario makes worlds.
type scenario[F any] struct {
	name  string
	part  uint64 // it is tried in one of so many worlds
	least uint64 // and in so many at least
	run   func(s *Service[F], b *Broken[F], seed uint64) *World[F]
}

func scenarios[F any]() []scenario[F] {
	return []scenario[F]{
		{Random, 1, 0, random[F]},
		{Traces, 10, 0, twice[F]},
		{Minorities, 1, 100 * uint64(len(parties)), minorities[F]},
		{Candidates, 2, 0, candidates[F]},
		{Doubts, 1, 0, doubts[F]},
		{Followers, 2, 0, followers[F]},
	}
}

// Run tests a service.
func Run[F any](t *testing.T, s Service[F]) {
	total := worlds()
	for _, in := range scenarios[F]() {
		t.Run(in.name, func(t *testing.T) {
			for seed := range max(total/in.part, in.least) {
				if w := in.run(&s, nil, seed); w.l.first != "" {
					report(t, w, seed)
				}
			}
		})
	}
	for _, b := range s.Broken {
		t.Run(b.Name, func(t *testing.T) {
			found := 0
			for _, in := range scenarios[F]() {
				if from, yes := b.In[in.name]; yes {
					found++
					finds(t, b.Want, from, brokenWorlds, "worlds of "+in.name, func(seed uint64) *ledger { return in.run(&s, &b, seed).l })
				}
			}
			if found == 0 || found < len(b.In) {
				t.Errorf("%d of the scenarios in %v are there: want at least one, and no others", found, b.In)
			}
		})
	}
}

// finds looks for a run, of so many with seeds in order, in which a property falls.
func finds(t *testing.T, property string, from, runs uint64, what string, run func(seed uint64) *ledger) {
	t.Helper()
	for seed := from; seed < from+runs; seed++ {
		l := run(seed)
		if fell, _, _ := strings.Cut(l.first, ":"); fell == property {
			t.Logf("%s, seed %d: %s", what, seed, l.first)
			return
		}
	}
	t.Errorf("%d %s do not find that %s falls", runs, what, property)
}

func report[F any](t *testing.T, w *World[F], seed uint64) {
	t.Helper()
	for _, line := range w.Trace[max(0, len(w.Trace)-80):] {
		t.Log(line)
	}
	t.Fatalf("seed %d, n=%d, faults %d: %s", seed, w.N, w.faults, w.l.first)
}

// random runs the world of a seed.
func random[F any](s *Service[F], b *Broken[F], seed uint64) *World[F] {
	r := rand.New(rand.NewPCG(seed, 0))
	f := faults(r.IntN(3))
	if b != nil && b.Amnesia {
		f = returns
	}
	w := newWorld(s, b, 1+r.IntN(most), f, r)
	w.storm()
	return w
}

// storm takes random steps, and then calms down.
func (w *World[F]) storm() {
	for range 60 * w.N {
		if w.l.first == "" {
			w.step()
		}
	}
	w.calm()
}

// twice runs a random world once more: what a process draws by chance, or in the order of a map, shows in the trace.
func twice[F any](s *Service[F], b *Broken[F], seed uint64) *World[F] {
	first, w := random(s, b, seed), random(s, b, seed)
	if !slices.Equal(first.Trace, w.Trace) {
		w.l.first = fmt.Sprintf("%s: the same world has another trace: %d lines, and %d", Determinism, len(first.Trace), len(w.Trace))
	}
	return w
}

// parties are the minorities with who decides, by the number of processes: a bit for each other one, by how many
// places it comes after that one.
var parties = []struct {
	n      int
	others uint
}{{3, 0}, {4, 0}, {5, 0}, {5, 1}, {5, 2}, {5, 4}, {5, 8}}

// minorities crashes who hears of a decision first, alone or with each minority, with all that they have sent: the
// others decide the same.
func minorities[F any](s *Service[F], b *Broken[F], seed uint64) *World[F] {
	r := rand.New(rand.NewPCG(seed, 1))
	p := parties[seed%uint64(len(parties))]
	w := newWorld(s, b, p.n, crashes, r)
	w.begin()
	w.Kill(w.l.hearer, true)
	for k := range protocol.ID(p.n - 1) {
		if p.others>>k&1 == 1 {
			w.Kill((w.l.hearer+k+1)%protocol.ID(p.n), true)
		}
	}
	w.calm()
	return w
}

// begin has some instances decided, the last of them by one process so far. Suspicions make it another one each time.
func (w *World[F]) begin() {
	w.doubt(30)
	last := w.r.IntN(instances)
	for left := 60 * w.N; left > 0 && len(w.l.decided) <= last && w.Deliver1(); left-- {
	}
}

// doubt lets each process suspect each other one, in so many of 100 cases.
func (w *World[F]) doubt(percent int) {
	for a := range protocol.ID(w.N) {
		for b := range protocol.ID(w.N) {
			if w.r.IntN(100) < percent {
				w.Suspect(a, b, true)
			}
		}
	}
}

// candidates lets several processes coordinate at once: each suspects some before it. Whoever interrupts whom, one of
// them ends with a decision, with no help of detectors, unless the service says that it needs that.
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
	if s.Interrupts {
		for range w.r.IntN(6 * w.N) {
			w.Deliver1()
		}
		w.calm()
		return w
	}
	w.rest()
	return w
}

// followers lets some processes propose nothing, and crashes who hears of a decision first when some of them have heard
// of it, too: these see to it that the others do.
func followers[F any](s *Service[F], b *Broken[F], seed uint64) *World[F] {
	r := rand.New(rand.NewPCG(seed, 4))
	n := 3 + r.IntN(most-2)
	list := r.Perm(n)
	w := newWorld(s, b, n, crashes, r, list[:1+r.IntN(n-1)]...)
	w.begin()
	for to := range protocol.ID(n) {
		if k := len(w.InFlight(w.l.hearer, to)); k > 0 && r.IntN(2) == 0 {
			w.get(w.l.hearer, to, k-1)
		}
	}
	w.Kill(w.l.hearer, true)
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
	w.doubt(70)
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
	w.calm()
	return w
}
