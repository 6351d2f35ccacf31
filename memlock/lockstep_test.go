package memlock

import (
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/poundlock/poundlock/algo/bakery"
	"github.com/poundlock/poundlock/algo/dijkstra"
	"github.com/poundlock/poundlock/algotest/mutant"
	"github.com/poundlock/poundlock/protocol"
)

// A lock is what is tested here.
type lock interface {
	Lock(slot int)
	Unlock(slot int)
}

// A stop is where a slot waits for its next step: before an access, or after a call.
type stop struct {
	access
	returned bool
}

func (s stop) String() string {
	switch {
	case s.returned:
		return "the end of its call"
	case s.write:
		return fmt.Sprintf("a write of %d to register %d", s.value, s.register)
	}
	return fmt.Sprintf("a read of register %d", s.register)
}

// A slot is one participant, which calls Lock and Unlock in turn, and beside it the process
// that has the same algorithm.
type slot struct {
	run    func() (next stop, more bool)
	end    func()
	yield  func(stop) bool
	at     stop
	inside bool
	proc   protocol.Process[struct{}] // nil: there is none
}

// A stepper drives the slots of one lock by hand, one access at a time, and gives each
// process what its slot reads.
type stepper struct {
	memory *memory
	k      int // the register whose values are slots, which processes count from 1
	slots  []*slot
	turn   *slot  // who runs
	value  uint64 // what its access returns
	out    protocol.Out[struct{}]
}

var errEnd = errors.New("the test ends")

// newStepper makes a stepper for n slots that enter so many times, beside processes of a
// unless that is nil.
func newStepper(l lock, m *memory, a *protocol.Algorithm[struct{}], n, entries int) *stepper {
	s := &stepper{memory: m, k: 2 * n}
	m.byHand = func(a access) uint64 {
		if !s.turn.yield(stop{access: a}) {
			panic(errEnd)
		}
		return s.value
	}
	for i := range n {
		p := &slot{at: stop{returned: true}}
		if a != nil {
			p.proc = a.New(protocol.ID(i), protocol.Config{N: n})
		}
		p.run, p.end = iter.Pull(func(yield func(stop) bool) {
			defer func() {
				if r := recover(); r != nil && r != errEnd {
					panic(r)
				}
			}()
			p.yield = yield
			for range entries {
				l.Lock(i)
				p.inside = true
				if !yield(stop{returned: true}) {
					return
				}
				p.inside = false
				l.Unlock(i)
				if !yield(stop{returned: true}) {
					return
				}
			}
		})
		s.slots = append(s.slots, p)
	}
	return s
}

// step lets slot i make the access that it is at, or begin its next call, and run to its
// next stop. It says whether there is one.
func (s *stepper) step(i int) (more bool, err error) {
	p := s.slots[i]
	in := protocol.Input{Kind: protocol.Try}
	switch {
	case !p.at.returned:
		in = s.access(p.at.access)
	case p.inside:
		in.Kind = protocol.Exit
	}
	s.turn, s.value = p, in.Arg
	if p.at.register == s.k && in.Kind == protocol.Value && !p.at.write {
		in.Arg++
	}
	if p.at, more = p.run(); !more || p.proc == nil {
		return more, nil
	}
	return true, s.compare(i, in)
}

// access makes a, and returns what a process is told of it.
func (s *stepper) access(a access) protocol.Input {
	in := protocol.Input{Kind: protocol.Value, From: protocol.ID(a.register)}
	if r := &s.memory.registers[a.register]; a.write {
		r.Store(a.value)
	} else {
		in.Arg = r.Load()
	}
	return in
}

// compare says whether the process goes on like slot i.
func (s *stepper) compare(i int, in protocol.Input) error {
	p := s.slots[i]
	s.out.Reset()
	p.proc.Step(protocol.Event[struct{}]{Input: in}, &s.out)
	if len(s.out.Effects) != 1 {
		return fmt.Errorf("slot %d: its process has %d effects, want one", i, len(s.out.Effects))
	}
	var want stop
	switch e := s.out.Effects[0].Act; e.Do {
	case protocol.Read:
		want.register = int(e.To)
	case protocol.Write:
		want.access = access{int(e.To), true, e.Arg}
		if want.register == s.k {
			want.value--
		}
	default:
		want.returned = true
		if (e.Do == protocol.Crit) != p.inside {
			return fmt.Errorf("slot %d: inside is %v, not so its process", i, p.inside)
		}
	}
	if p.at != want {
		return fmt.Errorf("slot %d is at %v, its process at %v", i, p.at, want)
	}
	return nil
}

// What a schedule may show.
var (
	errTwo  = errors.New("two slots are inside")
	errLong = errors.New("too many steps: somebody waits for what does not come")
)

// random lets slots step in an order drawn from seed, until all calls are made.
func (s *stepper) random(seed uint64) error {
	draw := rand.New(rand.NewPCG(seed, 0))
	left := make([]int, len(s.slots))
	for i := range left {
		left[i] = i
	}
	for steps := 0; len(left) > 0; steps++ {
		k := draw.IntN(len(left))
		more, err := s.step(left[k])
		switch {
		case err != nil:
			return err
		case s.inside() > 1:
			return errTwo
		case steps == 20_000:
			return errLong
		case !more:
			left = slices.Delete(left, k, k+1)
		}
	}
	return nil
}

// inside counts who is inside.
func (s *stepper) inside() (n int) {
	for _, p := range s.slots {
		if p.inside {
			n++
		}
	}
	return n
}

// end ends all slots, wherever they are.
func (s *stepper) end() {
	for _, p := range s.slots {
		p.end()
	}
}

func makeBakery(n int) (lock, *memory) {
	b := NewBakery(n)
	return b, &b.memory
}

func makeDijkstra(n int) (lock, *memory) {
	d := NewDijkstra(n)
	return d, &d.memory
}

// inStep drives a lock and the processes of a, if there are any, through many schedules.
func inStep(make func(n int) (lock, *memory), a *protocol.Algorithm[struct{}]) error {
	for n := 1; n <= 4; n++ {
		for seed := range uint64(300) {
			l, m := make(n)
			s := newStepper(l, m, a, n, 3)
			err := s.random(seed)
			s.end()
			if err != nil {
				return fmt.Errorf("%d slots, seed %d: %w", n, seed, err)
			}
		}
	}
	return nil
}

// Each lock makes the accesses of the processes that the model checker judges, whatever the
// schedule.
func TestLockStep(t *testing.T) {
	if err := inStep(makeBakery, &bakery.Algorithm); err != nil {
		t.Error("bakery:", err)
	}
	if err := inStep(makeDijkstra, &dijkstra.Algorithm); err != nil {
		t.Error("dijkstra:", err)
	}
}

// hasty is a bakery whose customers do not say that they choose.
type hasty struct{ *Bakery }

func makeHasty(n int) (lock, *memory) {
	b := NewBakery(n)
	return hasty{b}, &b.memory
}

func (b hasty) Lock(i int) {
	mine := uint64(1)
	for j := range b.n {
		mine = max(mine, b.read(b.num(j))+1)
	}
	b.write(b.num(i), mine)
	for j := range b.n {
		for first(b.read(b.num(j)), j, mine, i) {
			continue
		}
	}
}

// The tests find a lock that is wrong: by its accesses, and without these by two inside.
func TestHasty(t *testing.T) {
	if err := inStep(makeHasty, &bakery.Algorithm); err == nil || errors.Is(err, errTwo) {
		t.Errorf("beside processes that choose: %v, want a difference", err)
	}
	if err := inStep(makeHasty, nil); !errors.Is(err, errTwo) {
		t.Errorf("alone: %v, want %v", err, errTwo)
	}
}

// Why choosing. Slot 0 has read all numbers and not written its own. Slot 1 takes the same
// one, sees that nobody else has any, and enters. Then slot 0 comes first.
func TestWhyChoosing(t *testing.T) {
	for _, k := range []struct {
		name      string
		make      func(n int) (lock, *memory)
		paused    int // the steps of slot 0 until its ticket is to be written
		twoInside bool
	}{{"hasty", makeHasty, 3, true}, {"bakery", makeBakery, 3, false}} {
		l, m := k.make(2)
		s := newStepper(l, m, nil, 2, 1)
		for _, turns := range []struct{ slot, steps int }{{0, k.paused}, {1, 20}, {0, 20}} {
			for range turns.steps {
				if !s.slots[turns.slot].inside {
					s.step(turns.slot)
				}
			}
		}
		if two := s.inside() == 2; two != k.twoInside {
			t.Errorf("%s: both inside is %v", k.name, two)
		}
		s.end()
	}
}

// Each condition of the locks is needed: the steps of one without it are not those of the
// process.
func TestMutants(t *testing.T) {
	mutant.Test(t, mutant.Config{
		Inside: []string{"Bakery", "Dijkstra", "first"},
		Checks: []mutant.Check{
			func() (string, error) { return fault("bakery", inStep(makeBakery, &bakery.Algorithm)) },
			func() (string, error) { return fault("dijkstra", inStep(makeDijkstra, &dijkstra.Algorithm)) },
		},
	})
}

func fault(lock string, err error) (string, error) {
	if err == nil {
		return "", nil
	}
	return fmt.Sprintf("lock step of %s, %v", lock, err), nil
}
